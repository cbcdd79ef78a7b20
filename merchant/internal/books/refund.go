package books

import "time"

// ApplyRefund stores what became of the request for a refund. moved is the amount that
// the gateway confirmed, reason why it refused. A final outcome is not replaced. No sum
// changes before a reading shows the refund.
func ApplyRefund(b Books, id string, op Operation, moved int64, reason string, at time.Time) (Books, Result) {
	c := change(b, FromOutcome, at)
	r := c.refund(id)
	if r == nil || r.Operation.Ended() || r.Operation == op {
		return c.Books, c.Result
	}
	wasInDoubt := r.Operation == InDoubt
	r.Operation, c.Outcome = op, Changed
	switch op {
	case Applied:
		r.Moved, r.AppliedAt = moved, at
		if wasInDoubt {
			c.reclaim(moved)
		}
	case Refused:
		r.Reason = reason
		f := c.fact(RefundRejected, key(RefundRejected, id), OnRefundRejected)
		f.Record, f.Charge = id, c.Charge.ID
	default: // nothing to report
	}
	r.State = r.state()
	c.aboutRefund(id, func() { c.hold(op == InDoubt, IsAmbiguous, "", "it is not known whether refund %s was made", id) })
	c.attribute()
	return c.Books, c.Result
}

// refund returns a refund of the charge, or nil.
func (c *charging) refund(id string) *Refund {
	for i := range c.Refunds {
		if c.Refunds[i].ID == id {
			return &c.Refunds[i]
		}
	}
	return nil
}

// reclaim takes money that was reported as someone else's, while a refund was in
// doubt, for this refund.
func (c *charging) reclaim(moved int64) {
	taken := min(c.Charge.ByOthers, moved)
	c.Charge.ByOthers -= taken
	c.Charge.Attributed -= taken
}

// attribute reports what went back: the refunds that the gateway confirmed are done
// once the transaction shows their amounts, the oldest first. The rest is someone
// else's, unless a refund was sent whose outcome is not known yet: it may be that one.
func (c *charging) attribute() {
	charge, unclear := &c.Charge, false
	for i := range c.Refunds {
		r := &c.Refunds[i]
		switch {
		case r.Operation == Sent:
			unclear = true
		case r.Operation != Applied || r.Shown:
		case !unclear && charge.Refunded-charge.Attributed >= r.Moved:
			charge.Attributed += r.Moved
			r.Shown = true
			r.State = r.state()
			f := c.fact(RefundDone, key(RefundDone, r.ID), c.callback(OnRefunded))
			f.Record, f.Charge, f.About = r.ID, charge.ID, r.Moved
			c.aboutRefund(r.ID, func() { c.over(IsLower) })
		default:
			unclear = true
			if v, _ := Absence(ByOlder, c.now.Sub(r.AppliedAt), patience); v == Gone {
				c.aboutRefund(r.ID, func() {
					c.problem(IsLower, "", "refund %s of %d was confirmed, but the transaction does not show it", r.ID, r.Moved)
				})
			}
		}
	}
	if rest := charge.Refunded - charge.Attributed; rest > 0 && !unclear {
		charge.Attributed, charge.ByOthers = charge.Refunded, charge.ByOthers+rest
		c.fact(Returned, key(Returned, charge.TransactionID, cents(charge.Refunded)), c.callback(OnRefunded)).About = rest
	}
}

// state returns the state of the refund.
func (r *Refund) state() State {
	if r.Shown {
		return Done
	}
	return r.Operation.state(Accepted, Rejected)
}

// Refundable returns how much of the charge can still be refunded, in cents: what is
// left, less what the refunds under way may take.
func (b *Books) Refundable() int64 {
	return max(0, b.Charge.Paid-b.Charge.Disputed-b.Planned())
}

// Planned returns what will be refunded of the charge once the refunds under way are made,
// in cents.
func (b *Books) Planned() int64 {
	left := b.Charge.Paid - b.Charge.Disputed
	planned := b.Charge.Refunded
	for i := range b.Refunds {
		r := &b.Refunds[i]
		switch {
		case r.Shown || r.Operation == Refused || r.Operation == Abandoned:
		case r.Operation == Applied:
			planned += r.Moved
		case r.Full:
			planned = left
		case r.UpTo > 0:
			planned = max(planned, r.UpTo)
		default:
			planned += r.Amount
		}
	}
	return planned
}
