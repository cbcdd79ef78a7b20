package merchant

import (
	"context"
	"errors"
	"strings"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/merchant/internal/books"
	"github.com/gateway-go/gateway/merchant/internal/ledger"
)

// listedTransfers compares the transfers that the gateway lists, newest first, until they
// are too old.
func (k *check) listedTransfers(ctx context.Context) error {
	oldest := k.begin.Add(-lookBack)
	for page, err := range k.account.Client.Transfers.Pages(ctx, gateway.TransferListParams{Limit: spec.MaxPageSize}) {
		if err != nil {
			return err
		}
		if err := k.transferPage(ctx, page.Items); err != nil {
			return err
		}
		if n := len(page.Items); n > 0 && page.Items[n-1].CreatedAt.Before(oldest) {
			return nil
		}
	}
	return nil
}

func (k *check) transferPage(ctx context.Context, items []gateway.Transfer) error {
	if len(items) == 0 {
		return nil
	}
	var ids, refs []string
	for i := range items {
		ids, refs = append(ids, strings.ToLower(items[i].ID)), append(refs, items[i].ExternalRef)
	}
	payouts, err := k.l.PayoutSums(ctx, k.account.Name, k.month, ids, refs)
	if err != nil {
		return err
	}
	for i := range items {
		t := &items[i]
		id := strings.ToLower(t.ID)
		if k.seen[id] || !t.CreatedAt.Before(k.end) {
			continue
		}
		k.seen[id] = true
		p := payoutFor(payouts, t)
		switch during := k.during(t.CreatedAt.Time) || k.during(t.UpdatedAt.Time) || p != nil && p.During; {
		case !during:
		case p != nil:
			k.compareTransfer(t, p)
		case strings.HasPrefix(t.ExternalRef, k.account.Prefix) && strings.HasSuffix(t.ExternalRef, payoutSuffix):
			if out, wrong := books.PaidOut(t); wrong != "" || out != 0 {
				k.add(Difference{Resource: t.ID, Kind: DiffMissingHere, There: out, Text: wrong})
			}
		}
	}
	return nil
}

// payoutFor returns the payout of a transfer. A second transfer with a payout's reference is
// none.
func payoutFor(list []ledger.PaidOut, t *gateway.Transfer) *ledger.PaidOut {
	for i := range list {
		if p := &list[i]; strings.EqualFold(p.Transfer, t.ID) || p.Transfer == "" && p.Ref == t.ExternalRef {
			return p
		}
	}
	return nil
}

func (k *check) compareTransfer(t *gateway.Transfer, p *ledger.PaidOut) {
	d := Difference{Resource: t.ID, Record: p.ID, Order: ledger.OrderID(p.Subject), Kind: DiffPaidOut, Here: p.Out}
	if d.There, d.Text = books.PaidOut(t); d.Text != "" {
		d.Kind = DiffUnreadable
	} else if d.Here == d.There {
		return
	}
	k.add(d)
}

// olderTransfers compares the transfers with entries in the month that were not listed.
func (k *check) olderTransfers(ctx context.Context) error {
	list, err := k.l.PayoutSums(ctx, k.account.Name, k.month, nil, nil)
	if err != nil {
		return err
	}
	for i := range list {
		p := &list[i]
		if k.seen[p.Transfer] {
			continue
		}
		switch t, err := k.account.Client.Transfers.Get(ctx, p.Transfer); {
		case errors.Is(err, gateway.ErrNotFound):
			k.add(Difference{Resource: p.Transfer, Record: p.ID, Order: ledger.OrderID(p.Subject), Kind: DiffMissingThere, Here: p.Out})
		case err != nil:
			return err
		default:
			k.compareTransfer(t, p)
		}
	}
	return nil
}
