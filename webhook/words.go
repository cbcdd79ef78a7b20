package webhook

import (
	"fmt"

	"github.com/gateway-go/gateway"
)

// words are what an event says about its resource that never changes. A zero
// member says nothing.
type words struct {
	amount              int64
	currency, reference string
}

// wordsOf returns what the event's body says. It is an error if an amount can't
// be read.
func wordsOf(e *Event) (words, error) {
	var data words
	var fault error
	o := dataOf(e, &fault)
	switch e.Family {
	case FamilyTransaction:
		d := readTransactionData(o)
		data = words{amount: d.Amount, currency: string(d.Currency), reference: d.CorrelationID}
	case FamilySubscription:
		d := readSubscriptionData(o)
		data = words{amount: d.Amount, currency: string(d.Currency)}
	default:
		d := readTransferData(o)
		data = words{amount: d.Amount, reference: d.ExternalRef}
	}
	return data, fault
}

func (r *resource) words() words {
	switch {
	case r.transaction != nil:
		tx := r.transaction
		return words{amount: tx.Amount, currency: string(tx.Currency), reference: tx.ExternalRef}
	case r.subscription != nil:
		return words{amount: r.subscription.Amount, currency: string(r.subscription.Currency)}
	default:
		return words{amount: r.transfer.Amount, reference: r.transfer.ExternalRef}
	}
}

// contradicts names the first member of which both say something, but not the
// same; "" where there is none.
func (w words) contradicts(other words) string {
	switch {
	case w.amount != 0 && other.amount != 0 && w.amount != other.amount:
		return "amount"
	case w.currency != "" && other.currency != "" && w.currency != other.currency:
		return "currency"
	case w.reference != "" && other.reference != "" && w.reference != other.reference:
		return "reference"
	default:
		return ""
	}
}

// contradiction is the error of an unproven event that says about its resource
// what the API denies.
func contradiction(e *Event, r *resource) error {
	said, err := wordsOf(e)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnconfirmed, err)
	}
	if member := said.contradicts(r.words()); member != "" {
		return fmt.Errorf("%w: the resource has another %s", ErrUnconfirmed, member)
	}
	return nil
}

// ambiguous reports whether an unproven body names more than one resource, or
// hides one where the family has none.
func ambiguous(e *Event) bool {
	var env envelope
	if !env.read(string(e.Raw)) {
		return true
	}
	inner := env.payload.inner
	if inner == nil {
		return false
	}
	beside, inside := firstOf(env.payload.id), firstOf(inner.id)
	return !e.Family.mayNest() || inner.object != "" || (beside != "" && inside != "" && beside != inside)
}

// statusVerdict judges the state that an unproven event says its resource is in:
// the resource must be in it or have been.
func statusVerdict(e *Event, r *resource) verdict {
	if e.Status == "" || e.Status == r.status() {
		return confirmed
	}
	switch {
	case r.transaction != nil:
		return transactionStatusVerdict(gateway.TransactionStatus(e.Status), r.transaction)
	case r.transfer != nil:
		return transferStatusVerdict(gateway.TransferStatus(e.Status), r.transfer.Status)
	default:
		return subscriptionStatusVerdict(gateway.SubscriptionStatus(e.Status), r.subscription.Status)
	}
}

func transactionStatusVerdict(said gateway.TransactionStatus, tx *gateway.Transaction) verdict {
	switch said {
	case gateway.TransactionPending:
		return confirmed
	case gateway.TransactionThreeDSRequired:
		return challengeVerdict(tx)
	case gateway.TransactionPaid, gateway.TransactionCaptured:
		return paidVerdict(tx)
	case gateway.TransactionPartiallyRefunded:
		return refundVerdict(tx)
	case gateway.TransactionRefunded:
		if tx.Amount > 0 && tx.RefundedAmount >= tx.Amount {
			return confirmed
		}
		return reached(tx, gateway.TransactionRefunded)
	case gateway.TransactionChargedback:
		return reached(tx, gateway.TransactionChargedback)
	case gateway.TransactionCanceled, gateway.TransactionExpired, gateway.TransactionRefused:
		return ended(tx, said)
	default: // a state of the way, such as processing, that nothing proves or denies
		return confirmed
	}
}

func transferStatusVerdict(said, is gateway.TransferStatus) verdict {
	switch said {
	case gateway.TransferInAnalysis:
		return transferVerdict(PayoutInAnalysis, is)
	case gateway.TransferProcessing:
		return transferVerdict(PayoutProcessing, is)
	case gateway.TransferPaid:
		return transferVerdict(PayoutTransferred, is)
	case gateway.TransferError, gateway.TransferRejected:
		return transferVerdict(PayoutFailed, is)
	case gateway.TransferCancelled:
		return transferVerdict(PayoutCanceled, is)
	default:
		return confirmed
	}
}

// subscriptionStatusVerdict knows no state that is over for good: a subscription
// goes round. It may only not be ahead of itself.
func subscriptionStatusVerdict(said, is gateway.SubscriptionStatus) verdict {
	if subscriptionStage(said) > subscriptionStage(is) {
		return behind
	}
	return confirmed
}

func subscriptionStage(s gateway.SubscriptionStatus) int {
	switch s {
	case gateway.SubscriptionIncomplete:
		return 1
	case gateway.SubscriptionTrialing:
		return 2
	case gateway.SubscriptionActive, gateway.SubscriptionPastDue, gateway.SubscriptionCancelScheduled:
		return 3
	case gateway.SubscriptionCanceled:
		return 4
	default:
		return 0
	}
}
