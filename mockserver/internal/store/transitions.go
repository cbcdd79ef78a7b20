package store

import (
	"strconv"
	"strings"
	"time"

	"github.com/gateway-go/gateway/mockserver/internal/clock"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
)

// Transition is a function of the engine that acts on one resource.
type Transition[R any] func(env engine.Env, r *R) (engine.Change, *engine.Refusal)

// Transaction runs a transition of one transaction, with its effects on its
// subscription or checkout session, and returns the transaction after it.
func (a *Account) Transaction(id string, do Transition[engine.Transaction]) (*engine.Transaction, *engine.Refusal) {
	return transition(a, "transaction", id, transactionsOf, func(d *Data, t *engine.Transaction) (engine.Change, *engine.Refusal) {
		c, refusal := do(d.Env, t)
		if refusal != nil {
			return c, refusal
		}
		return d.follow(c)
	})
}

// Transfer runs a transition of one transfer and returns the transfer after it.
func (a *Account) Transfer(id string, do Transition[engine.Transfer]) (*engine.Transfer, *engine.Refusal) {
	return transition(a, "transfer", id, transfersOf, func(d *Data, t *engine.Transfer) (engine.Change, *engine.Refusal) {
		return do(d.Env, t)
	})
}

// Subscription runs a transition of one subscription and returns the subscription
// after it.
func (a *Account) Subscription(id string, do Transition[engine.Subscription]) (*engine.Subscription, *engine.Refusal) {
	return transition(a, "subscription", id, subscriptionsOf, func(d *Data, s *engine.Subscription) (engine.Change, *engine.Refusal) {
		return do(d.Env, s)
	})
}

// Link runs a transition of a checkout link, with the rest of the account, and
// returns its change.
func (a *Account) Link(
	slug string, do func(d *Data, l *engine.Link) (engine.Change, *engine.Refusal),
) (engine.Change, *engine.Refusal) {
	return a.Apply(func(d *Data) (engine.Change, *engine.Refusal) {
		l := d.Links.Get(slug)
		if l == nil {
			return engine.Change{}, engine.NotFound("checkout link")
		}
		return do(d, l)
	})
}

// These functions return the table of a kind of resource and its rows in a change.

func transactionsOf(d *Data, c engine.Change) (*Table[engine.Transaction], []*engine.Transaction) {
	return &d.Transactions, c.Transactions
}

func transfersOf(d *Data, c engine.Change) (*Table[engine.Transfer], []*engine.Transfer) {
	return &d.Transfers, c.Transfers
}

func subscriptionsOf(d *Data, c engine.Change) (*Table[engine.Subscription], []*engine.Subscription) {
	return &d.Subscriptions, c.Subscriptions
}

// transition runs do on the resource with an id and returns its version after
// the change.
func transition[R any](
	a *Account, kind, id string, rows func(*Data, engine.Change) (*Table[R], []*R),
	do func(*Data, *R) (engine.Change, *engine.Refusal),
) (*R, *engine.Refusal) {
	var after *R
	_, refusal := a.Apply(func(d *Data) (engine.Change, *engine.Refusal) {
		table, _ := rows(d, engine.Change{})
		r := table.Get(id)
		if r == nil {
			return engine.Change{}, engine.NotFound(kind)
		}
		c, refusal := do(d, r)
		_, changed := rows(d, c)
		after = previous(table, changed, id)
		return c, refusal
	})
	if refusal != nil {
		return nil, refusal
	}
	return after, nil
}

// follow adds to a change of transactions its effects on the resources that they
// belong to.
func (d *Data) follow(c engine.Change) (engine.Change, *engine.Refusal) {
	for _, t := range c.Transactions {
		if s := d.Subscriptions.Get(t.SubscriptionID); s != nil {
			c = c.And(engine.FollowSubscription(d.Env, s, d.Transactions.Get(t.ID), t))
		}
		if s := d.Sessions.Get(t.SessionID); s != nil {
			next, refusal := engine.FollowSession(d.Env, d.Links.Get(s.Slug), s, t)
			if refusal != nil {
				return engine.Change{}, refusal
			}
			c = c.And(next)
		}
	}
	return d.Exhaust(c), nil
}

