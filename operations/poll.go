package operations

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	mathrand "math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/gate"
	"github.com/gateway-go/gateway/internal/sqldb"
)

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Run works on the account's operations until ctx ends: it looks for those that are
// due, calls [Outbox.Work] for up to Config.Workers of them at a time, and sleeps until
// the next one is due. Any number of processes may run it on PostgreSQL, and those of
// one machine on SQLite. A process that serves several accounts calls Run of each.
//
// When ctx ends, Run starts no other operation, and waits for those that it works
// on, for at most SendTimeout and HandlerTimeout; then it returns nil. It returns an error
// at once if the database is not set up: a setting that could lose a commit, no
// account (see [Outbox.Migrate]), or [gateway.ErrAccountConflict]. Later failures of
// the database are logged, and the work is repeated.
func (o *Outbox[TX]) Run(ctx context.Context) error {
	if o.woken == nil {
		return errors.New("operations: an engine works on the operations of this outbox: Run is for an outbox of New")
	}
	known := o.store.digestKey.Load() != nil
	switch err := o.store.ready(ctx); {
	case err != nil && ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	}
	if known { // since when, package merchant may have got the account
		if err := o.store.own(ctx, o.store.db.Conn()); err != nil {
			return err
		}
	}
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	r := &runner{core: o.core, running: make(map[int64]bool), gate: gate.From(ctx), finished: make(chan struct{}, 1)}
	r.loop(ctx, work, o.woken)
	defer time.AfterFunc(o.config.SendTimeout, cancel).Stop()
	r.workers.Wait()
	return nil
}

// longestQuiet is how long [Outbox.Nudge] may keep Run from looking.
const longestQuiet = 5 * time.Minute

// Nudge tells [Outbox.Run] what a look at the table by someone else has found, such as one
// look for many accounts: whether an operation of the account is due. If so, Run looks at once.
// Otherwise it skips its own looks in the next two PollIntervals, but not for more than five
// minutes in a row.
func (o *Outbox[TX]) Nudge(due bool) {
	if due {
		signal(o.nudged)
		return
	}
	o.idleAt.Store(time.Now().UnixNano())
}

// toldIdle reports whether Nudge has said a short time ago that nothing is due.
func (o *core) toldIdle() bool {
	return time.Since(time.Unix(0, o.idleAt.Load())) < 2*o.config.PollInterval
}

// runner is one call of [Outbox.Run].
type runner struct {
	*core

	workers  sync.WaitGroup
	finished chan struct{} // has an element if a call of Work has ended

	mu      sync.Mutex
	running map[int64]bool
	failed  bool // the last look, or a call of Work since

	gate *gate.Gate // of the account; nil for none

	found   []dueOperation // of the last look that no worker has yet
	look    time.Time      // when to look again
	looked  time.Time
	quiet   bool          // nothing was due at the last look, and nothing has happened since
	blocked time.Duration // how long the first one waits at the gate; 0 if none does
}

// firstLook is when the runner looks for an operation that was inserted in a
// transaction of this process. It does not see the commit, so it looks again after
// twice the time, and so on.
const firstLook = 5 * time.Millisecond

// loop works until ctx ends; work is the context of the calls of Work.
func (r *runner) loop(ctx, work context.Context, woken <-chan struct{}) {
	interval := r.config.PollInterval
	soon := interval
	for ctx.Err() == nil {
		switch now := time.Now(); {
		case now.Before(r.look):
		case r.quiet && r.toldIdle() && now.Sub(r.looked) < longestQuiet:
			r.look = now.Add(interval)
		default:
			soon = min(2*soon, interval)
			r.find(ctx, soon)
		}
		var changed <-chan struct{}
		if len(r.found) > 0 { // before the gate is asked, so that no change is missed
			changed = r.gate.Changed()
		}
		idle := r.start(work)
		wait := time.Until(r.look)
		if r.blocked > 0 {
			wait = min(wait, r.blocked)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-changed:
		case <-woken:
			soon, r.quiet = firstLook/2, false
			r.lookIn(firstLook)
		case <-r.nudged:
			r.quiet = false
			r.lookIn(0)
		case <-r.finished:
			// An operation that waited for the finished one may be due.
			r.quiet = false
			if idle {
				r.lookIn(0)
			}
		}
		timer.Stop()
	}
}

// lookIn makes the next look happen in d or earlier, or in an interval if the
// database fails.
func (r *runner) lookIn(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at := time.Now().Add(d); at.Before(r.look) && !r.failed {
		r.look = at
	}
}

// find looks for due operations. The next look is when the next operation is due, or
// after the pause.
func (r *runner) find(ctx context.Context, pause time.Duration) {
	now := time.Now()
	limit := 4 * r.config.Workers // more than there are workers: other processes look too
	due, err := r.store.due(ctx, limit, pause)
	var newest []dueOperation
	if err == nil && len(due) == limit && due[limit-1].wait <= 0 {
		newest, err = r.store.newest(ctx, 2*r.config.Workers)
	}
	r.mu.Lock()
	r.failed = err != nil
	r.mu.Unlock()
	r.found, r.look, r.looked = r.found[:0], now.Add(pause), now
	r.quiet = err == nil && len(due) == 0 && pause == r.config.PollInterval
	if err != nil {
		r.look = now.Add(r.config.PollInterval)
		if ctx.Err() == nil {
			r.fail(ctx, 0, err)
		}
		return
	}
	for i, d := range due {
		if d.wait > 0 {
			r.look = now.Add(min(pause, d.wait))
			due = due[:i]
			break
		}
	}
	r.found = inTurn(due, newest)
}

