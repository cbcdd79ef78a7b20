package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/examples/internal/demo"
)

func TestCheckout(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), demo.New(&out)), out.String())
	for _, want := range []string{
		"session token [redacted]",
		"resumed       true",
		"session       ready, pays by pix",
		"transaction   paid, BRL 154.70 by pix",
		"link          active, used 1 time(s)",
	} {
		assert.Contains(t, out.String(), want)
	}
}
