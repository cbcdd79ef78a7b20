package mockserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// maxSeed is the maximum size of a seed file in bytes.
const maxSeed = 16 << 20

// WithSeedFile creates the resources in a file when the gateway starts; see
// [Server.Seed]. If the gateway's data file (see [WithDataFile]) already has
// resources, nothing is changed and [Server.Seeded] returns nil.
func WithSeedFile(path string) Option { return func(s *settings) { s.seedFile = path } }

// Seed creates the resources in a seed file: customers, checkout links,
// transactions, transfers and subscriptions, in the given states and at times
// in the past. docs/mockgateway.md describes the file. Each entry is checked
// by the interface's own rules and reaches its state by real transitions. No
// webhook is sent unless the file has "webhooks": true.
//
// It returns the ids of the entries that have a name; the id of a checkout
// link is its slug. The error names the line, column and member of every
// mistake: "shop.json:12:5: customers[2].email: must be an e-mail address". If
// there is an error, nothing is created. No request may be running.
func (s *Server) Seed(r io.Reader) (ids map[string]string, err error) {
	name := ""
	if named, ok := r.(interface{ Name() string }); ok {
		name = filepath.Base(named.Name())
	}
	text, err := io.ReadAll(io.LimitReader(r, maxSeed+1))
	if err != nil {
		return nil, fmt.Errorf("mockserver: reading the seed file: %w", err)
	}
	if ids, err = s.seed(name, text, s.Key()); err != nil {
		return nil, fmt.Errorf("mockserver: %w", err)
	}
	return ids, nil
}

// Seeded returns the ids of the named entries of every seed file that was
// applied to this server since its start, or nil if there was none.
func (s *Server) Seeded() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.seeded)
}

// seedFile applies the file of the options to an empty server.
func (s *Server) seedFile(path string) error {
	text, err := os.ReadFile(path) //nolint:gosec // the file that the user names
	if err != nil {
		return err
	}
	if s.holdsResources() {
		return nil
	}
	_, err = s.seed(filepath.Base(path), text, s.Key())
	return err
}

func (s *Server) holdsResources() bool {
	return s.store.Owner(func(d *store.Data) bool {
		return d.Transactions.Len()+d.Customers.Len()+d.Transfers.Len()+d.Subscriptions.Len()+d.Links.Len() > 0 || d.Integration != nil
	}) != ""
}

// seed creates a file's content in a copy of the server and, if all of it is
// valid, takes over the copy's state. Until then, and if an entry is invalid,
// nothing is visible. account is the key of the entries at the top of the
// file.
func (s *Server) seed(name string, text []byte, account string) (map[string]string, error) {
	s.seeding.Lock()
	defer s.seeding.Unlock()
	if len(text) > maxSeed {
		return nil, fmt.Errorf("the seed file is longer than %d MiB", maxSeed>>20)
	}
	if err := s.settle(); err != nil {
		return nil, err
	}
	before, err := s.snapshot()
	if err != nil {
		return nil, err
	}
	f, err := seed.Parse(name, text, before.Clock.Now)
	if err != nil {
		return nil, err
	}
	draft, err := s.draft(before)
	if err != nil {
		return nil, err
	}
	defer func() { _ = draft.Close() }() // it has no open resources
	var told []store.Commit
	draft.data.collect = func(c store.Commit) { told = append(told, c) }
	named, err := f.Run(context.Background(), draft.world(account))
	if err != nil {
		return nil, err
	}
	after, err := draft.snapshot()
	if err != nil {
		return nil, err
	}
	if err := s.takeOver(before, after); err != nil {
		return nil, err
	}
	s.mu.Lock()
	if s.seeded == nil {
		s.seeded = map[string]string{}
	}
	maps.Copy(s.seeded, named)
	s.mu.Unlock()
	if !f.Webhooks {
		return named, nil
	}
	return named, s.deliver(told, after)
}

// draft returns a copy of the server that sends and stores nothing.
func (s *Server) draft(of snapshot) (*Server, error) {
	draft, err := New(func(cfg *settings) {
		*cfg = *s.settings
		cfg.dataFile, cfg.seedFile, cfg.endpoint, cfg.speed = "", "", "", 0
	})
	if err != nil {
		return nil, err
	}
	of.Webhooks = deliver.Saved{}
	return draft, draft.load(of)
}

// world is the server that a seed file fills.
func (s *Server) world(account string) seed.World {
	return seed.World{
		Store: s.store,
		Clock: s.clock,
		Call: func(key string, op spec.Operation, body []byte) (status int, response []byte, err error) {
			return memory.Call(context.Background(), s.handler, key, op.Method, op.Path, body)
		},
		Account: account,
		Env: engine.Env{
			Dialect: s.settings.dialect, Sandbox: s.settings.environment == Sandbox, IDs: ids.New(),
			AutoPay: s.settings.autoPay, Fee: s.settings.fee, Settled: s.settings.settled,
		},
		Variant: spec.Variant{Dialect: s.settings.dialect, Lenient: s.settings.lenient, LoopbackHTTP: true, LocalHTTP: true},
	}
}

// errSeedRace is the error if the server changes while a seed file is applied.
var errSeedRace = errors.New("the gateway was used while the seed file was applied: nothing was created; try again")

// takeOver replaces the server's state, which must still equal before, with
// the draft's. Webhooks that are waiting for a later attempt are kept.
func (s *Server) takeOver(before, after snapshot) error {
	now, err := s.snapshot()
	if err != nil {
		return err
	}
	same, err := equal(now.Store, before.Store)
	if err != nil {
		return err
	}
	if !same {
		return errSeedRace
	}
	after.Webhooks = now.Webhooks
	after.Clock.Now = now.Clock.Now
	after.Clock.Timers = slices.DeleteFunc(after.Clock.Timers, isDelivery)
	for _, t := range now.Clock.Timers {
		if isDelivery(t) {
			after.Clock.Timers = append(after.Clock.Timers, t)
		}
	}
	return s.replace(after, "seed", func() {})
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
func (s *Server) deliver(commits []store.Commit, after snapshot) error {
	sources := map[string][]byte{}
	for _, a := range after.Store.Accounts {
		sources[a.Key] = a.IDs
	}
	for _, c := range commits {
		var send func()
		var err error
		s.clock.BetweenTimers(func() { // so that no snapshot is taken between the two
			send, err = s.data.Persist(store.Commit{
				Account: c.Account, IDs: sources[c.Account], Integration: c.Integration,
				Change: engine.Change{Events: c.Change.Events},
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
