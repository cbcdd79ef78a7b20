package books_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/legacy"
	"github.com/gateway-go/gateway/merchant/internal/books"
	"github.com/gateway-go/gateway/mockserver"
)

// account is a merchant whose books are made only of what the client reads from a mock
// gateway.
type account struct {
	t       *testing.T
	gw      *mockserver.Server
	client  *gateway.Client
	charges map[string]*books.Books // by transaction
	payouts map[string]*payouts     // by transfer
	members map[string]*member      // by subscription
	orders  map[string]books.Order
	log     []string
	stopped bool // the gateway's clock does not move from one step to the next
	reads   int
	problems
}

// newAccount starts a gateway that charges 50 for each payment.
func newAccount(t *testing.T, opts ...mockserver.Option) *account {
	t.Helper()
	gw := mockserver.Run(t, append(opts, mockserver.WithFee(50))...)
	return &account{
		t: t, gw: gw, client: gw.Client(), orders: map[string]books.Order{},
		charges: map[string]*books.Books{}, payouts: map[string]*payouts{}, members: map[string]*member{},
	}
}

// pass advances the clock.
func (a *account) pass(d time.Duration) {
	a.t.Helper()
	require.NoError(a.t, a.gw.Clock.Advance(d))
}

// tick advances the gateway's clock, unless it is stopped.
func (a *account) tick() {
	a.t.Helper()
	if !a.stopped {
		a.pass(time.Second)
	}
}

// now returns the time of a reading: no two are made at once.
func (a *account) now() time.Time {
	a.reads++
	return a.gw.Clock.Now().Add(time.Duration(a.reads) * time.Microsecond)
}

// step does something at the gateway, reads everything and compares.
func (a *account) step(what string, do func() error) {
	a.t.Helper()
	a.tick()
	require.NoError(a.t, do(), what)
	a.readAll(what)
}

// charge creates a transaction of an order.
func (a *account) charge(order string, p gateway.TransactionParams) string {
	a.t.Helper()
	a.tick()
	tx, err := a.client.Transactions.Create(a.t.Context(), p)
	require.NoError(a.t, err)
	a.orders[order] = books.Order{ID: order}
	a.charges[tx.ID] = &books.Books{
		Order:  books.Order{ID: order},
		Charge: books.Charge{ID: p.ExternalRef, Origin: books.FromOrder, Requested: p.Amount, Currency: gateway.BRL, Operation: books.Sent},
	}
	a.readAll("create")
	return tx.ID
}

// readTransaction applies a reading of a transaction.
func (a *account) readTransaction(id string) {
	a.t.Helper()
	tx, err := a.client.Transactions.Get(a.t.Context(), id)
	require.NoError(a.t, err)
	b := a.charges[id]
	b.Order = a.orders[b.Order.ID]
	next, result := books.ApplyTransaction(*b, books.Reading[gateway.Transaction]{Resource: tx, Source: books.FromComparison, At: a.now()})
	settles := a.orders[b.Order.ID].SettledBy != next.Order.SettledBy
	*b, a.orders[b.Order.ID] = next, next.Order
	a.keep(result)
	if settles {
		a.unneeded(&next.Order)
	}
}

// unneeded does what a caller does once a charge has settled the order.
func (a *account) unneeded(o *books.Order) {
	a.t.Helper()
	var list []*books.Books
	var charges []books.Charge
	for _, b := range a.charges {
		if b.Order.ID == o.ID {
			list, charges = append(list, b), append(charges, b.Charge)
		}
	}
	charges, result := books.Unneeded(*o, charges, a.gw.Clock.Now())
	for i := range list {
		list[i].Charge = charges[i]
	}
	a.keep(result)
}

// keep stores what was reported.
func (a *account) keep(r books.Result) {
	for _, f := range r.Facts {
		if f.Callback != books.None {
			a.log = append(a.log, string(f.Callback)+" "+f.Record)
		}
	}
	for _, over := range r.Over {
		a.log = append(a.log, "over "+string(over.Kind)+" "+over.Record)
	}
	for _, p := range r.Problems {
		a.log = append(a.log, "problem "+string(p.Kind)+" "+p.Record)
	}
	require.NoError(a.t, a.problems.keep(r))
	for _, b := range a.charges {
		require.NoError(a.t, a.ofCharge(new(a.orders[b.Order.ID]), &b.Charge))
	}
}

