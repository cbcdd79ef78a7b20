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

func TestNothingIsLostOrDoubled(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), demo.New(&out)), out.String())
	t.Log(out.String())
	assert.Regexp(t, `[1-9]\d* kills cut off [1-9]\d* requests of buyers`, out.String())
	assert.Regexp(t, `credits by Refunded +([1-9]\d*) +\d+ +0 +0\n`, out.String())
}

// The count must be able to find differences, or its success proves nothing.
func TestTheCountFindsDifferences(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		found         []string
		lost, doubled int
	}{
		{[]string{"a", "b"}, 0, 0},
		{[]string{"b"}, 1, 0},
		{[]string{"a", "b", "b"}, 0, 1},
		{[]string{"a", "unknown"}, 1, 1},
	} {
		lost, doubled := compare([]string{"a", "b"}, c.found)
		assert.Equal(t, []int{c.lost, c.doubled}, []int{lost, doubled}, c.found)
	}
}
