package webhook

import (
	"cmp"
	"container/list"
	"context"
	"slices"
	"strconv"
	"sync"
	"time"
)

// MemoryOptions bound a memory store; a zero member stands for its default.
type MemoryOptions struct {
	MaxEvents int              // default 100 000; the oldest done events make room for new ones
	TTL       time.Duration    // how long a done event is remembered; default 7 days
	Now       func() time.Time // default time.Now
}

// NewMemoryStore returns a Store in memory. It forgets everything when the
// process ends, so that an event which is redelivered after a restart is
// handled again; and an event that is still being handled then was never
// acknowledged. Use package sqlstore where that is not good enough.
func NewMemoryStore(opts MemoryOptions) Store {
	s := &memoryStore{
		max:     cmp.Or(opts.MaxEvents, 100_000),
		ttl:     cmp.Or(opts.TTL, 7*24*time.Hour),
		now:     opts.Now,
		entries: make(map[string]*memoryEntry),
		busy:    make(map[string]*memoryEntry),
		latest:  make(map[string]*resourceMemory),
		facts:   make(map[string][]*memoryEntry),
		ids:     make(map[string][]*memoryEntry),
		done:    list.New(),
		waiting: list.New(),
	}
	if s.now == nil {
		s.now = time.Now
	}
	return s
}

type memoryStore struct {
	max int
	ttl time.Duration
	now func() time.Time

	mu        sync.Mutex
	entries   map[string]*memoryEntry    // by key, aliases too
	busy      map[string]*memoryEntry    // the claimed event of a resource
	latest    map[string]*resourceMemory // of resources with done events
	facts     map[string][]*memoryEntry
	ids       map[string][]*memoryEntry // by event id, those that have a fact
	done      *list.List                // done events, the oldest first
	waiting   *list.List                // waiting events, the longest waiting first
	count     uint64                    // of entries and tokens, for their order and their names
	forgotten time.Time                 // when the youngest event that had to make room was done
}

type memoryEntry struct {
	Record

	number   uint64 // in the order of arrival
	state    State
	standsIn *memoryEntry // a signed event's confirmed twin, which is handled in its place
	matched  string       // the key of a confirmed event's signed twin
	attempts int
	token    string
	due      time.Time
	lease    time.Time
	since    time.Time // of the state
	reason   string
	place    *list.Element // in the list of its state
}

type resourceMemory struct {
	position int64
	events   int
}

// Durable is as in [Store].
func (s *memoryStore) Durable() bool { return false }

// Remembers is as in [Store].
func (s *memoryStore) Remembers() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.forgotten.IsZero() {
		return s.ttl
	}
	return min(s.ttl, s.now().Sub(s.forgotten))
}

// Put is as in [Store].
func (s *memoryStore) Put(_ context.Context, rec Record) (Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.known(rec); known != nil {
		return Entry{Key: known.Key, State: known.state}, nil
	}
	s.expire()
	if !s.makeRoom() {
		return Entry{}, ErrStoreFull
	}
	e := &memoryEntry{Record: rec, due: s.now()}
	if twin := s.twin(rec); twin != nil {
		// The signed event is done as such; what becomes of it is the twin's.
		twin.matched = e.Key
		e.standsIn = twin
		s.add(e, StateDone)
		return Entry{Key: twin.Key, State: twin.state}, nil
	}
	s.add(e, StateWaiting)
	return Entry{Key: e.Key, State: e.state, Added: true}, nil
}

// known returns the entry of the event that rec stands for, by rules 1 and 2.
func (s *memoryStore) known(rec Record) *memoryEntry {
	if e := s.entries[rec.Key]; e != nil {
		return e.acting()
	}
	if rec.Signed || rec.Fact == "" {
		return nil
	}
	if same := s.facts[rec.Fact]; len(same) > 0 {
		return same[0].acting()
	}
	for _, e := range s.ids[rec.EventID] {
		if e.Signed {
			return e.acting()
		}
	}
	return nil
}

// twin returns the confirmed entry that a signed rec is matched with, by rule 3.
func (s *memoryStore) twin(rec Record) *memoryEntry {
	if !rec.Signed || rec.Fact == "" {
		return nil
	}
	for _, e := range s.facts[rec.Fact] {
		if e.matches(rec) {
			return e
		}
	}
	for _, e := range s.ids[rec.EventID] {
		if e.matches(rec) && e.Kind == rec.Kind && e.Resource == rec.Resource {
			return e
		}
	}
	return nil
}

