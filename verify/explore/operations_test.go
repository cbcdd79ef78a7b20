package explore_test

import (
	"context"
	"errors"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/explore/fault"
	"github.com/gateway-go/gateway/mockserver"
)

// operation is a call that moves money, and how to read what it has done.
type operation struct {
	name    string
	op      string // the client's name of the operation
	dialect mockserver.Dialect
	settled float64 // the percentage of an amount that the gateway reports; 0 means all
	options []gateway.Option
	amount  int64
	variant bool // similar to another operation, so the short run plays fewer of its schedules

	prepare func(*schedule) error // creates what must exist before the call
	call    func(context.Context, *gateway.Client, order, ...gateway.RequestOption) (id string, err error)
	again   func(context.Context, *schedule) (id string, err error) // the call of a restarted process; nil repeats the first call
	stored  func(context.Context, *schedule) ([]stored, error)

	// events are those that can happen around a request.
	events []int
	// repeatable says whether the call can be repeated after an unknown outcome.
	repeatable bool
}

// order is a merchant's request.
type order struct {
	reference   string // external_ref or idempotency key; "" if the client generates it
	amount      int64
	customer    string
	transaction string
	token       gateway.CardToken
}

// stored is an order as the gateway stores it.
type stored struct {
	id      string
	amount  int64
	creator int // the process that created it, or rivalProcess
}

const (
	rivalProcess = -1
	maxAttempts  = 3
	otherAmount  = 1500
)

func operations() []operation {
	everything := []int{rivalSendsSame, rivalSendsOther, contextEnds, processCrashes}
	charges := operation{
		op: "transactions.create", amount: 2000, call: createCharge, stored: storedCharges, events: everything, repeatable: true,
	}
	payouts := operation{
		op: "transfers.create", amount: 2000, call: createPayout, stored: storedPayouts, events: everything, repeatable: true,
	}
	subscriptions := operation{
		op: "subscriptions.create", amount: 2000, prepare: prepareCustomer, call: createSubscription, stored: storedSubscriptions,
		events: everything, repeatable: true,
	}
	refunds := operation{
		op: "transactions.refund", amount: 500, prepare: preparePaid, call: createRefund, stored: storedRefunds,
		again: refundAgain, events: []int{rivalSendsOther, contextEnds, processCrashes},
	}
	of := func(o operation, name string, dialect mockserver.Dialect, options ...gateway.Option) operation {
		o.name, o.dialect, o.options = name, dialect, options
		return o
	}
	unnamed := of(charges, "charge with a generated reference", mockserver.Live)
	unnamed.events, unnamed.variant = []int{contextEnds}, true
	card := of(charges, "charge of a card", mockserver.Live)
	card.variant = true
	card.prepare = func(s *schedule) error {
		s.order.token = "pgct_ok_1"
		return nil
	}
	keyed := of(refunds, "refund with an idempotency key", mockserver.Live, gateway.WithIdempotencyKeys())
	keyed.again, keyed.repeatable = nil, true
	settled, part := of(charges, "charge that is settled in part", mockserver.Live), of(keyed, "refund of more than is settled", mockserver.Live, keyed.options...)
	settled.settled, settled.variant = 19.27, true
	part.settled, part.variant = 19.27, true
	list := []operation{
		of(charges, "charge, live", mockserver.Live), of(payouts, "payout, live", mockserver.Live),
		of(subscriptions, "subscription, live", mockserver.Live), of(refunds, "refund", mockserver.Document), keyed, card, unnamed, settled, part,
	}
	for _, o := range []operation{
		of(charges, "charge, document", mockserver.Document), of(payouts, "payout, document", mockserver.Document),
		of(subscriptions, "subscription, document", mockserver.Document),
	} {
		o.variant = true
		list = append(list, o)
	}
	return list
}

// gateway returns the options of the operation's gateway.
func (o *operation) gateway() []mockserver.Option {
	opts := []mockserver.Option{mockserver.WithDialect(o.dialect)}
	if o.settled > 0 {
		opts = append(opts, mockserver.WithSettledPercent(o.settled))
	}
	return opts
}

func createCharge(ctx context.Context, c *gateway.Client, o order, opts ...gateway.RequestOption) (string, error) {
	params := gateway.TransactionParams{
		ExternalRef: o.reference, Amount: o.amount, Method: gateway.Pix,
		Buyer: gateway.BuyerParams{
			Name: "Ana", Email: "ana@example.com", Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"},
		},
		Products: []gateway.Product{{Name: "Book", Price: o.amount}},
	}
	if o.token != "" {
		params.Method, params.Token = gateway.CreditCard, o.token
	}
	t, err := c.Transactions.Create(ctx, params, opts...)
	if err != nil {
		return "", err
	}
	return t.ID, nil
}

