package simulation

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/gateway-go/gateway"
	kit "github.com/gateway-go/gateway/merchant"
)

// callbacks are those of a shop: each writes that it was called, and may fail after that.
func (s *shop) callbacks() kit.Callbacks[*sql.Tx] {
	ofCharge := func(name string) func(context.Context, *sql.Tx, *kit.Charge) error {
		return func(ctx context.Context, tx *sql.Tx, c *kit.Charge) error { return s.called(ctx, tx, name, c.ID) }
	}
	ofRefund := func(name string) func(context.Context, *sql.Tx, *kit.Refund) error {
		return func(ctx context.Context, tx *sql.Tx, r *kit.Refund) error {
			if r.ID == "" {
				return s.called(ctx, tx, name, r.Charge)
			}
			return s.called(ctx, tx, name, r.ID)
		}
	}
	return kit.Callbacks[*sql.Tx]{
		Goods: func(ctx context.Context, tx *sql.Tx, g *kit.Goods) error {
			subject := "order/" + g.Order
			if g.Sale != nil {
				subject = "link/" + g.Sale.ID
			}
			return s.told(ctx, tx, "goods", subject, string(g.State))
		},
		Access: func(ctx context.Context, tx *sql.Tx, a *kit.Access) error {
			return s.told(ctx, tx, "access", a.ID, fmt.Sprintf("%d %s %t", a.Until.Unix(), a.State, a.Ends))
		},
		Paid: s.paid,
		PaidAgain: func(ctx context.Context, tx *sql.Tx, c *kit.Charge) error {
			return s.called(ctx, tx, "paid_again", c.ID)
		},
		Unpaid: ofCharge("unpaid"), Disputed: ofCharge("disputed"), Refunded: ofRefund("refunded"), RefundRejected: ofRefund("refund_rejected"),
		Payout: func(ctx context.Context, tx *sql.Tx, p *kit.Payout) error { return s.called(ctx, tx, "payout", p.ID) },
		Subscription: func(ctx context.Context, tx *sql.Tx, m *kit.Subscription) error {
			return s.called(ctx, tx, "subscription", m.ID)
		},
		Problem: func(ctx context.Context, tx *sql.Tx, p *kit.Problem) error {
			return s.called(ctx, tx, "problem", p.Record)
		},
	}
}

func (s *shop) paid(ctx context.Context, tx *sql.Tx, c *kit.Charge) error {
	y := s.y
	switch {
	case c.Origin == kit.FromLink:
	case y.cfg.Defect == ShipsAtOnce:
		y.mu.Lock()
		y.parcels[c.Order]++
		y.mu.Unlock()
	default:
		if err := kit.One(tx.ExecContext(ctx, `UPDATE orders SET ships = ships + 1 WHERE id = ?`, c.Order)); err != nil {
			return err
		}
	}
	return s.called(ctx, tx, "paid", c.ID)
}

var errCallback = errors.New("a bug in a callback")

// called writes in the callback's transaction that it was called. There is no unique
// constraint: only package merchant prevents a second row.
func (s *shop) called(ctx context.Context, tx *sql.Tx, name, record string) error {
	if err := kit.One(tx.ExecContext(ctx, `INSERT INTO called (callback, record) VALUES (?, ?)`, name, record)); err != nil {
		return err
	}
	return s.mayFail()
}

// told writes in the callback's transaction what the shop was told.
func (s *shop) told(ctx context.Context, tx *sql.Tx, what, subject, state string) error {
	if err := kit.One(tx.ExecContext(ctx, `INSERT INTO told (what, subject, state) VALUES (?, ?, ?)`, what, subject, state)); err != nil {
		return err
	}
	return s.mayFail()
}

// mayFail is a bug in a callback.
func (s *shop) mayFail() error {
	switch {
	case s.y.chance(s.y.crashes, 40):
		return errCallback
	case s.y.chance(s.y.crashes, 40):
		panic(errCallback)
	}
	return nil
}

