package simulation

import (
	"time"

	"github.com/gateway-go/gateway"
)

// books is a merchant's database. It survives crashes, and only client calls and
// webhook handlers write to it.
type books struct {
	orders []*order
	byRef  map[string]*order
	byID   map[string]*order
	todo   []*order // those with a pending call, the oldest first
}

// orderKind is the type of an order.
type orderKind string

const (
	pix          orderKind = "pix"
	voucher      orderKind = "voucher"
	card         orderKind = "card"
	subscription orderKind = "subscription"
	charge       orderKind = "charge" // of a subscription
	payout       orderKind = "payout"
)

// order is a resource as the merchant stores it, starting before its create.
type order struct {
	ref    string
	kind   orderKind
	amount int64
	token  gateway.CardToken
	sub    string // the reference of a charge's subscription
	plan   plan

	id       string
	since    time.Time // when the first create was sent
	failed   bool      // rejected by the gateway: it does not exist
	status   string
	statusAt time.Time // when status was last set
	paid     int64     // the sum of the reported payments
	refunded int64

	periodEnd   time.Time // of a subscription
	paidPeriods int       // periods of a subscription that webhooks reported as paid

	toRefund  int64 // the total that the merchant has decided to refund
	refund    *refund
	cancel    bool
	notBefore time.Time // the earliest time of the next call
	failures  int       // consecutive failed calls
}

// plan has the other properties of a subscription or a payout.
type plan struct {
	method   gateway.SubscriptionMethod
	interval gateway.Interval
	policy   gateway.FailurePolicy
	trial    time.Time
	receiver gateway.PixKey
}

// refund is a refund that the merchant has decided to make and not yet completed.
type refund struct {
	amount int64
	upTo   int64 // the order's total refund afterwards
	key    string
	sent   time.Time // zero before the first request
}

func newBooks() *books { return &books{byRef: map[string]*order{}, byID: map[string]*order{}} }

func (b *books) add(o *order) {
	b.orders = append(b.orders, o)
	b.byRef[o.ref] = o
	if o.id != "" {
		b.byID[o.id] = o
	}
}

// queue records that an order has a pending call.
func (b *books) queue(o *order) { b.todo = append(b.todo, o) }

// pending reports whether the order has a pending call.
func (o *order) pending() bool { return !o.failed && (o.id == "" || o.refund != nil || o.cancel) }

// rank orders the states of resources whose state only moves forward.
// Subscriptions can go back, so their state is always read from the API.
func (o *order) rank(status string) int {
	if o.kind == payout {
		switch gateway.TransferStatus(status) {
		case gateway.TransferPending:
			return 1
		case gateway.TransferInAnalysis:
			return 2
		case gateway.TransferProcessing:
			return 3
		case gateway.TransferPaid, gateway.TransferError, gateway.TransferCancelled:
			return 4
		default:
			return 0
		}
	}
	switch gateway.TransactionStatus(status) {
	case gateway.TransactionPending, gateway.TransactionThreeDSRequired:
		return 1
	case gateway.TransactionExpired, gateway.TransactionCanceled, gateway.TransactionRefused:
		return 2
	case gateway.TransactionPaid, gateway.TransactionCaptured:
		return 3
	case gateway.TransactionPartiallyRefunded:
		return 4
	case gateway.TransactionRefunded:
		return 5
	case gateway.TransactionChargedback:
		return 6
	default:
		return 0
	}
}

// reach stores a state, unless the order is already past it.
func (o *order) reach(status string) {
	if o.rank(status) >= max(o.rank(o.status), 1) {
		o.status, o.statusAt = status, time.Now()
	}
}

// settledRank is the rank of a paid transaction.
const settledRank = 3

// refundable reports whether the order can be refunded.
func (o *order) refundable() bool {
	r := o.rank(o.status)
	return (r == settledRank || r == settledRank+1) && o.paid > o.refunded
}

// refundedTo stores the total amount refunded so far.
func (o *order) refundedTo(sum int64) {
	if sum <= o.refunded {
		return
	}
	o.refunded = sum
	o.reach(string(gateway.TransactionPartiallyRefunded))
	if o.refunded == o.amount {
		o.reach(string(gateway.TransactionRefunded))
	}
}

// net is an order's contribution to the balance.
func (o *order) net() int64 {
	switch {
	case o.kind == subscription, o.id == "":
		return 0
	case o.kind == payout:
		if s := gateway.TransferStatus(o.status); s == gateway.TransferError || s == gateway.TransferCancelled {
			return 0
		}
		return -o.amount
	case gateway.TransactionStatus(o.status) == gateway.TransactionChargedback:
		return 0
	default:
		return o.paid - o.refunded
	}
}

// sync stores a subscription and its charges as the API returned them.
func (b *books) sync(o *order, sub *gateway.Subscription) {
	o.status, o.statusAt, o.periodEnd = string(sub.Status), time.Now(), sub.CurrentPeriodEnd.Time
	for _, tx := range sub.Transactions {
		if !tx.AmountIs(o.amount) {
			continue // failed, or validates the card of a trial and is refunded immediately
		}
		c := b.byID[tx.ID]
		if c == nil {
			c = &order{ref: tx.ID, id: tx.ID, kind: charge, sub: o.ref, amount: o.amount, since: tx.CreatedAt.Time}
			b.add(c)
		}
		c.reach(string(tx.Status))
		c.paid, c.refunded = tx.Paid(), tx.RefundedAmount
	}
}
