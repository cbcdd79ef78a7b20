package merchant

import (
	"fmt"
	"time"

	"github.com/gateway-go/gateway/merchant/internal/books"
	"github.com/gateway-go/gateway/merchant/internal/ledger"
	"github.com/gateway-go/gateway/webhook"
)

// lag is how far the gateway's reads may lag behind its writes, as for the outbox.
func (c *Config) lag() time.Duration {
	if c.SettleAfter == 0 {
		return 2 * time.Minute
	}
	return c.SettleAfter
}

// watch is what makes a record be compared soon.
type watch struct {
	// Announced is a state that an event announced and no reading has shown yet. The reading
	// may lag, or it is newer than the event.
	Announced   string
	AnnouncedAt time.Time

	// MissingSince is since when the gateway has not found the resource.
	MissingSince time.Time
}

// announcedFor is how long an announced state is looked for.
const announcedFor = day

// announce notes at a time that a state was announced, or forgets it: a reading shows it or a
// later one.
func (w *watch) announce(now time.Time, state string, behind bool) {
	switch {
	case !behind:
		w.Announced, w.AnnouncedAt = "", time.Time{}
	case w.Announced != state:
		w.Announced, w.AnnouncedAt = state, now
	}
}

// next returns when a record is compared because of it, and false if it does not matter.
func (w *watch) next(now time.Time) (ledger.Plan, bool) {
	if !w.MissingSince.IsZero() {
		passed := now.Sub(w.MissingSince)
		return ledger.Plan{Wait: growing(passed), Lane: ledger.Open, Never: passed > giveUp}, true
	}
	passed := now.Sub(w.AnnouncedAt)
	return ledger.Plan{Wait: growing(passed), Lane: laneOf(passed)}, w.Announced != "" && passed < announcedFor
}

// missingFor is how long a resource may be missing before a person must look.
const missingFor = day

// isMissing is a problem: the gateway does not find what it made.
const isMissing = books.ProblemKind("missing")

// missing notes that the gateway does not find the resource of a record of the bench.
func (b *bench) missing(row *ledger.Row) error {
	var w *watch
	var a *account
	for _, r := range b.records() {
		if is := r.stored(); is.Kind == row.Kind && is.ID == row.ID {
			w, a = r.watched()
			r.touch()
		}
	}
	if w == nil {
		return fmt.Errorf("%w: %s %s", ErrNotFound, row.Kind, row.ID)
	}
	if w.MissingSince.IsZero() {
		w.MissingSince = b.now
	}
	if b.now.Sub(w.MissingSince) < missingFor {
		return nil
	}
	b.problem(a, &books.Problem{
		Key: fmt.Sprintf("%s/%s/%s/%d", isMissing, row.Kind, row.ID, w.MissingSince.Unix()), Kind: isMissing, Record: row.ID, About: aboutOf(row.Kind),
		Text: fmt.Sprintf("for %s the gateway has not found %s, the resource of %s %s", missingFor, row.Resource, row.Kind, row.ID),
	})
	return nil
}

// aboutOf says what a problem of a record is about.
func aboutOf(k ledger.Kind) books.About {
	switch k {
	case ledger.Payouts:
		return books.AboutPayout
	case ledger.Subscriptions:
		return books.AboutSubscription
	default:
		return books.AboutCharge
	}
}

// found notes that the gateway has shown a record's resource.
func (b *bench) found(r record) {
	w, a := r.watched()
	if !w.MissingSince.IsZero() {
		w.MissingSince = time.Time{}
		b.over(a, &books.Over{Kind: isMissing, Record: r.stored().ID, About: aboutOf(r.stored().Kind)})
	}
}

// behind returns an error, so that an event is handled again, while a reading that is older
// than the event may lag.
func (m *core) behind(e *webhook.Event, what, read string) error {
	if v, _ := books.Absence(books.ByOlder, e.Age, m.cfg.lag()); v != books.NotYet {
		return nil
	}
	return fmt.Errorf("the event says that the %s is %s, and it was read as %s: it is read again", what, e.Status, read)
}
