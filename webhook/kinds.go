package webhook

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
)

// Family is the kind of resource that an event is about.
type Family string

// The families. An event of any other family is passed to the handler of
// [OnOther] under its own name.
const (
	FamilyTransaction  Family = "transaction"
	FamilySubscription Family = "subscription"
	FamilyTransfer     Family = "transfer"
)

// known reports whether this version defines f.
func (f Family) known() bool {
	return f == FamilyTransaction || f == FamilySubscription || f == FamilyTransfer
}

// Kind is the kind of an event, such as "transaction.paid".
type Kind string

// The kinds of transaction events. For the state "canceled" the gateway sends
// "transaction.cancelled", and for the card state "captured" it sends
// TransactionPaid.
const (
	TransactionCreated           Kind = "transaction.created"
	TransactionPending           Kind = "transaction.pending"
	TransactionPaid              Kind = "transaction.paid"
	TransactionCancelled         Kind = "transaction.cancelled"
	TransactionRefunded          Kind = "transaction.refunded" // in full or in part; see the status
	TransactionChargedback       Kind = "transaction.chargedback"
	TransactionThreeDSRequired   Kind = "transaction.three_ds_required"
	TransactionPartiallyRefunded Kind = "transaction.partially_refunded" // sent by live gateways, not documented
)

// Kinds for states about which the gateway sends no webhook. Only a
// [Reconciler] reports them.
const (
	TransactionExpired Kind = "transaction.expired"
	TransactionRefused Kind = "transaction.refused"
)

// Kinds for a dispute of a Pix payment under the special refund mechanism (MED).
// Only a [Reconciler] reports them; see ReconcilerConfig.Sweep.
const (
	TransactionMED            Kind = "transaction.med"
	TransactionInProtest      Kind = "transaction.in_protest"
	TransactionPreChargedback Kind = "transaction.pre_chargedback"
	TransactionDisputeWon     Kind = "transaction.dispute_won" // the payment has its earlier state again
)

// AnyKind matches every kind of a family that has no handler of its own; see
// [OnTransaction].
const AnyKind Kind = "*"

// The kinds of transfer events. For the state "cancelled" the gateway sends
// "payout.canceled", for "paid" PayoutTransferred and for "error" PayoutFailed.
const (
	PayoutCreated     Kind = "payout.created"
	PayoutInAnalysis  Kind = "payout.in_analysis"
	PayoutProcessing  Kind = "payout.processing"
	PayoutTransferred Kind = "payout.transferred"
	PayoutFailed      Kind = "payout.failed"
	PayoutCanceled    Kind = "payout.canceled"
	PayoutRejected    Kind = "payout.rejected" // sent by live gateways, not documented
)

// The kinds of subscription events.
const (
	SubscriptionCreated            Kind = "subscription.created"
	SubscriptionStarted            Kind = "subscription.started"
	SubscriptionRenewed            Kind = "subscription.renewed"
	SubscriptionUpdated            Kind = "subscription.updated"
	SubscriptionCanceled           Kind = "subscription.canceled"
	SubscriptionPaymentFailed      Kind = "subscription.payment_failed"
	SubscriptionPastDue            Kind = "subscription.past_due"
	SubscriptionTrialWillEnd       Kind = "subscription.trial_will_end"
	SubscriptionChargebackReceived Kind = "subscription.chargeback_received"
)

// DocumentedKinds lists the kinds in the interface document, by family.
func DocumentedKinds() []Kind {
	var documented []Kind
	for _, row := range kindTable {
		if !row.undocumented {
			documented = append(documented, row.kind)
		}
	}
	return documented
}

// Status returns the resource's state when the gateway sends k, or "" for an
// unknown kind. States may be spelled differently from kinds: the state of
// [TransactionCancelled] is "canceled".
func (k Kind) Status() string {
	if row := rowOf(k); row != nil {
		return row.status
	}
	return ""
}

// prefix returns the prefix of the family's kinds.
func (f Family) prefix() string {
	if f == FamilyTransfer {
		return "payout"
	}
	return string(f)
}

