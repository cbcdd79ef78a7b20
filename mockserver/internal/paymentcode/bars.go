package paymentcode

import (
	"fmt"
	"strings"
)

// Bars returns the barcode of a boleto as a scalable SVG image: Interleaved 2 of 5,
// black on white. Wide elements are three units wide, and narrow ones are one.
func Bars(barcode string) string {
	const quiet, wide, height = 10, 3, 50
	// The narrow (n) and wide (w) elements of each digit. The bars encode the
	// first digit of each pair, the spaces between them the second.
	patterns := [10]string{"nnwwn", "wnnnw", "nwnnw", "wwnnn", "nnwnw", "wnwnn", "nwwnn", "nnnww", "wnnwn", "nwnwn"}
	var elements strings.Builder
	elements.WriteString("nnnn") // start pattern
	for i := 0; i+1 < len(barcode); i += 2 {
		bars, spaces := patterns[barcode[i]-'0'], patterns[barcode[i+1]-'0']
		for j := range bars {
			elements.WriteByte(bars[j])
			elements.WriteByte(spaces[j])
		}
	}
	var path strings.Builder
	x := quiet
	elements.WriteString("wnn") // stop pattern
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
