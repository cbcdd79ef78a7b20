package store

import (
	"iter"
	"maps"
	"slices"

	"github.com/gateway-go/gateway/mockserver/internal/clock"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/ids"
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

func (s *Store) copy(then func()) (state State, err error) {
	// No account is opened in the meantime. This can't deadlock: a goroutine that holds
	// an account's lock never waits for this one.
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, key := range slices.Sorted(maps.Keys(s.accounts)) {
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
	return AccountState{Key: a.key, IDs: source, Days: slices.Clone(d.Days), Records: engine.Change{
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
// If it fails, the store is unchanged.
func (s *Store) Restore(state State) error {
	sources := make([]*ids.Source, len(state.Accounts))
	for i, saved := range state.Accounts {
		sources[i] = s.cfg.IDs(saved.Key)
		if err := sources[i].UnmarshalBinary(saved.IDs); err != nil {
			return err
		}
	}
	known := map[string]bool{}
	for i, saved := range state.Accounts {
		known[saved.Key] = true
		s.Account(saved.Key).restore(saved, sources[i])
	}
	for _, key := range s.Accounts() {
		if !known[key] {
			s.Account(key).restore(AccountState{Records: engine.Change{Balance: s.cfg.Opening}}, s.cfg.IDs(key))
		}
	}
	return nil
}

func (a *Account) restore(saved AccountState, source *ids.Source) {
	a.mu.Lock()
	defer a.mu.Unlock()
	d := newData(0)
	d.put(saved.Records)
	d.Days = slices.Clone(saved.Days) // put has recorded the balance as one movement
	a.fill(d)
	a.ids = source
}

// fill replaces the content of the account.
func (a *Account) fill(d Data) {
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
	_, refusal := a.persist(Commit{Reset: true}) // there are no webhooks to send
	if refusal == nil {
		a.empty()
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
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.ids.UnmarshalBinary(c.IDs); err != nil {
		return err
	}
	if c.Reset {
		a.empty()
		return nil
	}
	s.cfg.Memory.Add(a.data.put(c.Change))
	a.schedule(c.Change.Timers)
	return nil
}

// size returns the approximate size of the resources.
func (d *Data) size() int64 {
	return sizeOf(&d.Transactions) + sizeOf(&d.Customers) + sizeOf(&d.Transfers) + sizeOf(&d.Subscriptions) +
		sizeOf(&d.Links) + sizeOf(&d.Products) + sizeOf(&d.Sessions) + sizeOfResponses(d.responses.order)
}

func sizeOf[R any](t *Table[R]) (bytes int64) {
	for _, r := range t.rows {
		bytes += t.schema.size(r)
	}
	return bytes + t.remembered
}
