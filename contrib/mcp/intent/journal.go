package intent

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Config configures a [Journal].
type Config struct {
	// Account identifies the account at the gateway. A journal may have the intents of
	// several; a Journal sees only those of its own. With "" it sees all and prepares
	// none, for an operator.
	Account string

	Limits Limits

	// ClientBelow is the amount in cents below which a decision that came through the
	// client counts as an approval. 0 means never. Others need a terminal.
	ClientBelow int64

	// SettleAfter is how long after a request was sent the gateway may still apply it;
	// 2 minutes if it is 0.
	SettleAfter time.Duration

	Now func() time.Time // time.Now if it is nil
}

// Journal has the intents of an account. Its methods are safe for concurrent use, also
// by several processes with the same file. An error that matches none of the package's
// is a failure of the file: nothing was decided, and nothing may be sent.
type Journal struct {
	config Config

	mu      sync.Mutex
	file    *file
	intents map[string]*Intent
	order   []string
	changed map[string]int // by payee of a refund: the number of its last entry
	n       int            // entries read
}

// Open opens the journal in a file, or creates it with mode 0600. The error is
// ErrCorrupt if the file was damaged.
func Open(path string, config Config) (*Journal, error) {
	if config.SettleAfter == 0 {
		config.SettleAfter = 2 * time.Minute
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	f, err := openFile(path)
	if err != nil {
		return nil, err
	}
	j := &Journal{config: config, file: f, intents: map[string]*Intent{}, changed: map[string]int{}}
	if err := j.locked(func() error { return nil }); err != nil {
		return nil, errors.Join(err, f.f.Close())
	}
	return j, nil
}

// Close closes the file.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.file.f.Close()
}

// locked runs f with the lock of the file, after reading what others appended.
func (j *Journal) locked(f func() error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	unlock, err := lock(j.file.f)
	if err != nil {
		return err
	}
	defer unlock()
	if err := j.file.read(j.apply); err != nil {
		return err
	}
	return f()
}

func (j *Journal) apply(e *entry) {
	j.n++
	if j.config.Account != "" && e.Intent.Account != j.config.Account {
		return
	}
	i := e.Intent
	if known := j.intents[i.ID]; known != nil {
		i.History = known.History
	} else {
		j.order = append(j.order, i.ID)
	}
	i.History = append(i.History, Event{e.At, e.What})
	j.intents[i.ID] = i
	if i.Kind == Refund {
		j.changed[i.Payee] = j.n
	}
}

// store appends a changed copy of an intent.
func (j *Journal) store(i *Intent, what string) (*Intent, error) {
	e := &entry{At: j.config.Now().UTC(), What: what, Intent: i}
	if err := j.file.append(e); err != nil {
		return nil, err
	}
	j.apply(e)
	return j.shown(i), nil
}

// shown returns a copy of an intent, expired if it is.
func (j *Journal) shown(i *Intent) *Intent {
	c := *i
	c.History = slices.Clone(i.History)
	if i.Before != nil {
		before := *i.Before
		c.Before = &before
	}
	if c.State == Prepared && !j.config.Now().Before(c.ExpiresAt()) {
		c.State = Expired
	}
	return &c
}

// find returns a copy of an intent that belongs to the principal, which may be "" for
// an operator.
func (j *Journal) find(principal, id string) (*Intent, error) {
	i := j.intents[id]
	if i == nil || principal != "" && i.Principal != principal {
		return nil, fmt.Errorf("%w: %s", ErrNotFound, strconv.Quote(id))
	}
	c := j.shown(i)
	if purpose, err := Purpose(c.For); err == nil && c.State == Prepared && !c.Approved {
		// Also those that were prepared later, and may have been paid meanwhile: a
		// person who decides on either must see the other.
		known := slices.Clone(c.Similar)
		for _, other := range j.similar(&c.Proposal, purpose, j.config.Now()) {
			if !slices.Contains(known, other) {
				known = append(known, other)
			}
		}
		c.Similar = known
	}
	return c, nil
}

