package books

import (
	"cmp"
	"slices"
	"time"

	"github.com/gateway-go/gateway"
)

// State is what is known about a record.
type State string

// The states. A subscription also has those of [gateway.SubscriptionStatus].
const (
	New       State = "new"       // stored; nothing was sent
	Unknown   State = "unknown"   // sent or may have been sent; the outcome is not known yet
	Ambiguous State = "ambiguous" // the outcome can't be determined; a person must decide
	Accepted  State = "accepted"  // a refund that the gateway confirmed and the transaction does not show yet
	Pending   State = "pending"   // waits for the payer, or a payout for the bank
	Paid      State = "paid"
	Underpaid State = "underpaid" // paid, but less than requested or in another currency
	Refunded  State = "refunded"  // nothing is left
	Disputed  State = "disputed"
	Done      State = "done"     // a refund that the transaction shows
	Failed    State = "failed"   // ended without moving money, see Reason
	Rejected  State = "rejected" // the gateway rejected the request
	Canceled  State = "canceled"
	Withdrawn State = "withdrawn" // canceled before it was sent
)

// Operation is the progress of the request that a record makes, as the outbox knows
// it. "" means that there is none, because someone else made the resource.
type Operation string

// The states of an operation.
const (
	Waiting   Operation = "waiting"   // nothing was sent, or what was sent was certainly not applied
	Sent      Operation = "sent"      // it was or may have been sent
	InDoubt   Operation = "in_doubt"  // its outcome can't be determined
	Applied   Operation = "applied"   // the gateway did it
	Refused   Operation = "refused"   // it was not applied and never will be
	Abandoned Operation = "abandoned" // withdrawn before it was sent
)

// Ended reports whether the outcome of the operation is final.
func (o Operation) Ended() bool { return o == Applied || o == Refused || o == Abandoned }

// state returns the state of a record that was not read yet, which depends on whether
// its operation was applied or refused.
func (o Operation) state(applied, refused State) State {
	switch o {
	case Sent:
		return Unknown
	case InDoubt:
		return Ambiguous
	case Applied:
		return applied
	case Refused:
		return refused
	case Abandoned:
		return Withdrawn
	default:
		return New
	}
}

// Order is the money of an order, of a sale by link, of a subscription, or of a payout
// that belongs to no order. Amounts are in cents of Currency. An entry in another currency
// is not added, and is a problem.
type Order struct {
	ID        string           // unique among all of these: "order/A17"
	Currency  gateway.Currency // that of the first charge that was asked for; see doc.go
	Paid      int64
	Fee       int64
	Refunded  int64
	Disputed  int64
	PaidOut   int64
	Adjusted  int64  // by persons; the only sum that may be negative
	SettledBy string // the ID of the charge that paid it in full, "" while none did
	Closed    bool   // no more money is wanted

	Price         int64            // what it had to pay when it was settled, in PriceCurrency
	PriceCurrency gateway.Currency // that of the charge that settled it, "" before
	Interest      int64            // what that charge was asked to pay in addition
	Owed          bool             // the goods are owed to the buyer, as the last goods fact says
	GoodsFacts    int              // how many goods facts there are
}

// Left returns what the buyer paid and has not got back.
func (o *Order) Left() int64 { return o.Paid - o.Refunded - o.Disputed }

// Net returns what remains for the merchant: Left, less the fees and payouts, with the
// corrections.
func (o *Order) Net() int64 { return o.Left() - o.Fee - o.PaidOut + o.Adjusted }

// Origin says who made a charge.
type Origin string

// The origins.
const (
	FromOrder        Origin = "order"
	FromLink         Origin = "link"
	FromSubscription Origin = "subscription"
	FromAdoption     Origin = "adopted"
)

// Charge is one attempt to collect money. Amounts are in cents of Currency and are the
// gateway's, except Requested and Asked.
type Charge struct {
	ID            string
	Origin        Origin
	CardCheck     bool // the small charge with which a trial validates a card
	TransactionID string
	Operation     Operation
	State         State
	Status        gateway.TransactionStatus // that of the newest reading, "" before the first
	Reason        string                    // why it failed
	Currency      gateway.Currency
	Requested     int64 // what the order wants of it now
	Asked         int64 // what its request asked for, without interest; 0 counts as Requested
	Amount        int64 // what the buyer is asked to pay, with interest
	Paid          int64
	Fee           int64 // 0 until the gateway reports one
	Refunded      int64
	Disputed      int64
	Assumed       bool // Paid is the charged amount, because no paid_amount was reported
	Foreign       bool // paid in another currency than requested; Currency is that of the payment
	Accepted      bool // a person decided that what was paid is enough
	Late          bool // paid after it was reported as unpaid
	PaidAt        time.Time
	PeriodEnd     time.Time // of a charge of a subscription: when the period ends that it has paid

	Attributed int64    // the part of Refunded that was reported
	ByOthers   int64    // the part of Attributed that no refund of the merchant's explains
	Disputes   int      // the number of changes of Disputed
	Reported   []string // what is reported only once
	Problems   []Raised // also those about its refunds

	UpdatedAt  time.Time // the gateway's, of the reading that gave Status
	ReadAt     time.Time // when the newest reading was made that did not report less than is booked
	LowerSince time.Time // when readings began to report less; zero if the last one did not
}

