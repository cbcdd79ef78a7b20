package recording_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/recording"
	"github.com/gateway-go/gateway/pix"
)

func TestThePictureContainsEveryLineOfTheOutput(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789", 30)
	output := "\n1. An order\n   2 × Café <500 g> & co\n   " + long + "\n"

	text, err := recording.Text(recording.SVG("go run ./shop", output))

	require.NoError(t, err)
	assert.Equal(t, append([]string{"$ go run ./shop"}, recording.Plain(output)...), text)
	assert.Len(t, text, 4)
}

func TestAQRCodeIsDrawnAsSquares(t *testing.T) {
	t.Parallel()
	code, err := pix.Draw("pay me")
	require.NoError(t, err)
	output := "scan this:\n" + code.Terminal() + "\n"
	dark := 0
	for y := range code.Size() {
		for x := range code.Size() {
			if code.Dark(x, y) {
				dark++
			}
		}
	}

	svg := recording.SVG("go run ./shop", output)

	text, err := recording.Text(svg)
	require.NoError(t, err)
	assert.Equal(t, []string{"$ go run ./shop", "scan this:"}, text)
	assert.Equal(t, dark, strings.Count(string(svg), "h4v4h-4z"), "one square for each dark module")
}

func TestOnlyALongSessionScrolls(t *testing.T) {
	t.Parallel()
	step := "\n1. A step" + strings.Repeat("\n   a line", 20)
	assert.NotContains(t, string(recording.SVG("x", step)), "@keyframes")
	assert.Contains(t, string(recording.SVG("x", step+step+step)), "@keyframes")
}
