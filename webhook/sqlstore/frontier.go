package sqlstore

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/sqldb"
)

// frontier is the time before which a PostgreSQL queue has no work left. While
// a session holds a snapshot, vacuum can't remove events that were handled
// since, and a scan in due order would read all of their dead rows. Each
// process therefore remembers how far it has got:
//
//   - no waiting event is due before low, except events of the listed
//     resources, which had another event being handled when low passed them;
//   - no lease expires before leases.
//
// Three things can break this: a transaction that was still open when low
// passed its event, a clock that was set back, and another session's lock on
// an event whose lease has expired. Each look starts at settled, well before
// low, and finds most of these events; an occasional sweep finds the rest. The
// sweep reads all the rows that vacuum could not remove, so it runs in the
// background. Until it finishes such an event is delayed, but later events of
// its resource can't overtake it, because a claim checks that no earlier event
// of the resource is waiting (see nextFrom).
type frontier struct {
	looks    pace
	sweeping atomic.Bool // limits sweeps to one at a time

	mu        sync.Mutex
	low       int64 // Unix milliseconds of the database's clock, like settled and leases
	settled   int64
	leases    int64
	resources map[string]struct{}
	names     string    // the resources as a JSON array
	sweep     time.Time // when the next sweep is due
}

const (
	// low stays at least openLag behind the clock, and advances every
	// lookEvery: claims scan the events handled since low. openLag exceeds the
	// usual time between a statement and its commit.
	lookEvery = 100 * time.Millisecond
	openLag   = 100 * time.Millisecond

	// settledLag exceeds the time between a statement and its commit on a busy
	// host, and the largest step back of the database's clock that goes
	// undetected.
	settledLag = clockSlack

	// A sweep takes longer the more rows vacuum could not remove. Sweeps run
	// at most once per sweepEvery, and take at most 1/sweepShare of the time.
	sweepEvery   = 10 * time.Second
	sweepShare   = 50
	sweepTimeout = 5 * time.Minute

	// maxBehind limits the events that one look returns. About as many
	// resources are remembered as there are running handlers; beyond
	// maxResources the frontier stops advancing.
	maxBehind    = 100
	maxResources = 1000
)

// look is the starting point of one look behind the frontier.
type look struct {
	low   int64
	from  int64 // at most low
	names string
}

// begin returns the starting point of the next look.
func (f *frontier) begin() look {
	f.mu.Lock()
	defer f.mu.Unlock()
	return look{low: f.low, from: min(f.low, f.settled), names: f.names}
}

// front returns the due time from which to scan waiting events, and the
// resources that have earlier ones as a JSON array.
func (f *frontier) front() (low int64, names string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.low, f.names
}

// ended returns the earliest time at which an unprocessed lease may have
// expired.
func (f *frontier) ended() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.leases
}

// expired advances leases after the leases that expired before now were
// processed.
func (f *frontier) expired(before, now int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.leases == before {
		f.leases = max(before, now-settledLag.Milliseconds())
	}
}

// reset makes the next look start from the beginning.
func (f *frontier) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.low, f.settled, f.leases = 0, 0, 0
}

// keep forgets all resources but these, which have waiting events.
func (f *frontier) keep(resources []waitingEvent) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.resources = make(map[string]struct{}, len(resources))
	for _, e := range resources {
		f.resources[e.resource] = struct{}{}
	}
	f.names = jsonArray(f.resources)
}

// advance moves the frontier to until, the end of the range that was read, or
// to the first claimable event in it. If a sweep or a reset has moved the
// frontier back in the meantime, it stays.
func (f *frontier) advance(l look, until int64, found []waitingEvent) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.low < l.low {
		return
	}
	if len(found) == maxBehind { // there may be more
		until = found[maxBehind-1].due
	}
	if l.low == 0 { // the look read everything, as a sweep does
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

// remember adds a resource that has events before low. It returns false if
// there is no room.
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

// sweepDue reports whether a sweep is due.
func (f *frontier) sweepDue() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.low > 0 && !time.Now().Before(f.sweep)
}

// swept records the events that a sweep found before low.
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

// lookBehind advances the frontier, at most once per lookEvery.
func (s *core) lookBehind(ctx context.Context) error {
	f := &s.frontier
	if s.sqlite() || !f.looks.due(lookEvery) {
		return nil
	}
	l := f.begin()
	var now int64
	if _, err := s.conn().First(ctx, s.q.clock, nil, sqldb.Into(&now)); err != nil {
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

// startSweep forgets the resources that have no waiting events, and starts a
// sweep in the background. Claims need not wait for it: the events that it
// finds are already late.
func (s *core) startSweep(ctx context.Context) error {
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

// sweep reads everything behind the frontier.
func (s *core) sweep(ctx context.Context, l look) (found []waitingEvent, err error) {
	if err := s.expire(ctx, 0); err != nil {
		return nil, err
	}
	return s.waitingEvents(ctx, s.q.behind, 0, l.low, l.names, maxBehind)
}

// expire returns claims whose lease expired at or after from to their queue.
func (s *core) expire(ctx context.Context, from int64) error {
	return s.byIndex(ctx, func(tx sqldb.Session) error {
		_, err := tx.Exec(ctx, s.q.expire, from)
		return err
	})
}

// waitingEvent has the columns of a waiting event that the frontier needs.
type waitingEvent struct {
	due      int64
	resource string
	free     bool // no event of the resource is being handled
}

func (s *core) waitingEvents(ctx context.Context, query string, args ...any) (found []waitingEvent, err error) {
	err = s.byIndex(ctx, func(tx sqldb.Session) error {
		found, err = sqldb.All(ctx, tx, query, args, func(row database.Scanner) (e waitingEvent, err error) {
			err = row.Scan(&e.due, &e.resource, &e.free)
			return e, err
		})
		return err
	})
	return found, err
}
