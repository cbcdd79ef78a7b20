package admin

import (
	"context"
	"net/http"
	"slices"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver/internal/deliver"
	"github.com/gateway-go/gateway/mockserver/internal/respond"
	"github.com/gateway-go/gateway/webhook"
)

func (p *Plane) webhookRoutes() []Shape {
	filters := []string{"kind", "status", "resource_id"}
	return []Shape{
		withBody(Shape{Method: http.MethodPost, Path: "endpoints", Out: EndpointView{}}, p.addEndpoint),
		{Method: http.MethodGet, Path: "endpoints", Out: []EndpointView{}, do: p.endpoints},
		{Method: http.MethodDelete, Path: "endpoints/{id}", Out: EndpointView{}, do: p.removeEndpoint},
		withBody(Shape{Method: http.MethodPost, Path: "endpoints/{id}/rotate", Out: EndpointView{}}, p.rotate),
		{Method: http.MethodPost, Path: "endpoints/{id}/pause", Out: EndpointView{}, do: p.pause(true)},
		{Method: http.MethodPost, Path: "endpoints/{id}/resume", Out: EndpointView{}, do: p.pause(false)},
		{Method: http.MethodGet, Path: "deliveries", Out: []DeliveryView{}, Query: filters, do: p.deliveries},
		{Method: http.MethodGet, Path: "deliveries/{id}", Out: DeliveryView{}, do: p.delivery},
		{Method: http.MethodPost, Path: "deliveries/{id}/redeliver", Out: DeliveryView{}, do: p.redeliver},
		withBody(Shape{Method: http.MethodPost, Path: "deliveries/diagnose", Out: webhook.Diagnosis{}}, p.diagnose),
		{Method: http.MethodPost, Path: "deliveries/wait", Out: []DeliveryView{}, Query: append(filters, "timeout"), do: p.wait},
		withBody(Shape{Method: http.MethodPost, Path: "deliveries/sample", Out: []DeliveryView{}}, p.sample),
		{Method: http.MethodPost, Path: "deliveries/hold", Out: holdView{}, do: p.hold},
		withBody(Shape{Method: http.MethodPost, Path: "deliveries/release", Out: holdView{}}, p.release),
	}
}

// EndpointView is a receiver of webhooks. It never shows the secret.
type EndpointView struct {
	ID     string   `json:"id"`
	URL    string   `json:"url"`
	Signed bool     `json:"signed"`
	Events []string `json:"events"`
	Paused bool     `json:"paused"` // it gets no event

	// The endpoint's own names for the signature's headers; "" is the server's.
	TimestampHeader string `json:"timestamp_header,omitzero"`
	SignatureHeader string `json:"signature_header,omitzero"`
}

func viewEndpoint(e deliver.Endpoint) EndpointView {
	v := EndpointView{
		ID: e.ID, URL: e.URL, Signed: !e.Secret.IsZero(), Events: e.Events, Paused: e.Paused,
		TimestampHeader: e.Headers.Timestamp, SignatureHeader: e.Headers.Signature,
	}
	if v.Events == nil {
		v.Events = []string{}
	}
	return v
}

// EndpointBody is a receiver to register.
type EndpointBody struct {
	URL    string   `json:"url"`
	Secret string   `json:"secret,omitzero"` // signs the deliveries, of at least 8 characters; unsigned if omitted
	Events []string `json:"events,omitzero"` // kinds or families, such as "transaction.paid" or "payout.*"; every kind if omitted

	TimestampHeader string `json:"timestamp_header,omitzero"`
	SignatureHeader string `json:"signature_header,omitzero"`
}

func (p *Plane) addEndpoint(c *call, in EndpointBody) (any, error) {
	e, err := p.core.Sender.AddEndpoint(deliver.Endpoint{
		Account: c.key, URL: in.URL, Secret: gateway.NewSecret(in.Secret), Events: in.Events,
		Headers: webhook.HeaderNames{Timestamp: in.TimestampHeader, Signature: in.SignatureHeader},
	})
	if err != nil {
		return nil, rejected(err)
	}
	return viewEndpoint(e), nil
}