// Left returns what is left of the payment.
func (c *Charge) Left() int64 { return c.Paid - c.Refunded - c.Disputed }

// Interest returns what the buyer was asked to pay more than the request asked for.
func (c *Charge) Interest() int64 { return max(0, c.Amount-cmp.Or(c.Asked, c.Requested)) }

// Excess returns what was paid too much: more than the order wants and the interest, which
// is legal. Requested may be less than Asked, if the cart became cheaper before its old
// code was paid. What was paid in another currency than requested, or to check a card,
// can't be compared.
func (c *Charge) Excess() int64 {
	if c.Foreign || c.CardCheck {
		return 0
	}
	return max(0, c.Paid-c.Requested-c.Interest())
}

// Refund is a refund that the merchant decided to make. Exactly one of Amount, UpTo and
// Full is set. Amounts are in cents.
type Refund struct {
	ID        string
	Operation Operation
	State     State
	Amount    int64 // in addition to what went back before
	UpTo      int64 // including what went back before
	Full      bool
	Moved     int64     // what the gateway confirmed; 0 if its target was reached before
	AppliedAt time.Time // when that was stored, by the database's clock
	Shown     bool      // the transaction shows it
	Reason    string
}

// Payout is a transfer. Amounts are in cents of BRL.
type Payout struct {
	ID         string
	TransferID string
	Operation  Operation
	State      State
	Status     gateway.TransferStatus // that of the newest reading, "" before the first
	Reason     string
	Requested  int64
	Amount     int64 // what the gateway takes from the balance, 0 before the first reading
	Fee        int64 // part of Amount
	Out        int64 // what is booked: Amount, or 0 after it was returned
	Moves      int   // the number of entries
	PaidAt     time.Time
	Reported   []string
	Problems   []Raised

	UpdatedAt  time.Time
	ReadAt     time.Time
	LowerSince time.Time
}

// Subscription is a subscription of a customer.
type Subscription struct {
	ID             string
	SubscriptionID string
	Operation      Operation
	State          State
	Status         gateway.SubscriptionStatus // that of the newest reading, "" before the first
	Reason         string
	PaidUntil      time.Time // the end of the last period that was paid; never goes back
	TrialEnd       time.Time // of a trial that has begun
	Ends           bool      // it is not renewed
	Access         Access    // what the member has; AccessFacts say when it changed
	AccessFacts    int       // how many access facts there are
	FailedAttempts int       // since the last charge that was paid
	Reported       []string
	Problems       []Raised

	UpdatedAt time.Time
	ReadAt    time.Time
}

// Source says why a resource was read.
type Source string

// The sources.
const (
	FromResponse   Source = "response"
	FromWebhook    Source = "webhook"
	FromComparison Source = "comparison"
	FromPerson     Source = "refresh"
	FromOutcome    Source = "outcome" // of a request: no reading

	// FromEarlier is the first reading of a resource that other code made. Its
	// facts are booked, but have no callbacks.
	FromEarlier Source = "adoption"

	// FromEarlierCalled is FromEarlier with callbacks.
	FromEarlierCalled Source = "adoption_called"
)

// Reading is a resource as the gateway's API returned it. At is compared with times that
// other processes have stored, such as ReadAt and Refund.AppliedAt. So the caller gives it
// by the database's clock, like the time of an outcome: no process's clock is ahead then.
type Reading[T any] struct {
	Resource *T
	Source   Source
	At       time.Time // when the request for it was sent, or earlier; by the database's clock
}

// Callback names the function of the merchant that a fact is reported to.
type Callback string

