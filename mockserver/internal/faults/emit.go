package faults

import "github.com/gateway-go/gateway/mockserver/internal/events"

// emit reports that a fault was added or removed.
func (s *Set) emit(action string, w *entry) {
	if s.Events.Listening() {
		s.publish(w.Account, events.FaultEvent{
			Action: action, ID: w.id, Fault: w.String(), On: w.On, Fired: w.fired, Times: w.Times,
		})
	}
}

// hit reports that a fault hit an operation, or a kind of event, of an account.
func (s *Set) hit(account, target string, w *entry) {
	if s.Events.Listening() {
		s.publish(account, events.FaultEvent{
			Action: "hit", ID: w.id, Fault: w.String(), On: w.On, Target: target, Fired: w.fired, Times: w.Times,
		})
	}
}

// hitByHeader reports that the fault in a request's header hit the request.
func (s *Set) hitByHeader(account, target string, f Fault) {
	s.publish(account, events.FaultEvent{Action: "hit", Fault: f.String(), Target: target})
}

func (s *Set) publish(account string, f events.FaultEvent) {
	s.Events.Publish(account, events.Event{Type: events.TypeFault, Fault: &f})
}
