package simulation

import (
	"time"

	"github.com/gateway-go/gateway"
)

// books is a merchant's database. It survives the processes, and only calls of the
// client and handlers of webhooks write to it.
type books struct {
	orders []*order
	byRef  map[string]*order
	byID   map[string]*order
	todo   []*order // those with a call to be made, the oldest first
}

// article is the kind of resource of an order.
type article string

const (
	pix          article = "pix"
	voucher      article = "voucher"
	card         article = "card"
	subscription article = "subscription"
	charge       article = "charge" // of a subscription
	payout       article = "payout"
)

// order is a resource as the merchant stores it, starting before its create.
type order struct {
	ref    string
	kind   article
	amount int64
	token  gateway.CardToken
	sub    string // the reference of a charge's subscription
	plan   plan

	id       string
	since    time.Time // when the first create was sent
	failed   bool      // rejected by the gateway: it does not exist
	status   string
	booked   time.Time // when status was last set
	paid     int64     // the sum of the reported payments
	refunded int64

	periodEnd time.Time // of a subscription
	begun     int       // periods of a subscription that were reported as paid

	asked     int64 // to be refunded, in all
	refund    *refund
	cancel    bool
	notBefore time.Time // of the next call
	calls     int       // consecutive failures
}

// plan has the other properties of a subscription or a payout.
type plan struct {
	method   gateway.SubscriptionMethod
	interval gateway.Interval
	policy   gateway.FailurePolicy
	trial    time.Time
	receiver gateway.PixKey
}

// refund is a refund that the merchant has decided and not yet completed.
type refund struct {
	amount int64
	upTo   int64 // the total refund afterwards
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

// queue records that a call must be made for an order.
func (b *books) queue(o *order) { b.todo = append(b.todo, o) }

// pending reports whether a call must be made.
func (o *order) pending() bool { return !o.failed && (o.id == "" || o.refund != nil || o.cancel) }

// rank orders the states of resources that only move forward. Subscriptions go back and
// forth: their state is always read.
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

// reach stores a state, unless the order has passed it.
func (o *order) reach(status string) {
	if o.rank(status) >= max(o.rank(o.status), 1) {
		o.status, o.booked = status, time.Now()
	}
}

// settledRank is the rank of a payment.
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

// worth is an order's contribution to the balance.
func (o *order) worth() int64 {
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

// sync stores a subscription as the API returned it, and its charges.
func (b *books) sync(o *order, sub *gateway.Subscription) {
	o.status, o.booked, o.periodEnd = string(sub.Status), time.Now(), sub.CurrentPeriodEnd.Time
	for _, tx := range sub.Transactions {
		if tx.Amount != o.amount {
			continue // validates the card of a trial, and is refunded at once
		}
		c := b.byID[tx.ID]
		if c == nil {
			c = &order{ref: tx.ID, id: tx.ID, kind: charge, sub: o.ref, amount: tx.Amount, since: tx.CreatedAt.Time}
			b.add(c)
		}
		c.reach(string(tx.Status))
		c.paid, c.refunded = tx.PaidAmount, tx.RefundedAmount
	}
}
