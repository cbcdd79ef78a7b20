package webhook

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// Start starts the workers of Inbox mode, which first handle the events that
// earlier processes left; otherwise the first delivery starts them. In Sync
// mode it handles the events that earlier processes had no handler for. It
// does nothing with negative Workers, or if it was called before. Register the
// handlers first.
func (rx *Receiver) Start() {
	if rx.cfg.Workers > 0 {
		rx.handleSetAside()
	}
	if rx.cfg.Mode != Inbox || rx.cfg.Workers < 0 {
		return
	}
	rx.started.Do(func() {
		if !rx.enter() {
			return
		}
		go func() {
			defer rx.running.Done()
			(&dispatcher{rx: rx, idle: rx.cfg.Workers, ended: make(chan struct{}, rx.cfg.Workers)}).run(context.Background())
		}()
	})
}

// wakeWorkers signals that there is work, without blocking.
func (rx *Receiver) wakeWorkers() {
	rx.Start()
	rx.signalWork()
}

func (rx *Receiver) signalWork() {
	select {
	case rx.wake <- struct{}{}:
	default: // a signal is already pending
	}
}

// dispatcher claims due events and passes each to a goroutine, up to a limit.
// It is used by one goroutine.
type dispatcher struct {
	rx    *Receiver
	idle  int           // workers without work
	ended chan struct{} // receives a value when a worker becomes idle
	fails int           // consecutive failures of the store

	claimed time.Time     // when the last claim ended
	took    time.Duration // its duration
	full    bool          // it returned an event for every idle worker

	looked time.Time // when unhandled events were last claimed
	more   bool      // there may be more of them
	turn   bool      // the last claim was for unhandled events: next are the others
}

// batchDelay is how long a few idle workers wait for others, and the longest
// time that a delivery waits for more deliveries, so that one claim serves
// many of them.
const batchDelay = 5 * time.Millisecond

// claimShare limits the share of time spent on claims while deliveries arrive
// one by one: at 800 a second, a claim for each would use half a processor.
const claimShare = 5

const longestPause = 30 * time.Second

func (d *dispatcher) run(ctx context.Context) {
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-d.rx.quit:
			return
		case <-d.rx.wake:
			next.Reset(d.delay())
		case <-d.ended:
			d.idle++
			next.Reset(d.delay())
		case query := <-d.rx.idleQueries:
			d.idle += drain(d.ended) // Idle may have been woken by the last of them
			d.looked, d.turn = time.Time{}, false
			next.Reset(d.claim(ctx))
			query <- d.idle == d.rx.cfg.Workers && d.fails == 0
		case <-next.C:
			next.Reset(d.claim(ctx))
			d.rx.purge(ctx)
		}
	}
}

// drain receives what ended already holds and returns how many values that were.
func drain(ended <-chan struct{}) (n int) {
	for {
		select {
		case <-ended:
			n++
		default:
			return n
		}
	}
}

// delay returns how long to wait before the next claim, once there is a reason
// for one. It counts from the last claim; otherwise continuous deliveries
// would delay the claim forever.
func (d *dispatcher) delay() time.Duration {
	apart := min(batchDelay, (claimShare-1)*d.took)
	switch {
	case d.fails > 0:
		apart = d.pause()
	case 2*d.idle < d.rx.cfg.Workers:
		apart = batchDelay
	case d.full:
		apart = 0
	}
	return apart - time.Since(d.claimed)
}

// pause returns how long to wait after a failure of the store.
func (d *dispatcher) pause() time.Duration {
	return min(d.rx.cfg.PollInterval<<min(d.fails-1, 5), longestPause)
}

// claim takes as many events as there are idle workers and returns how long to
// wait before the next claim.
func (d *dispatcher) claim(ctx context.Context) time.Duration {
	if d.idle == 0 || d.rx.runs.isPaused() {
		return d.rx.cfg.PollInterval // a finished run or Resume takes precedence
	}
	limit, began := d.idle, time.Now()
	claims, err := d.next(ctx, limit)
	d.claimed, d.full = time.Now(), len(claims) == limit
	d.took = d.claimed.Sub(began)
	if err != nil && len(claims) == 0 {
		d.fails++
		d.rx.cfg.Logger.LogAttrs(ctx, slog.LevelError, "webhook: the inbox can't be read", errorAttr(err))
		return d.pause()
	}
	d.fails = 0
	for _, c := range claims {
		d.idle--
		d.rx.running.Add(1) // the dispatcher is counted too, so no Wait has returned yet
		go d.work(ctx, c)
	}
	if d.full || d.more {
		return batchDelay // there may be more
	}
	return d.rx.cfg.PollInterval
}

