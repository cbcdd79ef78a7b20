package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/mockserver"
)

// In both dialects, the order is shipped once.
func TestThePaidWebhookArrives(t *testing.T) {
	t.Parallel()
	for _, dialect := range []mockserver.Dialect{mockserver.Document, mockserver.Live} {
		var out strings.Builder
		require.NoError(t, run(t.Context(), &out, mockserver.WithDialect(dialect)))
		lines := strings.Split(out.String(), "\n")
		require.Len(t, lines, 3, out.String())
		assert.Regexp(t, "^Pay with: .*br.gov.bcb.pix", lines[0])
		assert.Equal(t, "The webhook has arrived. Ship order-1001 for BRL 154.70", lines[1])
	}
}
