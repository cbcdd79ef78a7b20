package merchant_test

import (
	"context"
	"errors"
	"hash/fnv"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/merchant"
)

// mortal is a process that dies at one of its points, which are before and after each
// commit and each request to the gateway: from then on its statements and requests fail.
type mortal struct {
	point string // "" if it lives
	nth   int

	mu   sync.Mutex
	seen map[string]int
	dead bool
}

var errDead = errors.New("the process is dead")

// reach fails if the process is dead, or dies at the point.
func (p *mortal) reach(point string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return errDead
	}
	if point == "" {
		return nil
	}
	p.seen[point]++
	if p.dead = point == p.point && p.seen[point] == p.nth; p.dead {
		return errDead
	}
	return nil
}

func (p *mortal) died() bool { return p.reach("") != nil }

var anyID = regexp.MustCompile(`/[0-9a-f-]{36}|/(cus|sub)_[A-Za-z0-9]+`)

// RoundTrip sends a request of the process.
func (p *mortal) transport(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		what := r.Method + " " + anyID.ReplaceAllString(r.URL.Path, "/{id}")
		if err := p.reach("before " + what); err != nil {
			return nil, err
		}
		resp, err := next.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		if err := p.reach("after " + what); err != nil {
			_ = resp.Body.Close()
			return nil, err
		}
		return resp, nil
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// fate is where a process dies.
type fate struct {
	point string
	nth   int
}

// succession is a shop of which each process dies and another one takes over.
type succession struct {
	*world

	deaths []fate
	died   int
	end    func() // ends the process
	old    string // the transaction of the order that is paid twice

	mu   sync.Mutex
	self *mortal
	hook http.Handler // of the process
}

func newSuccession(t *testing.T, k kind, deaths ...fate) *succession {
	t.Helper()
	s := &succession{world: newWorld(t, k), deaths: deaths, end: func() {}}
	s.on.PaidAgain = func(ctx context.Context, tx *txn, c *merchant.Charge) error {
		return s.called(ctx, tx, "paid_again", c.Order, c.ID, c.Paid)
	}
	s.cfg.SecondPayment = merchant.RefundSecondPayment
	s.on.Subscription = func(ctx context.Context, tx *txn, sub *merchant.Subscription) error {
		return s.called(ctx, tx, "subscription "+string(sub.Event), sub.ID, sub.ID, sub.Amount)
	}
	s.cfg.SendTimeout, s.cfg.SettleAfter = 500*time.Millisecond, time.Second
	s.gw.Webhooks.Send(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		hook := s.hook
		s.mu.Unlock()
		hook.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { s.end() })
	s.next()
	return s
}

// next starts the next process, after the leases of the last one have expired.
func (s *succession) next() {
	s.Helper()
	s.end()
	for {
		self := &mortal{seen: make(map[string]int)}
		if s.died < len(s.deaths) {
			self.point, self.nth = s.deaths[s.died].point, s.deaths[s.died].nth
		}
		tap, db := s.tappedHere(nil)
		tap.reach = self.reach
		cfg := s.cfg
		cfg.Accounts = slices.Clone(cfg.Accounts)
		cfg.Accounts[0].Client = s.gw.Account(s.gw.Key()).Client(gateway.WithAccount("shop"), gateway.WithMaxAttempts(1),
			gateway.WithHTTPClient(&http.Client{Transport: self.transport(s.gw.Transport())}))
		m, err := s.openOn(db, cfg)
		if self.died() {
			s.close(db)
			s.died++
			continue
		}
		require.NoError(s, err)
		if s.died > 0 {
			s.expire()
		}
		ctx, cancel := context.WithCancel(context.WithoutCancel(s.Context()))
		ended := make(chan error, 1)
		go func() { ended <- m.Run(ctx) }()
		s.end = sync.OnceFunc(func() {
			cancel()
			<-ended
			s.close(db)
		})
		s.m = m
		s.mu.Lock()
		s.self, s.hook = self, m.Webhook("shop")
		s.mu.Unlock()
		return
	}
}

// expire ends the leases of a dead process.
func (s *succession) expire() {
	s.Helper()
	const hours = `7200000`
	s.exec(`UPDATE gateway_operations SET lease_until = lease_until - ` + hours + ` WHERE lease_until IS NOT NULL`)
	s.exec(`UPDATE gateway_webhook_events SET lease = lease - ` + hours + ` WHERE state = 2`)
}

// until does a step until it succeeds, in whichever process lives.
func (s *succession) until(what string, step func() error) {
	s.Helper()
	var err error
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		s.mu.Lock()
		self := s.self
		s.mu.Unlock()
		if self.died() {
			s.died++
			s.next()
			// What the dead process refused is not delivered again soon.
			if err = s.m.Reconcile(s.Context()); err != nil {
				continue
			}
		}
		if err = step(); err == nil {
			return
		}
	}
	require.Fail(s, "timeout: "+what, "%v", err)
}

