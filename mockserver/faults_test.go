package mockserver_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
)

// TestTheClientUnderFaults lets each fault hit the first attempt of a
// create (whose reference makes it safe to repeat), of a refund (which is not)
// and of a read.
func TestTheClientUnderFaults(t *testing.T) {
	t.Parallel()
	const unknown = gateway.ErrOutcomeUnknown
	cases := map[string]struct {
		fault     mockserver.Fault
		attempts  int   // sentinel of the create and the read
		recovered bool  // the create recovers the resource of its first attempt
		refund    error // nil: the refund succeeds
		refunded  bool  // regardless of what the client saw
	}{
		"status 503":         {mockserver.Status(503), 2, false, unknown, false},
		"status 503 coded":   {mockserver.Status(503).CodedBody(), 2, false, unknown, false},
		"status 503 empty":   {mockserver.Status(503).NoBody(), 2, false, unknown, false},
		"status 503 applied": {mockserver.Status(503).Applied(), 2, true, unknown, true},
		"status 429":         {mockserver.Status(429).RetryAfter(2 * time.Second), 2, false, nil, true},
		"latency":            {mockserver.Latency(time.Second), 1, false, nil, true},
		"latency too long":   {mockserver.Latency(time.Minute), 2, false, unknown, false},
		"reset before":       {mockserver.ResetBefore(), 2, false, unknown, false},
		"lose response":      {mockserver.LoseResponse(), 2, true, unknown, true},
		"truncate":           {mockserver.Truncate(), 2, true, unknown, true},
		"html page":          {mockserver.HTMLPage(), 2, false, unknown, false},
		"html page applied":  {mockserver.HTMLPage().Applied(), 2, true, unknown, true},
		"hang":               {mockserver.HangUntilTimeout(), 2, false, unknown, false},
		"hang applied":       {mockserver.HangUntilTimeout().Applied(), 2, true, unknown, true},
		"unknown enum":       {mockserver.UnknownEnum(), 1, false, nil, true},
		"extra field":        {mockserver.ExtraField(), 1, false, nil, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				gw := mockserver.Run(t)
				client := gw.Client()
				hit := func(op string) { require.NoError(t, gw.Faults.Add(tc.fault.On(op).Times(1))) }

				hit("transactions.create")
				var response gateway.Response
				made, err := client.Transactions.Create(t.Context(), order("order-1"), gateway.ResponseInto(&response))
				require.NoError(t, err)
				assert.Equal(t, tc.attempts, response.Attempts, "attempts of the create")
				assert.Equal(t, tc.recovered, response.Recovered)
				assert.Equal(t, tc.attempts, gw.Requests.Count("transactions.create"))

				require.NoError(t, gw.Transactions.Pay(made.ID))
				hit("transactions.get")
				_, err = client.Transactions.Get(t.Context(), made.ID, gateway.ResponseInto(&response))
				require.NoError(t, err)
				if name != "lose response" { // a read changes nothing: nothing is lost
					assert.Equal(t, tc.attempts, response.Attempts, "attempts of the read")
				}

				hit("transactions.refund")
				_, err = client.Transactions.Refund(t.Context(), made.ID, gateway.RefundParams{Amount: 400})
				synctest.Wait() // the gateway records a hanging request once its caller has disconnected
				if tc.refund == nil {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, tc.refund)
					if name != "status 429" {
						assert.Equal(t, 1, gw.Requests.Count("transactions.refund"), "it is not repeated")
					}
				}
				read, err := client.Transactions.Get(t.Context(), made.ID)
				require.NoError(t, err)
				assert.Equal(t, tc.refunded, read.RefundedAmount == 400)

				all, err := gateway.Collect(client.Transactions.All(t.Context(), gateway.TransactionListParams{}), 0)
				require.NoError(t, err)
				assert.Len(t, all, 1, "one charge")
			})
		})
	}
}

// TestUndecodableResponses: a resource is not lost if its 2xx response can't
// be read.
func TestUndecodableResponses(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]mockserver.Fault{
		"empty body": mockserver.EmptyBody(), "bad JSON": mockserver.BadJSON(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				gw := mockserver.Run(t)
				require.NoError(t, gw.Faults.Add(fault.On("transactions.create").Times(1)))
				_, err := gw.Client().Transactions.Create(t.Context(), order("order-1"))
				require.ErrorIs(t, err, gateway.ErrOutcomeUnknown)
				var outcome *gateway.OutcomeError
				require.ErrorAs(t, err, &outcome)
				assert.Equal(t, "order-1", outcome.Reference)
				made, err := gw.Client().Transactions.FindByExternalRef(t.Context(), outcome.Reference, gateway.FindOptions{})
				require.NoError(t, err)
				if name == "bad JSON" {
					assert.Equal(t, made.ID, outcome.ResourceID)
				}
			})
		})
	}
}

