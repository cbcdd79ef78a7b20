package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/examples/internal/demo"
)

func TestPayouts(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), demo.New(&out)), out.String())
	for _, want := range []string{
		"pix_key_value must be",
		"webhook   payout.transferred",
		"webhook   payout.canceled",
		"webhook   payout.failed",
		"attempts  2",
		"balance   BRL 3600.00",
	} {
		assert.Contains(t, out.String(), want)
	}
	assert.NotContains(t, out.String(), "123.456.789-00", "the output must not contain a document number")
}
