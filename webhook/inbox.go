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
			newDispatcher(rx).run(context.Background())
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

// Nudge tells the workers of Inbox mode what a look at the store by someone else has found,
// such as one look for many accounts: whether an event of the account is due. If so, they look
// at once. Otherwise they skip their own looks in the next two PollIntervals, but not for more
// than five minutes in a row.
func (rx *Receiver) Nudge(due bool) {
	if due {
		rx.signalWork()
		return
	}
	rx.idleAt.Store(time.Now().UnixNano())
}

// toldIdle reports whether Nudge has said a short time ago that nothing is due.
func (rx *Receiver) toldIdle() bool {
	return time.Since(time.Unix(0, rx.idleAt.Load())) < 2*rx.cfg.PollInterval
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
