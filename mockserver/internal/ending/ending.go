// Package ending reports the shutdown of an HTTP server to requests that could last
// forever, such as streams. A shutdown would otherwise wait for them.
package ending

import (
	"context"
	"net/http"
	"sync"
)

// Servers has a context for each server whose requests asked for one. The zero value is
// ready.
type Servers struct {
	mu    sync.Mutex
	known map[*http.Server]context.Context
}

// Of returns a context that is canceled when the server of a request shuts down. A request
// without a server, such as one in memory, gets a context that is never canceled.
func (s *Servers) Of(r *http.Request) context.Context {
	srv, ok := r.Context().Value(http.ServerContextKey).(*http.Server)
	if !ok {
		return context.Background()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, known := s.known[srv]
	if !known {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(context.Background())
		srv.RegisterOnShutdown(cancel)
		if s.known == nil {
			s.known = map[*http.Server]context.Context{}
		}
		s.known[srv] = ctx //nolint:fatcontext // one for each server
	}
	return ctx
}
