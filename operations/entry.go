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
	Account  string // see [gateway.WithAccount]
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
	// ErrNotFound reports that no operation of the account has the id, or the key.
	ErrNotFound = errors.New("operations: there is no such operation")
	// ErrSendLimit reports that an operation was sent as often as
	// [Config.MaxSends] and [Config.MaxResends] allow, and is [Ambiguous].
	ErrSendLimit = errors.New("operations: the operation was sent too often without an outcome: a person must decide")
	// ErrMismatch reports that the resource of a [Resolution] differs from the
	// operation.
	ErrMismatch = errors.New("operations: the resource differs from the operation")
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
	SendKey     string         `json:"send_key,omitzero"`   // the Idempotency-Key of the last request
	KeySince    time.Time      `json:"key_since,omitzero"`  // when a request was first sent with SendKey
	Unproven    int            `json:"unproven,omitzero"`   // requests that may have left the process, since a person last decided
	Resends     int            `json:"resends,omitzero"`    // how often reads showed that it was not applied, since a person last decided
	Search      *search        `json:"search,omitzero"`     // the search for the resource that is not finished
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

// ended returns what is kept of the progress of an operation that is done or
// canceled: what [Entry] shows, with its texts changed by hide. The rest may contain
// personal data, in the outcome, in the state before, or as the derived idempotency
// key, from which the params could be guessed.
func (p *progress) ended(hide func(string) string) *progress {
	kept := &progress{Sends: p.Sends, LastError: hide(p.LastError), Ambiguity: hide(p.Ambiguity)}
	for _, note := range p.History {
		kept.History = append(kept.History, Note{At: note.At, Text: hide(note.Text)})
	}
	return kept
}

// inDoubt reports whether the outcome of a request is unknown.
func (p *progress) inDoubt() bool { return !p.DoubtSince.IsZero() }

// sentOnce sets the progress of an operation that was marked as sent by its insertion, whose
// stored progress is empty.
func (p *progress) sentOnce(at time.Time) {
	p.Sends, p.Unproven = 1, 1
	p.SentAt, p.DoubtSince = at, at
	p.note(at, sending)
}

// sending is the note of a request that is about to be sent.
const sending = "sending"

// settle ends the doubt once it is proven that nothing was applied. Before, SentAt
// and the key stay, to recognize a request that is applied even later.
func (p *progress) settle() {
	p.DoubtSince, p.Misses, p.Rejections, p.Rejection, p.Answered, p.Search = time.Time{}, 0, 0, nil, false, nil
}

// sendAgain ends the doubt because a person decided that nothing was applied.
func (p *progress) sendAgain() {
	p.settle()
	p.SentAt, p.Before, p.Ambiguity = time.Time{}, snapshot{}, ""
	p.Unproven, p.Resends = 0, 0
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
