package webhook

import (
	"cmp"
	"container/list"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/gateway-go/gateway"
)

// MemoryOptions limit a memory store; a zero field means its default.
type MemoryOptions struct {
	MaxEvents int              // of one account; default 100,000; the oldest done and unhandled events are evicted for new ones
	TTL       time.Duration    // how long a done event is remembered; default 7 days, at least MinRetention
	Now       func() time.Time // default time.Now
}

// NewMemoryStore returns a Store in memory. It loses everything when the
// process ends: after a restart, redelivered events are handled again, and
// unsigned deliveries of events from before the restart are rejected, because
// they may be replays. Use package sqlstore to avoid that.
func NewMemoryStore(opts MemoryOptions) Store {
	accounts := &memoryAccounts{opts: opts, stores: make(map[string]*memoryStore)}
	return accounts.store("")
}

// memoryAccounts are the stores of all accounts, by name.
type memoryAccounts struct {
	opts MemoryOptions

	mu     sync.Mutex
	stores map[string]*memoryStore
}

func (a *memoryAccounts) store(name string) *memoryStore {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.stores[name]
	if s == nil {
		s = newMemoryStore(a.opts)
		s.accounts = a
		a.stores[name] = s
	}
	return s
}

func newMemoryStore(opts MemoryOptions) *memoryStore {
	s := &memoryStore{
		max:     cmp.Or(opts.MaxEvents, 100_000),
		ttl:     cmp.Or(opts.TTL, 7*24*time.Hour),
		wall:    opts.Now,
		entries: make(map[string]*memoryEntry),
		busy:    make(map[string]*memoryEntry),
		latest:  make(map[string]*resourceMemory),
		facts:   make(map[string][]*memoryEntry),
		ids:     make(map[string][]*memoryEntry),
		settled: list.New(),
		waiting: list.New(),
	}
	if s.wall == nil {
		s.wall = time.Now
	}
	s.born = s.now()
	return s
}

type memoryStore struct {
	max  int
	ttl  time.Duration
	wall func() time.Time
	born time.Time

	accounts *memoryAccounts

	mu          sync.Mutex
	fingerprint string                     // of the account, "" if it is unknown
	last        time.Time                  // last result of now
	ahead       time.Duration              // last reading of the wall clock, which may be set back
	entries     map[string]*memoryEntry    // by key, aliases too
	busy        map[string]*memoryEntry    // the claimed event of a resource
	latest      map[string]*resourceMemory // per resource with done events
	facts       map[string][]*memoryEntry
	ids         map[string][]*memoryEntry // by event id, those that have a fact
	settled     *list.List                // done and unhandled events, the oldest first
	waiting     *list.List                // waiting events, the earliest due first
	count       uint64                    // numbers entries and tokens
	forgotten   time.Time                 // when the youngest evicted event was settled
}

type memoryEntry struct {
	Record

	number    uint64 // in the order of arrival
	arrived   time.Time
	aside     bool   // it belongs to the queue of unhandled events
	family    Family // the missing handler for which it was set aside
	counted   bool   // in its resource's memory
	state     State
	canonical *memoryEntry // a signed event's confirmed twin, which is handled in its place
	matched   string       // the key of a confirmed event's signed twin
	attempts  int
	token     string
	due       time.Time
	lease     time.Time
	since     time.Time // of the state
	reason    string
	expired   int           // see Claim.Expired
	place     *list.Element // in the list of its state
}

type resourceMemory struct {
	position int64
	events   int
}

func (s *memoryStore) Durable() bool { return false }

func (s *memoryStore) For(account gateway.Account) Store { return s.accounts.store(account.Name) }

// identify returns gateway.ErrAccountConflict if the store is that of an account with the
// same name at another base URL.
func (s *memoryStore) identify(account gateway.Account) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fingerprint = cmp.Or(s.fingerprint, account.Fingerprint)
	if account.Fingerprint != "" && s.fingerprint != account.Fingerprint {
		return fmt.Errorf("%w: the memory store has the events of the account %s at another base URL of the gateway: "+
			"give each account and environment a name of its own", gateway.ErrAccountConflict, account.Name)
	}
	return nil
}