func TestAnUnknownStateIsReadAsItIs(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	made, err := gw.Client().Transactions.Create(t.Context(), order("order-1"))
	require.NoError(t, err)
	require.NoError(t, gw.Faults.Add(mockserver.UnknownEnum().Times(1), mockserver.ExtraField().Times(1)))
	read, err := gw.Client().Transactions.Get(t.Context(), made.ID)
	require.NoError(t, err)
	assert.False(t, spec.LiveTransactionStatuses.Has(string(read.Status)))
	assert.False(t, read.Settled())
	read, err = gw.Client().Transactions.Get(t.Context(), made.ID)
	require.NoError(t, err)
	var raw struct {
		Extra any `json:"mock_extra_field"`
		Pix   struct {
			Extra any `json:"mock_extra_field"`
		} `json:"pix"`
	}
	require.NoError(t, json.Unmarshal(read.Raw, &raw))
	assert.NotNil(t, raw.Extra)
	assert.NotNil(t, raw.Pix.Extra)
}

func TestStaleRead(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	client := gw.Client()
	made, err := client.Transactions.Create(t.Context(), order("order-1"))
	require.NoError(t, err)
	stale := gateway.Header("X-Mock-Fault", "stale-read")
	_, err = client.Transactions.Get(t.Context(), made.ID, stale)
	require.ErrorIs(t, err, gateway.ErrNotFound, "as before its creation")

	require.NoError(t, gw.Transactions.Pay(made.ID))
	read, err := client.Transactions.Get(t.Context(), made.ID, stale)
	require.NoError(t, err)
	assert.Equal(t, gateway.TransactionPending, read.Status)
	read, err = client.Transactions.Get(t.Context(), made.ID)
	require.NoError(t, err)
	assert.Equal(t, gateway.TransactionPaid, read.Status)
}

func TestTheNetworkErrorsAreRealOnes(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	require.NoError(t, gw.Faults.Add(mockserver.ResetBefore()))
	_, err := gw.Client().Transactions.Get(t.Context(), "x", gateway.MaxAttempts(1))
	require.ErrorIs(t, err, syscall.ECONNRESET)
	gw.Faults.Clear()
	_, err = gw.Client().Transactions.Get(t.Context(), "x", gateway.MaxAttempts(1))
	require.ErrorIs(t, err, gateway.ErrNotFound)
}

// TestALostResponseByHeader: every attempt of a call has the header, and the
// attempt that changes nothing gets its response.
func TestALostResponseByHeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for name, option := range map[string]mockserver.Option{
			"document": mockserver.WithDialect(mockserver.Document), "live": mockserver.WithDialect(mockserver.Live),
		} {
			gw := mockserver.Run(t, option)
			lose := gateway.Header("X-Mock-Fault", "lose-response")
			client := gw.Client()
			var response gateway.Response

			_, err := client.Transactions.Create(t.Context(), order("order-1"), lose, gateway.ResponseInto(&response))
			require.NoError(t, err, name)
			assert.True(t, response.Recovered)

			transfer, err := client.Transfers.Create(t.Context(), gateway.TransferParams{
				PixKeyType: gateway.PixKeyEmail, PixKeyValue: "ana@shop.test", Amount: 1500, ExternalRef: "payout-1",
			}, lose, gateway.ResponseInto(&response))
			require.NoError(t, err, name)
			assert.Equal(t, 2, response.Attempts)

			_, err = client.Transfers.Get(t.Context(), transfer.ID, lose)
			require.NoError(t, err, name)
		}
	})
}

func TestFaultsOfOneAccount(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	other := gw.Account("sk_test_other")
	require.NoError(t, other.Faults.Add(mockserver.Status(500)))
	_, err := gw.Client().Transactions.Create(t.Context(), order("order-1"))
	require.NoError(t, err)
	_, err = other.Client().Transactions.List(t.Context(), gateway.TransactionListParams{}, gateway.MaxAttempts(1))
	require.ErrorIs(t, err, gateway.ErrServer)
	reports := gw.Faults.Reports()
	require.Len(t, reports, 1)
	assert.Equal(t, 1, reports[0].Fired)
	assert.Equal(t, "status=500", reports[0].Fault.String())
	other.Faults.Clear()
	assert.Empty(t, gw.Faults.Reports())
}

