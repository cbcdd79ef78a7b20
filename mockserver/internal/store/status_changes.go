package store

import (
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/events"
)

// summary is the data of a resource that events show and the values that they must
// mask.
type summary struct {
	status, reference string
	private           []string
}

// statusChange is the event for a resource that is created or whose status changes.
type statusChange struct {
	events.TransitionEvent

	private []string
}

// statusChanges returns the status changes of a stamped change, before it is stored,
// or nil if events have no subscribers.
func (a *Account) statusChanges(c engine.Change) []statusChange {
	if !a.store.cfg.Events.Listening() {
		return nil
	}
	d := &a.data
	list := statusChangesOf(nil, "customer", &d.Customers, c.Customers, func(r *engine.Customer) summary {
		return summary{r.Status, r.ExternalRef, r.Private()}
	})
	list = statusChangesOf(list, "checkout_link", &d.Links, c.Links, func(r *engine.Link) summary {
		return summary{r.Status, "", nil}
	})
	list = statusChangesOf(list, "checkout_session", &d.Sessions, c.Sessions, func(r *engine.Session) summary {
		return summary{r.Status, r.Slug, r.Private()}
	})
	list = statusChangesOf(list, "transaction", &d.Transactions, c.Transactions, func(r *engine.Transaction) summary {
		return summary{r.Status, r.ExternalRef, r.Private()}
	})
	list = statusChangesOf(list, "subscription", &d.Subscriptions, c.Subscriptions, func(r *engine.Subscription) summary {
		return summary{r.Status, r.IdempotencyKey, r.Private()}
	})
	return statusChangesOf(list, "transfer", &d.Transfers, c.Transfers, func(r *engine.Transfer) summary {
		return summary{r.Status, r.ExternalRef, r.Private()}
	})
}

// statusChangesOf appends the status changes of one kind of resource. A change may
// contain several versions of a resource.
func statusChangesOf[R any](list []statusChange, kind string, t *Table[R], rows []*R, show func(*R) summary) []statusChange {
	for i, r := range rows {
		id, now, before := t.schema.id(r), show(r), summary{}
		if old := previous(t, rows[:i], id); old != nil {
			before = show(old)
		}
		if before.status != now.status {
			list = append(list, statusChange{private: now.private, TransitionEvent: events.TransitionEvent{
				Resource: kind, ID: id, Reference: now.reference, From: before.status, To: now.status,
			}})
		}
	}
	return list
}

// emit publishes the status changes of a commit.
func (a *Account) emit(changes []statusChange, cause Cause) {
	for i := range changes {
		t := changes[i].TransitionEvent
		t.Cause, t.RequestID = cause.Text, cause.RequestID
		a.store.cfg.Events.Publish(a.key, events.Event{Type: events.TypeTransition, Transition: &t}, changes[i].private...)
	}
}
