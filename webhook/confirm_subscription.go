package webhook

import (
	"slices"
	"strconv"
	"time"

	"github.com/gateway-go/gateway"
)

// trialNotice is the longest time before a trial's end at which the notice of
// it is believed: nobody documents when it is sent.
const trialNotice = 7 * 24 * time.Hour

// confirmSubscription judges by the state and, since a subscription goes
// through one state many times, by the charges that come with a read.
func confirmSubscription(k Kind, sub *gateway.Subscription, now time.Time) (c confirmation, again string) {
	c.status, c.moment = string(sub.Status), sub.UpdatedAt.Time
	c.verdict = subscriptionVerdict(k, sub, now)
	paid, refused := paidCharges(sub), chargesIn(sub, gateway.TransactionRefused)
	switch k {
	case SubscriptionCreated:
		c.moment = sub.CreatedAt.Time
	case SubscriptionStarted:
		c.moment = earlier(sub.CreatedAt.Time, sub.TrialEnd)
		if len(paid) > 0 {
			c.moment = paid[0].CreatedAt.Time
		}
	case SubscriptionRenewed:
		again = instant(sub.CurrentPeriodStart)
		c.moment = lastOf(c.moment, paid)
	case SubscriptionPaymentFailed:
		again = "of " + instant(sub.CurrentPeriodEnd)
		if sub.Transactions != nil {
			again = strconv.Itoa(len(refused))
		}
		c.moment = lastOf(c.moment, refused)
	case SubscriptionPastDue:
		again = instant(sub.CurrentPeriodEnd)
		c.moment = lastOf(c.moment, refused)
	case SubscriptionChargebackReceived:
		again = strconv.Itoa(len(chargesIn(sub, gateway.TransactionChargedback)))
	case SubscriptionUpdated:
		again = instant(sub.UpdatedAt)
	default:
		if !known(k) {
			again = instant(sub.UpdatedAt)
		}
	}
	return c, again
}

// lastOf returns when the last of the charges was made, if there is one.
func lastOf(updated time.Time, charges []gateway.SubscriptionTransaction) time.Time {
	if len(charges) == 0 {
		return updated
	}
	return charges[len(charges)-1].CreatedAt.Time
}

func subscriptionVerdict(k Kind, sub *gateway.Subscription, now time.Time) verdict {
	switch k {
	case SubscriptionStarted:
		return startedVerdict(sub)
	case SubscriptionRenewed:
		return unlessEnded(sub, renewed(sub))
	case SubscriptionPaymentFailed:
		return unlessEnded(sub, len(chargesIn(sub, gateway.TransactionRefused)) > 0 || pastDue(sub))
	case SubscriptionPastDue:
		return unlessEnded(sub, pastDue(sub))
	case SubscriptionTrialWillEnd:
		return trialVerdict(sub, now)
	case SubscriptionChargebackReceived:
		return unlessEnded(sub, len(chargesIn(sub, gateway.TransactionChargedback)) > 0 ||
			sub.CancellationReason == gateway.CancellationChargeback)
	case SubscriptionCanceled:
		return unlessEnded(sub, sub.Status.Final())
	default: // created and updated
		return confirmed
	}
}

// unlessEnded takes a missing proof for a refutation once nothing can follow.
func unlessEnded(sub *gateway.Subscription, proof bool) verdict {
	switch {
	case proof:
		return confirmed
	case sub.Status.Final():
		return refuted
	default:
		return behind
	}
}

func startedVerdict(sub *gateway.Subscription) verdict {
	switch sub.Status {
	case gateway.SubscriptionActive:
		return confirmed
	case gateway.SubscriptionPastDue, gateway.SubscriptionCancelScheduled, gateway.SubscriptionCanceled:
		// The first charge may have failed, the trial may have been the end.
		return unlessEnded(sub, len(paidCharges(sub)) > 0)
	default:
		return behind
	}
}

// renewed reports whether the subscription is past its first period: by its
// charges, or, where the answer has none, by its dates.
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

// trialVerdict wants the trial's end to be near: a notice that was forged weeks
// ahead would be the only one, since the real one tells the same fact.
func trialVerdict(sub *gateway.Subscription, now time.Time) verdict {
	switch sub.Status {
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

// paidCharges lists the charges that were paid once, whatever became of them,
// the oldest first, without the small one that validates a card.
func paidCharges(sub *gateway.Subscription) []gateway.SubscriptionTransaction {
	paid := chargesIn(sub, gateway.TransactionPaid, gateway.TransactionCaptured, gateway.TransactionRefunded,
		gateway.TransactionPartiallyRefunded, gateway.TransactionChargedback)
	return slices.DeleteFunc(paid, func(tx gateway.SubscriptionTransaction) bool { return tx.Amount != sub.Amount })
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
