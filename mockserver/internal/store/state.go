package store

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/gateway-go/gateway/mockserver/internal/clock"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/ids"
	"github.com/gateway-go/gateway/mockserver/internal/stored"
)

// State is the state of a store in a snapshot. Timers are saved with the clock.
type State struct {
	Accounts []AccountState // sorted by key
}

// AccountState is the content of an account.
type AccountState struct {
	Key     string
	IDs     []byte        // the state of its id generator
	Records engine.Change // every resource, with the balance and the spent tokens
	Days    []Day         `json:",omitempty"` // the movements of the balance
	History []Step        `json:",omitempty"` // the latest steps of the resources
}

// Copied is the state of some accounts, for changing it elsewhere; see [Store.TakeOver].
type Copied struct {
	State

	commits map[string]uint64 // those of each account; see core
}

// State returns a consistent copy of the store.
func (s *Store) State() (State, error) { return s.StateAt(func() {}) }

// StateAt is like State, but calls then before anything else can be committed.
func (s *Store) StateAt(then func()) (State, error) {
	state, err := s.copy(then)
	for _, a := range state.Accounts {
		slices.Sort(a.Records.Spent)
	}
	return state, err
}

// StateOf returns a consistent copy of the open accounts among the given ones, for
// [Store.TakeOver]. It calls then before any of them can change.
func (s *Store) StateOf(keys []string, then func()) (copied Copied, err error) {
	copied.commits = map[string]uint64{}
	copied.State, err = s.copyOf(func(key string) bool { return slices.Contains(keys, key) }, func() {
		for _, key := range keys {
			if a := s.accounts[key]; a != nil {
				copied.commits[key] = a.commits
			}
		}
		then()
	})
	return copied, err
}

func (s *Store) copy(then func()) (state State, err error) {
	return s.copyOf(func(string) bool { return true }, then)
}

func (s *Store) copyOf(wanted func(key string) bool, then func()) (state State, err error) {
	// No account is opened in the meantime. This can't deadlock: a goroutine that holds
	// an account's lock never waits for this one.
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, key := range slices.Sorted(maps.Keys(s.accounts)) {
		if !wanted(key) {
			continue
		}
		a := s.accounts[key]
		a.mu.RLock()
		defer a.mu.RUnlock()
		saved, err := a.state()
		if err != nil {
			return State{}, err
		}
		state.Accounts = append(state.Accounts, saved)
	}
	then()
	return state, nil
}

func (a *Account) state() (AccountState, error) {
	source, err := a.ids.MarshalBinary()
	d := &a.data
	return AccountState{Key: a.key, IDs: source, Days: slices.Clone(d.Days), History: slices.Clone(d.history.steps), Records: engine.Change{
		Transactions:  slices.Clone(d.Transactions.rows),
		Customers:     slices.Clone(d.Customers.rows),
		Transfers:     slices.Clone(d.Transfers.rows),
		Subscriptions: slices.Clone(d.Subscriptions.rows),
		Links:         slices.Clone(d.Links.rows),
		Products:      slices.Clone(d.Products.rows),
		Sessions:      slices.Clone(d.Sessions.rows),
		Responses:     slices.Clone(d.responses.order),
		Integration:   d.Integration,
		Balance:       d.Balance,
		Spent:         slices.Collect(maps.Keys(d.spent)),
	}}, err
}

// Restore sets the store to a state. Accounts that are not in the state are emptied.
// If it fails, the store is unchanged. now is the time of the clock in the state.
func (s *Store) Restore(state State, now time.Time) error {
	sources, contents := make([]*ids.Source, len(state.Accounts)), make([]Data, len(state.Accounts))
	known := map[string]bool{}
	for i, saved := range state.Accounts {
		if saved.Key == "" || known[saved.Key] {
			return fmt.Errorf("Accounts[%d].Key is missing or not unique", i)
		}
		known[saved.Key] = true
		sources[i] = s.cfg.IDs(saved.Key)
		if err := sources[i].UnmarshalBinary(saved.IDs); err != nil {
			return fmt.Errorf("Accounts[%d].IDs: %w", i, err)
		}
		var err error
		if contents[i], err = saved.data(now); err != nil {
			return fmt.Errorf("Accounts[%d].%w", i, err)
		}
	}
	for i, saved := range state.Accounts {
		s.Account(saved.Key).restore(contents[i], sources[i])
	}
	for _, key := range s.Accounts() {
		if !known[key] {
			s.Account(key).restore(newData(s.cfg.Opening), s.cfg.IDs(key))
		}
	}
	return nil
}

