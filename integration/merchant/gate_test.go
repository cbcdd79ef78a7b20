package merchant_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/merchant"
)

// outage is a transport whose gateway fails for a while, and counts what is sent.
type outage struct {
	next http.RoundTripper

	mu   sync.Mutex
	fail failure
	vain map[string]int // requests in vain, by operation
	refs []string       // of the creates that passed, in order
}

func (w *world) outage() *outage {
	o := &outage{next: w.gw.Transport(), vain: make(map[string]int)}
	w.through(o)
	return o
}

func (o *outage) RoundTrip(r *http.Request) (*http.Response, error) {
	op, _ := gateway.OperationFromContext(r.Context())
	o.mu.Lock()
	fail := o.fail
	o.mu.Unlock()
	if fail != nil {
		res, err := fail(op.Name, r)
		if res != nil || err != nil {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.vain[op.Name]++
			return res, err
		}
	}
	if op.Name == "transactions.create" {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		var params struct {
			Ref string `json:"external_ref"`
		}
		if err := json.Unmarshal(body, &params); err != nil {
			return nil, err
		}
		o.mu.Lock()
		o.refs = append(o.refs, params.Ref)
		o.mu.Unlock()
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	return o.next.RoundTrip(r)
}

// set changes what fails; nil is nothing.
func (o *outage) set(fail failure) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fail = fail
}

// wasted returns how many requests were in vain.
func (o *outage) wasted() (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, of := range o.vain {
		n += of
	}
	return n
}

// of returns how many requests of an operation were in vain.
func (o *outage) of(op string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.vain[op]
}

func (o *outage) created() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.refs...)
}

// failure responds to a request. If it returns nil, nil, the gateway does.
type failure func(op string, r *http.Request) (*http.Response, error)

// status responds to requests with a status. Without names those are all.
func status(code int, names ...string) failure {
	return func(op string, r *http.Request) (*http.Response, error) {
		if len(names) > 0 && !strings.Contains(strings.Join(names, " "), op) {
			return nil, nil
		}
		return &http.Response{
			StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
			Body: io.NopCloser(strings.NewReader(fmt.Sprintf(`{"error":"down","message":"down","status":%d}`, code))),
		}, nil
	}
}

func reset(string, *http.Request) (*http.Response, error) {
	return nil, errors.New("connection reset by peer")
}

// store stores a charge for Run to send.
func (w *world) store(order string) {
	w.Helper()
	w.order(order)
	require.NoError(w, w.in(w.db, sql.LevelDefault, func(tx *txn) error {
		_, err := w.m.ChargeTx(w.Context(), tx, pix(order, 1000))
		return err
	}))
}

// down waits until the account's gate is closed for more than one failure.
func (w *world) down(account string, code int) *merchant.Outage {
	w.Helper()
	var is *merchant.Outage
	w.eventually("the gate is closed", func() bool {
		h, err := w.m.Health(w.Context())
		require.NoError(w, err)
		for _, a := range h.Accounts {
			if a.Name == account {
				is = a.Outage
			}
		}
		return is != nil && is.Status == code
	})
	return is
}

// openAgain waits until no gate is closed.
func (w *world) openAgain() {
	w.Helper()
	w.eventually("the gates are open", func() bool {
		h, err := w.m.Health(w.Context())
		require.NoError(w, err)
		for _, a := range h.Accounts {
			if a.Outage != nil {
				return false
			}
		}
		return true
	})
}

