package store

import (
	"slices"
	"time"

	"github.com/gateway-go/gateway/mockserver/internal/engine"
)

// Step is one change of a resource that people want to read about later: it was
// created, its status changed, money moved, or webhooks were sent.
type Step struct {
	ID       string // of the resource; the slug of a checkout link
	At       time.Time
	From, To string // the status before and after; From is "" if the resource was created
	Amount   int64  // what was paid or refunded, in cents
	Cause    Cause
	Events   []string // the ids of the webhooks

	// Requests is how many requests the journal had recorded before, and 0 for a step of
	// another process. Steps and requests at the same virtual time are sorted by it.
	Requests uint64 `json:"-"`
}

// maxSteps is how many steps an account remembers: the latest ones.
const maxSteps = 5000

// stepSize is the approximate size of a step in bytes.
const stepSize = 240

// history holds the latest steps of an account's resources, oldest first.
type history struct {
	steps []Step
	ids   []string // memory for the Events of the next steps, so that a step needs no allocation
}

// History returns the steps of the resources with the given ids, oldest first.
func (d *Data) History(ids ...string) (list []Step) {
	for _, s := range d.history.steps {
		if slices.Contains(ids, s.ID) {
			list = append(list, s)
		}
	}
	return list
}

// record remembers the steps of a stamped change, before it is stored. It returns how
// many bytes the history grows by.
func (d *Data) record(c engine.Change, cause Cause, requests uint64) int64 {
	h := &d.history
	before := len(h.steps)
	recordAll(h, &d.Transactions, c.Transactions, c.Events, func(r *engine.Transaction) shown {
		return shown{r.Status, r.UpdatedAt, r.PaidAmount, r.RefundedAmount}
	})
	recordAll(h, &d.Customers, c.Customers, c.Events, func(r *engine.Customer) shown { return shown{status: r.Status, at: r.UpdatedAt} })
	recordAll(h, &d.Links, c.Links, c.Events, func(r *engine.Link) shown { return shown{status: r.Status, at: r.UpdatedAt} })
	recordAll(h, &d.Sessions, c.Sessions, c.Events, func(r *engine.Session) shown { return shown{status: r.Status, at: r.UpdatedAt} })
	recordAll(h, &d.Subscriptions, c.Subscriptions, c.Events, func(r *engine.Subscription) shown {
		return shown{status: r.Status, at: r.UpdatedAt}
	})
	recordAll(h, &d.Transfers, c.Transfers, c.Events, func(r *engine.Transfer) shown { return shown{status: r.Status, at: r.UpdatedAt} })
	for i := before; i < len(h.steps); i++ {
		h.steps[i].Cause, h.steps[i].Requests = cause, requests
	}
	grown := len(h.steps) - before
	if len(h.steps) >= 2*maxSteps {
		forgotten := len(h.steps) - maxSteps
		h.steps = slices.Delete(h.steps, 0, forgotten)
		grown -= forgotten
	}
	return int64(grown) * stepSize
}

// shown is what a step shows of a version of a resource.
type shown struct {
	status         string
	at             time.Time
	paid, refunded int64
}

// recordAll appends the steps of one kind of resource. A change may contain several
// versions of a resource; an event belongs to the version that it reports.
func recordAll[R any](h *history, t *Table[R], rows []*R, events []engine.Event, show func(*R) shown) {
	for i, r := range rows {
		id, now := t.schema.id(r), show(r)
		var was shown
		if old := previous(t, rows[:i], id); old != nil {
			was = show(old)
		}
		s := Step{ID: id, At: now.at, From: was.status, To: now.status, Amount: max(now.paid-was.paid, 0)}
		if now.refunded > was.refunded {
			s.Amount = now.refunded - was.refunded
		}
		start := len(h.ids)
		for j := range events {
			if reports(&events[j], r) {
				h.ids = append(h.ids, events[j].ID)
			}
		}
		if s.From == s.To && s.Amount == 0 && len(h.ids) == start {
			continue
		}
		if len(h.ids) > start {
			s.Events = h.ids[start:len(h.ids):len(h.ids)]
		}
		if len(h.ids) >= eventIDs {
			h.ids = make([]string, 0, 2*eventIDs)
		}
		h.steps = append(h.steps, s)
	}
}

// eventIDs is the length of the arrays that the steps' Events share.
const eventIDs = 256

// reports reports whether an event is about a version of a resource. An event of a saved
// commit may have its own copy of the version.
func reports(e *engine.Event, version any) bool {
	switch r := version.(type) {
	case *engine.Transaction:
		return e.Transaction != nil && e.Transaction.Row == r.Row
	case *engine.Transfer:
		return e.Transfer != nil && e.Transfer.Row == r.Row
	case *engine.Subscription:
		return e.Subscription != nil && e.Subscription.Row == r.Row
	}
	return false
}
