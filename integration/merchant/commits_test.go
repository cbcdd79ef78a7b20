package merchant_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/merchant"
)

// loss is what becomes of a COMMIT.
type loss string

const (
	kept        loss = "it is committed"
	lostAfter   loss = "it is committed, and the connection breaks"
	lostBefore  loss = "the connection breaks, and it is not committed"
	endedAfter  loss = "it is committed, and the context ends"
	endedBefore loss = "the context ends, and it is not committed"
	rejected    loss = "the database rejects it"
)

// rejectedCommitError is how a database says that it rolled back.
type rejectedCommitError struct{}

func (rejectedCommitError) Error() string    { return "a deferred constraint is violated" }
func (rejectedCommitError) SQLState() string { return "23514" }

var errBroken = errors.New("unexpected EOF")

// lossy is a driver that loses commits.
type lossy struct {
	database.Driver[*txn]

	mu      sync.Mutex
	commits int
	how     func(n int) loss // of the commit with this number
	end     func()           // the context of the call
	lost    func()           // between the loss and its report
}

// begin counts commits from here on.
func (l *lossy) begin(how func(n int) loss, end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.commits, l.how, l.end, l.lost = 0, how, end, func() {}
}

func (l *lossy) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.commits
}

func (l *lossy) Commit(ctx context.Context, tx *txn) error {
	l.mu.Lock()
	l.commits++
	how, end, lost := l.how(l.commits), l.end, l.lost
	l.mu.Unlock()
	switch how {
	case kept, lostAfter, endedAfter:
		if err := l.Driver.Commit(ctx, tx); err != nil || how == kept {
			return err
		}
	default:
		if err := l.Rollback(ctx, tx); err != nil {
			return err
		}
	}
	switch how {
	case rejected:
		return rejectedCommitError{}
	case endedAfter, endedBefore:
		end()
		return context.Canceled
	default:
		lost()
		return errBroken
	}
}

// requested remembers the requests that change something.
type requested struct {
	next http.RoundTripper
	mu   sync.Mutex
	list []string
}

func (r *requested) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		req = req.Clone(req.Context())
		req.Body = io.NopCloser(bytes.NewReader(body))
		r.mu.Lock()
		r.list = append(r.list, req.Method+" "+req.URL.Path+" "+string(body))
		r.mu.Unlock()
	}
	return r.next.RoundTrip(req)
}

// count returns how many requests have each of some words.
func (r *requested) count(words ...string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
next:
	for _, one := range r.list {
		for _, word := range words {
			if !strings.Contains(one, word) {
				continue next
			}
		}
		n++
	}
	return n
}

// shaky is a shop with a process whose commits get lost. Another process receives webhooks.
type shaky struct {
	*world

	driver *lossy
	gate   *requested
	m      *merchant.Merchant[*txn]
}

func newShaky(t *testing.T, k kind) *shaky {
	t.Helper()
	s := &shaky{world: newWorld(t, k)}
	s.cfg.SendTimeout, s.cfg.SettleAfter = time.Second, 2*time.Second
	s.gate = &requested{next: s.gw.Transport()}
	s.through(s.gate)
	s.cfg.Accounts[0].Links = true
	s.open()
	db := s.connect()
	s.driver = &lossy{Driver: s.kind.on(db, s.pools[db])}
	s.driver.begin(func(int) loss { return kept }, nil)
	var err error
	s.m, err = merchant.Open(s.Context(), s.driver, s.cfg, s.on)
	require.NoError(t, err)
	return s
}

// verb is a call with transactions of its own, about a record that it is made for.
type verb struct {
	name    string
	prepare func(s *shaky, id string) (of string)                                     // by the other process
	call    func(ctx context.Context, s *shaky, id, of string) (whole any, err error) // whole is the value that it returns

	rows     func(s *shaky, id, of string) int // the records that it makes; 1 if it is called once
	requests func(s *shaky, id, of string) int // nil if there is none; exactly 1
	settled  func(s *shaky, id, of string) bool

	reads bool    // it finds out by reading, without another COMMIT, that it is stored
	done  []error // what a second call may say if the first one has done it
	twice bool    // a decision that takes effect elsewhere may be noted twice
}

