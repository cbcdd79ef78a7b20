package otelgateway_test

import (
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	otelgateway "github.com/gateway-go/gateway/contrib/otel"
	"github.com/gateway-go/gateway/mockserver"
)

// Values that must never reach a telemetry backend.
const (
	buyer    = "Maria Oliveira"
	email    = "maria@example.com"
	document = "52998224725"
	order    = "order-1001"
)

func charge() gateway.TransactionParams {
	return gateway.TransactionParams{
		ExternalRef: order, Amount: 15470, Method: gateway.Pix,
		Buyer: gateway.BuyerParams{
			Name: buyer, Email: email, Document: &gateway.Document{Type: gateway.CPF, Number: document},
		},
		Products: []gateway.Product{{Name: "Mug", Price: 15470}},
	}
}

// lost returns a network that loses the response to the first request with a
// method. The gateway applies the request.
func lost(method string) func(http.RoundTripper) http.RoundTripper {
	return first(method, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		_ = resp.Body.Close()
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	})
}

const post = "POST /v2/transactions (client)"

func TestACallIsASpanAroundTheHTTPSpanOfItsAttempt(t *testing.T) {
	t.Parallel()
	b, gw := newBackend(t), mockserver.Run(t)
	client := b.client(gw, nil)
	ctx, span := b.tracer.Start(t.Context(), "checkout")
	_, err := client.Transactions.Create(ctx, charge())
	require.NoError(t, err)
	span.End()
	lines := b.all()
	require.Len(t, lines, 3)
	assert.Equal(t, "checkout (internal)", lines[0])
	assert.Equal(t, "checkout > transactions.create (internal) gateway.attempts=1 gateway.operation.name=transactions.create gateway.outcome=success", lines[1])
	assert.Regexp(t, `^transactions.create > POST /v2/transactions \(client\) http.request.method=POST http.response.header.x-request-id=\["[\w-]+"\] `+
		`http.response.status_code=201 server.address=[\w.-]+ server.port=\d+ url.template=/v2/transactions$`, lines[2])
	assert.Equal(t, []string{"gateway.client.call.duration{gateway.operation.name=transactions.create gateway.outcome=success} 1"}, b.metrics("gateway."))
	require.Len(t, b.metrics("http."), 1)
	assert.Regexp(t, `^http.client.request.duration{http.request.method=POST http.response.status_code=201 server.address=[\w.-]+ server.port=\d+ `+
		`url.template=/v2/transactions} 1$`, b.metrics("http.")[0])
}

func TestARetryIsASecondSpanWithItsReason(t *testing.T) {
	t.Parallel()
	b, gw := newBackend(t), mockserver.Run(t)
	client := b.client(gw, first(http.MethodGet, func(_ http.RoundTripper, r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	}))
	_, err := client.Transactions.List(t.Context(), gateway.TransactionListParams{})
	require.NoError(t, err)
	lines := b.all()
	require.Len(t, lines, 3)
	assert.Contains(t, lines[0], "gateway.attempts=2 gateway.operation.name=transactions.list gateway.outcome=success")
	assert.Regexp(t, `Error 503 error.type=503 gateway.retry.delay=\S+ .*http.response.status_code=503`, lines[1])
	assert.Regexp(t, `http.request.resend_count=1 .*http.response.status_code=200`, lines[2])
	assert.Equal(t, []string{"gateway.client.retries{error.type=503 gateway.operation.name=transactions.list} 1"}, b.metrics("gateway.client.retries"))
}

func TestARejectionNamesItsKind(t *testing.T) {
	t.Parallel()
	b, gw := newBackend(t), mockserver.Run(t)
	client := b.client(gw, nil)
	_, err := client.Transactions.Get(t.Context(), "0198f0a0-0000-7000-8000-000000000000")
	require.ErrorIs(t, err, gateway.ErrNotFound)
	_, err = client.Transactions.Create(t.Context(), gateway.TransactionParams{Method: gateway.Pix})
	require.ErrorIs(t, err, gateway.ErrValidation)
	_, err = client.Transactions.Create(t.Context(), charge())
	require.NoError(t, err)
	_, err = client.Transactions.Create(t.Context(), charge())
	require.ErrorIs(t, err, gateway.ErrDuplicate)
	text := strings.Join(b.all(), "\n")
	assert.Contains(t, text, "transactions.get (internal) Error not_found error.type=not_found gateway.attempts=1")
	assert.Contains(t, text, "transactions.get > GET /v2/transactions/{id} (client) Error 404 error.type=404")
	assert.Contains(t, text, "transactions.create (internal) Error validation error.type=validation gateway.attempts=0")
	assert.Regexp(t, `transactions.create \(internal\) Error duplicate error.type=duplicate gateway.attempts=1 gateway.error.code=[A-Z_]+ `, text)
	assert.Equal(t, []string{
		"gateway.client.call.duration{error.type=duplicate gateway.operation.name=transactions.create gateway.outcome=rejected} 1",
		"gateway.client.call.duration{error.type=not_found gateway.operation.name=transactions.get gateway.outcome=rejected} 1",
		"gateway.client.call.duration{error.type=validation gateway.operation.name=transactions.create gateway.outcome=rejected} 1",
		"gateway.client.call.duration{gateway.operation.name=transactions.create gateway.outcome=success} 1",
	}, b.metrics("gateway."))
}

