package store

import (
	"strconv"
	"strings"

	"github.com/gateway-go/gateway/mockserver/internal/engine"
)

// Transition is a function of the engine that acts on one record.
type Transition[R any] func(env engine.Env, r *R) (engine.Change, *engine.Refusal)

// Transaction runs a transition of one transaction, together with what follows
// from it for the subscription or the checkout session that the transaction
// belongs to, and returns the record after it. HTTP, controls and timers all
// come through here.
func (a *Account) Transaction(id string, do Transition[engine.Transaction]) (*engine.Transaction, *engine.Refusal) {
	return transition(a, "transaction", id, transactionsOf, func(d *Data, t *engine.Transaction) (engine.Change, *engine.Refusal) {
		c, refusal := do(d.Env, t)
		if refusal == nil {
			c = d.follow(c)
		}
		return c, refusal
	})
}

// Transfer runs a transition of one transfer and returns the record after it.
func (a *Account) Transfer(id string, do Transition[engine.Transfer]) (*engine.Transfer, *engine.Refusal) {
	return transition(a, "transfer", id, transfersOf, func(d *Data, t *engine.Transfer) (engine.Change, *engine.Refusal) {
		return do(d.Env, t)
	})
}

// Subscription runs a transition of one subscription and returns the record
// after it.
func (a *Account) Subscription(id string, do Transition[engine.Subscription]) (*engine.Subscription, *engine.Refusal) {
	return transition(a, "subscription", id, subscriptionsOf, func(d *Data, s *engine.Subscription) (engine.Change, *engine.Refusal) {
		return do(d.Env, s)
	})
}

func transactionsOf(d *Data) *Table[engine.Transaction]   { return &d.Transactions }
func transfersOf(d *Data) *Table[engine.Transfer]         { return &d.Transfers }
func subscriptionsOf(d *Data) *Table[engine.Subscription] { return &d.Subscriptions }

// transition runs do on the record with an id and returns what the account
// holds under it afterwards.
func transition[R any](
	a *Account, kind, id string, table func(*Data) *Table[R], do func(*Data, *R) (engine.Change, *engine.Refusal),
) (*R, *engine.Refusal) {
	a.mu.Lock()
	defer a.mu.Unlock()
	refusal := a.apply(func(d *Data) (engine.Change, *engine.Refusal) {
		r := table(d).Get(id)
		if r == nil {
			return engine.Change{}, engine.NotFound(kind)
		}
		return do(d, r)
	})
	if refusal != nil {
		return nil, refusal
	}
	return table(&a.data).Get(id), nil
}

// follow adds to a change of transactions what it means to the records that
// they belong to.
func (d *Data) follow(c engine.Change) engine.Change {
	for _, t := range c.Transactions {
		if s := d.Subscriptions.Get(t.SubscriptionID); s != nil {
			c = c.And(engine.FollowSubscription(d.Env, s, t))
		}
		if s := d.Sessions.Get(t.SessionID); s != nil {
			c = c.And(engine.FollowSession(d.Env, d.Links.Get(s.Slug), s, t))
		}
	}
	return c
}

// fire does what a due timer asks for. Its refusal says only that the record
// has moved on.
func (a *Account) fire(kind engine.TimerKind, id string) {
	switch resource, _, _ := strings.Cut(string(kind), "."); resource {
	case "transaction":
		_, _ = a.Transaction(id, transactionTimer(kind))
	case "transfer":
		_, _ = a.Transfer(id, func(env engine.Env, t *engine.Transfer) (engine.Change, *engine.Refusal) {
			return engine.FireTransfer(env, t, kind), nil
		})
	case "subscription":
		_, _ = a.Subscription(id, func(env engine.Env, s *engine.Subscription) (engine.Change, *engine.Refusal) {
			return engine.FireSubscription(env, s, kind), nil
		})
	case "checkout":
		a.fireCheckout(kind, id)
	}
}

func transactionTimer(kind engine.TimerKind) Transition[engine.Transaction] {
	switch kind {
	case engine.TimerPay:
		return engine.Pay
	case engine.TimerChargeBack:
		return engine.Chargeback
	default:
		return engine.ExpireInTime
	}
}

func (a *Account) fireCheckout(kind engine.TimerKind, id string) {
	_ = a.Apply(func(d *Data) (engine.Change, *engine.Refusal) {
		if kind == engine.TimerExpireLink {
			if l := d.Links.Get(id); l != nil {
				return engine.ExpireLinkInTime(d.Env, l, d.SessionsOf(l)), nil
			}
		} else if s := d.Sessions.Get(id); s != nil {
			return engine.ExpireSession(d.Env, s), nil
		}
		return engine.Change{}, nil
	})
}

// SessionsOf returns the sessions of a link.
func (d *Data) SessionsOf(l *engine.Link) []*engine.Session {
	var q Query[engine.Session]
	q.Is(SessionSlug, l.Slug)
	return d.Sessions.All(q)
}

// Catalog returns the products as they are now.
func (d *Data) Catalog() engine.Catalog {
	return func(id int64) *engine.CatalogProduct { return d.Products.Get(strconv.FormatInt(id, 10)) }
}
