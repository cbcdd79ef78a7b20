package faults

import (
	"net/http"
	"sync"
	"time"

	"github.com/gateway-go/gateway/mockserver/internal/ending"
)

// lot has the requests that wait in a fault. They end when the state that they were sent
// to does: executed later, they would change the state of the next test. They also end
// when their server shuts down, which would otherwise wait for them.
type lot struct {
	mu     sync.Mutex
	closed bool
	parked map[*parked]struct{}

	servers ending.Servers
}

// parked is a request that waits in a fault.
type parked struct {
	account string        // "" if it is unknown
	aborted chan struct{} // closed when it must not be executed any more
}

// Abort ends the requests of an account that wait in a fault: they are not executed, and
// their connections are closed. "" is every account.
func (s *Set) Abort(account string) {
	s.lot.mu.Lock()
	defer s.lot.mu.Unlock()
	for p := range s.lot.parked {
		if account == "" || p.account == account {
			s.lot.remove(p)
		}
	}
}

// Close is [Set.Abort] for every account, and for later requests too.
func (s *Set) Close() {
	s.lot.mu.Lock()
	s.lot.closed = true
	s.lot.mu.Unlock()
	s.Abort("")
}

func (l *lot) park(account string) *parked {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := &parked{account, make(chan struct{})}
	if l.parked == nil {
		l.parked = map[*parked]struct{}{}
	}
	l.parked[p] = struct{}{}
	if l.closed {
		l.remove(p)
	}
	return p
}

// remove aborts a request, or does nothing if it has left.
func (l *lot) remove(p *parked) {
	if _, waits := l.parked[p]; waits {
		delete(l.parked, p)
		close(p.aborted)
	}
}

// leave ends the wait of a request, and reports whether it may continue.
func (l *lot) leave(p *parked) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, waits := l.parked[p]
	delete(l.parked, p)
	return waits
}

// wait waits in wall time. If the request ends first, or is aborted, it closes the
// connection and does not return.
func (in *Injector) wait(r *http.Request, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	in.park(r, timer.C)
}

// hang waits until the request ends or is aborted, and closes the connection.
func (in *Injector) hang(r *http.Request) { in.park(r, nil) }

func (in *Injector) park(r *http.Request, over <-chan time.Time) {
	p := in.Set.lot.park(in.Account(r))
	ending := in.Set.lot.servers.Of(r)
	select {
	case <-over:
	case <-p.aborted:
	case <-ending.Done():
	case <-r.Context().Done():
	}
	if !in.Set.lot.leave(p) || ending.Err() != nil || r.Context().Err() != nil {
		panic(http.ErrAbortHandler)
	}
}