// live is the life of the shop: two orders, of which one is paid twice, a refund, a payout
// and a subscription.
func (s *succession) live() {
	s.Helper()
	charge := func(p merchant.ChargeParams) (id string) {
		s.Helper()
		s.until("the charge is made", func() error {
			c, err := s.m.Charge(s.Context(), p)
			if err != nil {
				return err
			}
			id = c.TransactionID
			return unless(id != "", string(c.State))
		})
		return id
	}
	first := charge(pix(s.order("A1"), 1990))
	s.old = charge(pix(s.order("A2"), 5000))
	second := charge(voucher("A2", 5000))
	for _, id := range []string{first, second} {
		require.NoError(s, s.gw.Transactions.Pay(id))
	}
	for _, order := range []string{"A1", "A2"} {
		s.until("the order is paid", func() error { return unless(s.ships(order) > 0, "not shipped") })
	}
	require.NoError(s, s.gw.Transactions.Pay(s.old))
	s.until("the refund is done", func() error {
		r, err := s.m.Refund(s.Context(), merchant.RefundParams{ID: "r1", Order: "A1", UpTo: 500})
		if err != nil {
			return err
		}
		return unless(r.State == merchant.Done, string(r.State))
	})
	s.until("the payout is made", func() error {
		p, err := s.m.Payout(s.Context(), bill("p1", "A1", 300))
		if err != nil {
			return err
		}
		return unless(p.TransferID != "", string(p.State))
	})
	s.until("the subscription is active", func() error {
		m, err := s.m.Subscribe(s.Context(), s.member1("M1"))
		if err != nil {
			return err
		}
		return unless(!m.PaidUntil.IsZero(), string(m.State))
	})
	s.until("nothing waits", func() error {
		ctx, cancel := context.WithTimeout(s.Context(), 5*time.Second)
		defer cancel()
		return errors.Join(s.m.Reconcile(ctx), s.m.Idle(ctx), s.self.reach(""))
	})
}

// voucher describes a charge by voucher.
func voucher(order string, amount int64) merchant.ChargeParams {
	p := pix(order, amount)
	p.Method = gateway.Voucher
	p.Buyer.Address = &gateway.Address{Street: "Rua das Laranjeiras", City: "Rio de Janeiro", ZipCode: "22240003", Country: gateway.Brazil}
	return p
}

func unless(ok bool, state string) error {
	if ok {
		return nil
	}
	return errors.New(state)
}

// audit checks that nothing was lost or happened twice.
func (s *succession) audit() {
	s.Helper()
	s.deaths = nil
	s.next() // a process that lives
	transactions, err := gateway.Collect(s.gw.Client().Transactions.All(s.Context(), gateway.TransactionListParams{}), 100)
	require.NoError(s, err)
	assert.Len(s, transactions, 4, "two charges of A2, and the subscription's")
	refunded := int64(0)
	for _, t := range transactions {
		refunded += t.RefundedAmount
	}
	assert.Equal(s, int64(5500), refunded)
	assert.Len(s, s.transfers(), 1)
	for order, calls := range map[string][]string{
		"A1": {"paid shop-A1-1 1990", "refunded r1 500"},
		"A2": {"paid shop-A2-2 5000", "paid_again shop-A2-1 5000", "refunded again-" + s.old + "-5000 5000"},
		"M1": {"subscription started M1 2990"},
	} {
		assert.Equal(s, calls, s.calls(order))
	}
	assert.Equal(s, 1, s.ships("A1"))
	assert.Equal(s, 1, s.ships("A2"))
	assert.Equal(s, int64(300), s.state("A1").PaidOut)
	assert.Equal(s, int64(5000), s.state("A2").Left())
	_, differences, err := s.m.CheckMonth(s.Context(), "", time.Now().UTC().Format("2006-01"))
	require.NoError(s, err)
	assert.Empty(s, differences)
	problems, err := s.m.Problems(s.Context())
	require.NoError(s, err)
	assert.Empty(s, problems)
}

// A process dies before or after each of its commits and requests, and another one takes
// over; with FULL_SIZE that one dies too. Without it a part of the deaths is tried.
//
//	FULL_SIZE=1 integration/run -run TestAProcessMayDieAnywhere -v ./merchant
func TestAProcessMayDieAnywhere(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			whole := newSuccession(t, k)
			whole.live()
			whole.end()
			seen := whole.self.seen
			whole.audit()
			whole.end()
			var all []fate
			for _, point := range slices.Sorted(maps.Keys(seen)) {
				for nth := range min(seen[point], 3) {
					all = append(all, fate{point, nth + 1})
				}
			}
			full := os.Getenv("FULL_SIZE") != "" || os.Getenv("SAMPLE") == "all"
			var tried, happened int
			var mu sync.Mutex
			t.Run("deaths", func(t *testing.T) {
				for i, first := range all {
					if !full && !sampled(first.point) {
						continue
					}
					second := all[(i*7+3)%len(all)]
					t.Run(first.point, func(t *testing.T) {
						t.Parallel()
						s := newSuccession(t, k, first)
						if full {
							s.deaths = append(s.deaths, second)
						}
						s.live()
						s.audit()
						mu.Lock()
						defer mu.Unlock()
						tried++
						happened += s.died
					})
				}
			})
			t.Logf("%d points; %d schedules with %d deaths: nothing lost, nothing twice", len(all), tried, happened)
			assert.Positive(t, happened)
		})
	}
}

// sampled selects a sixth of the points.
func sampled(point string) bool {
	h := fnv.New32()
	_, _ = h.Write([]byte(os.Getenv("SAMPLE") + point))
	return h.Sum32()%6 == 0
}

// An effect outside the transaction of its callback happens twice if the process dies
// between the two commits. That may hit both orders, whose callbacks run at the same time.
func TestADeathFindsAnEffectOutsideItsTransaction(t *testing.T) {
	t.Parallel()
	s := newSuccession(t, postgres, fate{"before the commit of update gateway_facts", 1})
	s.end()
	paid := s.on.Paid
	s.on.Paid = func(ctx context.Context, _ *txn, c *merchant.Charge) error {
		tx, err := s.begin(ctx, s.db, nil)
		if err != nil {
			return err
		}
		return errors.Join(paid(ctx, tx, c), tx.Commit())
	}
	s.next()
	s.live()
	assert.Equal(t, 1, s.died)
	assert.Greater(t, s.ships("A1")+s.ships("A2"), 2)
}
