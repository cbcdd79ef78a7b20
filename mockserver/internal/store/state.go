package store

import (
	"maps"
	"slices"

	"github.com/gateway-go/gateway/mockserver/internal/clock"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
)

// State is a store as a snapshot keeps it. The timers are the clock's.
type State struct {
	Accounts []AccountState // sorted by key
}

// AccountState is all that an account holds.
type AccountState struct {
	Key     string
	IDs     []byte        // the state of its source of ids
	Records engine.Change // every record, with the balance and the spent tokens
	Days    []Day         `json:",omitempty"` // what moved the balance
}

// State returns a copy of the store at one moment for each account.
func (s *Store) State() (State, error) {
	var state State
	for _, key := range s.Accounts() {
		a, err := s.Account(key).state()
		if err != nil {
			return State{}, err
		}
		state.Accounts = append(state.Accounts, a)
	}
	return state, nil
}

func (a *Account) state() (AccountState, error) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	ids, err := a.ids.MarshalBinary()
	d := &a.data
	return AccountState{Key: a.key, IDs: ids, Days: slices.Clone(d.Days), Records: engine.Change{
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
		Spent:         slices.Sorted(maps.Keys(d.spent)),
	}}, err
}

// Restore puts the store back into a state. Accounts that the state does not
// know are emptied. Its error leaves the store as it was.
func (s *Store) Restore(state State) error {
	sources := make([]IDs, len(state.Accounts))
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

func (a *Account) restore(saved AccountState, ids IDs) {
	a.mu.Lock()
	defer a.mu.Unlock()
	d := newData(0)
	d.put(saved.Records)
	d.Days = slices.Clone(saved.Days) // not the whole balance at one moment
	a.fill(d)
	a.ids = ids
}

// fill replaces the content of the account.
func (a *Account) fill(d Data) {
	a.store.cfg.Room.Add(d.size() - a.data.size())
	a.data = d
}

// empty forgets all records and takes back their timers. The source of ids
// goes on, so that no id is made twice.
func (a *Account) empty() {
	a.fill(newData(a.store.cfg.Opening))
	a.store.cfg.Clock.Drop(func(t clock.Timer) bool { return t.Account == a.key })
}

// Reset empties the account.
func (a *Account) Reset() *engine.Refusal {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, refusal := a.persist(Commit{Reset: true}) // sends nothing
	if refusal == nil {
		a.empty()
	}
	return refusal
}

// Replay does again what an outbox kept: the records and timers are put back as
// they were, and no event is sent. The timers that have fired since are the
// caller's to drop.
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
	grown := a.data.stamp(c.Change) // as they were stamped
	s.cfg.Room.Add(grown + a.data.put(c.Change))
	a.schedule(c.Change.Timers)
	return nil
}

// size returns about how many bytes the records take.
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
