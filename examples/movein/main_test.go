package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/examples/internal/demo"
)

// TestMain runs the shop when the test starts its own binary as one.
func TestMain(m *testing.M) {
	if !isShop() {
		os.Exit(m.Run())
	}
}

func TestAShopMovesIn(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), demo.New(&out), 360, 4), out.String())
	t.Log(out.String())
	assert.Regexp(t, `378 orders are in the books after .* s and [1-4] kills`, out.String())
	assert.Contains(t, out.String(), "378 orders, 398 transactions, 318 payments; in no record: 0; problems: 0")
}