// Prepare records an intent, and returns the existing one if the same was recorded
// before. Only an intent that certainly moved no money (see [State] and [Journal.Void])
// can be recorded again. Then it is a new one, with the reference of the old one unless
// a resource of the gateway has that.
//
// The error is ErrKeyReused if the purpose belongs to an intent with other params,
// ErrPurpose if the purpose is invalid.
func (j *Journal) Prepare(p Proposal) (i *Intent, existing bool, err error) {
	if j.config.Account == "" {
		return nil, false, errors.New("intent: Prepare needs a Config.Account")
	}
	purpose, err := Purpose(p.For)
	if err != nil {
		return nil, false, err
	}
	err = j.locked(func() error {
		attempt := 1
		if last := j.latest(p.Kind, purpose); last != nil {
			attempt = last.Attempt
			switch {
			case last.live() && last.Principal != p.Principal:
				return &ReusedError{}
			case last.live() && !same(&last.Proposal, &p):
				return &ReusedError{Existing: last}
			case last.live():
				existing = true
				i, err = j.find(p.Principal, last.ID)
				return err
			case last.Void != "":
				attempt++
			}
		}
		now := j.config.Now().UTC()
		next := &Intent{
			Proposal: p, Account: j.config.Account, Attempt: attempt, State: Prepared, PreparedAt: now,
			Reference: Reference(p.Kind, j.config.Account, purpose, attempt),
			Similar:   j.similar(&p, purpose, now),
		}
		if next.ID, err = newID(); err != nil {
			return err
		}
		i, err = j.store(next, "prepared")
		return err
	})
	return i, existing, err
}

// newID returns a random id. Questions are sealed with it, so one of a journal that was
// lost can't be decided in the next.
func newID() (string, error) {
	random := make([]byte, 10)
	if _, err := rand.Read(random); err != nil {
		return "", fmt.Errorf("intent: can't generate an id: %w", err)
	}
	return "int_" + hex.EncodeToString(random), nil
}

func same(a, b *Proposal) bool {
	return a.Payee == b.Payee && a.Amount == b.Amount && a.Currency == b.Currency && string(a.Params) == string(b.Params)
}

// latest returns the newest intent with the purpose.
func (j *Journal) latest(kind Kind, purpose string) *Intent {
	for _, id := range slices.Backward(j.order) {
		i := j.intents[id]
		if of, err := Purpose(i.For); err == nil && i.Kind == kind && of == purpose {
			return j.shown(i)
		}
	}
	return nil
}

// similar returns the ids of recent intents that would pay the same to the same payee for
// another purpose.
func (j *Journal) similar(p *Proposal, purpose string, now time.Time) (ids []string) {
	for _, id := range j.order {
		i := j.shown(j.intents[id])
		of, err := Purpose(i.For)
		if err == nil && of != purpose && i.Kind == p.Kind && i.live() && i.Payee == p.Payee && i.Amount == p.Amount &&
			i.Currency == p.Currency && now.Sub(i.PreparedAt) < SimilarWithin {
			ids = append(ids, id)
		}
	}
	return ids
}

// Get returns an intent of the principal; "" is an operator, who sees all. The error is
// ErrNotFound.
func (j *Journal) Get(principal, id string) (i *Intent, err error) {
	err = j.locked(func() error {
		i, err = j.find(principal, id)
		return err
	})
	return i, err
}

// List returns the principal's intents, oldest first.
func (j *Journal) List(principal string) (all []*Intent, err error) {
	err = j.locked(func() error {
		for _, id := range j.order {
			if i, err := j.find(principal, id); err == nil {
				all = append(all, i)
			}
		}
		return nil
	})
	return all, err
}

// Via is how a person decided.
type Via string

// The ways to decide.
const (
	ViaClient   Via = "client"
	ViaTerminal Via = "terminal"
)

