package mockserver

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver/internal/deliver"
	"github.com/gateway-go/gateway/mockserver/internal/faults"
	"github.com/gateway-go/gateway/webhook"
)

// Webhooks registers receivers, lists deliveries, and injects faults into
// them.
//
// The first attempt of a delivery is made at once, in the background; [Server.Wait]
// waits for it. Later attempts follow on the virtual clock, 5 s, 5 min, 30
// min, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h after the first, with the same id and
// bytes. A receiver gets the events of one resource one at a time and in order,
// except that later events do not wait for a retry.
type Webhooks struct {
	sender  *deliver.Sender
	faults  *faults.Set
	secret  gateway.Secret
	account gateway.Secret // its key; empty for every account
}

// Endpoint is a registered receiver of webhooks.
type Endpoint struct {
	ID      string         // set by AddEndpoint
	URL     string         // http or https; "" with a Handler
	Handler http.Handler   // called in memory, without a socket
	Path    string         // path of the requests to a Handler; "" means "/"
	Secret  gateway.Secret // signs the deliveries; if empty, they are unsigned; see [WithWebhookSecret]
	Events  []string       // kinds ("transaction.paid") or families ("transaction.*"); none means all
	Paused  bool           // it gets no events; see PauseEndpoint

	// Headers are the names of the signature headers; an empty name means the
	// server's, see [WithSignatureHeaders].
	Headers webhook.HeaderNames
}

// Send delivers every event to a handler in memory, signed with
// [Server.Secret]. It panics if h is nil or the gateway has 1,000 endpoints.
func (w Webhooks) Send(h http.Handler) {
	if h == nil {
		panic("mockserver: Webhooks.Send: the handler is nil")
	}
	if _, err := w.AddEndpoint(Endpoint{Handler: h, Secret: w.secret}); err != nil {
		panic(err)
	}
}

// SendTo is [Webhooks.Send] to a handler that expects its requests at a path:
// "/webhooks/gateway". Each call adds a receiver, so that several handlers, or
// several paths of one handler, get every event. It fails if the path is
// malformed or does not begin with a slash, if h is nil, or if the gateway has
// 1,000 endpoints.
func (w Webhooks) SendTo(path string, h http.Handler) error {
	if path == "" || h == nil {
		return errors.New("mockserver: Webhooks.SendTo needs a path, such as /webhooks, and a handler")
	}
	_, err := w.AddEndpoint(Endpoint{Handler: h, Path: path, Secret: w.secret})
	return err
}

// AddEndpoint registers a receiver and returns it with its id. It fails if the
// endpoint does not have exactly one of a valid URL and a Handler, if its Path,
// Secret or Headers are invalid, if one of its Events is "", if its Secret, Events and
// Headers together exceed 16 KiB, or if the gateway has 1,000 endpoints.
func (w Webhooks) AddEndpoint(e Endpoint) (Endpoint, error) {
	added, err := w.sender.AddEndpoint(deliver.Endpoint{
		Account: w.account.Reveal(), URL: e.URL, Handler: e.Handler, Path: e.Path, Secret: e.Secret, Events: e.Events,
		Headers: e.Headers, Paused: e.Paused,
	})
	if err != nil {
		return Endpoint{}, fmt.Errorf("mockserver: endpoint: %w", err)
	}
	e.ID = added.ID
	return e, nil
}

// RemoveEndpoint removes a receiver. Deliveries to it that are still in
// progress fail.
func (w Webhooks) RemoveEndpoint(id string) error {
	return w.sender.RemoveEndpoint(w.account.Reveal(), id)
}

// RotateSecret gives a receiver a new secret, which signs every attempt from
// now on. It fails if the secret is invalid.
func (w Webhooks) RotateSecret(id string, secret gateway.Secret) error {
	return w.sender.Rotate(w.account.Reveal(), id, secret)
}

// PauseEndpoint stops sending events to a receiver. Events during the pause
// are not sent later; earlier deliveries continue.
func (w Webhooks) PauseEndpoint(id string) error {
	return w.sender.PauseEndpoint(w.account.Reveal(), id, true)
}

// ResumeEndpoint reverts [Webhooks.PauseEndpoint].
func (w Webhooks) ResumeEndpoint(id string) error {
	return w.sender.PauseEndpoint(w.account.Reveal(), id, false)
}

// SendSample sends an event of a kind ("transaction.paid") about a resource that
// does not exist, to the receivers of such events, and returns its id. It
// fails if the gateway does not send the kind.
func (w Webhooks) SendSample(kind webhook.Kind) (eventID string, err error) {
	if eventID, err = w.sender.SendSample(w.account.Reveal(), kind); err != nil {
		err = fmt.Errorf("mockserver: sample: %w", err)
	}
	return eventID, err
}

// Endpoints lists the registered receivers in the order in which they were
// added.
func (w Webhooks) Endpoints() []Endpoint {
	var list []Endpoint
	for _, e := range w.sender.Endpoints(w.account.Reveal()) {
		list = append(list, Endpoint{
			ID: e.ID, URL: e.URL, Handler: e.Handler, Path: e.Path, Secret: e.Secret, Events: e.Events,
			Headers: e.Headers, Paused: e.Paused,
		})
	}
	return list
}

