package core

import (
	"bytes"
	"context"
	"encoding/json"
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
	"github.com/gateway-go/gateway/mockserver/internal/ids"
	"github.com/gateway-go/gateway/mockserver/internal/memory"
	"github.com/gateway-go/gateway/mockserver/internal/seed"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// MaxSeed is the maximum size of a seed file in bytes.
const MaxSeed = 16 << 20

// Seeded returns the ids of the named entries of every seed file that was applied since
// the start, or nil if there was none.
func (c *Core) Seeded() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.seeded)
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

// Seed creates a file's content in a copy of the server and, if all of it is
// valid, takes over the copy's state. Until then, and if an entry is invalid,
// nothing is visible. account is the key of the entries at the top of the
// file.
func (c *Core) Seed(name string, text []byte, account string) (map[string]string, error) {
	c.seeding.Lock()
	defer c.seeding.Unlock()
	if len(text) > MaxSeed {
		return nil, fmt.Errorf("the seed file is longer than %d MiB", MaxSeed>>20)
	}
	if err := c.settle(); err != nil {
		return nil, err
	}
	before, err := c.state()
	if err != nil {
		return nil, err
	}
	f, err := seed.Parse(name, text, before.Clock.Now)
	if err != nil {
		return nil, err
	}
	draft, err := c.draft(before)
	if err != nil {
		return nil, err
	}
	defer draft.Stop() // it has no file
	var told []store.Commit
	draft.data.collect = func(commit store.Commit) { told = append(told, commit) }
	named, err := f.Run(context.Background(), draft.world(account))
	if err != nil {
		return nil, err
	}
	after, err := draft.state()
	if err != nil {
		return nil, err
	}
	if err := c.takeOver(before, after); err != nil {
		return nil, err
	}
	c.mu.Lock()
	if c.seeded == nil {
		c.seeded = map[string]string{}
	}
	maps.Copy(c.seeded, named)
	c.mu.Unlock()
	if !f.Webhooks {
		return named, nil
	}
	return named, c.deliver(told, after)
}

// draft returns a copy of the server that sends and stores nothing.
func (c *Core) draft(of Snapshot) (*Core, error) {
	cfg := c.Config
	cfg.DataFile, cfg.SeedFile, cfg.Endpoint, cfg.Speed = "", "", "", 0
	draft, err := New(cfg)
	if err != nil {
		return nil, err
	}
	of.Webhooks = deliver.Saved{}
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

// ErrSeedRace is the error if the server changes while a seed file is applied.
var ErrSeedRace = errors.New("the gateway was used while the seed file was applied: nothing was created; try again")

// takeOver replaces the server's state, which must still equal before, with
// the draft's. Webhooks that are waiting for a later attempt are kept.
func (c *Core) takeOver(before, after Snapshot) error {
	now, err := c.state()
	if err != nil {
		return err
	}
	same, err := equal(now.Store, before.Store)
	if err != nil {
		return err
	}
	if !same {
		return ErrSeedRace
	}
	after.Webhooks = now.Webhooks
	after.Clock.Now = now.Clock.Now
	after.Clock.Timers = slices.DeleteFunc(after.Clock.Timers, isDelivery)
	for _, t := range now.Clock.Timers {
		if isDelivery(t) {
			after.Clock.Timers = append(after.Clock.Timers, t)
		}
	}
	return c.replace(after, "seed", func() {})
}

func isDelivery(t clock.Timer) bool { return t.Kind == deliver.TimerKind }

func equal(a, b store.State) (bool, error) {
	x, err := json.Marshal(a) //nolint:musttag // as in a snapshot
	if err != nil {
		return false, err
	}
	y, err := json.Marshal(b) //nolint:musttag // as in a snapshot
	return bytes.Equal(x, y), err
}

// deliver sends the webhooks of the draft.
func (c *Core) deliver(commits []store.Commit, after Snapshot) error {
	sources := map[string][]byte{}
	for _, a := range after.Store.Accounts {
		sources[a.Key] = a.IDs
	}
	for _, commit := range commits {
		var send func()
		var err error
		c.Clock.BetweenTimers(func() { // so that no snapshot is taken between the two
			send, err = c.data.Persist(store.Commit{
				Account: commit.Account, IDs: sources[commit.Account], Integration: commit.Integration,
				Change: engine.Change{Events: commit.Change.Events},
			})
			if err == nil {
				send()
			}
		})
		if err != nil {
			return fmt.Errorf("everything is created, but its webhooks can't be sent: %w", err)
		}
	}
	return nil
}
