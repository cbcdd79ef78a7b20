package webhook

import (
	"context"
	"errors"
	"time"
)

// Store is the receiver's memory: which events are known, who is handling which, and
// what failed. [NewMemoryStore] serves one process, package sqlstore several.
//
// An event goes waiting → claimed → done. A claim is a lease: when it runs out, the
// event is waiting again and the claim's token no longer counts. Only one event of a
// resource is claimed at a time.
//
// An event that the claiming process has no handler for is set aside: it is
// unhandled, keeps its body, and is claimed by [Store.NextUnhandled] in a process that
// has one. It stays in that queue until it is done or dead.
//
// webhooktest.RunStore checks an implementation.
type Store interface {
	// Put makes rec known, unless it stands for an event that is known already,
	// and returns the entry of that event:
	//
	//  1. An entry with rec.Key is the event itself.
	//  2. A confirmed rec (not Signed) is the event of any entry with the same
	//     Fact, or of a signed entry with the same EventID.
	//  3. A signed rec with a Fact is the event of a confirmed entry with the
	//     same Fact, or with the same EventID, Kind and Resource, that no other
	//     signed event has been matched with. They stay matched.
	//
	// Two concurrent Puts of one event make one entry. If rec and the entry with
	// its key have different digests, the entry's Conflict is set.
	Put(ctx context.Context, rec Record) (Entry, error)

	// PutDead adds rec as a dead letter, unless there is an entry with its key.
	PutDead(ctx context.Context, rec Record, reason string) (Entry, error)

	// Claim takes the event with that key, if it is waiting or unhandled, it is
	// due, and no other event of its resource is claimed. Otherwise the claim is
	// nil and the entry says why: StateWaiting or StateUnhandled with a Wait of 0
	// means that the resource is busy.
	Claim(ctx context.Context, key string, lease time.Duration) (*Claim, Entry, error)

	// Next takes up to limit waiting events that are due, the longest due first,
	// and returns those whose lease has run out to the waiting ones.
	Next(ctx context.Context, limit int, lease time.Duration) ([]*Claim, error)

	// NextUnhandled takes up to limit unhandled events that are due and that
	// handles reports true for.
	NextUnhandled(ctx context.Context, handles func(Family, Kind) bool, limit int, lease time.Duration) ([]*Claim, error)

	// Extend makes the lease end that long from now. Like every method with a
	// claim it returns ErrClaimLost, and changes nothing, once the claim's token
	// no longer counts.
	Extend(ctx context.Context, c *Claim, lease time.Duration) error

	// Complete makes the event done. It keeps no body.
	Complete(ctx context.Context, c *Claim) error

	// Retry makes the event wait that long.
	Retry(ctx context.Context, c *Claim, delay time.Duration, reason string) error

	// MarkDead makes the event a dead letter.
	MarkDead(ctx context.Context, c *Claim, reason string) error

	// Release makes the event wait as if it had not been claimed: the attempt
	// is not counted.
	Release(ctx context.Context, c *Claim) error

	// SetAside makes the event unhandled, due at once. The attempt is not
	// counted. The family is the one that its handler would be registered for,
	// "" if only OnOther would take the event.
	SetAside(ctx context.Context, c *Claim, family Family) error

	// Unhandled counts the unhandled events by family and kind.
	Unhandled(ctx context.Context) ([]UnhandledKind, error)

	// DeadLetters returns one page of dead letters, the oldest first. It returns
	// an error if q is invalid; see [DeadLetterQuery.Check].
	DeadLetters(ctx context.Context, q DeadLetterQuery) ([]DeadLetter, error)

	// Requeue makes dead letters wait, due at once and with no attempts
	// counted. It returns how many of the keys were dead letters.
	Requeue(ctx context.Context, keys ...string) (int, error)

	// Discard makes dead letters done without handling them. It returns how many
	// of the keys were dead letters.
	Discard(ctx context.Context, keys ...string) (int, error)

	// Purge deletes the events that were done, or set aside, longer ago than the
	// store's retention. Waiting and claimed events and dead letters are never
	// forgotten.
	Purge(ctx context.Context) (Purged, error)

	// Counts returns how much there is to do.
	Counts(ctx context.Context) (Counts, error)

	// Remembers returns how far back the store recognises every event that was
	// done: at most its retention, at most its own age, and no further than what
	// it had to forget.
	Remembers(ctx context.Context) (time.Duration, error)

	// Durable reports whether what Put accepted survives the process.
	Durable() bool
}

