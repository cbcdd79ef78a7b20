package operations

import (
	"errors"
	"time"
)

// State is the progress of an operation.
type State string

// The states of an operation.
const (
	Waiting   State = "waiting"   // to be sent, or to be sent again because it was certainly not applied
	Working   State = "working"   // a worker has claimed it and sent nothing yet
	Sent      State = "sent"      // it was or may have been sent; its outcome is not known yet
	Ambiguous State = "ambiguous" // a person must decide; see [Outbox.Resolve]
	Decided   State = "decided"   // the outcome is known; the handler has not succeeded yet
	Dead      State = "dead"      // the outcome is known; the handler failed too often; see [Outbox.Retry]
	Done      State = "done"      // the handler committed
	Canceled  State = "canceled"  // it was canceled before it was sent
)

// Entry is an operation as the outbox stores it.
type Entry struct {
	ID       int64
	Kind     string // "transactions.refund", as in the client's errors
	Key      string
	Resource string // "transactions/ID"; "" for a create
	State    State

	Sends     int       // how many requests were or may have been sent
	CreatedAt time.Time // all times are the database's
	UpdatedAt time.Time
	DueAt     time.Time // when a worker runs it next

	LastError string // why it is not done
	Ambiguity string // the open question, if it is [Ambiguous]
	History   []Note // what happened, oldest first; only the first and the latest notes if there are very many

	// Existing reports that [Outbox.InsertTx] found an earlier operation with
	// the key.
	Existing bool
}

// Note is an entry in the history of an operation.
type Note struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}

var (
	// ErrKeyReused reports that the key belongs to a different operation.
	ErrKeyReused = errors.New("operations: the key belongs to a different operation")
	// ErrNotFound reports that no operation has the id.
	ErrNotFound = errors.New("operations: there is no such operation")
	// ErrState reports that the operation's state does not allow the call,
	// such as canceling one that was sent or resolving one that is not
	// ambiguous.
	ErrState = errors.New("operations: the state of the operation does not allow this")
)

// progress is what a worker stores about an operation, besides the columns that
// the queries need.
type progress struct {
	Sends       int            `json:"sends,omitzero"`
	Doubts      int            `json:"doubts,omitzero"`      // requests in doubt that turned out not to be applied
	Failures    int            `json:"failures,omitzero"`    // consecutive attempts that are retried, for the backoff
	DoubtSince  time.Time      `json:"doubt_since,omitzero"` // when the first request with an unknown outcome was sent
	SentAt      time.Time      `json:"sent_at,omitzero"`     // when the last request was sent
	Before      snapshot       `json:"before,omitzero"`
	SendKey     string         `json:"send_key,omitzero"`   // the Idempotency-Key of the request in doubt
	Misses      int            `json:"misses,omitzero"`     // consecutive reads that show that nothing was applied
	Rejections  int            `json:"rejections,omitzero"` // consecutive rejections of repeats of the request in doubt
	Answered    bool           `json:"answered,omitzero"`   // Rejection is the response to a first request, not to a repeat
	Rejection   *RejectedError `json:"rejection,omitzero"`  // of a request whose earlier attempt may have been applied
	Outcome     *outcome       `json:"outcome,omitzero"`
	Refunded    int64          `json:"refunded,omitzero"` // the refunded_amount after this operation
	HandlerRuns int            `json:"handler_runs,omitzero"`
	LastError   string         `json:"last_error,omitzero"`
	Ambiguity   string         `json:"ambiguity,omitzero"`
	History     []Note         `json:"history,omitzero"`
}

// inDoubt reports whether the outcome of a request is unknown.
func (p *progress) inDoubt() bool { return !p.DoubtSince.IsZero() }

// clear ends the doubt once it is known that nothing was applied.
func (p *progress) clear() {
	p.DoubtSince, p.SentAt, p.SendKey, p.Misses, p.Rejections, p.Rejection, p.Answered = time.Time{}, time.Time{}, "", 0, 0, nil, false
	p.Before, p.Ambiguity = snapshot{}, ""
}

// maxNotes bounds the history of an operation that waits for days.
const maxNotes = 40

// note adds to the history.
func (p *progress) note(at time.Time, text string) {
	if len(p.History) >= maxNotes {
		half := maxNotes / 2
		p.History = append(p.History[:half], p.History[half+1:]...)
	}
	p.History = append(p.History, Note{At: at.UTC(), Text: text})
}
