// Package intent records what an agent wants to pay before anything is sent, and decides
// whether it may be sent, so that no repeat, restart or second agent moves money twice.
//
// A [Journal] is an append-only file that several processes may share. An [Intent] in it
// is prepared, approved by a person, sent and finished. The package calls no gateway:
// who does calls [Journal.Begin] before a request and [Journal.Finish] after it.
package intent

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/gateway-go/gateway/internal/doubt"
)

// Kind is what an intent does.
type Kind string

// The kinds of intents.
const (
	Charge Kind = "charge" // asks a buyer for money
	Payout Kind = "payout" // pays a Pix key
	Refund Kind = "refund" // returns the money of a transaction, up to a target
)

// State is the progress of an intent.
type State string

// The states. Money may have moved in Sending and Unknown, and in Done unless
// [Intent.Void] is set; it has not moved in the others.
const (
	Prepared State = "prepared" // recorded, and certainly not sent
	Sending  State = "sending"  // a request is under way, or its process died
	Unknown  State = "unknown"  // a request was sent, and its outcome is not known
	Done     State = "done"     // the gateway accepted it
	Refused  State = "refused"  // the gateway rejected it for good
	Canceled State = "canceled" // canceled before it was sent
	Expired  State = "expired"  // not sent within [Lifetime]
)

const (
	// Lifetime is how long an intent may be approved and sent for the first time.
	Lifetime = 24 * time.Hour
	// SimilarWithin is how far back [Intent.Similar] looks.
	SimilarWithin = 7 * 24 * time.Hour
	// Reads is how many reads in a row must miss what was sent before it counts as not
	// applied. As many repeats of a charge or a payout must be rejected in a row before it
	// is read instead of sent.
	Reads = doubt.Reads

	maxPurpose = 100
)

// The kinds of errors, for errors.Is.
var (
	// ErrKeyReused reports that the purpose belongs to an intent with other params; see
	// [ReusedError].
	ErrKeyReused = errors.New("intent: the same purpose was recorded with other params")
	// ErrNotFound reports that the principal has no intent with the id.
	ErrNotFound = errors.New("intent: there is no such intent")
	// ErrState reports that the intent's state does not allow the call.
	ErrState = errors.New("intent: the state of the intent does not allow this")
	// ErrNotApproved reports that no person has approved the intent.
	ErrNotApproved = errors.New("intent: no person has approved it")
	// ErrApproval reports a decision on a question that is not open: it was decided
	// before, has expired, belongs to something else or was forged.
	ErrApproval = errors.New("intent: the decision does not belong to an open question")
	// ErrForged is an ErrApproval: no server with this key has asked the question.
	ErrForged = fmt.Errorf("%w: its state was changed", ErrApproval)
	// ErrTerminal reports that only an approval in a terminal counts.
	ErrTerminal = errors.New("intent: it must be approved in a terminal")
	// ErrLimit reports that a limit does not allow the amount; see [LimitError].
	ErrLimit = errors.New("intent: a limit does not allow it")
	// ErrBusy reports that another refund of the same transaction is under way, or that
	// one ended after the transaction was read.
	ErrBusy = errors.New("intent: another refund of the transaction is under way")
	// ErrWait reports that the outcome can't be read before [Intent.RetryAt].
	ErrWait = errors.New("intent: it is too early to find out the outcome")
	// ErrPurpose reports an invalid purpose.
	ErrPurpose = errors.New("intent: invalid purpose")
)

// ReusedError is an ErrKeyReused.
type ReusedError struct {
	Existing *Intent // nil if it belongs to another principal
}

// Error names the existing intent.
func (e *ReusedError) Error() string {
	if e.Existing == nil {
		return ErrKeyReused.Error() + ", by another principal"
	}
	return ErrKeyReused.Error() + ": " + e.Existing.ID
}

// Is reports whether target is ErrKeyReused.
func (*ReusedError) Is(target error) bool { return target == ErrKeyReused }

// LimitError is an ErrLimit. Amounts are in cents.
type LimitError struct {
	Kind          Kind
	Currency      string
	Amount, Spent int64
	Limit         Limit
}

