package deliver

import (
	"context"
	"errors"
	"time"
)

// maxRounds limits how long a chain of webhooks is for which [Sender.Wait] waits: a
// receiver may cause a webhook, whose receiver causes another one.
const maxRounds = 100

// waiter waits for attempts.
type waiter struct {
	matches func(*delivery) bool
	jobs    map[*job]struct{} // for which it waits now
	later   map[*job]struct{} // which were queued in the meantime, perhaps because of jobs
	rounds  int
	idle    chan struct{} // closed when it is over
}

// joined notes a job that was queued while it waits.
func (w *waiter) joined(j *job) {
	if w.matches(j.d) {
		w.later[j] = struct{}{}
	}
}

// left notes that a job is done.
func (s *Sender) left(w *waiter, j *job) {
	delete(w.jobs, j)
	delete(w.later, j)
	if len(w.jobs) > 0 {
		return
	}
	if w.rounds++; len(w.later) > 0 && w.rounds < maxRounds {
		w.jobs, w.later = w.later, w.jobs
		return
	}
	s.over(w)
}

func (s *Sender) over(w *waiter) {
	if _, waits := s.waiters[w]; waits {
		delete(s.waiters, w)
		close(w.idle)
	}
}

// Wait returns when the attempts of an account that are due at the time of the call have
// been made, with those that become due until then, such as of webhooks that a receiver
// causes. "" is every account. It does not wait for held deliveries or for later
// attempts, and beside receivers that are never idle it returns after at most a hundred
// attempts of each.
func (s *Sender) Wait(ctx context.Context, account string) error {
	return s.waitFor(ctx, func(d *delivery) bool { return account == "" || d.Account == account })
}

// WaitFor is like [Sender.Wait], for the deliveries with the given ids.
func (s *Sender) WaitFor(ctx context.Context, ids ...string) error {
	chosen := map[string]bool{}
	for _, id := range ids {
		chosen[id] = true
	}
	return s.waitFor(ctx, func(d *delivery) bool { return chosen[d.ID] })
}

// WaitForEvent is like [Sender.Wait], for the deliveries of an event.
func (s *Sender) WaitForEvent(ctx context.Context, id string) error {
	return s.waitFor(ctx, func(d *delivery) bool { return d.EventID == id })
}

// ErrPatience means that webhooks were still being delivered when a [Patience] was used up.
var ErrPatience = errors.New("webhooks are still being delivered")

type patienceKey struct{}

// WithPatience returns a context whose calls of [Sender.Settle] return [ErrPatience] once
// d has passed. Call the function that it returns after them.
func WithPatience(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	waiting, cancel := context.WithTimeout(ctx, d)
	return context.WithValue(ctx, patienceKey{}, waiting), cancel
}

// Settle is [Sender.Wait] for all accounts; see [WithPatience].
func (s *Sender) Settle(ctx context.Context) error {
	waiting, limited := ctx.Value(patienceKey{}).(context.Context)
	if !limited {
		return s.Wait(ctx, "")
	}
	err := s.Wait(waiting, "") //nolint:contextcheck // derived from ctx by WithPatience
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return ErrPatience
	}
	return err
}

func (s *Sender) waitFor(ctx context.Context, matches func(*delivery) bool) error {
	w := &waiter{matches: matches, jobs: map[*job]struct{}{}, later: map[*job]struct{}{}, idle: make(chan struct{})}
	s.mu.Lock()
	for j := range s.active {
		if matches(j.d) {
			w.jobs[j] = struct{}{}
		}
	}
	if len(w.jobs) == 0 {
		s.mu.Unlock()
		return nil
	}
	if Inside() {
		s.mu.Unlock()
		return ErrInside
	}
	s.waiters[w] = struct{}{}
	s.mu.Unlock()
	select {
	case <-w.idle:
		return nil
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		s.over(w)
		return ctx.Err()
	}
}
