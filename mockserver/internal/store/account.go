package store

import (
	"strings"
	"sync"
	"time"

	"github.com/gateway-go/gateway/mockserver/internal/clock"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/ids"
)

// Account is a handle on the account of one API key.
type Account struct {
	*core

	changed func() // called under the lock when a commit changed something
	cause   Cause  // of the commits

	// draft collects the change during [Account.Once], which holds the lock and
	// commits it at the end. If draft is nil, every change is committed immediately.
	draft *engine.Change

	dry bool // nothing is committed
}

// Observed returns a handle on the same account with a cause for the commits made
// through it. It calls changed, which may be nil, for each of them. The handle is a value:
// a request that keeps it needs no memory of its own for it.
func (a *Account) Observed(c Cause, changed func()) Account {
	return Account{core: a.core, changed: changed, cause: c}
}

// Cause is the cause of a commit, for events and for the history.
type Cause struct {
	Text      string // "request transactions.create", "control transactions/pay", "timer transaction.expire"; "server" is any other
	RequestID string // "" if it is not a request
}

// CausedBy returns a handle on the same account with a cause for the commits made
// through it.
func (a *Account) CausedBy(c Cause) *Account {
	return &Account{core: a.core, changed: a.changed, cause: c, dry: a.dry}
}

// DryRun returns a handle on the same account for testing transitions:
// [Account.Apply] runs them and discards their changes.
func (a *Account) DryRun() *Account { return &Account{core: a.core, dry: true} }

// core is an account, shared by all of its handles.
type core struct {
	store *Store
	key   string

	mu      sync.RWMutex
	data    Data
	ids     *ids.Source
	due     bool   // a commit has set a timer that is already due
	commits uint64 // how often the content has changed, so that a copy is known to be outdated
}

// Data is the content of an account. It may be used only within [Account.View]
// and [Account.Apply].
type Data struct {
	Env engine.Env // set within Apply

	Transactions  Table[engine.Transaction]
	Customers     Table[engine.Customer]
	Transfers     Table[engine.Transfer]
	Subscriptions Table[engine.Subscription]
	Links         Table[engine.Link]
	Products      Table[engine.CatalogProduct]
	Sessions      Table[engine.Session]

	Integration *engine.Integration // nil until it is configured
	Balance     int64               // cents
	Days        []Day               // movements of the balance, latest day last
	spent       map[string]struct{}
	responses   responses
	history     history
}

// AsOf returns the resources as they were at a time; see [Table.AsOf]. The balance and
// the v1 integration are the current ones.
func (d *Data) AsOf(at time.Time) *Data {
	then := *d
	then.Transactions, then.Customers = d.Transactions.AsOf(at), d.Customers.AsOf(at)
	then.Transfers, then.Subscriptions = d.Transfers.AsOf(at), d.Subscriptions.AsOf(at)
	then.Links, then.Sessions = d.Links.AsOf(at), d.Sessions.AsOf(at)
	return &then
}

// Spent reports whether a single-use token is used up.
func (d *Data) Spent(token string) bool {
	_, ok := d.spent[token]
	return ok
}

func newData(opening int64) Data {
	return Data{
		Transactions:  newTable(transactions()),
		Customers:     newTable(customers()),
		Transfers:     newTable(transfers()),
		Subscriptions: newTable(subscriptions()),
		Links:         newTable(links()),
		Products:      newTable(products()),
		Sessions:      newTable(sessions()),
		Balance:       opening,
		spent:         map[string]struct{}{},
		responses:     responses{byKey: map[string]*engine.Response{}},
	}
}

// unlock releases the lock after a change. Timers that the change has set and that
// are already due fire now rather than at the next advance of a manual clock.
func (a *core) unlock() {
	due := a.due
	a.due = false
	a.mu.Unlock()
	if due {
		a.store.cfg.Clock.RunDue()
	}
}

// View calls read with a consistent view of the account. Resources may be used after
// the call, tables may not.
func (a *Account) View(read func(d *Data)) {
	if a.draft == nil {
		a.mu.RLock()
		defer a.mu.RUnlock()
	}
	read(&a.data)
}

