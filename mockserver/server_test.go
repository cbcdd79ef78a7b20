package mockserver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
)

func order(ref string) gateway.TransactionParams {
	return gateway.TransactionParams{
		ExternalRef: ref,
		Amount:      1000,
		Method:      gateway.Pix,
		Buyer: gateway.BuyerParams{
			Name: "Ana", Email: "ana@example.com", Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"},
		},
		Products: []gateway.Product{{Name: "Book", Price: 1000}},
	}
}

func TestPaymentFromEndToEnd(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t, mockserver.WithSeed(42))
	client := gw.Client()
	made, err := client.Transactions.Create(t.Context(), order("order-1"))
	require.NoError(t, err)
	assert.Equal(t, gateway.TransactionPending, made.Status)

	require.NoError(t, gw.Transactions.Pay(made.ID))
	read, err := client.Transactions.Get(t.Context(), made.ID)
	require.NoError(t, err)
	assert.True(t, read.Settled())
	assert.NotEmpty(t, read.Pix.EndToEndID)

	refund, err := client.Transactions.Refund(t.Context(), made.ID, gateway.RefundParams{Amount: 400})
	require.NoError(t, err)
	assert.Equal(t, int64(600), refund.RemainingBalance)
}

func TestClockExpires(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	made, err := gw.Client().Transactions.Create(t.Context(), order("order-1"))
	require.NoError(t, err)
	require.Len(t, gw.Clock.Timers(), 1)
	require.NoError(t, gw.Clock.Advance(24*time.Hour))
	read, err := gw.Client().Transactions.Get(t.Context(), made.ID)
	require.NoError(t, err)
	assert.Equal(t, gateway.TransactionExpired, read.Status)
}

func TestControlError(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	made, err := gw.Client().Transactions.Create(t.Context(), order("order-1"))
	require.NoError(t, err)
	var refused *mockserver.ControlError
	require.ErrorAs(t, gw.Transactions.Refuse(made.ID), &refused)
	assert.Equal(t, http.StatusConflict, refused.Status)
	require.ErrorAs(t, gw.Transactions.Pay("nobody"), &refused)
	assert.Equal(t, http.StatusNotFound, refused.Status)
}

func TestAccountsSeeOnlyTheirOwn(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	made, err := gw.Client().Transactions.Create(t.Context(), order("order-1"))
	require.NoError(t, err)
	other := gw.Account("sk_test_other")
	_, err = other.Client().Transactions.Get(t.Context(), made.ID)
	require.ErrorIs(t, err, gateway.ErrNotFound)
	require.Error(t, other.Transactions.Pay(made.ID))
	_, err = other.Client().Transactions.Create(t.Context(), order("order-1"))
	require.NoError(t, err, "references are the account's own")
}

func TestSameSeedSameBytes(t *testing.T) {
	t.Parallel()
	run := func() []string {
		gw := mockserver.Run(t, mockserver.WithSeed(9))
		var seen []string
		for _, ref := range []string{"a", "b"} {
			made, err := gw.Client().Transactions.Create(t.Context(), order(ref))
			require.NoError(t, err)
			require.NoError(t, gw.Transactions.Pay(made.ID))
			read, err := gw.Client().Transactions.Get(t.Context(), made.ID)
			require.NoError(t, err)
			seen = append(seen, read.ID, read.Buyer.ID, read.Pix.QRCode, read.Pix.EndToEndID)
		}
		return seen
	}
	first := run()
	assert.Equal(t, first, run())
	assert.NotEqual(t, first[0], first[4])
}

func TestListenAndClose(t *testing.T) {
	t.Parallel()
	gw, err := mockserver.New()
	require.NoError(t, err)
	base, err := gw.Listen("127.0.0.1:0")
	require.NoError(t, err)
	client, err := gateway.New(base, gateway.APIKey(gw.Key()), gateway.WithMaxAttempts(1))
	require.NoError(t, err)
	_, err = client.Transactions.Create(t.Context(), order("order-1"))
	require.NoError(t, err)
	require.NoError(t, gw.Close())
	_, err = client.Transactions.Create(t.Context(), order("order-2"))
	require.Error(t, err)
	_, err = gw.Listen("nowhere:1:2")
	require.Error(t, err)
}

