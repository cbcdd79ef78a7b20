package simulation

import (
	"context"
	"slices"
	"time"
)

// kind says whether an item is postponed while a month is being closed.
type kind uint8

const (
	decision kind = iota // of people; postponed
	inFlight             // messages already sent, and restarts of processes; not postponed
)

// agenda contains the future items, the latest first. Of two items with the same
// time, the one added first runs first.
type agenda struct{ items []item }

type item struct {
	at   time.Time
	kind kind
	do   func(context.Context)
}

func (a *agenda) add(at time.Time, k kind, do func(context.Context)) {
	i, _ := slices.BinarySearchFunc(a.items, at, func(it item, at time.Time) int {
		if it.at.After(at) {
			return -1
		}
		return 1
	})
	a.items = slices.Insert(a.items, i, item{at, k, do})
}

func (a *agenda) next() (at time.Time, ok bool) {
	if len(a.items) == 0 {
		return time.Time{}, false
	}
	return a.items[len(a.items)-1].at, true
}

// due removes and returns the first due item.
func (a *agenda) due(now time.Time) (it item, ok bool) {
	if at, ok := a.next(); !ok || at.After(now) {
		return item{}, false
	}
	last := len(a.items) - 1
	it = a.items[last]
	a.items = a.items[:last]
	return it, true
}

// until waits for each due item, and at least for each multiple of every, up to t, and
// calls turn. regular says whether it is such a multiple.
func (a *agenda) until(ctx context.Context, t time.Time, every time.Duration, turn func(regular bool) error) error {
	for now := time.Now(); now.Before(t); now = time.Now() {
		multiple := now.Truncate(every).Add(every)
		next := multiple
		if at, ok := a.next(); ok && at.Before(next) {
			next = at
		}
		if next.After(t) {
			next = t
		}
		if err := pause(ctx, next.Sub(now)); err != nil {
			return err
		}
		if err := turn(!next.Before(multiple)); err != nil {
			return err
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
