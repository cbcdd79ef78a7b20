// Package events implements the server's event stream: requests, changes of
// resources, timers that fired, webhooks that were sent. One [Hub] orders the
// events and serves any number of readers.
package events

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/masking"
	"github.com/gateway-go/gateway/internal/truncate"
	"github.com/gateway-go/gateway/mockserver/internal/respond"
)

// The types of events.
const (
	TypeRequest    = "request"
	TypeControl    = "control"
	TypeTransition = "transition"
	TypeTimer      = "timer"
	TypeWebhook    = "webhook"
	TypeDelivery   = "delivery"
	TypeClock      = "clock"
	TypeFault      = "fault"
	TypeReset      = "reset"
	TypeLost       = "lost"
)

// Types lists the types.
func Types() []string {
	return []string{
		TypeRequest, TypeControl, TypeTransition, TypeTimer, TypeWebhook, TypeDelivery, TypeClock, TypeFault, TypeReset, TypeLost,
	}
}

// Event is one event as it is sent to readers. Of the members after Account, only
// the one that belongs to the type is set; TypeControl has a Request too.
type Event struct {
	Seq     uint64        `json:"seq"`              // counts the server's events; numbers may be skipped
	Type    string        `json:"type"`             // one of request, control, transition, timer, webhook, delivery, clock, fault, reset and lost
	At      respond.Stamp `json:"at"`               // on the virtual clock
	Wall    respond.Stamp `json:"wall"`             // in wall time
	Account string        `json:"account,omitzero"` // "default", or "acct_" and a hash of its key; absent if the event belongs to none

	Request    *RequestEvent    `json:"request,omitzero"`
	Transition *TransitionEvent `json:"transition,omitzero"`
	Timer      *TimerEvent      `json:"timer,omitzero"`
	Webhook    *WebhookEvent    `json:"webhook,omitzero"`
	Delivery   *DeliveryEvent   `json:"delivery,omitzero"`
	Clock      *ClockEvent      `json:"clock,omitzero"`
	Fault      *FaultEvent      `json:"fault,omitzero"`
	Reset      *ResetEvent      `json:"reset,omitzero"`
	Lost       *LostEvent       `json:"lost,omitzero"`
}

// RequestEvent reports a request and its response. Calls of the control plane that
// succeed and change nothing are not reported.
type RequestEvent struct {
	ID         string               `json:"id,omitzero"`        // X-Request-Id of the response
	Operation  string               `json:"operation,omitzero"` // "transactions.create"; absent if it is not an operation of the API
	Method     string               `json:"method"`
	Path       string               `json:"path"`
	Query      string               `json:"query,omitzero"`
	Status     int                  `json:"status"` // of the response; 0 if none was sent
	DurationMS float64              `json:"duration_ms"`
	Code       string               `json:"code,omitzero"`     // of an error: "VALIDATION_ERROR"
	Detail     string               `json:"detail,omitzero"`   // of an error
	Errors     []gateway.FieldError `json:"errors,omitzero"`   // the fields that break a rule, at most 10
	Fault      string               `json:"fault,omitzero"`    // the injected fault
	Broken     bool                 `json:"broken,omitzero"`   // the connection broke before the end of the response
	Replayed   bool                 `json:"replayed,omitzero"` // the response is a replay: the idempotency key was used before
}

// TransitionEvent reports that a resource was created or its status changed.
type TransitionEvent struct {
	Resource  string `json:"resource"` // one of transaction, transfer, subscription, customer, checkout_link and checkout_session
	ID        string `json:"id"`       // of a checkout_link, its slug
	Reference string `json:"reference,omitzero"`
	From      string `json:"from"` // "" if the resource was created
	To        string `json:"to"`
	Cause     string `json:"cause"`               // such as "request transactions.create", "control transactions/pay" or "timer transaction.expire"
	RequestID string `json:"request_id,omitzero"` // of the request that caused it
}

// TimerEvent reports that a timer fired, unless it no longer applied.
type TimerEvent struct {
	Kind  string        `json:"kind"` // "subscription.period_end", or "webhook.attempt"
	ID    string        `json:"id"`   // of the resource, or of the delivery
	Due   respond.Stamp `json:"due"`
	Error string        `json:"error,omitzero"` // why it failed; it will be retried
}

// WebhookEvent reports an event for the merchant's endpoints. Each attempt to
// deliver it is reported by a DeliveryEvent.
type WebhookEvent struct {
	ID         string `json:"id"`   // "evt_…"
	Kind       string `json:"kind"` // "transaction.paid"
	ResourceID string `json:"resource_id"`
	Reference  string `json:"reference,omitzero"`
	Endpoints  int    `json:"endpoints"` // number of endpoints that receive it
}

