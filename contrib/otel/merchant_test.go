package otelgateway_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	otelgateway "github.com/gateway-go/gateway/contrib/otel"
	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/operations"
	"github.com/gateway-go/gateway/webhook"
)

var _ otelgateway.Merchant = (*merchant.Merchant[*sql.Tx])(nil)

// healthy returns a fixed health or error.
type healthy struct {
	is  merchant.Health
	err error
}

func (h *healthy) Health(context.Context) (merchant.Health, error) { return h.is, h.err }

func TestWatchMerchantReportsItsHealth(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	m := &healthy{is: merchant.Health{
		Problems:    3,
		Callbacks:   merchant.CallbackHealth{Waiting: 5, Failing: 2, Oldest: 90 * time.Second},
		Comparisons: merchant.ComparisonHealth{Due: 7, Oldest: 4 * time.Second},
		Skipped:     map[string]int{"refunded": 4},
		Accounts: []merchant.AccountHealth{{
			Name: "shop", Operations: map[operations.State]int64{operations.Ambiguous: 1}, Events: webhook.Counts{Dead: 2, Oldest: 3 * time.Second}, Unknown: 6, Adopting: 8,
		}},
	}}
	registration, err := b.WatchMerchant(m)
	require.NoError(t, err)
	assert.Equal(t, []string{
		"gateway.merchant.adopting{gateway.account=shop} 8",
		"gateway.merchant.callbacks.oldest{} 90",
		"gateway.merchant.callbacks.skipped{gateway.merchant.callback.name=refunded} 4",
		"gateway.merchant.callbacks{gateway.merchant.callback.state=failing} 2",
		"gateway.merchant.callbacks{gateway.merchant.callback.state=waiting} 3",
		"gateway.merchant.comparisons.oldest{} 4",
		"gateway.merchant.comparisons{} 7",
		"gateway.merchant.problems{} 3",
		"gateway.merchant.unknown{gateway.account=shop} 6",
	}, b.metrics("gateway.merchant"))
	assert.Contains(t, b.metrics("gateway.outbox"), "gateway.outbox.operations{gateway.account=shop gateway.outbox.state=ambiguous} 1")
	assert.Contains(t, b.metrics("gateway.outbox"), "gateway.outbox.operations{gateway.account=shop gateway.outbox.state=dead} 0", "an alert has to see the 0")
	assert.Contains(t, b.metrics("gateway.webhook"), "gateway.webhook.inbox.events{gateway.account=shop gateway.webhook.state=dead} 2")
	assert.Contains(t, b.metrics("gateway.webhook"), "gateway.webhook.inbox.oldest{gateway.account=shop} 3")

	m.err = errors.New("the database is closed")
	var data metricdata.ResourceMetrics
	require.ErrorIs(t, b.reader.Collect(t.Context(), &data), m.err)
	require.NoError(t, registration.Unregister())
	assert.Empty(t, b.metrics("gateway.merchant"))
}
