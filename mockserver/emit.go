package mockserver

import (
	"net/http"
	"time"

	"github.com/gateway-go/gateway/mockserver/internal/clock"
	"github.com/gateway-go/gateway/mockserver/internal/events"
	"github.com/gateway-go/gateway/mockserver/internal/respond"
)

// The events of the server itself.

func (s *Server) emitClock(from, to time.Time) {
	s.events.Publish("", events.Event{Type: events.TypeClock, Clock: &events.ClockEvent{From: respond.Stamp(from), To: respond.Stamp(to)}})
}

func (s *Server) emitTimer(t clock.Timer, failed error) {
	timer := events.TimerEvent{Kind: t.Kind, ID: t.ID, Due: respond.Stamp(t.At)}
	if failed != nil {
		timer.Error = failed.Error()
	}
	s.events.Publish(t.Account, events.Event{Type: events.TypeTimer, Timer: &timer})
}

// emitForeign reports a request with a host name that is not allowed, which
// reaches neither the gateway nor its control plane.
func (s *Server) emitForeign(r *http.Request) {
	s.events.Publish("", events.Event{Type: events.TypeRequest, Request: &events.RequestEvent{
		Method: r.Method, Path: r.URL.EscapedPath(), Status: http.StatusMisdirectedRequest, Code: "FOREIGN_HOST",
		Detail: "The host name " + r.Host + " is not allowed.",
	}})
}

// emitUnreachable reports a request that arrived while the gateway is down.
func (s *Server) emitUnreachable(r *http.Request) {
	s.events.Publish("", events.Event{Type: events.TypeRequest, Request: &events.RequestEvent{
		Method: r.Method, Path: r.URL.EscapedPath(), Fault: "down", Broken: true,
	}})
}

func (s *Server) setDown(down bool) {
	action := "up"
	if down {
		action = "down"
	}
	if s.down.Swap(down) != down {
		s.events.Publish("", events.Event{Type: events.TypeFault, Fault: &events.FaultEvent{Action: action}})
	}
}
