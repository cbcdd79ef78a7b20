package merchant

import (
	"regexp"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/merchant/internal/books"
)

// What may stay of a record after its erasure: IDs, amounts, currencies, methods, states and times.
// Each function lists what stays, so what a later release adds goes unless it is added here. The
// tests have a decision about each member and each column.

// kept returns what may stay of a charge. The end-to-end ID is the banks' ID of a Pix, by which a
// dispute about it is found.
func (r *chargeRecord) kept() chargeRecord {
	return chargeRecord{
		Books: keptCharge(&r.Books), Amount: r.Amount, Currency: r.Currency, Method: r.Method, Installments: r.Installments,
		Call:       r.Call,
		EndToEndID: r.EndToEndID, ExpiresAt: r.ExpiresAt, Watch: r.Watch.kept(), Earlier: r.Earlier, Link: r.Link,
	}
}

func keptCharge(c *books.Charge) books.Charge {
	return books.Charge{
		ID: c.ID, Origin: c.Origin, CardCheck: c.CardCheck, TransactionID: c.TransactionID, Operation: c.Operation,
		State: c.State, Status: c.Status,
		Reason: keptReason(c.Reason), Currency: c.Currency, Requested: c.Requested, Asked: c.Asked, Amount: c.Amount,
		Paid: c.Paid, Fee: c.Fee,
		Refunded: c.Refunded, Disputed: c.Disputed, Assumed: c.Assumed, Foreign: c.Foreign, Accepted: c.Accepted,
		Late: c.Late, PaidAt: c.PaidAt,
		PeriodEnd: c.PeriodEnd, Attributed: c.Attributed, ByOthers: c.ByOthers, Disputes: c.Disputes, Reported: c.Reported,
		Problems: keptProblems(c.Problems), UpdatedAt: c.UpdatedAt, ReadAt: c.ReadAt, LowerSince: c.LowerSince,
	}
}

func keptRefund(r *books.Refund) books.Refund {
	return books.Refund{
		ID: r.ID, Operation: r.Operation, State: r.State, Amount: r.Amount, UpTo: r.UpTo, Full: r.Full, Moved: r.Moved,
		AppliedAt: r.AppliedAt,
		Shown:     r.Shown, Reason: keptReason(r.Reason),
	}
}

// kept returns what may stay of a payout. Its Pix key is in the outbox alone.
func (r *payoutRecord) kept() payoutRecord {
	p := &r.Payout
	return payoutRecord{
		Payout: books.Payout{
			ID: p.ID, TransferID: p.TransferID, Operation: p.Operation, State: p.State, Status: p.Status,
			Reason:    keptReason(p.Reason),
			Requested: p.Requested, Amount: p.Amount, Fee: p.Fee, Out: p.Out, Moves: p.Moves, PaidAt: p.PaidAt,
			Reported: p.Reported,
			Problems: keptProblems(p.Problems), UpdatedAt: p.UpdatedAt, ReadAt: p.ReadAt, LowerSince: p.LowerSince,
		},
		Watch: r.Watch.kept(), Earlier: r.Earlier,
	}
}

// kept returns what may stay of a subscription. CustomerID is the gateway's ID of the customer.
func (r *subscriptionRecord) kept() subscriptionRecord {
	s := &r.Books
	return subscriptionRecord{
		asked: asked{
			Amount: r.Amount, Currency: r.Currency, Method: r.Method, Interval: r.Interval, IntervalCount: r.IntervalCount,
		},
		Books: books.Subscription{
			ID: s.ID, SubscriptionID: s.SubscriptionID, Operation: s.Operation, State: s.State, Status: s.Status,
			Reason:    keptReason(s.Reason),
			PaidUntil: s.PaidUntil, TrialEnd: s.TrialEnd, Ends: s.Ends,
			Access:      books.Access{Until: s.Access.Until, Status: s.Access.Status, Ends: s.Access.Ends},
			AccessFacts: s.AccessFacts, FailedAttempts: s.FailedAttempts, Reported: s.Reported,
			Problems:  keptProblems(s.Problems),
			UpdatedAt: s.UpdatedAt, ReadAt: s.ReadAt,
		},
		CustomerID: r.CustomerID, Canceling: r.Canceling, CancelReason: keptReason(r.CancelReason), CancelCall: r.CancelCall,
		Cancels:   r.Cancels,
		PeriodEnd: r.PeriodEnd, Watch: r.Watch.kept(), ReadAfter: r.ReadAfter, Earlier: r.Earlier,
	}
}

func (w *watch) kept() watch {
	return watch{Announced: w.Announced, AnnouncedAt: w.AnnouncedAt, MissingSince: w.MissingSince}
}

func keptProblems(list []books.Raised) (kept []books.Raised) {
	for i := range list {
		r := &list[i]
		kept = append(kept, books.Raised{
			Kind: r.Kind, Record: r.Record, About: r.About, Detail: r.Detail, Times: r.Times,
			Over: r.Over, At: r.At,
		})
	}
	return kept
}

// kept returns what may stay of an adoption.
func (p *Adoption) kept() Adoption {
	return Adoption{
		Transaction: p.Transaction, Subscription: p.Subscription, Transfer: p.Transfer, Order: p.Order, ID: p.ID,
		Cost: p.Cost, Call: p.Call,
	}
}

// reasonCode is a reason that is a code, such as "insufficient_funds". Another one may be a text
// that repeats what was sent, or what a person wrote.
var reasonCode = regexp.MustCompile(`^[a-z]{2,}(_[a-z0-9]+){0,6}$`)

func keptReason(reason string) string {
	if len(reason) > 64 || !reasonCode.MatchString(reason) {
		return ""
	}
	return reason
}

// plainProblems are the kinds of problems whose texts this package makes of IDs, amounts and states
// alone.
var plainProblems = []books.ProblemKind{
	ProblemAmbiguous, ProblemUnderpaid, ProblemPaidAgain, ProblemUnknownState, ProblemUnmatched, ProblemContested,
	ProblemContradiction, ProblemLower,
	ProblemCurrency, ProblemReversed, ProblemOverpaid, ProblemClosed, ProblemMissing, ProblemCancelRejected,
	ProblemRefundRejected,
}

// erasedAt shows since when a record keeps nothing of its buyer.
func erasedAt(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// noBuyer is the buyer of a sale that was erased, so that no callback needs to expect a nil one.
func noBuyer() *gateway.Buyer { return new(gateway.Buyer) }