// Error names the limit that is exceeded.
func (e *LimitError) Error() string {
	switch {
	case e.Limit == Limit{}:
		return fmt.Sprintf("intent: no limit allows a %s in %s", e.Kind, e.Currency)
	case e.Amount > e.Limit.Each:
		return fmt.Sprintf("intent: the %s of %d exceeds the limit of %d each, in cents of %s", e.Kind, e.Amount, e.Limit.Each, e.Currency)
	default:
		return fmt.Sprintf("intent: the %s of %d exceeds the limit of %d in 24 hours, of which %d are spent, in cents of %s",
			e.Kind, e.Amount, e.Limit.Day, e.Spent, e.Currency)
	}
}

// Is reports whether target is ErrLimit.
func (*LimitError) Is(target error) bool { return target == ErrLimit }

// Limit limits what is sent, in cents. Sending and unknown intents count as spent.
type Limit struct {
	Day  int64 // in any 24 hours
	Each int64 // of one intent
}

// LimitOf is what a [Limit] applies to.
type LimitOf struct {
	Kind     Kind
	Currency string // "BRL"
}

// Limits has the limits of an account. What it does not list is not allowed.
type Limits map[LimitOf]Limit

// Set adds the limit in text: "payout=50000/day,10000/each" for BRL, or with the
// currency, "charge:CLP=900000/day". Without one of the two parts, both are the same.
func (l Limits) Set(text string) error {
	of, parts, ok := strings.Cut(text, "=")
	name, currency, given := strings.Cut(of, ":")
	if !given {
		currency = "BRL"
	}
	kind := Kind(name)
	if !ok || !slices.Contains([]Kind{Charge, Payout, Refund}, kind) || currency == "" {
		return fmt.Errorf("limit %q: must be KIND=CENTS/day,CENTS/each, where KIND is charge, payout or refund, and may end in :CURRENCY", text)
	}
	limit := Limit{}
	for part := range strings.SplitSeq(parts, ",") {
		number, unit, _ := strings.Cut(part, "/")
		cents, err := strconv.ParseInt(number, 10, 64)
		if err != nil || cents < 1 || unit != "day" && unit != "each" {
			return fmt.Errorf("limit %q: %q must be CENTS/day or CENTS/each, with at least 1 cent", text, part)
		}
		if unit == "day" {
			limit.Day = cents
		} else {
			limit.Each = cents
		}
	}
	if limit.Day == 0 {
		limit.Day = limit.Each
	}
	if limit.Each == 0 {
		limit.Each = limit.Day
	}
	l[LimitOf{kind, currency}] = limit
	return nil
}

// Proposal is what is recorded by [Journal.Prepare].
type Proposal struct {
	Kind      Kind   `json:"kind"`
	Principal string `json:"principal"` // who may commit it
	For       string `json:"for"`       // what is paid: an invoice or order number
	Payee     string `json:"payee"`     // identifies who is paid or charged, or the transaction of a refund
	Amount    int64  `json:"amount"`    // cents; for a refund its target, or what is left to refund
	Currency  string `json:"currency"`

	// Params is what will be sent, in a canonical form: two proposals are the same if
	// their params are the same bytes.
	Params json.RawMessage `json:"params"`
}

// Before is a transaction before a refund was sent, in cents.
type Before struct {
	Refunded int64 `json:"refunded"` // refunded_amount
	Refund   int64 `json:"refund"`   // what is sent
}

// Event is an entry of an intent's history.
type Event struct {
	At   time.Time `json:"at"`
	What string    `json:"what"`
}

