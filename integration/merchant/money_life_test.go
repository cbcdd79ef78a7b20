package merchant_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/mockserver"
)

// mostStatements is how many statements an order's life may have on PostgreSQL: 6 charge, 5
// handle the webhook, 11 refund and 7 call back. SQLite needs no round trips, and has no
// statement that changes several tables: the digests of a buyer are one of a charge. BEGIN and COMMIT are not counted: a charge has two
// transactions.
var (
	mostStatements = map[database.Dialect]int{database.DialectPostgres: 29, database.DialectSQLite: 45}
	mostOfACharge  = map[database.Dialect]int{database.DialectPostgres: 6, database.DialectSQLite: 11}
)

// counter counts statements, apart from those with which an idle process looks for work.
type counter struct {
	mu    sync.Mutex
	looks map[string]bool
	idle  bool // what is seen is a look
	seen  map[string]int
}

func (c *counter) count(statement string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch text := strings.Join(strings.Fields(statement), " "); {
	case !strings.Contains(text, "gateway_"): // the shop's own, and settings of a session
	case c.idle:
		c.looks[text] = true
	default:
		c.seen[text]++
	}
	return statement
}

// idled notes that all that was seen were looks: nothing was there to do.
func (c *counter) idled() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for text := range c.seen {
		c.looks[text] = true
	}
}

// begin counts from here on.
func (c *counter) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle, c.seen = false, make(map[string]int)
}

// pause takes what follows for looks.
func (c *counter) pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = true
}

// end returns how many statements there were, those of looks apart.
func (c *counter) end() (work, looks int, each []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, text := range slices.Sorted(maps.Keys(c.seen)) {
		n := c.seen[text]
		if c.looks[text] {
			looks += n
			continue
		}
		work += n
		each = append(each, strings.Repeat("*", n)+" "+text[:min(len(text), 150)])
	}
	return work, looks, each
}

// The statements of an order's life: Charge, the webhook of its payment, the callback, a
// refund and its callback. On a network, each is a round trip. A process that does not Run
// charges, refunds and handles the webhook, and another one calls back: so nothing is tried
// by two at once, and the number is the same on every machine, apart from upkeep.
func TestAnOrdersLifeHasFewStatements(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		c := &counter{looks: make(map[string]bool), seen: make(map[string]int), idle: true}
		w.reader = w.db
		tap, db := w.tapped(c.count)
		w.db = db
		w.on.Goods = func(context.Context, *txn, *merchant.Goods) error { return nil }
		w.patient().open()
		for _, other := range []string{"created", "pending", "refunded"} { // one webhook is counted
			require.NoError(w, w.gw.Faults.Add(mockserver.DropWebhook().On("transaction."+other)))
		}
		total, charged := 0, 0
		phase := func(name string, run func()) {
			c.begin()
			run()
			work, looks, list := c.end()
			total += work
			w.Logf("%s: %d statements, and %d of looks for work\n%s", name, work, looks, strings.Join(list, "\n"))
		}
		// worker runs a process, whose start is not counted, while until runs.
		worker := func(name string, until func()) {
			c.pause()
			m, err := w.openOn(w.db, w.cfg)
			require.NoError(w, err)
			phase(name, func() {
				ctx, cancel := context.WithCancel(context.WithoutCancel(w.Context()))
				ended := make(chan error, 1)
				go func() { ended <- m.Run(ctx) }()
				until()
				cancel()
				require.NoError(w, <-ended)
			})
		}
		live := func(order string) {
			total = 0
			var ch *merchant.Charge
			phase("the charge", func() { ch = w.charge(pix(order, 700)) })
			charged = total
			phase("its webhook", func() {
				require.NoError(w, w.gw.Transactions.Pay(ch.TransactionID))
				require.NoError(w, w.gw.Wait(w.Context()))
				w.quiet(`SELECT COUNT(*) FROM gateway_webhook_events WHERE state IN (1, 2)`)
			})
			callbacks := `SELECT COUNT(*) FROM gateway_facts WHERE delivered_at IS NULL`
			worker("its callback", func() { w.quiet(callbacks) })
			phase("the refund", func() {
				r, err := w.m.Refund(w.Context(), merchant.RefundParams{ID: "r-" + order, Charge: ch.ID, UpTo: 300})
				require.NoError(w, err)
				require.Equal(w, merchant.Done, r.State)
			})
			worker("its callback", func() { w.quiet(callbacks) })
			w.reaches(order, "paid "+ch.ID+" 700", "refunded r-"+order+" 300")
		}
		most, mostOfACharge := mostStatements[w.dialect], mostOfACharge[w.dialect]
		live(w.order("W1")) // the connections are prepared
		// On a busy machine, upkeep that comes every few seconds falls into the life that is
		// counted. It only adds statements: so the life with the fewest counts.
		for n := range 10 {
			worker("nothing", func() {
				c.pause()
				for range 3 { // each loop looks
					tap.statements()
					w.eventually("the process looks for work", func() bool {
						return tap.saw(append([]string{"gateway_webhook_events"}, polled...)...)
					})
				}
			})
			c.idled()
			live(w.order(fmt.Sprint("L", n)))
			w.Logf("an order's life: %d statements", total)
			if total <= most && charged <= mostOfACharge {
				break
			}
		}
		assert.LessOrEqual(w, total, most)
		assert.LessOrEqual(w, charged, mostOfACharge)
		assert.Greater(w, charged, 3, "the statements are counted")
	})
}

