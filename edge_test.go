package gateway_test

import (
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
)

// Under TLS 1.3 a server rejects a client's certificate after the handshake, when the
// client has already written the request. The server did not read it.
func TestARejectedClientCertificateMeansNotSent(t *testing.T) {
	t.Parallel()
	handled := make(chan struct{}, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { handled <- struct{}{} }))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS13}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	client, err := gateway.New(server.URL, gateway.BearerToken(testKey), gateway.WithHTTPClient(server.Client()))
	require.NoError(t, err)
	_, err = client.Transactions.Refund(t.Context(), orderID, gateway.RefundParams{Amount: 300})
	require.Error(t, err)
	assert.Empty(t, handled)
	// If the connection is reset before the alert is read, the outcome is unknown.
	if assert.ErrorContains(t, err, "gateway: transactions.refund") && assert.NotErrorIs(t, err, gateway.ErrOutcomeUnknown) {
		require.ErrorIs(t, err, gateway.ErrNotSent)
		require.ErrorContains(t, err, "certificate")
	}
}

// retrying is a RoundTripper that repeats a failed request by itself.
type retrying struct {
	next http.RoundTripper
	down func()
}

func (r retrying) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := r.next.RoundTrip(req.Clone(req.Context()))
	if err == nil {
		_ = resp.Body.Close()
		r.down()
		return r.next.RoundTrip(req.Clone(req.Context()))
	}
	return resp, err
}

// The first request of a transport that retries by itself was applied, and the
// second can't be dialed.
func TestATransportThatRetriesByItselfMayHaveSent(t *testing.T) {
	t.Parallel()
	applied := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		applied++
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusBadGateway)
	}))
	pool := &http.Transport{}
	t.Cleanup(pool.CloseIdleConnections)
	client, err := gateway.New(server.URL, gateway.BearerToken(testKey),
		gateway.WithHTTPClient(&http.Client{Transport: retrying{pool, server.Close}}))
	require.NoError(t, err)
	_, err = client.Transactions.Refund(t.Context(), orderID, gateway.RefundParams{Amount: 300})
	require.ErrorIs(t, err, gateway.ErrOutcomeUnknown)
	assert.Equal(t, 1, applied)
}

// A 204 has no body, so there is nothing to decode.
func TestDoAcceptsAResponseWithoutABody(t *testing.T) {
	t.Parallel()
	out := map[string]any{"kept": true}
	err := clientOf(t, play(reply(http.StatusNoContent, ""))).Do(t.Context(), http.MethodDelete, "/v2/x", nil, &out)
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"kept": true}, out)
}

// A caller may change Raw, whatever the length of the response: nothing else changes with it.
func TestRawSharesNoMemoryWithTheRest(t *testing.T) {
	t.Parallel()
	for _, more := range []string{"", strings.Repeat("x", 10_000)} {
		body := `{"success":true,"data":{"id":"tx-1","external_ref":"order-1","more":"` + more + `"}}`
		tx, err := clientOf(t, play(reply(200, body))).Transactions.Get(t.Context(), orderID)
		require.NoError(t, err)
		for i := range tx.Raw {
			tx.Raw[i] = '!'
		}
		assert.Equal(t, "tx-1", tx.ID)
		assert.Equal(t, "order-1", tx.ExternalRef)
	}
}

// Some servers begin their responses with a byte order mark. A create that was applied is
// not sent again because of it, and a rejection is one.
func TestAResponseMayBeginWithAByteOrderMark(t *testing.T) {
	t.Parallel()
	const mark = "\uFEFF"
	for _, call := range allCalls() {
		require.NoError(t, call.run(t.Context(), clientOf(t, play(reply(200, mark+success)))), call.name)
	}
	client := clientOf(t, play(reply(201, mark+`{"success":true,"data":{"id":"tx-1","amount":15990}}`)))
	tx, err := client.Transactions.Create(t.Context(), pixOrder())
	require.NoError(t, err)
	assert.Equal(t, "tx-1", tx.ID)
	assert.JSONEq(t, `{"id":"tx-1","amount":15990}`, string(tx.Raw))

	rejection := mark + `{"title":"Conflict","status":409,"code":"NOT_REFUNDABLE"}`
	_, err = clientOf(t, play(reply(409, rejection))).Transactions.Refund(t.Context(), orderID, gateway.RefundParams{Full: true})
	require.ErrorIs(t, err, gateway.ErrConflict)
}