// Family returns the family that k's name belongs to, or "".
func (k Kind) Family() Family {
	prefix, _, _ := strings.Cut(string(k), ".")
	switch prefix {
	case "transaction":
		return FamilyTransaction
	case "subscription":
		return FamilySubscription
	case "payout":
		return FamilyTransfer
	default:
		return ""
	}
}

// kindRow defines one kind of event. To add a kind, add a constant and a row.
type kindRow struct {
	kind         Kind
	undocumented bool // seen live, or made only by the Reconciler

	// status is the resource's state when the gateway sends the event.
	status string
	// derivedFrom lists the states from which the Reconciler derives the
	// event. A body with one of these states needs the same proof.
	derivedFrom []string

	// rank orders the events of a resource: an event is late if one with a higher rank
	// was handled before; 0 is never late. Transactions: 1 waiting, 2 ended (a late
	// payment may still follow), 3 paid, 4 partly refunded, 5 refunded, 6 disputed, 7 charged back.
	rank int64
	// skipLate drops the event if it is late, because it moved no money. A
	// payment, a refund, a chargeback, a renewal, a failed charge or a payout
	// is always handled: books with a refund but no payment are wrong.
	skipLate bool

	// proof decides from the API's resource whether the event happened.
	proof func(r *resource, now time.Time) verdict
	// at returns when the event happened; nil means the resource's last
	// update, which every change sets.
	at func(r *resource) time.Time
	// passed reports whether the resource has left the state that the event
	// announces; nil means never.
	passed func(r *resource) bool

	// occasion distinguishes the occurrences of the event for a resource; nil
	// means that it happens once.
	occasion func(r *resource) string
	// occasionMember names the timestamp in the event's data that is its
	// occasion. Without one, only the API's state identifies the occurrence,
	// and it may have changed between two deliveries of the event.
	occasionMember []string
}

