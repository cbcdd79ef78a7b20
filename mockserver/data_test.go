package mockserver_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/legacy"
	"github.com/gateway-go/gateway/mockserver"
)

// reopen closes a server and opens its data file again.
func reopen(t *testing.T, gw *mockserver.Server, path string, opts ...mockserver.Option) *mockserver.Server {
	t.Helper()
	if gw != nil {
		require.NoError(t, gw.Close())
	}
	return mockserver.Run(t, append(opts, mockserver.WithDataFile(path))...)
}

func TestADataFileKeepsEverything(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	seed := mockserver.WithSeed(3)
	gw := reopen(t, nil, path, seed)
	client := gw.Client()
	kept, err := client.Transactions.Create(t.Context(), order("order-1"))
	require.NoError(t, err)
	require.NoError(t, gw.Transactions.Pay(kept.ID))
	_, err = gw.Account("sk_test_other").Client().Transactions.Create(t.Context(), order("order-1"))
	require.NoError(t, err)
	gone := gw.Account("sk_test_reset")
	_, err = gone.Client().Transactions.Create(t.Context(), order("order-1"))
	require.NoError(t, err)
	do[object](plane{t: t, gw: gw, key: "sk_test_reset"}, http.MethodPost, "/reset", "")
	require.NoError(t, gw.Clock.Advance(time.Hour))
	_, err = gw.Clock.Next()
	require.NoError(t, err)
	now := gw.Clock.Now()

	for range 2 {
		gw = reopen(t, gw, path, seed)
		assert.Equal(t, now, gw.Clock.Now())
		read, err := gw.Client().Transactions.Get(t.Context(), kept.ID)
		require.NoError(t, err)
		assert.Equal(t, gateway.TransactionPaid, read.Status)
		for key, n := range map[string]int64{gw.Key(): 1, "sk_test_other": 1, "sk_test_reset": 0} {
			page, err := gw.Account(key).Client().Transactions.List(t.Context(), gateway.TransactionListParams{})
			require.NoError(t, err)
			assert.EqualValues(t, n, page.Total, key)
		}
	}
	made, err := gw.Client().Transactions.Create(t.Context(), order("order-2"))
	require.NoError(t, err)
	assert.NotEqual(t, kept.ID, made.ID, "no id is generated twice")
}

func TestADataFileKeepsARestoredSnapshot(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	gw := reopen(t, nil, path)
	_, err := gw.Client().Transactions.Create(t.Context(), order("order-1"))
	require.NoError(t, err)
	snap, err := gw.Snapshot()
	require.NoError(t, err)
	_, err = gw.Client().Transactions.Create(t.Context(), order("order-2"))
	require.NoError(t, err)
	require.NoError(t, gw.Restore(snap))
	_, err = gw.Client().Transactions.Create(t.Context(), order("order-3"))
	require.NoError(t, err)

	gw = reopen(t, gw, path)
	all, err := gateway.Collect(gw.Client().Transactions.All(t.Context(), gateway.TransactionListParams{}), 0)
	require.NoError(t, err)
	require.Len(t, all, 2)
	assert.Equal(t, "order-3", all[0].ExternalRef)
	assert.Equal(t, "order-1", all[1].ExternalRef)
}

func TestAClosedDataFileAcceptsNoWrites(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	gw := reopen(t, nil, path)
	require.NoError(t, gw.Close())
	_, err := gw.Client().Transactions.Create(t.Context(), order("order-1"), gateway.MaxAttempts(1))
	require.ErrorIs(t, err, gateway.ErrOutcomeUnknown)
	gw = reopen(t, nil, path)
	page, err := gw.Client().Transactions.List(t.Context(), gateway.TransactionListParams{})
	require.NoError(t, err)
	assert.Zero(t, page.Total)
	_, err = mockserver.New(mockserver.WithDataFile(path))
	require.ErrorContains(t, err, "in use by another process")
}

func TestARealtimeClockFiresTimers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gw := mockserver.Run(t, mockserver.WithRealtime(60), mockserver.WithAutoPay(time.Minute))
		made, err := gw.Client().Transactions.Create(t.Context(), order("order-1"))
		require.NoError(t, err)
		time.Sleep(time.Second)
		synctest.Wait()
		read, err := gw.Client().Transactions.Get(t.Context(), made.ID)
		require.NoError(t, err)
		assert.Equal(t, gateway.TransactionPaid, read.Status)
		require.NoError(t, gw.Close())
	})
}

func TestAnEndpointOfTheOptions(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	for _, want := range []int{1, 1, 0} {
		opts := []mockserver.Option{mockserver.WithDataFile(path)}
		if want > 0 {
			opts = append(opts, mockserver.WithEndpoint("https://shop.test/hook", gateway.NewSecret("whsec_mock")))
		}
		gw, shop := mockserver.Run(t, opts...), &shop{}
		gw.Webhooks.ServeHost("shop.test", shop)
		assert.Len(t, gw.Webhooks.Endpoints(), want, "it is not doubled by a restart, and not kept without the option")
		_, err := gw.Client().Transactions.Create(t.Context(), order(""))
		require.NoError(t, err)
		require.NoError(t, gw.Wait(t.Context()))
		assert.Len(t, shop.got(), 2*want)
		require.NoError(t, gw.Close())
	}
	_, err := mockserver.New(mockserver.WithEndpoint("shop", gateway.Secret{}))
	require.ErrorContains(t, err, "http or https")
}