// A fault can return the error code of a business rule, so that merchants can
// test how they handle it.
func TestAFaultReturnsABusinessCode(t *testing.T) {
	t.Parallel()
	for _, fault := range []mockserver.Fault{
		mockserver.Status(409).Code("INSUFFICIENT_FUNDS"),
		mockserver.Status(409).CodedBody().Code("INSUFFICIENT_FUNDS"),
	} {
		gw := mockserver.Run(t)
		client := gw.Client()
		require.NoError(t, gw.Faults.Add(fault.On("transfers.create").Times(1)))
		_, added := client.Transfers.Create(t.Context(), payout("1"))
		_, asked := client.Transfers.Create(t.Context(), payout("1"), gateway.Header("X-Mock-Fault", fault.String()))
		do[object](plane{t: t, gw: gw}, http.MethodPost, "/faults", `{"fault":"`+fault.String()+`","on":"transfers.create","times":1}`)
		_, called := client.Transfers.Create(t.Context(), payout("1"))
		for _, err := range []error{added, asked, called} {
			var refused *gateway.Error
			require.ErrorAs(t, err, &refused, fault.String())
			assert.Equal(t, http.StatusConflict, refused.StatusCode)
			assert.Equal(t, "INSUFFICIENT_FUNDS", refused.Code)
		}
		_, err := client.Transfers.Create(t.Context(), payout("1"))
		require.NoError(t, err)
	}
}

// Clearing the faults of requests keeps those of webhooks, and vice versa.
func TestFaultsOfRequestsAndOfWebhooksAreClearedSeparately(t *testing.T) {
	t.Parallel()
	gw, shop := mockserver.Run(t), &shop{}
	gw.Webhooks.Send(shop)
	add := func() {
		require.NoError(t, gw.Faults.Add(mockserver.Status(503), mockserver.StaleTimestamp().On("subscription.*")))
		require.NoError(t, gw.Webhooks.Drop("transaction.created"))
	}
	left := func() (texts []string) {
		for _, r := range gw.Faults.Reports() {
			texts = append(texts, r.Fault.String())
		}
		return texts
	}
	add()
	gw.Faults.Clear()
	assert.Equal(t, []string{"stale-timestamp", "drop-webhook"}, left())
	_, err := gw.Client().Transactions.Create(t.Context(), order("order-1"))
	require.NoError(t, err)
	require.NoError(t, gw.Wait(t.Context()))
	assert.Equal(t, []webhook.Kind{webhook.TransactionPending}, shop.got(), "the other was dropped")
	gw.Webhooks.ClearFaults()
	assert.Empty(t, left())

	add()
	gw.Webhooks.ClearFaults()
	assert.Equal(t, []string{"status=503"}, left())
	gw.Faults.Clear()
	assert.Empty(t, left())

	p := plane{t: t, gw: gw}
	for path, want := range map[string]string{"/faults": "drop-webhook", "/deliveries/faults": "status=503"} {
		do[object](p, http.MethodPost, "/faults", `{"fault":"status=503"}`)
		do[object](p, http.MethodPost, "/faults", `{"fault":"drop-webhook"}`)
		remaining := do[[]any](p, http.MethodDelete, path, "")
		require.Len(t, remaining, 1, path)
		assert.Equal(t, want, remaining[0].(object)["fault"])
		do[object](p, http.MethodPost, "/reset", "")
		assert.Empty(t, left(), "a reset clears both")
	}
}

func TestInvalidFaults(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	for want, fault := range map[string]mockserver.Fault{
		`"transaction.create"`: mockserver.ResetBefore().On("transaction.create"),
		"200 to 599":           mockserver.Status(42),
		"negative":             mockserver.ResetBefore().Times(0),
		"must not":             mockserver.ResetBefore().Nth(0),
		"0 to 1":               mockserver.ResetBefore().Probability(2),
		"is unknown":           {},
		"capital letters":      mockserver.Status(409).Code("no funds"),
		"only status has":      mockserver.HTMLPage().Code("NO_FUNDS"),
		"have a code":          mockserver.Status(409).NoBody().Code("NO_FUNDS"),
	} {
		require.ErrorContains(t, gw.Faults.Add(fault), want)
	}
	for _, on := range []string{"", "transfers.*", "POST /v2/transfers", "GET /v2/transactions/{id}", "/v2/transactions/17/refund", "*"} {
		require.NoError(t, gw.Faults.Add(mockserver.ResetBefore().On(on)), on)
	}
}