func (p *Plane) endpoints(c *call) (any, error) {
	list := []EndpointView{}
	for _, e := range p.core.Sender.Endpoints("") {
		if e.Account == c.key || e.Account == "" {
			list = append(list, viewEndpoint(e))
		}
	}
	return list, nil
}

func (p *Plane) removeEndpoint(c *call) (any, error) {
	if err := p.core.Sender.RemoveEndpoint(c.key, c.args[0]); err != nil {
		return nil, err
	}
	return EndpointView{ID: c.args[0], Events: []string{}}, nil
}

type secretBody struct {
	Secret string `json:"secret"` // signs every attempt from now on
}

func (p *Plane) rotate(c *call, in secretBody) (any, error) {
	if err := p.core.Sender.Rotate(c.key, c.args[0], gateway.NewSecret(in.Secret)); err != nil {
		return nil, err
	}
	return p.endpoint(c)
}

func (p *Plane) pause(paused bool) func(*call) (any, error) {
	return func(c *call) (any, error) {
		if err := p.core.Sender.PauseEndpoint(c.key, c.args[0], paused); err != nil {
			return nil, err
		}
		return p.endpoint(c)
	}
}

func (p *Plane) endpoint(c *call) (any, error) {
	for _, e := range p.core.Sender.Endpoints(c.key) {
		if e.ID == c.args[0] {
			return viewEndpoint(e), nil
		}
	}
	return nil, deliver.ErrUnknownEndpoint
}

// DeliveryView is an event for one endpoint, with every attempt to deliver it.
type DeliveryView struct {
	ID             string        `json:"id"`
	EventID        string        `json:"event_id"`
	Kind           string        `json:"kind"`
	ResourceID     string        `json:"resource_id"`
	Endpoint       string        `json:"endpoint"` // an endpoint's id, notify_url, webhookUrl, pixWebhookUrl or ""
	URL            string        `json:"url"`
	Attempt        int           `json:"attempt"`         // how many were made
	Status         string        `json:"status"`          // pending, delivered, failed, held, dropped or no_endpoint
	ResponseStatus int           `json:"response_status"` // of the latest attempt; 0 without a response
	CreatedAt      respond.Stamp `json:"created_at"`
	NextAttemptAt  respond.Stamp `json:"next_attempt_at"`
	Body           string        `json:"body"` // as it was signed
	Attempts       []AttemptView `json:"attempts"`
}

// AttemptView is one attempt of a delivery.
type AttemptView struct {
	Attempt        int           `json:"attempt"`
	At             respond.Stamp `json:"at"`
	ResponseStatus int           `json:"response_status"`
	Response       string        `json:"response"`
	Error          string        `json:"error"`
	DurationMS     float64       `json:"duration_ms"`
	Signed         bool          `json:"signed"`
	Fault          string        `json:"fault"`
}

func viewDelivery(d deliver.Delivery) DeliveryView {
	v := DeliveryView{
		ID:            d.ID,
		EventID:       d.EventID,
		Kind:          d.Kind,
		ResourceID:    d.Resource,
		Endpoint:      d.Endpoint,
		URL:           d.URL,
		Attempt:       len(d.Attempts),
		Status:        string(d.State),
		CreatedAt:     respond.Stamp(d.Created),
		NextAttemptAt: respond.Stamp(d.Next),
		Body:          string(d.Body),
		Attempts:      []AttemptView{},
	}
	for _, a := range d.Attempts {
		v.ResponseStatus = a.Status
		v.Attempts = append(v.Attempts, AttemptView{
			Attempt:        a.Number,
			At:             respond.Stamp(a.At),
			ResponseStatus: a.Status,
			Response:       a.Response,
			Error:          a.Error,
			DurationMS:     float64(a.Duration.Microseconds()) / 1000,
			Signed:         a.Signed,
			Fault:          a.Fault,
		})
	}
	return v
}

// deliveries lists the account's deliveries, the oldest first; kind, status and
// resource_id filter them.
func (p *Plane) deliveries(c *call) (any, error) {
	matches, err := deliveryFilter(c)
	if err != nil {
		return nil, err
	}
	return p.deliveriesThat(c, matches), nil
}

