package merchant

import (
	"html/template"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/merchant/internal/books"
	"github.com/gateway-go/gateway/pix"
)

// State is what is known about a record.
type State = books.State

// The states of charges, refunds and payouts.
const (
	New       = books.New       // stored; nothing was sent
	Unknown   = books.Unknown   // sent or may have been sent; the outcome is not known yet
	Ambiguous = books.Ambiguous // the outcome can't be determined; a person must decide
	Accepted  = books.Accepted  // a refund that the gateway confirmed and the transaction does not show yet
	Pending   = books.Pending   // waits for the payer, or a payout for the bank
	Paid      = books.Paid
	Underpaid = books.Underpaid // paid, but less than requested or in another currency
	Refunded  = books.Refunded  // nothing is left
	Disputed  = books.Disputed
	Done      = books.Done      // a refund that the transaction shows
	Failed    = books.Failed    // ended without moving money, see Reason
	Rejected  = books.Rejected  // the gateway rejected the refund or payout
	Canceled  = books.Canceled  // a payout that was canceled at the gateway
	Withdrawn = books.Withdrawn // withdrawn before it was sent
)

// Origin says who made a charge.
type Origin = books.Origin

// The origins.
const (
	FromOrder        = books.FromOrder // [Merchant.Charge]
	FromLink         = books.FromLink  // a buyer who opened a [Link]
	FromSubscription = books.FromSubscription
	FromAdoption     = books.FromAdoption // other code, see [Merchant.Adopt]
)

// Charge is one attempt to collect the money of an order, or a sale by link. Amounts are in cents of Currency
// and are the gateway's, except Requested.
type Charge struct {
	ID            string // also its external_ref; that of the transaction if other code made it, or it belongs to no order
	Book          string // see [Account]
	Account       string
	Order         string // "" if it is a sale by link or belongs to a subscription
	Origin        Origin
	Link          string // the ID of the link, "" if several of the account sell the same
	Subscription  string // the ID of the subscription, if it belongs to one
	Attempt       int    // of the order or the subscription, from 1
	TransactionID string
	Method        gateway.Method
	State         State
	Reason        string // of a failure: expired, canceled, a refusal reason, the code and the fields of a rejection

	Currency  gateway.Currency
	Requested int64 // what the order wants
	Amount    int64 // what the buyer is asked to pay, with interest
	Paid      int64
	Fee       int64 // as the gateway estimates it; 0 if it reports none
	Refunded  int64
	Disputed  int64
	Late      bool // paid after it had failed

	PixCode    string                  // "" unless it is a Pix
	Voucher    *gateway.VoucherDetails // nil unless it is a voucher
	Challenge  *gateway.NextAction     // the 3-D Secure challenge, nil unless one is open
	EndToEndID string                  // of a Pix that was paid
	Buyer      *gateway.Buyer          // nil unless it is a sale by link; empty if that was erased
	CreatedAt  time.Time               // by the database's clock
	ExpiresAt  time.Time               // of the Pix or voucher; may be zero
	PaidAt     time.Time               // zero before
	Erased     time.Time               // since when nothing is kept of the buyer, see [Merchant.Erase]; zero if something is

	// OrderLeft is what is left of all payments of the order, in cents, and OrderClosed says
	// that the order wants no more money, see [Merchant.CloseOrderTx]. They are zero except in
	// a callback.
	OrderLeft   int64
	OrderClosed bool

	account *account
	call    string // the call of Charge that made it
}

// Left returns what is left of the payment, in cents: Paid, less Refunded and Disputed.
func (c *Charge) Left() int64 { return c.Paid - c.Refunded - c.Disputed }

// QR returns the Pix code as an SVG picture for a page, "" if there is none.
func (c *Charge) QR() template.HTML {
	if c.PixCode == "" {
		return ""
	}
	picture, err := pix.Draw(c.PixCode)
	if err != nil { // too long for a QR code: the buyer copies it
		return ""
	}
	return template.HTML(picture.SVG()) //nolint:gosec // drawn here
}

