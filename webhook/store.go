package webhook

import (
	"context"
	"errors"
	"time"
)

// Store is the receiver's memory: which events are known, who is handling
// which, and what failed. [NewMemoryStore] is one for a single process,
// package sqlstore has one that several processes share.
//
// An event goes waiting → claimed → done. A claim is a lease: if its process
// dies, the event is waiting again when the lease has run out, and the claim's
// token no longer counts. Only one event of a resource is claimed at a time.
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
	//     signed event has been matched with. They are matched for ever.
	//
	// Two concurrent Puts of one event make one entry.
	Put(ctx context.Context, rec Record) (Entry, error)

	// Claim takes the event with that key, if it is waiting and no other event
	// of its resource is claimed; otherwise the claim is nil and the state says
	// why: StateWaiting means that the resource is busy.
	Claim(ctx context.Context, key string, lease time.Duration) (*Claim, State, error)

	// Next takes up to limit events that are due, the longest due first, and
	// returns those whose lease has run out to the waiting ones.
	Next(ctx context.Context, limit int, lease time.Duration) ([]*Claim, error)

	// Extend makes the lease end that long from now. Like every method with a
	// claim it returns ErrClaimLost, and changes nothing, once the claim's token
	// no longer counts.
	Extend(ctx context.Context, c *Claim, lease time.Duration) error

	// Complete makes the event done. It keeps no body.
	Complete(ctx context.Context, c *Claim) error

	// Retry makes the event wait that long.
	Retry(ctx context.Context, c *Claim, delay time.Duration, reason string) error

	// Bury makes the event a dead letter.
	Bury(ctx context.Context, c *Claim, reason string) error

	// Release makes the event wait as if it had not been claimed: the attempt
	// is not counted.
	Release(ctx context.Context, c *Claim) error

	// DeadLetters lists up to limit dead letters, the oldest first.
	DeadLetters(ctx context.Context, limit int) ([]DeadLetter, error)

	// Requeue makes dead letters wait, due at once and with no attempts
	// counted. It returns how many of the keys were dead letters.
	Requeue(ctx context.Context, keys ...string) (int, error)

	// Purge forgets what was done longer ago than the store remembers, and
	// returns how many events that were. Nothing else is ever forgotten.
	Purge(ctx context.Context) (int, error)

	// Counts tells how much there is to do.
	Counts(ctx context.Context) (Counts, error)

	// Remembers returns for how long a done event is recognised when it comes
	// again.
	Remembers() time.Duration

	// Durable reports whether what Put accepted survives the process.
	Durable() bool
}

// ErrClaimLost means that the claim's lease ran out and the event may have
// been claimed again.
var ErrClaimLost = errors.New("webhook: the claim's lease has run out")

// ErrStoreFull means that a bounded store holds only events that are not done
// yet. The sender is asked to come back.
var ErrStoreFull = errors.New("webhook: the store is full of unfinished events")

// Record is an event as a store keeps it.
type Record struct {
	Key      string // the event's identity: of a signed one its id, of a confirmed one its fact
	EventID  string // the gateway's; of a confirmed event, for matching, its fact's or that of the unsigned delivery
	Kind     Kind
	Resource string // family and id: "transaction/0198…"; never empty

	// Fact names what is true if the event is: "transaction.paid" of that
	// resource, the refund up to that amount. A signed and a confirmed event
	// with one fact are one event. "" where no confirmed events exist.
	Fact string

	Signed   bool
	KeyID    string // of the key that verified it
	Source   Source
	Late     bool  // the API had the resource past the state that the event announces
	Position int64 // the order within the resource, 0 where there is none; see Claim.Latest

	Body      []byte // as it arrived signed, or as it was rebuilt from Confirmed
	Confirmed []byte // the resource as the API had it, JSON; nil where nobody asked
}

// id is the event's ID as its handler sees it.
func (r *Record) id() string {
	if r.Confirmed == nil || r.Source == SourceReconciler {
		return r.EventID
	}
	return factID(r.Fact)
}

// State is where an event is.
type State uint8

// The states.
const (
	StateWaiting State = iota + 1
	StateClaimed
	StateDone
	StateDead
)

// Entry is what a store knows of an event.
type Entry struct {
	Key   string // of the event that the record stands for
	State State
	Added bool // the record was new
}

// Claim is the right to handle an event until the lease ends.
type Claim struct {
	Record

	Token   string // proves the claim to the store
	Attempt int    // from 1; a claim whose lease ran out was an attempt
	Latest  int64  // the greatest Position of the resource's done events

	// Completed is set by a handler that has made the event done itself, in
	// the transaction of its own effects.
	Completed bool
}

// DeadLetter is an event that could not be handled: its handler said so with
// [Permanent], or it failed too often.
type DeadLetter struct {
	Key      string // for Requeue
	EventID  string
	Kind     Kind
	Resource string
	Attempts int
	Reason   string // the last error
	Since    time.Time
	Body     []byte
}

// Counts tells how much there is to do.
type Counts struct {
	Waiting int
	Claimed int
	Dead    int
	Oldest  time.Duration // how long the longest waiting event has been due
}

// Source is how an event came in.
type Source string

// The sources.
const (
	SourceDelivery   Source = "delivery"
	SourceReconciler Source = "reconciler"
)
