package webhook

import "github.com/gateway-go/gateway"

// position places an event in its resource's life: an event is late if one
// with a greater position was handled before. 0 has no place and is never
// late.
//
// Transactions and transfers only move forward, so their kinds have ranks.
// Kinds that describe one state share a rank. A subscription goes round in
// cycles: its events are placed by the moment that they carry, and by their
// rank within one moment. That moment is the body's word, so it counts in a
// signed event only: a forged one must not make real ones late.
func position(e *Event) int64 {
	switch e.Family {
	case FamilyTransaction:
		return transactionRank(e)
	case FamilyTransfer:
		return transferRank(e.Kind)
	case FamilySubscription:
		return subscriptionPosition(e)
	default:
		return 0
	}
}

// overtaken reports whether a late event has nothing to say any more: it
// announces a state that the resource has left, and moved no money. A payment, a
// refund, a chargeback, a renewal, a failed charge, a payout that was taken from
// the balance or came back are handled however late: whoever books a refund and
// never its payment has wrong books.
func overtaken(k Kind) bool {
	switch k {
	case TransactionCreated, TransactionPending, TransactionThreeDSRequired,
		TransactionCancelled, TransactionExpired, TransactionRefused,
		PayoutInAnalysis, PayoutProcessing,
		SubscriptionCreated, SubscriptionUpdated, SubscriptionTrialWillEnd, SubscriptionPastDue:
		return true
	default:
		return false
	}
}

// The ranks of a transaction's events.
const (
	rankWaiting  = 1
	rankEnded    = 2 // a late payment may still follow
	rankPaid     = 3
	rankPart     = 4 // a part was refunded
	rankRefunded = 5
	rankReversed = 6 // charged back
)

func transactionRank(e *Event) int64 {
	switch e.Kind {
	case TransactionCreated, TransactionPending, TransactionThreeDSRequired:
		return rankWaiting
	case TransactionCancelled, TransactionExpired, TransactionRefused:
		return rankEnded
	case TransactionPaid:
		return rankPaid
	case TransactionPartiallyRefunded:
		return rankPart
	case TransactionRefunded:
		if e.Status == string(gateway.TransactionPartiallyRefunded) {
			return rankPart
		}
		return rankRefunded
	case TransactionChargedback:
		return rankReversed
	default:
		return 0
	}
}

func transferRank(k Kind) int64 {
	switch k {
	case PayoutCreated:
		return 1
	case PayoutInAnalysis:
		return 2
	case PayoutProcessing:
		return 3
	case PayoutTransferred, PayoutFailed, PayoutCanceled, PayoutRejected:
		return 4
	default:
		return 0
	}
}

func subscriptionPosition(e *Event) int64 {
	if !e.Signed {
		return 0
	}
	var rank int64
	switch e.Kind {
	case SubscriptionCreated:
		rank = 1
	case SubscriptionStarted, SubscriptionRenewed, SubscriptionUpdated, SubscriptionPaymentFailed,
		SubscriptionPastDue, SubscriptionTrialWillEnd:
		rank = 2
	case SubscriptionCanceled:
		rank = 3
	default:
		return 0 // a chargeback is news whenever it comes
	}
	at := timestampOf(e, "occurred_at", "occurredAt")
	if at.IsZero() || at.UnixMilli() <= 0 {
		return 0
	}
	return at.UnixMilli()<<2 | rank
}