// Exhaust adds to a change that uses up a link its effects on the link's other
// sessions and their payments.
func (d *Data) Exhaust(c engine.Change) engine.Change {
	for _, l := range c.Links {
		if engine.Exhausted(l) && !engine.Exhausted(d.Links.Get(l.Slug)) {
			c = c.And(engine.CloseSessions(d.Env, d.SessionsOf(l), c.Sessions, d.Transactions.Get))
		}
	}
	return c
}

// fire runs a due timer. If the engine rejects the transition, the resource has changed
// since the timer was set, and nothing happens. fire returns a refusal only if the
// commit exceeds the memory limit or can't be saved: the timer must then fire again.
func (a *Account) fire(t clock.Timer) *engine.Refusal {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.data.Env = a.env()
	kind := engine.TimerKind(t.Kind)
	c, refusal := a.data.due(a.data.Env, kind, t.ID)
	if refusal != nil {
		c = engine.Change{}
	} else if resourceOf(kind) == "transaction" {
		c, _ = a.data.follow(c) // an empty change if it is rejected
	}
	return a.commit(c, &t)
}

// stillApplies reports whether a timer would change anything if nothing else happens
// before it fires.
func (a *Account) stillApplies(t clock.Timer) bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	env := a.env()
	if t.At.After(env.Now) {
		env.Now = t.At
	}
	env.IDs = noIDs{}
	c, refusal := a.data.due(env, engine.TimerKind(t.Kind), t.ID)
	return refusal == nil && !c.Empty()
}

// noIDs is the id generator for transitions whose change is discarded: they must not
// advance the account's own generator.
type noIDs struct{}

func (noIDs) UUID(time.Time) string { return "" }

func (noIDs) Alphanumeric(int) string { return "" }

func (noIDs) EndToEndID(time.Time) string { return "" }

func resourceOf(kind engine.TimerKind) string {
	resource, _, _ := strings.Cut(string(kind), ".")
	return resource
}

// due returns the change of a timer, without its effects on other resources.
func (d *Data) due(env engine.Env, kind engine.TimerKind, id string) (engine.Change, *engine.Refusal) {
	switch resourceOf(kind) {
	case "transaction":
		if t := d.Transactions.Get(id); t != nil {
			return engine.TransactionTimer(kind)(env, t)
		}
	case "transfer":
		if t := d.Transfers.Get(id); t != nil {
			return engine.FireTransfer(env, t, kind), nil
		}
	case "subscription":
		if s := d.Subscriptions.Get(id); s != nil {
			return engine.FireSubscription(env, s, kind), nil
		}
	case "checkout":
		return d.dueCheckout(env, kind, id), nil
	}
	return engine.Change{}, nil
}

func (d *Data) dueCheckout(env engine.Env, kind engine.TimerKind, id string) engine.Change {
	if kind == engine.TimerExpireLink {
		if l := d.Links.Get(id); l != nil {
			return engine.ExpireLinkByTimer(env, l, d.SessionsOf(l))
		}
	} else if s := d.Sessions.Get(id); s != nil {
		return engine.ExpireSession(env, s)
	}
	return engine.Change{}
}

// SessionsOf returns the sessions of a link.
func (d *Data) SessionsOf(l *engine.Link) []*engine.Session {
	var q Query[engine.Session]
	q.Is(SessionSlug, l.Slug)
	return d.Sessions.All(q)
}

// Catalog returns a lookup of the current products by id.
func (d *Data) Catalog() engine.Catalog {
	return func(id int64) *engine.CatalogProduct { return d.Products.Get(strconv.FormatInt(id, 10)) }
}
