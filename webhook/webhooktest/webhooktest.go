// Package webhooktest helps test webhook receivers. It creates signed
// deliveries of every kind, creates invalid deliveries, and has two test
// suites: [Run] for an HTTP handler and [RunStore] for a [webhook.Store].
package webhooktest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/webhook"
)

// TB is the subset of [testing.TB] that [Run] and [RunStore] use.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
}

// check runs one check of a battery and reports its failures under its name. A
// check that can't continue stops.
func check(t TB, name string, do func(c *checker)) {
	t.Helper()
	c := &checker{t: t, name: name}
	defer func() {
		if p := recover(); p != nil && p != any(c) {
			panic(p)
		}
	}()
	do(c)
}

type checker struct {
	t    TB
	name string
}

// errorf reports a failure; the check continues.
func (c *checker) errorf(format string, args ...any) {
	c.t.Helper()
	c.t.Errorf("%s: %s", c.name, fmt.Sprintf(format, args...))
}

// must stops the check if err is not nil.
func (c *checker) must(err error) {
	if err != nil {
		c.t.Helper()
		c.errorf("%v", err)
		panic(c)
	}
}

// that reports a failure unless ok is true.
func (c *checker) that(ok bool, format string, args ...any) {
	if !ok {
		c.t.Helper()
		c.errorf(format, args...)
	}
}

// need is like that, but stops the check on failure.
func (c *checker) need(ok bool, format string, args ...any) {
	if !ok {
		c.t.Helper()
		c.errorf(format, args...)
		panic(c)
	}
}

// Secret returns a signing key for tests.
func Secret() gateway.Secret { return gateway.NewSecret("whsec_test_of_webhooktest") }

// Event is the content of a delivery. Only Kind is required.
type Event struct {
	Kind       webhook.Kind
	ID         string         // default: a new one
	ResourceID string         // default: a new one
	Status     string         // default: the state that the kind announces
	Data       map[string]any // additional members of the event's data, which override the defaults
}

// Every returns one event of each documented kind, each for a new resource.
func Every() []Event {
	var events []Event
	for _, k := range webhook.DocumentedKinds() {
		events = append(events, Event{Kind: k})
	}
	return events
}

// NewID returns a new unique id.
func NewID() string {
	id, err := uuid.NewRandom()
	if err != nil { // without entropy no test can run
		return time.Now().Format(time.RFC3339Nano)
	}
	return id.String()
}

// Body writes the event as the gateway does: amounts in cents, members in the
// spelling of the family, a transfer under "object".
func (e Event) Body() []byte {
	e = e.withDefaults()
	envelope := map[string]any{"id": e.ID, "api_version": "2.0.0"}
	var data map[string]any
	switch e.Kind.Family() {
	case webhook.FamilyTransfer:
		data = e.transfer()
		envelope["type"], envelope["data"] = e.Kind, map[string]any{"object": data}
	case webhook.FamilySubscription:
		data = e.subscription()
		envelope["event"], envelope["data"] = webhook.FamilySubscription, data
	default:
		data = e.transaction()
		envelope["event"], envelope["data"] = webhook.FamilyTransaction, data
	}
	maps.Copy(data, e.Data)
	body, err := json.Marshal(envelope)
	if err != nil { // Data contains something that can't be encoded as JSON
		return nil
	}
	return body
}

func (e Event) withDefaults() Event {
	if e.ID == "" {
		e.ID = NewID()
	}
	if e.ResourceID == "" {
		e.ResourceID = NewID()
	}
	if e.Status == "" {
		e.Status = cmp.Or(e.Kind.Status(), "pending")
	}
	return e
}

func (e Event) transaction() map[string]any {
	data := map[string]any{
		"id": e.ResourceID, "event_type": e.Kind, "status": e.Status, "correlation_id": "order-" + e.ResourceID,
		"method": gateway.Pix, "amount": 1990, "currency": gateway.BRL, "paid_at": nil,
		"customer": map[string]any{"name": "Ana Souza", "email": "ana@example.com", "phone": nil},
		"products": []map[string]any{{"title": "Mug", "unit_price": 1990, "quantity": 1}},
	}
	if gateway.TransactionStatus(e.Status).Settled() {
		data["paid_at"] = "2027-01-04T12:00:00.000Z"
	}
	return data
}

