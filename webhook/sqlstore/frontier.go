package sqlstore

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// frontier is where the work of a PostgreSQL queue begins. While a session holds a
// snapshot, vacuum can't remove what has been handled since, and a scan in the order
// of time would walk over all of it. So each process remembers how far it is done:
//
//   - no waiting event is due before low, except events of the resources: another
//     event of theirs was being handled when low passed them;
//   - no lease ends before leases.
//
// A transaction that was still open when low passed its event can break that, as can
// a clock that was set back and another session's lock on an event whose lease has run
// out. Each look begins at settled, long before low, and finds most of these events;
// an occasional sweep finds the others. It walks over all that vacuum could not remove,
// so it runs beside the claims. Until then such an event is late, but not overtaken:
// a claim checks that no earlier event of the resource is waiting (see nextFrom).
type frontier struct {
	looks    pace
	sweeping atomic.Bool // one sweep at a time

	mu        sync.Mutex
	low       int64 // Unix milliseconds of the database's clock, like settled and leases
	settled   int64
	leases    int64
	resources map[string]struct{}
	names     string    // the resources as a JSON array
	sweep     time.Time // when the next sweep is due
}

const (
	// lookEvery and openLag are how far low is behind the clock, at most and at
	// least: claims walk over the events that were handled since. openLag is more
	// than a statement usually takes to commit.
	lookEvery = 100 * time.Millisecond
	openLag   = 100 * time.Millisecond

	// settledLag is more than a statement takes to commit on a busy host, and than
	// the database's clock can be set back unnoticed.
	settledLag = clockSlack

	// A sweep takes the longer the more vacuum could not remove: one in sweepEvery,
	// and at most one part in sweepShare of a process's time.
	sweepEvery   = 10 * time.Second
	sweepShare   = 50
	sweepTimeout = 5 * time.Minute

	// maxBehind bounds the events that one look returns. There are about as many
	// resources to remember as handlers that run; more than maxResources hold the
	// frontier back.
	maxBehind    = 100
	maxResources = 1000
)

// look is what one look behind the frontier begins with.
type look struct {
	low   int64
	from  int64 // at most low
	names string
}

// begin returns where to look from.
func (f *frontier) begin() look {
	f.mu.Lock()
	defer f.mu.Unlock()
	return look{low: f.low, from: min(f.low, f.settled), names: f.names}
}

// front returns where the waiting events begin, and the resources that have
// others as a JSON array.
func (f *frontier) front() (low int64, names string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.low, f.names
}

// ended returns from when on leases may have run out.
func (f *frontier) ended() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.leases
}

// expired moves leases: those that ended before now have run out.
func (f *frontier) expired(before, now int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.leases == before {
		f.leases = max(before, now-settledLag.Milliseconds())
	}
}

// reset has the next look begin at the start.
func (f *frontier) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.low, f.settled, f.leases = 0, 0, 0
}

// keep forgets the resources without waiting events.
func (f *frontier) keep(resources []waitingEvent) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.resources = make(map[string]struct{}, len(resources))
	for _, e := range resources {
		f.resources[e.resource] = struct{}{}
	}
	f.names = jsonArray(f.resources)
}

// advance moves the frontier to until, the end of what was looked at, or to the
// first event found that can be claimed. If a sweep or a reset has moved it back
// meanwhile, it stays there for the next look.
func (f *frontier) advance(l look, until int64, found []waitingEvent) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.low < l.low {
		return
	}
	if len(found) == maxBehind { // there may be more
		until = found[maxBehind-1].due
	}
	if l.low == 0 { // this was a sweep
		f.sweep = time.Now().Add(sweepEvery)
	}
	f.low, f.settled = until, until-(settledLag-openLag).Milliseconds()
	for _, e := range found {
		if e.free || !f.remember(e.resource) {
			f.low = e.due
			break
		}
	}
	f.names = jsonArray(f.resources)
}

// remember adds a resource that has events before low, if there is room.
func (f *frontier) remember(resource string) bool {
	if resource == "" || len(f.resources) == maxResources {
		return false
	}
	if f.resources == nil {
		f.resources = make(map[string]struct{})
	}
	f.resources[resource] = struct{}{}
	return true
}

// sweepDue reports whether to sweep now.
func (f *frontier) sweepDue() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.low > 0 && !time.Now().Before(f.sweep)
}

// swept takes up the events that a sweep found behind low.
func (f *frontier) swept(found []waitingEvent, took time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sweep = time.Now().Add(max(sweepEvery, sweepShare*took))
	for i, e := range found {
		if !f.remember(e.resource) || i == maxBehind-1 { // there may be more
			f.low = min(f.low, e.due)
			break
		}
	}
	f.names = jsonArray(f.resources)
}

func jsonArray(set map[string]struct{}) string {
	text, _ := json.Marshal(slices.AppendSeq(make([]string, 0, len(set)), maps.Keys(set))) //nolint:errchkjson // strings never fail
	return string(text)
}

// lookBehind moves the frontier, if that was not just done.
func (s *Store) lookBehind(ctx context.Context) error {
	f := &s.frontier
	if s.dialect != Postgres || !f.looks.due(lookEvery) {
		return nil
	}
	l := f.begin()
	var now int64
	if err := s.db.QueryRowContext(ctx, s.q.clock).Scan(&now); err != nil {
		return err
	}
	until := now - openLag.Milliseconds()
	found, err := s.waitingEvents(ctx, s.q.behind, l.from, until, l.names, maxBehind)
	if err != nil {
		return err
	}
	f.advance(l, until, found)
	if !f.sweepDue() {
		return nil
	}
	return s.startSweep(ctx)
}

// startSweep forgets the resources that have nothing waiting, and begins a sweep in
// the background: what it finds was late before it.
func (s *Store) startSweep(ctx context.Context) error {
	f := &s.frontier
	if !f.sweeping.CompareAndSwap(false, true) {
		return nil
	}
	l := f.begin()
	fronts, err := s.waitingEvents(ctx, s.q.fronts, l.names)
	if err != nil {
		f.sweeping.Store(false)
		return err
	}
	f.keep(fronts)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sweepTimeout)
	go func() {
		defer f.sweeping.Store(false)
		defer cancel()
		began := time.Now()
		found, err := s.sweep(ctx, f.begin())
		if err != nil {
			found = nil // the next sweep will find them
		}
		f.swept(found, time.Since(began))
	}()
	return nil
}

// sweep looks at everything behind the frontier.
func (s *Store) sweep(ctx context.Context, l look) (found []waitingEvent, err error) {
	if err := s.expire(ctx, 0); err != nil {
		return nil, err
	}
	return s.waitingEvents(ctx, s.q.behind, 0, l.low, l.names, maxBehind)
}

// expire returns the claims to their queue whose lease has run out, from a time on.
func (s *Store) expire(ctx context.Context, from int64) error {
	return s.try(ctx, func() error {
		_, err := s.db.ExecContext(ctx, s.q.expire, from)
		return err
	})
}

// waitingEvent is a waiting event as the frontier sees it.
type waitingEvent struct {
	due      int64
	resource string
	free     bool // no event of the resource is being handled
}

func (s *Store) waitingEvents(ctx context.Context, query string, args ...any) (found []waitingEvent, err error) {
	rows, err := s.db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // Err has what is to be known
	for rows.Next() {
		var e waitingEvent
		if err := rows.Scan(&e.due, &e.resource, &e.free); err != nil {
			return nil, err
		}
		found = append(found, e)
	}
	return found, rows.Err()
}
