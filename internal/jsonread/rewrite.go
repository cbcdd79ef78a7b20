package jsonread

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// Rewriter copies JSON with changes.
type Rewriter struct {
	// Name returns the new name of a member; nil keeps all names.
	Name func(name string) string

	// Value writes the replacement for a token that is not a name. The path has
	// the names of the members that contain it, the innermost last; the elements
	// of an array have the array's name.
	Value func(out *jsontext.Encoder, path []string, t jsontext.Token) error
}

// Rewrite copies text, which is parsed leniently.
func (r Rewriter) Rewrite(text []byte) ([]byte, error) {
	in := jsontext.NewDecoder(bytes.NewReader(text), Lenient)
	var to bytes.Buffer
	out := jsontext.NewEncoder(&to, Lenient)
	path := []string{""} // the name of each open object or array, and of the next value
	for {
		kind, length := in.StackIndex(in.StackDepth())
		t, err := in.ReadToken()
		if errors.Is(err, io.EOF) {
			return bytes.TrimSuffix(to.Bytes(), []byte("\n")), nil
		}
		if err != nil {
			return nil, err
		}
		switch k := t.Kind(); {
		case k == '}' || k == ']':
			path = path[:len(path)-1]
			err = out.WriteToken(t)
		case kind == '{' && length%2 == 0:
			path[len(path)-1] = t.String()
			if r.Name != nil {
				t = jsontext.String(r.Name(t.String()))
			}
			err = out.WriteToken(t)
		default:
			err = r.Value(out, path[1:], t)
			if k == '{' || k == '[' {
				path = append(path, path[len(path)-1])
			}
		}
		if err != nil {
			return nil, err
		}
	}
}