func (e Event) subscription() map[string]any {
	return map[string]any{
		"id": e.ResourceID, "event_type": e.Kind, "status": e.Status, "previous_status": nil, "amount": 4990,
		"currency": gateway.BRL, "interval": gateway.IntervalMonth, "interval_count": 1,
		"current_period_start": "2027-01-04T12:00:00.000Z", "current_period_end": "2027-02-04T12:00:00.000Z",
		"cancel_at_period_end": false, "cycle_count": 1, "customer_email": "ana@example.com",
		"failure_policy": gateway.RetryThenCancel, "trial_end": nil, "metadata": map[string]any{"plan": "gold"},
		"occurred_at": "2027-01-04T12:00:00.000Z",
		"latest_transaction": map[string]any{
			"id": e.ResourceID + "-1", "status": "paid", "amount": 4990, "paid_amount": "4990", "currency": gateway.BRL,
		},
	}
}

func (e Event) transfer() map[string]any {
	return map[string]any{
		"id": e.ResourceID, "status": e.Status, "type": "pix", "amount": 1200, "fee": 50, "net_amount": 1150, "transferred_at": nil,
	}
}

// Sign returns the headers of a signed delivery of body.
func Sign(key gateway.Secret, at time.Time, body []byte) http.Header {
	timestamp, signature := webhook.Sign(key, at, body)
	return http.Header{
		"Content-Type":                 {"application/json"},
		webhook.DefaultTimestampHeader: {timestamp},
		webhook.DefaultSignatureHeader: {signature},
	}
}

// Unsigned returns the request of an unsigned delivery, as to a notify_url.
func Unsigned(body []byte) *http.Request {
	return deliver(http.Header{"Content-Type": {"application/json"}}, body)
}

// Signed returns the request of a delivery that is signed now.
func Signed(key gateway.Secret, body []byte) *http.Request { return SignedAt(key, time.Now(), body) }

// SignedAt returns the request of a delivery that was signed at another time.
func SignedAt(key gateway.Secret, at time.Time, body []byte) *http.Request {
	return deliver(Sign(key, at, body), body)
}

// SignedByAll returns the request of a delivery that is signed now with each
// of the keys, as during a secret rotation.
func SignedByAll(body []byte, keys ...gateway.Secret) *http.Request {
	at := time.Now()
	header := http.Header{"Content-Type": {"application/json"}}
	for _, key := range keys {
		timestamp, signature := webhook.Sign(key, at, body)
		header.Set(webhook.DefaultTimestampHeader, timestamp)
		header.Add(webhook.DefaultSignatureHeader, signature)
	}
	return deliver(header, body)
}

// Stale returns a validly signed request that is one second too old, like a
// replay.
func Stale(key gateway.Secret, body []byte) *http.Request {
	return SignedAt(key, time.Now().Add(-webhook.Tolerance-time.Second), body)
}

// Tampered returns a request whose body is not the one that was signed.
func Tampered(key gateway.Secret, signed, sent []byte) *http.Request {
	return deliver(Sign(key, time.Now(), signed), sent)
}

// Again returns a copy of the delivery, as the gateway sends it when it
// retries. Serving a request consumes its body; Again restores it.
func Again(r *http.Request) *http.Request {
	again := r.Clone(r.Context())
	if r.GetBody != nil {
		if body, err := r.GetBody(); err == nil {
			again.Body = body
		}
	}
	return again
}

func deliver(header http.Header, body []byte) *http.Request {
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "/webhooks/gateway", bytes.NewReader(body))
	if err != nil { // fails only for an invalid method or path
		return &http.Request{Method: http.MethodPost, Header: header, Body: io.NopCloser(bytes.NewReader(body))}
	}
	r.Header = header
	r.RemoteAddr = "192.0.2.1:4010"
	return r
}
