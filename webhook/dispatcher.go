package webhook

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// dispatcher claims due events and passes each to a worker: a goroutine, of which
// there is a limited number. Its fields are used by one goroutine, and those of
// the search by the claim that is running, of which there is one at a time.
//
// A claim costs the store about as much for many events as for a few, and takes
// longer than most handlers. So the dispatcher claims in the background, and ahead:
// some events are ready for the workers that will become idle next.
type dispatcher struct {
	rx    *Receiver
	idle  int            // workers without work
	ended chan workerEnd // receives a value when a worker becomes idle
	fails int            // consecutive failures of the store

	due      time.Time        // when the next claim begins
	claiming bool             // a claim is running
	again    bool             // there has been a reason for another one since it began
	results  chan claimResult // of claims
	claimed  time.Time        // when the last claim ended
	took     time.Duration    // its duration
	full     bool             // it returned as many events as it could
	quiet    bool             // nothing was due at the last claim, and nothing has happened since

	ready   []readyEvent // in order
	started [2]int       // events passed to workers in this window and the one before
	window  time.Time    // when this window began
	fast    atomic.Bool  // each worker handles more than one event in two windows
	suspect bool         // a worker handles a suspect

	unsettled chan struct{} // has an element for each worker that stores an outcome and is no longer counted

	search search
}

// search is the dispatcher's search for events that no process had a handler for.
type search struct {
	looked time.Time // when they were last claimed
	more   bool      // there may be more of them
	turn   bool      // the last claim was for them: next are the others
}

type workerEnd struct {
	stored  bool // the outcome is stored
	suspect bool // see isSuspect
}

type claimResult struct {
	claims []*Claim
	limit  int
	began  time.Time
	err    error
}

type readyEvent struct {
	claim *Claim
	since time.Time
}

const (
	// batchDelay is how long a few idle workers wait for others, and the longest
	// time that a delivery waits for more deliveries, so that one claim serves
	// many of them.
	batchDelay = 5 * time.Millisecond

	// claimShare limits the share of time spent on claims while deliveries arrive
	// one by one: at 800 a second, a claim for each would use half a processor.
	claimShare = 5

	longestPause = 30 * time.Second

	// longestQuiet is how long [Receiver.Nudge] may keep the dispatcher from looking.
	longestQuiet = 5 * time.Minute

	// As many events are claimed ahead as were handled in the last two windows,
	// up to maxReady. Workers that are slow get none: an event that is ready is
	// not available to other processes.
	aheadWindow = 20 * time.Millisecond
	maxReady    = 512

	// readyTimeout is how long an event may be ready. After that it is released.
	readyTimeout = time.Second

	// maxUnsettled limits the outcomes that are stored while their workers already
	// handle the next events. After a crash, that many events more may be handled
	// again.
	maxUnsettled = 256
)

func newDispatcher(rx *Receiver) *dispatcher {
	return &dispatcher{
		rx: rx, idle: rx.cfg.Workers, ended: make(chan workerEnd, rx.cfg.Workers),
		results: make(chan claimResult), unsettled: make(chan struct{}, maxUnsettled),
	}
}

func (d *dispatcher) run(ctx context.Context) {
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		next.Reset(d.wait())
		select {
		case <-d.rx.quit:
			d.stop(ctx)
			return
		case <-d.rx.wake:
			d.claimSoon()
		case end := <-d.ended:
			d.end(end)
			d.feed(ctx)
			// Before its outcome is stored, the next event of the resource can't
			// be claimed.
			if end.stored || d.full {
				d.claimSoon()
			}
		case r := <-d.results:
			d.take(ctx, r)
		case query := <-d.rx.idleQueries:
			query <- d.isIdle(ctx)
		case <-next.C:
			d.releaseOld(ctx)
			d.claim(ctx)
			d.rx.purge(ctx)
		}
	}
}

// stop releases the events that no worker has begun.
func (d *dispatcher) stop(ctx context.Context) {
	var claims []*Claim
	if d.claiming {
		claims = (<-d.results).claims
	}
	for _, r := range d.ready {
		claims = append(claims, r.claim)
	}
	d.release(ctx, claims)
}

// isIdle reports whether all workers are idle and the store has no event for them.
func (d *dispatcher) isIdle(ctx context.Context) bool {
	if d.claiming {
		d.take(ctx, <-d.results)
	}
	for more := true; more; { // Idle may have been woken by the last of them
		select {
		case end := <-d.ended:
			d.end(end)
		default:
			more = false
		}
	}
	d.feed(ctx)
	d.search.looked, d.search.turn, d.due, d.quiet = time.Time{}, false, time.Time{}, false
	if d.claim(ctx); d.claiming {
		d.take(ctx, <-d.results)
	}
	return d.idle == d.rx.cfg.Workers && d.fails == 0
}

