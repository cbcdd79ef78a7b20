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
	require.NoError(t, run(t.Context(), demo.New(&out)), out.String())
	t.Log(out.String())
	assert.Regexp(t, `1000 orders are in the books after .* and [1-9]\d* kills, 0 could not be adopted`, out.String())
}
