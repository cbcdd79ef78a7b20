package webhook

import (
	"slices"
	"strconv"
	"time"

	"github.com/gateway-go/gateway"
)

// verdict is what the API's state of a resource says about an event.
type verdict uint8

const (
	confirmed verdict = iota // the state can only be reached through what the event tells
	behind                   // not yet, but it may still get there
	refuted                  // it can't have happened
)

// confirmation is the judgement of an event that carries no proof of its own.
type confirmation struct {
	verdict verdict
	// fact names what is true if the event is, so that two events that tell the
	// same are known to be one. What can happen once to a resource is named by
	// the kind; what can happen again by something that changes with it.
	fact string
	// moment is when it happened. Where the API does not tell it is later than
	// that; what can't change once it has happened is better than UpdatedAt,
	// which any change moves.
	moment time.Time
	late   bool // the resource is past the waiting state that the event announces
	status string
}

// confirm judges e by the resource that the API returned for it.
func confirm(e *Event, r *resource, now time.Time) confirmation {
	var c confirmation
	again := ""
	switch {
	case r.transaction != nil:
		c, again = confirmTransaction(e.Kind, r.transaction)
	case r.transfer != nil:
		c = confirmTransfer(e.Kind, r.transfer)
	case r.subscription != nil:
		c, again = confirmSubscription(e.Kind, r.subscription, now)
	}
	c.fact = string(e.Kind) + " " + e.ResourceID
	if again != "" {
		c.fact += " " + again
	}
	if f := e.Kind.Family(); f != "" && f != e.Family {
		c.verdict = refuted // a payment of a subscription's id: no gateway says so
	}
	if !known(e.Kind) && string(e.Kind) != e.Family.prefix()+"."+c.status {
		c.verdict = refuted // what it means is not known, so nothing proves it
	}
	return c
}

// ownFact names the fact of a proven event by its own words: of a kind that can
// happen only once to a resource, and of one that says which time it was.
func ownFact(e *Event) (fact string, ok bool) {
	fact = string(e.Kind) + " " + e.ResourceID
	var period gateway.Timestamp
	switch e.Kind {
	case SubscriptionRenewed:
		period = timestampOf(e, "current_period_start", "currentPeriodStart")
	case SubscriptionPastDue:
		period = timestampOf(e, "current_period_end", "currentPeriodEnd")
	default:
		return fact, known(e.Kind) && !factNeedsAPI(e.Kind)
	}
	return fact + " " + instant(period), !period.IsZero()
}

// factNeedsAPI reports whether events of the kind don't say which time it was
// that it happened to the resource. The API's state says it, which may have
// changed between two deliveries of one event.
func factNeedsAPI(k Kind) bool {
	switch k {
	case TransactionRefunded, TransactionPartiallyRefunded, SubscriptionUpdated, SubscriptionPaymentFailed,
		SubscriptionChargebackReceived:
		return true
	default:
		return false
	}
}

func known(k Kind) bool {
	switch k {
	case TransactionPartiallyRefunded, TransactionExpired, TransactionRefused, PayoutRejected:
		return true
	default:
		return slices.Contains(DocumentedKinds(), k)
	}
}

func confirmTransaction(k Kind, tx *gateway.Transaction) (c confirmation, again string) {
	c.status, c.moment = string(tx.Status), tx.UpdatedAt.Time
	c.verdict = transactionVerdict(k, tx)
	switch k {
	case TransactionCreated:
		c.moment = tx.CreatedAt.Time
	case TransactionPending, TransactionThreeDSRequired:
		c.moment, c.late = tx.CreatedAt.Time, beyondWaiting(tx)
	case TransactionPaid:
		c.moment = earlier(c.moment, tx.PaidAt)
	case TransactionRefunded, TransactionPartiallyRefunded:
		again = string(tx.Status) // of an API that does not tell the amount
		if tx.RefundedAmount > 0 {
			again = strconv.FormatInt(tx.RefundedAmount, 10)
		}
	default:
		if !known(k) {
			again = instant(tx.UpdatedAt)
		}
	}
	return c, again
}

func beyondWaiting(tx *gateway.Transaction) bool {
	return tx.Settled() || tx.Status.Final() || tx.Status == gateway.TransactionPartiallyRefunded
}