// TestSeededProbabilityRepeats runs one series of calls twice.
func TestSeededProbabilityRepeats(t *testing.T) {
	t.Parallel()
	run := func(seed uint64) string {
		gw := mockserver.Run(t, mockserver.WithSeed(seed))
		require.NoError(t, gw.Faults.Add(
			mockserver.Status(500).Probability(0.3), mockserver.ResetBefore().Probability(0.3), mockserver.Truncate().Probability(0),
		))
		var log strings.Builder
		for range 200 {
			_, err := gw.Client().Transactions.List(t.Context(), gateway.TransactionListParams{}, gateway.MaxAttempts(1))
			switch {
			case err == nil:
				log.WriteByte('.')
			case strings.Contains(err.Error(), "500"):
				log.WriteByte('5')
			default:
				log.WriteByte('r')
			}
		}
		return log.String()
	}
	first := run(1)
	assert.Equal(t, first, run(1))
	assert.NotEqual(t, first, run(2))
	assert.InDelta(t, 60, strings.Count(first, "5"), 25)
	assert.InDelta(t, 42, strings.Count(first, "r"), 25)
}

func TestTheJournalOfATest(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	client := gw.Client()
	params := order("order-1")
	params.Buyer.Document = &gateway.Document{Type: gateway.CPF, Number: "12345678909"}
	_, err := client.Transactions.Create(t.Context(), params)
	require.NoError(t, err)
	_, err = client.Transactions.Create(t.Context(), order("order-1"))
	require.ErrorIs(t, err, gateway.ErrDuplicate)

	found := gw.Requests.Find("POST /v2/transactions")
	require.Len(t, found, 2)
	assert.Equal(t, http.StatusCreated, found[0].Status)
	assert.Equal(t, http.StatusConflict, found[1].Status)
	assert.Equal(t, "transactions.create", found[0].Operation)
	assert.Contains(t, found[0].Body, `"external_ref":"order-1"`)
	for _, text := range []string{found[0].Body, found[0].Response, found[0].Header.Get("Authorization")} {
		assert.NotContains(t, text, "12345678909")
		assert.NotContains(t, text, gw.Key())
	}
	assert.Zero(t, gw.Requests.Count("PUT /v2/transactions"))
	assert.Len(t, gw.Requests.NearMisses("PUT /v2/transactions"), 2)
	gw.Requests.Clear()
	assert.Empty(t, gw.Requests.All())
}

// TestManyCallsUnderFaults is a small chaos: every call has a known result, and no
// reference exists twice.
func TestManyCallsUnderFaults(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gw := mockserver.Run(t, mockserver.WithSeed(1))
		require.NoError(t, gw.Faults.Add(
			mockserver.LoseResponse().Probability(0.1), mockserver.ResetBefore().Probability(0.1),
			mockserver.Status(503).Probability(0.1), mockserver.Status(500).Applied().Probability(0.05),
			mockserver.Truncate().Probability(0.05),
		))
		client := gw.Client(gateway.WithMaxAttempts(10))
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for range 20 {
					_, err := client.Transactions.Create(context.Background(), order(""))
					assert.NoError(t, err)
				}
			})
		}
		wg.Wait()
		gw.Faults.Clear()
		all, err := gateway.Collect(client.Transactions.All(t.Context(), gateway.TransactionListParams{Limit: 100}), 0)
		require.NoError(t, err)
		assert.Len(t, all, 320)
	})
}

func TestDownAndUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gw := mockserver.Run(t)
		client := gw.Client()
		gw.Down()
		_, err := client.Transactions.Create(t.Context(), order("order-1"))
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		require.NotErrorIs(t, err, gateway.ErrOutcomeUnknown, "nothing was sent")

		time.AfterFunc(300*time.Millisecond, gw.Up)
		made, err := client.Transactions.Create(t.Context(), order("order-1"))
		require.NoError(t, err, "the retries outlast it")
		assert.NotEmpty(t, made.ID)
		assert.Equal(t, 1, gw.Requests.Count(""))
	})
}
