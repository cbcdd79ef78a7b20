// Package store holds the accounts of a mock gateway: their resources and the indexes
// over them. Every change goes through [Account.Apply] or a timer.
//
// Each account has one lock. Transitions are pure functions of package engine that run
// under the lock; their changes are committed as a whole or not at all. Resources are
// immutable: readers get pointers to them under the lock and read them without it.
package store

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/clock"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/events"
	"github.com/gateway-go/gateway/mockserver/internal/ids"
	"github.com/gateway-go/gateway/mockserver/internal/memlimit"
)

// Outbox receives every commit, in order and with the account's lock held. It must
// not block for long and must not call the store.
type Outbox interface {
	// Persist saves a commit together with its webhooks before it becomes
	// visible: an error prevents the commit. The function that it returns sends
	// the webhooks. It is called once the commit is visible.
	Persist(c Commit) (send func(), err error)
}

// Commit is the change of an account by one transition. [Store.Replay] applies it again.
type Commit struct {
	Account string
	Change  engine.Change // with positions, versions and event ids
	IDs     []byte        // the state of the account's id generator afterwards
	Reset   bool          // the account was emptied

	// Fired is the timer that caused the transition, if one did. A timer that had
	// no effect is committed too, so that a replay does not fire it again.
	Fired *clock.Timer
	// Integration is the account's v1 integration afterwards, to whose URLs webhooks
	// are sent; nil if it has none.
	Integration *engine.Integration
	// Cause is the cause of the change. Its Text is "" for the resources of a snapshot,
	// whose history is stored apart.
	Cause Cause
}

// Config configures a Store. Clock and IDs are required.
type Config struct {
	Clock   *clock.Clock
	IDs     func(account string) *ids.Source // returns the id generator of an account
	Outbox  Outbox                           // nil saves and sends nothing
	Dialect spec.Dialect
	Sandbox bool
	AutoPay time.Duration
	Fee     int64
	Settled int64 // see [engine.Env]
	Opening int64 // the balance of a new account, in cents
	// Memory is the limit that accounts and resources share with the rest of the
	// server; nil means unlimited.
	Memory *memlimit.Limit
	// Events receives every status change; nil publishes none.
	Events *events.Hub
	// Requests returns how many requests the journal has recorded; nil means none. It is
	// called with an account's lock held.
	Requests func() uint64
}

// Store holds the accounts of one server.
type Store struct {
	cfg Config

	mu       sync.RWMutex
	accounts map[string]*Account
}

// New returns an empty store.
func New(cfg Config) *Store {
	if cfg.Memory == nil {
		cfg.Memory = memlimit.Unlimited()
	}
	if cfg.Requests == nil {
		cfg.Requests = func() uint64 { return 0 }
	}
	return &Store{cfg: cfg, accounts: map[string]*Account{}}
}

// accountSize is the approximate size of an empty account, in bytes.
const accountSize = 4 << 10

// Account returns the account of a key. It is opened on first use, regardless of the
// memory limit; external requests use [Store.Open].
func (s *Store) Account(key string) *Account {
	a, _ := s.account(key, true) // it can't be rejected
	return a
}

// Open is like Account but enforces the memory limit: any key opens an account, and
// every account uses memory.
func (s *Store) Open(key string) (*Account, *engine.Refusal) { return s.account(key, false) }

func (s *Store) account(key string, always bool) (*Account, *engine.Refusal) {
	s.mu.RLock()
	a := s.accounts[key]
	s.mu.RUnlock()
	if a != nil {
		return a, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if a = s.accounts[key]; a != nil {
		return a, nil
	}
	size := accountSize + int64(len(key))
	if !always && !s.cfg.Memory.Fits(size) {
		return nil, full()
	}
	s.cfg.Memory.Add(size)
	a = &Account{core: &core{store: s, key: key, ids: s.cfg.IDs(key), data: newData(s.cfg.Opening)}}
	s.accounts[key] = a
	return a, nil
}

// full returns the error for exceeding the memory limit.
func full() *engine.Refusal {
	return &engine.Refusal{
		Code: engine.CodeMemoryLimit,
		Detail: "The mock gateway has reached its memory limit, which covers accounts, resources, deliveries and the journal. " +
			"Raise the limit (-memory, WithMemoryLimit), reset an account, or use a new server.",
	}
}

// Accounts returns the keys of the open accounts, sorted.
func (s *Store) Accounts() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Sorted(maps.Keys(s.accounts))
}

// Owner returns the key of an account that has something, or "" if none has it.
func (s *Store) Owner(has func(*Data) bool) string {
	for _, key := range s.Accounts() {
		found := false
		s.Account(key).View(func(d *Data) { found = has(d) })
		if found {
			return key
		}
	}
	return ""
}

// StillApplies reports whether a timer still applies to the state of its resource.
// Otherwise it is outdated: it changes nothing when it fires.
func (s *Store) StillApplies(t clock.Timer) bool { return s.Account(t.Account).stillApplies(t) }

// Fire runs the transition of a due timer. An outdated timer changes nothing. If Fire
// fails, nothing has changed, and the timer must be fired again.
func (s *Store) Fire(t clock.Timer) error {
	if refusal := s.Account(t.Account).fire(t); refusal != nil {
		return errors.New(refusal.Detail)
	}
	return nil
}