// expect checks what was reported since the last call.
func (a *account) expect(reported ...string) {
	a.t.Helper()
	assert.ElementsMatch(a.t, reported, a.log)
	a.log = nil
}

// readAll applies a reading of every resource, twice, and compares the books with the
// gateway's numbers.
func (a *account) readAll(what string) {
	a.t.Helper()
	ctx := a.t.Context()
	for range 2 {
		for id, m := range a.members {
			sub, err := a.client.Subscriptions.Get(ctx, id)
			require.NoError(a.t, err)
			before := len(m.log)
			m.apply(sub, a.now())
			a.log = append(a.log, m.log[before:]...)
			for _, tx := range m.read {
				if a.charges[tx] == nil {
					a.charges[tx] = &books.Books{Order: m.order}
				}
				for i := range m.charges {
					if m.charges[i].TransactionID == tx {
						a.charges[tx].Charge = m.charges[i]
						a.readTransaction(tx)
						m.charges[i] = a.charges[tx].Charge
					}
				}
			}
		}
		for id := range a.charges {
			a.readTransaction(id)
		}
		for id, p := range a.payouts {
			transfer, err := a.client.Transfers.Get(ctx, id)
			require.NoError(a.t, err)
			before := len(p.log)
			p.order = a.orders[p.order.ID]
			p.keep(books.ApplyTransfer(p.order, p.payout, books.Reading[gateway.Transfer]{Resource: transfer, At: a.now()}))
			a.orders[p.order.ID] = p.order
			a.log = append(a.log, p.log[before:]...)
		}
	}
	a.compare(what)
}

// compare compares the books with the gateway's transactions and balance.
func (a *account) compare(what string) {
	a.t.Helper()
	withheld := int64(0) // the mock keeps the money of a dispute in the balance until it is lost
	for id, b := range a.charges {
		tx, err := a.client.Transactions.Get(a.t.Context(), id)
		require.NoError(a.t, err)
		assert.Equal(a.t, tx.PaidAmount, b.Charge.Paid, "%s: %s", what, id)
		assert.Equal(a.t, tx.RefundedAmount, b.Charge.Refunded, "%s: %s", what, id)
		if tx.Status != gateway.TransactionChargedback {
			withheld += b.Charge.Disputed
		}
	}
	v1, err := legacy.New(a.client, gateway.NewSecret(a.gw.Key()))
	require.NoError(a.t, err)
	balance, err := v1.Balance(a.t.Context())
	require.NoError(a.t, err)
	net := int64(0)
	for _, o := range a.orders {
		net += o.Net()
	}
	assert.Equal(a.t, balance.Balance, net+withheld, what)
}

