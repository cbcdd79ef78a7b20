package mockserver

import (
	"net/http"
	"sync"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/console"
	"github.com/gateway-go/gateway/mockserver/internal/ids"
)

// console returns the pages for browsers, or nil if they are switched off.
// They act through the control plane and through gateway, the interface with
// its journal and faults.
func (s *Server) console(plane, gateway http.Handler) http.Handler {
	if s.settings.noConsole {
		return nil
	}
	return console.New(console.Config{
		Store:    s.store,
		Clock:    s.clock,
		Sender:   s.sender,
		Faults:   s.faults,
		Journal:  s.journal,
		Plane:    plane,
		Gateway:  gateway,
		Document: s.reader(spec.DocumentDialect),
		LiveAPI:  s.reader(spec.LiveDialect),
		Own:      s.own(),
		Default:  s.Key(),
		Events:   s.events,
		Sandbox:  s.settings.environment == Sandbox,
		Dialect:  s.settings.dialect,
	})
}

// consolePath returns a function that returns the path of an account's pages, or nil if
// they are switched off.
func (s *Server) consolePath() func(key string) string {
	if s.settings.noConsole {
		return nil
	}
	return func(key string) string { return console.Path(s.events, s.Key(), key) }
}

// reader returns the interface in a dialect for internal reads: it generates
// its own request ids, so that viewing a page changes nothing. It is created on
// first use.
func (s *Server) reader(dialect spec.Dialect) http.Handler {
	api := sync.OnceValue(func() http.Handler { return s.api(dialect, ids.New()) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { api().ServeHTTP(w, r) })
}

// own is the reader for the server's dialect, if that is a mixture of the two.
func (s *Server) own() http.Handler {
	if d := s.settings.dialect; d != spec.DocumentDialect && d != spec.LiveDialect {
		return s.reader(d)
	}
	return nil
}
