package core

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/clock"
	"github.com/gateway-go/gateway/mockserver/internal/deliver"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/events"
	"github.com/gateway-go/gateway/mockserver/internal/ids"
	"github.com/gateway-go/gateway/mockserver/internal/memory"
	"github.com/gateway-go/gateway/mockserver/internal/seed"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// MaxSeed is the maximum size of a seed file in bytes.
const MaxSeed = 16 << 20

// Seeded returns the ids of the named entries of every seed file that an account has
// applied since the start, or nil if there was none.
func (c *Core) Seeded(account string) map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.seeded[account])
}

// seedFile applies the file of the options to an empty server.
func (c *Core) seedFile(path string) error {
	text, err := os.ReadFile(path) //nolint:gosec // the file that the user names
	if err != nil {
		return err
	}
	if c.holdsResources() {
		return nil
	}
	_, err = c.Seed(filepath.Base(path), text, c.Key())
	return err
}

func (c *Core) holdsResources() bool {
	return c.Store.Owner(func(d *store.Data) bool {
		return d.Transactions.Len()+d.Customers.Len()+d.Transfers.Len()+d.Subscriptions.Len()+d.Links.Len() > 0 || d.Integration != nil
	}) != ""
}

// Seed creates a file's content in a copy of the accounts that it names and, if all of
// it is valid, takes over what was done in the copy. Until then, and if an entry is
// invalid, nothing is visible. Other accounts go on meanwhile, and nothing waits for
// webhooks. account is the key of the entries at the top of the file.
func (c *Core) Seed(name string, text []byte, account string) (map[string]string, error) {
	c.seeding.Lock()
	defer c.seeding.Unlock()
	if len(text) > MaxSeed {
		return nil, fmt.Errorf("the seed file is longer than %d MiB", MaxSeed>>20)
	}
	f, err := seed.Parse(name, text, c.now())
	if err != nil {
		return nil, err
	}
	keys := f.Accounts(account)
	before, copied, err := c.stateOf(keys)
	if err != nil {
		return nil, err
	}
	draft, err := c.draft(before)
	if err != nil {
		return nil, err
	}
	defer draft.Stop() // it has no file
	var commits []store.Commit
	draft.data.collect = func(commit store.Commit) { commits = append(commits, commit) }
	used := draft.Memory.Used()
	named, err := f.Run(context.Background(), draft.world(account))
	if err != nil {
		return nil, err
	}
	if grown := draft.Memory.Used() - used; grown > 0 && !c.Memory.Fits(grown) {
		return nil, ErrSeedMemory
	}
	if err := c.takeOver(keys, copied, commits, f.Webhooks); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seeded == nil {
		c.seeded = map[string]map[string]string{}
	}
	if c.seeded[account] == nil {
		c.seeded[account] = map[string]string{}
	}
	maps.Copy(c.seeded[account], named)
	return named, nil
}

// stateOf returns the state of the given accounts, without their webhooks.
func (c *Core) stateOf(keys []string) (snap Snapshot, copied store.Copied, err error) {
	snap = c.emptySnapshot()
	// Its own, so that a seed file for one account does not change the request ids of others.
	if snap.RequestIDs, err = c.ids("seed").MarshalBinary(); err != nil {
		return snap, copied, err
	}
	var clockState func() clock.State
	c.Clock.BetweenTimers(func() {
		copied, err = c.Store.StateOf(keys, func() { clockState = c.Clock.Capture() })
	})
	if err != nil {
		return snap, copied, err
	}
	snap.Store, snap.Clock = copied.State, clockState()
	snap.Clock.Timers = slices.DeleteFunc(snap.Clock.Timers, func(t clock.Timer) bool {
		return t.Kind == deliver.TimerKind || !slices.Contains(keys, t.Account)
	})
	return snap, copied, nil
}

// draft returns a copy of the server that sends and stores nothing.
func (c *Core) draft(of Snapshot) (*Core, error) {
	cfg := c.Config
	cfg.DataFile, cfg.SeedFile, cfg.Endpoint, cfg.Speed = "", "", "", 0
	draft, err := New(cfg)
	if err != nil {
		return nil, err
	}
	return draft, draft.load(of)
}

// world is the server that a seed file fills.
func (c *Core) world(account string) seed.World {
	return seed.World{
		Store: c.Store,
		Clock: c.Clock,
		Call: func(key string, op spec.Operation, body []byte) (status int, response []byte, err error) {
			return memory.Call(context.Background(), c.API, key, op.Method, op.Path, body)
		},
		Account: account,
		Env: engine.Env{
			Dialect: c.Dialect, Sandbox: !c.Production, IDs: ids.New(), AutoPay: c.AutoPay, Fee: c.Fee, Settled: c.Settled,
		},
		Variant: spec.Variant{Dialect: c.Dialect, Lenient: c.Lenient, LoopbackHTTP: true, LocalHTTP: true},
	}
}

// Errors of a seed file that is valid; nothing was created.
var (
	ErrSeedRace   = errors.New("an account of the seed file was used while the file was applied: nothing was created; try again")
	ErrSeedMemory = errors.New("the content of the seed file does not fit into the memory limit: nothing was created; " +
		"raise the limit (-memory, WithMemoryLimit), or reset an account")
)

// takeOver applies the commits of the draft to the accounts, which must still have the
// state from which the draft began.
func (c *Core) takeOver(keys []string, copied store.Copied, commits []store.Commit, webhooks bool) error {
	fired := firedTimers{}
	for _, commit := range commits {
		fired.count(commit)
	}
	var same bool
	var err error
	c.Clock.BetweenTimers(func() { // so that no timer fires a second time
		same, err = c.Store.TakeOver(keys, copied, commits, func() (func(), error) {
			return c.data.persistSeed(commits, webhooks)
		})
		if same && err == nil {
			c.Clock.Drop(fired.drop)
		}
	})
	switch {
	case err != nil:
		return err
	case !same:
		return ErrSeedRace
	}
	for _, key := range keys {
		c.Events.Publish(key, events.Event{Type: events.TypeReset, Reset: &events.ResetEvent{Cause: "seed"}})
	}
	c.Clock.RunDue() // timers of the file that became due since
	return nil
}
