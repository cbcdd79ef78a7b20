package merchant

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/gate"
	"github.com/gateway-go/gateway/internal/masking"
	"github.com/gateway-go/gateway/internal/sqldb"
	"github.com/gateway-go/gateway/merchant/internal/books"
	"github.com/gateway-go/gateway/merchant/internal/ledger"
)

// AdoptTx has [Merchant.Run] adopt a resource after the commit of your transaction: for old code
// that still creates some, in the transaction that stores its ID. Until then the order waits:
// [Merchant.ChargeTx] returns [ErrAdopting]. What can't be adopted is a [Problem].
//
// A second call for the same resource changes nothing, also with another Call, or has it tried once
// more if it could not be adopted. The error is [gateway.ErrValidation] if a member is wrong, and [ErrReused] if the
// resource was to be adopted for something else. Then nothing was stored. About your COMMIT see
// [ErrMaybeStored].
func (m *Merchant[TX]) AdoptTx(ctx context.Context, tx TX, p Adoption) error {
	a, err := m.adoptable(&p)
	if err != nil {
		return err
	}
	_, err = m.queue(ctx, m.ledger(m.in(tx)), a, []Adoption{p})
	return err
}

// adoptionPage is how many adoptions are stored in one transaction.
const adoptionPage = 500

// AdoptAll is [Merchant.AdoptTx] for many, in transactions of 500, and returns how many it has
// added: those that were not added before, or could not be adopted. After any error call it again
// with the same list: that adds the rest. [Merchant.Run] works on those of an account in one
// process at a time and reads Config.AdoptRate resources a second, so 50,000 take three hours. See
// [Merchant.Adoptions].
//
// An error of the list, or in one of its members, ends it: what came up to 500 before is not added.
// If the response to a COMMIT is lost, what it stored is not counted.
func (m *core) AdoptAll(ctx context.Context, list iter.Seq2[Adoption, error]) (added int, err error) {
	pages := make(map[*account][]Adoption)
	flush := func(a *account) error {
		page := pages[a]
		pages[a] = nil
		var n int64
		err := m.stored(ctx, func(ctx context.Context, tx sqldb.Tx, _ bool) (err error) {
			if err := m.db.UseIndexes(ctx, tx); err != nil {
				return err
			}
			n, err = m.queue(ctx, m.ledger(tx), a, page)
			return err
		})
		added += int(n)
		return err
	}
	place := 0
	for p, err := range list {
		if err != nil {
			return added, err
		}
		place++
		a, err := m.adoptable(&p)
		if err != nil {
			return added, fmt.Errorf("adoption %d of the list: %w", place, err)
		}
		if pages[a] = append(pages[a], p); len(pages[a]) == adoptionPage {
			if err := flush(a); err != nil {
				return added, err
			}
		}
	}
	for a, page := range pages {
		if len(page) > 0 {
			if err := flush(a); err != nil {
				return added, err
			}
		}
	}
	return added, nil
}

// Adoptions returns how many adoptions of an account wait, are done, and have failed: each of
// these is a [Problem] until it is adopted after all. With one account its name may be "". The
// error is [ErrAccount] if there is no such account.
func (m *reading) Adoptions(ctx context.Context, account string) (waiting, done, failed int, err error) {
	a, err := m.account(account)
	if err != nil {
		return 0, 0, 0, err
	}
	counts, err := m.outside().CountAdoptions(ctx, a.Name)
	return counts[ledger.AdoptionWaiting], counts[ledger.AdoptionDone], counts[ledger.AdoptionFailed], err
}

// queue stores adoptions of an account, and returns how many it has added.
func (m *core) queue(ctx context.Context, l ledger.Ledger, a *account, list []Adoption) (int64, error) {
	type key struct {
		kind     ledger.Kind
		resource string
	}
	asked, resources := make(map[key]ledger.Adoption), make(map[ledger.Kind][]string)
	var order []key
	differs := func(is *ledger.Adoption) error {
		return fmt.Errorf("%w: %s %s is adopted as something else, %s", ErrReused, is.Kind, is.Resource, is.Subject)
	}
	for i := range list {
		one, err := list[i].stored(a)
		if err != nil {
			return 0, err
		}
		k := key{one.Kind, one.Resource}
		if same, twice := asked[k]; !twice {
			asked[k], order, resources[k.kind] = one, append(order, k), append(resources[k.kind], k.resource)
		} else if !asksTheSame(&same, &one) {
			return 0, differs(&same)
		}
	}
	for kind, of := range resources {
		known, err := l.StoredAdoptions(ctx, a.Name, kind, of)
		if err != nil {
			return 0, err
		}
		for i := range known {
			is := &known[i]
			if is.State == ledger.AdoptionFailed {
				continue
			}
			k := key{kind, is.Resource}
			if one := asked[k]; !asksTheSame(&one, is) {
				return 0, differs(is)
			}
			delete(asked, k)
		}
	}
	var added []ledger.Adoption
	for _, k := range order {
		if one, is := asked[k]; is {
			added = append(added, one)
		}
	}
	if len(added) == 0 {
		return 0, nil
	}
	return l.AddAdoptions(ctx, added)
}

// asksTheSame reports whether two adoptions of a resource want the same. Call may differ: your row
// may have changed since the first one was stored, whose Call counts.
func asksTheSame(a, b *ledger.Adoption) bool {
	if a.Request == b.Request {
		return true
	}
	var one, other Adoption
	if decode(a.Request, &one) != nil || decode(b.Request, &other) != nil {
		return false
	}
	one.Call, other.Call = false, false
	return one == other
}