func TestChargesOfTheMock(t *testing.T) {
	t.Parallel()
	for _, opts := range [][]mockserver.Option{nil, {mockserver.WithDialect(mockserver.Live), mockserver.WithSettledPercent(95)}} {
		a := newAccount(t, opts...)
		ctx, play := t.Context(), a.gw.Transactions

		card := params("A1-1", 5000, gateway.CreditCard)
		card.Token = "pgct_captured_1"
		one := a.charge("A1", card)
		a.expect("paid A1-1")
		refund := func(id string, p gateway.RefundParams) func() error {
			return func() error { _, err := a.client.Transactions.Refund(ctx, id, p); return err }
		}
		a.charges[one].Refunds = []books.Refund{{ID: "r1", Operation: books.Sent, Amount: 1000}}
		a.step("refund", refund(one, gateway.RefundParams{Amount: 1000}))
		a.expect()
		var result books.Result
		*a.charges[one], result = books.ApplyRefund(*a.charges[one], "r1", books.Applied, 1000, "", a.gw.Clock.Now())
		a.keep(result)
		a.step("a person refunds", refund(one, gateway.RefundParams{Amount: 500}))
		a.expect("refunded r1", "refunded A1-1")
		a.step("chargeback", func() error { return play.Chargeback(one) })
		a.expect("disputed A1-1")
		assert.Equal(t, books.Disputed, a.charges[one].Charge.State)
		assert.Equal(t, int64(-50), net(a, "A1"))

		// The buyer asks for a second code and pays both.
		first := a.charge("A2", params("A2-1", 7000, gateway.Pix))
		second := a.charge("A2", params("A2-2", 7000, gateway.Pix))
		a.step("second", func() error { return play.Pay(second) })
		a.step("first", func() error { return play.Pay(first) })
		a.expect("paid A2-2", "paid_again A2-1")
		a.step("returned", refund(first, gateway.RefundParams{Full: true}))
		a.expect("refunded A2-1", "over paid_again A2-1")
		assert.Equal(t, int64(7000-100), net(a, "A2"))

		voucher := a.charge("A3", params("A3-1", 2000, gateway.Voucher))
		a.pass(4 * 24 * time.Hour)
		a.readAll("expired")
		a.expect("unpaid A3-1")
		a.step("late", func() error { return play.Pay(voucher) })
		a.expect("paid A3-1")
		assert.True(t, a.charges[voucher].Charge.Late)

		card.ExternalRef, card.Token = "A4-1", "pgct_refused_insufficient_funds"
		refused := a.charge("A4", card)
		a.expect("unpaid A4-1")
		assert.Equal(t, "insufficient_funds", a.charges[refused].Charge.Reason)
	}
}

// net returns what an order leaves.
func net(a *account, order string) int64 {
	o := a.orders[order]
	return o.Net()
}

func TestDisputesOfTheMock(t *testing.T) {
	t.Parallel()
	disputesOfTheMock(t, false)
}

func TestDisputesOfAMockWhoseClockIsStopped(t *testing.T) {
	t.Parallel()
	disputesOfTheMock(t, true)
}

func disputesOfTheMock(t *testing.T, stopped bool) {
	t.Helper()
	a := newAccount(t, mockserver.WithDialect(mockserver.Live))
	a.stopped = stopped
	play := a.gw.Transactions
	won := a.charge("won", params("won", 5000, gateway.Pix))
	lost := a.charge("lost", params("lost", 5000, gateway.Pix))
	a.step("paid", func() error { return play.Pay(won) })
	a.step("paid", func() error { return play.Pay(lost) })
	a.step("a part", func() error {
		_, err := a.client.Transactions.Refund(t.Context(), lost, gateway.RefundParams{Amount: 1000})
		return err
	})
	a.expect("paid won", "paid lost", "refunded lost")
	for _, id := range []string{won, lost} {
		a.step("med", func() error { return play.OpenDispute(id) })
		a.step("contested", func() error { return play.ContestDispute(id) })
	}
	a.expect("disputed won", "disputed lost", "problem in_protest won", "problem in_protest lost")
	assert.Equal(t, int64(-50), net(a, "lost"))
	a.step("won", func() error { return play.WinDispute(won) })
	a.expect("disputed won", "over in_protest won")
	assert.Equal(t, int64(4950), net(a, "won"))
	a.step("lost", func() error { return play.LoseDispute(lost) })
	a.pass(25 * time.Hour)
	a.readAll("charged back")
	a.expect("over in_protest lost")
	assert.Equal(t, gateway.TransactionChargedback, a.charges[lost].Charge.Status)
	assert.Equal(t, int64(-50), net(a, "lost"))
}

func TestPayoutsOfTheMock(t *testing.T) {
	t.Parallel()
	payoutsOfTheMock(t, false)
}

func TestPayoutsOfAMockWhoseClockIsStopped(t *testing.T) {
	t.Parallel()
	payoutsOfTheMock(t, true)
}

