package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
)

// eventLog is an observer that writes one line per event, indented by the depth
// of the call.
type eventLog struct{ lines []string }

type depthKey struct{}

func (log *eventLog) option() gateway.Option {
	return gateway.WithObserver(gateway.Observer{Call: log.call, Attempt: log.attempt})
}

func (log *eventLog) add(ctx context.Context, format string, args ...any) {
	depth, _ := ctx.Value(depthKey{}).(int)
	log.lines = append(log.lines, strings.Repeat("  ", depth)+fmt.Sprintf(format, args...))
}

func deeper(ctx context.Context) context.Context {
	depth, _ := ctx.Value(depthKey{}).(int)
	return context.WithValue(ctx, depthKey{}, depth+1)
}

func (log *eventLog) call(ctx context.Context, op gateway.Operation) (context.Context, func(gateway.Response, error)) {
	log.add(ctx, "%s %s %s", op.Name, op.Method, op.Path)
	return deeper(ctx), func(res gateway.Response, err error) {
		log.add(ctx, "= %d after %d, recovered %v, kinds %v", res.StatusCode, res.Attempts, res.Recovered, kinds(err))
	}
}

func (log *eventLog) attempt(ctx context.Context, a gateway.Attempt) (context.Context, func(gateway.AttemptResult)) {
	log.add(ctx, "%s %d %s://%s", a.Name, a.Number, a.Scheme, a.Host)
	return deeper(ctx), func(res gateway.AttemptResult) {
		log.add(ctx, "- %d %q %v, retry %v in %s", res.StatusCode, res.RequestID, res.Err, res.Retry, res.Wait)
	}
}

func TestAnObserverSeesTheCallItsAttemptsAndTheRecovery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		made := transactionJSON(orderID, "order-1001", int(pixOrder().Amount))
		var log eventLog
		s := play(fail(errReset), reply(503, "{}", "Retry-After", "3"), reply(422, problem(422), "X-Request-Id", "req-3"),
			reply(200, fmt.Sprintf(`{"success":true,"data":[%s]}`, made)), reply(200, fmt.Sprintf(`{"success":true,"data":%s}`, made)))
		_, err := clientOf(t, s, log.option(), noJitter()).Transactions.Create(t.Context(), pixOrder())
		require.NoError(t, err)
		assert.Equal(t, []string{
			"transactions.create POST /v2/transactions",
			"  transactions.create 1 https://api.gateway.example",
			`  - 0 "" read tcp: connection reset by peer, retry true in 500ms`,
			"  transactions.create 2 https://api.gateway.example",
			`  - 503 "" <nil>, retry true in 3s`,
			"  transactions.create 3 https://api.gateway.example",
			`  - 422 "req-3" <nil>, retry false in 0s`,
			"  transactions.list GET /v2/transactions",
			"    transactions.list 1 https://api.gateway.example",
			`    - 200 "" <nil>, retry false in 0s`,
			"  = 200 after 1, recovered false, kinds []",
			"  transactions.get GET /v2/transactions/{id}",
			"    transactions.get 1 https://api.gateway.example",
			`    - 200 "" <nil>, retry false in 0s`,
			"  = 200 after 1, recovered false, kinds []",
			"= 422 after 3, recovered true, kinds []",
		}, log.lines)
	})
}

func TestAnObserverSeesRequestsRejectedBeforeSending(t *testing.T) {
	t.Parallel()
	var log eventLog
	client := clientOf(t, play(), log.option())
	_, err := client.Transactions.Create(t.Context(), gateway.TransactionParams{})
	require.ErrorIs(t, err, gateway.ErrValidation)
	_, err = client.Transactions.Get(t.Context(), "..")
	require.ErrorIs(t, err, gateway.ErrValidation)
	_, err = client.Transactions.List(t.Context(), gateway.TransactionListParams{Limit: -1})
	require.ErrorIs(t, err, gateway.ErrValidation)
	for _, err := range client.Transactions.All(t.Context(), gateway.TransactionListParams{Limit: -1}) {
		require.ErrorIs(t, err, gateway.ErrValidation)
	}
	require.Error(t, client.Do(t.Context(), http.MethodGet, "no-slash", nil, nil, gateway.Named("reports.get", "/v2/reports/{id}")))
	const rejected = "= 0 after 0, recovered false, kinds [validation]"
	assert.Equal(t, []string{
		"transactions.create POST /v2/transactions", rejected, "transactions.get GET /v2/transactions/{id}", rejected,
		"transactions.list GET /v2/transactions", rejected, "transactions.list GET /v2/transactions", rejected,
		"reports.get GET /v2/reports/{id}", rejected,
	}, log.lines)
}