// end counts a worker as idle.
func (d *dispatcher) end(e workerEnd) {
	d.idle++
	d.suspect = d.suspect && !e.suspect
}

// freeExpiries is how many expired leases of an event in a row do not count as
// attempts.
const freeExpiries = 2

// isSuspect reports whether an event may have made more than one process crash. So
// may those that were handled at the same time as the one that did. Each suspect is
// handled while no other one is claimed, and if its lease expires too, that counts.
func isSuspect(c *Claim) bool { return c.Expired >= freeExpiries }

// wait returns how long nothing needs to be done.
func (d *dispatcher) wait() time.Duration {
	wait := longestPause
	if !d.claiming {
		wait = time.Until(d.due)
	}
	if len(d.ready) > 0 {
		wait = min(wait, time.Until(d.ready[0].since)+readyTimeout)
	}
	return wait
}

// claimSoon makes the next claim due once there is a reason for one. The delay
// counts from the last claim; otherwise continuous deliveries would delay the
// claim forever.
func (d *dispatcher) claimSoon() {
	d.again, d.quiet = d.claiming, false
	apart := min(batchDelay, (claimShare-1)*d.took)
	switch {
	case d.fails > 0:
		apart = d.pause()
	case d.full && d.ahead() > 0 && !d.supplied():
		apart = 0 // before the workers run out of events
	case 2*d.idle < d.rx.cfg.Workers:
		apart = batchDelay
	case d.full:
		apart = 0
	}
	d.due = d.claimed.Add(apart)
}

// pause returns how long to wait after a failure of the store.
func (d *dispatcher) pause() time.Duration {
	return min(d.rx.cfg.PollInterval<<min(d.fails-1, 5), longestPause)
}

// claim begins to claim events for the idle workers and some ahead, if it is due.
func (d *dispatcher) claim(ctx context.Context) {
	if d.claiming || time.Until(d.due) > 0 {
		return
	}
	if d.quiet && d.rx.toldIdle() && time.Since(d.claimed) < longestQuiet {
		d.due = time.Now().Add(d.rx.cfg.PollInterval)
		return
	}
	if d.suspect {
		d.due = time.Now().Add(d.rx.cfg.PollInterval) // its end takes precedence
		return
	}
	if d.rx.runs.isPaused() {
		d.releaseReady(ctx, len(d.ready))
		d.due = time.Now().Add(d.rx.cfg.PollInterval) // Resume takes precedence
		return
	}
	if d.supplied() {
		d.due = time.Now().Add(d.rx.cfg.PollInterval) // a worker that becomes idle takes precedence
		return
	}
	limit := d.idle + max(0, d.ahead()-len(d.ready))
	if limit == 0 {
		d.due = time.Now().Add(d.rx.cfg.PollInterval) // a worker that becomes idle takes precedence
		return
	}
	d.claiming, d.again = true, false
	go func() {
		began := time.Now()
		claims, err := d.next(ctx, limit)
		d.results <- claimResult{claims, limit, began, err}
	}()
}

// take passes claimed events to workers, and keeps some ready. A suspect is not kept:
// another event that makes this process crash would use up its attempts.
func (d *dispatcher) take(ctx context.Context, r claimResult) {
	d.claiming, d.claimed, d.full = false, time.Now(), len(r.claims) == r.limit
	d.took = d.claimed.Sub(r.began)
	if r.err != nil && len(r.claims) == 0 {
		d.fails++
		d.rx.cfg.Logger.LogAttrs(ctx, slog.LevelError, "webhook: the inbox can't be read", errorAttr(r.err))
		d.due = d.claimed.Add(d.pause())
		return
	}
	d.fails = 0
	var suspect *Claim
	var back []*Claim
	for _, c := range r.claims {
		switch {
		case d.idle > 0 && suspect == nil && isSuspect(c):
			suspect = c
			d.idle-- // until it is started
		case d.idle > 0 && !isSuspect(c):
			d.start(ctx, c)
		case !isSuspect(c):
			d.ready = append(d.ready, readyEvent{c, d.claimed})
		default:
			back = append(back, c)
		}
	}
	d.due = d.claimed.Add(d.rx.cfg.PollInterval)
	d.quiet = len(r.claims) == 0 && r.err == nil && !d.full && !d.search.more
	if d.full || d.search.more {
		d.due = d.claimed.Add(batchDelay) // there may be more
	}
	if d.again {
		d.claimSoon()
	}
	d.release(ctx, back)
	if suspect != nil { // no other one is claimed any more
		d.idle, d.suspect = d.idle+1, true
		d.start(ctx, suspect)
	}
}

// feed passes ready events to idle workers.
func (d *dispatcher) feed(ctx context.Context) {
	for d.idle > 0 && len(d.ready) > 0 && !d.rx.runs.isPaused() {
		c := d.ready[0].claim
		d.ready = d.ready[1:]
		d.start(ctx, c)
	}
}