func transactionVerdict(k Kind, tx *gateway.Transaction) verdict {
	switch k {
	case TransactionThreeDSRequired:
		return challengeVerdict(tx)
	case TransactionPaid:
		return paidVerdict(tx)
	case TransactionRefunded, TransactionPartiallyRefunded:
		return refundVerdict(tx)
	case TransactionChargedback:
		return reached(tx, gateway.TransactionChargedback)
	case TransactionCancelled:
		return ended(tx, gateway.TransactionCanceled)
	case TransactionExpired:
		return ended(tx, gateway.TransactionExpired)
	case TransactionRefused:
		return ended(tx, gateway.TransactionRefused)
	default: // created and pending: that it exists is all there is to ask
		return confirmed
	}
}

func challengeVerdict(tx *gateway.Transaction) verdict {
	switch {
	case tx.NextAction != nil, tx.Status == gateway.TransactionThreeDSRequired:
		return confirmed
	case tx.Method != gateway.CreditCard:
		return refuted
	case beyondWaiting(tx):
		return confirmed // it is over; the event is late
	default:
		return behind
	}
}

func paidVerdict(tx *gateway.Transaction) verdict {
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

func refundVerdict(tx *gateway.Transaction) verdict {
	if tx.RefundedAmount > 0 {
		return confirmed
	}
	switch tx.Status {
	case gateway.TransactionRefunded, gateway.TransactionPartiallyRefunded:
		return confirmed
	case gateway.TransactionRefused, gateway.TransactionCanceled, gateway.TransactionExpired:
		return refuted
	default:
		return behind
	}
}

// reached judges a state that only a paid transaction can get into.
func reached(tx *gateway.Transaction, want gateway.TransactionStatus) verdict {
	switch tx.Status {
	case want:
		return confirmed
	case gateway.TransactionRefused, gateway.TransactionCanceled, gateway.TransactionExpired:
		return refuted
	default:
		return behind
	}
}

// ended judges a state that only an unpaid transaction can get into.
func ended(tx *gateway.Transaction, want gateway.TransactionStatus) verdict {
	switch {
	case tx.Status == want:
		return confirmed
	case beyondWaiting(tx):
		return refuted
	default:
		return behind
	}
}

func confirmTransfer(k Kind, tr *gateway.Transfer) confirmation {
	c := confirmation{status: string(tr.Status), moment: tr.UpdatedAt.Time, verdict: transferVerdict(k, tr.Status)}
	switch k {
	case PayoutCreated:
		c.moment = tr.CreatedAt.Time
	case PayoutInAnalysis:
		c.late = tr.Status != gateway.TransferInAnalysis
	case PayoutProcessing:
		c.late = tr.Status != gateway.TransferProcessing
		c.moment = earlier(c.moment, tr.ProcessedAt)
	case PayoutTransferred:
		c.moment = earlier(c.moment, tr.TransferredAt)
	default:
	}
	return c
}

// earlier returns the moment that the API names for this very change, if it
// does.
func earlier(updated time.Time, at gateway.Timestamp) time.Time {
	if at.IsZero() {
		return updated
	}
	return at.Time
}

func transferVerdict(k Kind, s gateway.TransferStatus) verdict {
	switch k {
	case PayoutInAnalysis:
		if s == gateway.TransferInAnalysis || s == gateway.TransferProcessing || s.Final() {
			return confirmed
		}
		return behind
	case PayoutProcessing:
		return oneOf(s, gateway.TransferProcessing, gateway.TransferPaid, gateway.TransferError)
	case PayoutTransferred:
		return oneOf(s, gateway.TransferPaid)
	case PayoutFailed, PayoutRejected:
		return oneOf(s, gateway.TransferError, gateway.TransferRejected)
	case PayoutCanceled:
		return oneOf(s, gateway.TransferCancelled)
	default:
		return confirmed
	}
}

func oneOf(s gateway.TransferStatus, want ...gateway.TransferStatus) verdict {
	switch {
	case slices.Contains(want, s):
		return confirmed
	case s.Final():
		return refuted
	default:
		return behind
	}
}

// instant writes a moment for a fact.
func instant(t gateway.Timestamp) string {
	if t.IsZero() {
		return "-"
	}
	return strconv.FormatInt(t.UnixMilli(), 10)
}