// matches reports whether a confirmed entry is free for the signed rec, or is
// its twin already.
func (e *memoryEntry) matches(rec Record) bool {
	return !e.Signed && (e.matched == "" || e.matched == rec.Key)
}

// acting returns the entry that is handled for e.
func (e *memoryEntry) acting() *memoryEntry {
	if e.standsIn != nil {
		return e.standsIn
	}
	return e
}

func (s *memoryStore) add(e *memoryEntry, state State) {
	s.count++
	e.number = s.count
	s.entries[e.Key] = e
	s.enter(e, state)
	if e.Fact == "" {
		return
	}
	s.facts[e.Fact] = append(s.facts[e.Fact], e)
	s.ids[e.EventID] = append(s.ids[e.EventID], e)
}

// enter moves e to a state.
func (s *memoryStore) enter(e *memoryEntry, state State) {
	switch e.state {
	case StateWaiting:
		s.waiting.Remove(e.place)
	case StateClaimed:
		delete(s.busy, e.Resource)
	case StateDone, StateDead:
	}
	e.state, e.since, e.place = state, s.now(), nil
	switch state {
	case StateWaiting:
		e.place = s.waiting.PushBack(e)
	case StateClaimed:
		s.busy[e.Resource] = e
	case StateDone:
		e.Body, e.Confirmed, e.reason = nil, nil, ""
		e.place = s.done.PushBack(e)
	case StateDead:
	}
}

// Claim is as in [Store].
func (s *memoryStore) Claim(_ context.Context, key string, lease time.Duration) (*Claim, State, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	e := s.entries[key]
	if e == nil {
		return nil, 0, ErrClaimLost
	}
	if e.state != StateWaiting || s.busy[e.Resource] != nil {
		return nil, e.state, nil
	}
	return s.take(e, lease), StateClaimed, nil
}

// Next is as in [Store].
func (s *memoryStore) Next(_ context.Context, limit int, lease time.Duration) ([]*Claim, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	now := s.now()
	var due []*memoryEntry
	for _, e := range s.entries {
		if e.state == StateWaiting && !e.due.After(now) {
			due = append(due, e)
		}
	}
	slices.SortFunc(due, func(a, b *memoryEntry) int {
		return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.number, b.number))
	})
	var claims []*Claim
	for _, e := range due {
		if len(claims) < limit && s.busy[e.Resource] == nil {
			claims = append(claims, s.take(e, lease))
		}
	}
	return claims, nil
}

func (s *memoryStore) take(e *memoryEntry, lease time.Duration) *Claim {
	s.count++
	e.token, e.lease = strconv.FormatUint(s.count, 10), s.now().Add(lease)
	e.attempts++
	s.enter(e, StateClaimed)
	c := &Claim{Record: e.Record, Token: e.token, Attempt: e.attempts}
	if m := s.latest[e.Resource]; m != nil {
		c.Latest = m.position
	}
	return c
}

// claimed runs change on the entry of a claim that still counts.
func (s *memoryStore) claimed(c *Claim, change func(*memoryEntry)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	e := s.entries[c.Key]
	if e == nil || e.state != StateClaimed || e.token != c.Token {
		return ErrClaimLost
	}
	change(e)
	return nil
}

// Extend is as in [Store].
func (s *memoryStore) Extend(_ context.Context, c *Claim, lease time.Duration) error {
	return s.claimed(c, func(e *memoryEntry) { e.lease = s.now().Add(lease) })
}

// Complete is as in [Store].
func (s *memoryStore) Complete(_ context.Context, c *Claim) error {
	return s.claimed(c, func(e *memoryEntry) {
		s.enter(e, StateDone)
		m := s.latest[e.Resource]
		if m == nil {
			m = &resourceMemory{}
			s.latest[e.Resource] = m
		}
		m.position, m.events = max(m.position, e.Position), m.events+1
	})
}

// Retry is as in [Store].
func (s *memoryStore) Retry(_ context.Context, c *Claim, delay time.Duration, reason string) error {
	return s.claimed(c, func(e *memoryEntry) {
		e.due, e.reason = s.now().Add(delay), reason
		s.enter(e, StateWaiting)
	})
}

