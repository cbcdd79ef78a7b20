package engine_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/ids"
)

// world is a minimal store and clock. It applies changes, fires timers in order
// and, after every change, checks the invariants.
type world struct {
	tb  testing.TB
	env engine.Env

	transactions  table[engine.Transaction]
	customers     table[engine.Customer]
	transfers     table[engine.Transfer]
	subscriptions table[engine.Subscription]
	links         table[engine.Link]
	sessions      table[engine.Session]
	products      map[int64]*engine.CatalogProduct
	integration   *engine.Integration

	balance int64
	spent   map[string]bool
	timers  []engine.Timer
	events  []sentEvent
	read    int // number of events that emitted has returned
}

// sentEvent is an event and the time at which it was sent.
type sentEvent struct {
	engine.Event

	at time.Time
}

// table holds resources by id, and a copy of each to detect modifications.
type table[R any] struct {
	rows   map[string]*R
	copies map[*R]R
	order  []string
}

func (t *table[R]) put(tb testing.TB, id string, r *R) {
	tb.Helper()
	if t.rows == nil {
		t.rows, t.copies = map[string]*R{}, map[*R]R{}
	}
	old, existing := t.rows[id]
	if !existing {
		t.order = append(t.order, id)
	}
	if existing {
		require.True(tb, reflect.DeepEqual(t.copies[old], *old), "a resource was modified in place: %s", id)
		delete(t.copies, old)
	}
	t.rows[id], t.copies[r] = r, *r
}

func (t *table[R]) all() []*R {
	list := make([]*R, len(t.order))
	for i, id := range t.order {
		list[i] = t.rows[id]
	}
	return list
}

// start is the mock's default start time.
func start() time.Time { return time.Date(2027, time.January, 4, 12, 0, 0, 0, time.UTC) }

func newWorld(tb testing.TB) *world {
	tb.Helper()
	return &world{
		tb:       tb,
		env:      engine.Env{Now: start(), Sandbox: true, IDs: ids.Seeded(1), Fee: 149},
		products: map[int64]*engine.CatalogProduct{},
		spent:    map[string]bool{},
	}
}

// apply stores a change.
func (w *world) apply(c engine.Change) {
	w.tb.Helper()
	for _, r := range c.Transactions {
		w.checkTransaction(r)
		w.transactions.put(w.tb, r.ID, r)
	}
	for _, r := range c.Customers {
		w.customers.put(w.tb, r.ID, r)
	}
	for _, r := range c.Transfers {
		w.transfers.put(w.tb, r.ID, r)
	}
	for _, r := range c.Subscriptions {
		w.checkSubscription(r)
		w.subscriptions.put(w.tb, r.ID, r)
	}
	for _, r := range c.Links {
		w.links.put(w.tb, r.Slug, r)
	}
	for _, r := range c.Sessions {
		w.sessions.put(w.tb, r.ID, r)
	}
	for _, p := range c.Products {
		w.products[p.ID] = p
	}
	if c.Integration != nil {
		w.integration = c.Integration
	}
	for _, token := range c.Spent {
		require.False(w.tb, w.spent[token], "a token is spent once")
		w.spent[token] = true
	}
	w.balance += c.Balance
	for _, e := range c.Events {
		w.checkEvent(e)
		w.events = append(w.events, sentEvent{e, w.env.Now})
	}
	for _, timer := range c.Timers {
		require.False(w.tb, timer.At.Before(w.env.Now), "timer %s is in the past", timer.Kind)
		at, _ := slices.BinarySearchFunc(w.timers, timer, func(a, b engine.Timer) int {
			if a.At.After(b.At) {
				return 1
			}
			return -1 // after all with the same time
		})
		w.timers = slices.Insert(w.timers, at, timer)
	}
	w.checkBalance()
	w.checkLinks()
}

// do applies the change of a transition, which must succeed.
func (w *world) do(c engine.Change, refusal *engine.Refusal) {
	w.tb.Helper()
	require.Nil(w.tb, refusal)
	w.apply(c)
}

// emitted returns the kinds of the events since it was last called.
func (w *world) emitted() []string {
	var kinds []string
	for _, e := range w.events[w.read:] {
		kinds = append(kinds, e.Kind)
	}
	w.read = len(w.events)
	return kinds
}

