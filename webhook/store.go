package webhook

import (
	"context"
	"errors"
	"time"

	"github.com/gateway-go/gateway"
)

// Store records which events are known, which are being handled, and which
// have failed. [NewMemoryStore] serves one process, package sqlstore several.
//
// An event goes waiting → claimed → done. A claim is a lease: when it expires,
// the event is waiting again and the claim's token is no longer valid. Only
// one event of a resource is claimed at a time.
//
// An event that the claiming process has no handler for is set aside: it is
// unhandled, keeps its body, and is claimed by [Store.NextUnhandled] in a process that
// has a handler. If that handler fails or the lease expires, the event is unhandled
// again, not waiting.
//
// A store keeps the events of several accounts at the gateway apart: see For.
//
// webhooktest.RunStore checks an implementation.
type Store interface {
	// For returns a view of the store for one account, with the same type as the
	// store. Its methods see and change only the events of that account. Two
	// events of different accounts are never the same event and never block each
	// other, whatever their keys, facts, ids and resources are. All views with
	// the same Name show the same events. For does no I/O, and may be called on a
	// view too. It is not called with an empty Name.
	//
	// The methods of a durable store's view return [gateway.ErrAccountConflict] if the
	// store has the events of an account with this Name and another Fingerprint.
	// An empty Fingerprint is not compared.
	//
	// [New] calls For. A store that wraps another one must wrap the views too; New
	// returns an error if their type differs.
	For(account gateway.Account) Store

	// Put stores rec, unless its event is already known, and returns the entry
	// of the event:
	//
	//  1. An entry with rec.Key is the event itself.
	//  2. A confirmed rec (not Signed) is the same event as any entry with the
	//     same Fact, or a signed entry with the same EventID.
	//  3. A signed rec with a Fact is the same event as a confirmed entry with
	//     the same Fact, or with the same EventID, Kind and Resource, unless
	//     that entry is already matched with another signed event. The match
	//     is permanent.
	//
	// Two concurrent Puts of one event create one entry. If rec and the entry
	// with its key have different digests, the entry's Conflict is set.
	Put(ctx context.Context, rec Record) (Entry, error)

	// PutDead adds rec as a dead letter, unless there is an entry with its key.
	PutDead(ctx context.Context, rec Record, reason string) (Entry, error)

	// Claim claims the event with that key, if it is waiting or unhandled and
	// due, and no other event of its resource is claimed. Otherwise the claim
	// is nil and the entry says why: StateWaiting or StateUnhandled with a
	// Wait of 0 means that the resource is busy.
	Claim(ctx context.Context, key string, lease time.Duration) (*Claim, Entry, error)

	// Next claims up to limit waiting events that are due, the longest due
	// first. Events whose lease has expired are waiting again, in their place before
	// later ones of their resource.
	Next(ctx context.Context, limit int, lease time.Duration) ([]*Claim, error)

	// NextUnhandled claims up to limit unhandled events that are due and for
	// which handles returns true.
	NextUnhandled(ctx context.Context, handles func(Family, Kind) bool, limit int, lease time.Duration) ([]*Claim, error)

	// Extend renews the lease for the given time from now. Like every method
	// with a claim it returns ErrClaimLost, and changes nothing, once the
	// claim's token is no longer valid.
	Extend(ctx context.Context, c *Claim, lease time.Duration) error

	// Settle ends the claim.
	Settle(ctx context.Context, c *Claim, d Disposition) error

	// Unhandled counts the unhandled events by family and kind.
	Unhandled(ctx context.Context) ([]UnhandledKind, error)

	// DeadLetters returns one page of dead letters, the oldest first. It returns
	// an error if q is invalid; see [DeadLetterQuery.Check].
	DeadLetters(ctx context.Context, q DeadLetterQuery) ([]DeadLetter, error)

	// Requeue makes dead letters waiting and due immediately, and resets their
	// attempts. It returns how many of the keys were dead letters.
	Requeue(ctx context.Context, keys ...string) (int, error)

	// Discard marks dead letters as done without handling them. It returns how
	// many of the keys were dead letters.
	Discard(ctx context.Context, keys ...string) (int, error)

	// Purge deletes the events that were done, or set aside, longer ago than the
	// store's retention. It never deletes waiting events, claimed events or
	// dead letters.
	Purge(ctx context.Context) (Purged, error)

	// Counts returns how many unfinished events there are.
	Counts(ctx context.Context) (Counts, error)

	// Remembers returns how far back the store recognizes every completed
	// event: at most its retention and its age, and not beyond events that it
	// has evicted.
	Remembers(ctx context.Context) (time.Duration, error)

	// Durable reports whether stored events survive the process.
	Durable() bool
}