// Decide records a person's decision on the question of a round. Each decision ends its round,
// also a decline, so a decision can't be used twice.
//
// The error is ErrApproval if the round is not the current one, ErrTerminal if an
// approval through the client does not count for this intent, ErrState if the intent was
// sent, canceled or has expired.
func (j *Journal) Decide(principal, id string, round int, accept bool, via Via) (i *Intent, err error) {
	err = j.locked(func() error {
		if i, err = j.find(principal, id); err != nil {
			return err
		}
		switch {
		case i.State != Prepared:
			return fmt.Errorf("%w: it is %s", ErrState, i.State)
		case i.Round != round:
			return ErrApproval
		case via != ViaTerminal && !j.ClientMayApprove(i):
			return ErrTerminal
		}
		i.Round++
		i.Approved = accept
		what := "declined"
		if accept {
			what = "approved"
		}
		i, err = j.store(i, what+" via "+string(via))
		return err
	})
	return i, err
}

// ClientMayApprove reports whether an approval through the client counts. It never
// does if a similar intent exists: only a person can tell whether it is a second payment
// of the same thing.
func (j *Journal) ClientMayApprove(i *Intent) bool {
	return len(i.Similar) == 0 && i.Amount < j.config.ClientBelow
}

// Allowed returns an ErrLimit if the intent could not be sent now.
func (j *Journal) Allowed(i *Intent) error {
	return j.locked(func() error { return j.allowed(i) })
}

func (j *Journal) allowed(i *Intent) error {
	e := &LimitError{Kind: i.Kind, Currency: i.Currency, Amount: i.cents(), Limit: j.config.Limits[LimitOf{i.Kind, i.Currency}]}
	now := j.config.Now()
	for _, other := range j.intents {
		if other.ID != i.ID && other.Kind == i.Kind && other.Currency == i.Currency && other.spent() && now.Sub(other.FirstSent) < 24*time.Hour {
			e.Spent += other.cents()
		}
	}
	if e.Amount > e.Limit.Each || e.Amount > e.Limit.Day-e.Spent {
		return e
	}
	return nil
}

// Entries returns how many entries the journal has. Pass it to [Journal.Begin] with
// what was read after it.
func (j *Journal) Entries() (n int, err error) {
	err = j.locked(func() error {
		n = j.n
		return nil
	})
	return n, err
}

// Begin records that an intent is about to be sent. Send nothing before it returns nil.
//
// The first time, the intent must be approved and within the limits. After an unknown
// outcome, a charge or a payout may be sent again with its reference and the time
// of the first request; see [Intent.Repeat]. A refund may not, and neither may one whose
// repeats were rejected [Reads] times: see [Journal.Miss].
// before is the transaction that a refund is based on, read after [Journal.Entries]
// returned entries; nil for another kind.
//
// Errors: ErrNotFound, ErrNotApproved, ErrLimit, ErrBusy, ErrState, and ErrWait for one whose
// outcome must be read.
func (j *Journal) Begin(principal, id string, before *Before, entries int) (i *Intent, err error) {
	err = j.locked(func() error {
		if i, err = j.find(principal, id); err != nil {
			return err
		}
		if err := j.mayBegin(i, before, entries); err != nil {
			return err
		}
		now := j.config.Now().UTC()
		if !i.Repeat() {
			i.FirstSent = now
		}
		i.State, i.LastSent, i.Problem = Sending, now, ""
		i.Sends++
		i.Open++
		i.RetryAt, i.Misses = time.Time{}, 0
		if i.Kind == Refund {
			i.RetryAt = now.Add(j.config.SettleAfter)
		}
		i, err = j.store(i, "sending")
		return err
	})
	return i, err
}

