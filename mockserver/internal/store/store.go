// Package store holds the accounts of a mock gateway: their resources, the indexes
// over them, and the one way to change anything, [Account.Apply].
//
// One lock guards an account. A transition runs under it as a pure function of the
// engine and is committed whole or not at all. Resources are immutable: a reader
// takes pointers under the lock and reads them without it.
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
	"github.com/gateway-go/gateway/mockserver/internal/memlimit"
)

// Clock is the part of the virtual clock that the store uses.
type Clock interface {
	Now() time.Time
	Add(timers ...clock.Timer)
	Drop(match func(clock.Timer) bool)
	RunDue() // fires the due timers
}

// IDs is a source of ids that a snapshot can keep.
type IDs interface {
	engine.IDs
	MarshalBinary() ([]byte, error)
	UnmarshalBinary(state []byte) error
}

// Outbox receives every commit, in order and with the account's lock held. It must
// not block for long and must not call the store.
type Outbox interface {
	// Persist saves a commit together with its webhooks before it becomes
	// visible: an error prevents the commit. The function that it returns sends
	// the webhooks, and is called when the commit is visible.
	Persist(c Commit) (send func(), err error)
}

// Commit is the change of an account by one transition, for [Store.Replay].
type Commit struct {
	Account string
	Change  engine.Change // with places, versions and event ids
	IDs     []byte        // the state of the account's source of ids afterwards
	Reset   bool          // the account was emptied

	// Fired is the timer that caused the transition; nil is a call. A timer
	// without an effect has its own commit, so that it fires only once.
	Fired *clock.Timer `json:",omitempty"`
	// Integration is the account's v1 integration afterwards, which names
	// targets of webhooks; nil if it has none.
	Integration *engine.Integration `json:"-"`
}

// Config configures a Store. Clock and IDs are required.
type Config struct {
	Clock   Clock
	IDs     func(account string) IDs // the source of an account's ids
	Outbox  Outbox                   // nil saves and sends nothing
	Dialect spec.Dialect
	Sandbox bool
	AutoPay time.Duration
	Fee     int64
	Opening int64 // the balance of a new account, in cents
	// Memory is the limit that accounts and resources share with the rest of the
	// server; nil means unlimited.
	Memory *memlimit.Limit
	// Events receives every change of a status. It may be nil.
	Events *events.Hub
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
	return &Store{cfg: cfg, accounts: map[string]*Account{}}
}

// accountSize is the approximate size of an empty account, in bytes.
const accountSize = 4 << 10

// Account returns the account of a key, which is opened on first use regardless
// of the limit: requests from outside use [Store.Open].
func (s *Store) Account(key string) *Account {
	a, _ := s.account(key, true) // it can't be rejected
	return a
}

// Open is Account within the memory limit: any key opens an account, and each
// uses memory.
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

// full returns the rejection if the memory limit is exceeded.
func full() *engine.Refusal {
	return &engine.Refusal{
		Code: engine.CodeMemoryLimit,
		Detail: "The mock gateway is full: accounts, resources, deliveries and the journal are held in memory up to a limit. " +
			"Raise the limit (-memory, WithMemoryLimit), reset an account, or use a new server.",
	}
}

// Accounts returns the keys of the open accounts, sorted.
func (s *Store) Accounts() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Sorted(maps.Keys(s.accounts))
}

// StillApplies reports whether a timer still applies to the state of its resource. A
// timer that doesn't changes nothing when it fires.
func (s *Store) StillApplies(t clock.Timer) bool { return s.Account(t.Account).stillApplies(t) }

// Fire runs the transition of a due timer. An outdated timer changes nothing.
// After an error nothing has changed, and the timer must be fired again.
func (s *Store) Fire(t clock.Timer) error {
	if refusal := s.Account(t.Account).fire(t); refusal != nil {
		return errors.New(refusal.Detail)
	}
	return nil
}
