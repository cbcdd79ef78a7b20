package sqlstore

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
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
// A statement that commits frontierLag after it began can break that, as can another
// session's lock on an event whose lease has run out. An occasional sweep finds both.
type frontier struct {
	mu        sync.Mutex
	low       int64 // Unix milliseconds of the database's clock, like leases
	leases    int64
	resources map[string]struct{}
	names     string    // the resources as a JSON array
	sweep     time.Time // when the next sweep is due
}

const (
	// frontierLag is more than a statement usually takes to commit, and than the
	// database's clock can be set back unnoticed.
	frontierLag = clockSlack

	// A sweep takes the longer the more vacuum could not remove: one in sweepEvery,
	// and at most one part in sweepShare of a process's time.
	sweepEvery = 10 * time.Second
	sweepShare = 50

	// maxBehind bounds the events that one look returns. There are about as many
	// resources to remember as handlers that run; more than maxResources hold the
	// frontier back.
	maxBehind    = 100
	maxResources = 1000
)

// look is what one look behind the frontier begins with.
type look struct {
	low, leases int64
	names       string
	sweeps      bool
}

// begin returns where to look from.
func (f *frontier) begin() look {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Now().Before(f.sweep) {
		return look{low: f.low, leases: f.leases, names: f.names}
	}
	return look{names: f.names, sweeps: true}
}

// front returns where the waiting events begin, and the resources that have
// others as a JSON array.
func (f *frontier) front() (low int64, names string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.low, f.names
}

// reset has the next look sweep, and scans begin at the start until then.
func (f *frontier) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.low, f.leases, f.sweep = 0, 0, time.Time{}
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
// first event found that can be claimed.
func (f *frontier) advance(l look, until int64, found []waitingEvent) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.resources == nil {
		f.resources = make(map[string]struct{})
	}
	passed := f.low
	if len(found) == maxBehind { // there may be more
		until = found[maxBehind-1].due
	}
	f.low, f.leases = max(l.low, until), max(l.leases, until)
	for _, e := range found {
		if (e.free && e.due >= passed) || len(f.resources) == maxResources {
			f.low = e.due
			break
		}
		f.resources[e.resource] = struct{}{}
	}
	f.names = jsonArray(f.resources)
}

func (f *frontier) swept(took time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sweep = time.Now().Add(max(sweepEvery, sweepShare*took))
}

func jsonArray(set map[string]struct{}) string {
	text, _ := json.Marshal(slices.AppendSeq(make([]string, 0, len(set)), maps.Keys(set))) //nolint:errchkjson // strings never fail
	return string(text)
}

// lookBehind returns the claims whose lease has run out to their queue and, on
// PostgreSQL, moves the frontier. now is the database's time.
func (s *Store) lookBehind(ctx context.Context, now int64) error {
	began, l := time.Now(), s.frontier.begin()
	err := s.try(ctx, func() error {
		_, err := s.db.ExecContext(ctx, s.q.expire, l.leases)
		return err
	})
	if err != nil || s.dialect != Postgres {
		return err
	}
	if l.sweeps {
		fronts, err := s.waitingEvents(ctx, s.q.fronts, l.names)
		if err != nil {
			return err
		}
		s.frontier.keep(fronts)
	}
	until := now - frontierLag.Milliseconds()
	found, err := s.waitingEvents(ctx, s.q.behind, l.low, until, l.names, maxBehind)
	if err != nil {
		return err
	}
	s.frontier.advance(l, until, found)
	if l.sweeps {
		s.frontier.swept(time.Since(began))
	}
	return nil
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
