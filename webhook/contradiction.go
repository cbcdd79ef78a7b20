package webhook

import (
	"fmt"

	"github.com/gateway-go/gateway/internal/jsonread"
)

// terms are what an event says about its resource that never changes. A zero
// member says nothing.
type terms struct {
	amount              int64
	currency, reference string
}

// termsOf returns what the event's body says. It is an error if an amount can't
// be read.
func termsOf(e *Event) (terms, error) {
	return dataOf(e, func(o object) terms {
		switch e.Family {
		case FamilyTransaction:
			d := readTransactionData(o)
			return terms{amount: d.Amount, currency: string(d.Currency), reference: d.CorrelationID}
		case FamilySubscription:
			d := readSubscriptionData(o)
			return terms{amount: d.Amount, currency: string(d.Currency)}
		default:
			d := readTransferData(o)
			return terms{amount: d.Amount, reference: d.ExternalRef}
		}
	})
}

func (r *resource) terms() terms {
	switch {
	case r.transaction != nil:
		tx := r.transaction
		return terms{amount: tx.Amount, currency: string(tx.Currency), reference: tx.ExternalRef}
	case r.subscription != nil:
		return terms{amount: r.subscription.Amount, currency: string(r.subscription.Currency)}
	default:
		return terms{amount: r.transfer.Amount, reference: r.transfer.ExternalRef}
	}
}

// contradicts names the first member of which both say something, but not the
// same; "" where there is none.
func (w terms) contradicts(other terms) string {
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
	said, err := termsOf(e)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnconfirmed, err)
	}
	if member := said.contradicts(r.terms()); member != "" {
		return fmt.Errorf("%w: the resource has another %s", ErrUnconfirmed, member)
	}
	return nil
}

// ambiguous reports whether an unproven body names more than one resource, or
// hides one where the family has none.
func ambiguous(e *Event) bool {
	several := true
	_ = jsonread.Read(e.Raw, func(d *jsonread.Document) { // Parse has read it
		env := envelope{doc: d}
		if !env.read() {
			return
		}
		beside, inside := env.firstOf(env.outer.id), env.firstOf(env.inner.id)
		several = env.nested && (!e.Family.mayNest() || env.inner.object != 0 || (beside != "" && inside != "" && beside != inside))
	})
	return several
}