var kindTable = [...]kindRow{
	{kind: TransactionCreated, status: "pending", rank: 1, skipLate: true, proof: exists, at: createdAt},
	{kind: TransactionPending, status: "pending", rank: 1, skipLate: true, proof: exists, at: createdAt, passed: beyondWaiting},
	{
		kind: TransactionPaid, status: "paid", derivedFrom: []string{"paid", "captured"}, rank: 3,
		proof: transaction(paid),
		at:    atOr(func(r *resource) gateway.Timestamp { return r.transaction.PaidAt }),
	},
	{
		kind: TransactionCancelled, status: "canceled", derivedFrom: []string{"canceled"}, rank: 2, skipLate: true,
		proof: transaction(ended(gateway.TransactionCanceled)),
	},
	{
		kind: TransactionRefunded, status: "refunded", derivedFrom: []string{"refunded", "partially_refunded"}, rank: 5,
		proof: transaction(refunded), occasion: refundedAmount,
	},
	{
		kind: TransactionChargedback, status: "chargedback", derivedFrom: []string{"chargedback"}, rank: 7,
		proof: transaction(reached(gateway.TransactionChargedback)),
	},
	{
		kind: TransactionThreeDSRequired, status: "pending", derivedFrom: []string{"three_ds_required"}, rank: 1, skipLate: true,
		proof: transaction(challenged), at: createdAt, passed: beyondWaiting,
	},
	{
		kind: TransactionPartiallyRefunded, undocumented: true, status: "partially_refunded", rank: 4,
		proof: transaction(refunded), occasion: refundedAmount,
	},
	{
		kind: TransactionExpired, undocumented: true, status: "expired", derivedFrom: []string{"expired"}, rank: 2, skipLate: true,
		proof: transaction(ended(gateway.TransactionExpired)),
	},
	{
		kind: TransactionRefused, undocumented: true, status: "refused", derivedFrom: []string{"refused"}, rank: 2, skipLate: true,
		proof: transaction(ended(gateway.TransactionRefused)),
	},
	{
		kind: TransactionMED, undocumented: true, status: "med", derivedFrom: []string{"med"}, rank: 6,
		proof: transaction(disputed(gateway.TransactionMED)), occasion: lastUpdate,
	},
	{
		kind: TransactionInProtest, undocumented: true, status: "in_protest", derivedFrom: []string{"in_protest"}, rank: 6,
		proof: transaction(disputed(gateway.TransactionInProtest)), occasion: lastUpdate,
	},
	{
		kind: TransactionPreChargedback, undocumented: true, status: "pre_chargedback", derivedFrom: []string{"pre_chargedback"}, rank: 6,
		proof: transaction(disputed(gateway.TransactionPreChargedback)), occasion: lastUpdate,
	},
	{kind: TransactionDisputeWon, undocumented: true, status: "paid", rank: 6, proof: transaction(disputeWon), occasion: lastUpdate},

	{kind: PayoutCreated, status: "pending", rank: 1, proof: exists, at: createdAt},
	{
		kind: PayoutInAnalysis, status: "in_analysis", derivedFrom: []string{"in_analysis"}, rank: 2, skipLate: true,
		proof: transfer(
			gateway.TransferInAnalysis, gateway.TransferProcessing, gateway.TransferPaid,
			gateway.TransferError, gateway.TransferRejected, gateway.TransferCancelled,
		),
		passed: func(r *resource) bool { return r.transfer.Status != gateway.TransferInAnalysis },
	},
	{
		kind: PayoutProcessing, status: "processing", derivedFrom: []string{"processing"}, rank: 3, skipLate: true,
		proof:  transfer(gateway.TransferProcessing, gateway.TransferPaid, gateway.TransferError),
		at:     atOr(func(r *resource) gateway.Timestamp { return r.transfer.ProcessedAt }),
		passed: func(r *resource) bool { return r.transfer.Status != gateway.TransferProcessing },
	},
	{
		kind: PayoutTransferred, status: "paid", derivedFrom: []string{"paid"}, rank: 4,
		proof: transfer(gateway.TransferPaid),
		at:    atOr(func(r *resource) gateway.Timestamp { return r.transfer.TransferredAt }),
	},
	{
		kind: PayoutFailed, status: "error", derivedFrom: []string{"error"}, rank: 4,
		proof: transfer(gateway.TransferError, gateway.TransferRejected),
	},
	{
		kind: PayoutCanceled, status: "cancelled", derivedFrom: []string{"cancelled"}, rank: 4,
		proof: transfer(gateway.TransferCancelled),
	},
	{
		kind: PayoutRejected, undocumented: true, status: "rejected", derivedFrom: []string{"rejected"}, rank: 4,
		proof: transfer(gateway.TransferError, gateway.TransferRejected),
	},

	{kind: SubscriptionCreated, status: "incomplete", rank: 1, skipLate: true, proof: exists, at: createdAt},
	{kind: SubscriptionStarted, status: "active", rank: 2, proof: started, at: startedAt},
	{
		kind: SubscriptionRenewed, status: "active", rank: 2, proof: subscription(renewed), at: lastPayment,
		occasion:       func(r *resource) string { return instant(r.subscription.CurrentPeriodStart) },
		occasionMember: []string{"current_period_start", "currentPeriodStart"},
	},
	{
		kind: SubscriptionUpdated, status: "active", derivedFrom: []string{"trialing", "cancel_scheduled"}, rank: 2, skipLate: true,
		proof: exists, occasion: lastUpdate,
	},
	{
		kind: SubscriptionCanceled, status: "canceled", derivedFrom: []string{"canceled"}, rank: 3,
		proof: subscription(func(sub *gateway.Subscription) bool { return sub.Status.Final() }),
	},
	{
		kind: SubscriptionPaymentFailed, status: "past_due", rank: 2,
		proof: subscription(chargeFailed), at: lastRefusal, occasion: failedCharges,
	},
	{
		kind: SubscriptionPastDue, status: "past_due", derivedFrom: []string{"past_due"}, rank: 2, skipLate: true,
		proof: subscription(pastDue), at: lastRefusal,
		occasion:       func(r *resource) string { return instant(r.subscription.CurrentPeriodEnd) },
		occasionMember: []string{"current_period_end", "currentPeriodEnd"},
	},
	{kind: SubscriptionTrialWillEnd, status: "trialing", rank: 2, skipLate: true, proof: trialNearEnd},
	{
		kind: SubscriptionChargebackReceived, status: "canceled",
		proof: subscription(chargedBack), occasion: func(r *resource) string {
			return strconv.Itoa(len(chargesIn(r.subscription, gateway.TransactionChargedback)))
		},
	},
}

