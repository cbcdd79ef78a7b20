package webhook

import "strings"

// Family is what an event is about.
type Family string

// The families. An event of another one reaches the handler of [OnOther] with
// the name that it came with.
const (
	FamilyTransaction  Family = "transaction"
	FamilySubscription Family = "subscription"
	FamilyTransfer     Family = "transfer"
)

// Known reports whether this version knows f.
func (f Family) Known() bool {
	return f == FamilyTransaction || f == FamilySubscription || f == FamilyTransfer
}

// Kind is what happened: "transaction.paid".
type Kind string

// The kinds of transactions. Mind the spelling: the state is "canceled" and
// the kind is "transaction.cancelled". A card that ends in the state captured
// sends TransactionPaid.
const (
	TransactionCreated           Kind = "transaction.created"
	TransactionPending           Kind = "transaction.pending"
	TransactionPaid              Kind = "transaction.paid"
	TransactionCancelled         Kind = "transaction.cancelled"
	TransactionRefunded          Kind = "transaction.refunded" // in full or in part: see the status
	TransactionChargedback       Kind = "transaction.chargedback"
	TransactionThreeDSRequired   Kind = "transaction.three_ds_required"
	TransactionPartiallyRefunded Kind = "transaction.partially_refunded" // seen live, not documented
)

// The kinds of the states for which the gateway sends nothing: they come from
// a [Reconciler].
const (
	TransactionExpired Kind = "transaction.expired"
	TransactionRefused Kind = "transaction.refused"
)

// AnyKind stands for every kind of a family that has no handler of its own; see
// [OnTransaction].
const AnyKind Kind = "*"

// The kinds of transfers. Mind the spelling: the state is "cancelled" and the
// kind is "payout.canceled"; the state "paid" sends PayoutTransferred and the
// state "error" PayoutFailed.
const (
	PayoutCreated     Kind = "payout.created"
	PayoutInAnalysis  Kind = "payout.in_analysis"
	PayoutProcessing  Kind = "payout.processing"
	PayoutTransferred Kind = "payout.transferred"
	PayoutFailed      Kind = "payout.failed"
	PayoutCanceled    Kind = "payout.canceled"
	PayoutRejected    Kind = "payout.rejected" // seen live, not documented
)

// The kinds of subscriptions.
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

// DocumentedKinds lists the kinds of the interface document, family by family.
func DocumentedKinds() []Kind {
	var documented []Kind
	for _, row := range kindTable {
		if !row.undocumented {
			documented = append(documented, row.kind)
		}
	}
	return documented
}

// Status returns the state that the resource is in when the gateway sends k,
// "" for an unknown kind. Kinds and states are not spelled alike: that of
// [TransactionCancelled] is "canceled".
func (k Kind) Status() string {
	if row := rowOf(k); row != nil {
		return row.status
	}
	return ""
}

// prefix is how the names of the family's kinds begin.
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
