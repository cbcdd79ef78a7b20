package webhook

import (
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/jsonread"
)

// resource is what the API returned: exactly one member is set.
type resource struct {
	transaction  *gateway.Transaction
	subscription *gateway.Subscription
	transfer     *gateway.Transfer
}

// head is what resources of all families have.
type head struct {
	id, status           string
	createdAt, updatedAt gateway.Timestamp
}

func (r *resource) head() head {
	switch {
	case r.transaction != nil:
		tx := r.transaction
		return head{tx.ID, string(tx.Status), tx.CreatedAt, tx.UpdatedAt}
	case r.subscription != nil:
		sub := r.subscription
		return head{sub.ID, string(sub.Status), sub.CreatedAt, sub.UpdatedAt}
	default:
		tr := r.transfer
		return head{tr.ID, string(tr.Status), tr.CreatedAt, tr.UpdatedAt}
	}
}

// status returns the resource's state, "" where there is no resource.
func (r *resource) status() string {
	if r == nil {
		return ""
	}
	return r.head().status
}

// proves reports whether an event of the kind must have happened to the resource.
func (r *resource) proves(k Kind, now time.Time) bool { return rowOf(k).proof(r, now) == confirmed }

// encode writes the resource for a store.
func (r *resource) encode() ([]byte, error) {
	switch {
	case r == nil:
		return nil, nil
	case r.transaction != nil:
		return jsonv2.Marshal(r.transaction, jsonread.Lenient)
	case r.subscription != nil:
		return jsonv2.Marshal(r.subscription, jsonread.Lenient)
	default:
		return jsonv2.Marshal(r.transfer, jsonread.Lenient)
	}
}

func decodeResource(family Family, raw []byte) (*resource, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var r resource
	var into any
	switch family {
	case FamilyTransaction:
		r.transaction = new(gateway.Transaction)
		into = r.transaction
	case FamilySubscription:
		r.subscription = new(gateway.Subscription)
		into = r.subscription
	default:
		r.transfer = new(gateway.Transfer)
		into = r.transfer
	}
	err := jsonv2.Unmarshal(raw, into, jsonread.Lenient)
	return &r, err
}