// A delivery that is in progress when its account is reset finishes, and is
// not resumed after a restart.
func TestADataFileForgetsDeliveriesInProgressDuringAReset(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	arrived, response := make(chan struct{}), make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-response
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(receiver.Close)
	gw := reopen(t, nil, path)
	_, err := gw.Account(gw.Key()).Webhooks.AddEndpoint(mockserver.Endpoint{URL: receiver.URL, Events: []string{"transaction.created"}})
	require.NoError(t, err)
	_, err = gw.Client().Transactions.Create(t.Context(), order(""))
	require.NoError(t, err)
	<-arrived
	do[object](plane{t: t, gw: gw}, http.MethodPost, "/reset", "")
	close(response)
	require.NoError(t, gw.Wait(t.Context()))

	gw = reopen(t, gw, path)
	assert.Empty(t, gw.Webhooks.Deliveries())
	assert.Empty(t, gw.Clock.Timers())
	require.NoError(t, gw.Clock.Advance(time.Hour))
}

// Resources created at the end of the clock's range survive a restart.
func TestADataFileOfTheLastYear(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "data")
	last := time.Date(9599, time.December, 31, 23, 59, 0, 0, time.UTC)
	open := func() (*mockserver.Server, *gateway.Client) {
		gw, err := mockserver.New(mockserver.WithDataFile(file), mockserver.WithStart(last), mockserver.WithSeed(1))
		require.NoError(t, err)
		return gw, gw.Client()
	}
	gw, client := open()
	require.ErrorContains(t, gw.Clock.AdvanceTo(last.AddDate(400, 0, 0)), "9599")
	tx, err := client.Transactions.Create(t.Context(), order("order-1"))
	require.NoError(t, err)
	customer, err := client.Customers.Create(t.Context(), gateway.CustomerParams{Name: "Ana", Email: "ana@shop.test"})
	require.NoError(t, err)
	params := gateway.SubscriptionParams{
		CustomerID: customer.ID, Amount: 500, Interval: gateway.IntervalMonth, IntervalCount: 365, Token: "pgct_ok1",
	}
	subscription, err := client.Subscriptions.Create(t.Context(), params)
	require.NoError(t, err)
	params.Token = "pgct_ok2"
	params.TrialEnd = time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC)
	_, err = client.Subscriptions.Create(t.Context(), params)
	require.NoError(t, err)
	v1, err := legacy.New(client, gateway.NewSecret(gw.Key()))
	require.NoError(t, err)
	_, err = v1.CreatePixPayment(t.Context(), legacy.PixPaymentParams{
		Payer: legacy.Payer{FullName: "Ana"}, Transaction: legacy.PixCharge{Value: 100, ExpirationTime: 1<<31 - 1},
	})
	require.NoError(t, err)
	for _, body := range []string{
		`{"customer_id":"` + customer.ID + `","amount":500,"interval":"month","token":"pgct_ok3","trial_end":"9999-12-31T23:59:59-03:00"}`,
		`{"amount":500,"title":"Book","currency":"BRL","expires_at":"9999-12-31T23:59:59-03:00"}`,
	} {
		path := map[bool]string{true: "/v2/subscriptions", false: "/v2/checkout-links"}[strings.Contains(body, "customer")]
		err = client.Do(t.Context(), http.MethodPost, path, json.RawMessage(body), nil)
		require.ErrorIs(t, err, gateway.ErrValidation, body)
	}
	require.NoError(t, gw.Clock.Advance(59*time.Second))
	require.NoError(t, gw.Close())

	gw, client = open()
	read, err := client.Transactions.Get(t.Context(), tx.ID)
	require.NoError(t, err)
	assert.Equal(t, "order-1", read.ExternalRef)
	again, err := client.Subscriptions.Get(t.Context(), subscription.ID)
	require.NoError(t, err)
	assert.Equal(t, subscription.CurrentPeriodEnd, again.CurrentPeriodEnd)
	assert.Equal(t, last.Add(59*time.Second), gw.Clock.Now())
	require.NoError(t, gw.Close())
}

func TestASecondCloseDoesNothing(t *testing.T) {
	t.Parallel()
	gw := reopen(t, nil, filepath.Join(t.TempDir(), "data"))
	require.NoError(t, gw.Close())
	require.NoError(t, gw.Close())
}

// With a seed, a test that begins with a reset gets the ids of its first run, also after a
// restart from the data file.
func TestIDsRepeatAfterAReset(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	opts := []mockserver.Option{mockserver.WithSeed(7), mockserver.WithDataFile(path)}
	gw, err := mockserver.New(opts...)
	require.NoError(t, err)
	run := func() (ids []string) {
		do[any](plane{t: t, gw: gw}, http.MethodPost, "/reset", "")
		for _, ref := range []string{"a", "b"} {
			tx, err := gw.Client().Transactions.Create(t.Context(), order(ref))
			require.NoError(t, err)
			ids = append(ids, tx.ID)
		}
		for _, d := range gw.Webhooks.Deliveries() {
			ids = append(ids, d.EventID)
		}
		return ids
	}
	first := run()
	require.Greater(t, len(first), 3)
	assert.Equal(t, first, run())
	do[any](plane{t: t, gw: gw}, http.MethodPost, "/reset", "")
	require.NoError(t, gw.Close())
	gw, err = mockserver.New(opts...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = gw.Close() })
	assert.Equal(t, first, run())

	gw = mockserver.Run(t)
	first = run()
	assert.NotEqual(t, first, run(), "without a seed, no id repeats")
}
