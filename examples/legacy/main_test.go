package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/examples/internal/demo"
)

func TestLegacy(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), demo.New(&out)), out.String())
	for _, want := range []string{
		"status        WAITING_PAYMENT",
		"balance       BRL 154.70",
		"LEGACY_TOKENIZATION_RETIRED",
	} {
		assert.Contains(t, out.String(), want)
	}
	assert.NotContains(t, out.String(), "4111 1111")
}