// advance moves the clock and fires the timers that become due, in order.
func (w *world) advance(by time.Duration) {
	w.tb.Helper()
	end := w.env.Now.Add(by)
	for len(w.timers) > 0 && !w.timers[0].At.After(end) {
		timer := w.timers[0]
		w.timers = w.timers[1:]
		w.env.Now = timer.At
		w.fire(timer)
	}
	w.env.Now = end
}

func (w *world) fire(timer engine.Timer) {
	w.tb.Helper()
	switch timer.Kind {
	case engine.TimerExpire, engine.TimerExpireChallenge:
		_ = w.move(timer.ID, engine.ExpireByTimer) // rejected if the state has changed
	case engine.TimerPay:
		_ = w.move(timer.ID, engine.Pay) // rejected if the state has changed
	case engine.TimerChargeBack:
		_ = w.move(timer.ID, engine.Chargeback) // rejected if the state has changed
	case engine.TimerExpireLink:
		w.apply(engine.ExpireLinkByTimer(w.env, w.links.rows[timer.ID], w.sessions.all()))
	case engine.TimerExpireSession:
		w.apply(engine.ExpireSession(w.env, w.sessions.rows[timer.ID]))
	default:
		if t := w.transfers.rows[timer.ID]; t != nil {
			w.apply(engine.FireTransfer(w.env, t, timer.Kind))
			return
		}
		s := w.subscriptions.rows[timer.ID]
		require.NotNil(w.tb, s, "timer %s has no resource", timer.Kind)
		w.apply(engine.FireSubscription(w.env, s, timer.Kind))
	}
}

type transition func(engine.Env, *engine.Transaction) (engine.Change, *engine.Refusal)

// move runs a transition of a transaction, and changes its subscription or session
// accordingly.
func (w *world) move(id string, do transition) *engine.Refusal {
	w.tb.Helper()
	before := w.transactions.rows[id]
	c, refusal := do(w.env, before)
	if refusal != nil || len(c.Transactions) == 0 {
		return refusal
	}
	t := c.Transactions[0]
	if s := w.subscriptions.rows[t.SubscriptionID]; s != nil {
		follows := engine.FollowSubscription(w.env, s, before, t)
		w.checkFollows(s, before, follows)
		c = c.And(follows)
	}
	if s := w.sessions.rows[t.SessionID]; s != nil {
		next, _ := engine.FollowSession(w.env, w.links.rows[s.Slug], s, t)
		c = c.And(next)
	}
	w.apply(c)
	return nil
}

// setStatus sets a state as the sandbox does.
func setStatus(status string) transition {
	return func(env engine.Env, t *engine.Transaction) (engine.Change, *engine.Refusal) {
		return engine.SetStatus(env, t, status)
	}
}

func (w *world) catalog(id int64) *engine.CatalogProduct { return w.products[id] }

// customer creates a customer.
func (w *world) customer() *engine.Customer {
	w.tb.Helper()
	c, refusal := engine.CreateCustomer(w.env, nil, engine.Customer{Buyer: engine.Buyer{Name: "Ana Souza", Email: "ana@example.com"}})
	w.do(c, refusal)
	return c.Customers[0]
}

// subscribe creates a monthly subscription by card, modified by edit, and returns
// its id.
func (w *world) subscribe(token string, edit ...func(*engine.NewSubscription)) string {
	w.tb.Helper()
	in := engine.NewSubscription{Token: token}
	in.Amount, in.Interval = 4990, "month"
	for _, change := range edit {
		change(&in)
	}
	c, refusal := engine.CreateSubscription(w.env, in, engine.ExistingForSubscription{Customer: w.customer()})
	w.do(c, refusal)
	return c.Subscriptions[0].ID
}

func (w *world) sub(id string) *engine.Subscription { return w.subscriptions.rows[id] }

// The invariants.

func (w *world) checkTransaction(t *engine.Transaction) {
	w.tb.Helper()
	require.GreaterOrEqual(w.tb, t.RefundedAmount, int64(0))
	require.LessOrEqual(w.tb, t.RefundedAmount, t.PaidAmount)
	require.LessOrEqual(w.tb, t.PaidAmount, t.Amount)
	require.Equal(w.tb, t.PaidAmount == 0, t.PaidAt.IsZero(), "paid_at is set if and only if something is paid, in state %s", t.Status)
	require.NotNil(w.tb, t.Buyer)
}