func TestAnUnknownOutcomeIsDistinguishedFromARejection(t *testing.T) {
	t.Parallel()
	b, gw := newBackend(t), mockserver.Run(t)
	client := b.client(gw, lost(http.MethodPut))
	tx, err := client.Transactions.Create(t.Context(), charge())
	require.NoError(t, err)
	require.NoError(t, gw.Transactions.Pay(tx.ID))
	_, err = client.Transactions.Refund(t.Context(), tx.ID, gateway.RefundParams{Full: true})
	require.ErrorIs(t, err, gateway.ErrOutcomeUnknown)
	text := strings.Join(b.all(), "\n")
	assert.Contains(t, text, "transactions.refund (internal) Error outcome_unknown error.type=outcome_unknown gateway.attempts=1 "+
		"gateway.operation.name=transactions.refund gateway.outcome=unknown")
	assert.Contains(t, text, "PUT /v2/transactions/{id}/refund (client) Error network_read error.type=network_read")
	assert.Contains(t, b.metrics("gateway."), "gateway.client.call.duration{error.type=outcome_unknown gateway.operation.name=transactions.refund gateway.outcome=unknown} 1")
}

func TestARecoveredCreateShowsTheReadsThatFoundIt(t *testing.T) {
	t.Parallel()
	b, gw := newBackend(t), mockserver.Run(t)
	client := b.client(gw, lost(http.MethodPost))
	_, err := client.Transactions.Create(t.Context(), charge())
	require.NoError(t, err)
	var heads []string
	for _, line := range b.all() {
		head, _, _ := strings.Cut(line, ") ")
		heads = append(heads, head+")")
	}
	assert.Equal(t, "transactions.create (internal)", heads[0])
	assert.Equal(t, []string{"transactions.create > " + post, "transactions.create > " + post}, heads[1:3])
	assert.Contains(t, heads[3:], "transactions.create > transactions.get (internal)")
	assert.Contains(t, b.all()[0], "gateway.attempts=2 gateway.operation.name=transactions.create gateway.outcome=recovered")
	assert.Contains(t, b.metrics("gateway."), "gateway.client.call.duration{gateway.operation.name=transactions.create gateway.outcome=recovered} 1")
	assert.Contains(t, b.metrics("gateway."), "gateway.client.retries{error.type=network_read gateway.operation.name=transactions.create} 1")
}

func TestARequestThatIsNotSentIsNotAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	b, gw := newBackend(t), mockserver.Run(t)
	client := b.client(gw, func(http.RoundTripper) http.RoundTripper {
		return roundTrip(func(*http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		})
	})
	_, err := client.Transactions.Create(t.Context(), charge())
	require.ErrorIs(t, err, gateway.ErrNotSent)
	assert.Contains(t, b.all()[0], "Error not_sent error.type=not_sent gateway.attempts=3 gateway.operation.name=transactions.create gateway.outcome=not_sent")
	assert.Contains(t, b.metrics("gateway."), "gateway.client.retries{error.type=network_dial gateway.operation.name=transactions.create} 2")
}

// A call to Client.Do has no template unless it is Named, and its path may
// contain ids.
func TestAPathWithoutATemplateIsLeftOut(t *testing.T) {
	t.Parallel()
	b, gw := newBackend(t), mockserver.Run(t)
	client := b.client(gw, nil)
	const id = "0198f0a0-0000-7000-8000-000000000000"
	require.Error(t, client.Do(t.Context(), http.MethodGet, "/v2/transactions/"+id, nil, nil))
	require.Error(t, client.Do(t.Context(), http.MethodGet, "/v2/transactions/"+id, nil, nil, gateway.Named("reports.get", "/v2/reports/{id}")))
	text := strings.Join(b.all(), "\n")
	assert.Contains(t, text, "do > GET (client)")
	assert.Contains(t, text, "reports.get > GET /v2/reports/{id} (client)")
	assert.NotContains(t, text, id)
	assert.Equal(t, 1, strings.Count(text, "url.template="))
}

func TestNothingSensitiveReachesTheBackend(t *testing.T) {
	t.Parallel()
	const key = "sk_test_telemetry_must_not_show_this"
	b, gw := newBackend(t), mockserver.Run(t)
	client := b.client(gw, lost(http.MethodPut), gateway.WithCredential(gateway.BearerToken(key)))
	tx, err := client.Transactions.Create(t.Context(), charge())
	require.NoError(t, err)
	require.NoError(t, gw.Account(key).Transactions.Pay(tx.ID))
	_, _ = client.Transactions.Create(t.Context(), charge())
	_, _ = client.Transactions.Refund(t.Context(), tx.ID, gateway.RefundParams{Full: true, Reason: "complained by " + email})
	_, _ = client.Transactions.Get(t.Context(), document)
	_, _ = client.Customers.Create(t.Context(), gateway.CustomerParams{Name: buyer, Email: "not " + email})
	_, _ = client.Transactions.List(t.Context(), gateway.TransactionListParams{}, gateway.Query("search", email))
	text := strings.Join(append(b.all(), b.metrics("")...), "\n")
	require.Contains(t, text, "transactions.refund")
	for _, secret := range []string{key, buyer, email, document, order, tx.ID, "15470", "complained", "Bearer", "?"} {
		assert.NotContains(t, text, secret)
	}
}

func TestTheDefaultProvidersAreTheGlobalOnes(t *testing.T) {
	t.Parallel()
	telemetry, err := otelgateway.New(otelgateway.Config{})
	require.NoError(t, err)
	client, err := mockserver.Run(t).Client().With(gateway.WithObserver(telemetry.Observer()))
	require.NoError(t, err)
	_, err = client.Transactions.Create(t.Context(), charge())
	require.NoError(t, err)
}
