package jsonread_test

import (
	"bytes"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/golden"
	"github.com/gateway-go/gateway/internal/jsonread"
)

// FuzzRead compares the members of a leniently parsed object with those that the
// JSON package returns.
func FuzzRead(f *testing.F) {
	for _, body := range []string{
		string(golden.Read(f, "transactions/create.request.json")), `{}`, `{"a":1,"a":2}`, `{ "a" : [ 1 , {"b":"}\"]"} ] , "\u0062" : null }`,
		"{\"a\xff\":\"\xfe\"}", `{"a":"\ud83d\ude00\ud800"}`, `[]`, `{"a":{"b":{"c":[]}}}`, `{"a":"\\"}`, `7`, "{\"a\":1.5e3\t,\"b\":tru",
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var members []string
		var strict bool
		err := jsonread.Read(body, func(d *jsonread.Document) {
			strict = d.Strict()
			for i := range d.Children(0) {
				members = append(members, d.Name(i), d.Raw(i))
				assert.Equal(t, d.Name(i), d.Path(i))
			}
		})
		value := jsontext.Value(body)
		if isObject := value.Kind() == '{'; !isObject || !value.IsValid(jsonread.Lenient) {
			require.Error(t, err, "%q", body)
			return
		}
		require.NoError(t, err, "%q", body)
		assert.Equal(t, value.IsValid(), strict, "%q", body)
		assert.Equal(t, slowMembers(t, body), members, "%q", body)
	})
}

func TestPathOfANode(t *testing.T) {
	t.Parallel()
	require.NoError(t, jsonread.Read([]byte(`{"a":1,"data":{"x":[],"products":[{},{"price":"5","\u0061":2}]}}`), func(d *jsonread.Document) {
		var paths []string
		for i := range 9 {
			paths = append(paths, d.Path(i))
		}
		assert.Equal(t, []string{
			"", "a", "data", "data.x", "data.products", "data.products[0]", "data.products[1]", "data.products[1].price", "data.products[1].a",
		}, paths)
	}))
}

func slowMembers(t *testing.T, body []byte) (members []string) {
	t.Helper()
	dec := jsontext.NewDecoder(bytes.NewReader(body), jsonread.Lenient)
	_, err := dec.ReadToken()
	require.NoError(t, err)
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		require.NoError(t, err)
		member := name.String()
		value, err := dec.ReadValue()
		require.NoError(t, err)
		members = append(members, member, string(value))
	}
	return members
}
