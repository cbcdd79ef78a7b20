package events

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gateway-go/gateway/mockserver/internal/respond"
)

const (
	size = 1000 // events that are remembered
	// linger is how long events are still recorded after the last reader has
	// left, so that one that reconnects misses nothing.
	linger = time.Minute
)

// Hub orders the events of one server. Without readers it records nothing and
// costs one atomic load. Its methods are safe for concurrent use.
type Hub struct {
	now  func() time.Time // the virtual clock
	own  string           // the key of the default account
	run  string           // distinguishes this hub's ids from another's
	keys *regexp.Regexp

	on atomic.Bool

	mu      sync.Mutex
	ring    []Event // the event with number n is at n % size
	first   uint64  // the oldest that is remembered
	next    uint64
	gap     uint64 // the number that stands for the last events that were not recorded
	readers []*Reader
	until   time.Time // when recording ends, without a reader
	closed  bool
	servers map[*http.Server]context.Context // each ends with its server's shutdown
}

// New returns a hub. The key is that of the account called "default".
func New(now func() time.Time, key string) *Hub {
	return &Hub{
		now: now, own: key, run: strconv.FormatInt(time.Now().UnixNano(), 36), keys: Keys(),
		first: 1, next: 1, servers: map[*http.Server]context.Context{},
	}
}

// Listening reports whether events are recorded. Without it nothing needs to be
// published. A nil Hub never listens.
func (h *Hub) Listening() bool { return h != nil && h.on.Load() }

// Name returns the name of an account in events, which is not its key, a
// secret. "" is none.
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

// Publish records an event of the account with a key and wakes the readers. It
// waits for none of them. The hub owns the event from then on, and masks keys,
// card numbers and the private values in it.
func (h *Hub) Publish(key string, e Event, private ...string) {
	if !h.Listening() {
		return
	}
	for _, text := range e.texts() {
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

// stillOn reports whether to record, and stops some time after the last reader
// has left.
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

// Position returns the id of the latest event, from which a reader may start
// within the next minute and miss nothing.
func (h *Hub) Position() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listen()
	return h.id(h.next - 1)
}

// listen starts to record, for at least the next minute.
func (h *Hub) listen() {
	wall := time.Now()
	h.stillOn(wall)
	h.until = wall.Add(linger)
	h.on.Store(true)
}

// id formats a number so that another hub does not accept it.
func (h *Hub) id(seq uint64) string { return h.run + "-" + strconv.FormatUint(seq, 10) }

// after returns the number of the first event after the one with an id: 0 if
// this hub has given no such id.
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
	Types   []string // none is every type; TypeLost is never left out
	Account string   // its name; "" is every account. Events of no account that affect all are never left out
}

func (f Filter) takes(e *Event) bool {
	return e.Type == TypeLost || (len(f.Types) == 0 || slices.Contains(f.Types, e.Type)) &&
		(f.Account == "" || e.Account == f.Account || e.everyone())
}

// Reader reads the events. It is used by one goroutine.
type Reader struct {
	hub    *Hub
	filter Filter
	at     uint64 // the next number to be read
	wake   chan struct{}
}

// Read returns a reader of the events after the one with an id, or for "" from
// now on. Close it.
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

// Close ends the reader.
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
	default: // it is signaled already
	}
}

// Next waits for the next event. It reports false when the context has ended,
// and when the hub is closed and everything is read. A reader that has fallen
// too far behind gets an event of TypeLost and continues with the recorded
// ones.
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
		if r.at <= h.gap { // not counted
			lost.Events = 0
		}
		r.at = h.first
		now := respond.Stamp(h.now())
		return Event{Seq: h.first - 1, Type: TypeLost, At: now, Wall: respond.Stamp(time.Now().UTC().Round(0)), Lost: lost}, true, false
	}
	for r.at < h.next {
		e := h.ring[r.at%size]
		r.at++
		if r.filter.takes(&e) {
			return e, true, false
		}
	}
	return Event{}, false, h.closed
}

// Close ends the readers when they have read all events.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, r := range h.readers {
		r.signal()
	}
}