// Apply runs one transition under the account's lock, commits the whole change
// and returns it. A rejected transition changes nothing.
func (a *Account) Apply(transition func(d *Data) (engine.Change, *engine.Refusal)) (engine.Change, *engine.Refusal) {
	if a.draft == nil {
		a.mu.Lock()
		defer a.unlock()
	}
	a.data.Env = a.env()
	if a.dry {
		a.data.Env.IDs = noIDs{}
	}
	c, refusal := transition(&a.data)
	switch {
	case refusal != nil, a.dry:
	case a.draft != nil:
		a.data.stamp(c)
		*a.draft = c
	default:
		refusal = a.commit(c, nil)
	}
	return c, refusal
}

// waitingKey begins the keys of accounts whose new payments are waiting_payment.
const waitingKey = "sk_test_waiting"

// noPixAutomaticKey begins the keys of accounts that may not use Pix Automatico.
const noPixAutomaticKey = "sk_test_no_pix_automatic"

// breBKey begins the keys of accounts whose Colombian vouchers are paid by Bre-B.
const breBKey = "sk_test_bre_b"

func (a *Account) env() engine.Env {
	cfg := &a.store.cfg
	return engine.Env{
		Now:            cfg.Clock.Now().UTC().Truncate(time.Millisecond),
		Dialect:        cfg.Dialect,
		Sandbox:        cfg.Sandbox,
		IDs:            a.ids,
		Waiting:        strings.HasPrefix(a.key, waitingKey),
		NoPixAutomatic: strings.HasPrefix(a.key, noPixAutomaticKey),
		BreB:           strings.HasPrefix(a.key, breBKey),
		AutoPay:        cfg.AutoPay,
		Fee:            cfg.Fee,
		Settled:        cfg.Settled,
	}
}

// commit saves a change, and only then makes it visible and sends its webhooks.
func (a *Account) commit(c engine.Change, fired *clock.Timer) *engine.Refusal {
	for i := range c.Events {
		c.Events[i].ID = "evt_" + a.ids.UUID(a.data.Env.Now)
		c.Events[i].At = a.data.Env.Now
	}
	a.data.stamp(c)
	grown := a.data.growth(c)
	a.store.cfg.Memory.Add(-a.data.responses.forget(a.data.Env.Now))
	if grown > 0 && !a.store.cfg.Memory.Fits(grown+eventsSize(c)) {
		return full()
	}
	integration := a.data.Integration
	if c.Integration != nil {
		integration = c.Integration
	}
	cause := a.cause
	switch {
	case fired != nil:
		cause = Cause{Text: "timer " + fired.Kind}
	case cause.Text == "":
		cause.Text = "server"
	}
	send, refusal := a.persist(Commit{Change: c, Fired: fired, Integration: integration, Cause: cause})
	if refusal != nil {
		return refusal
	}
	if !c.Empty() {
		a.commits++
	}
	changes := a.statusChanges(c)
	grown = a.data.record(c, cause, a.store.cfg.Requests())
	a.store.cfg.Memory.Add(grown + a.data.put(c))
	a.emit(changes, cause)
	if a.changed != nil && !c.Empty() {
		a.changed()
	}
	a.schedule(c.Timers)
	send()
	return nil
}

// persist saves a commit in the outbox and returns the function that sends its
// webhooks.
func (a *Account) persist(c Commit) (send func(), refusal *engine.Refusal) {
	out := a.store.cfg.Outbox
	if out == nil {
		return func() {}, nil
	}
	var err error
	c.Account = a.key
	if c.IDs, err = a.ids.MarshalBinary(); err == nil {
		send, err = out.Persist(c)
	}
	if err == nil {
		return send, nil
	}
	return nil, engine.NewRefusal(engine.CodeLogFailed,
		"The change could not be written to the data file: "+err.Error())
}

func (a *Account) schedule(timers []engine.Timer) {
	for _, t := range timers {
		a.due = a.due || !t.At.After(a.data.Env.Now)
		a.store.cfg.Clock.Add(clock.Timer{At: t.At, Account: a.key, Kind: string(t.Kind), ID: t.ID})
	}
}
