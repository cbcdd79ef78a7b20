//go:build !race

package gateway_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/gateway-go/gateway"
)

// Without an observer, and with one whose functions are nil, the hook allocates
// nothing. Under the race detector, a sync.Pool drops items at random, so allocations can't
// be compared.
func TestNoObserverCostsNoAllocation(t *testing.T) { //nolint:paralleltest // it counts allocations
	body := string(golden(t, "transactions/get.response.json"))
	allocations := func(opts ...gateway.Option) float64 {
		client := clientOf(t, reply(200, body), opts...)
		return testing.AllocsPerRun(200, func() {
			_, err := client.Transactions.Get(context.Background(), orderID)
			assert.NoError(t, err)
		})
	}
	without := allocations()
	assert.InDelta(t, without, allocations(gateway.WithObserver(gateway.Observer{})), 0.5)
	noop := gateway.Observer{Call: func(ctx context.Context, _ gateway.Operation) (context.Context, func(gateway.Response, error)) {
		return ctx, nil
	}}
	assert.Greater(t, allocations(gateway.WithObserver(noop)), without, "with an observer the Response is allocated, which shows that the measurement works")
}