func (j *Journal) mayBegin(i *Intent, before *Before, entries int) error {
	switch {
	case i.State != Prepared && i.State != Sending && i.State != Unknown:
		return fmt.Errorf("%w: it is %s", ErrState, i.State)
	case i.Looks():
		return fmt.Errorf("%w, which is possible at %s", ErrWait, i.RetryAt.Format(time.RFC3339))
	case i.Repeat():
		return nil
	case !i.Approved:
		return ErrNotApproved
	}
	if i.Kind == Refund {
		if before == nil || before.Refund < 1 || before.Refund > i.Amount {
			return fmt.Errorf("%w: the refund to send is not within what was approved", ErrState)
		}
		if err := j.alone(i, entries); err != nil {
			return err
		}
		i.Before = before
	}
	return j.allowed(i)
}

// alone returns an ErrBusy if another refund of the transaction may change its refunded
// amount, or may have done so since it was read.
func (j *Journal) alone(i *Intent, entries int) error {
	for _, other := range j.intents {
		if other.ID != i.ID && other.Kind == Refund && other.Payee == i.Payee && other.Repeat() && other.State != Done {
			return fmt.Errorf("%w: %s", ErrBusy, other.ID)
		}
	}
	if j.changed[i.Payee] > entries {
		return fmt.Errorf("%w: read the transaction again", ErrBusy)
	}
	return nil
}

// Outcome is what a request led to.
type Outcome struct {
	State      State  // Done, Refused, Unknown, or Prepared if nothing was sent
	Certain    bool   // Refused: no earlier request was applied either
	ResourceID string // if it is Done
	Existing   bool   // the resource was there before
	Problem    string // the sentinel of the error
	Rejection  string // Unknown: the sentinel with which the gateway rejected a repeat
	RetryAt    time.Time
}

// Finish records the outcome of a request that [Journal.Begin] allowed. Refused and
// Prepared count only if no other request of the intent may have been applied; else the
// intent is Unknown. It returns the intent as it is then.
//
// The rejection of a repeat proves nothing about the first request. After [Reads] in a row,
// the outcome must be read: see [Journal.Miss].
func (j *Journal) Finish(principal, id string, o Outcome) (i *Intent, err error) {
	err = j.locked(func() error {
		if i, err = j.find(principal, id); err != nil || i.State == Done || !i.Repeat() && o.State != Done {
			return err // another process found the outcome
		}
		switch o.State {
		case Done:
			i.Open, i.ResourceID, i.Existing = 0, o.ResourceID, o.Existing
		case Refused, Prepared:
			if i.Open--; i.Open > 0 && !o.Certain {
				o.State = Unknown
			}
		default:
			o.State = Unknown
		}
		i.State, i.Problem = o.State, o.Problem
		if o.State == Refused {
			i.Open = 0
		}
		if i.Kind != Refund || o.State != Unknown {
			i.RetryAt = o.RetryAt
		}
		i.rejected(&o, j.config.SettleAfter)
		what := string(o.State)
		if o.Problem != "" {
			what += ": " + o.Problem
		}
		i, err = j.store(i, what)
		return err
	})
	return i, err
}

// rejected counts rejections of repeats. One may come from a proxy; several in a row are the
// gateway's, which would have recognized the reference had it applied the first request,
// unless it checks something else first. So the outcome is read next.
func (i *Intent) rejected(o *Outcome, settleAfter time.Duration) {
	switch {
	case i.Kind == Refund || i.Rejection != "" && i.State == Unknown:
	case i.State != Unknown || o.Rejection == "":
		i.Rejections, i.Rejection = 0, ""
	default:
		if i.Rejections++; i.Rejections >= Reads {
			i.Rejection, i.RetryAt = o.Rejection, i.LastSent.Add(settleAfter)
		}
	}
	if i.State != Unknown {
		i.Ambiguity = ""
	}
}