func (p *Plane) deliveriesThat(c *call, match func(deliver.Delivery) bool) []DeliveryView {
	list := []DeliveryView{}
	for _, d := range p.core.Sender.Deliveries(c.key) {
		if match(d) {
			list = append(list, viewDelivery(d))
		}
	}
	return list
}

// deliveryFilter reads the filters of a query. It rejects a kind or status that
// does not exist: a test for the absence of a webhook would pass with a typo.
func deliveryFilter(c *call) (func(deliver.Delivery) bool, error) {
	q := c.r.URL.Query()
	kind, status, resource := webhook.Kind(q.Get("kind")), deliver.State(q.Get("status")), q.Get("resource_id")
	switch {
	case kind != "" && kind.Status() == "":
		return nil, invalid("kind: there is no event kind %q; openapi.json lists them as webhooks", kind)
	case status != "" && !slices.Contains(deliver.States(), status):
		return nil, invalid("status: there is no delivery status %q; use one of %v", status, deliver.States())
	}
	return func(d deliver.Delivery) bool {
		return (kind == "" || string(kind) == d.Kind) && (status == "" || status == d.State) && (resource == "" || resource == d.Resource)
	}, nil
}

func (p *Plane) delivery(c *call) (any, error) {
	d, err := p.core.Sender.Delivery(c.key, c.args[0])
	if err != nil {
		return nil, err
	}
	return viewDelivery(d), nil
}

// redeliver returns when the attempt has been made.
func (p *Plane) redeliver(c *call) (any, error) {
	if err := p.core.Sender.Redeliver(c.key, c.args[0]); err != nil {
		return nil, err
	}
	err := c.settle(patience, func(ctx context.Context) error { return p.core.Sender.WaitFor(ctx, c.args[0]) })
	if err != nil {
		return nil, err
	}
	return p.delivery(c)
}

// wait returns the account's deliveries when the attempts that were due have been made.
func (p *Plane) wait(c *call) (any, error) {
	matches, err := deliveryFilter(c)
	if err != nil {
		return nil, err
	}
	limit, err := c.timeout()
	if err != nil {
		return nil, err
	}
	err = c.settle(limit, func(ctx context.Context) error { return p.core.Sender.Wait(ctx, c.key) })
	if err != nil {
		return nil, err
	}
	return p.deliveriesThat(c, matches), nil
}

// SampleBody is a sample event to send.
type SampleBody struct {
	Kind string `json:"kind"` // of the event, such as "transaction.paid"
}

// sample returns the deliveries of the sample when they have been made.
func (p *Plane) sample(c *call, in SampleBody) (any, error) {
	id, err := p.core.Sender.SendSample(c.key, webhook.Kind(in.Kind))
	if err != nil {
		return nil, rejected(err)
	}
	if err := c.settle(patience, func(ctx context.Context) error { return p.core.Sender.WaitForEvent(ctx, id) }); err != nil {
		return nil, err
	}
	return p.deliveriesThat(c, func(d deliver.Delivery) bool { return d.EventID == id }), nil
}

type holdView struct {
	Holding bool     `json:"holding"`
	Held    []string `json:"held"` // the ids of the held deliveries
}

func (p *Plane) hold(c *call) (any, error) {
	p.core.Sender.Hold(c.key)
	return p.holding(c, true), nil
}

func (p *Plane) holding(c *call, holding bool) holdView {
	v := holdView{Holding: holding, Held: []string{}}
	for _, d := range p.core.Sender.Deliveries(c.key) {
		if d.State == deliver.Held {
			v.Held = append(v.Held, d.ID)
		}
	}
	return v
}

type releaseBody struct {
	IDs []string `json:"ids,omitzero"` // of deliveries, in the order in which they are sent; without it all are sent and the hold ends
}

// release sends the given deliveries in their order, or all of them, and returns
// after an attempt of each.
func (p *Plane) release(c *call, in releaseBody) (any, error) {
	released := in.IDs
	if len(released) == 0 {
		released = p.holding(c, true).Held
	}
	if err := p.core.Sender.Release(c.key, in.IDs...); err != nil {
		return nil, err
	}
	err := c.settle(patience, func(ctx context.Context) error { return p.core.Sender.WaitFor(ctx, released...) })
	if err != nil {
		return nil, err
	}
	return p.holding(c, len(in.IDs) > 0), nil
}
