package deliver

import (
	"slices"
	"strconv"
	"strings"

	"github.com/gateway-go/gateway/mockserver/internal/clock"
)

// Changed is what has changed: all endpoints of accounts, or, after an attempt, one
// delivery. What a commit causes is kept with it: see [Posting].
type Changed struct {
	Registry *Registry
	Delivery *SavedDelivery // without its body, which never changes
}

// Registry is the endpoints that calls have registered for an account.
type Registry struct {
	Registered uint64
	Endpoints  []SavedEndpoint
}

// lasting reports whether an endpoint is one that a restart should bring back:
// not a handler in memory, and not one that the start itself registers.
func (e *Endpoint) lasting() bool { return e.Handler == nil && e.Account != "" }

func (s *Sender) persistEndpoints() error {
	if s.cfg.Persist == nil {
		return nil
	}
	r := Registry{Registered: s.registered}
	for _, e := range s.endpoints {
		if e.lasting() {
			r.Endpoints = append(r.Endpoints, e.save())
		}
	}
	return s.cfg.Persist(Changed{Registry: &r})
}

// persistDelivery writes down what has become of a delivery. If that fails the
// next attempt writes it again, and a restart at worst repeats one.
func (s *Sender) persistDelivery(d *delivery) {
	if s.cfg.Persist == nil {
		return
	}
	saved, err := d.save()
	if err != nil {
		return
	}
	saved.Body = nil
	_ = s.cfg.Persist(Changed{Delivery: &saved})
}

// LoadEndpoints replaces the endpoints of all accounts.
func (s *Sender) LoadEndpoints(r Registry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.registered = max(s.registered, r.Registered)
	s.endpoints = slices.DeleteFunc(s.endpoints, (*Endpoint).lasting)
	for _, e := range r.Endpoints {
		s.endpoints = append(s.endpoints, e.endpoint())
	}
}

// LoadDelivery takes up a delivery, or what has become of it since: nothing
// if its account was emptied meanwhile. A hold ends with its process.
func (s *Sender) LoadDelivery(saved SavedDelivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.byID[saved.ID]
	if d == nil && saved.Body == nil {
		return
	}
	if saved.State == Held {
		saved.State = Pending
	}
	if !saved.Next.IsZero() {
		s.cfg.Clock.Add(clock.Timer{At: saved.Next, Account: saved.Account, Kind: TimerKind, ID: saved.ID})
	}
	if n, err := strconv.ParseUint(strings.TrimPrefix(saved.ID, "dlv_"), 10, 64); err == nil {
		s.made = max(s.made, n)
	}
	if d == nil {
		s.load(saved)
		return
	}
	saved.Body = nil // the message has it
	d.SavedDelivery = saved
	s.count(d)
}

// Resume begins to deliver, with what was due when it was written down.
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