// tables creates the shop's own tables.
func (y *Year) tables(ctx context.Context) error {
	for _, statement := range []string{
		`CREATE TABLE orders (id text PRIMARY KEY, ships int NOT NULL, closed int NOT NULL)`,
		`CREATE TABLE told (id INTEGER PRIMARY KEY AUTOINCREMENT, what text NOT NULL, subject text NOT NULL, state text NOT NULL)`,
		`CREATE TABLE called (id INTEGER PRIMARY KEY AUTOINCREMENT, callback text NOT NULL, record text NOT NULL)`,
	} {
		if _, err := y.reader.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// opens schedules what the shop does by itself.
func (y *Year) opens(ctx context.Context) {
	for i, price := range []int64{1500, 4900} {
		y.staff(ctx, fmt.Sprintf("link-%d", i), func(ctx context.Context, s *shop) error {
			p := kit.LinkParams{ID: fmt.Sprintf("offer-%d", i)}
			p.Products = []gateway.CheckoutProduct{{ExternalID: fmt.Sprintf("MUG-%d", i), Name: fmt.Sprintf("Mug %d", i), Price: price, Quantity: 1}}
			link, err := s.m.Link(ctx, p)
			if err == nil {
				y.links = append(y.links, link.URL)
			}
			return err
		})
	}
	y.every(12*time.Hour, 96*time.Hour, y.sell)
	y.every(5*day, 25*day, y.subscribe)
	y.every(4*day, 14*day, y.payOut)
	y.every(2*day, 8*day, y.buyByLink)
}

func (y *Year) every(lo, hi time.Duration, do func(context.Context)) {
	y.agenda.add(time.Now().Add(between(y.people, lo, hi)), decision, func(ctx context.Context) {
		do(ctx)
		y.every(lo, hi, do)
	})
}

// after schedules what a person does.
func (y *Year) after(lo, hi time.Duration, do func(context.Context)) {
	y.agenda.add(time.Now().Add(between(y.people, lo, hi)), decision, do)
}

// staff makes a call of package merchant, and repeats it while the process is down or the
// outcome of an earlier call is not known.
func (y *Year) staff(ctx context.Context, what string, do func(ctx context.Context, s *shop) error) {
	s, err := y.shop, errCrashed
	if s.m != nil && !s.crashed.Load() {
		err = do(ctx, s)
	}
	if err != nil {
		y.note("staff", "%s: %v", what, err)
	}
	switch {
	case err == nil, errors.Is(err, kit.ErrState), errors.Is(err, kit.ErrLeft), errors.Is(err, kit.ErrNotFound), errors.Is(err, gateway.ErrValidation):
		return
	}
	y.agenda.add(time.Now().Add(between(y.people, time.Minute, time.Hour)), decision, func(ctx context.Context) { y.staff(ctx, what, do) })
}

// bank makes a payer or a bank act on the transaction of an order's charge.
func (y *Year) bank(what, order string, attempt int, lo, hi time.Duration, do func(transaction string) error) {
	y.after(lo, hi, func(ctx context.Context) {
		var id sql.NullString
		err := y.reader.QueryRowContext(ctx, `SELECT transaction_id FROM gateway_charges WHERE subject = ? AND attempt = ?`, "order/"+order, attempt).Scan(&id)
		if err == nil {
			err = do(id.String)
		}
		y.did(what, order+" "+id.String, err)
	})
}

func (y *Year) did(what, whom string, err error) {
	outcome := "done"
	if err != nil {
		outcome = err.Error()
	}
	y.note("people", "%s: %s: %s", whom, what, outcome)
}

// cart describes a charge.
func (y *Year) cart(order string, amount int64, method gateway.Method) kit.ChargeParams {
	p := kit.ChargeParams{Order: order}
	p.Amount, p.Method = amount, method
	p.Buyer = gateway.BuyerParams{
		Name: "Ana", Email: "ana@example.com", Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"},
		Address: &gateway.Address{Street: "Rua A", Number: "1", City: "São Paulo", State: "SP", ZipCode: "01001000", Country: "BR", Neighborhood: "Sé"},
	}
	p.Products = []gateway.Product{{Name: "Book", Price: amount}}
	if method == gateway.CreditCard {
		p.Token = pick(y.people.IntN(100), weight[gateway.CardToken]{40, "pgct_paid"}, weight[gateway.CardToken]{15, "pgct_captured"},
			weight[gateway.CardToken]{10, "pgct_refused"}, weight[gateway.CardToken]{15, "pgct_ok"}, weight[gateway.CardToken]{10, "pgct_3ds"},
			weight[gateway.CardToken]{10, "pgct_chargeback"})
		p.Token += gateway.CardToken(fmt.Sprintf("_%s_%d", order, y.people.IntN(1000)))
	}
	return p
}

func (y *Year) method() gateway.Method {
	return pick(y.people.IntN(100), weight[gateway.Method]{50, gateway.Pix}, weight[gateway.Method]{20, gateway.Voucher}, weight[gateway.Method]{30, gateway.CreditCard})
}

// sell sells an order: what its buyer will do is decided now.
func (y *Year) sell(ctx context.Context) {
	y.sold++
	order := fmt.Sprintf("A%03d", y.sold)
	amount := 500 + y.people.Int64N(50_000)
	p := y.cart(order, amount, y.method())
	later := y.people.IntN(2) == 0 // Run sends it
	y.staff(ctx, "charge "+order, func(ctx context.Context, s *shop) error { return s.charge(ctx, p, later) })
	y.pays(order, 1, p)
	switch y.people.IntN(6) {
	case 0: // the cart grows
		y.again(order, amount+1+y.people.Int64N(9000), y.method())
	case 1: // tries another method, and may pay both
		y.again(order, amount, y.method())
	case 2: // reloads the page
		y.after(time.Second, time.Hour, func(ctx context.Context) {
			y.staff(ctx, "charge "+order, func(ctx context.Context, s *shop) error { return s.charge(ctx, p, later) })
		})
	case 3: // cancels, and may pay nevertheless
		y.after(time.Second, 30*time.Hour, func(ctx context.Context) {
			y.staff(ctx, "close "+order, func(ctx context.Context, s *shop) error { return s.close(ctx, order) })
		})
	}
	returns := y.people.IntN(6) - 3
	if y.cfg.Defect == RefundsByItself { // few of its responses are lost
		returns = 4
	}
	for i := range returns {
		y.goBack(order, i)
	}
}

func (y *Year) again(order string, amount int64, method gateway.Method) {
	p := y.cart(order, amount, method)
	y.after(time.Second, 2*time.Hour, func(ctx context.Context) {
		y.staff(ctx, "charge "+order, func(ctx context.Context, s *shop) error { return s.charge(ctx, p, false) })
	})
	y.pays(order, 2, p)
}

// pays schedules what the payer and the bank do with a charge.
func (y *Year) pays(order string, attempt int, p kit.ChargeParams) {
	gw := y.gw.Transactions
	switch p.Method {
	case gateway.Pix:
		if y.people.IntN(6) > 0 {
			y.bank("pays", order, attempt, time.Minute, 26*time.Hour, gw.Pay)
		}
		if y.people.IntN(8) == 0 {
			y.med(order, attempt)
		}
	case gateway.Voucher:
		if y.people.IntN(5) > 0 {
			y.bank("pays", order, attempt, time.Hour, 12*day, gw.Pay)
		}
	default:
		switch n := y.people.IntN(10); {
		case n < 7:
			y.bank("pays", order, attempt, time.Second, time.Hour, gw.Pay)
		case n < 9:
			y.bank("is declined", order, attempt, time.Second, time.Hour, gw.Refuse)
		default:
			y.bank("is canceled", order, attempt, time.Hour, 5*day, gw.Cancel)
		}
		switch y.people.IntN(4) {
		case 0:
			y.bank("fails the challenge", order, attempt, time.Second, 10*time.Minute, gw.FailChallenge)
		case 1, 2:
			y.bank("passes the challenge", order, attempt, time.Second, 10*time.Minute, gw.PassChallenge)
		}
		if y.people.IntN(10) == 0 {
			y.bank("charges back", order, attempt, 2*day, 40*day, gw.Chargeback)
		}
	}
}

// med disputes the payment of a Pix, which is won or lost later.
func (y *Year) med(order string, attempt int) {
	gw := y.gw.Transactions
	y.bank("disputes", order, attempt, 2*day, 20*day, gw.OpenDispute)
	if y.people.IntN(2) == 0 {
		y.bank("contests", order, attempt, 21*day, 25*day, gw.ContestDispute)
	}
	if y.people.IntN(2) == 0 {
		y.bank("loses the dispute", order, attempt, 26*day, 40*day, gw.LoseDispute)
	} else {
		y.bank("wins the dispute", order, attempt, 26*day, 40*day, gw.WinDispute)
	}
}

func (s *shop) inTx(ctx context.Context, run func(tx *sql.Tx) error) error {
	tx, err := s.db.BeginTx(context.WithoutCancel(ctx), nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	if err := run(tx); err != nil {
		return err
	}
	return tx.Commit()
}

func (s *shop) charge(ctx context.Context, p kit.ChargeParams, later bool) error {
	const insert = `INSERT INTO orders (id, ships, closed) VALUES (?, 0, 0) ON CONFLICT DO NOTHING`
	if !later {
		if err := s.inTx(ctx, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, insert, p.Order)
			return err
		}); err != nil {
			return err
		}
		_, err := s.m.Charge(ctx, p)
		return err
	}
	return s.inTx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, insert, p.Order); err != nil {
			return err
		}
		_, err := s.m.ChargeTx(ctx, tx, p)
		return err
	})
}

