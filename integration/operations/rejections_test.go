package operations_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/operations"
)

// Live gateways write a rejection as {"error":"DUPLICATE_EXTERNAL_REF","message":…}. It is
// the gateway's, and final: the operation must not be repeated for a day.
func TestARejectionIsFinalInBothDialects(t *testing.T) {
	t.Parallel()
	for _, dialect := range []mockserver.Dialect{mockserver.Document, mockserver.Live} {
		t.Run(dialect.String(), func(t *testing.T) {
			t.Parallel()
			w := open(t, onSQLite, nil, mockserver.WithDialect(dialect))
			_, err := w.client().Transactions.Create(t.Context(), order("taken", 100))
			require.NoError(t, err)
			w.start(w.outbox)
			w.add(operations.CreateTransaction(order("taken", 200)))
			entry := w.reaches("taken", operations.Done)
			assert.LessOrEqual(t, entry.Sends, 3)
			assert.ErrorIs(t, w.rejection("taken"), gateway.ErrDuplicate)
		})
	}
}
