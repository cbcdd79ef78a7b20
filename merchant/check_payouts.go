package merchant

import (
	"context"
	"errors"
	"strings"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/merchant/internal/books"
)

// paidOut is a payout with the sum of its entries.
type paidOut struct {
	id, subject, ref, transfer string
	out                        int64
	during                     bool // it has entries in the month
}

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
	list := `(?` + strings.Repeat(`, ?`, len(items)-1) + `)`
	args := []any{k.account.Name}
	for i := range items {
		args = append(args, strings.ToLower(items[i].ID))
	}
	for i := range items {
		args = append(args, items[i].ExternalRef)
	}
	payouts, err := k.payouts(ctx, `p.account = ? AND (p.transfer_id IN `+list+` OR p.ref IN `+list+`)`, args...)
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
		p := payouts.of(t)
		switch during := k.during(t.CreatedAt.Time) || k.during(t.UpdatedAt.Time) || p != nil && p.during; {
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

type paidOuts []*paidOut

// of returns the payout of a transfer. A second transfer with a payout's reference is none.
func (list paidOuts) of(t *gateway.Transfer) *paidOut {
	for _, p := range list {
		if strings.EqualFold(p.transfer, t.ID) || p.transfer == "" && p.ref == t.ExternalRef {
			return p
		}
	}
	return nil
}

// payouts returns the payouts that a condition selects.
func (k *check) payouts(ctx context.Context, where string, args ...any) (list paidOuts, err error) {
	err = k.c.each(ctx, `SELECT p.id, p.subject, p.ref, COALESCE(p.transfer_id, ''), CAST(COALESCE(-SUM(f.amount), 0) AS {bigint}),
			COALESCE(MAX(CASE WHEN f.month = ? THEN 1 ELSE 0 END), 0)
		FROM gateway_payouts AS p LEFT JOIN gateway_facts AS f ON f.subject = p.subject AND f.record = p.id AND f.kind = '`+string(books.EntryPaidOut)+`'
		WHERE `+where+` GROUP BY p.id, p.subject, p.ref, p.transfer_id ORDER BY p.id`, append([]any{k.month}, args...), func(row database.Scanner) error {
		p := new(paidOut)
		var during int
		err := row.Scan(&p.id, &p.subject, &p.ref, &p.transfer, &p.out, &during)
		p.during = during == 1
		list = append(list, p)
		return err
	})
	return list, err
}

func (k *check) compareTransfer(t *gateway.Transfer, p *paidOut) {
	d := Difference{Resource: t.ID, Record: p.id, Order: orderID(p.subject), Kind: DiffPaidOut, Here: p.out}
	if d.There, d.Text = books.PaidOut(t); d.Text != "" {
		d.Kind = DiffUnreadable
	} else if d.Here == d.There {
		return
	}
	k.add(d)
}

// olderTransfers compares the transfers with entries in the month that were not listed.
func (k *check) olderTransfers(ctx context.Context) error {
	list, err := k.payouts(ctx, `p.transfer_id IS NOT NULL AND p.account = ? AND p.id IN (
		SELECT record FROM gateway_facts WHERE account = ? AND month = ? AND kind = '`+string(books.EntryPaidOut)+`')`, k.account.Name, k.account.Name, k.month)
	if err != nil {
		return err
	}
	for _, p := range list {
		if k.seen[p.transfer] {
			continue
		}
		switch t, err := k.account.Client.Transfers.Get(ctx, p.transfer); {
		case errors.Is(err, gateway.ErrNotFound):
			k.add(Difference{Resource: p.transfer, Record: p.id, Order: orderID(p.subject), Kind: DiffMissingThere, Here: p.out})
		case err != nil:
			return err
		default:
			k.compareTransfer(t, p)
		}
	}
	return nil
}