// now returns the wall clock's time, but never goes back, so leases, backoffs
// and TTLs keep their length if the clock is set back.
func (s *memoryStore) now() time.Time {
	t := s.wall().Add(s.ahead)
	if t.Before(s.last) {
		s.ahead += s.last.Sub(t)
		t = s.last
	}
	s.last = t
	return t
}

func (s *memoryStore) Remembers(context.Context) (time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	return min(s.ttl, now.Sub(s.born), now.Sub(s.forgotten)), nil
}

func (s *memoryStore) Put(_ context.Context, rec Record) (Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.known(rec); known != nil {
		return s.entry(known, rec), nil
	}
	s.expire()
	if !s.makeRoom() {
		return Entry{}, ErrStoreFull
	}
	e := s.newEntry(rec)
	if twin := s.twin(rec); twin != nil {
		// The signed entry counts as done; its twin has the outcome.
		twin.matched = e.Key
		e.canonical = twin
		s.add(e, StateDone)
		return s.entry(twin, rec), nil
	}
	s.add(e, StateWaiting)
	return Entry{Key: e.Key, State: e.state, Added: true}, nil
}

func (s *memoryStore) PutDead(_ context.Context, rec Record, reason string) (Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[rec.Key]; e != nil {
		return s.entry(e.resolve(), rec), nil
	}
	if !s.makeRoom() {
		return Entry{}, ErrStoreFull
	}
	e := s.newEntry(rec)
	e.reason = reason
	s.add(e, StateDead)
	return Entry{Key: e.Key, State: e.state, Added: true}, nil
}

func (s *memoryStore) newEntry(rec Record) *memoryEntry {
	now := s.now()
	return &memoryEntry{Record: rec, arrived: now, due: now}
}

// entry returns the caller's view of e, the entry of rec.
func (s *memoryStore) entry(e *memoryEntry, rec Record) Entry {
	known := Entry{Key: e.Key, State: e.state}
	if e.state == StateWaiting || e.state == StateUnhandled {
		known.Wait = max(0, e.due.Sub(s.now()))
	}
	if same := s.entries[rec.Key]; same != nil && rec.Digest != "" && same.Digest != "" {
		known.Conflict = rec.Digest != same.Digest
		known.unrelated = known.Conflict && (rec.Kind != same.Kind || rec.Resource != same.Resource)
	}
	return known
}

// known returns the entry of rec's event, by rules 1 and 2.
func (s *memoryStore) known(rec Record) *memoryEntry {
	if e := s.entries[rec.Key]; e != nil {
		return e.resolve()
	}
	if rec.Signed || rec.Fact == "" {
		return nil
	}
	if same := s.facts[rec.Fact]; len(same) > 0 {
		return same[0].resolve()
	}
	for _, e := range s.ids[rec.EventID] {
		if e.Signed {
			return e.resolve()
		}
	}
	return nil
}

// twin returns the confirmed entry that matches a signed rec, by rule 3.
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

// matches reports whether a confirmed entry has no signed twin yet, or already
// is the twin of rec.
func (e *memoryEntry) matches(rec Record) bool {
	return !e.Signed && (e.matched == "" || e.matched == rec.Key)
}

// resolve returns the entry that is handled for e.
func (e *memoryEntry) resolve() *memoryEntry {
	if e.canonical != nil {
		return e.canonical
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
	case StateUnhandled, StateDone:
		s.settled.Remove(e.place)
	case StateDead:
	}
	e.state, e.since, e.place = state, s.now(), nil
	switch state {
	case StateWaiting:
		e.place = s.waiting.PushBack(e)
	case StateClaimed:
		s.busy[e.Resource] = e
	case StateUnhandled:
		e.place = s.settled.PushBack(e)
	case StateDone:
		e.Body, e.Confirmed, e.reason = nil, nil, ""
		e.place = s.settled.PushBack(e)
	case StateDead:
	}
}

// rest moves e to its waiting state: set aside if it was, or else waiting.
func (s *memoryStore) rest(e *memoryEntry, due time.Time) {
	e.due = due
	if e.aside {
		s.enter(e, StateUnhandled)
		return
	}
	s.enter(e, StateWaiting)
}

