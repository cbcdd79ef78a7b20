package mockserver_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
)

// large returns an order of a given size.
func large(bytes int) gateway.TransactionParams {
	params := order("")
	params.Metadata = strings.Repeat("m", bytes)
	return params
}

// The journal and the log of finished deliveries keep the latest entries that
// fit, and leave enough memory for resources.
func TestTheJournalAndTheLogStayWithinTheirLimits(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t, mockserver.WithMemoryLimit(4<<20))
	p := plane{t: t, gw: gw}
	client := gw.Client()
	for range 100 {
		_, err := client.Transactions.List(t.Context(), gateway.TransactionListParams{}, gateway.Header("X-Padding", strings.Repeat("h", 40_000)))
		require.NoError(t, err)
	}
	kept := gw.Requests.All()
	assert.Greater(t, len(kept), 5)
	assert.Less(t, len(kept), 14, "an eighth of the limit")
	assert.EqualValues(t, 100, kept[len(kept)-1].ID, "the latest")

	var refused *gateway.Error
	made := 0
	for ; ; made++ {
		require.Less(t, made, 2000)
		if _, err := client.Transactions.Create(t.Context(), large(4000), gateway.MaxAttempts(1)); err != nil {
			require.ErrorAs(t, err, &refused)
			break
		}
	}
	assert.Equal(t, "MEMORY_LIMIT", refused.Code)
	assert.Greater(t, made, 350, "of some 5 KiB each, in five eighths of the limit")
	log := gw.Webhooks.Deliveries()
	assert.Less(t, len(log), made, "a quarter of the limit")
	all, err := gateway.Collect(client.Transactions.All(t.Context(), gateway.TransactionListParams{}), 0)
	require.NoError(t, err)
	assert.Len(t, all, made, "no resource is forgotten")
	assert.Equal(t, all[0].ID, log[len(log)-1].ResourceID, "the latest")
	do[object](p, http.MethodPost, "/reset", "")
	_, err = client.Transactions.Create(t.Context(), large(4000))
	require.NoError(t, err, "a reset frees memory")
}

// Pending deliveries are never dropped: they count towards the limit.
func TestPendingDeliveriesCountTowardsTheLimit(t *testing.T) {
	t.Parallel()
	made := map[bool]int{}
	for _, held := range []bool{false, true} {
		gw := mockserver.Run(t, mockserver.WithMemoryLimit(4<<20))
		if held {
			gw.Webhooks.Send(&shop{})
			gw.Webhooks.Hold()
		}
		var refused *gateway.Error
		for refused == nil {
			if _, err := gw.Client().Transactions.Create(t.Context(), large(4000), gateway.MaxAttempts(1)); err != nil {
				require.ErrorAs(t, err, &refused)
				break
			}
			made[held]++
		}
		assert.Equal(t, "MEMORY_LIMIT", refused.Code)
		if held {
			assert.Len(t, gw.Webhooks.Deliveries(), 2*made[held])
			require.NoError(t, gw.Webhooks.Release())
			require.NoError(t, gw.Wait(t.Context()))
			_, err := gw.Client().Transactions.Get(t.Context(), gw.Webhooks.Deliveries()[0].ResourceID)
			require.NoError(t, err)
		}
	}
	assert.Less(t, made[true], made[false]*2/3)
}

// Snapshots count towards the limit too.
func TestSnapshotsCountTowardsTheLimit(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t, mockserver.WithMemoryLimit(2<<20))
	p := plane{t: t, gw: gw}
	for range 100 {
		_, err := gw.Client().Transactions.Create(t.Context(), large(4000))
		require.NoError(t, err)
	}
	taken := 0
	for ; ; taken++ {
		require.Less(t, taken, 16)
		if status, v := p.call(http.MethodPost, "/snapshots", ""); status != http.StatusOK {
			assert.Equal(t, http.StatusInsufficientStorage, status)
			assert.Equal(t, "MEMORY_LIMIT", v["code"])
			break
		}
	}
	for range taken {
		id, _ := do[[]any](p, http.MethodGet, "/snapshots", "")[0].(object)["id"].(string)
		do[object](p, http.MethodDelete, "/snapshots/"+id, "")
	}
	_, err := gw.Client().Transactions.Create(t.Context(), large(4000))
	require.NoError(t, err)
}

// A full server rejects requests that need memory, but a renewal that becomes
// due is charged once memory is free.
func TestARenewalOnAFullServerIsNotLost(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t, mockserver.WithMemoryLimit(1<<20))
	client, filler := gw.Client(), gw.Account("sk_test_filler")
	params := subscriber(t, client)
	params.Interval = gateway.IntervalMonth
	made, err := client.Subscriptions.Create(t.Context(), params)
	require.NoError(t, err)
	for _, size := range []int{8000, 500, 1} {
		for err = nil; err == nil; {
			_, err = filler.Client().Transactions.Create(t.Context(), large(size), gateway.MaxAttempts(1))
		}
	}

	err = gw.Clock.Advance(32 * 24 * time.Hour)
	require.ErrorContains(t, err, "subscription.period_end")
	require.ErrorContains(t, err, "memory limit")
	resp := plane{t: t, gw: gw}.raw(http.MethodGet, "/metrics", "") //nolint:bodyclose // closed by its Cleanup
	metrics, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	assert.Contains(t, string(metrics), "mockgateway_timer_failures_total 1\n")
	do[object](plane{t: t, gw: gw, key: "sk_test_filler"}, http.MethodPost, "/reset", "")
	require.NoError(t, gw.Clock.Advance(24*time.Hour))
	read, err := client.Subscriptions.Get(t.Context(), made.ID)
	require.NoError(t, err)
	assert.Len(t, read.Transactions, 2, "the first charge and the renewal")
	assert.True(t, read.CurrentPeriodEnd.After(gw.Clock.Now()))
}
