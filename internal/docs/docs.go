// Package docs reads the list of assumptions, the diagrams of states and the OpenAPI
// documents.
package docs

import (
	"archive/zip"
	"bytes"
	"io/fs"
	"strings"
	"sync"

	"github.com/gateway-go/gateway/docs"
)

// file returns the content of a file of the folder docs.
func file(name string) []byte {
	text, err := docs.Files().ReadFile(name)
	if err != nil {
		panic("docs: " + err.Error())
	}
	return text
}

// OpenAPI returns the OpenAPI document of the gateway, in the document dialect or the
// live one.
func OpenAPI(live bool) []byte {
	if live {
		return liveDocument()
	}
	return document()
}

// ControlOpenAPI returns the OpenAPI document of the mock gateway's control plane.
func ControlOpenAPI() []byte { return controlDocument() }

var (
	document        = unpacked("openapi.json")         //nolint:gochecknoglobals // never changes
	liveDocument    = unpacked("openapi-live.json")    //nolint:gochecknoglobals // as above
	controlDocument = unpacked("openapi-control.json") //nolint:gochecknoglobals // as above
)

// unpacked returns a function that decompresses a document on first use.
func unpacked(name string) func() []byte {
	return sync.OnceValue(func() []byte {
		packed := file("openapi.zip")
		archive, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
		if err != nil {
			panic("docs: openapi.zip: " + err.Error())
		}
		text, err := fs.ReadFile(archive, name)
		if err != nil {
			panic("docs: openapi.zip: " + err.Error())
		}
		return text
	})
}

// Assumption is one choice that the interface document leaves open.
type Assumption struct {
	ID   string `json:"id"`   // stable: "list-envelope", "pix-life"
	Text string `json:"text"` // what the project does, as a sentence
	Knob string `json:"knob"` // the settings that change it; empty if it is fixed

	// Affects says who is hit if a gateway does something else, such as "buyer, on call".
	Affects string `json:"affects,omitempty"`

	Section string `json:"-"` // the heading above it: "Transactions"
}

// Markdown returns the list of assumptions as Markdown.
func Markdown() string { return string(file("assumptions.md")) }

// Assumptions returns the rows of the tables in the list of assumptions, in order.
func Assumptions() []Assumption {
	var list []Assumption
	section := ""
	for line := range strings.SplitSeq(Markdown(), "\n") {
		if title, found := strings.CutPrefix(line, "## "); found {
			section = title
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if !strings.HasPrefix(line, "| ") || len(cells) < 2 || len(cells) > 3 {
			continue
		}
		row := Assumption{ID: strings.TrimSpace(cells[0]), Text: strings.TrimSpace(cells[1]), Section: section}
		if len(cells) == 3 {
			row.Affects, row.Knob = affected(strings.TrimSpace(cells[2]))
		}
		if row.Knob == "" && section == dialects {
			row.Knob = "`WithDialect`"
		}
		if row.ID != "id" { // a table's head
			list = append(list, row)
		}
	}
	return list
}

// dialects is the section whose rows the dialect sets, so that they need not say so.
const dialects = "The two dialects"

// affected splits a cell such as "**buyer, on call** `WithFee`, `-fee`".
func affected(cell string) (affects, knob string) {
	if bold, rest, found := strings.Cut(strings.TrimPrefix(cell, "**"), "**"); found {
		return bold, strings.TrimSpace(rest)
	}
	return "", cell
}
