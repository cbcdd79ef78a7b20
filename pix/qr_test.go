package pix_test

import (
	"bytes"
	"fmt"
	"image/png"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/pix"
)

const text = "00020126580014br.gov.bcb.pix0136123e4567-e12b-12d1-a456-426655440000" +
	"5204000053039865802BR5913Fulano de Tal6008BRASILIA62070503***63041D3D"

func TestModules(t *testing.T) {
	t.Parallel()
	c := newCode(t)

	assert.Equal(t, 45+8, c.Size(), "138 bytes at level L need version 7 of 45 modules")
	assertFinder(t, c, 4, 4)
	assertFinder(t, c, 4+45-7, 4)
	assertFinder(t, c, 4, 4+45-7)
	for i := range c.Size() {
		for edge := range 4 {
			assert.False(t, c.Dark(i, edge), "margin at %d,%d", i, edge)
			assert.False(t, c.Dark(edge, i), "margin at %d,%d", edge, i)
			assert.False(t, c.Dark(i, c.Size()-1-edge), "margin at the end of column %d", i)
		}
	}
	for i := 8; i < 45-8; i++ {
		assert.Equal(t, i%2 == 0, c.Dark(4+i, 4+6), "timing pattern at %d", i)
	}
}

// assertFinder checks the finder pattern at a corner: a dark ring, a light
// ring and a dark core.
func assertFinder(t *testing.T, c pix.QR, left, top int) {
	t.Helper()
	for y := range 7 {
		for x := range 7 {
			ring := max(abs(x-3), abs(y-3))
			assert.Equal(t, ring != 2, c.Dark(left+x, top+y), "finder at %d,%d: %d,%d", left, top, x, y)
		}
	}
}

func TestPNG(t *testing.T) {
	t.Parallel()
	c := newCode(t)
	for _, scale := range []int{1, 3, 8} {
		picture, err := c.PNG(scale)
		require.NoError(t, err)
		decoded, err := png.Decode(bytes.NewReader(picture))
		require.NoError(t, err)
		require.Equal(t, c.Size()*scale, decoded.Bounds().Dx())
		require.Equal(t, c.Size()*scale, decoded.Bounds().Dy())
		for y := range decoded.Bounds().Dy() {
			for x := range decoded.Bounds().Dx() {
				red, _, _, _ := decoded.At(x, y).RGBA()
				require.Equal(t, c.Dark(x/scale, y/scale), red == 0, "scale %d at %d,%d", scale, x, y)
			}
		}
	}
}

func TestSVG(t *testing.T) {
	t.Parallel()
	c := newCode(t)
	svg := c.SVG()
	assert.Contains(t, svg, fmt.Sprintf(`viewBox="0 0 %d %[1]d"`, c.Size()))
	dark := map[[2]int]bool{}
	for _, m := range regexp.MustCompile(`M(\d+) (\d+)h(\d+)v1h-(\d+)z`).FindAllStringSubmatch(svg, -1) {
		var x, y, width, back int
		_, err := fmt.Sscan(m[1]+" "+m[2]+" "+m[3]+" "+m[4], &x, &y, &width, &back)
		require.NoError(t, err)
		require.Equal(t, width, back)
		for i := range width {
			dark[[2]int{x + i, y}] = true
		}
	}
	for y := range c.Size() {
		for x := range c.Size() {
			require.Equal(t, c.Dark(x, y), dark[[2]int{x, y}], "at %d,%d", x, y)
		}
	}
}

func TestTerminal(t *testing.T) {
	t.Parallel()
	c := newCode(t)

	lines := strings.Split(strings.TrimSuffix(c.Terminal(), "\n"), "\n")
	require.Len(t, lines, (c.Size()+1)/2)
	for row, line := range lines {
		runes := []rune(line)
		require.Len(t, runes, c.Size())
		for x, r := range runes {
			upperLight := r == '█' || r == '▀'
			lowerLight := r == '█' || r == '▄'
			require.Equal(t, !c.Dark(x, 2*row), upperLight, "at %d,%d", x, 2*row)
			require.Equal(t, !c.Dark(x, 2*row+1), lowerLight, "at %d,%d", x, 2*row+1)
		}
	}

	plain := strings.NewReplacer("\x1b[97;40m", "", "\x1b[0m", "").Replace(c.Color())
	assert.Equal(t, c.Terminal(), plain)
	assert.Equal(t, len(lines), strings.Count(c.Color(), "\x1b[0m\n"), "every line resets its colors")
}

func TestTooLong(t *testing.T) {
	t.Parallel()
	_, err := pix.Draw(strings.Repeat("x", 2953))
	require.NoError(t, err)
	_, err = pix.Draw(strings.Repeat("x", 2954))
	require.Error(t, err)
}

func newCode(t *testing.T) pix.QR {
	t.Helper()
	c, err := pix.Draw(text)
	require.NoError(t, err)
	return c
}

func abs(n int) int { return max(n, -n) }
