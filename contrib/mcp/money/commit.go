package money

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/contrib/mcp/intent"
	"github.com/gateway-go/gateway/internal/doubt"
	"github.com/gateway-go/gateway/internal/refund"
)

const (
	// sendTimeout is how long a request may take. It is shorter than
	// intent.Config.SettleAfter, so a refund is not looked for while it may still be sent.
	sendTimeout = 30 * time.Second
	// oldest is how far back the gateway is searched for a reference that it has.
	oldest = 30 * 24 * time.Hour
)

// reply is the decision on a question, as the client returns it.
type reply struct {
	state  string
	accept bool
}

// question asks a person whether an intent may be sent.
type question struct{ text, state string }

// commit sends an intent if a person has approved it. Without a reply it returns a question if
// the client can ask it.
func (p *plane) commit(ctx context.Context, who, id string, canAsk bool, answer *reply) (*Result, *question) {
	i, err := p.journal.Get(who, id)
	if err != nil {
		return new(Result).fail(err), nil
	}
	switch i.State {
	case intent.Done:
		return p.withResource(ctx, show(i), i), nil
	case intent.Refused, intent.Canceled, intent.Expired:
		r := show(i)
		r.failed = true
		return r, nil
	default: // may be sent
	}
	if !i.Repeat() && !i.Approved {
		var asked *question
		if i, asked, err = p.approve(who, i, canAsk, answer); asked != nil {
			return nil, asked
		} else if err != nil {
			r := new(Result)
			if known, getErr := p.journal.Get(who, id); getErr == nil {
				r = show(known)
			}
			return r.fail(err), nil
		}
	}
	// The caller's end must not leave a request without its outcome.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*sendTimeout)
	defer cancel()
	switch {
	case i.Kind == intent.Refund:
		return p.refund(ctx, who, i), nil
	case i.Looks():
		return p.resolve(ctx, who, i), nil
	}
	return p.create(ctx, who, i), nil
}

// approve returns the intent once a person has approved it, or the question.
func (p *plane) approve(who string, i *intent.Intent, canAsk bool, answer *reply) (*intent.Intent, *question, error) {
	if i.Kind != intent.Refund { // the amount of a refund is known later
		if err := p.journal.Allowed(i); err != nil {
			return nil, nil, err
		}
	}
	switch {
	case !p.journal.ClientMayApprove(i):
		return nil, nil, intent.ErrTerminal
	case !canAsk:
		return nil, nil, intent.ErrNotApproved
	case answer == nil:
		return nil, &question{text: Question(i), state: p.sealer.Seal(i, p.now())}, nil
	}
	round, err := p.sealer.Open(answer.state, i, p.now())
	if err != nil {
		return nil, nil, err
	}
	i, err = p.decide(who, i.ID, round, answer.accept, intent.ViaClient)
	if err == nil && !i.Approved {
		err = errDeclined
	}
	return i, nil, err
}

// errDeclined is the decision no.
var errDeclined = fmt.Errorf("%w: the person declined", intent.ErrApproval)

// Question returns what a person is asked, from validated values only: one line, in
// which what the agent wrote is quoted.
func Question(i *intent.Intent) string {
	amount := gateway.FormatAmount(i.Amount, gateway.Currency(i.Currency))
	short := cut(i.For, maxPurpose)
	if short != i.For {
		short += "…"
	}
	purpose := strconv.Quote(short)
	switch payee := exact(i.Payee); i.Kind {
	case intent.Charge:
		return fmt.Sprintf("Charge %s to the buyer %s for %s?", amount, payee, purpose)
	case intent.Payout:
		return fmt.Sprintf("Pay %s to the Pix key %s for %s?", amount, payee, purpose)
	default:
		return fmt.Sprintf("Refund the transaction %s until %s of it are refunded, for %s?", payee, amount, purpose)
	}
}

// maxPurpose is how many characters of a purpose a question shows.
const maxPurpose = 60

// exact returns a payee as a person must see it: whole. If it has a character that is
// neither printable ASCII nor an accented letter of Portuguese or Spanish, which another
// one may look like or which can't be seen, all of these are written as numbers.
func exact(payee string) string {
	known := func(r rune) bool {
		return r >= ' ' && r <= '~' && r != '"' && r != '\\' || r >= 'À' && r <= 'ÿ' && unicode.IsLetter(r)
	}
	if strings.ContainsFunc(payee, func(r rune) bool { return !known(r) }) {
		return strconv.QuoteToASCII(payee)
	}
	return payee
}

