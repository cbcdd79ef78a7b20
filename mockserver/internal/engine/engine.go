// Package engine implements the states and rules of the gateway as pure functions:
// each takes resources, an input and the time, and returns a [Change] or a [Refusal].
// They take no lock, read no clock and do no I/O. A transition copies a resource and
// puts the modified copy into the Change, which the store applies as a whole or not
// at all.
//
// The rows that comments refer to, such as row X1, are those of docs/states.md.
package engine

import (
	"time"

	"github.com/gateway-go/gateway/internal/spec"
)

// Env is what a transition depends on besides its resources and its input.
type Env struct {
	Now            time.Time // time of the virtual clock, UTC, whole milliseconds
	Dialect        spec.Dialect
	Sandbox        bool          // the environment; false means production
	IDs            IDs           // with the same seed, the same calls return the same ids
	Waiting        bool          // the account's new Pix and voucher payments are waiting_payment instead of pending, in the live dialect
	NoPixAutomatic bool          // the account may not use Pix Automatico
	BreB           bool          // the account's vouchers in Colombian pesos are paid by Bre-B instead of PSE, in the live dialect
	AutoPay        time.Duration // after which a pending transaction is paid automatically; 0 means never
	Fee            int64         // the gateway's fee for a payment, in cents
	Settled        int64         // what it settles of an amount, in hundredths of a percent; 0 means all of it
}

// IDs generates the ids and codes of new resources.
type IDs interface {
	// UUID returns a version 7 UUID for now.
	UUID(now time.Time) string
	// Alphanumeric returns n characters of A-Z and 0-9.
	Alphanumeric(n int) string
	// EndToEndID returns the id of a Pix payment settled at now.
	EndToEndID(now time.Time) string
}

// Change is everything that one transition changes. Its resources are new or
// replace those with the same id.
type Change struct {
	Transactions  []*Transaction
	Customers     []*Customer
	Transfers     []*Transfer
	Subscriptions []*Subscription
	Links         []*Link
	Sessions      []*Session
	Products      []*CatalogProduct
	Responses     []*Response `json:",omitempty"` // to requests with an idempotency key
	Integration   *Integration

	Balance int64    // cents to add to the account's balance; may be negative
	Spent   []string // single-use card tokens that are used up
	Events  []Event  // in the order in which they are sent
	Timers  []Timer
}

// Event is a webhook to be sent: its kind, and the resource after the transition.
// Exactly one of Transaction, Transfer and Subscription is set.
type Event struct {
	ID   string    // unique, set by the store
	At   time.Time // of the transition, set by the store
	Kind string    // "transaction.paid"

	PreviousStatus string // of a subscription; "" if the transition creates it
	Attempt        int    // of a failed subscription charge, from 1
	FailureReason  string // of a failed subscription charge

	Transaction  *Transaction
	Transfer     *Transfer
	Subscription *Subscription
}

// And returns c followed by next. If both contain a resource, the version in next
// is the newer one.
func (c Change) And(next Change) Change {
	c.Transactions = append(c.Transactions, next.Transactions...)
	c.Customers = append(c.Customers, next.Customers...)
	c.Transfers = append(c.Transfers, next.Transfers...)
	c.Subscriptions = append(c.Subscriptions, next.Subscriptions...)
	c.Links = append(c.Links, next.Links...)
	c.Sessions = append(c.Sessions, next.Sessions...)
	c.Products = append(c.Products, next.Products...)
	c.Responses = append(c.Responses, next.Responses...)
	if next.Integration != nil {
		c.Integration = next.Integration
	}
	c.Balance += next.Balance
	c.Spent = append(c.Spent, next.Spent...)
	c.Events = append(c.Events, next.Events...)
	c.Timers = append(c.Timers, next.Timers...)
	return c
}

// Empty reports whether c changes nothing. A Change with only timers is empty.
func (c Change) Empty() bool {
	return len(c.Transactions)+len(c.Customers)+len(c.Transfers)+len(c.Subscriptions)+len(c.Links)+len(c.Sessions)+
		len(c.Products)+len(c.Responses)+len(c.Spent)+len(c.Events) == 0 && c.Integration == nil && c.Balance == 0
}

// Timer requests a transition at a later time. When it fires, the engine is
// called with the current version of the resource; a timer that no longer fits
// the state changes nothing, so timers are never canceled.
type Timer struct {
	At   time.Time
	Kind TimerKind
	ID   string // of the resource
}

// TimerKind names the transition of a Timer: "transaction.expire".
type TimerKind string

// Refusal is the reason why a transition was rejected. Nothing changes.
type Refusal struct {
	Code     string // machine-readable: DUPLICATE_EXTERNAL_REF, NOT_REFUNDABLE
	Detail   string // a sentence for people to read
	Instance string // the path of the conflicting resource, if there is one

	Fields []spec.Violation // the invalid members, if the request is invalid
}