// ServeHost lets a handler respond, in memory, to everything that is delivered
// to a host ("shop.test", "shop.test:8443"), such as the notify_url of a
// transaction. "*" stands for every host without a handler of its own: nothing is sent
// over the network then. A nil handler removes it.
func (w Webhooks) ServeHost(host string, h http.Handler) { w.sender.Serve(host, h) }

// The states of a [Delivery].
const (
	DeliveryPending    = string(deliver.Pending)    // an attempt is running or planned
	DeliveryDelivered  = string(deliver.Delivered)  // an attempt got a 2xx response
	DeliveryFailed     = string(deliver.Failed)     // every attempt failed, and no other is planned
	DeliveryHeld       = string(deliver.Held)       // held until [Webhooks.Release]
	DeliveryDropped    = string(deliver.Dropped)    // dropped by a fault
	DeliveryNoEndpoint = string(deliver.NoEndpoint) // no endpoint matches the event
)

// Delivery is the delivery of one event to one receiver.
type Delivery struct {
	ID         string
	EventID    string // the same for every receiver of the event
	Kind       string // "transaction.paid"
	ResourceID string
	Endpoint   string // the id of an endpoint, or notify_url, webhookUrl, pixWebhookUrl; "" if no endpoint received it
	URL        string // "" in memory
	State      string
	Body       []byte
	CreatedAt  time.Time
	NextAt     time.Time // of the next attempt; zero means none
	Attempts   []DeliveryAttempt
}

// DeliveryAttempt is one request to a receiver.
type DeliveryAttempt struct {
	Number   int       // from 1
	At       time.Time // on the virtual clock
	Status   int       // of the response; 0 without one
	Response string    // the beginning of the response body
	Error    string    // why it failed, or ""
	Duration time.Duration
	Signed   bool
	Fault    string // the injected fault; "" for none
}

// Deliveries lists the deliveries, the oldest first: all unfinished ones, and
// the latest 10,000 finished ones that fit into a quarter of
// [WithMemoryLimit].
func (w Webhooks) Deliveries() []Delivery {
	var list []Delivery
	for _, d := range w.sender.Deliveries(w.account.Reveal()) {
		list = append(list, deliveryOf(d))
	}
	return list
}

func deliveryOf(d deliver.Delivery) Delivery {
	v := Delivery{
		ID:         d.ID,
		EventID:    d.EventID,
		Kind:       d.Kind,
		ResourceID: d.Resource,
		Endpoint:   d.Endpoint,
		URL:        d.URL,
		State:      string(d.State),
		Body:       d.Body,
		CreatedAt:  d.Created,
		NextAt:     d.Next,
	}
	for _, a := range d.Attempts {
		v.Attempts = append(v.Attempts, DeliveryAttempt{
			Number: a.Number, At: a.At, Status: a.Status, Response: a.Response, Error: a.Error, Duration: a.Duration,
			Signed: a.Signed, Fault: a.Fault,
		})
	}
	return v
}

// Redeliver makes one more attempt of a delivery now, in any state except
// [DeliveryNoEndpoint].
func (w Webhooks) Redeliver(id string) error { return w.sender.Redeliver(w.account.Reveal(), id) }

// Hold holds all deliveries from now on.
func (w Webhooks) Hold() { w.sender.Hold(w.account.Reveal()) }

// Release delivers held deliveries in the order of the ids, each when the
// previous one has finished; the others stay held. Without ids it delivers all,
// those of one resource in order, and ends the hold.
func (w Webhooks) Release(ids ...string) error { return w.sender.Release(w.account.Reveal(), ids...) }

// Drop drops the next delivery of a kind; "" means any kind, and
// "transaction.*" a family. [DropWebhook] has more options.
func (w Webhooks) Drop(kind string) error { return w.disturb(DropWebhook(), kind) }

// Duplicate sends the next delivery of a kind twice; see [Webhooks.Drop] for
// kind.
func (w Webhooks) Duplicate(kind string) error { return w.disturb(DuplicateWebhook(), kind) }

// Delay delays the next delivery of a kind on the virtual clock, so that others
// overtake it; see [Webhooks.Drop] for kind.
func (w Webhooks) Delay(kind string, d time.Duration) error { return w.disturb(DelayWebhook(d), kind) }

// CorruptSignature invalidates the signature of the first attempt of the next
// delivery of a kind; see [Webhooks.Drop] for kind.
func (w Webhooks) CorruptSignature(kind string) error { return w.disturb(CorruptSignature(), kind) }

// StaleTimestamp signs the first attempt of the next delivery of a kind with a
// time outside the receiver's tolerance; see [Webhooks.Drop] for kind.
func (w Webhooks) StaleTimestamp(kind string) error { return w.disturb(StaleTimestamp(), kind) }

// ClearFaults removes the faults of webhooks, whether they were added here or
// with [Faults.Add]. Those of requests stay: [Faults.Clear] removes them.
func (w Webhooks) ClearFaults() { w.faults.Clear(w.account.Reveal(), true) }

func (w Webhooks) disturb(f Fault, kind string) error {
	return Faults{set: w.faults, account: w.account}.Add(f.On(kind).Times(1))
}

// Secret returns the signing secret of [Webhooks.Send].
func (s *Server) Secret() gateway.Secret { return s.core.Secret }