func noted(s *shaky, _, of string) int {
	return s.rows(`SELECT COUNT(*) FROM gateway_notes WHERE problem = ?`, of)
}

// rows counts rows.
func (s *shaky) rows(query string, args ...any) (n int) {
	s.Helper()
	require.NoError(s, s.db.QueryRowContext(s.Context(), s.sql(query), args...).Scan(&n))
	return n
}

// waiting stores a charge that is not sent.
func (s *shaky) waiting(id string) *merchant.Charge {
	s.Helper()
	var c *merchant.Charge
	s.order(id)
	s.tx(func(tx *txn) (err error) {
		c, err = s.world.m.ChargeTx(s.Context(), tx, pix(id, 900))
		return err
	})
	return c
}

// newMember describes a subscription with a card of its own.
func (s *shaky) newMember(id string) merchant.SubscribeParams {
	p := s.member1(id)
	p.Token = gateway.CardToken("pgct_ok_" + id)
	return p
}

func verbs() []verb {
	paid := func(s *shaky, id string) string { return s.sold(id, 900).ID }
	return []verb{{
		name:    "Charge",
		prepare: func(s *shaky, id string) string { return s.order(id) },
		call: func(ctx context.Context, s *shaky, id, _ string) (any, error) {
			c, err := s.m.Charge(ctx, pix(id, 900))
			if err != nil {
				return nil, err
			}
			return fmt.Sprint(c.State, c.PixCode != "", c.TransactionID != ""), nil
		},
		rows: func(s *shaky, id, _ string) int {
			return s.rows(`SELECT COUNT(*) FROM gateway_charges WHERE subject = ?`, "order/"+id)
		},
		requests: func(s *shaky, id, _ string) int { return s.gate.count("transactions", `"shop-`+id+"-") },
	}, {
		name:    "Refund",
		prepare: paid,
		call: func(ctx context.Context, s *shaky, id, of string) (any, error) {
			r, err := s.m.Refund(ctx, merchant.RefundParams{ID: id, Charge: of, Amount: 300})
			if err != nil {
				return nil, err
			}
			return fmt.Sprint(r.State, r.Amount), nil
		},
		rows: func(s *shaky, id, _ string) int {
			return s.rows(`SELECT COUNT(*) FROM gateway_refunds WHERE id = ?`, id)
		},
		requests: func(s *shaky, id, _ string) int {
			return s.gate.count("/" + s.state(id).Charges[0].TransactionID + "/refund")
		},
		settled: func(s *shaky, id, _ string) bool { return s.state(id).Refunded == 300 },
	}, {
		name: "Payout",
		call: func(ctx context.Context, s *shaky, id, _ string) (any, error) {
			p, err := s.m.Payout(ctx, bill(id, "", 500))
			if err != nil {
				return nil, err
			}
			return fmt.Sprint(p.TransferID != ""), nil
		},
		rows: func(s *shaky, id, _ string) int {
			return s.rows(`SELECT COUNT(*) FROM gateway_payouts WHERE id = ?`, id)
		},
		requests: func(s *shaky, id, _ string) int { return s.gate.count("transfers", `"shop-`+id+`-payout"`) },
	}, {
		name: "Subscribe",
		call: func(ctx context.Context, s *shaky, id, _ string) (any, error) {
			m, err := s.m.Subscribe(ctx, s.newMember(id))
			if err != nil {
				return nil, err
			}
			return fmt.Sprint(m.State, m.SubscriptionID != "", m.PaidUntil.IsZero()), nil
		},
		rows: func(s *shaky, id, _ string) int {
			return s.rows(`SELECT COUNT(*) FROM gateway_subscriptions WHERE id = ?`, id)
		},
		requests: func(s *shaky, id, _ string) int { return s.gate.count("customers", `"shop-`+id+`"`) },
		settled: func(s *shaky, id, _ string) bool {
			m, err := s.world.m.Subscription(s.Context(), id)
			require.NoError(s, err)
			return m.State == "active" && s.gate.count("POST", "/subscriptions ", m.CustomerID) == 1
		},
	}, {
		name: "CancelSubscription",
		prepare: func(s *shaky, id string) string {
			m, err := s.world.m.Subscribe(s.Context(), s.newMember(id))
			require.NoError(s, err)
			require.NotEmpty(s, m.SubscriptionID)
			return m.SubscriptionID
		},
		call: func(ctx context.Context, s *shaky, id, _ string) (any, error) {
			m, err := s.m.CancelSubscription(ctx, id, "")
			if err != nil {
				return nil, err
			}
			return fmt.Sprint(m.State, m.Canceling), nil
		},
		rows: func(s *shaky, id, _ string) int {
			return s.rows(`SELECT COUNT(*) FROM gateway_operations WHERE key = ?`, "shop-"+id+"-1")
		},
		requests: func(s *shaky, _, of string) int { return s.gate.count("/" + of + "/cancel") },
	}, {
		name: "Link",
		call: func(ctx context.Context, s *shaky, id, _ string) (any, error) {
			l, err := s.m.Link(ctx, mug(id, 700))
			if err != nil {
				return nil, err
			}
			return l.URL != "", nil
		},
		rows: func(s *shaky, id, _ string) int { return s.rows(`SELECT COUNT(*) FROM gateway_links WHERE id = ?`, id) },
	}, {
		name:    "Adjust",
		prepare: paid,
		call: func(ctx context.Context, s *shaky, id, _ string) (any, error) {
			return nil, s.m.Adjust(ctx, merchant.AdjustParams{ID: id, Order: id, Amount: -75, By: "Rui", Why: "a fee"})
		},
		rows: func(s *shaky, id, _ string) int {
			return s.rows(`SELECT COUNT(*) FROM gateway_facts WHERE kind = 'adjusted' AND subject = ?`, "order/"+id)
		},
		settled: func(s *shaky, id, _ string) bool { return s.state(id).Adjusted == -75 },
		reads:   true,
	}, {
		name: "Resolve a problem",
		prepare: func(s *shaky, id string) string {
			c := s.charge(pix(s.order(id), 900))
			s.exec(`INSERT INTO gateway_problems (key, account, book, subject, record, kind, text, since) VALUES (?, 'shop', 'shop', ?, ?, 'contested', 'text', 1)`,
				"shop:"+id, "order/"+id, c.ID)
			return fmt.Sprint("problem/", s.rows(`SELECT id FROM gateway_problems WHERE key = ?`, "shop:"+id))
		},
		call: func(ctx context.Context, s *shaky, _, of string) (any, error) {
			return nil, s.m.Resolve(ctx, of, by(merchant.Dismiss))
		},
		rows: noted, reads: true, done: []error{merchant.ErrNotFound},
		settled: func(s *shaky, id, _ string) bool {
			return s.rows(`SELECT COUNT(*) FROM gateway_problems WHERE key = ? AND closed_at IS NOT NULL`, "shop:"+id) == 1
		},
	}, {
		name: "Resolve an underpaid charge",
		prepare: func(s *shaky, id string) string {
			cheap := s.charge(pix(s.order(id), 100))
			s.charge(pix(id, 150))
			require.NoError(s, s.gw.Transactions.Pay(cheap.TransactionID))
			const query = `SELECT COALESCE(MAX(id), 0) FROM gateway_problems WHERE kind = 'underpaid' AND record = ?`
			s.eventually("it is underpaid", func() bool { return s.rows(query, cheap.ID) > 0 })
			return fmt.Sprint("problem/", s.rows(query, cheap.ID))
		},
		call: func(ctx context.Context, s *shaky, _, of string) (any, error) {
			return nil, s.m.Resolve(ctx, of, by(merchant.Accept))
		},
		rows: noted, reads: true, done: []error{merchant.ErrNotFound},
		settled: func(s *shaky, id, _ string) bool { return s.state(id).Settled && s.ships(id) == 1 },
	}, {
		name: "Resolve a callback",
		prepare: func(s *shaky, id string) string {
			s.sold(id, 900)
			query := `SELECT COALESCE(MAX(seq), 0) FROM gateway_facts WHERE subject = ? AND callback = 'paid' AND delivered_at IS NULL`
			s.eventually("the callback waits", func() bool { return s.rows(query, "order/"+id) > 0 })
			seq := s.rows(query, "order/"+id)
			s.exec(`UPDATE gateway_facts SET attempts = 20, error = 'a bug', due_at = due_at + 3000000 WHERE seq = ?`, seq)
			return fmt.Sprint("callback/", seq)
		},
		call: func(ctx context.Context, s *shaky, _, of string) (any, error) {
			return nil, s.m.Resolve(ctx, of, by(merchant.Retry))
		},
		rows: noted, reads: true, done: []error{merchant.ErrNotFound}, twice: true, // the problem is open until the callback succeeds
		settled: func(s *shaky, id, _ string) bool { return s.ships(id) == 1 },
	}, {
		name: "Resolve an event",
		prepare: func(s *shaky, id string) string {
			c := s.sold(id, 900)
			var key string
			s.eventually("the event is dead", func() bool {
				return s.db.QueryRowContext(s.Context(), s.sql(`UPDATE gateway_webhook_events SET state = 4, token = '', reason = 'a bug'
					WHERE kind = 'transaction.paid' AND resource = ? AND state = 3 RETURNING key`), "transaction/"+strings.ToLower(c.TransactionID)).Scan(&key) == nil
			})
			return "event/shop/" + key
		},
		call: func(ctx context.Context, s *shaky, _, of string) (any, error) {
			return nil, s.m.Resolve(ctx, of, by(merchant.Dismiss))
		},
		rows: noted, reads: true, done: []error{merchant.ErrNotFound}, twice: true,
		settled: func(s *shaky, _, of string) bool {
			return s.rows(`SELECT COUNT(*) FROM gateway_webhook_events WHERE state = 4 AND key = ?`, strings.TrimPrefix(of, "event/shop/")) == 0
		},
	}, {
		name: "Resolve a request",
		prepare: func(s *shaky, id string) string {
			c := s.waiting(id)
			s.ambiguous(id)
			return fmt.Sprint("operation/shop/", s.rows(`SELECT id FROM gateway_operations WHERE key = ?`, c.ID))
		},
		call: func(ctx context.Context, s *shaky, _, of string) (any, error) {
			return nil, s.m.Resolve(ctx, of, by(merchant.SendAgain))
		},
		rows: noted, reads: true, done: []error{merchant.ErrNotFound, merchant.ErrState}, twice: true,
		requests: func(s *shaky, id, _ string) int { return s.gate.count("transactions", `"shop-`+id+`-1"`) },
	}, {
		name: "Refresh",
		prepare: func(s *shaky, id string) string {
			c := s.charge(pix(s.order(id), 900))
			require.NoError(s, s.gw.Transactions.Pay(c.TransactionID))
			return c.ID
		},
		call: func(ctx context.Context, s *shaky, _, of string) (any, error) { return nil, s.m.Refresh(ctx, of) },
		rows: func(s *shaky, id, _ string) int {
			return s.rows(`SELECT COUNT(*) FROM gateway_facts WHERE kind = 'paid' AND subject = ?`, "order/"+id)
		},
		settled: func(s *shaky, id, _ string) bool { return s.state(id).Paid == 900 },
	}}
}

