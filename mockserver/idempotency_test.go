package mockserver_test

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
)

// reply is the response to a request that was sent without the client.
type reply struct {
	status   int
	replayed bool
	body     string
}

// payOnce posts an order with the idempotency key order-1. It returns
// connection errors.
func payOnce(t *testing.T, gw *mockserver.Server, header ...string) (reply, error) {
	t.Helper()
	const body = `{"amount":1000,"method":"pix","products":[{"name":"Book","price":1000}],
		"buyer":{"name":"Ana","email":"ana@example.com","document":{"type":"CPF","number":"52998224725"}}}`
	return send(t, gw, "/v2/transactions", body, append([]string{"Idempotency-Key", "order-1"}, header...)...)
}

// post sends a body to a path; the connection must not fail.
func post(t *testing.T, gw *mockserver.Server, path, body string) reply {
	t.Helper()
	r, err := send(t, gw, path, body)
	require.NoError(t, err)
	return r
}

func send(t *testing.T, gw *mockserver.Server, path, body string, header ...string) (reply, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost"+path, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+gw.Key())
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := gw.Transport().RoundTrip(r)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header.Get("Idempotent-Replayed") == "true", string(text)}, err
}

func mustPay(t *testing.T, gw *mockserver.Server) reply {
	t.Helper()
	r, err := payOnce(t, gw)
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, r.status, r.body)
	return r
}

func transactions(t *testing.T, gw *mockserver.Server) int {
	t.Helper()
	page, err := gw.Client().Transactions.List(t.Context(), gateway.TransactionListParams{})
	require.NoError(t, err)
	return page.Total
}

// A merchant whose response was lost sends the same request again.
func TestAnIdempotencyKeyReturnsTheLostResponse(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"lose-response", "status=503; applied", "status=429; applied", "truncate", "empty-body"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			gw := mockserver.Run(t, mockserver.WithDialect(mockserver.Live))
			lost, err := payOnce(t, gw, "X-Mock-Fault", fault)
			assert.False(t, err == nil && lost.status == http.StatusCreated && lost.body != "", "the fault hit")
			found := mustPay(t, gw)
			assert.True(t, found.replayed)
			assert.Contains(t, found.body, `"status":"pending"`)
			assert.Equal(t, 1, transactions(t, gw))
			assert.Len(t, gw.Webhooks.Deliveries(), 2, "created and pending, once")
		})
	}
	t.Run("a fault that replaces the gateway's response uses up no key", func(t *testing.T) {
		t.Parallel()
		gw := mockserver.Run(t, mockserver.WithDialect(mockserver.Live))
		for _, fault := range []string{"status=503", "status=429", "html-page"} {
			failed, err := payOnce(t, gw, "X-Mock-Fault", fault)
			require.NoError(t, err)
			assert.False(t, failed.replayed)
		}
		assert.Zero(t, transactions(t, gw))
		assert.False(t, mustPay(t, gw).replayed)
	})
	t.Run("a replay with the header that loses responses arrives", func(t *testing.T) {
		t.Parallel()
		gw := mockserver.Run(t, mockserver.WithDialect(mockserver.Live))
		mustPay(t, gw)
		again, err := payOnce(t, gw, "X-Mock-Fault", "lose-response")
		require.NoError(t, err)
		assert.True(t, again.replayed)
	})
}

func TestIdempotencyKeysOutliveTheProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	live := mockserver.WithDialect(mockserver.Live)
	gw := reopen(t, nil, path, live)
	first := mustPay(t, gw)
	for range 2 { // first from the log, then from the compacted file
		gw = reopen(t, gw, path, live)
		assert.Equal(t, reply{first.status, true, first.body}, mustPay(t, gw))
	}
	assert.Equal(t, 1, transactions(t, gw))
}

func TestSnapshotsKeepIdempotencyKeysAndAResetDeletesThem(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t, mockserver.WithDialect(mockserver.Live))
	empty, err := gw.Snapshot()
	require.NoError(t, err)
	first := mustPay(t, gw)
	full, err := gw.Snapshot()
	require.NoError(t, err)
	require.NoError(t, gw.Restore(empty))
	assert.False(t, mustPay(t, gw).replayed)
	require.NoError(t, gw.Restore(full))
	assert.Equal(t, reply{first.status, true, first.body}, mustPay(t, gw))
	do[object](plane{t: t, gw: gw, key: gw.Key()}, http.MethodPost, "/reset", "")
	assert.False(t, mustPay(t, gw).replayed)
}

func TestTheJournalShowsReplays(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t, mockserver.WithDialect(mockserver.Live))
	mustPay(t, gw)
	mustPay(t, gw)
	found := gw.Requests.Find("transactions.create")
	require.Len(t, found, 2)
	assert.Empty(t, found[0].ResponseHeader.Get("Idempotent-Replayed"))
	assert.Equal(t, "true", found[1].ResponseHeader.Get("Idempotent-Replayed"))
	assert.Equal(t, "order-1", found[1].Header.Get("Idempotency-Key"))
	assert.Equal(t, found[0].Response, found[1].Response)
}