func payoutsOfTheMock(t *testing.T, stopped bool) {
	t.Helper()
	a := newAccount(t)
	a.stopped = stopped
	play := a.gw.Transfers
	pay := func(id string) string {
		transfer, err := a.client.Transfers.Create(t.Context(), gateway.TransferParams{
			PixKeyType: gateway.PixKeyEmail, PixKeyValue: "supplier@example.com", Amount: 3000, ExternalRef: id,
		})
		require.NoError(t, err)
		p := newPayout()
		p.order.ID, p.payout.ID, p.payout.Requested = id, id, 3000
		a.payouts[transfer.ID], a.orders[id] = p, p.order
		a.readAll("create")
		assert.Equal(t, int64(-3000), net(a, id))
		return transfer.ID
	}
	paid, returned, canceled := pay("paid"), pay("returned"), pay("canceled")
	a.step("processing", func() error { return play.Process(paid) })
	a.step("settled", func() error { return play.Settle(paid) })
	a.expect("payout/paid/paid/1")
	require.NoError(t, play.Analyse(returned))
	require.NoError(t, play.Analyse(canceled))
	a.step("failed", func() error { return play.Fail(returned) })
	a.step("canceled", func() error {
		_, err := a.client.Transfers.Cancel(t.Context(), canceled, gateway.TransferCancelParams{})
		return err
	})
	a.expect("payout/returned/failed/2", "payout/canceled/canceled/2")
	assert.Zero(t, net(a, "returned")+net(a, "canceled"))
}