// next claims up to limit events. Periodically it first claims events that
// other processes had no handler for, but not for all workers.
func (d *dispatcher) next(ctx context.Context, limit int) (claims []*Claim, err error) {
	look := !d.turn && (d.more || time.Since(d.looked) >= d.rx.cfg.PollInterval)
	d.turn = look
	if look {
		share := (limit + 1) / 2
		if claims, err = d.rx.nextUnhandled(ctx, share); err != nil {
			return nil, err
		}
		d.looked, d.more = time.Now(), len(claims) == share
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

func (d *dispatcher) work(ctx context.Context, c *Claim) {
	defer func() {
		d.ended <- struct{}{} // there is room for every worker
		d.rx.runs.notify()
		d.rx.running.Done()
	}()
	d.rx.work(ctx, c)
}

// work handles an event in the background.
func (rx *Receiver) work(ctx context.Context, c *Claim) {
	started := time.Now()
	ctx = rx.opened(ctx, c)
	r := rx.protected(ctx, c.Record, func() result { return rx.begin(ctx, c) })
	r.Duration, r.FromWorker = time.Since(started), true
	rx.report(ctx, r.Observation)
}

// Work claims the stored event with that key and handles it, like a worker of
// Inbox mode. It is for a Store that schedules its own events, such as the one
// in contrib/river, with negative Workers. Claim may return an earlier event
// of the resource, which is handled instead.
//
// Work returns the claim that was handled; the Store has its outcome. If
// nothing could be claimed, the claim is nil and the Entry says why. When ctx
// ends, the handler's context ends too, and the event is released.
func (rx *Receiver) Work(ctx context.Context, key string) (claim *Claim, entry Entry, err error) {
	if !rx.enter() {
		return nil, Entry{}, ErrShutdown
	}
	defer rx.running.Done()
	err = rx.guarded(ctx, "Store.Claim", func() (err error) {
		claim, entry, err = rx.cfg.Store.Claim(ctx, key, rx.cfg.Lease)
		return err
	})
	if err != nil || claim == nil {
		return nil, entry, err
	}
	running, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	defer context.AfterFunc(ctx, func() { end(ErrShutdown) })()
	rx.work(running, claim)
	return claim, entry, nil
}

// begin handles a claimed event, unless the receiver has been shut down in the
// meantime.
func (rx *Receiver) begin(ctx context.Context, c *Claim) result {
	if rx.stopping() {
		r := failure(c.Record, OutcomeReleased, ErrShutdown)
		rx.settle(ctx, c, &r, false)
		return r
	}
	return rx.supervise(ctx, c, rx.handle)
}

func (rx *Receiver) stopping() bool {
	select {
	case <-rx.quit:
		return true
	default:
		return false
	}
}

// maxMissing limits how many logged kinds are remembered.
const maxMissing = 100

// missing logs once per kind that it has no handler.
func (rx *Receiver) missing(ctx context.Context, family Family, kind Kind) {
	r := route{family, kind}
	rx.mu.Lock()
	_, logged := rx.unrouted[r]
	logged = logged || len(rx.unrouted) >= maxMissing
	if !logged {
		rx.unrouted[r] = struct{}{}
	}
	rx.mu.Unlock()
	if !logged {
		rx.cfg.Logger.LogAttrs(ctx, slog.LevelWarn,
			"webhook: there is no handler for this kind; its events are kept, see Counts: register a handler, or use Ignore",
			slog.String("family", string(family)), slog.String("kind", string(kind)))
	}
}

// setAside is the state of Sync mode's search for events that other processes
// set aside.
type setAside struct {
	mu      sync.Mutex
	running bool
	began   time.Time // the last search
	err     error     // of the last search
}

// handleSetAside handles, in Sync mode and in the background, the events that other
// processes set aside: they were acknowledged, so they are not redelivered. In Inbox
// mode the workers do that, and a memory store has no other processes.
func (rx *Receiver) handleSetAside() {
	if rx.cfg.Mode == Sync && rx.cfg.Store.Durable() {
		_ = rx.setAsideHandledSince(time.Now().Add(-rx.cfg.PollInterval))
	}
}

// setAsideHandledSince reports whether a search that began at that time or later has
// handled all such events. If not, it starts one, unless one is running or has
// just failed.
func (rx *Receiver) setAsideHandledSince(earliest time.Time) bool {
	s := &rx.setAside
	s.mu.Lock()
	defer s.mu.Unlock()
	handled := !s.running && s.err == nil && !s.began.Before(earliest)
	failed := s.err != nil && !errors.Is(s.err, ErrPaused) && time.Since(s.began) < rx.cfg.PollInterval
	if handled || s.running || failed || !rx.enter() {
		return handled
	}
	s.running, s.began = true, time.Now()
	go func() {
		defer rx.running.Done()
		err := rx.searchSetAside(context.Background())
		s.mu.Lock()
		s.running, s.err = false, err
		s.mu.Unlock()
		rx.runs.notify()
	}()
	return false
}

// searchSetAside handles such events until there is none, or returns why it can't.
func (rx *Receiver) searchSetAside(ctx context.Context) error {
	for !rx.stopping() && !rx.runs.isPaused() {
		claims, err := rx.nextUnhandled(ctx, 1)
		if err != nil {
			rx.cfg.Logger.LogAttrs(ctx, slog.LevelError, "webhook: the unhandled events can't be read", errorAttr(err))
		}
		if len(claims) == 0 {
			return err
		}
		rx.work(ctx, claims[0])
	}
	return ErrPaused
}

func (rx *Receiver) nextUnhandled(ctx context.Context, limit int) (claims []*Claim, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	err = rx.guarded(ctx, "Store.NextUnhandled", func() error {
		claims, err = rx.cfg.Store.NextUnhandled(ctx, rx.handles, limit, rx.cfg.Lease)
		return err
	})
	return claims, err
}