// start passes an event to a worker.
func (d *dispatcher) start(ctx context.Context, c *Claim) {
	d.idle--
	d.windows()
	d.started[0]++
	d.fast.Store(d.started[0]+d.started[1] > d.rx.cfg.Workers)
	d.rx.running.Add(1) // the dispatcher is counted too, so no Wait has returned yet
	go d.work(ctx, c)
}

// windows begins a new window if the current one has ended.
func (d *dispatcher) windows() {
	switch age := time.Since(d.window); {
	case age < aheadWindow:
		return
	case age < 2*aheadWindow:
		d.started = [2]int{0, d.started[0]}
	default:
		d.started = [2]int{}
	}
	d.window = time.Now()
}

// ahead returns how many events should be ready.
func (d *dispatcher) ahead() int {
	d.windows()
	n := d.started[0] + d.started[1]
	if n <= d.rx.cfg.Workers || d.rx.cfg.Lease < 4*readyTimeout {
		return 0
	}
	return min(n, maxReady)
}

// supplied reports whether there are so many ready events that the next claim can wait,
// and be larger.
func (d *dispatcher) supplied() bool { return d.full && 2*len(d.ready) > d.ahead() }

// releaseOld releases the events that have been ready for too long.
func (d *dispatcher) releaseOld(ctx context.Context) {
	n := 0
	for n < len(d.ready) && time.Since(d.ready[n].since) >= readyTimeout {
		n++
	}
	d.releaseReady(ctx, n)
}

// releaseReady releases the first n ready events.
func (d *dispatcher) releaseReady(ctx context.Context, n int) {
	claims := make([]*Claim, n)
	for i, r := range d.ready[:n] {
		claims[i] = r.claim
	}
	d.ready = d.ready[n:]
	d.release(ctx, claims)
}

// release returns events that were not begun to the store. If that fails, their
// leases expire.
func (d *dispatcher) release(ctx context.Context, claims []*Claim) {
	if len(claims) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	var all sync.WaitGroup
	for _, c := range claims {
		all.Go(func() {
			err := d.rx.guarded(ctx, "Store.Settle", func() error { return d.rx.cfg.Store.Settle(ctx, c, released) })
			if err != nil {
				d.rx.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "webhook: an event could not be released", slog.String("event_id", c.EventID), errorAttr(err))
			}
		})
	}
	all.Wait()
}

// next claims up to limit events. Periodically it first claims events that
// other processes had no handler for, but not for all workers.
func (d *dispatcher) next(ctx context.Context, limit int) (claims []*Claim, err error) {
	s := &d.search
	look := !s.turn && (s.more || time.Since(s.looked) >= d.rx.cfg.PollInterval)
	s.turn = look
	if look {
		share := (limit + 1) / 2
		if claims, err = d.rx.nextUnhandled(ctx, share); err != nil {
			return nil, err
		}
		s.looked, s.more = time.Now(), len(claims) == share
		limit -= len(claims)
	}
	if limit == 0 {
		return claims, nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	err = d.rx.guarded(ctx, "Store.Next", func() error {
		due, err := d.rx.cfg.Store.Next(ctx, limit, d.rx.cfg.Lease)
		claims = append(claims, due...)
		return err
	})
	return claims, err
}

// workerKey is the key of a function in a worker's context: the handler has
// returned, and the worker may handle the next event while the outcome is stored.
type workerKey struct{}

func (d *dispatcher) work(ctx context.Context, c *Claim) {
	suspect := isSuspect(c)
	var (
		mu       sync.Mutex
		over     bool
		settling bool // the worker is idle, and the outcome is not stored yet
	)
	returned := func() {
		mu.Lock()
		defer mu.Unlock()
		// The worker of a hung handler has become idle already. With slow handlers
		// there is nothing to gain, and the next event of this resource may be the
		// first. The outcome of a suspect must be stored before the next one
		// is handled.
		if over || suspect || !d.fast.Load() {
			return
		}
		select {
		case d.unsettled <- struct{}{}:
			settling = true
			d.ended <- workerEnd{suspect: suspect} // there is room for every worker
		default:
		}
	}
	d.rx.work(context.WithValue(ctx, workerKey{}, returned), c)
	mu.Lock()
	defer mu.Unlock()
	over = true
	if settling {
		<-d.unsettled
		d.rx.signalWork() // the next event of the resource can be claimed now
	} else {
		d.ended <- workerEnd{stored: true, suspect: suspect}
	}
	d.rx.runs.notify()
	d.rx.running.Done()
}

// freeWorker is called when a handler has returned.
func freeWorker(ctx context.Context) {
	if returned, ok := ctx.Value(workerKey{}).(func()); ok {
		returned()
	}
}