// A client that stops in the middle of its body gets an error, and its
// connection is closed.
func TestABodyThatDoesNotArrive(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t, mockserver.WithBodyTimeout(20*time.Millisecond))
	base, err := gw.Listen("127.0.0.1:0")
	require.NoError(t, err)
	for _, path := range []string{"/v2/transactions", "/__mock/faults"} {
		var d net.Dialer
		conn, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(base, "http://"))
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, err = io.WriteString(conn, "POST "+path+" HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer sk_test_mock\r\n"+
			"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
		require.NoError(t, err)
		response, err := io.ReadAll(conn)
		require.NoError(t, err, "the connection is closed")
		assert.Contains(t, string(response), "HTTP/1.1 408 Request Timeout")
		assert.Contains(t, string(response), "BODY_TIMEOUT")
	}
	assert.Empty(t, gw.Webhooks.Deliveries())
}

// Clients in memory and httptest's recorders and servers may use their own host
// names; over a socket every other name is rejected.
func TestHostsOfTests(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	get := func(client *http.Client, url string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/v2/transactions", nil)
		require.NoError(t, err)
		r.Header.Set("Apikey", gw.Key())
		resp, err := client.Do(r)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode
	}
	assert.Equal(t, http.StatusOK, get(&http.Client{Transport: gw.Transport()}, "https://api.gateway.test"))
	w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://api.gateway.test/v2/transactions", nil)
	r.Header.Set("Apikey", gw.Key())
	gw.Handler().ServeHTTP(w, r)
	assert.Equal(t, http.StatusOK, w.Code)

	plain, secure := httptest.NewServer(gw.Handler()), httptest.NewTLSServer(gw.Handler())
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	assert.Equal(t, http.StatusOK, get(plain.Client(), plain.URL))
	assert.Equal(t, http.StatusOK, get(secure.Client(), secure.URL))
	assert.Equal(t, http.StatusOK, get(secure.Client(), "https://example.com"))
	rebound := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, plain.Listener.Addr().String())
	}}}
	t.Cleanup(rebound.CloseIdleConnections)
	assert.Equal(t, http.StatusMisdirectedRequest, get(rebound, "http://evil.test"))
}

// The settled amount is in every response and webhook; the buyer pays, and the
// merchant refunds, what was charged.
func TestWhatIsSettledIsReported(t *testing.T) {
	t.Parallel()
	for _, percent := range []float64{0, -1, 100, 19.275, math.NaN(), math.Inf(1)} {
		_, err := mockserver.New(mockserver.WithDialect(mockserver.Live), mockserver.WithSettledPercent(percent))
		require.ErrorContains(t, err, "WithSettledPercent", "%v", percent)
	}
	gw := mockserver.Run(t, mockserver.WithDialect(mockserver.Live), mockserver.WithSettledPercent(19.27))
	client := gw.Client()
	for cents, reported := range map[int64]int64{19800: 3815, 12700: 2447, 3: 1, 1: 1, 100_000_000: 19_270_000} {
		o := order(fmt.Sprint("order-", cents))
		o.Amount = cents
		made, err := client.Transactions.Create(t.Context(), o)
		require.NoError(t, err, cents)
		require.NoError(t, gw.Transactions.Pay(made.ID))
		read, err := client.Transactions.Get(t.Context(), made.ID)
		require.NoError(t, err)
		page, err := client.Transactions.List(t.Context(), gateway.TransactionListParams{Limit: 1})
		require.NoError(t, err)
		for _, got := range [][]int64{
			{made.Amount, made.BasePrice}, {read.Amount, read.BasePrice}, {page.Items[0].Amount, page.Items[0].BasePrice},
		} {
			assert.Equal(t, []int64{reported, cents}, got)
		}
		assert.Equal(t, []int64{cents, cents}, []int64{made.Charged(), read.PaidAmount})
		require.NoError(t, gw.Wait(t.Context()))
		for _, d := range gw.Webhooks.Deliveries() {
			if d.ResourceID != made.ID {
				continue
			}
			e, err := webhook.Parse(d.Body)
			require.NoError(t, err)
			typed, err := e.Transaction()
			require.NoError(t, err)
			data, paid := typed.Data, int64(0)
			if e.Kind == webhook.TransactionPaid {
				paid = cents
			}
			assert.Equal(t, []int64{reported, cents, paid, cents}, []int64{data.Amount, data.BasePrice, data.PaidAmount, data.Charged()}, "%s", d.Body)
		}
	}
	assert.Error(t, mockserver.Run(t).Transactions.SettleFor("x", 1))
}