// ErrClaimLost means that the claim's lease ran out and the event may have
// been claimed again.
var ErrClaimLost = errors.New("webhook: the claim's lease has run out")

// ErrStoreFull means that a bounded store holds only events that are not done
// yet. The sender gets 503 and retries.
var ErrStoreFull = errors.New("webhook: the store is full of unfinished events")

// Record is an event as a store keeps it.
type Record struct {
	Key      string // the event's identity: of a signed one its id, of a confirmed one its fact
	EventID  string // the gateway's; of a confirmed event, for matching, its fact's or that of the unsigned delivery
	Kind     Kind
	Resource string // family and id: "transaction/0198…"; never empty

	// Fact names what is true if the event is: "transaction.paid" of that
	// resource, the refund up to that amount. A signed and a confirmed event
	// with one fact are one event. "" if no confirmed events exist.
	Fact string

	Signed   bool
	KeyID    string // of the key that verified it
	Source   Source
	Late     bool  // the API had the resource past the state that the event announces
	Position int64 // the order within the resource, 0 if there is none; see Claim.Latest

	// Digest identifies the content of an event that is known by its id, so that
	// a second event with that id is noticed. "" is not compared.
	Digest string

	Trace string // what [Config.Trace] returned when the event came in; "" is common

	Body      []byte // as it arrived signed, or as it was rebuilt from Confirmed
	Confirmed []byte // the resource as the API had it, JSON; nil if it was not read
}

// id is the event's ID as its handler sees it.
func (r *Record) id() string {
	if r.Confirmed == nil || r.Source == SourceReconciler {
		return r.EventID
	}
	return factID(r.Fact)
}

// State is the state of an event.
type State uint8

// The states.
const (
	StateWaiting State = iota + 1
	StateClaimed
	StateDone
	StateDead
	StateUnhandled // set aside, see [Store.SetAside]
)

// Entry is the state of an event in a store.
type Entry struct {
	Key   string // of the event that the record stands for
	State State
	Added bool // the record was new

	Wait     time.Duration // until a waiting or unhandled event is due
	Conflict bool          // the record has the entry's key and another digest
}

// Claim is the right to handle an event until the lease ends.
type Claim struct {
	Record

	Token   string        // proves the claim to the store
	Attempt int           // from 1; a claim whose lease ran out was an attempt
	Latest  int64         // the greatest Position of the resource's done events
	Age     time.Duration // since the event was put

	// Completed is set by a handler that has made the event done itself, in
	// the transaction of its own effects.
	Completed bool
}

// Counts returns how much there is to do.
type Counts struct {
	Waiting   int
	Claimed   int
	Dead      int
	Unhandled int           // set aside because no process that saw them has a handler; see [Store.Unhandled]
	Hung      int           // claimed by handlers of this process that outlast their timeout; see [Receiver.Running]
	Oldest    time.Duration // how long the longest waiting event has been due
}

// UnhandledKind is a kind of event that no process has handled so far.
type UnhandledKind struct {
	Family Family // "" if the kind does not belong to the family of its event
	Kind   Kind
	Events int
	Since  time.Time // when the longest waiting of them last changed
}

// Purged counts what [Store.Purge] forgot.
type Purged struct {
	Done      int
	Unhandled int
}

// MinRetention is the shortest time that a store may remember done events for:
// the gateway redelivers an event for 24 hours, and a store that forgets it
// earlier has it handled twice.
const MinRetention = 25 * time.Hour

// Source is how an event came in.
type Source string

// The sources.
const (
	SourceDelivery   Source = "delivery"
	SourceReconciler Source = "reconciler"
)
