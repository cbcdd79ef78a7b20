package golden

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Failure is an error response that every operation must be able to read, and what
// the client's error must contain.
type Failure struct {
	Exchange // its status and body

	Name   string // of its file under testdata/errors
	Code   string
	Detail string
	Fields []string // the invalid members
}

// Failures returns the error responses under testdata/errors, from the gateway
// and from a proxy in front of it. Each call returns new values.
func Failures(tb TB) []*Failure {
	tb.Helper()
	entries, err := os.ReadDir(filepath.Join(root(tb), "testdata", "errors"))
	if err != nil {
		tb.Fatalf("golden: %v", err)
	}
	var all []*Failure
	for _, entry := range entries {
		parts := strings.Split(entry.Name(), ".")
		status, err := strconv.Atoi(parts[max(len(parts)-2, 0)])
		if err != nil {
			tb.Fatalf("golden: errors/%s has no status in its name", entry.Name())
		}
		if status >= 400 {
			all = append(all, failure(tb, entry.Name(), status))
		}
	}
	if len(all) == 0 {
		tb.Fatalf("golden: no error responses under testdata/errors")
	}
	return all
}

func failure(tb TB, name string, status int) *Failure {
	tb.Helper()
	f := &Failure{Name: name, Exchange: Exchange{Status: status, Body: Read(tb, "errors/"+name)}}
	if strings.HasSuffix(name, ".html") {
		f.Header = map[string][]string{"Content-Type": {"text/html"}}
		_, title, _ := strings.Cut(string(f.Body), "<title>")
		f.Detail, _, _ = strings.Cut(title, "</title>")
		return f
	}
	var body struct {
		Code             string        `json:"code"`
		Error            string        `json:"error"`
		Title            string        `json:"title"`
		Detail           string        `json:"detail"`
		Message          string        `json:"message"`
		Errors           []failedField `json:"errors"`
		ValidationErrors []failedField `json:"validation_errors"`
	}
	if err := json.Unmarshal(f.Body, &body); err != nil {
		tb.Fatalf("golden: errors/%s: %v", name, err)
	}
	fields := slices.Concat(body.Errors, body.ValidationErrors)
	for _, field := range fields {
		f.Fields = append(f.Fields, field.Field)
	}
	f.Code, f.Detail = body.Code+body.Error, body.Detail+body.Message // a body has exactly one of these
	if codedTitle.MatchString(body.Title) {
		f.Code = body.Title
	}
	return f
}

// codedTitle matches the titles that are codes, in live gateways.
var codedTitle = regexp.MustCompile(`^[A-Z]+(_[A-Z]+)+$`)

type failedField struct {
	Field string `json:"field"`
}
