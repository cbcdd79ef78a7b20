package exam

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing/synctest"
)

// gate lets the messages of a schedule go on one at a time, so that a schedule can be
// repeated: each waits until the bubble is idle and no older one waits. Messages that
// were held since the last one went on are of the same age; they are ordered by their
// text.
type gate struct {
	wake     chan struct{} // buffered; something may go on
	stop     chan struct{}
	progress *atomic.Int64 // counts what went on, for the watchdog

	mu      sync.Mutex
	age     int
	held    []*held
	calls   int // of the program, in progress
	overlap int // above 0 if calls may overlap
}

// held is a message that waits.
type held struct {
	age  int
	text string
	call bool // it is a call of the program, which waits until no other is in progress
	open chan struct{}
}

func newGate(progress *atomic.Int64) *gate {
	return &gate{wake: make(chan struct{}, 1), stop: make(chan struct{}), progress: progress}
}

// run lets messages go on until stop is closed.
func (g *gate) run() {
	for {
		select {
		case <-g.stop:
			return
		case <-g.wake:
		}
		for more := true; more; {
			synctest.Wait()
			more = g.next()
		}
	}
}

// next lets the oldest message go on that may. It reports whether there was one.
func (g *gate) next() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	var first *held
	for _, h := range g.held {
		if h.call && g.calls > 0 && g.overlap == 0 {
			continue
		}
		if first == nil || h.age < first.age || h.age == first.age && strings.Compare(h.text, first.text) < 0 {
			first = h
		}
	}
	if first == nil {
		return false
	}
	g.held = slices.DeleteFunc(g.held, func(h *held) bool { return h == first })
	if first.call {
		g.calls++
	}
	g.age++
	g.progress.Add(1)
	close(first.open)
	return true
}

// hold returns when the message may go on, and true, or false if ended is closed first.
// A call that went on must be followed by leave.
func (g *gate) hold(text string, call bool, ended <-chan struct{}) bool {
	g.mu.Lock()
	h := &held{g.age, text, call, make(chan struct{})}
	g.held = append(g.held, h)
	g.mu.Unlock()
	g.signal()
	select {
	case <-h.open:
		return true
	case <-ended:
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-h.open: // both
		if call {
			g.calls--
		}
	default:
		g.held = slices.DeleteFunc(g.held, func(other *held) bool { return other == h })
	}
	return false
}

// leave ends a call.
func (g *gate) leave() {
	g.mu.Lock()
	g.calls--
	g.mu.Unlock()
	g.signal()
}

func (g *gate) setOverlap(on bool) {
	g.mu.Lock()
	if on {
		g.overlap++
	} else {
		g.overlap--
	}
	g.mu.Unlock()
	g.signal()
}

func (g *gate) signal() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}
