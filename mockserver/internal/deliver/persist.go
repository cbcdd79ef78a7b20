package deliver

import (
	"slices"
	"strconv"
	"strings"

	"github.com/gateway-go/gateway/mockserver/internal/clock"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
)

// Changed is a change to save: the endpoints of all accounts or, after an attempt, one
// delivery. New deliveries are saved with their commit: see [Posting].
type Changed struct {
	Registry *Registry
	Delivery *SavedDelivery // without its body, which never changes
}

// Registry lists the endpoints that accounts have registered through the API.
type Registry struct {
	Registered uint64
	Endpoints  []SavedEndpoint
}

// persistent reports whether an endpoint is restored after a restart. In-memory
// endpoints and those that are registered at startup are not.
func (e *Endpoint) persistent() bool { return e.Handler == nil && e.Account != "" }

func (s *Sender) persistEndpoints() error {
	if s.cfg.Persist == nil {
		return nil
	}
	r := Registry{Registered: s.registered}
	for _, e := range s.endpoints {
		if e.persistent() {
			r.Endpoints = append(r.Endpoints, e.save())
		}
	}
	return s.cfg.Persist(Changed{Registry: &r})
}

// persistDelivery saves the state of a delivery. If that fails, the next attempt
// saves it; at worst, a restart repeats an attempt.
func (s *Sender) persistDelivery(d *delivery) {
	if s.cfg.Persist == nil {
		return
	}
	saved := d.copy()
	_ = s.cfg.Persist(Changed{Delivery: &saved})
}

// LoadEndpoints replaces the endpoints of all accounts.
func (s *Sender) LoadEndpoints(r Registry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.registered = max(s.registered, r.Registered)
	s.endpoints = slices.DeleteFunc(s.endpoints, (*Endpoint).persistent)
	for _, e := range r.Endpoints {
		s.endpoints = append(s.endpoints, e.endpoint())
	}
}

// LoadDelivery restores a delivery or updates it to a later state. It does nothing if
// the account has been reset since. A held delivery becomes pending, since a hold ends
// with its process.
func (s *Sender) LoadDelivery(saved SavedDelivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if saved.Body != nil {
		s.loadDelivery(saved, savedMessage(saved))
	} else if d := s.byID[saved.ID]; d != nil {
		s.loadDelivery(saved, d.message)
	}
}

// LoadPosting restores the deliveries that [Posting.Compact] returned for the events
// of an account.
func (s *Sender) LoadPosting(account string, events []engine.Event, list []SavedDelivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	messages := make([]message, len(events))
	for i := range events {
		messages[i].setEvent(&events[i], s.cfg.Dialect)
	}
	for _, saved := range list {
		for i := range messages {
			if e := &events[i]; e.ID == saved.EventID {
				saved.Account, saved.Kind, saved.Resource, saved.Created = account, e.Kind, resource(e), e.At
				m := &messages[i]
				if saved.Body != nil { // a fault has changed it
					m = savedMessage(saved)
				}
				s.loadDelivery(saved, m)
			}
		}
	}
}

func (s *Sender) loadDelivery(saved SavedDelivery, m *message) {
	if saved.State == Held {
		saved.State = Pending
	}
	if !saved.Next.IsZero() {
		s.cfg.Clock.Add(clock.Timer{At: saved.Next, Account: saved.Account, Kind: TimerKind, ID: saved.ID})
	}
	if n, err := strconv.ParseUint(strings.TrimPrefix(saved.ID, "dlv_"), 10, 64); err == nil {
		s.created = max(s.created, n)
	}
	d := s.byID[saved.ID]
	if d == nil {
		s.load(saved, m)
		return
	}
	saved.Body = nil // it is in the message
	d.SavedDelivery = saved
	s.count(d)
}

// Resume starts delivering, beginning with the deliveries that were due when
// they were saved.
func (s *Sender) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused = false
	for _, d := range s.log {
		if d.State == Pending && d.Next.IsZero() {
			s.enqueue(&job{d: d, scheduled: true})
		}
	}
}