// Refund is a refund, or money that went back without one of yours. Amounts are in cents.
type Refund struct {
	ID      string // yours; "" if someone else refunded
	Book    string // see [Account]
	Account string
	Charge  string // the ID of the charge
	State   State
	Amount  int64  // what went back, 0 before the outcome is known
	Reason  string // why it was rejected
	Order   Order  // the money of the order now; zero except in a callback

	charge *charge // of a new refund
}

// Payout is a transfer to a Pix key. Amounts are in cents of BRL.
type Payout struct {
	ID         string // yours
	Book       string // see [Account]
	Account    string
	Order      string // "" if it belongs to none
	Ref        string // its external_ref
	TransferID string
	State      State
	Reason     string // why it failed or was rejected

	Requested int64
	Amount    int64 // what the gateway takes from the balance, 0 before it is known
	Fee       int64 // part of Amount
	CreatedAt time.Time
	PaidAt    time.Time // zero before
	Erased    time.Time // since when nothing is kept of the receiver, see [Merchant.Erase]; zero if something is
}

// Order is the money of an order. Each amount is the sum of the order's entries, in cents
// of Currency. The zero value is an order that was never charged.
type Order struct {
	ID       string
	Book     string // see [Account]
	Currency gateway.Currency
	Paid     int64
	Fee      int64
	Refunded int64
	Disputed int64
	PaidOut  int64
	Adjusted int64     // by [Merchant.Adjust]; may be negative
	Price    int64     // what it had to pay when it was settled: what was asked for last or, if a person accepted less, what was paid
	Settled  bool      // it was paid in full
	Closed   bool      // it wants no more money, see [Merchant.CloseOrderTx]
	Erased   time.Time // since when nothing is kept of the buyer, see [Merchant.Erase]; zero if something is

	SettledBy string // the ID of the charge that paid it in full, "" before
	Latest    string // the ID of the charge that was asked for last
	Interest  int64  // what the charge that paid it in full was asked to pay beyond Price

	// PriceCurrency is the currency of Price if it is not that of the order: then the price is in
	// none of the order's sums.
	PriceCurrency gateway.Currency

	Charges []*Charge // the oldest first; nil in a callback
	Refunds []*Refund // the oldest first; nil in a callback
	Payouts []*Payout // the oldest first; nil in a callback
}

// Left returns what the buyer paid and has not got back, in cents.
func (o *Order) Left() int64 { return o.Paid - o.Refunded - o.Disputed }

// Excess returns what is left of a settled order beyond its price and the interest that the
// buyer was asked for, in cents: a second payment, or too much in one. Before it is settled it
// is 0. There is a [Problem] too. Of an order that you make in a test without a Price it is 0.
func (o *Order) Excess() int64 {
	switch {
	case !o.Settled, o.Price == 0 && o.SettledBy == "":
		return 0
	case o.PriceCurrency != "" && o.PriceCurrency != o.Currency:
		return o.Left()
	}
	return max(0, o.Left()-o.Price-o.Interest)
}

// Net returns what remains for you, in cents: Left, less Fee and PaidOut, with what was
// adjusted.
func (o *Order) Net() int64 { return o.Left() - o.Fee - o.PaidOut + o.Adjusted }

// Current returns the charge to show to the buyer: the one that paid the order, or else
// the one that [Merchant.Charge] returned last or, if that has ended, the newest one that
// may still be paid. It is nil if there is none.
//
// It needs Charges with their State. Of an order that you make in a test without SettledBy, the
// one that paid it is the newest one that was paid.
func (o *Order) Current() *Charge {
	var open, paid *Charge
	for _, c := range o.Charges {
		switch c.State {
		case New, Unknown, Ambiguous, Pending, Underpaid:
			if open == nil || o.Latest == "" || open.ID != o.Latest {
				open = c
			}
		case Paid, Refunded, Disputed:
			if o.Settled || !o.Closed && c.State == Paid {
				paid = c
			}
		}
		if o.SettledBy != "" && c.ID == o.SettledBy {
			return c
		}
	}
	switch {
	case o.SettledBy != "" || paid == nil, !o.Settled && open != nil:
		return open
	default:
		return paid
	}
}