func (s *shop) close(ctx context.Context, order string) error {
	return s.inTx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `UPDATE orders SET closed = 1 WHERE id = ?`, order); err != nil {
			return err
		}
		return s.m.CloseOrderTx(ctx, tx, order)
	})
}

// goBack refunds a part of an order, or all of it. What the shop decides is noted before
// it may be stored.
func (y *Year) goBack(order string, number int) {
	kind, share := y.people.IntN(3), 1+y.people.Int64N(99)
	if y.cfg.Defect == RefundsByItself {
		kind, share = 2, 1+share/4
	}
	y.after(day, 30*day, func(ctx context.Context) {
		var p *kit.RefundParams
		y.staff(ctx, "refund "+order, func(ctx context.Context, s *shop) error {
			if p == nil {
				o, err := s.m.Order(ctx, order)
				if err != nil {
					return err
				}
				c := o.Current()
				if c == nil || c.Left() == 0 {
					return kit.ErrState
				}
				p = &kit.RefundParams{ID: fmt.Sprintf("return-%s-%d", order, number), Charge: c.ID}
				part := max(1, c.Left()*share/100)
				switch {
				case kind == 0 || c.Method == gateway.Voucher:
					p.Full = true
					y.decided[c.ID] = c.Paid
				case kind == 1:
					p.UpTo = c.Refunded + part
					y.decided[c.ID] = max(y.decided[c.ID], p.UpTo)
				default:
					p.Amount = part
					y.decided[c.ID] += part
				}
			}
			return s.refund(ctx, *p)
		})
	})
}

