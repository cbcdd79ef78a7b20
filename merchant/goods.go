package merchant

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/sqldb"
	"github.com/gateway-go/gateway/merchant/internal/books"
	"github.com/gateway-go/gateway/merchant/internal/ledger"
)

// Goods says whether the goods of an order, or of a sale by link, are owed to the buyer now.
// The first call has the State Paid, the next one not, the one after it Paid again, and so on;
// the last one says what the books say.
//
// Goods are owed once the order was paid in full, as long as what is left of its payments
// covers its price. To refund a part of the payment is your decision, and does not change what
// you owe; if you refund all of it, nothing is owed. A dispute or a chargeback is not your
// decision: while it takes a part of the price, nothing is owed. If it ends in your favor, the
// goods are owed again. Money that the order did not need, such as a second payment, changes
// nothing when it goes back.
//
// An order that was closed before its goods were told is a [Problem] of the kind
// [ProblemClosed] instead: you wanted no more money, and it was paid.
type Goods struct {
	Book  string  // see [Account]
	Order string  // the ID of the order; "" if it is a sale by link
	Sale  *Charge // of a sale by link, else nil; it has a Buyer

	// State is Paid if the goods are owed: send them. Else they are not, because of a refund
	// (Refunded) or of a dispute (Disputed): don't send them any more, or ask for them back.
	State State
	Left  int64 // what is left of all payments, in cents
}

// Access is until when a member may use what a subscription pays for. It is told with the
// newest values when one of them has changed, beginning with the first period or trial.
type Access struct {
	Book string // see [Account]
	ID   string // of the subscription

	// Until is the end of the last period whose payment you have, or of the trial. It goes back
	// if this payment is refunded in full, disputed or charged back; zero if no period is left.
	Until time.Time

	State gateway.SubscriptionStatus
	Ends  bool // it will not be renewed: it is canceled, or will be
}

// callback is a callback, and whether a process has it.
type callback struct {
	name books.Callback
	set  bool
}

// heard returns the callbacks for which a process delivers facts, and those that are nil.
// What this release does not know, as a newer one's, is in neither list.
func heard(on *Callbacks[sqldb.Tx]) (yes, no []books.Callback) {
	for _, c := range callbacks(on) {
		if c.set {
			yes = append(yes, c.name)
		} else {
			no = append(no, c.name)
		}
	}
	return yes, no
}

// callbacks returns all callbacks that this release knows.
func callbacks(on *Callbacks[sqldb.Tx]) []callback {
	return []callback{
		{books.OnGoods, on.Goods != nil},
		{books.OnAccess, on.Access != nil},
		{books.OnPaid, on.Paid != nil},
		{books.OnPaidAgain, true}, // a problem or a refund, if it is nil
		{books.OnUnpaid, on.Unpaid != nil},
		{books.OnRefunded, on.Refunded != nil},
		{books.OnRefundRejected, true}, // a problem, if it is nil
		{books.OnDisputed, on.Disputed != nil},
		{books.OnPayout, on.Payout != nil},
		{books.OnSubscription, on.Subscription != nil},
		{onProblem, on.Problem != nil},
	}
}

// judge adds the facts about goods and access that follow from what work has changed.
func (b *bench) judge(ctx context.Context, l ledger.Ledger, p *place) error {
	switch {
	case b.subscription != nil:
		return b.judgeAccess(ctx, l, p.charges)
	case p.charges:
		b.judgeGoods()
	}
	return nil
}

// judgeGoods needs all charges of the order. Before one has settled it nothing is owed.
func (b *bench) judgeGoods() {
	settling, err := b.charge(b.order.SettledBy)
	if err != nil {
		return
	}
	list := make([]books.Charge, len(b.charges))
	for i, ch := range b.charges {
		list[i] = ch.Books
	}
	var result books.Result
	b.order.Order, result = books.Goods(b.order.Order, list, b.now)
	b.conclude(settling.account, result)
}

// conclude reports what follows for goods and access, without a callback if the merchant knows.
func (b *bench) conclude(a *account, result books.Result) {
	if b.knows && len(result.Facts) > 0 {
		b.tells = true
		for i := range result.Facts {
			result.Facts[i].Callback = books.None
		}
	}
	b.report(a, result)
}

// tell stores that the merchant knows what follows for goods and access.
func (b *bench) tell(ctx context.Context, l ledger.Ledger) error {
	switch {
	case !b.tells:
		return nil
	case b.subscription == nil:
		return l.Tell(ctx, b.order.Subject(), b.order.Owed)
	}
	access, err := encoded(&b.subscription.Books.Access)
	if err != nil {
		return err
	}
	return l.TellMember(ctx, b.order.Subject(), access)
}