// try is a call of a verb whose nth commit gets lost.
type try struct {
	verb   *verb
	id, of string
	what   string
}

// audit checks, once nothing waits, that what a verb was called for is there once.
func (s *shaky) audit(c try) {
	s.Helper()
	s.soon(c.what+": it is settled", func() bool { return c.verb.settled == nil || c.verb.settled(s, c.id, c.of) })
	rows := c.verb.rows(s, c.id, c.of)
	if c.verb.twice {
		assert.Contains(s, []int{1, 2}, rows, c.what)
	} else {
		assert.Equal(s, 1, rows, c.what)
	}
	if c.verb.requests != nil {
		s.soon(c.what+": it is sent", func() bool { return c.verb.requests(s, c.id, c.of) > 0 })
		assert.Equal(s, 1, c.verb.requests(s, c.id, c.of), c.what)
	}
}

// finish runs the other process until nothing waits.
func (s *shaky) finish() {
	s.Helper()
	s.expired()
	s.start()
}

// expired ends the leases of what was claimed without knowing it.
func (s *shaky) expired() {
	s.exec(`UPDATE gateway_operations SET lease_until = lease_until - 7200000 WHERE lease_until IS NOT NULL`)
}

func (v *verb) prepared(s *shaky, id string) string {
	if v.prepare == nil {
		return ""
	}
	return v.prepare(s, id)
}

