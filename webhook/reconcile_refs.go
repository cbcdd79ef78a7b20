package webhook

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/gateway-go/gateway"
)

// clockMargin is how far the merchant's clock may be ahead of the gateway's
// when a reference's Since bounds the search.
const clockMargin = time.Hour

// resolve looks up what the records know by reference only. All references of a
// family are found in one pass over the newest pages of its list: the API has no
// filter for them.
func (ro *round) resolve(ctx context.Context, refs []OpenResource) error {
	byFamily := make(map[Family]map[string]OpenResource)
	for _, open := range refs {
		if err := searchable(open); err != nil {
			ro.failed(ctx, open, err)
			ro.add(Reconciliation{Checked: 1, Failed: 1})
			continue
		}
		if byFamily[open.Family] == nil {
			byFamily[open.Family] = make(map[string]OpenResource)
		}
		byFamily[open.Family][open.ExternalRef] = open
	}
	for family, wanted := range byFamily {
		if err := ro.search(ctx, family, wanted); err != nil {
			return err
		}
	}
	return nil
}

func searchable(open OpenResource) error {
	switch {
	case open.Family == FamilySubscription:
		return errors.New("webhook: a subscription can't be looked up by its idempotency key: repeat Create with the same key")
	case open.Family != FamilyTransaction && open.Family != FamilyTransfer:
		return fmt.Errorf("webhook: %q is no family with references", open.Family)
	case open.Since.IsZero():
		return errors.New("webhook: an ExternalRef needs Since, the time of the first create")
	default:
		return nil
	}
}

// search finds the wanted references in the list of a family, and settles those
// that are not there.
func (ro *round) search(ctx context.Context, family Family, wanted map[string]OpenResource) error {
	began := ro.rx.cfg.Now()
	whole, err := ro.find(ctx, family, wanted)
	for _, open := range wanted {
		one := Reconciliation{Checked: 1}
		switch {
		case err != nil:
			one.Failed++
			ro.failed(ctx, open, err)
		case !whole || began.Sub(open.Since) < ro.cfg.MinAge:
			one.Undecided++
		default:
			one = ro.absent(ctx, open)
		}
		ro.add(one)
	}
	if errors.Is(err, ErrShutdown) {
		return err
	}
	return ctx.Err()
}

// find takes what it finds out of wanted. It reports whether it has read all
// resources that are young enough.
func (ro *round) find(ctx context.Context, family Family, wanted map[string]OpenResource) (whole bool, err error) {
	left := ro.cfg.SearchPages * pageSize
	for item, err := range ro.newest(ctx, family, oldest(wanted)) {
		if err != nil {
			return false, err
		}
		if left--; left < 0 {
			return false, nil
		}
		open, ok := wanted[item.ref]
		if !ok {
			continue
		}
		delete(wanted, item.ref)
		open.ID = item.id
		if err := ro.identified(ctx, open); err != nil {
			return false, err
		}
		if len(wanted) == 0 {
			break
		}
	}
	return true, nil
}

// identified tells the merchant the id, and goes on as with any other resource.
func (ro *round) identified(ctx context.Context, open OpenResource) error {
	if ro.cfg.Identified != nil {
		if err := ro.cfg.Identified(ctx, open); err != nil {
			ro.failed(ctx, open, err)
			ro.add(Reconciliation{Checked: 1, Failed: 1})
			return nil
		}
	}
	return ro.start(ctx, open)
}

func (ro *round) absent(ctx context.Context, open OpenResource) Reconciliation {
	one := Reconciliation{Checked: 1, Missing: 1}
	if ro.cfg.Absent == nil {
		return one
	}
	if err := ro.cfg.Absent(ctx, open); err != nil {
		one.Failed++
		ro.failed(ctx, open, err)
	}
	return one
}

func oldest(wanted map[string]OpenResource) (since time.Time) {
	for _, open := range wanted {
		if since.IsZero() || open.Since.Before(since) {
			since = open.Since
		}
	}
	return since.Add(-clockMargin)
}

// pageSize is the longest page that the interface allows.
const pageSize = 100

// listed is what a search needs of a list's item.
type listed struct{ ref, id string }

// newest ranges over a family's resources that were created since, the newest
// first.
func (ro *round) newest(ctx context.Context, family Family, since time.Time) iter.Seq2[listed, error] {
	if family == FamilyTransfer {
		return ro.newestTransfers(ctx, since)
	}
	params := gateway.TransactionListParams{Limit: pageSize, From: since}
	return func(yield func(listed, error) bool) {
		for tx, err := range ro.rx.cfg.API.Transactions.All(ctx, params) {
			if err != nil {
				yield(listed{}, err)
				return
			}
			if !yield(listed{ref: tx.ExternalRef, id: tx.ID}, nil) {
				return
			}
		}
	}
}

// newestTransfers stops by itself: the list of transfers has no filter for
// their age.
func (ro *round) newestTransfers(ctx context.Context, since time.Time) iter.Seq2[listed, error] {
	return func(yield func(listed, error) bool) {
		for tr, err := range ro.rx.cfg.API.Transfers.All(ctx, gateway.TransferListParams{Limit: pageSize}) {
			if err != nil {
				yield(listed{}, err)
				return
			}
			old := !tr.CreatedAt.IsZero() && tr.CreatedAt.Before(since)
			if old || !yield(listed{ref: tr.ExternalRef, id: tr.ID}, nil) {
				return
			}
		}
	}
}
