package faults

import "github.com/gateway-go/gateway/mockserver/internal/events"

// emit reports a change of the faults.
func (s *Set) emit(action string, w *waiting) {
	if s.Events.Listening() {
		s.publish(w.Account, events.FaultEvent{
			Action: action, ID: w.id, Fault: w.String(), On: w.On, Fired: w.fired, Times: w.Times,
		})
	}
}

// hit reports that a fault hit an operation, or a kind of event, of an account.
func (s *Set) hit(account, target string, w *waiting) {
	if s.Events.Listening() {
		s.publish(account, events.FaultEvent{
			Action: "hit", ID: w.id, Fault: w.String(), On: w.On, Target: target, Fired: w.fired, Times: w.Times,
		})
	}
}

// hitByHeader reports that a request hit the fault in its own header.
func (s *Set) hitByHeader(account, target string, f Fault) {
	s.publish(account, events.FaultEvent{Action: "hit", Fault: f.String(), Target: target})
}

func (s *Set) publish(account string, f events.FaultEvent) {
	s.Events.Publish(account, events.Event{Type: events.TypeFault, Fault: &f})
}
