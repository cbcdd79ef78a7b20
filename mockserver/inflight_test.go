package mockserver_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
)

// A test of code that refunds in the background.
func TestWaitForRequests(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	client := gw.Client()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	made, err := client.Transactions.Create(ctx, order("o-1"))
	require.NoError(t, err)
	require.NoError(t, gw.Transactions.Pay(made.ID))
	refunded := make(chan error)
	go func() {
		for _, amount := range []int64{100, 200} {
			_, err := client.Transactions.Refund(ctx, made.ID, gateway.RefundParams{Amount: amount})
			refunded <- err
		}
	}()
	require.NoError(t, <-refunded)
	go func() { assert.NoError(t, <-refunded) }()
	refunds, err := gw.Requests.Wait(ctx, "transactions.refund", 2)
	require.NoError(t, err)
	require.Len(t, refunds, 2)
	assert.Contains(t, refunds[0].Body, "100")
	assert.Contains(t, refunds[1].Body, "200")
	assert.Equal(t, http.StatusOK, refunds[1].Status)

	again, err := gw.Requests.Wait(ctx, "transactions.refund", 1)
	require.NoError(t, err)
	assert.Equal(t, refunds, again, "they are in the journal")
	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	found, err := gw.Requests.Wait(short, "transactions.refunds", 2)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Empty(t, found)
	require.ErrorContains(t, err, `0 of 2 requests match "transactions.refunds"; similar: PUT /v2/transactions/`)

	found, err = gw.Account("sk_test_other").Requests.Wait(short, "", 1)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Empty(t, found, "those of other accounts")
	gw.Requests.Clear()
	found, err = gw.Requests.Wait(short, "", 1)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Empty(t, found)
}

// Requests that were cleared while a test waits don't count.
func TestClearedRequestsAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gw := mockserver.Run(t)
		client := gw.Client()
		read := func() {
			_, err := client.Transactions.List(t.Context(), gateway.TransactionListParams{})
			assert.NoError(t, err)
		}
		found := make(chan []mockserver.Request, 1)
		go func() {
			list, err := gw.Requests.Wait(t.Context(), "transactions.list", 2)
			assert.NoError(t, err)
			found <- list
		}()
		read()
		synctest.Wait()
		gw.Requests.Clear()
		read()
		synctest.Wait()
		assert.Empty(t, found)
		read()
		assert.Len(t, <-found, 2)
	})
}

// What a request waits in is visible before it ends.
func TestRequestsInFlight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gw := mockserver.Run(t)
		p := plane{t: t, gw: gw}
		require.NoError(t, gw.Faults.Add(mockserver.Latency(time.Minute).On("transactions.create")))
		client := gw.Client(gateway.WithAttemptTimeout(time.Hour))
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, err := client.Transactions.Create(t.Context(), order("o-1"))
			assert.NoError(t, err)
		}()
		time.Sleep(20 * time.Second)
		synctest.Wait()
		assert.Empty(t, gw.Requests.All())
		assert.Empty(t, gw.Requests.InFlight("transactions.get"))
		assert.Empty(t, gw.Account("sk_test_other").Requests.InFlight(""))
		list := gw.Requests.InFlight("transactions.create")
		require.Len(t, list, 1)
		assert.Equal(t, "POST /v2/transactions", list[0].Method+" "+list[0].Path)
		assert.Equal(t, "latency=1m0s", list[0].Fault)
		assert.Equal(t, 20*time.Second, list[0].Duration)
		assert.Zero(t, list[0].Status)
		assert.NotContains(t, list[0].Header["Authorization"], gw.Key())
		status, v := p.call(http.MethodGet, "/requests", "")
		assert.Equal(t, http.StatusOK, status)
		flying, _ := v["in_flight"].([]any)
		require.Len(t, flying, 1)
		first, _ := flying[0].(object)
		assert.InDelta(t, 20_000, first["duration_ms"], 0)
		assert.Equal(t, "latency=1m0s", first["fault"])
		status, v = p.call(http.MethodPost, "/requests/wait?match=POST+/v2/transactions&timeout=1s", "")
		assert.Equal(t, http.StatusConflict, status)
		assert.Equal(t, "STILL_WAITING", v["code"])
		assert.Equal(t, `after 1s 0 of 1 requests match "POST /v2/transactions"; in flight: POST /v2/transactions`, v["detail"])

		made := do[[]any](p, http.MethodPost, "/requests/wait?match=transactions.create&timeout=2m", "")
		require.Len(t, made, 1)
		<-ended
		ok, _ := made[0].(object)
		assert.InDelta(t, 201, ok["status"], 0)
		assert.Empty(t, gw.Requests.InFlight(""))
		for _, count := range []string{"0", "-1", "x", "1001"} {
			status, v = p.call(http.MethodPost, "/requests/wait?count="+count, "")
			assert.Equal(t, http.StatusBadRequest, status)
			assert.Contains(t, v["detail"], "count must be")
		}
	})
}
