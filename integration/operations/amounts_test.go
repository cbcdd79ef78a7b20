package operations_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/operations"
)

// A gateway may omit paid_amount. What was paid is then what was charged, so a refund of
// everything that is left is still sent, once, and moves what is left, also if amount is
// what the gateway settles.
func TestAFullRefundMovesWhatIsLeftWithoutAPaidAmount(t *testing.T) {
	t.Parallel()
	for _, dialect := range []mockserver.Dialect{mockserver.Document, mockserver.Live} {
		for _, shape := range []string{"no-paid-amount", "zero-paid-amount", "no-paid-amount, settled for less", ""} {
			if dialect == mockserver.Document && strings.Contains(shape, "settled") {
				continue // amount is always what is charged
			}
			for name, fault := range map[string]mockserver.Fault{
				"":                                 {},
				", the response is lost":           mockserver.LoseResponse(),
				", the connection is reset before": mockserver.ResetBefore(),
			} {
				t.Run(fmt.Sprintf("%v, %s%s", dialect, shape, name), func(t *testing.T) {
					t.Parallel()
					w := open(t, onSQLite, nil, mockserver.WithDialect(dialect))
					charge := w.paid(10_000)
					form, _, less := strings.Cut(shape, ", ")
					if less {
						require.NoError(t, w.gw.Transactions.SettleFor(charge.ID, 1927))
					}
					if shape != "" {
						require.NoError(t, w.gw.Faults.Add(mockserver.Shape(form).On("GET transactions.*")))
					}
					w.start(w.outbox)
					w.add(operations.Refund{Key: "part", TransactionID: charge.ID, UpTo: 3000})
					w.reaches("part", operations.Done)
					if name != "" {
						require.NoError(t, w.gw.Faults.Add(fault.On("transactions.refund").Times(1)))
					}
					w.add(operations.Refund{Key: "rest", TransactionID: charge.ID, Full: true})
					w.reaches("rest", operations.Done)
					value, rejection := w.result("rest")
					assert.Empty(t, rejection)
					assert.Equal(t, "7000", value)
					assert.Equal(t, int64(10_000), w.refunded(charge.ID))

					// Nothing is left, so nothing is sent.
					sent := w.gw.Requests.Count("transactions.refund")
					w.add(operations.Refund{Key: "again", TransactionID: charge.ID, Full: true})
					w.reaches("again", operations.Done)
					value, _ = w.result("again")
					assert.Equal(t, "0", value)
					assert.Equal(t, sent, w.gw.Requests.Count("transactions.refund"))
				})
			}
		}
	}
}
