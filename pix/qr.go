package pix

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"strings"

	"github.com/boombuler/barcode/qr"
)

// quiet is the width in modules of the light margin that scanners need.
const quiet = 4

// QR is the picture of a QR code: PNG for APIs and e-mails, SVG for web pages, text
// for terminals. All formats include the margin that scanners need.
type QR struct {
	dark []bool // row by row, without the margin
	side int    // modules, without the margin
}

// Draw returns the QR code of text, such as a copy-paste code or a link. It
// returns an error if the text is longer than 2953 bytes.
func Draw(text string) (QR, error) {
	picture, err := qr.Encode(text, qr.L, qr.Auto)
	if err != nil {
		return QR{}, fmt.Errorf("pix: %w", err)
	}
	side := picture.Bounds().Dx()
	c := QR{dark: make([]bool, side*side), side: side}
	for i := range c.dark {
		c.dark[i] = picture.At(i%side, i/side) == color.Black
	}
	return c, nil
}

// Size returns the width and height of the picture in modules, including the
// margin.
func (c QR) Size() int { return c.side + 2*quiet }

// Dark reports whether the module at x, y is dark. The coordinates include the
// margin. Everything outside the picture is light.
func (c QR) Dark(x, y int) bool {
	x, y = x-quiet, y-quiet
	return x >= 0 && y >= 0 && x < c.side && y < c.side && c.dark[y*c.side+x]
}

// PNG returns the picture with scale pixels per module.
func (c QR) PNG(scale int) ([]byte, error) {
	scale = max(1, scale)
	pixels := c.Size() * scale
	picture := image.NewPaletted(image.Rect(0, 0, pixels, pixels), color.Palette{color.White, color.Black})
	for i := range picture.Pix {
		if c.Dark(i%pixels/scale, i/pixels/scale) {
			picture.Pix[i] = 1
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, picture); err != nil {
		return nil, fmt.Errorf("pix: %w", err)
	}
	return b.Bytes(), nil
}

// SVG returns the picture as an SVG element, black on white, which scales with
// the page. Adjacent modules in a row are merged into one rectangle.
func (c QR) SVG() string {
	var path strings.Builder
	size := c.Size()
	for y := range size {
		for x := 0; x < size; x++ {
			from := x
			for c.Dark(x, y) {
				x++
			}
			if x > from {
				fmt.Fprintf(&path, "M%d %dh%dv1h-%dz", from, y, x-from, x-from)
			}
		}
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %[1]d" shape-rendering="crispEdges" aria-hidden="true">`+
		`<path fill="#fff" d="M0 0h%[1]dv%[1]dh-%[1]dz"/><path d="%s"/></svg>`, size, path.String())
}

// Terminal returns the picture as lines of half blocks, with two rows of
// modules per line. Light modules are drawn, so that the code can be scanned on a
// dark background.
func (c QR) Terminal() string { return c.halfBlocks("", "\n") }

// Color is like Terminal but sets black and white with escape codes, so that the
// code can be scanned on any background.
func (c QR) Color() string { return c.halfBlocks("\x1b[97;40m", "\x1b[0m\n") }

func (c QR) halfBlocks(before, after string) string {
	blocks := [2][2]string{{"█", "▀"}, {"▄", " "}} // [upper dark][lower dark]
	var b strings.Builder
	size := c.Size()
	for y := 0; y < size; y += 2 {
		b.WriteString(before)
		for x := range size {
			b.WriteString(blocks[index(c.Dark(x, y))][index(c.Dark(x, y+1))])
		}
		b.WriteString(after)
	}
	return b.String()
}

func index(dark bool) int {
	if dark {
		return 1
	}
	return 0
}
