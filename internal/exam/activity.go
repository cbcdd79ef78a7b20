package exam

import (
	"slices"
	"sync"
	"time"
)

// activity counts the messages in progress.
type activity struct {
	mu     sync.Mutex
	writes int // writes, deliveries and hooks
	reads  int
	last   time.Time // when one of the writes ended
}

// begin counts a message until end is called. Reads count only while they are in
// progress, so that a program that polls becomes idle.
func (a *activity) begin(write bool) (end func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if write {
		a.writes++
	} else {
		a.reads++
	}
	return sync.OnceFunc(func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if write {
			a.writes--
			a.last = time.Now()
		} else {
			a.reads--
		}
	})
}

func (a *activity) state() (busy bool, last time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.writes+a.reads > 0, a.last
}

func sorted(names []string) []string {
	slices.Sort(names)
	return names
}