// Each COMMIT of each verb gets lost in each way: the verb finds out what has become of it, or
// says that it does not know, and nothing happens twice.
func TestALostCommitIsFoundOut(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		for _, v := range verbs() {
			t.Run(k.name+"/"+v.name, func(t *testing.T) {
				t.Parallel()
				s := newShaky(t, k)
				of := v.prepared(s, "N0")
				s.driver.begin(func(int) loss { return kept }, nil)
				want, err := v.call(s.Context(), s, "N0", of)
				require.NoError(t, err)
				commits := s.driver.count()
				require.Positive(t, commits)
				tries := []try{{&v, "N0", of, "nothing is lost"}}
				for nth := 1; nth <= commits; nth++ {
					for i, how := range []loss{lostAfter, lostBefore, endedAfter, endedBefore, rejected} {
						c := try{&v, fmt.Sprintf("N%dX%d", nth, i), "", fmt.Sprintf("commit %d: %s", nth, how)}
						c.of = v.prepared(s, c.id)
						s.loses(c, nth, how, want)
						tries = append(tries, c)
					}
				}
				s.finish()
				for _, c := range tries {
					s.audit(c)
				}
			})
		}
	}
}

// loses calls a verb whose nth commit gets lost, and calls it again if it does not know what
// has become of it.
func (s *shaky) loses(c try, nth int, how loss, want any) {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	s.driver.begin(func(n int) loss {
		if n == nth {
			return how
		}
		return kept
	}, cancel)
	before := c.verb.rows(s, c.id, c.of)
	whole, err := c.verb.call(ctx, s, c.id, c.of)
	s.driver.begin(func(int) loss { return kept }, nil)
	switch {
	case nth > 1 && err == nil: // it was stored, and what could not be done at once is done later
		return
	case nth > 1 && how == rejected && c.verb.twice: // the decision is noted, and the problem is still open
		require.NotErrorIs(s, err, merchant.ErrMaybeStored, c.what)
	case nth > 1:
		require.ErrorIs(s, err, merchant.ErrMaybeStored, c.what)
	case how == lostAfter || how == lostBefore:
		require.NoError(s, err, c.what)
		assert.Equal(s, want, whole, c.what)
		return
	case how == rejected:
		require.ErrorIs(s, err, rejectedCommitError{}, c.what)
		require.NotErrorIs(s, err, merchant.ErrMaybeStored, c.what)
		assert.Equal(s, before, c.verb.rows(s, c.id, c.of), "%s: nothing is stored", c.what)
	default:
		require.ErrorIs(s, err, merchant.ErrMaybeStored, c.what)
	}
	s.again(c)
}

