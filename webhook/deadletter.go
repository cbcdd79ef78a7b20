package webhook

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// DeadLetter is an event that could not be handled: its handler returned a
// [Permanent] error, it failed too often, or its id had been used for another
// event.
type DeadLetter struct {
	Key      string // for Requeue and Discard
	EventID  string
	Kind     Kind
	Resource string // family and id: "transaction/0198…"
	Attempts int
	Reason   string // the last error
	Since    time.Time
	Body     []byte

	Cursor string // for DeadLetterQuery.After
}

// DeadLetterFilter selects dead letters. A zero field selects all.
type DeadLetterFilter struct {
	Kind     Kind
	Resource string    // family and id: "transaction/0198…"
	Since    time.Time // those created at or after this time
}

// DeadLetterQuery is one page of the dead letters that a filter selects.
type DeadLetterQuery struct {
	DeadLetterFilter

	Limit int    // 1 to 1000; 0 means 100
	After string // the Cursor of the last dead letter of the previous page
}

const (
	defaultLetters = 100
	maxLetters     = 1000
)

// Check returns q with the default limit applied, or an error that names the
// invalid field.
func (q DeadLetterQuery) Check() (DeadLetterQuery, error) {
	if q.Limit < 0 || q.Limit > maxLetters {
		return q, fmt.Errorf("webhook: DeadLetterQuery.Limit is %d; it must be 1 to %d, or 0 for %d", q.Limit, maxLetters, defaultLetters)
	}
	if q.Limit == 0 {
		q.Limit = defaultLetters
	}
	if _, _, err := q.Position(); err != nil {
		return q, err
	}
	return q, nil
}

// Position decodes After: the time in Unix milliseconds and the sequence
// number of the last dead letter of the previous page. Both are 0 for the
// first page.
func (q DeadLetterQuery) Position() (since, number int64, err error) {
	if q.After == "" {
		return 0, 0, nil
	}
	left, right, _ := strings.Cut(q.After, ".")
	since, err = strconv.ParseInt(left, 10, 64)
	if err == nil {
		number, err = strconv.ParseInt(right, 10, 64)
	}
	if err != nil {
		return 0, 0, errors.New("webhook: DeadLetterQuery.After must be the Cursor of a dead letter")
	}
	return since, number, nil
}

// CursorAt returns the cursor of a dead letter, for implementations of [Store].
func CursorAt(since, number int64) string {
	return strconv.FormatInt(since, 10) + "." + strconv.FormatInt(number, 10)
}

// DeadLetters returns one page of the dead letters, the oldest first.
func (rx *Receiver) DeadLetters(ctx context.Context, q DeadLetterQuery) ([]DeadLetter, error) {
	return rx.cfg.Store.DeadLetters(ctx, q)
}

// Requeue retries the dead letters with these keys as if they were new, and
// returns how many there were. In Inbox mode the workers handle them. In Sync
// mode they are handled before Requeue returns: those that fail become dead
// letters again, and the error names them.
func (rx *Receiver) Requeue(ctx context.Context, keys ...string) (int, error) {
	if !rx.enter() {
		return 0, ErrShutdown
	}
	defer rx.running.Done()
	if rx.cfg.Mode == Sync && rx.runs.isPaused() {
		return 0, ErrPaused
	}
	if rx.cfg.Mode == Inbox {
		n, err := rx.cfg.Store.Requeue(ctx, keys...)
		rx.wakeWorkers() //nolint:contextcheck // the workers outlive the caller
		return n, err
	}
	n := 0
	var failed []error
	for _, key := range keys {
		found, err := rx.cfg.Store.Requeue(ctx, key)
		if err != nil {
			return n, errors.Join(append(failed, err)...)
		}
		if found == 0 {
			continue
		}
		n++
		if o := rx.handleLastTime(ctx, key, Record{EventID: key}).Outcome; o == OutcomeDead || !o.settled() {
			failed = append(failed, fmt.Errorf("webhook: requeue of %s: %s", key, o))
		}
	}
	return n, errors.Join(failed...)
}

// handleLastTime handles, in Sync mode, an event that will not be redelivered. It
// becomes a dead letter if its handler fails. It waits for a busy resource as long
// as ctx allows.
func (rx *Receiver) handleLastTime(ctx context.Context, key string, rec Record) result {
	for {
		r := rx.handleNow(ctx, key, rec, func(ctx context.Context, c *Claim) result { return rx.run(ctx, c, true) })
		if r.Outcome != OutcomeBusy || ctx.Err() != nil || rx.stopping() {
			return r
		}
	}
}

// RequeueAll requeues all dead letters that the filter selects when it is
// called, like [Receiver.Requeue]; the zero filter selects all.
func (rx *Receiver) RequeueAll(ctx context.Context, f DeadLetterFilter) (int, error) {
	return rx.eachLetter(ctx, f, rx.Requeue)
}

// Discard marks the dead letters with these keys as done without handling
// them, erases their bodies, and returns how many there were.
func (rx *Receiver) Discard(ctx context.Context, keys ...string) (int, error) {
	return rx.cfg.Store.Discard(ctx, keys...)
}

// DiscardAll discards all dead letters that the filter selects when it is
// called, like [Receiver.Discard]; the zero filter selects all.
func (rx *Receiver) DiscardAll(ctx context.Context, f DeadLetterFilter) (int, error) {
	return rx.eachLetter(ctx, f, rx.Discard)
}

// eachLetter collects all keys before it applies do: an event that fails again
// becomes a dead letter again, on a later page.
func (rx *Receiver) eachLetter(ctx context.Context, f DeadLetterFilter, do func(context.Context, ...string) (int, error)) (int, error) {
	var keys []string
	for q := (DeadLetterQuery{DeadLetterFilter: f, Limit: maxLetters}); ; {
		letters, err := rx.cfg.Store.DeadLetters(ctx, q)
		if err != nil {
			return 0, err
		}
		for _, l := range letters {
			keys = append(keys, l.Key)
		}
		if len(letters) < q.Limit {
			break
		}
		q.After = letters[len(letters)-1].Cursor
	}
	if len(keys) == 0 {
		return 0, nil
	}
	return do(ctx, keys...)
}

// Unhandled counts, by family and kind, the events that were set aside because
// the process that received them had no handler.
func (rx *Receiver) Unhandled(ctx context.Context) ([]UnhandledKind, error) {
	return rx.cfg.Store.Unhandled(ctx)
}
