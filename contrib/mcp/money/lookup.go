package money

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/contrib/mcp/intent"
	"github.com/gateway-go/gateway/internal/doubt"
	"github.com/gateway-go/gateway/internal/spec"
)

// The ambiguities of an intent whose repeats were rejected, as the journal has them.
const (
	duplicate = "the gateway says that it has the reference, and its list does not show it"
	differs   = "the resource with the reference has another payee or amount"
	tooLong   = "the gateway's list is too long to be searched"
)

// maxPages is how many pages of 100 are searched.
const maxPages = 300

var errTooLong = errors.New("money: " + tooLong)

// resolve reads what became of a charge or a payout whose repeats were rejected. The
// rule is that of package operations: the last rejection is the outcome once three reads
// in a row, well after the last request, don't show the reference. Nothing is sent.
func (p *plane) resolve(ctx context.Context, who string, i *intent.Intent) *Result {
	if p.now().Before(i.RetryAt) {
		return unresolved(i)
	}
	found, same, err := p.find(ctx, i)
	switch {
	case errors.Is(err, errTooLong):
		return p.ambiguous(who, i, tooLong)
	case err != nil:
		r := unresolved(i)
		r.quote(err.Error())
		return r
	case found != nil && !same:
		return p.ambiguous(who, i, differs)
	case found != nil:
		return p.finish(who, i, intent.Outcome{State: intent.Done, ResourceID: found.ID}, found, nil)
	case i.Rejection == sentinel(gateway.ErrConflict), i.Rejection == sentinel(gateway.ErrDuplicate):
		// The rejection says that there is a resource, so its absence proves nothing.
		return p.ambiguous(who, i, duplicate)
	}
	missed, err := p.journal.Miss(who, i.ID)
	if err != nil {
		return show(i).fail(err)
	}
	return unresolved(missed)
}

// unresolved shows an intent that this call did not finish, or that was refused.
func unresolved(i *intent.Intent) *Result {
	r := show(i)
	r.failed = true
	return r
}

func (p *plane) ambiguous(who string, i *intent.Intent, why string) *Result {
	after, err := p.journal.Ambiguous(who, i.ID, why)
	if err != nil {
		return show(i).fail(err)
	}
	return unresolved(after)
}

// lookup searches the gateway's list for the resource with the reference of an intent. It
// returns nil if there is none. same reports whether the resource is what was sent.
func (p *plane) lookup(ctx context.Context, i *intent.Intent) (found *Resource, same bool, err error) {
	ago := p.now().Sub(i.FirstSent) // negative if the clock was set back since
	if i.Kind == intent.Payout {
		var params gateway.TransferParams
		if err := json.Unmarshal(i.Params, &params); err != nil {
			return nil, false, err
		}
		params.ExternalRef = i.Reference
		pages := p.client.Transfers.Pages(ctx, gateway.TransferListParams{Limit: spec.MaxPageSize}, gateway.AttemptTimeout(sendTimeout))
		t, err := search(pages, i.Reference, ago, func(t *gateway.Transfer) (string, time.Time) { return t.ExternalRef, t.CreatedAt.Time })
		if t == nil || err != nil {
			return nil, false, err
		}
		return transfer(t), doubt.TransferDiffers(&params, t) == "", nil
	}
	var params gateway.TransactionParams
	if err := json.Unmarshal(i.Params, &params); err != nil {
		return nil, false, err
	}
	params.ExternalRef = i.Reference
	pages := p.client.Transactions.Pages(ctx, gateway.TransactionListParams{Limit: spec.MaxPageSize}, gateway.AttemptTimeout(sendTimeout))
	listed, err := search(pages, i.Reference, ago, func(t *gateway.Transaction) (string, time.Time) { return t.ExternalRef, t.CreatedAt.Time })
	if listed == nil || err != nil {
		return nil, false, err
	}
	// An error, even a 404, does not mean that there is none: the list has it.
	t, err := p.client.Transactions.Get(ctx, listed.ID, single()...)
	if err != nil {
		return nil, false, err
	}
	return transaction(t), doubt.TransactionDiffers(&params, t) == "", nil
}

// search reads a list, newest first, until an item has the reference or is too old to be
// that of a request that was sent so long ago.
func search[T any](
	pages iter.Seq2[*gateway.Page[T], error], reference string, ago time.Duration, of func(*T) (reference string, created time.Time),
) (*T, error) {
	var newest time.Time
	read := 0
	for page, err := range pages {
		if err != nil {
			return nil, err
		}
		for n := range page.Items {
			has, created := of(&page.Items[n])
			if has == reference {
				return &page.Items[n], nil
			}
			if newest.IsZero() {
				newest = created
			}
			if doubt.TooOld(newest, created, ago) {
				return nil, nil
			}
		}
		if read++; read == maxPages && page.HasMore() {
			return nil, errTooLong
		}
	}
	return nil, nil
}