func (s *shop) refund(ctx context.Context, p kit.RefundParams) error {
	if s.y.cfg.Defect != RefundsByItself {
		_, err := s.m.Refund(ctx, p)
		return err
	}
	var id string
	var paid int64
	err := s.db.QueryRowContext(ctx, `SELECT transaction_id, paid FROM gateway_charges JOIN gateway_orders USING (subject) WHERE id = ?`, p.Charge).Scan(&id, &paid)
	if err != nil {
		return err
	}
	if p.Full {
		p.Amount = paid
	}
	_, err = s.client.Transactions.Refund(ctx, id, gateway.RefundParams{Amount: p.Amount})
	return err // and again, if it failed
}

func (y *Year) subscribe(ctx context.Context) {
	id := fmt.Sprintf("M%03d", len(y.members)+1)
	y.members[id] = time.Now()
	p := kit.SubscribeParams{ID: id, Customer: gateway.CustomerParams{
		Name: "Ana", Email: "ana@example.com", Phone: "11987654321", Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"},
	}}
	p.Amount = 1000 + y.people.Int64N(9000)
	p.Interval = pick(y.people.IntN(100), weight[gateway.Interval]{70, gateway.IntervalMonth}, weight[gateway.Interval]{30, gateway.IntervalWeek})
	p.FailurePolicy = pick(y.people.IntN(100), weight[gateway.FailurePolicy]{75, gateway.RetryThenCancel}, weight[gateway.FailurePolicy]{25, gateway.ImmediateCancel})
	p.PaymentMethod = gateway.SubscriptionCreditCard
	if y.people.IntN(4) == 0 {
		p.TrialEnd = time.Now().Add(between(y.people, 8*day, 20*day)).Truncate(time.Second)
	}
	if y.people.IntN(4) == 0 {
		p.PaymentMethod = gateway.SubscriptionPixAutomatic
	} else {
		p.Token = pick(y.people.IntN(100), weight[gateway.CardToken]{50, "pgct_ok"}, weight[gateway.CardToken]{20, "pgct_renewal_fails_2"},
			weight[gateway.CardToken]{10, "pgct_renewal_fails"}, weight[gateway.CardToken]{5, "pgct_refused"},
			weight[gateway.CardToken]{5, "pgct_always_fails"}, weight[gateway.CardToken]{10, "pgct_3ds"}) + gateway.CardToken("_"+id)
	}
	y.staff(ctx, "subscribe "+id, func(ctx context.Context, s *shop) error {
		_, err := s.m.Subscribe(ctx, p)
		return err
	})
	gw := y.gw.Subscriptions
	y.payer("authorizes", id, time.Minute, 20*time.Hour, func(sub, _ string) error {
		if p.PaymentMethod != gateway.SubscriptionPixAutomatic {
			return errors.New("nothing to authorize")
		}
		return gw.Authorize(sub)
	})
	y.payer("passes the challenge", id, time.Second, 10*time.Minute, func(_, charge string) error { return y.gw.Transactions.PassChallenge(charge) })
	for range y.people.IntN(3) {
		failures := 1 + y.people.IntN(4)
		y.payer("runs out of money", id, 5*day, 200*day, func(sub, _ string) error { return gw.FailNextCharges(sub, failures) })
	}
	switch y.people.IntN(8) {
	case 0:
		y.payer("revokes", id, 20*day, 200*day, func(sub, _ string) error { return gw.Revoke(sub) })
	case 1:
		y.payer("charges back", id, 20*day, 200*day, func(_, charge string) error { return y.gw.Transactions.Chargeback(charge) })
	case 2, 3:
		y.after(time.Hour, 250*day, func(ctx context.Context) {
			y.staff(ctx, "cancel "+id, func(ctx context.Context, s *shop) error {
				_, err := s.m.CancelSubscription(ctx, id, "")
				return err
			})
		})
	}
}

