// Package docs carries the list of assumptions and the OpenAPI documents, so
// that the mock gateway serves the very text that people read.
package docs

import (
	_ "embed"
	"strings"
)

//go:embed assumptions.md
var assumptions string

//go:embed states.md
var states string

var (
	//go:embed openapi.json
	openAPI []byte
	//go:embed openapi-live.json
	liveOpenAPI []byte
	//go:embed openapi-control.json
	controlOpenAPI []byte
)

// OpenAPI returns the description of the interface in a dialect.
func OpenAPI(live bool) []byte {
	if live {
		return liveOpenAPI
	}
	return openAPI
}

// ControlOpenAPI returns the description of the mock gateway's control plane.
func ControlOpenAPI() []byte { return controlOpenAPI }

// Assumption is one choice that the interface document leaves open.
type Assumption struct {
	ID   string `json:"id"`   // stable: "D1", "pix-life"
	Text string `json:"text"` // what the project does, as a sentence
	Knob string `json:"knob"` // what changes it, or the code that decides it

	Section string `json:"-"` // the heading that it stands under: "Transactions"
}

// Markdown returns the document.
func Markdown() string { return assumptions }

// Assumptions returns the rows of the document's tables, in their order.
func Assumptions() []Assumption {
	var list []Assumption
	section := ""
	for line := range strings.SplitSeq(assumptions, "\n") {
		if title, found := strings.CutPrefix(line, "## "); found {
			section = title
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if !strings.HasPrefix(line, "| ") || len(cells) != 3 {
			continue
		}
		row := Assumption{
			ID:   strings.TrimSpace(cells[0]),
			Text: strings.TrimSpace(cells[1]),
			Knob: strings.TrimSpace(cells[2]),

			Section: section,
		}
		if row.ID != "id" { // a table's head
			list = append(list, row)
		}
	}
	return list
}