func storedCharges(ctx context.Context, s *schedule) ([]stored, error) {
	page, err := s.sound.Transactions.List(ctx, gateway.TransactionListParams{Limit: 100})
	return all(page, err, func(t *gateway.Transaction) stored { return stored{t.ID, t.Charged(), s.creators[t.ID]} })
}

// all converts the items of the only page.
func all[T any](page *gateway.Page[T], err error, item func(*T) stored) ([]stored, error) {
	if err != nil {
		return nil, err
	}
	var list []stored
	for i := range page.Items {
		list = append(list, item(&page.Items[i]))
	}
	return list, nil
}

func createPayout(ctx context.Context, c *gateway.Client, o order, opts ...gateway.RequestOption) (string, error) {
	t, err := c.Transfers.Create(ctx, gateway.TransferParams{
		PixKeyType: gateway.PixKeyEmail, PixKeyValue: "ana@example.com", Amount: o.amount, ExternalRef: o.reference,
	}, opts...)
	if err != nil {
		return "", err
	}
	return t.ID, nil
}

func storedPayouts(ctx context.Context, s *schedule) ([]stored, error) {
	page, err := s.sound.Transfers.List(ctx, gateway.TransferListParams{Limit: 100})
	return all(page, err, func(t *gateway.Transfer) stored { return stored{t.ID, t.Amount, s.creators[t.ID]} })
}

func prepareCustomer(s *schedule) error {
	c, err := s.sound.Customers.Create(s.t.Context(), gateway.CustomerParams{Name: "Ana", Email: "ana@example.com"})
	if err != nil {
		return err
	}
	s.order.customer, s.order.token = c.ID, "pgct_ok_1"
	return nil
}

func createSubscription(ctx context.Context, c *gateway.Client, o order, opts ...gateway.RequestOption) (string, error) {
	sub, err := c.Subscriptions.Create(ctx, gateway.SubscriptionParams{
		CustomerID: o.customer, Amount: o.amount, Token: o.token, Interval: gateway.IntervalMonth, IdempotencyKey: o.reference,
	}, opts...)
	if err != nil {
		return "", err
	}
	return sub.ID, nil
}

// storedSubscriptions also counts the charges: a second charge counts as a
// second subscription.
func storedSubscriptions(ctx context.Context, s *schedule) ([]stored, error) {
	page, err := s.sound.Subscriptions.List(ctx, gateway.SubscriptionListParams{Limit: 100})
	if err != nil {
		return nil, err
	}
	var list []stored
	for _, sub := range page.Items {
		list = append(list, stored{sub.ID, sub.Amount, s.creators[sub.ID]})
	}
	charges, err := s.sound.Transactions.List(ctx, gateway.TransactionListParams{Limit: 100})
	if err == nil && len(charges.Items) != len(list) {
		err = errors.New("the subscription and its charges differ")
	}
	return list, err
}

const paid = 2000

func preparePaid(s *schedule) error {
	id, err := createCharge(s.t.Context(), s.sound, order{amount: paid})
	if err != nil {
		return err
	}
	s.order.transaction = id
	return s.server.Account(s.key).Transactions.Pay(id)
}

// createRefund sends an idempotency key if the order has one.
func createRefund(ctx context.Context, c *gateway.Client, o order, opts ...gateway.RequestOption) (string, error) {
	if o.reference != "" {
		opts = append(opts, gateway.IdempotencyKey(o.reference))
	}
	_, err := c.Transactions.Refund(ctx, o.transaction, gateway.RefundParams{Amount: o.amount}, opts...)
	return "", err
}

const rivalRefund = 300

// storedRefunds returns the refunds of the order, computed from the refunded amount
// without the rival's refund.
func storedRefunds(ctx context.Context, s *schedule) ([]stored, error) {
	t, err := s.sound.Transactions.Get(ctx, s.order.transaction)
	if err != nil {
		return nil, err
	}
	rest := t.RefundedAmount
	if s.rivals > 0 {
		rest -= rivalRefund
	}
	if rest%s.operation.amount != 0 {
		return nil, errors.New("the refunded amount does not add up")
	}
	var list []stored
	for ; rest > 0; rest -= s.operation.amount {
		list = append(list, stored{amount: s.operation.amount})
	}
	return list, nil
}

var errReadFailed = errors.New("the transaction could not be read")

// refundAgain is what a restarted process does without an idempotency key: it waits
// until no request can be in flight, and reads the transaction before it sends a
// refund.
func refundAgain(ctx context.Context, s *schedule) (string, error) {
	time.Sleep(time.Hour)
	s.arrive(fault.AfterTheCall)
	t, err := s.client.Transactions.Get(ctx, s.order.transaction)
	if err != nil {
		return "", errors.Join(errReadFailed, err)
	}
	if t.RefundedAmount >= s.order.amount {
		return "", nil
	}
	return s.merchant(ctx, s.order)
}
