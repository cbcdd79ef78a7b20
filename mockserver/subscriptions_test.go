package mockserver_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
)

// A subscription that is restored in the middle of its dunning continues as
// before.
func TestSubscriptionsSurviveASnapshot(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t, mockserver.WithSeed(5))
	client := gw.Client()
	params := subscriber(t, client)
	params.Token, params.Metadata = "pgct_renewal_fails_2", map[string]any{"plan": "gold"}
	made, err := client.Subscriptions.Create(t.Context(), params)
	require.NoError(t, err)
	challenged := subscriber(t, client)
	challenged.Token = "pgct_3ds"
	open, err := client.Subscriptions.Create(t.Context(), challenged)
	require.NoError(t, err)
	require.NoError(t, gw.Clock.Advance(5*time.Minute))
	early, err := gw.Snapshot()
	require.NoError(t, err)
	require.NoError(t, gw.Clock.Advance(32*24*time.Hour))
	late, err := gw.Snapshot()
	require.NoError(t, err)

	end := func() string {
		require.NoError(t, gw.Clock.AdvanceTo(made.CreatedAt.AddDate(0, 3, 0)))
		var all []*gateway.Subscription
		for _, id := range []string{made.ID, open.ID} {
			read, err := client.Subscriptions.Get(t.Context(), id)
			require.NoError(t, err)
			all = append(all, read)
		}
		text, err := json.Marshal(all)
		require.NoError(t, err)
		return string(text)
	}
	want := end()
	assert.Contains(t, want, "past_due", "in the fourth month's dunning")
	require.NoError(t, gw.Restore(late))
	assert.Equal(t, want, end())
	require.NoError(t, gw.Restore(early))
	assert.Equal(t, want, end())

	require.NoError(t, gw.Restore(early))
	_, err = client.Subscriptions.Cancel(t.Context(), open.ID, gateway.SubscriptionCancelParams{})
	require.NoError(t, err)
	read, err := client.Subscriptions.Get(t.Context(), open.ID)
	require.NoError(t, err)
	assert.Equal(t, gateway.TransactionCanceled, read.Transactions[0].Status, "its open challenge is canceled with it")
}

// Fifty concurrent creates with one key create one subscription and one charge.
func TestOneKeyMakesOneSubscription(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	client := gw.Client()
	params := subscriber(t, client)
	params.IdempotencyKey = "order-17"
	var (
		wg  sync.WaitGroup
		mu  sync.Mutex
		ids = map[string]int{}
	)
	for range 50 {
		wg.Go(func() {
			made, err := client.Subscriptions.Create(context.WithoutCancel(t.Context()), params)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				ids[err.Error()]++
				return
			}
			ids[made.ID]++
		})
	}
	wg.Wait()
	assert.Equal(t, []int{50}, slices.Collect(maps.Values(ids)), "one id, fifty times, and no error: %v", ids)
	assert.Equal(t, int64(4990), balance(t, gw))
}