// Miss records a read that does not show what was sent, for an intent that [Intent.Looks].
// Reads before [Intent.RetryAt] return an ErrWait and don't count. After the third, it was
// not applied: a refund is Prepared again, still approved, and may be sent; a charge or a
// payout is Refused, for the reason of the repeats.
func (j *Journal) Miss(principal, id string) (i *Intent, err error) {
	err = j.locked(func() error {
		if i, err = j.find(principal, id); err != nil {
			return err
		}
		if !i.Looks() {
			return fmt.Errorf("%w: it is %s", ErrState, i.State)
		}
		now := j.config.Now().UTC()
		if now.Before(i.RetryAt) {
			return fmt.Errorf("%w, which is possible at %s", ErrWait, i.RetryAt.Format(time.RFC3339))
		}
		i.State, i.RetryAt = Unknown, now.Add(j.config.SettleAfter/4)
		if i.Misses++; i.Misses >= Reads {
			i.State, i.Open, i.Misses, i.RetryAt, i.Before = Prepared, 0, 0, time.Time{}, nil
			if i.Rejection != "" {
				i.State, i.Problem, i.Rejections, i.Rejection = Refused, i.Rejection, 0, ""
			}
			i.Ambiguity = ""
		}
		i, err = j.store(i, "a read does not show it")
		return err
	})
	return i, err
}

// Ambiguous records why only a person can find out what became of an intent that
// [Intent.Looks]. It stays Unknown: a later read may still show it.
func (j *Journal) Ambiguous(principal, id, why string) (i *Intent, err error) {
	err = j.locked(func() error {
		if i, err = j.find(principal, id); err != nil || i.Ambiguity == why {
			return err
		}
		if !i.Looks() {
			return fmt.Errorf("%w: it is %s", ErrState, i.State)
		}
		i.State, i.Ambiguity, i.Misses = Unknown, why, 0
		i, err = j.store(i, "only a person can find out what happened: "+why)
		return err
	})
	return i, err
}

// Complete records that nothing is left to do: a refund's target was already reached.
// The error is ErrNotApproved, or ErrState if the intent is not Prepared.
func (j *Journal) Complete(principal, id, resourceID string) (i *Intent, err error) {
	err = j.locked(func() error {
		if i, err = j.find(principal, id); err != nil {
			return err
		}
		switch {
		case i.State != Prepared:
			return fmt.Errorf("%w: it is %s", ErrState, i.State)
		case !i.Approved:
			return ErrNotApproved
		}
		i.State, i.ResourceID, i.Existing = Done, resourceID, true
		i.FirstSent, i.Before = j.config.Now().UTC(), &Before{}
		i, err = j.store(i, "done: nothing was left to do")
		return err
	})
	return i, err
}

// Cancel cancels an intent that was not sent. The error is ErrState if it was.
func (j *Journal) Cancel(principal, id string) (i *Intent, err error) {
	err = j.locked(func() error {
		if i, err = j.find(principal, id); err != nil || i.State == Canceled {
			return err
		}
		if i.State != Prepared {
			return fmt.Errorf("%w: it is %s", ErrState, i.State)
		}
		i.State, i.Approved = Canceled, false
		i.Round++ // an open question can no longer be decided
		i, err = j.store(i, "canceled")
		return err
	})
	return i, err
}

// Void records that the resource of a Done intent ended without moving money, with the
// status that the gateway reports. Its purpose may be prepared again.
func (j *Journal) Void(principal, id, status string) (i *Intent, err error) {
	err = j.locked(func() error {
		if i, err = j.find(principal, id); err != nil || i.Void != "" {
			return err
		}
		if i.State != Done || i.Kind == Refund || status == "" {
			return fmt.Errorf("%w: it is %s", ErrState, i.State)
		}
		i.Void = status
		i, err = j.store(i, "ended without moving money: "+status)
		return err
	})
	return i, err
}

// Refunded returns the least refunded_amount, in cents, that a read of a transaction
// can show: a lower one is stale.
func (j *Journal) Refunded(transaction string) (cents int64, err error) {
	err = j.locked(func() error {
		for _, i := range j.intents {
			if i.Kind != Refund || i.Payee != transaction || i.Before == nil {
				continue
			}
			known := i.Before.Refunded
			if i.State == Done {
				known += i.Before.Refund
			}
			cents = max(cents, known)
		}
		return nil
	})
	return cents, err
}