// inTurn returns the operations in the order in which workers take them: in turn one of the
// newest, for which a buyer may be waiting, and one of those that have waited longest. The
// latter are in random order, because other processes look too.
func inTurn(due, newest []dueOperation) []dueOperation {
	if newest == nil {
		newest = slices.Clone(due)
	}
	slices.SortFunc(newest, func(a, b dueOperation) int { return cmp.Compare(b.id, a.id) })
	mathrand.Shuffle(len(due), func(i, j int) { due[i], due[j] = due[j], due[i] })
	list := make([]dueOperation, 0, len(due)+len(newest))
	taken := make(map[int64]bool)
	for len(due)+len(newest) > 0 {
		for _, from := range []*[]dueOperation{&newest, &due} {
			for len(*from) > 0 {
				d := (*from)[0]
				*from = (*from)[1:]
				if !taken[d.id] {
					taken[d.id] = true
					list = append(list, d)
					break
				}
			}
		}
	}
	return list
}

// start works on operations that were found. It returns whether there are workers
// without work.
func (r *runner) start(ctx context.Context) (idle bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blocked = 0
	var left []dueOperation
	for i, d := range r.found {
		if len(r.running) >= r.config.Workers {
			left = append(left, r.found[i:]...)
			break
		}
		if r.running[d.id] {
			continue
		}
		pass, wait := r.reserve(d)
		if wait > 0 {
			left = append(left, d)
			if r.blocked == 0 || wait < r.blocked {
				r.blocked = wait
			}
			continue
		}
		id := d.id
		r.running[id] = true
		r.workers.Go(func() {
			defer pass.End()
			_, _, err := r.work(pass.In(ctx), id)
			if err != nil {
				r.fail(ctx, id, err)
			}
			r.mu.Lock()
			delete(r.running, id)
			r.failed = r.failed || err != nil
			r.mu.Unlock()
			signal(r.finished)
		})
	}
	r.found = left
	return len(r.running) < r.config.Workers
}

// reserve asks the gate whether work on an operation may begin, or how long to wait.
func (r *runner) reserve(d dueOperation) (*gate.Pass, time.Duration) {
	if d.decided { // nothing is left to send
		return r.gate.Free(), 0
	}
	return r.gate.Reserve(d.kind, d.untried, d.created)
}

func (r *runner) fail(ctx context.Context, id int64, err error) {
	r.config.Logger.LogAttrs(ctx, slog.LevelError, "gateway: operations could not be worked on, and will be later",
		slog.String("account", r.store.account.Name), slog.Int64("id", id), slog.String("error", shown(err).Error()))
}

// dueOperation is an operation that a worker can claim after a wait.
type dueOperation struct {
	id      int64
	kind    string
	decided bool
	untried bool
	created time.Time // by the clock of this process
	wait    time.Duration
}

const dueColumns = `id, due_at - {now}, due_at - created_at, kind, state`

func scanDue(row database.Scanner) (d dueOperation, err error) {
	var wait, put int64
	var state string
	err = row.Scan(&d.id, &wait, &put, &d.kind, &state)
	d.decided, d.untried, d.wait = State(state) == Decided, put == 0, fromMS(wait)
	d.created = time.Now().Add(d.wait - fromMS(put))
	return d, err
}

// due returns operations that are due within a time, the first ones first.
func (s *store) due(ctx context.Context, limit int, within time.Duration) (list []dueOperation, err error) {
	err = s.db.ByIndex(ctx, func(c sqldb.Session) (err error) {
		list, err = sqldb.All(ctx, c, `SELECT `+dueColumns+` FROM `+table+` AS o WHERE account = ? AND `+open+`
			AND due_at <= {now} + ? AND (lease_until IS NULL OR lease_until < {now}) AND `+first+s.mayWork()+` ORDER BY due_at LIMIT ?`,
			[]any{s.account.Name, ms(within), limit}, scanDue)
		return err
	})
	return list, wrap(err)
}

// newest returns operations that are due, the last ones that became so first.
func (s *store) newest(ctx context.Context, limit int) (list []dueOperation, err error) {
	err = s.db.ByIndex(ctx, func(c sqldb.Session) (err error) {
		list, err = sqldb.All(ctx, c, `SELECT `+dueColumns+` FROM `+table+` AS o WHERE account = ? AND `+open+`
			AND due_at <= {now} AND (lease_until IS NULL OR lease_until < {now}) AND `+first+s.mayWork()+` ORDER BY due_at DESC LIMIT ?`,
			[]any{s.account.Name, limit}, scanDue)
		return err
	})
	return list, wrap(err)
}
