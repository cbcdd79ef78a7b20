package deliver

import (
	"net/http"
	"slices"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver/internal/faults"
	"github.com/gateway-go/gateway/webhook"
)

// Saved is the state of a Sender in a snapshot. It includes in-memory endpoints; Load
// finds their handlers by id.
type Saved struct {
	Made, Registered uint64

	Endpoints  []SavedEndpoint
	Deliveries []SavedDelivery
	Held       map[string][]string // ids of held deliveries, by the account whose hold it is
}

// SavedEndpoint is an Endpoint with its secret in plain text.
type SavedEndpoint struct {
	ID      string
	Account string
	URL     string
	Path    string
	Secret  string
	Headers webhook.HeaderNames
	Events  []string
	Paused  bool
}

// SavedDelivery is a delivery with its body.
type SavedDelivery struct {
	Delivery

	Registered bool        // Endpoint is the id of a registered endpoint
	First      time.Time   // the start of the schedule
	Tries      int         // scheduled attempts so far
	Fault      faults.Kind // the injected fault; "" for none
}

// Save returns the state of the sender. Call it after [Sender.Wait]: a sender that
// loads the state repeats the attempts that were running.
func (s *Sender) Save() (Saved, error) { return s.Capture(func() {})() }

// Capture copies the state of the sender and calls then before the state can change.
// The function that it returns completes the copy for [Sender.Save] without holding
// the lock, since rendering the bodies of many deliveries can take long.
func (s *Sender) Capture(then func()) (save func() (Saved, error)) {
	saved, messages := s.copy(then)
	return func() (Saved, error) {
		for i, m := range messages {
			var err error
			if saved.Deliveries[i].Body, err = m.bytes(); err != nil {
				return Saved{}, err
			}
		}
		return saved, nil
	}
}

func (s *Sender) copy(then func()) (saved Saved, messages []*message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	saved = Saved{Made: s.created, Registered: s.registered, Held: map[string][]string{}}
	for _, e := range s.endpoints {
		saved.Endpoints = append(saved.Endpoints, e.save())
	}
	for holder, waiting := range s.held {
		ids := []string{}
		for _, d := range waiting {
			ids = append(ids, d.ID)
		}
		saved.Held[holder] = ids
	}
	for _, d := range s.log {
		saved.Deliveries = append(saved.Deliveries, d.copy())
		messages = append(messages, d.message)
	}
	then()
	return saved, messages
}

func (e *Endpoint) save() SavedEndpoint {
	return SavedEndpoint{e.ID, e.Account, e.URL, e.Path, e.Secret.Reveal(), e.Headers, e.Events, e.Paused}
}

// copy returns the delivery without its body.
func (d *delivery) copy() SavedDelivery {
	saved := d.SavedDelivery
	saved.Attempts = slices.Clone(d.Attempts)
	return saved
}

// Load replaces the state of the sender. Attempts of the state before are aborted. The
// timers are restored with the clock.
func (s *Sender) Load(saved Saved) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.abort("")
	handlers := map[string]http.Handler{}
	for _, e := range s.endpoints {
		handlers[e.ID] = e.Handler
	}
	s.created, s.registered = saved.Made, saved.Registered
	s.endpoints = nil
	for _, e := range saved.Endpoints {
		loaded := e.endpoint()
		loaded.Handler = handlers[e.ID]
		s.endpoints = append(s.endpoints, loaded)
	}
	for _, d := range s.log {
		s.forget(d)
	}
	s.log, s.swept, s.sweptBytes, s.held = nil, 0, 0, map[string][]*delivery{}
	for _, d := range saved.Deliveries {
		s.load(d, savedMessage(d))
	}
	for holder, ids := range saved.Held {
		s.held[holder] = nil
		for _, id := range ids {
			if d := s.byID[id]; d != nil {
				s.held[holder] = append(s.held[holder], d)
			}
		}
	}
}

func (e SavedEndpoint) endpoint() *Endpoint {
	return &Endpoint{
		ID: e.ID, Account: e.Account, URL: e.URL, Path: e.Path, Secret: gateway.NewSecret(e.Secret),
		Headers: e.Headers, Events: e.Events, Paused: e.Paused,
	}
}

// savedMessage returns the message of a delivery with its body.
func savedMessage(saved SavedDelivery) *message {
	m := &message{body: saved.Body}
	m.size.Store(int64(len(m.body)))
	return m
}

// load restores one delivery. If it was due when it was saved, it is due now.
func (s *Sender) load(saved SavedDelivery, m *message) {
	d := &delivery{SavedDelivery: saved, message: m}
	d.Body, d.Attempts = nil, slices.Clone(saved.Attempts)
	s.remember(d)
	if d.State == Pending && d.Next.IsZero() && !s.paused {
		s.enqueue(&job{d: d, scheduled: true})
	}
}
