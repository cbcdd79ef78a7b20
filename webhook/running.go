package webhook

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Run is one run of a handler; see [Receiver.Running].
type Run struct {
	Key      string // the event's key in the Store
	EventID  string
	Kind     Kind
	Resource string // family and id
	Attempt  int
	Since    time.Time
	Overdue  bool // its context has ended, and it has not returned in time
}

// ErrPaused is returned by operations that are not available while the
// receiver is paused.
var ErrPaused = errors.New("webhook: the receiver is paused")

// errGoexit is the error of a handler that ends its goroutine, as a test's
// FailNow does.
var errGoexit = errors.New("webhook: the handler ended its goroutine with runtime.Goexit")

// longestGrace is how long a handler may take to return after its context has
// ended. If its timeout is shorter, that applies instead. After that the
// handler is hung.
const longestGrace = 5 * time.Second

// runs are the running handlers.
type runs struct {
	mu      sync.Mutex
	paused  bool
	all     map[*Claim]*run
	changed chan struct{} // closed by the next notify
}

type run struct {
	Run

	overdue chan struct{} // closed when it is
	alarm   *time.Timer
}

// add registers a run, unless the receiver is paused.
func (rs *runs) add(c *Claim) *run {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.paused {
		return nil
	}
	one := &run{overdue: make(chan struct{})}
	one.Run = Run{Key: c.Key, EventID: c.EventID, Kind: c.Kind, Resource: c.Resource, Attempt: c.begun(), Since: time.Now()}
	if rs.all == nil {
		rs.all = make(map[*Claim]*run)
	}
	rs.all[c] = one
	return one
}

func (rs *runs) remove(c *Claim) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if one := rs.all[c]; one.alarm != nil {
		one.alarm.Stop()
	}
	delete(rs.all, c)
}

// expect marks the claim's run as overdue after d. It replaces the previous
// deadline.
func (rs *runs) expect(c *Claim, d time.Duration) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	one := rs.all[c]
	switch {
	case one.Overdue:
	case one.alarm != nil:
		one.alarm.Reset(d)
	default:
		one.alarm = time.AfterFunc(d, func() { rs.expire(one) })
	}
}

func (rs *runs) expire(one *run) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if !one.Overdue { // a timer may fire twice if it is reset while it fires
		one.Overdue = true
		close(one.overdue)
	}
}

// watch returns a channel that the next notify closes.
func (rs *runs) watch() <-chan struct{} {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.changed == nil {
		rs.changed = make(chan struct{})
	}
	return rs.changed
}

// notify wakes the callers of Idle: a run may have ended and been reported.
func (rs *runs) notify() {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.changed != nil {
		close(rs.changed)
		rs.changed = nil
	}
}

func (rs *runs) list() []Run {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	list := make([]Run, 0, len(rs.all))
	for _, one := range rs.all {
		list = append(list, one.Run)
	}
	slices.SortFunc(list, func(a, b Run) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Key, b.Key)) })
	return list
}

func (rs *runs) pause(paused bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.paused = paused
}

func (rs *runs) isPaused() bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.paused
}

// Running lists the handlers that are running in this process, the longest
// running first. It shows which events hang.
func (rx *Receiver) Running() []Run { return rx.runs.list() }

// Pause stops handling events until [Receiver.Resume]. Running handlers are not
// affected; [Receiver.Idle] waits for them. In Inbox mode deliveries are still
// verified, stored and acknowledged. In Sync mode they get 503, and the gateway
// redelivers them: pause for minutes, not for days. Other processes are not paused.
func (rx *Receiver) Pause() { rx.runs.pause(true) }

// Resume ends a pause; see [Receiver.Pause].
func (rx *Receiver) Resume() {
	rx.runs.pause(false)
	rx.signalWork()
}

// Idle waits until no handler is running and the store has no due event that
// this process could handle. While the receiver is paused, it waits only for
// the running handlers. It is for tests, and for maintenance after
// [Receiver.Pause].
//
// Idle calls [Receiver.Start]. It returns ctx's error or [ErrShutdown].
func (rx *Receiver) Idle(ctx context.Context) error {
	began := time.Now()
	rx.Start() //nolint:contextcheck // the workers outlive the caller
	for {
		changed := rx.runs.watch()
		idle, err := rx.isIdle(ctx, began)
		if idle || err != nil {
			return err
		}
		again := time.NewTimer(rx.cfg.PollInterval) // a store that is down, or another process's event
		select {
		case <-changed:
		case <-again.C:
		case <-rx.quit:
			err = ErrShutdown
		case <-ctx.Done():
			err = ctx.Err()
		}
		again.Stop()
		if err != nil {
			return err
		}
	}
}

