package webhook

import (
	"slices"
	"strconv"
	"time"

	"github.com/gateway-go/gateway"
)

// What the table of kinds asks of a resource: proofs, times and occasions.

// exists is the proof of a kind that every resource went through.
func exists(*resource, time.Time) verdict { return confirmed }

func createdAt(r *resource) time.Time { return r.head().createdAt.Time }

// atOr returns the time that the API names for this very change, or that of the
// last update.
func atOr(named func(*resource) gateway.Timestamp) func(*resource) time.Time {
	return func(r *resource) time.Time {
		if at := named(r); !at.IsZero() {
			return at.Time
		}
		return r.head().updatedAt.Time
	}
}

func lastUpdate(r *resource) string { return instant(r.head().updatedAt) }

// transaction is the proof by a transaction.
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
		return confirmed // it is over; the event is late
	default:
		return behind
	}
}

func paid(tx *gateway.Transaction) verdict {
	switch tx.Status {
	case gateway.TransactionPaid, gateway.TransactionCaptured, gateway.TransactionPartiallyRefunded,
		gateway.TransactionRefunded, gateway.TransactionChargedback, gateway.TransactionInProtest, gateway.TransactionMED:
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

// refundedAmount tells one refund from the next. An API that doesn't return the
// amount leaves only the state.
func refundedAmount(r *resource) string {
	if r.transaction.RefundedAmount > 0 {
		return strconv.FormatInt(r.transaction.RefundedAmount, 10)
	}
	return r.status()
}

// reached judges a state that only a paid transaction can get into.
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

// ended judges a state that only an unpaid transaction can get into.
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

// transfer is the proof by a transfer that is in one of the states.
func transfer(states ...gateway.TransferStatus) func(*resource, time.Time) verdict {
	return func(r *resource, _ time.Time) verdict {
		return unlessFinal(slices.Contains(states, r.transfer.Status), r.transfer.Status.Final())
	}
}

// subscription is the proof by a subscription that something is true of.
func subscription(proven func(*gateway.Subscription) bool) func(*resource, time.Time) verdict {
	return func(r *resource, _ time.Time) verdict {
		return unlessFinal(proven(r.subscription), r.subscription.Status.Final())
	}
}

// unlessFinal takes a missing proof for a refutation once nothing can follow.
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
		// The first charge may have failed, the trial may have been the end.
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

// renewed reports whether the subscription is past its first period: by its
// charges, or, where the API returned none, by its dates.
func renewed(sub *gateway.Subscription) bool {
	if sub.Transactions != nil {
		return len(paidCharges(sub)) > 1
	}
	if sub.CurrentPeriodStart.IsZero() || sub.CreatedAt.IsZero() {
		return false
	}
	first := sub.CreatedAt.Time
	if sub.TrialEnd.After(first) {
		first = sub.TrialEnd.Time
	}
	period := sub.CurrentPeriodEnd.Sub(sub.CurrentPeriodStart.Time)
	// Months differ by three days and a payer may take one to authorise.
	return sub.CurrentPeriodStart.Sub(first) > max(period-4*24*time.Hour, period/2)
}

func pastDue(sub *gateway.Subscription) bool {
	return sub.Status == gateway.SubscriptionPastDue || sub.CancellationReason == gateway.CancellationPaymentFailure
}

func chargeFailed(sub *gateway.Subscription) bool {
	return len(refusedCharges(sub)) > 0 || pastDue(sub)
}

// failedCharges tells one failed charge from the next; where the API lists no
// charges, one period's from the next one's.
func failedCharges(r *resource) string {
	if r.subscription.Transactions != nil {
		return strconv.Itoa(len(refusedCharges(r.subscription)))
	}
	return "of " + instant(r.subscription.CurrentPeriodEnd)
}

func chargedBack(sub *gateway.Subscription) bool {
	return len(disputedCharges(sub)) > 0 || sub.CancellationReason == gateway.CancellationChargeback
}

// trialNotice is the longest time before a trial's end at which the notice of
// it is believed: nobody documents when it is sent.
const trialNotice = 7 * 24 * time.Hour

// trialNearEnd wants the trial's end to be near: a notice that was forged weeks
// ahead would be the only one, since the real one reports the same fact.
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

// lastCharge returns when the last of the charges was made; where there is
// none, the last update.
func lastCharge(list func(*gateway.Subscription) []gateway.SubscriptionTransaction) func(*resource) time.Time {
	return func(r *resource) time.Time {
		charges := list(r.subscription)
		if len(charges) == 0 {
			return r.subscription.UpdatedAt.Time
		}
		return charges[len(charges)-1].CreatedAt.Time
	}
}

func refusedCharges(sub *gateway.Subscription) []gateway.SubscriptionTransaction {
	return chargesIn(sub, gateway.TransactionRefused)
}

func disputedCharges(sub *gateway.Subscription) []gateway.SubscriptionTransaction {
	return chargesIn(sub, gateway.TransactionChargedback)
}

// paidCharges lists the charges that were paid once, whatever became of them,
// the oldest first, without the small one that validates a card.
func paidCharges(sub *gateway.Subscription) []gateway.SubscriptionTransaction {
	charges := chargesIn(sub, gateway.TransactionPaid, gateway.TransactionCaptured, gateway.TransactionRefunded,
		gateway.TransactionPartiallyRefunded, gateway.TransactionChargedback)
	return slices.DeleteFunc(charges, func(tx gateway.SubscriptionTransaction) bool { return tx.Amount != sub.Amount })
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