// judgeAccess reads the other charges of the subscription, of which there may be many, only if
// something was changed and they are not on the bench.
func (b *bench) judgeAccess(ctx context.Context, l ledger.Ledger, all bool) error {
	changed := b.subscription.touched
	onBench := make(map[string]bool, len(b.charges))
	var list []books.Charge
	for _, ch := range b.charges {
		changed = changed || ch.touched
		onBench[ch.Books.ID] = true
		list = append(list, ch.Books)
	}
	switch {
	case !changed:
		return nil
	case !all:
		stored, err := b.m.loadCharges(ctx, l, ledger.Where{Subject: b.order.Subject()})
		if err != nil {
			return err
		}
		for _, ch := range stored {
			if !onBench[ch.Books.ID] {
				list = append(list, ch.Books)
			}
		}
	}
	var result books.Result
	b.subscription.Books, result = books.MemberAccess(b.order.Order, b.subscription.Books, list, b.now)
	b.conclude(b.subscription.account, result)
	return nil
}

// callGoods tells the merchant whether the goods are owed, unless he has heard it. The order is
// locked, so that what he is told is true until the transaction is committed.
func (m *core) callGoods(ctx context.Context, tx sqldb.Tx, f *ledger.Fact) error {
	l := m.ledger(tx)
	order, is, _, err := l.Lock(ctx, f.Subject, ledger.NoWait, ledger.With{Charges: true})
	switch {
	case err != nil:
		return err
	case order.Owed == order.Told:
		return nil
	case order.Owed && order.Closed:
		return m.raiseClosed(ctx, tx, f)
	}
	charges, err := m.chargesOf(is)
	if err != nil {
		return err
	}
	g := &Goods{Book: f.Subject.Book, Order: ledger.OrderID(f.Subject), Left: order.Left()}
	list := make([]books.Charge, len(charges))
	for i, ch := range charges {
		list[i] = ch.Books
	}
	g.State = books.Why(order.Order, list)
	if f.Subject.IsSale() && len(charges) > 0 {
		g.Sale = charges[0].shown()
	}
	if err := m.callbacks.Goods(ctx, tx, g); err != nil {
		return err
	}
	return l.Tell(ctx, f.Subject, order.Owed)
}

// raiseClosed makes a problem of goods that are owed for an order that was closed.
func (m *core) raiseClosed(ctx context.Context, tx sqldb.Tx, f *ledger.Fact) error {
	id := ledger.OrderID(f.Subject)
	return m.on(ctx, tx, place{subject: f.Subject}, func(b *bench) error {
		b.problem(m.anyAccount(f.Account, f.Subject.Book), &books.Problem{
			Key: string(books.IsClosed) + "/" + f.Key, Kind: books.IsClosed, Record: f.Record,
			Text: fmt.Sprintf("order %s was paid by charge %s, but closed before you were told: refund it, or send the goods", id, f.Record),
		})
		return nil
	})
}

// callAccess tells the merchant until when a member has access, unless he has heard it.
func (m *core) callAccess(ctx context.Context, tx sqldb.Tx, f *ledger.Fact) error {
	l := m.ledger(tx)
	if _, _, _, err := l.Lock(ctx, f.Subject, ledger.NoWait, ledger.With{}); err != nil {
		return err
	}
	id := ledger.SubscriptionID(f.Subject)
	s, err := m.loadSubscription(ctx, l, f.Subject.Book, id)
	if err != nil {
		return err
	}
	is := s.Books.Access
	now, err := encoded(&is)
	if err != nil {
		return err
	}
	told, err := l.Told(ctx, f.Subject)
	if err != nil || told == now {
		return err
	}
	if err := m.callbacks.Access(ctx, tx, &Access{Book: f.Subject.Book, ID: id, Until: is.Until, State: is.Status, Ends: is.Ends}); err != nil {
		return err
	}
	return l.TellMember(ctx, f.Subject, now)
}

// callPaidAgain reports money that an order does not need, and refunds it if that is wanted.
func (m *core) callPaidAgain(ctx context.Context, tx sqldb.Tx, f *ledger.Fact) error {
	refund := m.cfg.SecondPayment == RefundSecondPayment
	if m.callbacks.PaidAgain == nil && !refund {
		return m.raise(ctx, tx, f)
	}
	if err := m.callCharge(ctx, tx, f, m.callbacks.PaidAgain); err != nil || !refund {
		return err
	}
	ch, err := m.loadCharge(ctx, m.ledger(tx), f.Record)
	if err != nil {
		return err
	}
	if is := &ch.Books; is.Left() <= 0 { // it went back, or is withheld: if the dispute is won, there is another fact
		return nil
	}
	_, payment, _ := strings.Cut(f.Key, string(books.PaidAgain)+"/") // each gets a refund of its own
	_, err = m.bound(f.Subject.Book).refundTx(ctx, tx, RefundParams{
		ID: "again-" + strings.ReplaceAll(payment, "/", "-"), Charge: f.Record, Full: true, Reason: "paid again",
	}, nil)
	if errors.Is(err, ErrLeft) {
		return nil // refunds under way take all of it
	}
	return err
}
