// Package recording draws the output of a command as an SVG picture of a terminal,
// for the README. Code hosts show SVG without scripts, so the picture scrolls with
// CSS.
package recording

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"
)

const (
	columns    = 104 // longer lines wrap
	rows       = 37  // lines in the window
	width      = 844 // pixels, including the padding
	lineHeight = 19
	padding    = 16
	module     = 4 // the side of a QR module in pixels
	seconds    = 8 // how long each screen is shown
)

// SVG returns a picture of a terminal in which command has printed output. A QR code
// of half blocks is drawn as squares, because fonts leave gaps between the blocks.
func SVG(command, output string) []byte {
	d := &drawing{}
	d.text("prompt", "$ "+command)
	lines := strings.Split(strings.TrimSuffix(output, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		end := i
		for end < len(lines) && isQR(lines[end]) {
			end++
		}
		if end > i {
			d.qr(lines[i:end])
			i = end - 1
			continue
		}
		if isTitle(lines[i]) {
			d.starts = append(d.starts, d.y)
			d.text("title", lines[i])
			continue
		}
		d.text("", lines[i])
	}
	return d.svg(command)
}

// Text returns the lines of a picture, starting with the command, without QR codes.
func Text(svg []byte) ([]string, error) {
	var found []string
	decoder := xml.NewDecoder(bytes.NewReader(svg))
	for inText := false; ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, fmt.Errorf("recording: %w", err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			if t.Name.Local == "text" {
				found, inText = append(found, ""), true
			}
		case xml.EndElement:
			inText = inText && t.Name.Local != "text"
		case xml.CharData:
			if inText {
				found[len(found)-1] += string(t)
			}
		}
	}
}

// Plain returns the lines of output that Text returns for the picture of it.
func Plain(output string) []string {
	var kept []string
	for line := range strings.SplitSeq(strings.TrimSuffix(output, "\n"), "\n") {
		if line != "" && !isQR(line) {
			kept = append(kept, line)
		}
	}
	return kept
}

// isQR reports whether a line is a row of a QR code in half blocks.
func isQR(line string) bool {
	line = strings.TrimSpace(line)
	return utf8.RuneCountInString(line) >= 20 && strings.Trim(line, "█▀▄ ") == ""
}

func isTitle(line string) bool { return regexp.MustCompile(`^\d+\. `).MatchString(line) }

// drawing is a picture under construction.
type drawing struct {
	body   strings.Builder
	y      int   // the baseline of the last line
	starts []int // y before each title
}

// text draws a line; an empty line becomes a gap.
func (d *drawing) text(class, line string) {
	if line == "" {
		d.y += lineHeight
		return
	}
	if class != "" {
		class = ` class="` + class + `"`
	}
	fmt.Fprintf(&d.body, "<text%s>", class)
	runes := []rune(line)
	for len(runes) > 0 {
		n := min(columns, len(runes))
		d.y += lineHeight
		fmt.Fprintf(&d.body, `<tspan x="%d" y="%d">`, padding, d.y)
		_ = xml.EscapeText(&d.body, []byte(string(runes[:n])))
		d.body.WriteString("</tspan>")
		runes = runes[n:]
	}
	d.body.WriteString("</text>\n")
}

// qr draws rows of half blocks, in which the blocks are the light modules.
func (d *drawing) qr(lines []string) {
	left := padding + lineHeight
	top := d.y + lineHeight/2
	var dark strings.Builder
	side := 0
	for row, line := range lines {
		modules := []rune(strings.TrimSpace(line))
		side = max(side, len(modules))
		for column, block := range modules {
			x, y := left+column*module, top+row*2*module
			if block == ' ' || block == '▄' {
				fmt.Fprintf(&dark, "M%d %dh%dv%dh-%dz", x, y, module, module, module)
			}
			if block == ' ' || block == '▀' {
				fmt.Fprintf(&dark, "M%d %dh%dv%dh-%dz", x, y+module, module, module, module)
			}
		}
	}
	height := len(lines) * 2 * module
	fmt.Fprintf(&d.body, `<rect x="%d" y="%d" width="%d" height="%d" fill="#fff"/><path d="%s" fill="#000"/>`+"\n",
		left, top, side*module, height, dark.String())
	d.y = top + height + lineHeight/2
}

const style = `text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;white-space:pre;fill:#c9d1d9}` +
	`.title{fill:#79c0ff;font-weight:bold}.prompt{fill:#7ee787}`

func (d *drawing) svg(command string) []byte {
	const height = 2*padding + rows*lineHeight
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" xml:space="preserve">`+"\n",
		width, height, width, height)
	fmt.Fprintf(&b, "<title>%s</title>\n<style>%s%s</style>\n", command, style, d.scroll())
	fmt.Fprintf(&b, `<rect width="%d" height="%d" rx="8" fill="#0d1117"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<svg y="%d" width="%d" height="%d"><g class="session">`+"\n%s</g></svg>\n</svg>\n",
		padding, width, height-2*padding, d.body.String())
	return b.Bytes()
}

// scroll returns the animation. Each screen shows as many complete steps as fit in
// the window.
func (d *drawing) scroll() string {
	window := rows * lineHeight
	bottom := max(0, d.y+lineHeight-window)
	offsets := []int{0}
	for i, start := range d.starts {
		end := d.y + lineHeight
		if i+1 < len(d.starts) {
			end = d.starts[i+1]
		}
		if end-lineHeight-offsets[len(offsets)-1] > window { // not counting the empty line after the step
			offsets = append(offsets, min(start, bottom))
		}
	}
	if len(offsets) == 1 {
		return ""
	}
	var frames strings.Builder
	share := 100 / float64(len(offsets))
	for i, offset := range offsets {
		fmt.Fprintf(&frames, "%.1f%%,%.1f%%{transform:translateY(-%dpx)}", share*float64(i), share*(float64(i)+0.93), offset)
	}
	frames.WriteString("100%{transform:none}")
	return fmt.Sprintf("@media(prefers-reduced-motion:no-preference){.session{animation:scroll %ds infinite}}@keyframes scroll{%s}",
		seconds*len(offsets), frames.String())
}