// DeliveryEvent reports an attempt to deliver a webhook, or a delivery that is
// held.
type DeliveryEvent struct {
	ID         string        `json:"id"`
	EventID    string        `json:"event_id"`
	Kind       string        `json:"kind"`
	ResourceID string        `json:"resource_id"`
	Endpoint   string        `json:"endpoint"`     // the id of an endpoint, or notify_url, webhookUrl or pixWebhookUrl
	URL        string        `json:"url,omitzero"` // without user and query; absent for an in-memory endpoint
	Attempt    int           `json:"attempt"`      // from 1; 0 if the delivery is held
	Status     int           `json:"status"`       // of the response; 0 if there was none
	Error      string        `json:"error,omitzero"`
	DurationMS float64       `json:"duration_ms"`
	Signed     bool          `json:"signed"`
	State      string        `json:"state"` // of the delivery afterwards: pending, delivered, failed or held
	NextAt     respond.Stamp `json:"next_at"`
	Fault      string        `json:"fault,omitzero"`
}

// ClockEvent reports an advance of the virtual clock.
type ClockEvent struct {
	From respond.Stamp `json:"from"`
	To   respond.Stamp `json:"to"`
}

// FaultEvent reports a change of the injected faults, or that a fault hit.
type FaultEvent struct {
	Action string `json:"action"`          // one of added, removed, hit, down and up
	ID     string `json:"id,omitzero"`     // absent for a fault from the header X-Mock-Fault
	Fault  string `json:"fault,omitzero"`  // "status=503; retry-after=2"
	On     string `json:"on,omitzero"`     // the operation or kind that it matches
	Target string `json:"target,omitzero"` // of a hit: the operation, or the kind of event
	Fired  int    `json:"fired,omitzero"`  // hits so far
	Times  int    `json:"times,omitzero"`  // maximum number of hits
}

// ResetEvent reports that the content of an account, or of the whole server,
// was replaced.
type ResetEvent struct {
	Cause string `json:"cause"` // one of reset, restore and seed
}

// LostEvent reports that events are missing before the next one.
type LostEvent struct {
	Events uint64 `json:"events,omitzero"` // how many; absent if it is unknown
}

// affectsAll reports whether an event affects every account.
func (e *Event) affectsAll() bool {
	return e.Account == "" && (e.Clock != nil || e.Fault != nil || e.Reset != nil || e.Lost != nil)
}

// clientStrings returns the strings of an event that may contain client data.
func (e *Event) clientStrings() []*string {
	switch {
	case e.Request != nil:
		r := e.Request
		list := []*string{&r.ID, &r.Operation, &r.Method, &r.Path, &r.Query, &r.Code, &r.Detail, &r.Fault}
		r.Errors = slices.Clone(r.Errors)
		for i := range r.Errors {
			list = append(list, &r.Errors[i].Field, &r.Errors[i].Message, &r.Errors[i].Code)
		}
		return list
	case e.Transition != nil:
		t := e.Transition
		return []*string{&t.Resource, &t.ID, &t.Reference, &t.From, &t.To, &t.Cause, &t.RequestID}
	case e.Timer != nil:
		return []*string{&e.Timer.Kind, &e.Timer.ID, &e.Timer.Error}
	case e.Webhook != nil:
		w := e.Webhook
		return []*string{&w.ID, &w.Kind, &w.ResourceID, &w.Reference}
	case e.Delivery != nil:
		d := e.Delivery
		return []*string{&d.ID, &d.EventID, &d.Kind, &d.ResourceID, &d.Endpoint, &d.URL, &d.Error, &d.State, &d.Fault}
	case e.Fault != nil:
		f := e.Fault
		return []*string{&f.Action, &f.ID, &f.Fault, &f.On, &f.Target}
	}
	return nil
}

// Keys returns a pattern that matches API keys and card tokens by their prefixes.
func Keys() *regexp.Regexp {
	return regexp.MustCompile(`\b(sk_test_|sk_live_|pgct_|pgpm_)[^\s"'&,;<>]+`)
}

const (
	masked = "***"
	// minPrivate is the minimum length, in bytes, of a private value that is
	// masked: masking "x" would garble every string.
	minPrivate = 6
	// maxString is the maximum length of a string in an event, in bytes.
	maxString = 400
)

// MaxErrors is the maximum number of invalid fields that an event lists.
const MaxErrors = 10

// Milliseconds converts a duration to milliseconds, the unit of durations in
// events.
func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// clean masks keys, card numbers and private values in a string and truncates
// it.
func clean(s string, keys *regexp.Regexp, private []string) string {
	for _, p := range private {
		if len(p) >= minPrivate {
			s = strings.ReplaceAll(s, p, masked)
		}
	}
	return truncate.Ellipsis(keys.ReplaceAllString(masking.Text(s), "$1"+masked), maxString)
}