// quiet waits until nothing is counted. It asks by a connection without a tap.
func (w *world) quiet(count string) {
	w.Helper()
	if w.reader == nil {
		w.reader = w.db
	}
	w.eventually("nothing waits", func() bool {
		var n int
		require.NoError(w, w.reader.QueryRowContext(w.Context(), count).Scan(&n))
		return n == 0
	})
}

// A refund after many that have not been sent has as many statements as the second one, which
// asks the outbox for those under way.
func TestTheTwoHundredthRefundHasFewStatements(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		var n atomic.Int64
		_, w.db = w.tapped(func(statement string) string {
			if strings.Contains(statement, "gateway_") && !strings.Contains(statement, "gateway_webhook_events") { // which the receiver polls
				n.Add(1)
			}
			return statement
		})
		w.patient().open()
		ch := w.charge(pix(w.order("M1"), 1000))
		require.NoError(w, w.gw.Transactions.Pay(ch.TransactionID))
		w.refresh(ch.ID)
		w.gw.Webhooks.Hold() // only refunds have statements
		require.NoError(w, w.gw.Wait(w.Context()))
		w.quiet(`SELECT COUNT(*) FROM gateway_webhook_events WHERE state IN (1, 2)`)
		var second int64
		for i := range 201 {
			before := n.Load()
			require.NoError(w, w.in(w.db, 0, func(tx *txn) error {
				_, err := w.m.RefundTx(w.Context(), tx, merchant.RefundParams{ID: fmt.Sprint("r", i), Charge: ch.ID, Amount: 1})
				return err
			}))
			if i == 1 {
				second = n.Load() - before
			}
			if i > 1 {
				require.LessOrEqual(w, n.Load()-before, second, "refund %d", i)
			}
		}
		w.Logf("%d statements each", second)
		assert.LessOrEqual(w, second, int64(10))
	})
}

// A process that has nothing to do looks as often with many accounts as with one. The bound
// leaves room for accounts that look themselves, because the look for all was late.
func TestManyIdleAccountsAreLookedAtTogether(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		var looks, all atomic.Int64
		_, w.db = w.tapped(func(statement string) string {
			all.Add(1)
			if strings.Contains(statement, "UNION ALL SELECT 2, e.account") {
				looks.Add(1)
			}
			return statement
		})
		w.cfg.PollInterval = 300 * time.Millisecond
		const accounts = 40
		for i := range accounts {
			name := fmt.Sprint("idle", i)
			w.cfg.Accounts = append(w.cfg.Accounts, w.account(name, "sk_test_"+name, gateway.NewSecret("a secret of at least 32 bytes: "+name)))
		}
		w.open().start()
		wait := func(n int64) {
			w.eventually("it has looked", func() bool { return looks.Load() >= n })
		}
		wait(5) // each has looked itself, and found nothing
		before := all.Load()
		from := looks.Load()
		wait(from + 8)
		each := (all.Load() - before) / (looks.Load() - from)
		w.Logf("%d statements for each look", each)
		assert.LessOrEqual(w, each, int64(2*accounts))
	})
}
