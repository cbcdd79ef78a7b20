package mockserver

import (
	"context"
	"iter"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver/internal/events"
	"github.com/gateway-go/gateway/mockserver/internal/respond"
)

// EventType is the type of an [Event].
type EventType string

// The types of events.
const (
	EventRequest    EventType = events.TypeRequest    // a request got its response, or its connection broke: Event.Request
	EventControl    EventType = events.TypeControl    // a call of the control plane changed something or was rejected: Event.Request
	EventTransition EventType = events.TypeTransition // a resource was created or changed its status: Event.Transition
	EventTimer      EventType = events.TypeTimer      // a timer fired: Event.Timer
	EventWebhook    EventType = events.TypeWebhook    // a webhook is about to be sent: Event.Webhook
	EventDelivery   EventType = events.TypeDelivery   // an attempt to deliver a webhook was made, or the delivery is held: Event.Delivery
	EventClock      EventType = events.TypeClock      // the virtual clock was advanced: Event.Clock
	EventFault      EventType = events.TypeFault      // a fault was added, removed or hit, or the gateway went down or up: Event.Fault
	EventReset      EventType = events.TypeReset      // an account was reset, a snapshot restored, or a seed file applied: Event.Reset
	EventLost       EventType = events.TypeLost       // events are missing: Event.Lost
)

// Event is something that happened in the gateway. It is masked: no key,
// token, document or card data. Only the field for its Type is set.
type Event struct {
	Seq     uint64 // counts the server's events; numbers may be skipped
	Type    EventType
	At      time.Time // on the virtual clock
	Wall    time.Time // in wall time
	Account string    // "default", or "acct_" and a hash of its key; "" if the event belongs to none

	Request    *RequestEvent
	Transition *TransitionEvent
	Timer      *TimerEvent
	Webhook    *WebhookEvent
	Delivery   *DeliveryEvent
	Clock      *ClockEvent
	Fault      *FaultEvent
	Reset      *ResetEvent
	Lost       *LostEvent

	wire events.Event
}

// RequestEvent is a request and its response.
type RequestEvent struct {
	ID        string // X-Request-Id of the response; "" without one
	Operation string // "transactions.create"; "" if the interface has none
	Method    string
	Path      string
	Query     string
	Status    int // of the response; 0 if none was sent
	Duration  time.Duration
	Code      string               // of an error: "VALIDATION_ERROR"
	Detail    string               // of an error
	Errors    []gateway.FieldError // the fields that break a rule, at most 10
	Fault     string               // the injected fault; "" for none
	Broken    bool                 // the connection broke before the end of the response
	Replayed  bool                 // it was not executed again: its idempotency key was used before
}

// TransitionEvent is a resource that was created or whose status changed.
type TransitionEvent struct {
	Resource  string // transaction, transfer, subscription, customer, checkout_link or checkout_session
	ID        string // for a checkout_link, its slug
	Reference string // external_ref, the idempotency key of a subscription, the slug of a session; "" for none
	From      string // "" if the resource was created
	To        string
	Cause     string // "request transactions.create", "control transactions/pay" or "timer transaction.expire"
	RequestID string // of the request that caused it, or ""
}

// TimerEvent is a timer that fired and had something to do.
type TimerEvent struct {
	Kind  string // "subscription.period_end", or "webhook.attempt"
	ID    string // of the resource, or of the delivery
	Due   time.Time
	Error string // why it failed and will fire again, or ""
}

// WebhookEvent is a webhook that is about to be sent. Its attempts follow as
// [DeliveryEvent].
type WebhookEvent struct {
	ID         string // "evt_…"
	Kind       string // "transaction.paid"
	ResourceID string
	Reference  string
	Endpoints  int // number of receivers
}

// DeliveryEvent is an attempt to deliver a webhook, or a delivery that is held.
type DeliveryEvent struct {
	ID         string // of the [Delivery]
	EventID    string // of the webhook
	Kind       string
	ResourceID string
	Endpoint   string // the id of an endpoint, or notify_url, webhookUrl or pixWebhookUrl
	URL        string // "" in memory; without user and query
	Attempt    int    // from 1; 0 if the delivery is held
	Status     int    // of the response; 0 without one
	Error      string // why it failed, or ""
	Duration   time.Duration
	Signed     bool
	State      string    // of the delivery after the attempt: [DeliveryDelivered]
	NextAt     time.Time // of the next attempt; zero means none
	Fault      string    // the injected fault; "" for none
}