// Intent is a proposal and what became of it.
type Intent struct {
	Proposal

	ID        string   `json:"id"`
	Account   string   `json:"account"`
	Attempt   int      `json:"attempt"`   // 1, or more after one that ended without moving money
	Reference string   `json:"reference"` // is sent as external_ref
	Similar   []string `json:"similar,omitempty"`

	State      State     `json:"state"`
	Round      int       `json:"round"` // how many questions were decided
	Approved   bool      `json:"approved"`
	PreparedAt time.Time `json:"prepared_at"`

	Sends     int       `json:"sends"`
	Open      int       `json:"open"` // requests whose outcome is not known
	FirstSent time.Time `json:"first_sent,omitzero"`
	LastSent  time.Time `json:"last_sent,omitzero"`
	RetryAt   time.Time `json:"retry_at,omitzero"`
	Before    *Before   `json:"before,omitempty"`
	Misses    int       `json:"misses,omitempty"`

	// What the gateway says to the repeats of a charge or a payout whose outcome is unknown.
	Rejections int    `json:"rejections,omitempty"` // in a row
	Rejection  string `json:"rejection,omitempty"`  // the sentinel, after Reads of them: nothing is sent any more
	Ambiguity  string `json:"ambiguity,omitempty"`  // why only a person can find out what happened

	ResourceID string `json:"resource_id,omitempty"` // of the transaction or transfer
	Existing   bool   `json:"existing,omitempty"`    // the resource was there before this intent was sent
	Void       string `json:"void,omitempty"`        // the resource's status, if it ended without moving money
	Problem    string `json:"problem,omitempty"`     // the sentinel of the last failure

	History []Event `json:"-"`
}

// ExpiresAt returns when the intent can no longer be sent for the first time.
func (i *Intent) ExpiresAt() time.Time { return i.PreparedAt.Add(Lifetime) }

// Repeat reports whether an earlier request may have been applied.
func (i *Intent) Repeat() bool { return i.Open > 0 }

// Looks reports whether the outcome can only be read: a refund has no reference under which
// it could be repeated, and the repeats of the others were rejected.
func (i *Intent) Looks() bool { return i.Repeat() && (i.Kind == Refund || i.Rejection != "") }

// live reports whether the purpose is taken: money moved, or may still move.
func (i *Intent) live() bool {
	switch i.State {
	case Refused, Canceled, Expired:
		return false
	default:
		return i.Void == ""
	}
}

// spent reports whether the intent counts towards a limit.
func (i *Intent) spent() bool {
	return i.Void == "" && (i.State == Sending || i.State == Unknown || i.State == Done)
}

// cents returns what the intent moves.
func (i *Intent) cents() int64 {
	if i.Before != nil {
		return i.Before.Refund
	}
	return i.Amount
}

// digest identifies the content of the intent.
func (i *Intent) digest() string {
	return hash(string(i.Kind), i.Account, i.Principal, i.For, i.Payee, strconv.FormatInt(i.Amount, 10), i.Currency, string(i.Params))
}

// Purpose returns the normal form of a purpose, in which letter case, spaces and
// punctuation don't count: "Invoice #17" is the same as "invoice-17".
func Purpose(text string) (string, error) {
	var b strings.Builder
	gap := false
	for _, r := range text {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r):
			if gap && b.Len() > 0 {
				b.WriteByte('-')
			}
			gap = false
			b.WriteRune(unicode.ToLower(r))
		case unicode.Is(unicode.Cf, r), unicode.IsMark(r): // invisible, or an accent
		default:
			gap = true
		}
	}
	switch n := utf8.RuneCountInString(text); {
	case b.Len() == 0:
		return "", fmt.Errorf("%w: it must contain a letter or a digit", ErrPurpose)
	case n > maxPurpose:
		return "", fmt.Errorf("%w: it must have at most %d characters", ErrPurpose, maxPurpose)
	}
	return b.String(), nil
}

// Reference returns the reference of an intent. It is a pure function, so that another
// process, or one that lost its journal, sends the same reference and the gateway does
// not pay twice.
func Reference(kind Kind, account, purpose string, attempt int) string {
	parts := []string{string(kind), account, purpose}
	if attempt > 1 {
		parts = append(parts, strconv.Itoa(attempt))
	}
	return "mcp-" + hash(parts...)[:24]
}

// hash returns the SHA-256 of parts, each with its length, so that no two lists of
// parts have the same input.
func hash(parts ...string) string {
	sum := sha256.New()
	for _, part := range parts {
		_, _ = fmt.Fprintf(sum, "%d:%s", len(part), part) // a hash never fails
	}
	return hex.EncodeToString(sum.Sum(nil))
}
