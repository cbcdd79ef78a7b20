package paymentcode_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/mockserver/internal/paymentcode"
)

// The test reads the barcode as a scanner does, by the widths of its elements.
func TestBars(t *testing.T) {
	t.Parallel()
	svg := paymentcode.Bars(vectorBarcode)
	type bar struct{ at, width int }
	var bars []bar
	for _, m := range regexp.MustCompile(`M(\d+) 0h(\d)v50h-(\d)z`).FindAllStringSubmatch(svg, -1) {
		require.Equal(t, m[2], m[3])
		at, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		width, err := strconv.Atoi(m[2])
		require.NoError(t, err)
		bars = append(bars, bar{at, width})
	}
	var widths []int // alternately of bars and spaces
	for i, b := range bars {
		if i > 0 {
			widths = append(widths, b.at-bars[i-1].at-bars[i-1].width)
		}
		widths = append(widths, b.width)
	}
	require.Len(t, widths, 4+44*5+3)
	assert.Equal(t, []int{1, 1, 1, 1}, widths[:4], "start")
	assert.Equal(t, []int{3, 1, 1}, widths[len(widths)-3:], "stop")
	assert.Equal(t, 10, bars[0].at, "quiet zone")
	weights := []int{1, 2, 4, 7, 0} // the digit is the sum of the weights of its wide elements; 11 means 0
	var read strings.Builder
	for i := 4; i < len(widths)-3; i += 10 {
		for offset := range 2 {
			digit, wide := 0, 0
			for j, weight := range weights {
				if widths[i+2*j+offset] == 3 {
					digit += weight
					wide++
				}
			}
			require.Equal(t, 2, wide)
			read.WriteString(strconv.Itoa(digit % 11))
		}
	}
	assert.Equal(t, vectorBarcode, read.String())
	last := bars[len(bars)-1]
	assert.Contains(t, svg, `viewBox="0 0 `+strconv.Itoa(last.at+last.width+10)+` 50"`)
}