// payer makes a payer act on a subscription and its newest charge.
func (y *Year) payer(what, id string, lo, hi time.Duration, do func(subscription, charge string) error) {
	y.after(lo, hi, func(ctx context.Context) {
		var sub sql.NullString
		err := y.reader.QueryRowContext(ctx, `SELECT subscription_id FROM gateway_subscriptions WHERE id = ?`, id).Scan(&sub)
		var full *gateway.Subscription
		if err == nil && sub.Valid {
			full, err = y.sound.Subscriptions.Get(ctx, sub.String)
		}
		switch {
		case err != nil:
		case full == nil || len(full.Transactions) == 0:
			err = do(sub.String, "")
		default:
			err = do(sub.String, full.Transactions[len(full.Transactions)-1].ID)
		}
		y.did(what, id+" "+sub.String, err)
	})
}

func (y *Year) payOut(ctx context.Context) {
	p := kit.PayoutParams{ID: fmt.Sprintf("bill-%d", time.Now().Unix())}
	p.PixKeyType, p.Amount = gateway.PixKeyEmail, 1000+y.people.Int64N(20_000)
	p.PixKeyValue = pick(y.people.IntN(100), weight[gateway.PixKey]{50, "ana@example.com"}, weight[gateway.PixKey]{15, "fail@example.com"},
		weight[gateway.PixKey]{15, "analysis@example.com"}, weight[gateway.PixKey]{20, returned})
	if y.people.IntN(2) == 0 && y.sold > 0 {
		p.Order = fmt.Sprintf("A%03d", 1+y.people.IntN(y.sold))
	}
	y.staff(ctx, "pay out "+p.ID, func(ctx context.Context, s *shop) error {
		_, err := s.m.Payout(ctx, p)
		return err
	})
}

