package store

import (
	"github.com/gateway-go/gateway/mockserver/internal/clock"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/events"
)

// face is the data of a resource that events show, and the values that they
// must mask.
type face struct {
	status, reference string
	private           []string
}

// move is a resource whose status a change sets or changes.
type move struct {
	events.TransitionEvent

	private []string
}

// moves returns the moves of a stamped change, before it is stored, or nothing
// if events have no readers.
func (a *Account) moves(c engine.Change) []move {
	if !a.store.cfg.Events.Listening() {
		return nil
	}
	d := &a.data
	list := movesOf(nil, "customer", &d.Customers, c.Customers, func(r *engine.Customer) face {
		return face{r.Status, r.ExternalRef, r.Private()}
	})
	list = movesOf(list, "checkout_link", &d.Links, c.Links, func(r *engine.Link) face {
		return face{r.Status, "", nil}
	})
	list = movesOf(list, "checkout_session", &d.Sessions, c.Sessions, func(r *engine.Session) face {
		return face{r.Status, r.Slug, r.Private()}
	})
	list = movesOf(list, "transaction", &d.Transactions, c.Transactions, func(r *engine.Transaction) face {
		return face{r.Status, r.ExternalRef, r.Private()}
	})
	list = movesOf(list, "subscription", &d.Subscriptions, c.Subscriptions, func(r *engine.Subscription) face {
		return face{r.Status, r.IdempotencyKey, r.Private()}
	})
	return movesOf(list, "transfer", &d.Transfers, c.Transfers, func(r *engine.Transfer) face {
		return face{r.Status, r.ExternalRef, r.Private()}
	})
}

// movesOf appends the moves of one kind of resource. A change may hold several
// versions of one.
func movesOf[R any](list []move, kind string, t *Table[R], rows []*R, show func(*R) face) []move {
	for i, r := range rows {
		id, now, before := t.schema.id(r), show(r), face{}
		if old := previous(t, rows[:i], id); old != nil {
			before = show(old)
		}
		if before.status != now.status {
			list = append(list, move{private: now.private, TransitionEvent: events.TransitionEvent{
				Resource: kind, ID: id, Reference: now.reference, From: before.status, To: now.status,
			}})
		}
	}
	return list
}

// emit publishes the moves of a commit.
func (a *Account) emit(moves []move, fired *clock.Timer) {
	cause := a.cause
	if fired != nil {
		cause = Cause{Text: "timer " + fired.Kind}
	}
	for i := range moves {
		t := moves[i].TransitionEvent
		t.Cause, t.RequestID = cause.Text, cause.RequestID
		a.store.cfg.Events.Publish(a.key, events.Event{Type: events.TypeTransition, Transition: &t}, moves[i].private...)
	}
}