// rowOf returns the row of a kind, or nil for an unknown one.
func rowOf(k Kind) *kindRow {
	for i := range kindTable {
		if kindTable[i].kind == k {
			return &kindTable[i]
		}
	}
	return nil
}

// derivedRow returns the row of the kind that is derived from a resource's
// state, or nil if there is none.
func derivedRow(f Family, status string) *kindRow {
	for i := range kindTable {
		if row := &kindTable[i]; row.kind.Family() == f && slices.Contains(row.derivedFrom, status) {
			return row
		}
	}
	return nil
}

// kindOf returns the kind that an event with nothing but a state reports, or "".
func kindOf(f Family, status string) Kind {
	if row := derivedRow(f, status); row != nil {
		return row.kind
	}
	if row := rowOf(Kind(f.prefix() + "." + status)); row != nil && f.known() {
		return row.kind
	}
	return ""
}

func (k Kind) skippedLate() bool {
	row := rowOf(k)
	return row != nil && row.skipLate
}

// needsAPI reports whether only the API's state identifies the occurrence of
// an event of the kind.
func (row *kindRow) needsAPI() bool { return row.occasion != nil && row.occasionMember == nil }

// The functions of the table of kinds: proofs, times and occasions.

// exists is the proof of a kind that happens to every resource.
func exists(*resource, time.Time) verdict { return confirmed }

func createdAt(r *resource) time.Time { return r.head().createdAt.Time }

// atOr returns the API's time of the change, or else that of the last update.
func atOr(named func(*resource) gateway.Timestamp) func(*resource) time.Time {
	return func(r *resource) time.Time {
		if at := named(r); !at.IsZero() {
			return at.Time
		}
		return r.head().updatedAt.Time
	}
}

func lastUpdate(r *resource) string { return instant(r.head().updatedAt) }

// transaction returns a proof by the state of a transaction.
func transaction(judge func(*gateway.Transaction) verdict) func(*resource, time.Time) verdict {
	return func(r *resource, _ time.Time) verdict { return judge(r.transaction) }
}

func beyondWaiting(r *resource) bool { return pastWaiting(r.transaction) }

func pastWaiting(tx *gateway.Transaction) bool {
	return tx.Settled() || tx.Status.Final() || tx.Status == gateway.TransactionPartiallyRefunded
}

func challenged(tx *gateway.Transaction) verdict {
	switch {
	case tx.NextAction != nil, tx.Status == gateway.TransactionThreeDSRequired:
		return confirmed
	case tx.Method != gateway.CreditCard:
		return refuted
	case pastWaiting(tx):
		return confirmed // the authentication is over; the event is late
	default:
		return behind
	}
}

func paid(tx *gateway.Transaction) verdict {
	switch tx.Status {
	case gateway.TransactionPaid, gateway.TransactionCaptured, gateway.TransactionPartiallyRefunded,
		gateway.TransactionRefunded, gateway.TransactionChargedback, gateway.TransactionInProtest, gateway.TransactionMED,
		gateway.TransactionPreChargedback:
		return confirmed
	case gateway.TransactionRefused, gateway.TransactionCanceled:
		return refuted
	default:
		return behind // an expired voucher can still be paid
	}
}

func refunded(tx *gateway.Transaction) verdict {
	if tx.RefundedAmount > 0 || tx.Status == gateway.TransactionPartiallyRefunded {
		return confirmed
	}
	return reached(gateway.TransactionRefunded)(tx)
}

// refundedAmount distinguishes refunds. An API that doesn't return the amount
// leaves only the state.
func refundedAmount(r *resource) string {
	if r.transaction.RefundedAmount > 0 {
		return strconv.FormatInt(r.transaction.RefundedAmount, 10)
	}
	return r.status()
}