// ClockEvent reports an advance of the virtual clock.
type ClockEvent struct{ From, To time.Time }

// FaultEvent reports a change of the injected faults, or a hit.
type FaultEvent struct {
	Action string // added, removed, hit, down or up
	ID     string // "" for a fault from the header X-Mock-Fault, down and up
	Fault  string // "status=503; retry-after=2"
	On     string // the operation or kind that it matches; "" means any
	Target string // of a hit: the operation, or the kind of webhook
	Fired  int    // number of hits so far
	Times  int    // maximum number of hits; 0 is unlimited
}

// ResetEvent reports that the content of an account, or of the whole server,
// was replaced.
type ResetEvent struct{ Cause string } // reset, restore or seed

// LostEvent reports that events are missing: the reader was too slow, or
// resumed too late.
type LostEvent struct{ Events uint64 } // number of missing events; 0 if unknown

// Events returns the events from now on, all of them or only the given types.
// The sequence waits for the next event, and ends with the context or, when
// all events are read, with the server. A reader that is more than 1,000
// events behind, or starts more than a minute after the call, gets an
// [EventLost] instead of the missed ones; the gateway never waits for a
// reader.
func (s *Server) Events(ctx context.Context, types ...EventType) iter.Seq[Event] {
	return follow(ctx, s.core.Events, "", types)
}

// Events is [Server.Events] for only this account. It includes clock advances
// and other events that affect every account.
func (a *Account) Events(ctx context.Context, types ...EventType) iter.Seq[Event] {
	hub := a.server.core.Events
	return follow(ctx, hub, hub.Name(a.key.Reveal()), types)
}

func follow(ctx context.Context, hub *events.Hub, account string, types []EventType) iter.Seq[Event] {
	f := events.Filter{Account: account}
	for _, t := range types {
		f.Types = append(f.Types, string(t))
	}
	from := hub.Position()
	return func(yield func(Event) bool) {
		r := hub.Read(from, f)
		defer r.Close()
		for {
			e, ok := r.Next(ctx)
			if !ok || !yield(eventOf(e)) {
				return
			}
		}
	}
}

// MarshalJSON returns the event as GET /__mock/events sends it.
func (e Event) MarshalJSON() ([]byte, error) { return respond.Marshal(e.wire) }

// UnmarshalJSON reads an event of GET /__mock/events, such as that of a gateway in
// another process.
func (e *Event) UnmarshalJSON(text []byte) error {
	var wire events.Event
	if err := json.Unmarshal(text, &wire); err != nil {
		return err
	}
	*e = eventOf(wire)
	return nil
}

func eventOf(e events.Event) Event {
	out := Event{
		Seq: e.Seq, Type: EventType(e.Type), At: time.Time(e.At), Wall: time.Time(e.Wall), Account: e.Account,
		Transition: (*TransitionEvent)(e.Transition),
		Webhook:    (*WebhookEvent)(e.Webhook),
		Fault:      (*FaultEvent)(e.Fault),
		Reset:      (*ResetEvent)(e.Reset),
		Lost:       (*LostEvent)(e.Lost),
		wire:       e,
	}
	if r := e.Request; r != nil {
		out.Request = &RequestEvent{
			ID: r.ID, Operation: r.Operation, Method: r.Method, Path: r.Path, Query: r.Query, Status: r.Status,
			Duration: milliseconds(r.DurationMS), Code: r.Code, Detail: r.Detail, Errors: r.Errors, Fault: r.Fault, Broken: r.Broken,
			Replayed: r.Replayed,
		}
	}
	if t := e.Timer; t != nil {
		out.Timer = &TimerEvent{Kind: t.Kind, ID: t.ID, Due: time.Time(t.Due), Error: t.Error}
	}
	if c := e.Clock; c != nil {
		out.Clock = &ClockEvent{From: time.Time(c.From), To: time.Time(c.To)}
	}
	if d := e.Delivery; d != nil {
		out.Delivery = &DeliveryEvent{
			ID: d.ID, EventID: d.EventID, Kind: d.Kind, ResourceID: d.ResourceID, Endpoint: d.Endpoint, URL: d.URL,
			Attempt: d.Attempt, Status: d.Status, Error: d.Error, Duration: milliseconds(d.DurationMS), Signed: d.Signed,
			State: d.State, NextAt: time.Time(d.NextAt), Fault: d.Fault,
		}
	}
	return out
}

func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