func (w *world) checkSubscription(s *engine.Subscription) {
	w.tb.Helper()
	require.Equal(w.tb, s.Status == "canceled", !s.CanceledAt.IsZero(), "canceledAt is set if and only if the state is canceled")
	require.Equal(w.tb, s.Status == "past_due", !s.NextRetryAt.IsZero(), "a retry is scheduled while past due")
	require.NotEqual(w.tb, s.Card == nil, s.Authorization == nil)
	switch s.Status {
	case "trialing":
		require.Equal(w.tb, s.TrialEnd, s.CurrentPeriodEnd)
		require.Zero(w.tb, s.Cycle)
	case "active", "past_due":
		require.True(w.tb, s.CurrentPeriodEnd.After(s.CurrentPeriodStart))
		require.Positive(w.tb, s.Cycle)
	}
	old := w.subscriptions.rows[s.ID]
	if old == nil {
		return
	}
	if old.Status == "canceled" {
		require.Equal(w.tb, "canceled", s.Status, "canceled is final")
		require.Len(w.tb, s.ChargeIDs, len(old.ChargeIDs), "nothing is charged after the end")
		return // the sandbox can still set a refused charge to paid
	}
	paid := 0
	for _, id := range s.ChargeIDs {
		if t := w.transactions.rows[id]; t != nil && t.Amount == s.Amount && (t.Status == "paid" || t.Status == "captured") {
			paid++
		}
	}
	require.LessOrEqual(w.tb, paid, max(s.Cycle, 0), "a period is paid at most once")
}

// checkFollows checks that a change of a charge that was paid, such as a refund or the
// end of a dispute, neither renews its subscription nor charges it again.
func (w *world) checkFollows(s *engine.Subscription, before *engine.Transaction, c engine.Change) {
	w.tb.Helper()
	if !slices.Contains([]string{"paid", "captured", "partially_refunded"}, before.Status) {
		return
	}
	for _, next := range c.Subscriptions {
		require.Contains(w.tb, []string{s.Status, "canceled"}, next.Status, "a charge that was %s pays nothing again", before.Status)
		require.Equal(w.tb, s.ChargeIDs, next.ChargeIDs)
		require.Equal(w.tb, s.CurrentPeriodEnd, next.CurrentPeriodEnd)
	}
	for _, e := range c.Events {
		require.NotContains(w.tb, []string{"subscription.renewed", "subscription.started"}, e.Kind)
	}
	require.Empty(w.tb, c.Timers)
}

func (w *world) checkEvent(e engine.Event) {
	w.tb.Helper()
	switch {
	case e.Transaction != nil:
		require.Nil(w.tb, e.Subscription)
		require.Nil(w.tb, e.Transfer)
	case e.Subscription != nil:
		require.Nil(w.tb, e.Transfer)
		require.Same(w.tb, w.subscriptions.rows[e.Subscription.ID], e.Subscription, "the event has the stored version")
	default:
		require.Same(w.tb, w.transfers.rows[e.Transfer.ID], e.Transfer, "the event has the stored version")
	}
}

// checkBalance recomputes the balance from all resources.
func (w *world) checkBalance() {
	w.tb.Helper()
	var sum int64
	for _, t := range w.transactions.all() {
		switch {
		case t.PaidAmount == 0:
		case t.Status == "chargedback":
			sum -= t.FeeAmount
		default:
			sum += t.PaidAmount - t.FeeAmount - t.RefundedAmount
		}
	}
	for _, t := range w.transfers.all() {
		if t.Status != "error" && t.Status != "cancelled" {
			sum -= t.Amount
		}
	}
	require.Equal(w.tb, sum, w.balance, "the balance adds up")
}

func (w *world) checkLinks() {
	w.tb.Helper()
	completed := map[string]int{}
	for _, s := range w.sessions.all() {
		if s.Status == "completed" {
			completed[s.Slug]++
		}
	}
	for _, l := range w.links.all() {
		require.Equal(w.tb, completed[l.Slug], l.UsedCount)
		require.Equal(w.tb, l.Status == "exhausted", l.MaxUses > 0 && l.UsedCount >= l.MaxUses && l.Status != "expired" && l.Status != "inactive")
	}
}
