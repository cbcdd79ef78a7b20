package books

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/spec"
)

// paying is one change of a payout.
type paying struct {
	Order  Order
	Payout Payout
	ledger
}

// payout starts a change of a payout.
func payout(o Order, p Payout, source Source, at time.Time) *paying {
	c := &paying{Order: o, Payout: p}
	c.Payout.Problems = slices.Clone(p.Problems)
	c.ledger = ledger{order: &c.Order, record: p.ID, about: AboutPayout, raised: &c.Payout.Problems, currency: gateway.BRL, source: source, at: at, now: at}
	return c
}

// ApplyTransfer books what a reading of the payout's transfer shows. A transfer takes
// its amount, which contains its fee, from the balance as soon as it exists, and brings
// it back if it fails or is canceled.
func ApplyTransfer(o Order, p Payout, r Reading[gateway.Transfer]) (Order, Payout, Result) {
	t := r.Resource
	c := payout(o, p, r.Source, r.At)
	c.at = lastChange(t.UpdatedAt, t.TransferredAt, p.UpdatedAt, r.At)
	row := transferRowOf(t.Status)
	if !c.readable(t, row) {
		return c.Order, c.Payout, c.Result
	}
	stale := !c.follows(t, row)
	if c.judge(stale && t.Status != p.Status, &c.Payout.ReadAt, &c.Payout.LowerSince) {
		c.problem(IsLower, c.Payout.LowerSince.UTC().Format(time.RFC3339), "transfer %s is %s, but was %s", t.ID, t.Status, p.Status)
	}
	if !stale {
		c.follow(t, row)
	}
	if !stale || t.Status == p.Status {
		c.understood(row)
	}
	switch {
	case c.Payout.Status != p.Status:
		c.Outcome = Changed
	case stale && t.Status != p.Status && c.Outcome == Unchanged:
		c.Outcome = Stale
	}
	return c.Order, c.Payout, c.Result
}

// ApplyPayoutOperation stores what became of the request that creates the transfer. A
// reading of the transfer counts more. reason says why it was refused. A final outcome
// is not replaced.
func ApplyPayoutOperation(o Order, p Payout, op Operation, reason string, at time.Time) (Order, Payout, Result) {
	c := payout(o, p, FromOutcome, at)
	if p.Operation.Ended() || op == p.Operation {
		return o, p, c.Result
	}
	c.Payout.Operation, c.Outcome = op, Changed
	if op == Refused && p.Status == "" {
		c.Payout.Reason = reason
	}
	c.report()
	return c.Order, c.Payout, c.Result
}

// readable reports whether the reading can be booked, and raises a problem if not.
func (c *paying) readable(t *gateway.Transfer, row *transferRow) bool {
	p := &c.Payout
	if p.TransferID != "" && !strings.EqualFold(p.TransferID, t.ID) {
		c.problem(IsUnmatched, t.ID, "payout %s is transfer %s, not %s", p.ID, p.TransferID, t.ID)
		return false
	}
	p.TransferID = cmp.Or(p.TransferID, t.ID)
	if row == nil || row.vague {
		c.problem(IsUnknownState, string(t.Status), "transfer %s has the status %q", t.ID, t.Status)
	}
	if row == nil {
		return false
	}
	contradiction := noAmount(t)
	switch {
	case contradiction != "":
	case p.Amount != 0 && p.Amount != t.Amount:
		contradiction = fmt.Sprintf("its amount is %d, but was %d", t.Amount, p.Amount)
	default:
		return true
	}
	c.problem(IsContradicted, contradiction, "transfer %s, %s: %s", t.ID, t.Status, contradiction)
	return false
}

// understood ends the problems with earlier readings that were not understood, or were not
// true.
func (c *paying) understood(row *transferRow) {
	if !row.vague {
		c.overIfLater(IsUnknownState)
	}
	if p := &c.Payout; p.Requested == 0 || p.Requested == p.Amount {
		c.overIfLater(IsContradicted)
	}
}

// noAmount says why a transfer's amount can't be true, or nothing.
func noAmount(t *gateway.Transfer) string {
	if t.Amount <= 0 || t.Amount > spec.MaxSafeAmount {
		return fmt.Sprintf("%d is no amount", t.Amount)
	}
	return ""
}

// taken returns what a transfer has taken from the balance.
func (row *transferRow) taken(t *gateway.Transfer) int64 {
	if row.out {
		return t.Amount
	}
	return 0
}

// PaidOut returns what a transfer has taken from the balance, in cents. wrong names what in
// it can't be true or is not known.
func PaidOut(t *gateway.Transfer) (out int64, wrong string) {
	row := transferRowOf(t.Status)
	if row == nil {
		return 0, "unknown status " + string(t.Status)
	}
	if wrong := noAmount(t); wrong != "" {
		return 0, wrong
	}
	return row.taken(t), ""
}

// follows reports whether the reading is newer than what gave the payout its status.
func (c *paying) follows(t *gateway.Transfer, row *transferRow) bool {
	p := &c.Payout
	known := transferRowOf(p.Status)
	switch o := order(t.UpdatedAt.Time, p.UpdatedAt); {
	case known == nil, o > 0:
		return true
	case o < 0, row.vague:
		return false
	case known.state != Pending: // only another end can be later, such as that a payment was returned
		return row.state != Pending && c.now.After(p.ReadAt)
	default:
		return row.state != Pending || c.now.After(p.ReadAt)
	}
}

// follow takes over the state of the reading and books the difference.
func (c *paying) follow(t *gateway.Transfer, row *transferRow) {
	p := &c.Payout
	if before := transferRowOf(p.Status); before != nil && before.state != Pending && before.state != row.state {
		c.problem(IsReversed, strconv.Itoa(p.Moves), "payout %s was %s, and is %s now", p.ID, before.state, row.state)
	}
	p.Status, p.Fee, p.Reason = t.Status, t.Fee, ""
	if row.state == Failed || row.state == Canceled {
		p.Reason = string(t.Status)
	}
	if !t.UpdatedAt.IsZero() {
		p.UpdatedAt = t.UpdatedAt.Time
	}
	if !t.TransferredAt.IsZero() {
		p.PaidAt = t.TransferredAt.Time
	}
	if p.Amount == 0 && p.Requested != 0 && p.Requested != t.Amount {
		c.problem(IsContradicted, "amount", "transfer %s pays %d, but payout %s is for %d", t.ID, t.Amount, p.ID, p.Requested)
	}
	p.Amount = t.Amount
	out := row.taken(t)
	if delta := out - p.Out; delta != 0 {
		p.Out = out
		p.Moves++
		c.entry(EntryPaidOut, &c.order.PaidOut, key(EntryPaidOut, p.ID, strconv.Itoa(p.Moves)), -delta, None)
	}
	c.report()
}

// report sets the state and reports the end of the payout.
func (c *paying) report() {
	p := &c.Payout
	p.State = p.state()
	c.hold(p.Operation == InDoubt && p.Status == "", IsAmbiguous, "", "it is not known whether payout %s was made", p.ID)
	switch p.State {
	case Paid, Failed, Canceled, Rejected:
		if k := key(PayoutEnded, p.ID, string(p.State), strconv.Itoa(p.Moves)); once(&p.Reported, k) {
			c.fact(PayoutEnded, k, OnPayout)
		}
	default: // not over
	}
}

// state returns the state of the payout: that of the last reading or, without one, that
// of the operation.
func (p *Payout) state() State {
	if row := transferRowOf(p.Status); row != nil {
		return row.state
	}
	return p.Operation.state(Pending, Rejected)
}
