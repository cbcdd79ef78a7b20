package operations

import (
	"context"
	"log/slog"
	"time"
)

// Event is something that happened to an operation, for metrics.
type Event string

// The events.
const (
	EventDone          Event = "done"           // applied, and the handler committed
	EventRejected      Event = "rejected"       // rejected for good, and the handler committed
	EventRetry         Event = "retry"          // nothing is decided yet; Err says why, and the operation is retried
	EventUnknown       Event = "unknown"        // a request was sent, and its outcome is not known
	EventSearching     Event = "searching"      // a list is searched for it, which takes more than one attempt; Entry.LastError says how far
	EventNotApplied    Event = "not_applied"    // a read showed that it was not applied; it is sent again
	EventAmbiguous     Event = "ambiguous"      // a person must decide
	EventSendLimit     Event = "send_limit"     // it was sent too often without an outcome; EventAmbiguous follows
	EventHandlerFailed Event = "handler_failed" // the handler runs again later
	EventDead          Event = "dead"           // the handler failed too often
	EventUnhandled     Event = "unhandled"      // this process has no handler for it
	EventLate          Event = "late"           // a worker stalled past its lease; another one has the operation
)

// Observation is the argument of [Config.Observe]. It contains no personal
// data.
type Observation struct {
	Event    Event
	ID       int64
	Account  string
	Kind     string
	Key      string
	Resource string
	Sends    int
	Age      time.Duration // since the operation was inserted
	Err      error         // why; nil if nothing failed
}

func (a *attempt) observe(ctx context.Context, event Event, err error) {
	r := a.record
	err = shown(err)
	if a.config.Observe != nil {
		a.config.Observe(ctx, Observation{
			Event: event, ID: r.ID, Account: r.Account, Kind: r.Kind, Key: r.Key, Resource: r.Resource, Sends: r.p.Sends,
			Age: r.clock().Sub(r.CreatedAt), Err: err,
		})
	}
	level := slog.LevelDebug
	switch event {
	case EventAmbiguous, EventSendLimit, EventDead:
		level = slog.LevelError
	case EventUnknown, EventRetry, EventHandlerFailed, EventUnhandled, EventLate:
		level = slog.LevelWarn
	case EventDone, EventRejected, EventNotApplied, EventSearching:
	}
	attrs := []slog.Attr{
		slog.String("event", string(event)), slog.Int64("id", r.ID), slog.String("account", r.Account), slog.String("kind", r.Kind), slog.Int("sends", r.p.Sends),
	}
	if err != nil {
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	a.config.Logger.LogAttrs(ctx, level, "gateway: operation", attrs...)
}