// again calls a verb again after it did not know what has become of its commit.
func (s *shaky) again(c try) {
	s.Helper()
	_, err := c.verb.call(s.Context(), s, c.id, c.of)
	for _, done := range c.verb.done {
		if errors.Is(err, done) {
			return
		}
	}
	require.NoError(s, err, c.what)
}

// The database loses all commits for longer than a verb waits.
func TestACommitThatRemainsLostIsReported(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		for _, how := range []loss{lostAfter, lostBefore} {
			t.Run(k.name+"/"+string(how), func(t *testing.T) {
				t.Parallel()
				s := newShaky(t, k)
				all := verbs()
				tries := make([]try, len(all))
				for i := range all {
					c := try{&all[i], fmt.Sprint("P", i), "", all[i].name}
					c.of = c.verb.prepared(s, c.id)
					tries[i] = c
				}
				s.driver.begin(func(int) loss { return how }, nil)
				began := time.Now()
				var calls sync.WaitGroup
				for _, c := range tries {
					calls.Go(func() {
						_, err := c.verb.call(s.Context(), s, c.id, c.of)
						if how == lostAfter && c.verb.reads {
							assert.NoError(t, err, c.what)
							return
						}
						if assert.ErrorIs(t, err, merchant.ErrMaybeStored, c.what) {
							assert.ErrorIs(t, err, errBroken, c.what)
						}
					})
				}
				calls.Wait()
				assert.Less(t, time.Since(began), 30*time.Second)
				s.driver.begin(func(int) loss { return kept }, nil)
				for _, c := range tries {
					s.again(c)
				}
				s.finish()
				for _, c := range tries {
					s.audit(c)
				}
			})
		}
	}
}

