package operations_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/pgcrash"
	"github.com/gateway-go/gateway/operations"
)

// crashing crashes the database when the gateway has applied the first refund,
// and loses the response.
type crashing struct {
	next  http.RoundTripper
	crash func()
	once  sync.Once
}

func (c *crashing) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := c.next.RoundTrip(req)
	if op, _ := gateway.OperationFromContext(req.Context()); op.Name != "transactions.refund" || err != nil {
		return resp, err
	}
	lost := false
	c.once.Do(func() {
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		c.crash()
		lost = true
	})
	if lost {
		return nil, errors.New("connection reset by peer")
	}
	return resp, nil
}

// PostgreSQL crashes with synchronous_commit off right after a refund, and all
// commits that were not flushed are gone. The refund is made once, whether the
// process survives or not.
func TestARefundIsMadeOnceIfTheDatabaseCrashes(t *testing.T) {
	t.Parallel()
	for _, survives := range []bool{true, false} {
		t.Run(fmt.Sprintf("the process survives: %v", survives), func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, e engine) {
				t.Helper()
				server := pgcrash.Start(t, "synchronous_commit = off", "wal_writer_delay = 10s")
				w := openOn(t, e, server.URL, nil)
				charge := w.paid(1000)
				crashed := make(chan struct{})
				w.through(&crashing{next: w.gw.Transport(), crash: func() { server.Crash(t); close(crashed) }})
				w.add(operations.Refund{Key: "refund", TransactionID: charge.ID, Amount: 300})
				// What a merchant commits is theirs to flush: here, before the refund.
				_, err := w.db.ExecContext(t.Context(), "CHECKPOINT")
				require.NoError(t, err)
				stop := w.start(w.outbox)
				<-crashed
				if !survives {
					stop()
					w.outbox = w.newOutbox()
					w.start(w.outbox)
				}
				w.reaches("refund", operations.Done)
				value, rejection := w.result("refund")
				assert.Empty(t, rejection)
				assert.Equal(t, "300", value)
				assert.Equal(t, int64(300), w.refunded(charge.ID))
			}, onRiver, onPostgres, onPgx)
		})
	}
}
