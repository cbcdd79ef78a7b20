package operations_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/operations"
)

// front is a proxy in front of the gateway that replaces the response to each
// refund, with or without passing the request on.
type front struct {
	next   http.RoundTripper
	status int
	body   string
	pass   bool
	healed atomic.Bool
	writes atomic.Int32
}

func (f *front) RoundTrip(req *http.Request) (*http.Response, error) {
	op, _ := gateway.OperationFromContext(req.Context())
	if op.Name != "transactions.refund" || f.healed.Load() {
		return f.next.RoundTrip(req)
	}
	f.writes.Add(1)
	if f.pass {
		resp, err := f.next.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	header := http.Header{"Content-Type": {"application/problem+json"}}
	if !strings.HasPrefix(f.body, "{") {
		header.Set("Content-Type", "text/html")
	}
	if f.status >= 300 && f.status < 400 {
		header.Set("Location", "https://login.example/")
	}
	return &http.Response{
		StatusCode: f.status, Status: fmt.Sprint(f.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(strings.NewReader(f.body)), ContentLength: int64(len(f.body)), Request: req,
	}, nil
}

const page = "<html><body>default backend - 404</body></html>"

func problem(status int) string {
	return fmt.Sprintf(`{"type":"about:blank","title":"%s","status":%d,"code":"FROM_A_PROXY"}`, http.StatusText(status), status)
}

// frontFates are what something in front of the gateway sends after the gateway
// applied a refund.
func frontFates() map[string]*front {
	fates := make(map[string]*front)
	for _, status := range []int{301, 302, 303, 304, 307, 308, 400, 401, 402, 403, 404, 405, 406, 407, 408, 409, 410, 412, 413, 415, 422, 425, 429, 431, 451, 499, 500, 502, 503, 504, 520, 530} {
		fates[fmt.Sprintf("%d with a page", status)] = &front{status: status, body: page}
		fates[fmt.Sprintf("%d without a body", status)] = &front{status: status}
		if status >= 400 {
			fates[fmt.Sprintf("%d with a problem", status)] = &front{status: status, body: problem(status)}
			fates[fmt.Sprintf("%d with a proxy's JSON", status)] = &front{status: status, body: `{"message":"no Route matched with those values"}`}
		}
	}
	for _, status := range []int{400, 404, 408, 409, 422, 429, 500, 504} {
		fates[fmt.Sprintf("200 with %d inside", status)] = &front{status: 200, body: fmt.Sprintf(`{"success":false,"status":%d,"message":"no"}`, status)}
	}
	fates["200 with a failure"] = &front{status: 200, body: `{"success":false}`}
	fates["200 with a page"] = &front{status: 200, body: page}
	fates["409 for a key in progress"] = &front{status: 409, body: `{"code":"IDEMPOTENCY_KEY_IN_PROGRESS"}`}
	fates["409 for a key that is locked"] = &front{status: 409, body: `{"code":"idempotency_key_locked"}`}
	return fates
}

// The gateway applies each refund, and a proxy replaces every response. Two accounts
// make the same refunds, with the same keys, in one process.
func TestAnAppliedRefundIsNotRepeatedWhateverAProxySays(t *testing.T) {
	t.Parallel()
	for _, lifetime := range []time.Duration{0, time.Hour} {
		t.Run(fmt.Sprintf("keys %t", lifetime > 0), func(t *testing.T) {
			t.Parallel()
			dialect := mockserver.Document
			if lifetime > 0 {
				dialect = mockserver.Live
			}
			w := open(t, onSQLite, func(c *operations.Config) {
				c.KeyLifetime, c.MaxSends, c.MaxResends = lifetime, 4, 1
				c.SendTimeout, c.SettleAfter = 5*time.Second, 10*time.Second
			}, mockserver.WithDialect(dialect))
			accounts := []*appliedRefunds{{world: w}, {world: w.beside("b")}}
			for _, a := range accounts {
				a.prepare()
			}
			w.start(accounts[0].outbox, accounts[1].outbox)
			for _, a := range accounts {
				a.check()
			}
		})
	}
}

// appliedRefunds are refunds of one account, each with its own fate.
type appliedRefunds struct {
	*world

	fates   map[string]*front
	charges map[string]string // the transactions, by fate
}

func (a *appliedRefunds) prepare() {
	a.Helper()
	a.fates, a.charges = frontFates(), make(map[string]string)
	byCharge := make(map[string]http.RoundTripper)
	var ops []operations.Operation
	for name, f := range a.fates {
		f.pass, f.next = true, a.gw.Transport()
		a.charges[name] = a.paid(1000).ID
		byCharge[a.charges[name]] = f
		ops = append(ops, operations.Refund{Key: name, TransactionID: a.charges[name], Amount: 300})
	}
	a.through(roundTripper(func(req *http.Request) (*http.Response, error) {
		return byCharge[strings.Split(req.URL.Path, "/")[3]].RoundTrip(req)
	}))
	a.add(ops...)
}

func (a *appliedRefunds) check() {
	a.Helper()
	for name, f := range a.fates {
		a.reaches(name, operations.Done)
		value, rejection := a.result(name)
		assert.Equal(a, "300", value, name)
		assert.Empty(a, rejection, name)
		assert.Equal(a, int64(300), a.refunded(a.charges[name]), name)
		assert.LessOrEqual(a, f.writes.Load(), int32(4), name)
	}
}

// A proxy rejects every refund before it reaches the gateway. The outbox stops
// after a number of sends, and a person decides.
func TestSendsAreBounded(t *testing.T) {
	t.Parallel()
	for _, lifetime := range []time.Duration{0, time.Hour} {
		t.Run(fmt.Sprintf("keys %t", lifetime > 0), func(t *testing.T) {
			t.Parallel()
			w := open(t, onSQLite, func(c *operations.Config) { c.KeyLifetime, c.MaxSends, c.MaxResends = lifetime, 5, 2 })
			charge := w.paid(1000)
			f := &front{next: w.gw.Transport(), status: 429, body: problem(429)}
			w.through(f)
			w.start(w.outbox)
			w.add(operations.Refund{Key: "refund", TransactionID: charge.ID, Amount: 300})
			e := w.reaches("refund", operations.Ambiguous)
			assert.Contains(t, e.Ambiguity, "Config.MaxSends")
			want := 3 // the first one, and MaxResends
			if lifetime > 0 {
				want = 5
			}
			assert.Equal(t, want, e.Sends)
			assert.Equal(t, int32(want), f.writes.Load())
			w.saw(operations.EventSendLimit)
			assert.Zero(t, w.refunded(charge.ID))

			f.healed.Store(true)
			require.NoError(t, w.outbox.Resolve(t.Context(), e.ID, operations.Resolution{Decision: operations.SendAgain, By: "Rui: the proxy is fixed"}))
			w.reaches("refund", operations.Done)
			assert.Equal(t, int64(300), w.refunded(charge.ID))
		})
	}
}

// An ingress that lost its backend does not reject operations, whether it
// replaces the response to the request or to the read before it.
func TestAPageOfAProxyRejectsNothing(t *testing.T) {
	t.Parallel()
	w := open(t, onSQLite, nil)
	charge := w.paid(1000)
	require.NoError(t, w.gw.Faults.Add(
		mockserver.Status(404).NoBody().On("transactions.get").Times(5),
		mockserver.Status(404).NoBody().On("transactions.create").Times(5),
		mockserver.Status(404).NoBody().On("transfers.create").Times(5),
	))
	w.start(w.outbox)
	w.add(
		operations.Refund{Key: "refund", TransactionID: charge.ID, Amount: 300},
		operations.CreateTransaction(order("order-1", 500)),
		payout("payout-1", 900),
	)
	for _, key := range []string{"refund", "order-1", "payout-1"} {
		w.reaches(key, operations.Done)
		_, rejection := w.result(key)
		assert.Empty(t, rejection, key)
	}
}

// The gateway applies a refund after reads showed several times that it was not
// applied. The amount that it moved does not become the new state before.
func TestARefundThatIsAppliedTooLateIsNotMadeTwice(t *testing.T) {
	t.Parallel()
	w := open(t, onSQLite, nil)
	charge := w.paid(1000)
	var reads, writes atomic.Int32
	w.through(roundTripper(func(req *http.Request) (*http.Response, error) {
		switch op, _ := gateway.OperationFromContext(req.Context()); op.Name {
		case "transactions.refund":
			if writes.Add(1) == 1 {
				return nil, io.ErrUnexpectedEOF
			}
		case "transactions.get":
			if reads.Add(1) == 5 { // one before the request, three after it, and the one before the next request
				if _, err := w.client().Transactions.Refund(context.WithoutCancel(req.Context()), charge.ID, gateway.RefundParams{Amount: 300}); err != nil {
					t.Error(err)
				}
			}
		}
		return w.gw.Transport().RoundTrip(req)
	}))
	w.start(w.outbox)
	w.add(operations.Refund{Key: "refund", TransactionID: charge.ID, Amount: 300})
	w.reaches("refund", operations.Done)
	value, _ := w.result("refund")
	assert.Equal(t, "300", value)
	assert.Equal(t, int64(300), w.refunded(charge.ID))
	assert.GreaterOrEqual(t, reads.Load(), int32(5))
}
