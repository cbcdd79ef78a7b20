package webhook

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Handler handles an event of any kind. Typed handlers are converted to it.
type Handler func(ctx context.Context, e *Event) error

// Middleware wraps a handler, for traces, metrics or logs; see [Receiver.Use].
type Middleware func(next Handler) Handler

// HandlerOption changes how one handler is run.
type HandlerOption func(*handler)

// WithTimeout sets the timeout of this handler, which overrides
// [Config.HandlerTimeout]. It panics if d is not positive.
func WithTimeout(d time.Duration) HandlerOption {
	if d <= 0 {
		panic(fmt.Sprintf("webhook: the timeout of a handler is %v; it must be positive", d))
	}
	return func(h *handler) { h.timeout = d }
}

// handler is a registered handler.
type handler struct {
	bare    Handler
	run     Handler       // bare, wrapped in the middleware
	timeout time.Duration // 0 means Config.HandlerTimeout
	ignored bool          // the event is completed without running a handler
}

// Use wraps every handler, including those that are registered later, in
// middleware. The first middleware is the outermost. Middleware runs once per
// attempt, within the handler's timeout and lease, and a panic in it fails the
// attempt. It does not run for events without a handler. Use panics after the first
// delivery.
func (rx *Receiver) Use(around ...Middleware) {
	rx.mu.Lock()
	defer rx.mu.Unlock()
	if rx.serving {
		panic("webhook: Use was called after the first delivery")
	}
	rx.around = append(rx.around, around...)
	for _, h := range rx.routes {
		rx.wrap(h)
	}
}

func (rx *Receiver) wrap(h *handler) {
	h.run = h.bare
	for i, around := range slices.Backward(rx.around) {
		if around != nil {
			h.run = around(h.run)
		}
		if around == nil || h.run == nil {
			panic(fmt.Sprintf("webhook: the middleware %d is nil, or returned a nil handler", i))
		}
	}
}

type route struct {
	family Family
	kind   Kind
}

// OnTransaction registers fn for one kind of transaction event, or, with
// [AnyKind], for every kind without its own handler.
//
// An event is done when fn returns nil. After an error or a panic it is
// retried; see [Permanent] and [RetryAfter]. If the process crashes between
// fn's effects and the completion of the event, fn runs again: make its
// effects idempotent, by the resource's id and state, or write them with
// sqlstore.HandleTx.
//
// Register handlers before the first delivery. Registering a second one for a
// kind panics, like [net/http.ServeMux.Handle].
func OnTransaction(rx *Receiver, kind Kind, fn func(ctx context.Context, e *TransactionEvent) error, options ...HandlerOption) {
	on(rx, FamilyTransaction, kind, fn, (*Event).Transaction, options)
}

// OnSubscription is like [OnTransaction], for subscription events.
func OnSubscription(rx *Receiver, kind Kind, fn func(ctx context.Context, e *SubscriptionEvent) error, options ...HandlerOption) {
	on(rx, FamilySubscription, kind, fn, (*Event).Subscription, options)
}

// OnTransfer is like [OnTransaction], for transfer events.
func OnTransfer(rx *Receiver, kind Kind, fn func(ctx context.Context, e *TransferEvent) error, options ...HandlerOption) {
	on(rx, FamilyTransfer, kind, fn, (*Event).Transfer, options)
}

// OnOther registers fn for every event without another handler, including
// unknown kinds and families. Without OnOther such events are acknowledged,
// stored for a process that has a handler, and counted as [OutcomeUnhandled]
// and in [Counts]. To drop kinds that you don't need, use [Ignore]: while your
// next release is being deployed, an OnOther that returns nil also drops the
// kinds that only the next release handles.
func OnOther(rx *Receiver, fn func(ctx context.Context, e *Event) error, options ...HandlerOption) {
	on(rx, "", AnyKind, fn, func(e *Event) (*Event, error) { return e, nil }, options)
}

// Ignore marks events of these kinds as done without handling them, and erases
// their bodies. They are counted as [OutcomeIgnored]. Ignore panics if one of
// the kinds already has a handler, or if the name of a kind belongs to no family.
func Ignore(rx *Receiver, kinds ...Kind) {
	for _, kind := range kinds {
		family := kind.Family()
		if family == "" {
			panic(fmt.Sprintf("webhook: Ignore: %q is not a kind of transactions, subscriptions or payouts", kind))
		}
		rx.register(route{family: family, kind: kind}, func(context.Context, *Event) error { return nil },
			func(h *handler) { h.ignored = true })
	}
}

func on[E any](rx *Receiver, family Family, kind Kind, fn func(context.Context, E) error, as func(*Event) (E, error), options []HandlerOption) {
	switch {
	case fn == nil:
		panic("webhook: the handler of " + string(kind) + " is nil")
	case kind == "" || (kind.Family() != "" && kind.Family() != family):
		panic(fmt.Sprintf("webhook: %q is not a kind of the family %q", kind, family))
	}
	rx.register(route{family: family, kind: kind}, func(ctx context.Context, e *Event) error {
		typed, err := as(e)
		if err != nil {
			return Permanent(&unreadableError{err})
		}
		return fn(ctx, typed)
	}, options...)
}

func (rx *Receiver) register(r route, fn Handler, options ...HandlerOption) {
	rx.mu.Lock()
	defer rx.mu.Unlock()
	if rx.serving {
		panic("webhook: a handler was registered after the first delivery")
	}
	if rx.routes[r] != nil {
		panic(fmt.Sprintf("webhook: there is already a handler for %q", r.kind))
	}
	h := &handler{bare: fn}
	for _, option := range options {
		option(h)
	}
	rx.wrap(h)
	rx.routes[r] = h
}

// routeFamily returns the family that the handler of e is registered for, or
// "" if its kind does not belong to its family.
func routeFamily(e *Event) Family {
	if f := e.Kind.Family(); f != "" && f != e.Family {
		return ""
	}
	return e.Family
}

// route returns the handler for a kind, or nil if there is none. The map does
// not change after the first event has arrived.
func (rx *Receiver) route(family Family, kind Kind) *handler {
	for _, r := range [...]route{{family, kind}, {family, AnyKind}, {"", AnyKind}} {
		if h := rx.routes[r]; h != nil {
			return h
		}
	}
	return nil
}

// handles reports whether there is a handler for a kind.
func (rx *Receiver) handles(family Family, kind Kind) bool { return rx.route(family, kind) != nil }