// reached returns a proof by a state that only a paid transaction can reach.
func reached(want gateway.TransactionStatus) func(*gateway.Transaction) verdict {
	return func(tx *gateway.Transaction) verdict {
		switch tx.Status {
		case want:
			return confirmed
		case gateway.TransactionRefused, gateway.TransactionCanceled, gateway.TransactionExpired:
			return refuted
		default:
			return behind
		}
	}
}

// disputeStates are the states of a dispute, in order.
var disputeStates = []gateway.TransactionStatus{
	gateway.TransactionMED, gateway.TransactionInProtest, gateway.TransactionPreChargedback, gateway.TransactionChargedback,
}

// disputed returns a proof by a state of a dispute, or by a later one.
func disputed(want gateway.TransactionStatus) func(*gateway.Transaction) verdict {
	later := disputeStates[slices.Index(disputeStates, want):]
	return func(tx *gateway.Transaction) verdict {
		return unlessFinal(slices.Contains(later, tx.Status), tx.Status.Final())
	}
}

// disputeWon is a proof by a state from which a payment can be disputed.
func disputeWon(tx *gateway.Transaction) verdict {
	return unlessFinal(tx.Settled() || tx.Status == gateway.TransactionPartiallyRefunded, tx.Status.Final())
}

// ended returns a proof by a state that only an unpaid transaction can reach.
func ended(want gateway.TransactionStatus) func(*gateway.Transaction) verdict {
	return func(tx *gateway.Transaction) verdict {
		switch {
		case tx.Status == want:
			return confirmed
		case pastWaiting(tx):
			return refuted
		default:
			return behind
		}
	}
}

// transfer returns a proof by a transfer in one of the states.
func transfer(states ...gateway.TransferStatus) func(*resource, time.Time) verdict {
	return func(r *resource, _ time.Time) verdict {
		return unlessFinal(slices.Contains(states, r.transfer.Status), r.transfer.Status.Final())
	}
}

// subscription returns a proof by a condition of a subscription.
func subscription(proven func(*gateway.Subscription) bool) func(*resource, time.Time) verdict {
	return func(r *resource, _ time.Time) verdict {
		return unlessFinal(proven(r.subscription), r.subscription.Status.Final())
	}
}

// unlessFinal treats a missing proof as a refutation if the state is final.
func unlessFinal(proven, final bool) verdict {
	switch {
	case proven:
		return confirmed
	case final:
		return refuted
	default:
		return behind
	}
}

func started(r *resource, _ time.Time) verdict {
	switch sub := r.subscription; sub.Status {
	case gateway.SubscriptionActive:
		return confirmed
	case gateway.SubscriptionPastDue, gateway.SubscriptionCancelScheduled, gateway.SubscriptionCanceled:
		// The first charge may have failed, or the subscription ended with the
		// trial.
		return unlessFinal(len(paidCharges(sub)) > 0, sub.Status.Final())
	default:
		return behind
	}
}

func startedAt(r *resource) time.Time {
	sub := r.subscription
	if charges := paidCharges(sub); len(charges) > 0 {
		return charges[0].CreatedAt.Time
	}
	if !sub.TrialEnd.IsZero() {
		return sub.TrialEnd.Time
	}
	return sub.CreatedAt.Time
}

// renewed reports whether the subscription is past its first period and has
// paid for the current one, according to its charges or, if the API returned
// none, its dates. A period begins even if its charge failed, so the dates
// alone prove no payment.
func renewed(sub *gateway.Subscription) bool {
	if pastDue(sub) {
		return false
	}
	if sub.Transactions != nil {
		return !lastChargeRefused(sub) && (len(paidCharges(sub)) > 1 || recoveredFirstCharge(sub))
	}
	if sub.CurrentPeriodStart.IsZero() || sub.CreatedAt.IsZero() {
		return false
	}
	first := sub.CreatedAt.Time
	if sub.TrialEnd.After(first) {
		first = sub.TrialEnd.Time
	}
	period := sub.CurrentPeriodEnd.Sub(sub.CurrentPeriodStart.Time)
	// Months differ by up to three days, and a payer may take a day to
	// authorize.
	return sub.CurrentPeriodStart.Sub(first) > max(period-4*24*time.Hour, period/2)
}