// A gateway that is down gets a few probes, whatever waits: comparisons, events and operations.
// Nothing of that is counted against them, and all is done soon after it is back.
func TestAnOutageCostsFewRequests(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]failure{
		"503": status(503), "429": status(429), "401": status(401), "reset": reset,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(w *world) {
				const each = 12
				o := w.outage()
				var log lockedBuffer
				w.cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
				w.open()
				var pending []string
				for i := range each {
					c := w.charge(pix(w.order(fmt.Sprint("P", i)), 1000))
					require.NoError(w, w.gw.Transactions.Pay(c.TransactionID))
					c = w.charge(pix(w.order(fmt.Sprint("E", i)), 1000))
					pending = append(pending, c.TransactionID)
				}
				require.NoError(w, w.gw.Wait(w.Context()))
				w.eventually("all are paid", func() bool { return w.count(`SELECT COUNT(*) FROM gateway_charges WHERE state = 'paid'`) == each })
				w.exec(`UPDATE gateway_checks SET check_at = 0, lease_until = NULL`)
				o.set(fail)
				began := time.Now()
				for _, id := range pending {
					require.NoError(w, w.gw.Transactions.Pay(id))
				}
				for i := range each {
					w.store(fmt.Sprint("O", i))
				}
				w.start()
				code := map[string]int{"503": 503, "429": 429, "401": 401}[name]
				is := w.down("shop", code)
				assert.WithinRange(w, is.Since, began, time.Now())
				w.eventually("some probes have failed", func() bool { return o.wasted() >= 6 })
				assert.LessOrEqual(w, o.wasted(), 9+int(time.Since(began)/time.Second))
				assert.LessOrEqual(w, w.count(`SELECT COALESCE(MAX(attempts), 0) FROM gateway_webhook_events`), 4)
				w.eventually("a probe has failed", func() bool { return strings.Contains(log.String(), "the account's requests are paused") })

				o.set(nil)
				w.eventually("all is done", func() bool {
					return w.count(`SELECT COUNT(*) FROM gateway_charges WHERE state = 'paid'`) == 2*each &&
						w.count(`SELECT COUNT(*) FROM gateway_operations WHERE state <> 'done'`) == 0 &&
						w.count(`SELECT COUNT(*) FROM gateway_checks WHERE check_at = 0`) == 0
				})
				w.openAgain()
				assert.Len(w, o.created(), 3*each, "each is created once")
				assert.Zero(w, w.count(`SELECT COUNT(*) FROM gateway_problems`))
				assert.Equal(w, 1, strings.Count(log.String(), "the account's requests are paused"))
				assert.Equal(w, 1, strings.Count(log.String(), "the account's requests go on"))
			})
		})
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A buyer who waits probes while the gate is closed: when the gateway is back, the charge is sent
// at once, and opens the gate for the others.
func TestACallerOpensTheGate(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		o := w.outage()
		w.open()
		w.start()
		o.set(status(503))
		c := w.charge(pix(w.order("A1"), 1000))
		assert.Equal(w, merchant.Unknown, c.State, "the outcome of the gateway's response")
		w.down("shop", 503)
		w.eventually("the pauses are long", func() bool { return o.wasted() >= 4 })
		o.set(nil)
		c = w.charge(pix(w.order("A2"), 1000))
		assert.Equal(w, merchant.Pending, c.State)
		w.openAgain()
		w.eventually("A1 is sent too", func() bool { return w.count(`SELECT COUNT(*) FROM gateway_charges WHERE state = 'pending'`) == 2 })
		assert.Len(w, o.created(), 2)
	})
}

// The newest charge comes first, and the oldest ones in turn with it: a buyer may be waiting for
// the one, and has waited for the others. The gate is closed before they are stored: what has been
// tried waits for its next attempt.
func TestFreshChargesComeBeforeABacklog(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		o := w.outage()
		w.cfg.Workers = 2
		w.open()
		o.set(status(503))
		w.store("FIRST")
		w.start()
		w.down("shop", 503)
		const backlog = 40
		for i := range backlog {
			w.store(fmt.Sprintf("O%02d", i))
		}
		w.store("FRESH")
		o.set(nil)
		w.eventually("all are sent", func() bool { return w.count(`SELECT COUNT(*) FROM gateway_operations WHERE state <> 'done'`) == 0 })
		refs := o.created()
		require.Len(w, refs, backlog+2)
		assert.Contains(w, refs[:backlog/3], "shop-FRESH-1")
		var old int
		for _, ref := range refs[:backlog/2] {
			if ref >= "shop-O00" && ref < "shop-O20" {
				old++
			}
		}
		assert.GreaterOrEqual(w, old, 5, "old ones don't starve: %v", refs)
	})
}

// Payouts alone fail: charges are sent.
func TestOneEndpointThatFailsPausesOnlyItself(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		o := w.outage()
		w.open()
		w.start()
		o.set(status(503, "transfers.create"))
		for i := range 5 {
			w.pay(bill(fmt.Sprint("P", i), "", 100))
		}
		for i := range 20 {
			w.store(fmt.Sprint("A", i))
		}
		w.eventually("charges are sent", func() bool { return w.count(`SELECT COUNT(*) FROM gateway_charges WHERE state = 'pending'`) == 20 })
	})
}

