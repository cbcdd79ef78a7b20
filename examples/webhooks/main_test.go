package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/gateway-go/gateway/examples/internal/demo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMain runs the receiver when the test starts its own binary as one.
func TestMain(m *testing.M) {
	if isReceiver() {
		mainReceiver()
		return
	}
	os.Exit(m.Run())
}

func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), demo.New(&out)), out.String())
	assert.Contains(t, out.String(), "the gateway was paid 120 times, the ledger has 120 payments")
	assert.Contains(t, out.String(), "lost 0, doubled 0, wrong amounts 0, forged 0, dead letters 0")
}

// The audit must be able to find differences, or its success proves nothing.
func TestAuditFindsDifferences(t *testing.T) {
	t.Parallel()
	paid := map[string]int64{"a": 1, "b": 2, "c": 3, "d": 4}
	assert.True(t, compare(paid, map[string][]int64{"a": {1}, "b": {2}, "c": {3}, "d": {4}}).clean(4))

	found := compare(paid, map[string][]int64{"a": {1, 1}, "b": {7}, "d": {4}, "e": {5}})
	assert.Equal(t, findings{rows: 5, lost: 1, doubled: 1, wrong: 1, unknown: 1, cents: 18}, found)
	assert.False(t, found.clean(4))
	assert.False(t, compare(paid, map[string][]int64{}).clean(4))
}
