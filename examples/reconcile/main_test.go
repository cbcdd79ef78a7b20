package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/examples/internal/demo"
)

func TestReconcile(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), demo.New(&out)), out.String())
	for _, want := range []string{
		"noticed    pending -> paid, reported by delivery transaction.paid",
		"missed     pending -> paid, reported by reconciler transaction.paid",
		"expired    pending -> expired, reported by reconciler transaction.expired",
		"refused    pending -> refused, reported by reconciler transaction.refused",
		"3 checked, 3 found",
		"0 checked, 0 found",
	} {
		assert.Contains(t, out.String(), want)
	}
}