// Two processes have a gate each, and share what is claimed: one that can't reach the gateway
// leaves the work to the other.
func TestTheOtherProcessReachesTheGateway(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		o := w.outage()
		w.open()
		o.set(reset)
		w.start()
		for i := range 10 {
			w.store(fmt.Sprint("O", i))
		}
		w.down("shop", 0)
		other := w.cfg
		other.Accounts = append([]merchant.Account(nil), w.cfg.Accounts...)
		other.Accounts[0].Client = w.gw.Account(w.gw.Key()).Client(gateway.WithAccount("shop"))
		m, err := w.openOn(w.connect(), other)
		require.NoError(w, err)
		ctx, cancel := context.WithCancel(w.Context())
		ended := make(chan error, 1)
		go func() { ended <- m.Run(ctx) }()
		w.eventually("all are sent", func() bool { return w.count(`SELECT COUNT(*) FROM gateway_charges WHERE state = 'pending'`) == 10 })
		cancel()
		require.NoError(w, <-ended)
		assert.Empty(w, o.created())
	})
}

// An account whose gateway is down delays no other one.
func TestAClosedGateDelaysNoOtherAccount(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.cfg.Accounts = []merchant.Account{w.account("shop", w.gw.Key(), secrets["shop"]), w.account("other", "sk_test_other", secrets["other"])}
		o := w.outage()
		w.open()
		w.rotate(secrets)
		o.set(status(503))
		w.start()
		w.order("A1")
		require.NoError(w, w.in(w.db, sql.LevelDefault, func(tx *txn) error {
			_, err := w.m.ChargeTx(w.Context(), tx, on("shop", pix("A1", 1000)))
			return err
		}))
		w.down("shop", 503)
		for i := range 5 {
			order := w.order(fmt.Sprint("B", i))
			c := w.charge(on("other", pix(order, 1000)))
			require.NoError(w, w.gw.Account("sk_test_other").Transactions.Pay(c.TransactionID))
			w.reaches(order, "paid "+c.ID+" 1000")
		}
		h, err := w.m.Health(w.Context())
		require.NoError(w, err)
		for _, a := range h.Accounts {
			assert.Equal(w, a.Name == "shop", a.Outage != nil, a.Name)
		}
		o.set(nil)
		w.eventually("A1 is sent", func() bool { return len(o.created()) == 1 })
	})
}

// unpaid makes n charges that are paid at the gateway, whose webhooks are lost and whose
// comparisons are due.
func (w *world) unpaid(n int) (ids []string) {
	w.Helper()
	w.gw.Webhooks.Hold()
	for i := range n {
		c := w.charge(pix(w.order(fmt.Sprint("U", i)), 1000))
		require.NoError(w, w.gw.Transactions.Pay(c.TransactionID))
		ids = append(ids, c.TransactionID)
	}
	w.exec(`UPDATE gateway_checks SET check_at = 0`)
	return ids
}

// postponed counts the comparisons that are due in a minute or so.
func (w *world) postponed() int {
	w.Helper()
	return w.count(fmt.Sprintf(`SELECT COUNT(*) FROM gateway_checks WHERE check_at > %d`, time.Now().Add(45*time.Second).UnixMilli()))
}

// What was being compared when an outage began is compared soon after it has ended.
func TestAnOutagePostponesNoComparison(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		o := w.outage()
		w.open()
		w.unpaid(6)
		o.set(status(503))
		w.start()
		w.eventually("some have failed", func() bool { return o.wasted() >= 3 })
		assert.Zero(w, w.postponed())
		o.set(nil)
		w.eventually("all are compared", func() bool { return w.count(`SELECT COUNT(*) FROM gateway_charges WHERE state = 'paid'`) == 6 })
	})
}

// A charge that the gateway alone can't show is postponed, so it does not pause its account
// again and again.
func TestAChargeThatCannotBeReadIsPostponed(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		o := w.outage()
		w.open()
		ids := w.unpaid(6)
		o.set(func(op string, r *http.Request) (*http.Response, error) {
			if !strings.HasSuffix(r.URL.Path, ids[0]) {
				return nil, nil
			}
			return status(http.StatusInternalServerError)(op, r)
		})
		w.start()
		w.eventually("the others are compared", func() bool { return w.count(`SELECT COUNT(*) FROM gateway_charges WHERE state = 'paid'`) == 5 })
		w.eventually("it is postponed", func() bool { return w.postponed() >= 1 })
		o.set(nil)
		w.openAgain()
	})
}