func single() []gateway.RequestOption {
	return []gateway.RequestOption{gateway.MaxAttempts(1), gateway.AttemptTimeout(sendTimeout)}
}

// create sends a charge or a payout. It may be repeated any number of times, because the
// reference is always the same.
func (p *plane) create(ctx context.Context, who string, i *intent.Intent) *Result {
	sent, err := p.journal.Begin(who, i.ID, nil, 0)
	if err != nil {
		return p.notBegun(who, i, err)
	}
	i = sent
	first := i.Open == 1
	opts := single()
	if !first {
		opts = append(opts, gateway.FirstSent(i.FirstSent))
	}
	made, existing, err := p.post(ctx, i, opts)
	if first && err != nil && errors.Is(err, gateway.ErrDuplicate) && !errors.Is(err, gateway.ErrOutcomeUnknown) {
		// The gateway has the reference: another process with a journal of its own
		// used it, or this one lost its journal. The repeat reads and compares it.
		made, _, err = p.post(ctx, i, append(single(), gateway.FirstSent(p.now().Add(-oldest))))
		existing = true
	}
	outcome := intent.Outcome{State: intent.Done, Existing: existing && first}
	if err != nil {
		outcome = failed(err)
		outcome.RetryAt = p.retryAt(err)
		if !first {
			// A duplicate with another content has the reference, so no request of
			// this intent was applied. Any other rejection proves nothing.
			outcome.Certain = errors.Is(err, gateway.ErrDuplicate)
			outcome.Rejection = rejection(err)
		}
	} else {
		outcome.ResourceID = made.ID
	}
	return p.finish(who, i, outcome, made, err)
}

// post sends the create of an intent. existing reports that the gateway returned a
// resource that it had.
func (p *plane) post(ctx context.Context, i *intent.Intent, opts []gateway.RequestOption) (r *Resource, existing bool, err error) {
	var response gateway.Response
	opts = append(opts, gateway.ResponseInto(&response))
	if i.Kind == intent.Payout {
		var params gateway.TransferParams
		if err := json.Unmarshal(i.Params, &params); err != nil {
			return nil, false, err
		}
		params.ExternalRef = i.Reference
		t, err := p.client.Transfers.Create(ctx, params, opts...)
		if err != nil {
			return nil, false, err
		}
		return transfer(t), response.Existing, nil
	}
	var params gateway.TransactionParams
	if err := json.Unmarshal(i.Params, &params); err != nil {
		return nil, false, err
	}
	params.ExternalRef = i.Reference
	t, err := p.client.Transactions.Create(ctx, params, opts...)
	if err != nil {
		return nil, false, err
	}
	return transaction(t), response.Existing, nil
}

// failed returns the outcome of a request that failed. Only the gateway's own rejection
// that the interface defines for it, or a request that never left, proves that nothing was
// done: a 401, 403 or 429 may come from something in front of the gateway.
func failed(err error) intent.Outcome {
	o := intent.Outcome{State: intent.Unknown, Problem: sentinel(err)}
	switch {
	case errors.Is(err, gateway.ErrOutcomeUnknown):
	case errors.Is(err, gateway.ErrNotSent):
		o.State = intent.Prepared
	case doubt.Kind(err) != "":
		o.State = intent.Refused
	}
	return o
}

// rejection returns the sentinel with which the gateway rejected a repeat, "" if it did not.
func rejection(err error) string {
	switch doubt.KindOfRepeat(err) {
	case "conflict":
		return sentinel(gateway.ErrConflict)
	case "validation":
		return sentinel(gateway.ErrValidation)
	case "not_found":
		return sentinel(gateway.ErrNotFound)
	case "retired":
		return sentinel(gateway.ErrRetired)
	default:
		return ""
	}
}

func (p *plane) retryAt(err error) time.Time {
	if e, ok := errors.AsType[*gateway.Error](err); ok && e.RetryAfter > 0 {
		return p.now().Add(e.RetryAfter).UTC()
	}
	return time.Time{}
}