func (y *Year) buyByLink(ctx context.Context) {
	if len(y.links) == 0 {
		return
	}
	url := y.links[y.people.IntN(len(y.links))]
	slug := (&gateway.CheckoutLink{URL: url}).Slug()
	session, err := y.sound.CheckoutSessions.Open(ctx, slug)
	if err == nil {
		_, err = y.sound.CheckoutSessions.Update(ctx, slug, session.SessionToken, gateway.CheckoutSessionParams{
			Buyer: gateway.CheckoutBuyer{Name: "Bia", Email: "bia@example.com"}, PaymentMethod: gateway.Pix,
		})
	}
	if err == nil {
		err = y.gw.Checkout.Pay(slug)
	}
	y.did("buys by link", slug, err)
}

// hasClosed reports whether the shop has closed an order.
func (y *Year) hasClosed(ctx context.Context, order string) bool {
	var closed bool
	err := y.reader.QueryRowContext(ctx, `SELECT closed FROM orders WHERE id = ?`, order).Scan(&closed)
	return err == nil && closed
}

// decides is the person who decides about problems. It reports whether there were any that
// a shop has to expect: what it does not expect, it leaves.
func (y *Year) decides(ctx context.Context) (decided bool) {
	problems, err := y.shop.m.Problems(ctx)
	if err != nil {
		y.note("staff", "problems: %v", err)
	}
	for _, p := range problems {
		decision := kit.Dismiss
		switch {
		case p.Kind == kit.ProblemUnderpaid: // the cart had grown
			decision = kit.Accept
		case p.Kind == kit.ProblemContested:
		case p.Kind == kit.ProblemLower: // two stale reads in a row, days apart
		case p.Kind == kit.ProblemReversed && y.bankReturned(ctx, p.Record):
		case p.Kind == kit.ProblemClosed && y.hasClosed(ctx, p.Order): // it is sent nevertheless
		default:
			continue
		}
		err := y.shop.m.Resolve(ctx, p.ID, kit.Resolution{Decision: decision, By: "Rui", Why: "as expected"})
		if errors.Is(err, kit.ErrState) { // it was refunded or disputed meanwhile
			err = y.shop.m.Resolve(ctx, p.ID, kit.Resolution{Decision: kit.Dismiss, By: "Rui", Why: "it went back"})
		}
		y.did(string(decision)+" "+string(p.Kind), p.Record, err)
		decided = true
	}
	return decided
}