// Bury is as in [Store].
func (s *memoryStore) Bury(_ context.Context, c *Claim, reason string) error {
	return s.claimed(c, func(e *memoryEntry) {
		e.reason = reason
		s.enter(e, StateDead)
	})
}

// Release is as in [Store].
func (s *memoryStore) Release(_ context.Context, c *Claim) error {
	return s.claimed(c, func(e *memoryEntry) {
		e.due = s.now()
		e.attempts--
		s.enter(e, StateWaiting)
	})
}

// DeadLetters is as in [Store].
func (s *memoryStore) DeadLetters(_ context.Context, limit int) ([]DeadLetter, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var dead []DeadLetter
	for _, e := range s.entries {
		if e.state == StateDead {
			dead = append(dead, DeadLetter{
				Key: e.Key, EventID: e.EventID, Kind: e.Kind, Resource: e.Resource,
				Attempts: e.attempts, Reason: e.reason, Since: e.since, Body: e.Body,
			})
		}
	}
	slices.SortFunc(dead, func(a, b DeadLetter) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Key, b.Key)) })
	return dead[:min(limit, len(dead))], nil
}

// Requeue is as in [Store].
func (s *memoryStore) Requeue(_ context.Context, keys ...string) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, key := range keys {
		if e := s.entries[key]; e != nil && e.state == StateDead {
			e.due, e.attempts = s.now(), 0
			s.enter(e, StateWaiting)
			n++
		}
	}
	return n, nil
}

// Counts is as in [Store].
func (s *memoryStore) Counts(context.Context) (Counts, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	var n Counts
	for _, e := range s.entries {
		switch e.state {
		case StateWaiting:
			n.Waiting++
			n.Oldest = max(n.Oldest, s.now().Sub(e.due))
		case StateClaimed:
			n.Claimed++
		case StateDead:
			n.Dead++
		case StateDone:
		}
	}
	return n, nil
}

// expire gives back the claims whose lease has run out. Few are claimed at a
// time, so that looking at all of them costs little.
func (s *memoryStore) expire() {
	now := s.now()
	for _, e := range s.busy {
		if !e.lease.After(now) {
			e.due = now
			s.enter(e, StateWaiting)
		}
	}
}

// Purge is as in [Store].
func (s *memoryStore) Purge(context.Context) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, limit := 0, s.now().Add(-s.ttl)
	for first := s.done.Front(); first != nil; first = s.done.Front() {
		e, ok := first.Value.(*memoryEntry)
		if !ok || !e.since.Before(limit) {
			break
		}
		s.forget(e)
		n++
	}
	return n, nil
}

// makeRoom reports whether there is room for one entry more. The oldest done
// entry gives way; where there is none, the oldest waiting one: this store is
// not durable, so nobody was told that a waiting event is safe here.
func (s *memoryStore) makeRoom() bool {
	if len(s.entries) < s.max {
		return true
	}
	for _, l := range [...]*list.List{s.done, s.waiting} {
		if first := l.Front(); first != nil {
			e, ok := first.Value.(*memoryEntry)
			if ok && e.state == StateDone {
				s.forgotten = e.since
			}
			s.forget(e)
			return ok
		}
	}
	return false
}

func (s *memoryStore) forget(e *memoryEntry) {
	if other := s.entries[e.matched]; other != nil && e.state == StateWaiting {
		s.forget(other) // it would stand for an event that is no longer here
	}
	if m := s.latest[e.Resource]; m != nil && e.state == StateDone && e.standsIn == nil {
		if m.events--; m.events == 0 {
			delete(s.latest, e.Resource)
		}
	}
	if e.state == StateDone {
		s.done.Remove(e.place)
	} else {
		s.waiting.Remove(e.place)
	}
	delete(s.entries, e.Key)
	if e.Fact != "" {
		remove(s.facts, e.Fact, e)
		remove(s.ids, e.EventID, e)
	}
}

func remove(index map[string][]*memoryEntry, key string, e *memoryEntry) {
	rest := slices.DeleteFunc(index[key], func(other *memoryEntry) bool { return other == e })
	if len(rest) == 0 {
		delete(index, key)
		return
	}
	index[key] = rest
}