// refund sends a refund, or finds out what became of it. A refund has no reference, so it
// is never sent while an earlier request may still be applied.
func (p *plane) refund(ctx context.Context, who string, i *intent.Intent) *Result {
	var params refundParams
	if err := json.Unmarshal(i.Params, &params); err != nil {
		return show(i).fail(err)
	}
	if i.Repeat() {
		r, done := p.look(ctx, who, i, params)
		if done {
			return r
		}
	}
	entries, err := p.journal.Entries()
	if err != nil {
		return show(i).fail(err)
	}
	t, err := p.fresh(ctx, params.TransactionID)
	if err != nil {
		return show(i).fail(err)
	}
	if params.goal().Reached(t) {
		done, err := p.journal.Complete(who, i.ID, t.ID)
		if err != nil {
			return show(i).fail(err)
		}
		r := show(done)
		r.Resource = transaction(t)
		return r
	}
	left := params.goal().Missing(t)
	if left < 1 { // and yet the status says that something is left
		return show(i).fail(&gateway.ValidationError{Fields: []gateway.FieldError{{
			Field: "full", Message: "the gateway does not report how much is left: prepare the refund with up_to", Code: "invalid",
		}}})
	}
	sent, err := p.journal.Begin(who, i.ID, &intent.Before{Refunded: t.RefundedAmount, Refund: left}, entries)
	if err != nil {
		return p.notBegun(who, i, err)
	}
	i = sent
	sending, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	_, err = p.client.Transactions.Refund(sending, params.TransactionID, gateway.RefundParams{Amount: left}, single()...)
	outcome := intent.Outcome{State: intent.Done, ResourceID: t.ID}
	if err != nil {
		if outcome = failed(err); outcome.State == intent.Refused {
			outcome = p.rejected(ctx, i, params, outcome)
		}
	}
	return p.finish(who, i, outcome, nil, err)
}

// rejected reads the transaction of a rejected refund: the rejection counts only if the
// read does not show the refund.
func (p *plane) rejected(ctx context.Context, i *intent.Intent, params refundParams, o intent.Outcome) intent.Outcome {
	t, err := p.fresh(ctx, params.TransactionID)
	switch {
	case err != nil:
		o.State = intent.Unknown
	case params.goal().Compare(t, i.Before.Refunded, i.Before.Refund) == refund.Applied:
		return intent.Outcome{State: intent.Done, ResourceID: t.ID}
	}
	return o
}

// look finds out whether a refund was applied. done is false if it certainly was not, and
// may be sent.
func (p *plane) look(ctx context.Context, who string, i *intent.Intent, params refundParams) (r *Result, done bool) {
	if p.now().Before(i.RetryAt) {
		r := show(i)
		r.failed = true
		return r, true
	}
	t, err := p.fresh(ctx, params.TransactionID)
	if err != nil {
		r := show(i)
		r.failed = true
		r.quote(err.Error())
		return r, true
	}
	if params.goal().Compare(t, i.Before.Refunded, i.Before.Refund) == refund.Applied {
		return p.finish(who, i, intent.Outcome{State: intent.Done, ResourceID: t.ID}, transaction(t), nil), true
	}
	missed, err := p.journal.Miss(who, i.ID)
	if err != nil {
		return show(i).fail(err), true
	}
	if missed.State != intent.Prepared {
		r := show(missed)
		r.failed = true
		return r, true
	}
	return nil, false
}

// errStale is a read that shows an older state than one that was read before.
var errStale = errors.New("the transaction that was read is older than the last read")

func (p *plane) fresh(ctx context.Context, id string) (*gateway.Transaction, error) {
	least, err := p.journal.Refunded(id)
	if err != nil {
		return nil, err
	}
	t, err := p.client.Transactions.Get(ctx, id, single()...)
	if err == nil && t.RefundedAmount < least {
		return nil, fmt.Errorf("%w: %w", gateway.ErrNotSent, errStale)
	}
	return t, err
}

// notBegun shows an intent that may not be sent now.
func (p *plane) notBegun(who string, i *intent.Intent, err error) *Result {
	if known, getErr := p.journal.Get(who, i.ID); getErr == nil {
		i = known
	}
	return show(i).fail(err)
}

// finish records the outcome of a request and shows it.
func (p *plane) finish(who string, i *intent.Intent, o intent.Outcome, made *Resource, cause error) *Result {
	after, err := p.journal.Finish(who, i.ID, o)
	if err != nil { // what is on disk says that a request was sent
		r := show(i)
		r.failed = true
		return r
	}
	r := show(after)
	r.Resource = made
	if cause != nil {
		r.failed = after.State != intent.Done
		if e, ok := errors.AsType[*gateway.Error](cause); ok {
			r.quote(e.Error())
		}
		if after.State == intent.Prepared || after.State == intent.Refused {
			state, retryAt := r.State, r.RetryAt
			r.fail(cause)
			r.State, r.RetryAt = state, retryAt
		}
	}
	return r
}
