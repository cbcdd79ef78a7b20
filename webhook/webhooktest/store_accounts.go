package webhooktest

import (
	"context"
	"errors"
	"reflect"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/webhook"
)

// secondAccount returns the view of an account that is not the store's first.
func secondAccount(c *checker, s webhook.Store) webhook.Store {
	c.t.Helper()
	first, second := twoAccounts(s)
	for _, view := range []webhook.Store{first, second} {
		_, err := view.Remembers(context.Background())
		c.must(err)
	}
	return second
}

func twoAccounts(s webhook.Store) (first, second webhook.Store) {
	return s.For(gateway.Account{Name: "shop-br", Fingerprint: "0123456789abcdef"}), s.For(gateway.Account{Name: "shop-mx", Fingerprint: "0123456789abcdef"})
}

// counts compares the unfinished events.
func (c *checker) counts(s webhook.Store, want webhook.Counts) {
	c.t.Helper()
	n, err := s.Counts(context.Background())
	c.must(err)
	n.Oldest = 0
	c.need(n == want, "Counts returned %+v, want %+v", n, want)
}

func storeAccountsAreIsolated(c *checker, s webhook.Store) {
	ctx := context.Background()
	a, b := twoAccounts(s)
	older := rec("e1", "tx")
	older.Position, older.Digest = 7, "another digest"
	c.putNew(a, older)
	c.need(len(c.next(b, 9)) == 0, "Next returned an event of another account")
	c.putNew(b, rec("e1", "tx"), rec("e2", "other")) // neither known nor in conflict

	held := c.nextAre(a, 9, "e1")
	mine := c.nextAre(b, 9, "e1", "e2") // the same resource is busy in the other account only
	c.must(a.Settle(ctx, held[0], done))
	c.need(mine[0].Latest == 0, "Latest is the position of another account's event: %d", mine[0].Latest)
	c.must(b.Extend(ctx, mine[0], lease))
	c.counts(a, webhook.Counts{})
	c.counts(b, webhook.Counts{Claimed: 2})

	c.must(b.Settle(ctx, mine[0], dead("no such order")))
	c.must(b.Settle(ctx, mine[1], aside(webhook.FamilyTransaction)))
	c.need(len(c.letters(a, webhook.DeadLetterQuery{})) == 0, "DeadLetters returned one of another account")
	c.need(len(c.letters(b, webhook.DeadLetterQuery{})) == 1, "DeadLetters does not return the account's own")
	for name, change := range map[string]func(context.Context, ...string) (int, error){"Requeue": a.Requeue, "Discard": a.Discard} {
		n, err := change(ctx, older.Key)
		c.must(err)
		c.need(n == 0, "%s changed an event of another account", name)
	}
	c.need(len(c.nextUnhandled(a, 9, webhook.TransactionPaid)) == 0, "NextUnhandled returned an event of another account")
	list, err := a.Unhandled(ctx)
	c.must(err)
	c.need(len(list) == 0, "Unhandled counts an event of another account: %+v", list)
	c.counts(a, webhook.Counts{})
	c.counts(b, webhook.Counts{Dead: 1, Unhandled: 1})
	entry := c.put(a, older)
	c.need(entry.State == webhook.StateDone && !entry.Conflict, "Put of a done event returned %+v", entry)
}

func storeFactsOfAccounts(c *checker, s webhook.Store) {
	a, b := twoAccounts(s)
	c.putNew(a, confirmedFact("c1", "paid tx"))
	c.putNew(b, signedFact("c1", "paid tx"), confirmedFact("c2", "refunded tx"))
	c.putNew(a, signedFact("c2", "refunded tx"))
	c.putKnown(a, signedFact("s1", "paid tx"), "fact paid tx", webhook.StateWaiting)
	c.putKnown(b, confirmedFact("x", "paid tx"), "id c1", webhook.StateWaiting)
	entry, err := a.PutDead(context.Background(), rec("d1", "tx"), "a conflict")
	c.must(err)
	c.need(entry.Added, "PutDead returned %+v", entry)
	c.putNew(b, rec("d1", "tx"))
}

func storeViewsOfAnAccount(c *checker, s webhook.Store) {
	ctx := context.Background()
	named := gateway.Account{Name: "shop-br"}
	known := gateway.Account{Name: "shop-br", Fingerprint: "0123456789abcdef"}
	c.need(reflect.TypeOf(s.For(named)) == reflect.TypeOf(s), "For of a %T returned a %T", s, s.For(named))
	c.putNew(s.For(named), rec("e1", "tx"))
	c.nextAre(s.For(known), 9, "e1") // the fingerprint is known from here on
	c.counts(s.For(named), webhook.Counts{Claimed: 1})
	c.counts(s.For(gateway.Account{Name: "shop-mx"}).For(named), webhook.Counts{Claimed: 1})
	if !s.Durable() {
		return
	}
	other := s.For(gateway.Account{Name: "shop-br", Fingerprint: "fedcba9876543210"})
	for name, call := range map[string]func() error{
		"Put":     func() error { _, err := other.Put(ctx, rec("e2", "tx")); return err },
		"PutDead": func() error { _, err := other.PutDead(ctx, rec("e2", "tx"), ""); return err },
		"Claim":   func() error { _, _, err := other.Claim(ctx, rec("e1", "tx").Key, lease); return err },
		"Next":    func() error { _, err := other.Next(ctx, 1, lease); return err },
		"NextUnhandled": func() error {
			_, err := other.NextUnhandled(ctx, func(webhook.Family, webhook.Kind) bool { return true }, 1, lease)
			return err
		},
		"Unhandled":   func() error { _, err := other.Unhandled(ctx); return err },
		"DeadLetters": func() error { _, err := other.DeadLetters(ctx, webhook.DeadLetterQuery{}); return err },
		"Requeue":     func() error { _, err := other.Requeue(ctx, rec("e1", "tx").Key); return err },
		"Discard":     func() error { _, err := other.Discard(ctx, rec("e1", "tx").Key); return err },
		"Purge":       func() error { _, err := other.Purge(ctx); return err },
		"Counts":      func() error { _, err := other.Counts(ctx); return err },
		"Remembers":   func() error { _, err := other.Remembers(ctx); return err },
	} {
		err := call()
		c.need(errors.Is(err, gateway.ErrAccountConflict), "%s of a view with another fingerprint returned %v, want ErrAccountConflict", name, err)
	}
	c.counts(s.For(known), webhook.Counts{Claimed: 1})
}
