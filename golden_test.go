package gateway_test

import (
	"bytes"
	stdjson "encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The files of testdata are the wire form of every operation, written by hand
// from the interface document: testdata/<resource>/<operation>.request.json,
// .response.json, and .live.response.json where the live gateway answers in
// another shape. The mock gateway is tested against the same files.

// golden returns a file of testdata.
func golden(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", filepath.FromSlash(name)))
	require.NoError(t, err)
	return b
}

// goldenBody returns a golden request as it must be on the wire: the same
// members in the same order, without white space.
func goldenBody(t *testing.T, name string) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, stdjson.Compact(&b, golden(t, name)))
	return b.String()
}

// goldenData returns the data member of a golden response.
func goldenData(t *testing.T, name string) []byte {
	t.Helper()
	var envelope struct {
		Data stdjson.RawMessage `json:"data"`
	}
	require.NoError(t, stdjson.Unmarshal(golden(t, name), &envelope))
	return envelope.Data
}

// assertKeepsMembers checks that v, decoded from text, encodes to every member
// and value of text. Absent, null and "" mean the same in an answer.
func assertKeepsMembers(t *testing.T, text []byte, v any) {
	t.Helper()
	encoded, err := json.Marshal(v, json.Deterministic(true))
	require.NoError(t, err)
	assert.Equal(t, withoutEmpty(t, text), withoutEmpty(t, encoded))
}

// withoutEmpty decodes JSON, numbers as their text, without the members that
// are null or "".
func withoutEmpty(t *testing.T, text []byte) any {
	t.Helper()
	d := stdjson.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	require.NoError(t, d.Decode(&v))
	return dropEmpty(v)
}

func dropEmpty(v any) any {
	switch node := v.(type) {
	case map[string]any:
		for name, member := range node {
			if member == nil || member == "" {
				delete(node, name)
				continue
			}
			node[name] = dropEmpty(member)
		}
	case []any:
		for i, element := range node {
			node[i] = dropEmpty(element)
		}
	}
	return v
}