// data returns the content of an account, unless it is one that the gateway does not
// create.
func (saved *AccountState) data(now time.Time) (Data, error) {
	if err := (stored.Rules{"Day.At": stored.Required}).Check("Days", saved.Days); err != nil {
		return Data{}, err
	}
	if err := (stored.Rules{"Step.ID": stored.Required, "Step.At": stored.Required}).Check("History", saved.History); err != nil {
		return Data{}, err
	}
	if err := saved.Records.Check(); err != nil {
		return Data{}, fmt.Errorf("Records.%w", err)
	}
	d := newData(0)
	d.put(saved.Records)
	d.Days = slices.Clone(saved.Days) // put has recorded the balance as one movement
	d.history.steps = slices.Clone(saved.History[max(0, len(saved.History)-2*maxSteps):])
	for i := range d.history.steps {
		d.history.steps[i].Requests = 0 // the journal of this process is another one
	}
	if err := d.check(now); err != nil {
		return Data{}, fmt.Errorf("Records.%w", err)
	}
	return d, nil
}

func (a *Account) restore(d Data, source *ids.Source) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fill(d)
	a.ids = source
}

// fill replaces the content of the account.
func (a *Account) fill(d Data) {
	a.commits++
	a.store.cfg.Memory.Add(d.size() - a.data.size())
	a.data = d
}

// empty deletes all resources and their timers. The id generator is not reset, so no
// id is generated twice.
func (a *Account) empty() {
	a.fill(newData(a.store.cfg.Opening))
	a.store.cfg.Clock.Drop(func(t clock.Timer) bool { return t.Account == a.key })
}

// Reset empties the account.
func (a *Account) Reset() *engine.Refusal {
	a.mu.Lock()
	defer a.mu.Unlock()
	before, err := a.ids.MarshalBinary()
	a.ids.Restart()
	_, refusal := a.persist(Commit{Reset: true}) // there are no webhooks to send
	if refusal == nil {
		a.empty()
	} else if err == nil {
		_ = a.ids.UnmarshalBinary(before) // its own state
	}
	return refusal
}

// Split removes the resources from the state and returns them as commits of at most
// n resources each, for [Store.Replay] after [Store.Restore] of the rest.
func (s *State) Split(n int) iter.Seq[Commit] {
	whole := slices.Clone(s.Accounts)
	for i := range s.Accounts {
		all := s.Accounts[i].Records
		s.Accounts[i].Records = engine.Change{Integration: all.Integration, Balance: all.Balance}
	}
	return func(yield func(Commit) bool) {
		for _, a := range whole {
			for _, c := range a.Records.Split(n) {
				if !yield(Commit{Account: a.Key, IDs: a.IDs, Change: c}) {
					return
				}
			}
		}
	}
}