func TestRejectedOptions(t *testing.T) {
	t.Parallel()
	for name, option := range map[string]mockserver.Option{
		"nil":         nil,
		"fee":         mockserver.WithFee(-1),
		"auto-pay":    mockserver.WithAutoPay(-time.Second),
		"memory":      mockserver.WithMemoryLimit(-1),
		"dialect":     mockserver.WithDialect(2),
		"environment": mockserver.WithEnvironment(2),
		"start":       mockserver.WithStart(time.Time{}),
		"speed":       mockserver.WithRealtime(-1),
		"no speed":    mockserver.WithRealtime(math.NaN()),
		"too fast":    mockserver.WithRealtime(2e6),
		"a port":      mockserver.WithAllowedHosts("gateway.test:80"),
		"no host":     mockserver.WithAllowedHosts(""),
		"a secret":    mockserver.WithWebhookSecret(gateway.NewSecret("whsec_1")),
		"another":     mockserver.WithEndpoint("https://shop.test/", gateway.NewSecret("\"whsec_test_1\"")),
		"timeout":     mockserver.WithWebhookTimeout(-1),
		"retries":     mockserver.WithWebhookRetries(time.Hour, time.Minute),
		"late retry":  mockserver.WithWebhookRetries(366 * 24 * time.Hour),
		"pause":       mockserver.WithEndpointPause(-1),
		"an origin":   mockserver.WithCORS("localhost:80"),
		"settled":     mockserver.WithSettledPercent(19.27), // in the document dialect
	} {
		_, err := mockserver.New(option)
		require.Error(t, err, name)
	}
}

// Any key opens an account. On a full server the interface and the control
// plane reject a new one with the reason.
func TestAFullServerOpensNoAccount(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t, mockserver.WithMemoryLimit(64<<10))
	var err error
	for n := 0; err == nil; n++ {
		require.Less(t, n, 64)
		_, err = gw.Account(fmt.Sprintf("sk_test_%d", n)).Client().Transactions.List(t.Context(), gateway.TransactionListParams{}, gateway.MaxAttempts(1))
	}
	var e *gateway.Error
	require.ErrorAs(t, err, &e)
	assert.Equal(t, http.StatusInsufficientStorage, e.StatusCode)
	assert.Equal(t, "MEMORY_LIMIT", e.Code)
	status, v := plane{t: t, gw: gw, key: "sk_test_new"}.call(http.MethodGet, "/faults", "")
	assert.Equal(t, http.StatusInsufficientStorage, status)
	assert.Equal(t, "MEMORY_LIMIT", v["code"])
	assert.Contains(t, v["detail"], "Raise the limit")
	do[[]any](plane{t: t, gw: gw, key: "sk_test_0"}, http.MethodGet, "/faults", "")
	do[object](plane{t: t, gw: gw}, http.MethodGet, "/health", "")
}

// The default account exists from the start: other keys can't use up its
// memory, in both environments.
func TestAFullServerHasTheDefaultAccount(t *testing.T) {
	t.Parallel()
	for _, environment := range []mockserver.Environment{mockserver.Sandbox, mockserver.Production} {
		gw := mockserver.Run(t, mockserver.WithMemoryLimit(1), mockserver.WithEnvironment(environment))
		do[[]any](plane{t: t, gw: gw}, http.MethodGet, "/faults", "")
		_, err := gw.Client().Transactions.List(t.Context(), gateway.TransactionListParams{}, gateway.MaxAttempts(1))
		require.NoError(t, err)
	}
}

// failing is a test that fails immediately.
type failing struct{ errs []error }

func (*failing) Helper()                     {}
func (*failing) Cleanup(func())              {}
func (*failing) Failed() bool                { return true }
func (*failing) Logf(string, ...any)         {}
func (f *failing) Fatalf(_ string, _ ...any) { f.errs = append(f.errs, errors.New("fatal")) }

func TestRunFailsTheTest(t *testing.T) {
	t.Parallel()
	tb := &failing{}
	mockserver.Run(tb, nil)
	assert.Len(t, tb.errs, 1)
}
