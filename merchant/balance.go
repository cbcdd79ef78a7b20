package merchant

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gateway-go/gateway/merchant/internal/ledger"
)

// An account's balance is noted four times a day, and only while nothing waits: a payment
// that is not booked yet would look like a difference. If something waits, it is tried again
// soon.
const (
	balanceEvery = 6 * time.Hour
	balanceAgain = 5 * time.Minute
)

// noteBalance notes the balance of an account.
func (m *core) noteBalance(ctx context.Context, a *account) error {
	n, err := m.waiting(ctx)
	if err != nil || n.requests+n.events+n.refunds > 0 {
		return err
	}
	l := m.outside()
	before, err := l.Newest(ctx)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, m.cfg.CallbackTimeout)
	defer cancel()
	balance, currency, err := a.Balance(limited)
	if err != nil {
		return err
	}
	var is ledger.Balance
	if err := m.byIndex(ctx, func(l ledger.Ledger) (err error) {
		is, err = l.Booked(ctx, a.Name, currency)
		return err
	}); err != nil {
		return err
	}
	is.Balance = balance
	if after, err := l.Newest(ctx); err != nil || after != before {
		return err
	}
	return l.NoteBalance(ctx, a.Name, currency, is, min(balanceEvery, m.cfg.CompareEvery))
}

// balance compares how much the account's balance changed in the month with the entries
// that were booked meanwhile. Each end of the month has several notes, one of which may have
// been taken at a bad moment: one pair that agrees suffices.
func (k *check) balance(ctx context.Context) error {
	begin, err := k.noted(ctx, k.begin)
	if err != nil || len(begin) == 0 {
		return err
	}
	end, err := k.noted(ctx, k.end)
	if err != nil || len(end) == 0 {
		return err
	}
	adopted, err := k.l.AdoptedIn(ctx, k.account.Name, k.currency, k.months(begin[0].At, end[len(end)-1].At))
	if err != nil {
		return err
	}
	// Notes have no adopted entries: what changed the balance between two of them counts.
	booked := func(b, e ledger.Balance) int64 {
		sum := e.Booked - b.Booked
		for _, a := range adopted {
			if a.At.After(b.At) && !a.At.After(e.At) {
				sum += a.Amount
			}
		}
		return sum
	}
	slices.Reverse(end) // the latest first
	for _, b := range begin {
		for _, e := range end {
			if e.At.After(b.At) && e.Balance-b.Balance == booked(b, e) {
				return nil
			}
		}
	}
	b, e := begin[0], end[0]
	if !e.At.After(b.At) {
		return nil
	}
	in := func(at time.Time) string { return at.In(k.account.Zone).Format(time.RFC3339) }
	k.add(Difference{
		Kind: DiffBalance, Here: booked(b, e), There: e.Balance - b.Balance,
		Text: fmt.Sprintf("between %s and %s the balance changed by this, and the entries add up to that", in(b.At), in(e.At)),
	})
	return nil
}

// months returns the months of a time.
func (k *check) months(from, to time.Time) (list []string) {
	from, to = from.In(k.account.Zone), to.In(k.account.Zone)
	for at := time.Date(from.Year(), from.Month(), 1, 12, 0, 0, 0, k.account.Zone); !at.After(to.AddDate(0, 0, 31)); at = at.AddDate(0, 1, 0) {
		list = append(list, at.Format("2006-01"))
	}
	return list
}

// noted returns the balances that were noted within a day of one end of the month or, if
// there is none, the nearest one of the month.
func (k *check) noted(ctx context.Context, at time.Time) ([]ledger.Balance, error) {
	const day = 24 * time.Hour
	list, err := k.l.Balances(ctx, k.account.Name, k.currency, at.Add(-day), at.Add(day))
	if err != nil || len(list) > 0 {
		return list, err
	}
	list, err = k.l.Balances(ctx, k.account.Name, k.currency, k.begin, k.end)
	switch {
	case err != nil || len(list) == 0:
		return nil, err
	case at.Equal(k.begin):
		return list[:1], nil
	default:
		return list[len(list)-1:], nil
	}
}