func TestSubscriptionsOfTheMock(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	subscribe := func(token gateway.CardToken, change func(*gateway.SubscriptionParams)) *member {
		customer, err := a.client.Customers.Create(t.Context(), gateway.CustomerParams{Name: "Ana Souza", Email: "ana@example.com"})
		require.NoError(t, err)
		p := gateway.SubscriptionParams{CustomerID: customer.ID, Amount: 2990, Token: token, Interval: gateway.IntervalMonth, IdempotencyKey: string(token)}
		change(&p)
		sub, err := a.client.Subscriptions.Create(t.Context(), p)
		require.NoError(t, err)
		m := newMember()
		m.order.ID, m.subscription.ID = sub.ID, sub.ID
		a.members[sub.ID], a.orders[sub.ID] = m, m.order
		a.readAll("create")
		return m
	}
	ends := func(m *member, months int) time.Time {
		sub, err := a.client.Subscriptions.Get(t.Context(), m.subscription.SubscriptionID)
		require.NoError(t, err)
		return sub.CurrentPeriodEnd.AddDate(0, months, 0)
	}
	count := func(m *member, kind books.Kind) (n int) {
		for _, line := range m.log {
			if line[:min(len(line), len(kind))] == string(kind) {
				n++
			}
		}
		return n
	}
	access := func(m *member) books.Access {
		m.subscription, _ = books.MemberAccess(m.order, m.subscription, m.charges, a.gw.Clock.Now())
		return m.subscription.Access
	}
	plain := func(*gateway.SubscriptionParams) {}

	member := subscribe("pgct_ok_1", plain)
	assert.Equal(t, 1, count(member, books.Started))
	a.pass(95 * 24 * time.Hour) // renewals that were not read
	a.readAll("renewed")
	assert.Equal(t, 3, count(member, books.Renewed))
	assert.Equal(t, ends(member, 0), member.subscription.PaidUntil)
	assert.Equal(t, books.Access{Until: ends(member, 0), Status: "active"}, access(member))
	assert.Equal(t, int64(4*(2990-50)), net(a, member.order.ID))

	until := member.subscription.PaidUntil
	require.NoError(t, a.gw.Subscriptions.FailNextCharges(member.subscription.SubscriptionID, 2))
	require.NoError(t, a.gw.Clock.AdvanceTo(until.Add(time.Hour)))
	a.readAll("past due")
	assert.Equal(t, books.State("past_due"), member.subscription.State)
	assert.Equal(t, 1, member.subscription.FailedAttempts)
	assert.Equal(t, until, member.subscription.PaidUntil)
	assert.Equal(t, books.Access{Until: until, Status: "past_due"}, access(member))
	a.pass(8 * 24 * time.Hour)
	a.readAll("recovered")
	assert.Equal(t, books.State("active"), member.subscription.State)
	assert.Equal(t, 4, count(member, books.Renewed))
	assert.Equal(t, 2, count(member, books.PaymentFailed))
	assert.Equal(t, 1, count(member, books.PastDue))
	assert.Equal(t, until.AddDate(0, 1, 0), member.subscription.PaidUntil)

	assert.Equal(t, books.Access{Until: until.AddDate(0, 1, 0), Status: "active"}, access(member))
	a.step("the newest is refunded", func() error {
		_, err := a.client.Transactions.Refund(t.Context(), member.charges[len(member.charges)-1].TransactionID, gateway.RefundParams{Full: true})
		return err
	})
	assert.Equal(t, books.Access{Until: until, Status: "active"}, access(member))
	assert.Equal(t, until.AddDate(0, 1, 0), member.subscription.PaidUntil)

	charge := member.charges[0].TransactionID
	a.step("chargeback", func() error { return a.gw.Transactions.Chargeback(charge) })
	assert.Equal(t, 1, count(member, books.ChargedBack))
	assert.Equal(t, 1, count(member, books.Ended))
	assert.Equal(t, "chargeback", member.subscription.Reason)
	assert.Equal(t, books.Access{Until: until, Status: "canceled", Ends: true}, access(member), "the first period was charged back")
	assert.Equal(t, 5, member.subscription.AccessFacts)

	trial := subscribe("pgct_ok_2", func(p *gateway.SubscriptionParams) { p.TrialEnd = a.gw.Clock.Now().AddDate(0, 0, 14) })
	assert.Empty(t, trial.log)
	require.Len(t, trial.charges, 1)
	assert.True(t, trial.charges[0].CardCheck)
	assert.Zero(t, net(a, trial.order.ID))
	assert.True(t, trial.subscription.PaidUntil.IsZero())
	assert.Equal(t, books.Access{Until: a.gw.Clock.Now().AddDate(0, 0, 14), Status: "trialing"}, access(trial))
	a.pass(15 * 24 * time.Hour)
	a.readAll("trial over")
	assert.Equal(t, 1, count(trial, books.Started))
	assert.Equal(t, books.Access{Until: ends(trial, 0), Status: "active"}, access(trial))
	a.step("planned", func() error {
		_, err := a.client.Subscriptions.Cancel(t.Context(), trial.subscription.SubscriptionID, gateway.SubscriptionCancelParams{})
		return err
	})
	assert.Equal(t, books.Access{Until: ends(trial, 0), Status: "cancel_scheduled", Ends: true}, access(trial))
	assert.Equal(t, int64(2990-50), net(a, trial.order.ID))

	never := subscribe("pgct_refused_3", plain)
	assert.Equal(t, 1, count(never, books.PaymentFailed))
	assert.Equal(t, books.State("incomplete"), never.subscription.State)
	assert.Equal(t, books.Access{Status: "incomplete"}, access(never))
	assert.Zero(t, never.subscription.AccessFacts)
	dunned := subscribe("pgct_renewal_fails_4", plain)
	a.pass(60 * 24 * time.Hour)
	a.readAll("dunned")
	assert.Equal(t, books.State("canceled"), dunned.subscription.State)
	assert.Equal(t, 4, count(dunned, books.PaymentFailed))
	assert.Equal(t, 4, dunned.subscription.FailedAttempts)
	assert.Equal(t, books.Access{Until: ends(dunned, -1), Status: "canceled", Ends: true}, access(dunned))
	assert.Equal(t, 1, count(dunned, books.Ended))

	debit := subscribe("", func(p *gateway.SubscriptionParams) {
		p.PaymentMethod, p.IdempotencyKey = gateway.SubscriptionPixAutomatic, "debit"
	})
	a.step("authorized", func() error { return a.gw.Subscriptions.Authorize(debit.subscription.SubscriptionID) })
	assert.Equal(t, 1, count(debit, books.Started))
	assert.Equal(t, int64(2990-50), net(a, debit.order.ID))
	assert.Equal(t, books.Access{Until: ends(debit, 0), Status: "active"}, access(debit))
	for _, line := range a.log {
		assert.NotContains(t, line, "paid", "the charges of a subscription are not reported as orders")
	}
}
