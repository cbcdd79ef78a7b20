package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/gateway-go/gateway/examples/internal/demo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMain runs the worker when the test starts its own binary as one.
func TestMain(m *testing.M) {
	if isWorker() {
		mainWorker()
		return
	}
	os.Exit(m.Run())
}

func TestEachRefundIsMadeOnce(t *testing.T) {
	t.Parallel()
	if os.Getenv("DATABASE_URL") == "" {
		t.Skip("DATABASE_URL is not set: run ../../integration/with-postgres go test ./...")
	}
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), demo.New(&out)), out.String())
	assert.Contains(t, out.String(), "return-1: a read shows that it was applied")
	assert.Contains(t, out.String(), "return-2: a read does not show that it was applied")
	assert.Contains(t, out.String(), "the gateway's books and the shop's agree")
}
