package faults

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// UnknownStatus is the state that an unknown-enum fault answers.
const UnknownStatus = "mock_unknown_status"

// ExtraName and ExtraValue are the member that an extra-field fault adds.
const (
	ExtraName  = "mock_extra_field"
	ExtraValue = "a member that no client knows"
)

// unknownEnums gives every state in a JSON text a value that nobody knows.
func unknownEnums(body []byte) []byte {
	return rewrite(body, func(w *rewriter, t jsontext.Token) error {
		if w.name == "status" && t.Kind() == '"' {
			t = jsontext.String(UnknownStatus)
		}
		return w.out.WriteToken(t)
	})
}

// extraFields adds a member to every object of a JSON text, except to those
// whose members are the caller's own.
func extraFields(body []byte) []byte {
	return rewrite(body, func(w *rewriter, t jsontext.Token) error {
		if err := w.out.WriteToken(t); err != nil || t.Kind() != '{' || w.name == "metadata" {
			return err
		}
		return errors.Join(
			w.out.WriteToken(jsontext.String(ExtraName)),
			w.out.WriteToken(jsontext.String(ExtraValue)),
		)
	})
}

// rewriter copies a JSON text token by token.
type rewriter struct {
	in   *jsontext.Decoder
	out  *jsontext.Encoder
	name string // of the member whose value is next, "" in arrays
}

// rewrite returns what write makes of the tokens of body, or body as it is
// where that is no JSON. Names of members are copied without asking.
func rewrite(body []byte, write func(*rewriter, jsontext.Token) error) []byte {
	var to bytes.Buffer
	w := &rewriter{
		in:  jsontext.NewDecoder(bytes.NewReader(body)),
		out: jsontext.NewEncoder(&to, jsontext.AllowDuplicateNames(true)),
	}
	for {
		isName := w.atName()
		t, err := w.in.ReadToken()
		if errors.Is(err, io.EOF) {
			return bytes.TrimSuffix(to.Bytes(), []byte("\n"))
		}
		if err == nil && isName && t.Kind() == '"' {
			w.name = t.String()
			err = w.out.WriteToken(t)
		} else if err == nil {
			err = write(w, t)
			w.name = ""
		}
		if err != nil {
			return body
		}
	}
}

// atName reports whether the next token, unless it ends the object, is the
// name of a member.
func (w *rewriter) atName() bool {
	kind, length := w.in.StackIndex(w.in.StackDepth())
	return kind == '{' && length%2 == 0
}