func (rx *Receiver) isIdle(ctx context.Context, since time.Time) (bool, error) {
	switch {
	case rx.cfg.Workers < 0 || rx.cfg.Mode == Sync && (rx.runs.isPaused() || !rx.cfg.Store.Durable()):
		return len(rx.Running()) == 0, ctx.Err()
	case rx.cfg.Mode == Sync:
		return rx.setAsideHandledSince(since) && len(rx.Running()) == 0, ctx.Err() //nolint:contextcheck // the search outlives the caller
	}
	query := make(chan bool, 1)
	select {
	case rx.idleQueries <- query:
		return <-query && len(rx.Running()) == 0, nil
	case <-rx.quit:
		return false, ErrShutdown
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// supervise handles a claimed event on a separate goroutine. If the handler
// hangs, supervise returns early, which frees the slot; the event stays claimed
// while the handler runs. At most MaxHung handlers can give up their slots;
// further ones keep them.
func (rx *Receiver) supervise(ctx context.Context, c *Claim, handle func(context.Context, *Claim) result) result {
	one := rx.runs.add(c)
	if one == nil {
		r := failure(c.Record, OutcomeReleased, ErrPaused)
		rx.settle(ctx, c, &r, false)
		return r
	}
	done := make(chan result, 1)
	rx.running.Add(1) // the caller is counted too, so no Wait has returned yet
	go rx.finish(ctx, c, handle, done)
	select {
	case r := <-done:
		return r
	case <-one.overdue:
	}
	r := outcome(c.Record, OutcomeHung)
	r.Attempt, r.Duration = c.begun(), time.Since(one.Since)
	select {
	case rx.hungSlots <- struct{}{}:
		r.Err = errHung
		rx.running.Add(1)
		go rx.awaitHung(ctx, one.Since, done)
		return r
	default:
		r.Err, r.FromWorker = errTooManyHung, true
		rx.report(ctx, r.Observation)
		return <-done
	}
}

var (
	errHung        = errors.New("webhook: the handler has not returned although its context ended; its event stays claimed until it does, see Running")
	errTooManyHung = errors.New("webhook: the handler has not returned although its context ended; MaxHung others hang too, so it keeps its worker or delivery")
)

// finish handles the event and sends the result.
func (rx *Receiver) finish(ctx context.Context, c *Claim, handle func(context.Context, *Claim) result, done chan<- result) {
	defer rx.running.Done()
	var r result
	returned := false
	defer func() {
		if !returned {
			r = rx.protected(ctx, c.Record, func() result {
				r := failure(c.Record, OutcomeHandled, errGoexit)
				r.Attempt = c.begun()
				rx.settle(ctx, c, &r, rx.cfg.Mode == Inbox && c.Attempt >= rx.cfg.MaxAttempts)
				return r
			})
		}
		rx.runs.remove(c)
		done <- r
	}()
	r = rx.protected(ctx, c.Record, func() result { return handle(ctx, c) })
	returned = true
}

// awaitHung reports the outcome of a hung handler when it returns.
func (rx *Receiver) awaitHung(ctx context.Context, since time.Time, done <-chan result) {
	defer rx.running.Done()
	r := <-done
	<-rx.hungSlots
	r.Duration, r.FromWorker = time.Since(since), true
	rx.report(ctx, r.Observation)
}

// logRunning names the handlers that a shutdown did not wait for.
func (rx *Receiver) logRunning(ctx context.Context) {
	for _, one := range rx.Running() {
		rx.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "webhook: a handler is still running after the shutdown",
			slog.String("event_id", one.EventID), slog.String("kind", string(one.Kind)), slog.String("resource", one.Resource),
			slog.Int("attempt", one.Attempt), slog.Duration("duration", time.Since(one.Since)), slog.Bool("overdue", one.Overdue))
	}
}
