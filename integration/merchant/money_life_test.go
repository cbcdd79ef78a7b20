package merchant_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/mockserver"
)

// mostStatements is how many statements an order's life may have. It is more
// if a request is sent or an event is handled at the same time as something else: so the
// best of some lives counts.
const mostStatements = 55

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

// begin counts from here on.
func (c *counter) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle, c.seen = false, make(map[string]int)
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
// refund and its callback. On a network, each is a round trip.
func TestAnOrdersLifeHasFewStatements(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		c := &counter{looks: make(map[string]bool), seen: make(map[string]int), idle: true}
		w.reader = w.db
		tap, db := w.tapped(c.count)
		w.db = db
		w.patient()
		w.cfg.CompareEvery = time.Hour
		w.open().start()
		for _, other := range []string{"created", "pending", "refunded"} { // one webhook is counted
			require.NoError(w, w.gw.Faults.Add(mockserver.DropWebhook().On("transaction."+other)))
		}
		var total int
		phase := func(name, order string, run func()) {
			c.begin()
			run()
			w.quiet(order)
			work, looks, list := c.end()
			total += work
			w.Logf("%s: %d statements, and %d of looks for work\n%s", name, work, looks, strings.Join(list, "\n"))
		}
		live := func(order string) {
			var ch *merchant.Charge
			phase("the charge", order, func() { ch = w.charge(pix(order, 700)) })
			phase("the payment", order, func() {
				require.NoError(w, w.gw.Transactions.Pay(ch.TransactionID))
				w.reaches(order, "paid "+ch.ID+" 700")
			})
			phase("the refund", order, func() {
				_, err := w.m.Refund(w.Context(), merchant.RefundParams{ID: "r-" + order, Charge: ch.ID, UpTo: 300})
				require.NoError(w, err)
				w.reaches(order, "paid "+ch.ID+" 700", "refunded r-"+order+" 300")
			})
		}
		live(w.order("W1")) // the connections are prepared
		c.mu.Lock()
		c.idle = true
		c.mu.Unlock()
		for range 3 { // each loop looks
			tap.statements()
			w.eventually("the process looks for work", func() bool { return tap.saw(polled...) })
		}
		var totals []int
		for i := range 4 {
			total = 0
			live(w.order(fmt.Sprint("L", i)))
			totals = append(totals, total)
		}
		w.Logf("lives of orders: %d statements", totals)
		assert.LessOrEqual(w, slices.Min(totals), mostStatements)
		assert.Greater(w, slices.Min(totals), 10, "the statements are counted")
	})
}

// quiet waits until nothing about an order waits. It asks by a connection without a tap.
func (w *world) quiet(order string) {
	w.Helper()
	w.eventually("nothing waits", func() bool {
		var n int
		err := w.reader.QueryRowContext(w.Context(), w.sql(`SELECT (SELECT COUNT(*) FROM gateway_facts WHERE delivered_at IS NULL AND subject = ?)
			+ (SELECT COUNT(*) FROM gateway_webhook_events WHERE state IN (1, 2)) + (SELECT COUNT(*) FROM gateway_operations WHERE state <> 'done')
			+ (SELECT COUNT(*) FROM gateway_refunds WHERE state <> 'done')`), "order/"+order).Scan(&n)
		require.NoError(w, err)
		return n == 0
	})
}
