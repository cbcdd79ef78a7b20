package events

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gateway-go/gateway/mockserver/internal/ending"
	"github.com/gateway-go/gateway/mockserver/internal/respond"
)

const (
	size = 1000 // number of events that are stored for readers
	// linger is how long events are still recorded after the last reader has
	// left, so that a reader that reconnects misses nothing.
	linger = time.Minute
)

// Hub orders the events of one server. Without readers it records nothing, and an
// event costs one atomic load. Its methods are safe for concurrent use.
type Hub struct {
	now  func() time.Time // the virtual clock
	own  string           // the key of the default account
	run  string           // distinguishes this hub's ids from those of other hubs
	keys *regexp.Regexp

	on atomic.Bool

	mu      sync.Mutex
	ring    []Event // the event with number n is at n % size
	first   uint64  // number of the oldest event in the ring
	next    uint64  // number of the next event
	gap     uint64  // number that stands for the most recent events that were not recorded
	readers []*Reader
	until   time.Time // when recording ends if there is no reader
	closed  bool
	servers ending.Servers
}

// New returns a hub. key is the API key of the account that events call "default".
func New(now func() time.Time, key string) *Hub {
	return &Hub{
		now: now, own: key, run: strconv.FormatInt(time.Now().UnixNano(), 36), keys: Keys(),
		first: 1, next: 1,
	}
}

// Listening reports whether events are recorded. If not, callers need not publish
// any. A nil Hub records nothing.
func (h *Hub) Listening() bool { return h != nil && h.on.Load() }

// Name returns the name of an account in events, which does not reveal its key.
// For the key "", which means no account, it is "".
func (h *Hub) Name(key string) string {
	switch key {
	case "":
		return ""
	case h.own:
		return "default"
	}
	sum := sha256.Sum256([]byte(key))
	return "acct_" + hex.EncodeToString(sum[:6])
}

// Publish records an event of the account with the given key and wakes the
// readers, but does not wait for them. The hub masks API keys, card tokens, card
// numbers and the given private values in the event. The caller must not use the
// event afterwards.
func (h *Hub) Publish(key string, e Event, private ...string) {
	if !h.Listening() {
		return
	}
	for _, text := range e.clientStrings() {
		*text = clean(*text, h.keys, private)
	}
	e.Account = h.Name(key)
	wall := time.Now().UTC()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.stillOn(wall) {
		return
	}
	e.At, e.Wall = respond.Stamp(h.now()), respond.Stamp(wall.Round(0))
	e.Seq = h.next
	if h.ring == nil {
		h.ring = make([]Event, size)
	}
	h.ring[e.Seq%size] = e
	h.next++
	if h.next-h.first > size {
		h.first++
	}
	for _, r := range h.readers {
		r.signal()
	}
}

// stillOn reports whether events are recorded. It stops the recording if there
// has been no reader for longer than linger.
func (h *Hub) stillOn(wall time.Time) bool {
	if h.on.Load() && len(h.readers) == 0 && wall.After(h.until) {
		h.on.Store(false)
		h.ring = nil
		h.gap = h.next
		h.next++
		h.first = h.next
	}
	return h.on.Load()
}

// Position returns the id of the latest event. A reader that starts after it
// within the next minute misses nothing.
func (h *Hub) Position() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listen()
	return h.id(h.next - 1)
}

// Latest returns the id of the latest recorded event that a filter selects, or "".
func (h *Hub) Latest(f Filter) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ring == nil {
		return ""
	}
	for seq := h.next - 1; seq >= h.first; seq-- {
		if f.matches(&h.ring[seq%size]) {
			return h.id(seq)
		}
	}
	return ""
}

// listen starts recording, for at least the next minute.
func (h *Hub) listen() {
	wall := time.Now()
	h.stillOn(wall)
	h.until = wall.Add(linger)
	h.on.Store(true)
}

// id returns the id of the event with the given number. No other hub accepts it.
func (h *Hub) id(seq uint64) string { return h.run + "-" + strconv.FormatUint(seq, 10) }

// after returns the number of the event after the one with the given id, or 0 if
// this hub has not issued the id.
func (h *Hub) after(id string) uint64 {
	run, number, _ := strings.Cut(id, "-")
	seq, err := strconv.ParseUint(number, 10, 64)
	if run != h.run || err != nil || seq >= h.next {
		return 0
	}
	return seq + 1
}

// Filter selects events.
type Filter struct {
	Types   []string // empty selects every type; TypeLost is always selected
	Account string   // a name; "" selects every account. Events that affect all accounts are selected for each of them
}

func (f Filter) matches(e *Event) bool {
	return e.Type == TypeLost || (len(f.Types) == 0 || slices.Contains(f.Types, e.Type)) &&
		(f.Account == "" || e.Account == f.Account || e.affectsAll())
}

// Reader reads events. Only one goroutine may use it.
type Reader struct {
	hub    *Hub
	filter Filter
	at     uint64 // the next number to be read
	wake   chan struct{}
}

// Read returns a reader of the events after the one whose id is after, or of the
// events from now on if after is "". The caller must close the reader.
func (h *Hub) Read(after string, f Filter) *Reader {
	r := &Reader{hub: h, filter: f, wake: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listen()
	r.at = h.next
	if after != "" {
		r.at = h.after(after)
	}
	h.readers = append(h.readers, r)
	return r
}

// Close removes the reader from the hub.
func (r *Reader) Close() {
	h := r.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	h.readers = slices.DeleteFunc(h.readers, func(other *Reader) bool { return other == r })
	h.until = time.Now().Add(linger)
}

func (r *Reader) signal() {
	select {
	case r.wake <- struct{}{}:
	default: // already signaled
	}
}

// Next waits for the next event. It returns false when the context has ended, or
// when the hub is closed and all its events have been read. A reader that has
// fallen too far behind gets an event of TypeLost and continues with the oldest
// recorded event.
func (r *Reader) Next(ctx context.Context) (Event, bool) {
	for ctx.Err() == nil {
		e, found, closed := r.poll()
		if found || closed {
			return e, found
		}
		select {
		case <-r.wake:
		case <-ctx.Done():
		}
	}
	return Event{}, false
}

// poll returns the next recorded event.
func (r *Reader) poll() (e Event, found, closed bool) {
	h := r.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.at < h.first {
		lost := &LostEvent{Events: h.first - r.at}
		if r.at <= h.gap { // events that were not recorded were not counted
			lost.Events = 0
		}
		r.at = h.first
		now := respond.Stamp(h.now())
		return Event{Seq: h.first - 1, Type: TypeLost, At: now, Wall: respond.Stamp(time.Now().UTC().Round(0)), Lost: lost}, true, false
	}
	for r.at < h.next {
		e := h.ring[r.at%size]
		r.at++
		if r.filter.matches(&e) {
			return e, true, false
		}
	}
	return Event{}, false, h.closed
}

// Close makes the readers end once they have read all events.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, r := range h.readers {
		r.signal()
	}
}
