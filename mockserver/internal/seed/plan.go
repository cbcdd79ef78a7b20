package seed

import (
	"slices"
	"strconv"
	"time"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// machine has the transitions of a kind of resource: those that a merchant,
// payer or bank can cause, and those of timers. They are the engine's own, so
// they lead only to states that the gateway can reach.
type machine[R any] struct {
	status  func(*R) string
	key     func(*R) string          // distinguishes resources with different futures at the same time
	changed func(engine.Change) []*R // the resources of this kind in a change
	actions []store.Transition[R]
	fire    func(env engine.Env, r *R, kind engine.TimerKind) engine.Change
	// apply runs an action on the stored resource.
	apply func(a *store.Account, id string, do store.Transition[R]) (*R, *engine.Refusal)
}

// step is an action and the time at which it happens.
type step struct {
	at time.Time
	do func(a *store.Account, id string) *engine.Refusal
}

// future is a resource at a time, how it got there, and its timers.
type future[R any] struct {
	r      *R
	at     time.Time
	timers []engine.Timer
	steps  []step
}

// The limits of the search. A resource has about ten states, but years of renewals
// have thousands of points in time: the search starts from the creation and the
// latest ones.
const (
	maxFutures = 2000
	maxPoints  = 20000
	latest     = 40
)

// plan finds a short sequence of steps after which a new resource is in the target
// state at the end. If there is none, it returns the states that are possible then.
func (m machine[R]) plan(env engine.Env, from future[R], end time.Time, target string) (steps []step, possible []string) {
	points := []future[R]{from} // the futures without any action
	for f, moved := m.wait(env, from, end); moved && len(points) < maxPoints; f, moved = m.wait(env, f, end) {
		points = append(points, f)
	}
	queue := append(points[:1:1], points[max(1, len(points)-latest):]...)
	ends, seen := map[string]string{}, map[string]bool{}
	for len(queue) > 0 && len(seen) < maxFutures {
		f := queue[0]
		queue = queue[1:]
		key := m.point(f)
		if seen[key] {
			continue
		}
		seen[key] = true
		last := m.final(env, f, end, ends)
		if last == target {
			return f.steps, nil
		}
		if !slices.Contains(possible, last) {
			possible = append(possible, last)
		}
		env.Now = f.at
		for _, do := range m.actions {
			if c, refusal := do(env, f.r); refusal == nil {
				next := m.after(f, c)
				next.steps = append(slices.Clip(f.steps), step{f.at, func(a *store.Account, id string) *engine.Refusal {
					_, refusal := m.apply(a, id, do)
					return refusal
				}})
				queue = append(queue, next)
			}
		}
		if next, ok := m.wait(env, f, end); ok {
			queue = append(queue, next)
		}
	}
	slices.Sort(possible)
	return nil, possible
}

// point identifies a state of the resource at a time.
func (m machine[R]) point(f future[R]) string { return m.key(f.r) + " " + f.at.String() }

// after returns the future after a change.
func (m machine[R]) after(f future[R], c engine.Change) future[R] {
	if list := m.changed(c); len(list) > 0 {
		f.r = list[len(list)-1]
	}
	f.timers = append(slices.Clip(f.timers), c.Timers...)
	return f
}

// wait advances the time to the next timer that changes the resource.
func (m machine[R]) wait(env engine.Env, f future[R], end time.Time) (future[R], bool) {
	for len(f.timers) > 0 {
		i := 0
		for j, t := range f.timers {
			if t.At.Before(f.timers[i].At) {
				i = j
			}
		}
		t := f.timers[i]
		if t.At.After(end) {
			break
		}
		f.timers = slices.Delete(slices.Clone(f.timers), i, i+1)
		f.at = later(f.at, t.At)
		env.Now = f.at
		if c := m.fire(env, f.r, t.Kind); !c.Empty() {
			return m.after(f, c), true
		}
	}
	return f, false
}

// final returns the state that a future reaches at the end without further
// actions. ends caches the results of other futures.
func (m machine[R]) final(env engine.Env, f future[R], end time.Time, ends map[string]string) (status string) {
	var walked []string
	for {
		key := m.point(f)
		if known, ok := ends[key]; ok {
			status = known
			break
		}
		walked = append(walked, key)
		next, moved := m.wait(env, f, end)
		if !moved || len(walked) == maxPoints {
			status = m.status(f.r)
			break
		}
		f = next
	}
	for _, key := range walked {
		ends[key] = status
	}
	return status
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func transactions(env engine.Env, refunded int64) machine[engine.Transaction] {
	refund := func(amount func(t *engine.Transaction) int64) store.Transition[engine.Transaction] {
		return func(env engine.Env, t *engine.Transaction) (engine.Change, *engine.Refusal) {
			return engine.Refund(env, t, engine.RefundRequest{Amount: amount(t)})
		}
	}
	m := machine[engine.Transaction]{
		status:  func(t *engine.Transaction) string { return t.Status },
		key:     func(t *engine.Transaction) string { return t.Status + strconv.FormatInt(t.RefundedAmount, 10) },
		changed: func(c engine.Change) []*engine.Transaction { return c.Transactions },
		actions: []store.Transition[engine.Transaction]{
			engine.Pay, engine.PassChallenge, engine.FailChallenge, engine.Refuse, engine.Cancel, engine.Expire, engine.Chargeback,
			refund(func(*engine.Transaction) int64 { return 0 }),
			refund(func(t *engine.Transaction) int64 {
				if refunded > 0 {
					return refunded
				}
				return max(t.PaidAmount/2, 1)
			}),
		},
		fire: func(env engine.Env, t *engine.Transaction, kind engine.TimerKind) engine.Change {
			c, _ := engine.TransactionTimer(kind)(env, t) // empty if the engine rejects it
			return c
		},
		apply: (*store.Account).Transaction,
	}
	if env.Dialect.Live(spec.TransactionStates) && env.Sandbox { // states that only the sandbox can set
		for status := range spec.LiveTransactionStatuses.All() {
			if !spec.TransactionStatuses.Has(status) && status != "three_ds_required" {
				m.actions = append(m.actions, func(env engine.Env, t *engine.Transaction) (engine.Change, *engine.Refusal) {
					return engine.SetStatus(env, t, status)
				})
			}
		}
	}
	return m
}

func transfers() machine[engine.Transfer] {
	return machine[engine.Transfer]{
		status:  func(t *engine.Transfer) string { return t.Status },
		key:     func(t *engine.Transfer) string { return t.Status },
		changed: func(c engine.Change) []*engine.Transfer { return c.Transfers },
		actions: []store.Transition[engine.Transfer]{
			engine.AnalyseTransfer, engine.ProcessTransfer, engine.SettleTransfer, engine.FailTransfer, engine.CancelTransfer,
		},
		fire:  engine.FireTransfer,
		apply: (*store.Account).Transfer,
	}
}

func subscriptions() machine[engine.Subscription] {
	return machine[engine.Subscription]{
		status: func(s *engine.Subscription) string { return s.Status },
		key: func(s *engine.Subscription) string {
			authorization := ""
			if s.Authorization != nil {
				authorization = s.Authorization.Status
			}
			return s.Status + " " + authorization + " " + strconv.Itoa(s.FailNext) + " " + strconv.Itoa(s.Attempt)
		},
		changed: func(c engine.Change) []*engine.Subscription { return c.Subscriptions },
		actions: []store.Transition[engine.Subscription]{
			engine.AuthorizeSubscription, engine.RejectSubscription, engine.RevokeSubscription,
			func(env engine.Env, s *engine.Subscription) (engine.Change, *engine.Refusal) {
				return engine.CancelSubscription(env, s, "")
			},
			func(env engine.Env, s *engine.Subscription) (engine.Change, *engine.Refusal) {
				if s.FailNext > 0 { // keeps the search small
					return engine.Change{}, engine.NewRefusal(engine.CodeInvalidState, "The next charge already fails.")
				}
				return engine.FailNextCharges(env, s, 1)
			},
		},
		fire:  engine.FireSubscription,
		apply: (*store.Account).Subscription,
	}
}

// links are planned before a buyer visits them, so they have no sessions.
func links() machine[engine.Link] {
	return machine[engine.Link]{
		status:  func(l *engine.Link) string { return l.Status },
		key:     func(l *engine.Link) string { return l.Status },
		changed: func(c engine.Change) []*engine.Link { return c.Links },
		actions: []store.Transition[engine.Link]{
			func(env engine.Env, l *engine.Link) (engine.Change, *engine.Refusal) {
				return engine.ExpireLink(env, l, nil)
			},
			func(env engine.Env, l *engine.Link) (engine.Change, *engine.Refusal) {
				return engine.DeactivateLink(env, l, nil)
			},
		},
		fire: func(env engine.Env, l *engine.Link, _ engine.TimerKind) engine.Change {
			if l.Status != "active" || env.Now.Before(l.ExpiresAt) {
				return engine.Change{}
			}
			return engine.ExpireLinkByTimer(env, l, nil)
		},
		apply: func(a *store.Account, slug string, do store.Transition[engine.Link]) (*engine.Link, *engine.Refusal) {
			_, refusal := a.Link(slug, func(d *store.Data, l *engine.Link) (engine.Change, *engine.Refusal) { return do(d.Env, l) })
			return nil, refusal // the plan has no use for the link
		},
	}
}