// Replay applies a commit that an outbox saved: it restores the resources and timers,
// and sends no webhooks. The caller must drop the timers that have fired since.
func (s *Store) Replay(c Commit) error {
	a := s.Account(c.Account)
	if err := c.Change.Check(); err != nil {
		return fmt.Errorf("a commit is damaged: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.replay(c)
}

// replay applies a commit to the account, whose lock is held.
func (a *Account) replay(c Commit) error {
	if err := a.ids.UnmarshalBinary(c.IDs); err != nil {
		return err
	}
	if c.Reset {
		a.empty()
		return nil
	}
	a.commits++
	grown := int64(0)
	if c.Cause.Text != "" {
		grown = a.data.record(c.Change, c.Cause, 0)
	}
	a.store.cfg.Memory.Add(grown + a.data.put(c.Change))
	a.schedule(c.Change.Timers)
	return nil
}

// TakeOver applies the commits that were made in another store which began with a copy
// of some accounts. Other accounts are neither locked nor read. If one of the copied
// accounts has changed since, TakeOver reports false. Otherwise it calls save with the
// accounts locked; only if that succeeds, everything becomes visible at once, and the
// function that save returned sends the webhooks.
//
// The caller drops the timers that have fired, before any can fire again.
func (s *Store) TakeOver(keys []string, copied Copied, commits []Commit, save func() (send func(), err error)) (same bool, err error) {
	keys = slices.Compact(slices.Sorted(slices.Values(keys))) // locks are taken in this order, as in StateAt
	for _, key := range keys {
		a := s.Account(key)
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.commits != copied.commits[key] { // 0 for one that was not open
			return false, nil
		}
	}
	send, err := save()
	if err != nil {
		return true, err
	}
	for _, c := range commits {
		err = errors.Join(err, s.Account(c.Account).replay(c)) // ids that a store has encoded can be decoded
	}
	send()
	return true, err
}

// Check returns an error if the content of the accounts after [Store.Replay] is not one
// that the gateway creates.
func (s *Store) Check(now time.Time) error {
	for _, key := range s.Accounts() {
		var err error
		s.Account(key).View(func(d *Data) { err = d.check(now) })
		if err != nil {
			return err
		}
	}
	return nil
}

// check returns an error that names the first member that contradicts the rest of the
// account.
func (d *Data) check(now time.Time) error {
	return cmp.Or(
		checkRows("Transactions", &d.Transactions), checkRows("Customers", &d.Customers), checkRows("Transfers", &d.Transfers),
		checkRows("Subscriptions", &d.Subscriptions), checkRows("Links", &d.Links), checkRows("Products", &d.Products),
		checkRows("Sessions", &d.Sessions), d.checkSubscriptions(now), d.checkCheckout(),
	)
}

// checkRows checks the ids and positions of a table's resources.
func checkRows[R any, P resource[R]](name string, t *Table[R]) error {
	if len(t.byID) != len(t.rows) {
		return fmt.Errorf("%s: the IDs are not unique", name)
	}
	for i, r := range t.rows {
		if seq := P(r).Stamp().Seq; seq != uint64(i)+1 {
			return fmt.Errorf("%s[%d].Seq must be %d, not %d: the rows (Row) are in the order of their creation", name, i, i+1, seq)
		}
	}
	return nil
}

func (d *Data) checkSubscriptions(now time.Time) error {
	for i, s := range d.Subscriptions.rows {
		if err := s.Behind(now); err != nil {
			return fmt.Errorf("Subscriptions[%d].%w", i, err)
		}
		for _, id := range s.ChargeIDs {
			if d.Transactions.Get(id) == nil {
				return fmt.Errorf("Subscriptions[%d].ChargeIDs has the ID of no transaction: %q", i, id)
			}
		}
	}
	return nil
}

func (d *Data) checkCheckout() error {
	for i, l := range d.Links.rows {
		for j, item := range l.Items {
			if d.Products.Get(strconv.FormatInt(item.ProductID, 10)) == nil {
				return fmt.Errorf("Links[%d].Items[%d].ProductID is the ID of no product: %d", i, j, item.ProductID)
			}
		}
	}
	for i, s := range d.Sessions.rows {
		if d.Links.Get(s.Slug) == nil {
			return fmt.Errorf("Sessions[%d].Slug is that of no link: %q", i, s.Slug)
		}
		if s.TransactionID != "" && d.Transactions.Get(s.TransactionID) == nil {
			return fmt.Errorf("Sessions[%d].TransactionID is the ID of no transaction: %q", i, s.TransactionID)
		}
	}
	return nil
}

// size returns the approximate size of the resources.
func (d *Data) size() int64 {
	return sizeOf(&d.Transactions) + sizeOf(&d.Customers) + sizeOf(&d.Transfers) + sizeOf(&d.Subscriptions) +
		sizeOf(&d.Links) + sizeOf(&d.Products) + sizeOf(&d.Sessions) + sizeOfResponses(d.responses.order) + int64(len(d.history.steps))*stepSize
}

func sizeOf[R any](t *Table[R]) (bytes int64) {
	for _, r := range t.rows {
		bytes += t.schema.size(r)
	}
	return bytes + t.remembered
}
