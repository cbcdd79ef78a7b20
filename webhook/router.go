package webhook

import (
	"context"
	"fmt"
)

// handler is what the typed handlers become.
type handler func(ctx context.Context, e *Event) error

type route struct {
	family Family
	kind   Kind
}

// OnTransaction has fn called for the events of transactions of that kind; of
// every kind that has no handler of its own, if the kind is [AnyKind].
//
// An event counts as handled when fn returns nil. An error has it tried again,
// see [Permanent] and [RetryAfter]; so has a panic. A crash between fn's
// effects and the note that it is done has fn run again, so make its effects
// idempotent, by the resource's id and state, or write them with
// sqlstore.HandleTx.
//
// Handlers are registered before the first delivery; OnTransaction panics if
// there is one for the kind already, like [net/http.ServeMux.Handle].
func OnTransaction(rx *Receiver, kind Kind, fn func(ctx context.Context, e *TransactionEvent) error) {
	on(rx, FamilyTransaction, kind, fn, (*Event).Transaction)
}

// OnSubscription is [OnTransaction] for the events of subscriptions.
func OnSubscription(rx *Receiver, kind Kind, fn func(ctx context.Context, e *SubscriptionEvent) error) {
	on(rx, FamilySubscription, kind, fn, (*Event).Subscription)
}

// OnTransfer is [OnTransaction] for the events of transfers.
func OnTransfer(rx *Receiver, kind Kind, fn func(ctx context.Context, e *TransferEvent) error) {
	on(rx, FamilyTransfer, kind, fn, (*Event).Transfer)
}

// OnOther has fn called for every event that no other handler takes, those of
// unknown kinds and families among them. Without it they are acknowledged and
// counted as [OutcomeUnhandled].
func OnOther(rx *Receiver, fn func(ctx context.Context, e *Event) error) {
	on(rx, "", AnyKind, fn, func(e *Event) (*Event, error) { return e, nil })
}

func on[E any](rx *Receiver, family Family, kind Kind, fn func(context.Context, E) error, as func(*Event) (E, error)) {
	switch {
	case fn == nil:
		panic("webhook: the handler of " + string(kind) + " is nil")
	case kind == "" || (kind.Family() != "" && kind.Family() != family):
		panic(fmt.Sprintf("webhook: %q is no kind of the family %q", kind, family))
	}
	rx.register(route{family: family, kind: kind}, func(ctx context.Context, e *Event) error {
		typed, err := as(e)
		if err != nil {
			return Permanent(err) // kept as a dead letter: a later version may read it
		}
		return fn(ctx, typed)
	})
}

func (rx *Receiver) register(r route, h handler) {
	rx.mu.Lock()
	defer rx.mu.Unlock()
	if rx.serving {
		panic("webhook: a handler was registered after the first delivery")
	}
	if rx.routes[r] != nil {
		panic(fmt.Sprintf("webhook: there is a handler for %q already", r.kind))
	}
	rx.routes[r] = h
}

// route returns the handler for e, nil where there is none. The map no longer
// changes when the first event arrives.
func (rx *Receiver) route(e *Event) handler {
	if f := e.Kind.Family(); f != "" && f != e.Family {
		return rx.routes[route{"", AnyKind}] // not what a family's handler expects
	}
	for _, r := range [...]route{{e.Family, e.Kind}, {e.Family, AnyKind}, {"", AnyKind}} {
		if h := rx.routes[r]; h != nil {
			return h
		}
	}
	return nil
}