// adoptOrder adopts what an order waits for, so that it can be charged and refunded.
func (m *core) adoptOrder(ctx context.Context, order ledger.Subject) error {
	list, err := m.outside().AdoptionsOf(ctx, order)
	for i := range list {
		if err == nil {
			err = m.adoptOne(ctx, &list[i])
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrAdopting, order, err)
	}
	return nil
}

// adoptOne adopts what waits.
func (m *core) adoptOne(ctx context.Context, is *ledger.Adoption) error {
	var p Adoption
	if err := decode(is.Request, &p); err != nil {
		return err
	}
	a, err := m.account(is.Account)
	if err != nil {
		return err
	}
	return m.adopt(ctx, a, &p)
}

// isAdoption is a problem: what other code made could not be adopted.
const isAdoption = books.ProblemKind("adoption")

// The limits of the adoption of what waits.
const (
	adoptAtOnce = 8   // resources that are read at the same time
	adoptFor    = day // how long something is tried that can't be read

	maxAdoptRate = 1000
)

// adoptDue adopts what waits of an account, unless another process does.
func (m *core) adoptDue(ctx context.Context, a *account) error {
	lease := m.cfg.Lease
	claimed, err := m.outside().ClaimTask(ctx, ledger.AdoptTask, a.Name, lease)
	if err != nil || !claimed {
		return err
	}
	renewing, end := context.WithCancel(ctx)
	var renewed sync.WaitGroup
	renewed.Go(func() { m.keepAdopting(renewing, a, lease) })
	err = m.adoptPages(ctx, a)
	end()
	renewed.Wait()
	return errors.Join(err, m.outside().TaskIn(context.WithoutCancel(ctx), ledger.AdoptTask, a.Name, 0))
}

// keepAdopting renews the lease of the process that adopts, until ctx ends.
func (m *core) keepAdopting(ctx context.Context, a *account, lease time.Duration) {
	tick := time.NewTicker(max(lease/3, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := m.outside().TaskIn(ctx, ledger.AdoptTask, a.Name, lease); err != nil && ctx.Err() == nil {
			m.fail(ctx, "the lease of the process that adopts could not be renewed", err, slog.String("account", a.Name))
		}
	}
}

// adoptPages adopts until nothing is due any more.
func (m *core) adoptPages(ctx context.Context, a *account) error {
	rate := min(m.cfg.AdoptRate, maxAdoptRate)
	pace := time.NewTicker(time.Second / time.Duration(rate))
	defer pace.Stop()
	for {
		list, err := m.outside().DueAdoptions(ctx, a.Name, 10*rate)
		if err != nil || len(list) == 0 {
			return err
		}
		if err := m.adoptPage(ctx, list, pace.C); err != nil {
			return err
		}
	}
}

// adoptPage adopts some, each at a tick. It stops when the gate is closed, or nothing can be
// stored.
func (m *core) adoptPage(ctx context.Context, list []ledger.Adoption, tick <-chan time.Time) error {
	var running sync.WaitGroup
	defer running.Wait()
	slots, failed := make(chan struct{}, adoptAtOnce), make(chan error, len(list))
	for i := range list {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-failed:
			return err
		case <-tick:
		}
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			if err := m.adoptDueOne(ctx, &list[i]); err != nil {
				failed <- err
			}
		})
	}
	running.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// adoptDueOne adopts one and stores what became of it. The error is of what must stop the others.
func (m *core) adoptDueOne(ctx context.Context, is *ledger.Adoption) error {
	err := m.guarded(ctx, "an adoption", func() error { return m.adoptOne(ctx, is) })
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil, gate.Refused(err):
		return err
	case isVerdict(err), is.Age > m.adoptFor(err):
		return m.adoptionFailed(ctx, is, err)
	}
	return m.outside().AdoptLater(ctx, is, growing(is.Age), shownError(err))
}

// adoptFor returns how long an adoption is repeated after an error. That the gateway does not find
// a resource may be its lag, as long as old code has just made it.
func (m *core) adoptFor(err error) time.Duration {
	if errors.Is(err, gateway.ErrNotFound) {
		return m.cfg.lag()
	}
	return adoptFor
}

// shownError returns an error's text without personal data, as it is stored.
func shownError(err error) string { return ledger.Clean(masking.Text(err.Error())) }

// adoptionFailed makes a problem of what can't be adopted.
func (m *core) adoptionFailed(ctx context.Context, is *ledger.Adoption, why error) error {
	a, err := m.account(is.Account)
	if err != nil {
		return err
	}
	record := is.Resource
	var p Adoption
	if err := decode(is.Request, &p); err == nil {
		_, record = p.record()
	}
	return m.db.Transaction(ctx, func(tx sqldb.Tx) error {
		if err := m.on(ctx, tx, place{subject: is.Subject}, func(b *bench) error {
			b.problem(a, &books.Problem{
				Key:  fmt.Sprintf("%s/%s/%s/%d", isAdoption, is.Kind, is.Resource, b.now.UnixMilli()),
				Kind: isAdoption, Record: record, About: aboutOf(is.Kind),
				Text: fmt.Sprintf("%s %s could not be adopted: %s. Adopt it once more, as it is right", is.Kind, is.Resource, shownError(why)),
			})
			return nil
		}); err != nil {
			return err
		}
		return m.ledger(tx).EndAdoption(ctx, is, ledger.AdoptionFailed, shownError(why))
	})
}
