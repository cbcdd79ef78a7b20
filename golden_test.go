package gateway_test

import (
	stdjson "encoding/json"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	files "github.com/gateway-go/gateway/internal/golden"
)

// golden returns a file of testdata.
func golden(t *testing.T, name string) []byte {
	t.Helper()
	return files.Read(t, name)
}

// goldenBody returns a golden request as it must be on the wire: the same
// members in the same order, without white space.
func goldenBody(t *testing.T, name string) string {
	t.Helper()
	return files.Body(t, name)
}

// goldenData returns the data member of a golden response.
func goldenData(t *testing.T, name string) []byte {
	t.Helper()
	return files.Data(t, golden(t, name))
}

// goldenItems returns the items of a golden list, in either shape.
func goldenItems(t *testing.T, name string) []stdjson.RawMessage {
	t.Helper()
	data := goldenData(t, name)
	var object struct {
		Data []stdjson.RawMessage `json:"data"`
	}
	if stdjson.Unmarshal(data, &object) == nil {
		return object.Data
	}
	var items []stdjson.RawMessage
	require.NoError(t, stdjson.Unmarshal(data, &items))
	return items
}

// assertKeepsMembers checks that v, decoded from text, encodes to every member
// and value of text. Absent, null and "" mean the same in an answer.
func assertKeepsMembers(t *testing.T, text []byte, v any) {
	t.Helper()
	encoded, err := json.Marshal(v, json.Deterministic(true))
	require.NoError(t, err)
	files.Keeps(t, text, encoded)
}
