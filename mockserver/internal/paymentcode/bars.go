package paymentcode

import (
	"fmt"
	"strings"
)

// Bars draws the bar code of a boleto as an SVG: interleaved two of five, three
// units to a wide element. It has no fixed size and is black on white.
func Bars(barcode string) string {
	const quiet, wide, height = 10, 3, 50
	// Which elements of a digit are wide; bars carry every first digit, spaces
	// every second.
	patterns := [10]string{"nnwwn", "wnnnw", "nwnnw", "wwnnn", "nnwnw", "wnwnn", "nwwnn", "nnnww", "wnnwn", "nwnwn"}
	var elements strings.Builder
	elements.WriteString("nnnn") // the start
	for i := 0; i+1 < len(barcode); i += 2 {
		bars, spaces := patterns[barcode[i]-'0'], patterns[barcode[i+1]-'0']
		for j := range bars {
			elements.WriteByte(bars[j])
			elements.WriteByte(spaces[j])
		}
	}
	var path strings.Builder
	x := quiet
	elements.WriteString("wnn") // the stop
	for i, element := range elements.String() {
		width := 1
		if element == 'w' {
			width = wide
		}
		if i%2 == 0 {
			fmt.Fprintf(&path, "M%d 0h%dv%dh-%dz", x, width, height, width)
		}
		x += width
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" preserveAspectRatio="none" aria-hidden="true">`+
		`<path fill="#fff" d="M0 0h%[1]dv%[2]dh-%[1]dz"/><path d="%[3]s"/></svg>`, x+quiet, height, path.String())
}