func (s *memoryStore) Claim(_ context.Context, key string, lease time.Duration) (*Claim, Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	e := s.entries[key]
	if e == nil {
		return nil, Entry{}, ErrClaimLost
	}
	known := s.entry(e, e.Record)
	if !e.due.After(s.now()) && (e.state == StateWaiting || e.state == StateUnhandled) && s.busy[e.Resource] == nil {
		return s.take(e, lease), Entry{Key: key, State: StateClaimed}, nil
	}
	return nil, known, nil
}

func (s *memoryStore) Next(_ context.Context, limit int, lease time.Duration) ([]*Claim, error) {
	return s.next(limit, lease, func(e *memoryEntry) bool { return e.state == StateWaiting }), nil
}

func (s *memoryStore) NextUnhandled(
	_ context.Context, handles func(Family, Kind) bool, limit int, lease time.Duration,
) ([]*Claim, error) {
	return s.next(limit, lease, func(e *memoryEntry) bool {
		return e.state == StateUnhandled && handles(e.family, e.Kind)
	}), nil
}

// next claims matching entries, the longest due first.
func (s *memoryStore) next(limit int, lease time.Duration, wanted func(*memoryEntry) bool) (claims []*Claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	now := s.now()
	var due []*memoryEntry
	for _, e := range s.entries {
		if !e.due.After(now) && wanted(e) {
			due = append(due, e)
		}
	}
	slices.SortFunc(due, func(a, b *memoryEntry) int {
		return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.number, b.number))
	})
	for _, e := range due {
		if len(claims) < limit && s.busy[e.Resource] == nil {
			claims = append(claims, s.take(e, lease))
		}
	}
	return claims
}

func (s *memoryStore) take(e *memoryEntry, lease time.Duration) *Claim {
	s.count++
	e.token, e.lease = strconv.FormatUint(s.count, 10), s.now().Add(lease)
	e.attempts++
	s.enter(e, StateClaimed)
	c := &Claim{Record: e.Record, Token: e.token, Attempt: e.attempts, Expired: e.expired, Age: s.now().Sub(e.arrived)}
	if m := s.latest[e.Resource]; m != nil {
		c.Latest = m.position
	}
	return c
}

// claimed runs change on the entry of a valid claim.
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

func (s *memoryStore) Extend(_ context.Context, c *Claim, lease time.Duration) error {
	return s.claimed(c, func(e *memoryEntry) { e.lease = s.now().Add(lease) })
}

func (s *memoryStore) Settle(_ context.Context, c *Claim, d Disposition) error {
	if d.State == StateClaimed || d.State == 0 {
		return fmt.Errorf("webhook: a claim can't end in state %d", d.State)
	}
	return s.claimed(c, func(e *memoryEntry) {
		switch {
		case d.State == StateDone:
			s.complete(e)
		case d.State == StateDead:
			e.reason = d.Reason
			s.enter(e, StateDead)
		case d.State == StateUnhandled:
			e.attempts--
			e.aside, e.family = true, d.Family
			s.rest(e, s.now())
		case d.Released:
			e.attempts--
			s.rest(e, e.due)
		default:
			e.reason, e.expired = d.Reason, 0
			s.rest(e, s.now().Add(d.Delay))
		}
	})
}

func (s *memoryStore) complete(e *memoryEntry) {
	s.enter(e, StateDone)
	m := s.latest[e.Resource]
	if m == nil {
		m = &resourceMemory{}
		s.latest[e.Resource] = m
	}
	m.position, m.events = max(m.position, e.Position), m.events+1
	e.counted = true
}

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
		case StateUnhandled:
			n.Unhandled++
		case StateDone:
		}
	}
	return n, nil
}

// expire returns entries with an expired lease to their queue. Few entries are
// claimed at a time, so checking all of them is cheap.
func (s *memoryStore) expire() {
	now := s.now()
	for _, e := range s.busy {
		if !e.lease.After(now) {
			if e.expired < freeExpiries {
				e.attempts--
			}
			e.expired++
			s.rest(e, e.due)
		}
	}
}

func (s *memoryStore) Purge(context.Context) (Purged, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var n Purged
	limit := s.now().Add(-s.ttl)
	for first := s.settled.Front(); first != nil; first = s.settled.Front() {
		e, ok := first.Value.(*memoryEntry)
		if !ok || !e.since.Before(limit) {
			break
		}
		if e.state == StateDone {
			n.Done++
		} else {
			n.Unhandled++
		}
		s.forget(e)
	}
	return n, nil
}

