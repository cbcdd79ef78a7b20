package deliver

import (
	"fmt"
	"slices"
)

// Redeliver makes an additional attempt of a delivery now, whatever its state, with
// the same id and bytes. If it fails, the schedule continues.
func (s *Sender) Redeliver(account, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, err := s.find(account, id)
	switch {
	case err != nil:
		return err
	case d.State == NoEndpoint:
		return ErrNoTarget
	case d.State == Held:
		return s.release(account, []string{id})
	}
	s.enqueue(&job{d: d})
	return nil
}

// Hold holds the deliveries of an account that become due from now on, until they
// are released. "" means all accounts.
func (s *Sender) Hold(account string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, holding := s.held[account]; !holding {
		s.held[account] = nil
	}
}

// Release releases held deliveries in the order of the ids, each after the attempt
// of the previous one; the others stay held. Without ids, it releases all of them,
// in order per resource, and ends the hold.
func (s *Sender) Release(account string, ids ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(ids) > 0 {
		return s.release(account, ids)
	}
	waiting := s.held[account]
	delete(s.held, account)
	for _, d := range waiting {
		s.due(d)
	}
	return nil
}

func (s *Sender) release(account string, ids []string) error {
	var chosen []*delivery
	for _, id := range ids {
		d, err := s.find(account, id)
		if err == nil && (d.State != Held || slices.Contains(chosen, d)) {
			err = ErrNotHeld
		}
		if err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
		chosen = append(chosen, d)
	}
	for holder, waiting := range s.held {
		s.held[holder] = slices.DeleteFunc(waiting, func(d *delivery) bool { return slices.Contains(chosen, d) })
	}
	for _, d := range chosen {
		d.State = Pending
		s.enqueueReleased(account, &job{d: d, scheduled: true})
	}
	return nil
}

// Reset removes the deliveries and endpoints of an account, and ends its hold.
// Endpoints that serve all accounts stay. Its attempts are aborted, so that a receiver
// gets no webhook of the time before.
func (s *Sender) Reset(account string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.abort(account)
	gone := func(d *delivery) bool { return d.Account == account }
	s.log = slices.DeleteFunc(s.log, func(d *delivery) bool {
		if gone(d) {
			s.forget(d)
		}
		return gone(d)
	})
	s.swept, s.sweptBytes = 0, s.bytes
	s.endpoints = slices.DeleteFunc(s.endpoints, func(e *Endpoint) bool {
		return e.Account == account
	})
	for holder, waiting := range s.held {
		s.held[holder] = slices.DeleteFunc(waiting, gone)
	}
	delete(s.held, account)
	return s.persistEndpoints()
}
