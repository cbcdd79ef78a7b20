package gateway_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// listItems returns the items of a golden list's data, in either shape.
func listItems(t *testing.T, data []byte) []json.RawMessage {
	t.Helper()
	var items []json.RawMessage
	if data[0] == '{' {
		var object struct {
			Data []json.RawMessage `json:"data"`
		}
		require.NoError(t, json.Unmarshal(data, &object))
		return object.Data
	}
	require.NoError(t, json.Unmarshal(data, &items))
	return items
}