func TestAnObserverSeesEveryPageAsACall(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	var log eventLog
	client, err := gw.Client().With(log.option())
	require.NoError(t, err)
	for i := range 3 {
		order := pixOrder()
		order.ExternalRef = fmt.Sprintf("order-%d", i)
		_, err = client.Transactions.Create(t.Context(), order)
		require.NoError(t, err)
	}
	log.lines = nil
	all, err := gateway.Collect(client.Transactions.All(t.Context(), gateway.TransactionListParams{Limit: 2}), 0)
	require.NoError(t, err)
	assert.Len(t, all, 3)
	assert.Equal(t, 2, strings.Count(strings.Join(log.lines, "\n"), "transactions.list GET"), log.lines)
}

// The context of an attempt reaches the transport, so that a RoundTripper can inject a
// trace header; the caller's Response is filled as without an observer.
func TestTheTransportGetsTheContextOfTheAttempt(t *testing.T) {
	t.Parallel()
	var depth int
	var log eventLog
	client := clientOf(t, roundTrip(func(r *http.Request) (*http.Response, error) {
		depth, _ = r.Context().Value(depthKey{}).(int)
		return reply(404, problem(404), "X-Request-Id", "req-1")(r)
	}), log.option())
	var res gateway.Response
	_, err := client.Transactions.Get(t.Context(), orderID, gateway.ResponseInto(&res))
	require.ErrorIs(t, err, gateway.ErrNotFound)
	assert.Equal(t, 2, depth, "the context is derived from those of the call and the attempt")
	assert.Equal(t, "req-1", res.RequestID)
}

// An observer may send its data to a third party, so the data contains no credential
// and no URL.
func TestAnObserverGetsNeitherTheCredentialNorTheURL(t *testing.T) {
	t.Parallel()
	var seen []error
	observer := gateway.WithObserver(gateway.Observer{
		Attempt: func(ctx context.Context, _ gateway.Attempt) (context.Context, func(gateway.AttemptResult)) {
			return ctx, func(res gateway.AttemptResult) { seen = append(seen, res.Err) }
		},
	})
	client := clientOver(t, func(r *http.Request) (*http.Response, error) {
		return nil, fmt.Errorf("proxy log: %s %w", r.Header.Get("Authorization"), errReset)
	}, observer)
	_, err := client.Transactions.List(t.Context(), gateway.TransactionListParams{}, gateway.Query("search", "maria@example.com"))
	require.Error(t, err)
	require.Len(t, seen, 3)
	text := fmt.Sprintf("%+v", errors.Join(seen...))
	assert.Contains(t, text, "proxy log")
	assert.NotContains(t, text, testKey)
	assert.NotContains(t, text, "maria")
}

func TestAnObserverMayOmitAnyFunction(t *testing.T) {
	t.Parallel()
	silent := gateway.Observer{
		Call: func(ctx context.Context, _ gateway.Operation) (context.Context, func(gateway.Response, error)) {
			return ctx, nil
		},
		Attempt: func(ctx context.Context, _ gateway.Attempt) (context.Context, func(gateway.AttemptResult)) {
			return ctx, nil
		},
	}
	for _, o := range []gateway.Observer{{}, {Call: silent.Call}, {Attempt: silent.Attempt}, silent} {
		client := clientOf(t, reply(404, problem(404)), gateway.WithObserver(o))
		_, err := client.Transactions.Get(t.Context(), orderID)
		require.ErrorIs(t, err, gateway.ErrNotFound)
	}
}

func TestTheObserverOfAClientIsInheritedAndReplaced(t *testing.T) {
	t.Parallel()
	var first, second eventLog
	client := clientOf(t, reply(404, problem(404)), first.option())
	again, err := client.With(gateway.WithAttemptTimeout(time.Second))
	require.NoError(t, err)
	_, _ = again.Transactions.Get(t.Context(), orderID)
	assert.Len(t, first.lines, 4)
	other, err := client.With(second.option())
	require.NoError(t, err)
	_, _ = other.Transactions.Get(t.Context(), orderID)
	assert.Len(t, first.lines, 4)
	assert.Len(t, second.lines, 4)
}