// ErrClaimLost means that the claim's lease has expired and the event may have
// been claimed again.
var ErrClaimLost = errors.New("webhook: the claim's lease has expired")

// ErrStoreFull means that a bounded store is full of events that can't be
// evicted. The sender gets 503 and retries.
var ErrStoreFull = errors.New("webhook: the store is full of unfinished events")

// Record is the stored form of an event.
type Record struct {
	Key string // the event's identity: the id of a signed event, the fact of a confirmed one

	// EventID is the gateway's id if the event is signed. A confirmed event has
	// an id derived from its Fact. If the fact can't be determined from a signed
	// body, it has the id of its unsigned delivery instead, so that Put can match
	// the signed one.
	EventID string

	Kind     Kind
	Resource string // family and id: "transaction/0198…"; never empty

	// Fact names the fact that the event reports, such as the payment of a
	// resource, or its refund up to an amount. A signed and a confirmed event
	// with the same fact are the same event. It is "" if events are never
	// confirmed.
	Fact string

	Signed   bool
	KeyID    string // the ID of the key that verified it
	Source   Source
	Late     bool  // the resource had already left the state that the event announces
	Position int64 // the order within the resource, or 0; see Claim.Latest

	// Digest identifies the content of an event that is identified by its id,
	// so that a different event with the same id is detected. "" is not
	// compared.
	Digest string

	Trace string // the result of [Config.Trace] when the event was received; may be ""

	Body      []byte // the received body if signed, else rebuilt from Confirmed
	Confirmed []byte // the resource from the API as JSON; nil if it was not read
}

// id returns the event's ID as its handler sees it.
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
	StateUnhandled // set aside, see [Store]
)

// Entry is the state of an event in a store.
type Entry struct {
	Key   string // the event's key, which may differ from the record's
	State State
	Added bool // the record was new

	Wait     time.Duration // time until a waiting or unhandled event is due
	Conflict bool          // the record has the entry's key but a different digest

	unrelated bool // of a conflict in a memory store: the kind or the resource differs too
}

// Claim is the right to handle an event until the lease ends.
type Claim struct {
	Record

	Token   string        // proves the claim to the store
	Attempt int           // from 1
	Latest  int64         // the greatest Position of the resource's done events
	Age     time.Duration // time since the event was stored

	// Expired is how many of the event's leases have expired since its last
	// attempt failed: their processes died, perhaps because of this event. The
	// first two don't count as attempts: events that are handled at the same time
	// as the one that makes their process crash lose no attempt. The receiver
	// handles such an event alone from then on.
	Expired int

	// Completed is set by a handler that has completed the event itself, in
	// the transaction of its own effects.
	Completed bool
}

// begun returns the number of the attempt, with those that did not count.
func (c *Claim) begun() int { return c.Attempt + min(c.Expired, freeExpiries) }

// Disposition is what becomes of an event whose claim ends.
type Disposition struct {
	// State is the event's new state:
	//
	//   - StateDone: it was handled. Its body is erased.
	//   - StateWaiting: the attempt failed, or was Released.
	//   - StateDead: it is a dead letter.
	//   - StateUnhandled: it is set aside, due immediately, and the attempt is not
	//     counted.
	State State

	// Released means that the handler did not finish, or did not begin, for a reason
	// that is not the event's. The attempt is not counted, and the event keeps its
	// place before later ones of its resource.
	Released bool

	Delay  time.Duration // until a failed attempt is repeated
	Reason string        // of a failed attempt or a dead letter
	Family Family        // of a missing handler; "" if only OnOther would handle the event
}

// Counts reports the number of events in each unfinished state.
type Counts struct {
	Waiting   int
	Claimed   int
	Dead      int
	Unhandled int           // set aside because no process so far had a handler; see [Store.Unhandled]
	Hung      int           // events of hung handlers of this process; see [Receiver.Running]
	Oldest    time.Duration // for how long the oldest due event has been due
}

// UnhandledKind counts the unhandled events of a kind.
type UnhandledKind struct {
	Family Family // "" if the kind does not belong to the family of its event
	Kind   Kind
	Events int
	Since  time.Time // when the oldest of them was set aside or last retried
}

// Purged counts the events that [Store.Purge] deleted.
type Purged struct {
	Done      int
	Unhandled int
}

// MinRetention is the shortest time for which a store may remember completed
// events. It assumes that the gateway redelivers an event for up to 24 hours;
// the interface document does not say for how long. If a store forgets an event
// that is redelivered later, that event is handled twice.
const MinRetention = 25 * time.Hour

// Source is how an event was received.
type Source string

// The sources.
const (
	SourceDelivery   Source = "delivery"
	SourceReconciler Source = "reconciler"
)