// The callbacks. A fact with none is only booked.
const (
	None             Callback = ""
	OnPaid           Callback = "paid"
	OnPaidAgain      Callback = "paid_again"
	OnUnpaid         Callback = "unpaid"
	OnRefunded       Callback = "refunded"
	OnRefundRejected Callback = "refund_rejected"
	OnDisputed       Callback = "disputed"
	OnPayout         Callback = "payout"
	OnSubscription   Callback = "subscription"
	OnGoods          Callback = "goods"
	OnAccess         Callback = "access"
)

// Kind is the kind of a fact, the first part of its key, except that a period is
// started or renewed.
type Kind string

// The kinds. The first six have an amount.
const (
	EntryPaid     Kind = "paid"
	EntryFee      Kind = "fee"
	EntryRefunded Kind = "refunded"
	EntryDisputed Kind = "disputed"
	EntryPaidOut  Kind = "paid_out"
	EntryAdjusted Kind = "adjusted"

	Settled        Kind = "settled"
	PaidAgain      Kind = "paid_again"
	Unpaid         Kind = "unpaid"
	RefundDone     Kind = "refund"
	RefundRejected Kind = "refund_rejected"
	Returned       Kind = "returned"
	PayoutEnded    Kind = "payout"
	GoodsChanged   Kind = "goods"

	Started       Kind = "started"
	Renewed       Kind = "renewed"
	PaymentFailed Kind = "payment_failed"
	PastDue       Kind = "past_due"
	ChargedBack   Kind = "charged_back"
	Ended         Kind = "ended"
	AccessChanged Kind = "access"
)

// Fact is something that happened once.
type Fact struct {
	Key      string
	Kind     Kind
	Order    string // the ID of its order
	Record   string // the ID of its charge, refund, payout or subscription
	Charge   string // the ID of the charge that is concerned, if Record is a refund or a subscription
	Amount   int64  // cents, signed as they change Order.Net; 0 if it is no entry
	Currency gateway.Currency
	About    int64     // cents that it reports without booking them: those of a refund, or what is left for the goods
	At       time.Time // when it happened, by the gateway's clock
	Source   Source
	Callback Callback
}

// ProblemKind says what a person must look at.
type ProblemKind string

// The kinds of problems.
const (
	IsAmbiguous    ProblemKind = "ambiguous"
	IsUnderpaid    ProblemKind = "underpaid"
	IsOverpaid     ProblemKind = "overpaid" // more was paid than requested, and it is no interest
	IsPaidAgain    ProblemKind = "paid_again"
	IsUnknownState ProblemKind = "unknown_state"
	IsUnmatched    ProblemKind = "unmatched"     // the reading is of another resource
	IsContested    ProblemKind = "in_protest"    // whether the money is withheld meanwhile is not known
	IsContradicted ProblemKind = "contradiction" // the reading can't be true
	IsLower        ProblemKind = "lower"         // for a day the gateway has reported less than is booked
	IsForeign      ProblemKind = "currency"      // money that is not in the order's sums
	IsReversed     ProblemKind = "reversed"      // a payout ended twice, differently
	IsClosed       ProblemKind = "closed"        // goods are owed, but the order was closed before the shop was told
)

// Problem is something that a person must decide or look at. It is raised once as long as
// it holds; the key identifies it.
type Problem struct {
	Key    string
	Kind   ProblemKind
	Record string
	About  About
	Text   string // without personal data
}

// Over says that the problems of a kind about a record do not hold any more: the caller
// closes them.
type Over struct {
	Kind   ProblemKind
	Record string
	About  About
}

// About says what the record of a problem is: a refund, a payout and a subscription may have
// one ID.
type About string

// What problems are about.
const (
	AboutCharge       About = ""
	AboutRefund       About = "refund"
	AboutPayout       About = "payout"
	AboutSubscription About = "subscription"
)

// Outcome says what a reading did. The records that are returned must be stored
// whatever the outcome is, since they also remember when they were read.
type Outcome uint8

// The outcomes.
const (
	Unchanged Outcome = iota // it shows what is booked, or nothing that can be booked
	Stale                    // it is older than what is booked, or reports less
	Changed
)

// Result is what a function made beside the records.
type Result struct {
	Outcome  Outcome
	Facts    []Fact    // in the order in which they are delivered
	Over     []Over    // of problems that were raised before this result: close them first
	Problems []Problem // then store these

	// Read lists the transactions of a subscription that must be read, because they
	// are not booked as the subscription shows them.
	Read []string
}

// once reports whether key is not in the list yet, and adds it.
func once(list *[]string, key string) bool {
	if slices.Contains(*list, key) {
		return false
	}
	*list = append(slices.Clip(*list), key)
	return true
}
