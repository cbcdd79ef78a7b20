package wire_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/jsonread"
	"github.com/gateway-go/gateway/internal/wire"
)

type tree struct {
	Name  string  `json:"name"`
	Left  *tree   `json:"left,omitzero"`
	Rest  []tree  `json:"rest,omitzero"`
	Other []*tree `json:"other,omitzero"`
}

type self struct {
	*self //nolint:unused // the type embeds itself, which is what the test is about

	Name string `json:"name"`
}

func TestARecursiveTypeIsDecodedAndEncoded(t *testing.T) {
	t.Parallel()
	const body = `{"name":"a","left":{"name":"b","rest":[{"name":"c"}]},"other":[{"name":"d"}]}`
	var v tree
	require.True(t, jsonread.Decode([]byte(body), &v))
	assert.Equal(t, "c", v.Left.Rest[0].Name)
	written, err := wire.Encode(&v)
	require.NoError(t, err)
	assert.JSONEq(t, body, string(written))
}

func TestATypeThatEmbedsItselfDoesNotLoop(t *testing.T) {
	t.Parallel()
	assert.NotPanics(t, func() { jsonread.Decode([]byte(`{"name":"a"}`), new(self)) })
}

func TestEncodingAValueThatContainsItselfFails(t *testing.T) {
	t.Parallel()
	v := &tree{Name: "a"}
	v.Left = v
	_, err := wire.Encode(v)
	require.Error(t, err)
	assert.False(t, wire.Finite(v))

	slice := []any{nil}
	slice[0] = slice
	assert.False(t, wire.Finite(slice))
	assert.True(t, wire.Finite(&tree{Left: &tree{Rest: make([]tree, 3)}}))
	assert.True(t, wire.Finite(map[string][]byte{"a": make([]byte, 1<<20)}))
	assert.True(t, wire.Finite(nil))
}