// Between the loss and the repeat of its call, Run has sent the charge, and the card was
// refused: the call returns this charge, and does not try the card again.
func TestALostChargeThatWasRefusedIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			s := newShaky(t, k)
			p := card(s.order("R1"), 900)
			p.Token = "pgct_refused_1"
			s.driver.begin(func(n int) loss {
				if n == 1 {
					return lostAfter
				}
				return kept
			}, nil)
			s.driver.lost = func() { // it takes so long that the lease ends
				s.exec(`UPDATE gateway_operations SET lease_until = 1`)
				c, err := s.world.m.Send(s.Context(), "shop-R1-1")
				require.NoError(t, err)
				assert.Equal(t, merchant.Failed, c.State)
			}
			c, err := s.m.Charge(s.Context(), p)
			require.NoError(t, err)
			assert.Equal(t, "shop-R1-1", c.ID)
			assert.Equal(t, merchant.Failed, c.State)
			assert.Len(t, s.state("R1").Charges, 1)
			assert.Equal(t, 1, s.gate.count("transactions", "shop-R1-"))

			c, err = s.m.Charge(s.Context(), p)
			require.NoError(t, err)
			assert.Equal(t, "shop-R1-2", c.ID, "another call is another attempt")
		})
	}
}

// As with a charge: a cancellation that was rejected meanwhile is not sent again.
func TestALostCancellationThatWasRejectedIsNotSentAgain(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			s := newShaky(t, k)
			m, err := s.world.m.Subscribe(s.Context(), s.newMember("S1"))
			require.NoError(t, err)
			s.driver.begin(func(n int) loss {
				if n == 1 {
					return lostAfter
				}
				return kept
			}, nil)
			s.driver.lost = func() { // the gateway has rejected it, and its outcome is stored
				s.exec(`UPDATE gateway_operations SET state = 'done' WHERE key = 'shop-S1-1'`)
				s.records("gateway_subscriptions", "S1", func(r map[string]any) { delete(r, "Canceling") })
			}
			_, err = s.m.CancelSubscription(s.Context(), "S1", "")
			require.NoError(t, err)
			assert.Equal(t, 1, s.rows(`SELECT COUNT(*) FROM gateway_operations WHERE kind = 'subscriptions.cancel'`))
			assert.Zero(t, s.gate.count("/"+m.SubscriptionID+"/cancel"))
			_, err = s.m.CancelSubscription(s.Context(), "S1", "")
			require.NoError(t, err)
			assert.Equal(t, 1, s.gate.count("/"+m.SubscriptionID+"/cancel"), "another call is another request")
		})
	}
}

// What the records say decides about the repeat, not what was known before it.
func TestAVerdictAfterALostCommitIsTrue(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			s := newShaky(t, k)
			s.order("V1")
			s.driver.begin(func(n int) loss {
				if n == 1 {
					return lostBefore
				}
				return kept
			}, nil)
			s.driver.lost = func() { s.tx(func(tx *txn) error { return s.world.m.CloseOrderTx(s.Context(), tx, "V1") }) }
			_, err := s.m.Charge(s.Context(), pix("V1", 900))
			require.ErrorIs(t, err, merchant.ErrState)
			require.NotErrorIs(t, err, merchant.ErrMaybeStored)
			assert.Empty(t, s.state("V1").Charges)
		})
	}
}
