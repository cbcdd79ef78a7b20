package openapi

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// maxLine is the maximum length of a value on one line.
const maxLine = 110

// layout formats JSON for people: short values are on one line, which halves the
// size of the file.
func layout(v jsontext.Value) ([]byte, error) {
	var out bytes.Buffer
	dec := jsontext.NewDecoder(bytes.NewReader(v))
	if err := layoutValue(&out, dec, 0); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

func layoutValue(out *bytes.Buffer, dec *jsontext.Decoder, depth int) error {
	value, err := dec.ReadValue()
	if err != nil {
		return err
	}
	if err := value.Compact(); err != nil {
		return err
	}
	if k := value.Kind(); k != '{' && k != '[' || len(value)+depth <= maxLine {
		return spaced(out, value)
	}
	inner := jsontext.NewDecoder(bytes.NewReader(value.Clone()))
	open, err := inner.ReadToken()
	if err != nil {
		return err
	}
	out.WriteString(open.String())
	isObject := open.Kind() == '{'
	for first := true; inner.PeekKind() != '}' && inner.PeekKind() != ']'; first = false {
		if !first {
			out.WriteByte(',')
		}
		out.WriteString("\n" + strings.Repeat(" ", depth+1))
		if isObject {
			name, err := inner.ReadValue()
			if err != nil {
				return err
			}
			out.Write(name)
			out.WriteString(": ")
		}
		if err := layoutValue(out, inner, depth+1); err != nil {
			return err
		}
	}
	end, err := inner.ReadToken()
	out.WriteString("\n" + strings.Repeat(" ", depth) + end.String())
	return err
}

// spaced formats a value on one line.
func spaced(out *bytes.Buffer, value jsontext.Value) error {
	one := value.Clone()
	err := one.Format(jsontext.Multiline(false), jsontext.SpaceAfterColon(true), jsontext.SpaceAfterComma(true))
	out.Write(one)
	return err
}