// makeRoom reports whether there is room for one more entry. It evicts the
// oldest done or unhandled entry or, if there is none, the oldest waiting one:
// this store is not durable, so waiting events have not been acknowledged.
func (s *memoryStore) makeRoom() bool {
	if len(s.entries) < s.max {
		return true
	}
	for _, l := range [...]*list.List{s.settled, s.waiting} {
		if first := l.Front(); first != nil {
			e, ok := first.Value.(*memoryEntry)
			if ok && e.state != StateWaiting {
				s.forgotten = e.since
			}
			s.forget(e)
			return ok
		}
	}
	return false
}

func (s *memoryStore) forget(e *memoryEntry) {
	if other := s.entries[e.matched]; other != nil && e.state != StateDone {
		s.forget(other) // it would refer to a removed event
	}
	if m := s.latest[e.Resource]; m != nil && e.counted {
		if m.events--; m.events == 0 {
			delete(s.latest, e.Resource)
		}
	}
	if e.state == StateWaiting {
		s.waiting.Remove(e.place)
	} else {
		s.settled.Remove(e.place)
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

func (s *memoryStore) DeadLetters(_ context.Context, q DeadLetterQuery) ([]DeadLetter, error) {
	q, err := q.Check()
	if err != nil {
		return nil, err
	}
	since, number, _ := q.Position() // checked
	s.mu.Lock()
	defer s.mu.Unlock()
	var dead []*memoryEntry
	for _, e := range s.entries {
		if e.state == StateDead && e.selected(q.DeadLetterFilter) && e.after(since, number) {
			dead = append(dead, e)
		}
	}
	slices.SortFunc(dead, func(a, b *memoryEntry) int {
		return cmp.Or(cmp.Compare(a.since.UnixMilli(), b.since.UnixMilli()), cmp.Compare(a.number, b.number))
	})
	var letters []DeadLetter
	for _, e := range dead[:min(q.Limit, len(dead))] {
		letters = append(letters, DeadLetter{
			Key: e.Key, EventID: e.EventID, Kind: e.Kind, Resource: e.Resource,
			Attempts: e.attempts, Reason: e.reason, Since: e.since, Body: e.Body,
			Cursor: CursorAt(e.since.UnixMilli(), int64(e.number)), //nolint:gosec // entries of one process
		})
	}
	return letters, nil
}

func (e *memoryEntry) selected(f DeadLetterFilter) bool {
	return (f.Kind == "" || e.Kind == f.Kind) && (f.Resource == "" || e.Resource == f.Resource) &&
		!e.since.Before(f.Since)
}

func (e *memoryEntry) after(since, number int64) bool {
	return cmp.Or(cmp.Compare(e.since.UnixMilli(), since), cmp.Compare(int64(e.number), number)) > 0 //nolint:gosec // as above
}

func (s *memoryStore) Requeue(_ context.Context, keys ...string) (int, error) {
	return s.letters(keys, func(e *memoryEntry) {
		e.attempts, e.expired = 0, 0
		s.rest(e, s.now())
	}), nil
}

func (s *memoryStore) Discard(_ context.Context, keys ...string) (int, error) {
	return s.letters(keys, func(e *memoryEntry) { s.enter(e, StateDone) }), nil
}

// letters changes the dead letters among the entries with these keys.
func (s *memoryStore) letters(keys []string, change func(*memoryEntry)) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		if e := s.entries[key]; e != nil && e.state == StateDead {
			change(e)
			n++
		}
	}
	return n
}

func (s *memoryStore) Unhandled(context.Context) ([]UnhandledKind, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := make(map[route]UnhandledKind)
	for _, e := range s.entries {
		if e.state != StateUnhandled {
			continue
		}
		r := route{e.family, e.Kind}
		n, known := found[r]
		if !known || e.since.Before(n.Since) {
			n.Since = e.since
		}
		found[r] = UnhandledKind{Family: e.family, Kind: e.Kind, Events: n.Events + 1, Since: n.Since}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b UnhandledKind) int {
		return cmp.Or(cmp.Compare(a.Family, b.Family), cmp.Compare(a.Kind, b.Kind))
	}), nil
}