// recoveredFirstCharge reports whether the first charge after a trial was
// refused and a retry of it was paid. The gateway does not send "started" for
// such a subscription; it reports the retry as a renewal.
func recoveredFirstCharge(sub *gateway.Subscription) bool {
	paid, refused := paidCharges(sub), chargesIn(sub, gateway.TransactionRefused)
	return !sub.TrialEnd.IsZero() && len(paid) > 0 && len(refused) > 0 && refused[0].CreatedAt.Before(paid[0].CreatedAt.Time)
}

// lastChargeRefused reports whether the current period is unpaid, also if the
// subscription has since been canceled.
func lastChargeRefused(sub *gateway.Subscription) bool {
	paid, refused := paidCharges(sub), chargesIn(sub, gateway.TransactionRefused)
	return len(refused) > 0 && (len(paid) == 0 || refused[len(refused)-1].CreatedAt.After(paid[len(paid)-1].CreatedAt.Time))
}

func pastDue(sub *gateway.Subscription) bool {
	return sub.Status == gateway.SubscriptionPastDue || sub.CancellationReason == gateway.CancellationPaymentFailure
}

func chargeFailed(sub *gateway.Subscription) bool {
	return len(chargesIn(sub, gateway.TransactionRefused)) > 0 || pastDue(sub)
}

// failedCharges distinguishes failed charges or, if the API lists no charges,
// their periods.
func failedCharges(r *resource) string {
	if r.subscription.Transactions != nil {
		return strconv.Itoa(len(chargesIn(r.subscription, gateway.TransactionRefused)))
	}
	return "of " + instant(r.subscription.CurrentPeriodEnd)
}

func chargedBack(sub *gateway.Subscription) bool {
	return len(chargesIn(sub, gateway.TransactionChargedback)) > 0 || sub.CancellationReason == gateway.CancellationChargeback
}

// trialNotice is how long before the trial's end the notice of it is accepted.
// The interface document does not say when it is sent.
const trialNotice = 7 * 24 * time.Hour

// trialNearEnd requires that the trial's end is near. Otherwise a notice
// forged weeks ahead would suppress the real one, which reports the same fact.
func trialNearEnd(r *resource, now time.Time) verdict {
	switch sub := r.subscription; sub.Status {
	case gateway.SubscriptionTrialing, gateway.SubscriptionCancelScheduled:
		if sub.TrialEnd.IsZero() || sub.TrialEnd.Sub(now) > trialNotice {
			return behind
		}
		return confirmed
	case gateway.SubscriptionIncomplete:
		return behind
	default:
		return refuted
	}
}

func lastPayment(r *resource) time.Time { return lastOf(paidCharges(r.subscription), r) }

func lastRefusal(r *resource) time.Time {
	return lastOf(chargesIn(r.subscription, gateway.TransactionRefused), r)
}

// lastOf returns the time of the last charge, or of the resource's last update
// if there are no charges.
func lastOf(charges []gateway.SubscriptionTransaction, r *resource) time.Time {
	if len(charges) == 0 {
		return r.subscription.UpdatedAt.Time
	}
	return charges[len(charges)-1].CreatedAt.Time
}

// paidCharges lists the charges that were paid, even if refunded later, the
// oldest first. It omits the small charge that validates a card.
func paidCharges(sub *gateway.Subscription) []gateway.SubscriptionTransaction {
	charges := chargesIn(sub, gateway.TransactionPaid, gateway.TransactionCaptured, gateway.TransactionRefunded,
		gateway.TransactionPartiallyRefunded, gateway.TransactionChargedback)
	return slices.DeleteFunc(charges, func(tx gateway.SubscriptionTransaction) bool { return !tx.AmountIs(sub.Amount) })
}

// chargesIn lists the charges in one of the states, the oldest first.
func chargesIn(sub *gateway.Subscription, states ...gateway.TransactionStatus) (list []gateway.SubscriptionTransaction) {
	for _, tx := range sub.Transactions {
		if slices.Contains(states, tx.Status) {
			list = append(list, tx)
		}
	}
	slices.SortStableFunc(list, func(a, b gateway.SubscriptionTransaction) int { return a.CreatedAt.Compare(b.CreatedAt.Time) })
	return list
}
