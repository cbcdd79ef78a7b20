// Package core is the gateway behind its fronts: the accounts and their clock, the
// sender of webhooks, the injected faults, the journal, the event stream and the
// interface. What acts on all of them is here too: snapshots, seed files, the data file.
//
// The interface's HTTP server, the checkout page, the control plane, the console and the
// Go methods of package mockserver take a core and call it; it calls none of them.
package core

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/clock"
	"github.com/gateway-go/gateway/mockserver/internal/deliver"
	"github.com/gateway-go/gateway/mockserver/internal/events"
	"github.com/gateway-go/gateway/mockserver/internal/faults"
	"github.com/gateway-go/gateway/mockserver/internal/httpapi"
	"github.com/gateway-go/gateway/mockserver/internal/ids"
	"github.com/gateway-go/gateway/mockserver/internal/journal"
	"github.com/gateway-go/gateway/mockserver/internal/memlimit"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// Core is a gateway. It is safe for concurrent use.
type Core struct {
	Config

	Memory  *memlimit.Limit
	Events  *events.Hub
	Faults  *faults.Set
	Journal *journal.Journal
	Clock   *clock.Clock
	Sender  *deliver.Sender
	Store   *store.Store
	API     *httpapi.API // the interface
	Keys    httpapi.Keys // those that were revoked or replaced

	requestIDs *ids.Source
	data       data
	down       atomic.Bool

	seeding sync.Mutex                   // held while a seed file is applied
	mu      sync.Mutex                   // of what follows
	seeded  map[string]map[string]string // ids of the entries of seed files, by the account that applied them and their names
}

// defaultMemory is the memory limit if none is given, in bytes.
const defaultMemory = 2 << 30

// New returns a gateway with the state of its data file and its seed file, and starts
// its clock. Stop and close it when it is no longer needed.
func New(cfg Config) (*Core, error) {
	c := &Core{Config: cfg, requestIDs: cfg.ids(""), Memory: memlimit.New(cmp.Or(cfg.MemoryLimit, defaultMemory))}
	c.Events = events.New(c.now, cfg.Key())
	c.Faults = &faults.Set{Seed: cfg.seedOr(rand.Uint64()), Events: c.Events, Known: c.matchesAny, Now: c.now} //nolint:gosec // chooses which request fails
	c.Journal = journal.New(journal.Config{
		Now: c.now, Operation: c.Operation, Account: c.Account, Memory: c.Memory, Events: c.Events,
	})
	c.Clock = clock.New(clock.Config{
		Start: cfg.Start, Speed: cfg.Speed,
		Fire: c.fire, StillApplies: c.stillApplies, Settle: c.settled, Refuse: refuseInside, Moved: c.moved,
	})
	c.Sender = deliver.New(c.senderConfig())
	c.data.core = c
	c.Store = store.New(store.Config{
		Clock: c.Clock, IDs: c.ids, Outbox: &c.data, Dialect: cfg.Dialect, Sandbox: !cfg.Production,
		AutoPay: cfg.AutoPay, Fee: cfg.Fee, Settled: cfg.Settled, Opening: cfg.Opening,
		Memory: c.Memory, Events: c.Events, Requests: c.Journal.Total,
	})
	c.Store.Account(cfg.Key()) // reserves the default account's memory, even if other keys are used first
	c.API = c.serve(cfg.Dialect, c.requestIDs, &c.Keys)
	if err := c.begin(); err != nil {
		c.Stop()
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Core) senderConfig() deliver.Config {
	cfg := deliver.Config{
		Clock: c.Clock, Wall: time.Now, InjectFault: c.Faults.ForWebhook, Headers: c.Headers, Memory: c.Memory,
		Events: c.Events, Dialect: c.Dialect,
		Timeout: c.WebhookTimeout, Retries: c.Retries, PauseAfter: c.PauseAfter, AnyCertificate: c.AnyCertificate,
	}
	if c.DataFile != "" {
		cfg.Persist, cfg.Paused = c.data.persistWebhooks, true
	}
	return cfg
}

// Interface returns the interface in a dialect, with a source for its request ids, for
// the gateway's own pages: it accepts revoked keys.
func (c *Core) Interface(dialect spec.Dialect, requestIDs *ids.Source) *httpapi.API {
	return c.serve(dialect, requestIDs, nil)
}

func (c *Core) serve(dialect spec.Dialect, requestIDs *ids.Source, keys *httpapi.Keys) *httpapi.API {
	return httpapi.New(httpapi.Config{
		Store: c.Store, Now: c.now, IDs: requestIDs, Dialect: dialect, Lenient: c.Lenient, Production: c.Production, Keys: keys,
		BasicTokenX: c.BasicTokenX, PublicURL: c.PublicURL, Hosts: c.AllowHosts, Events: c.Events,
	})
}

// begin reads the data file, registers the endpoint, applies the seed file and
// starts the clock, as requested by the settings.
func (c *Core) begin() error {
	if c.DataFile != "" {
		if err := c.openData(c.DataFile); err != nil {
			return err
		}
	}
	const id = "ep_default"
	if c.Endpoint == "" {
		_ = c.Sender.RemoveEndpoint("", id) // of an earlier start
	} else if _, err := c.Sender.AddEndpoint(deliver.Endpoint{ID: id, URL: c.Endpoint, Secret: c.EndpointSecret}); err != nil {
		return err
	}
	if c.SeedFile != "" {
		if err := c.seedFile(c.SeedFile); err != nil {
			return err
		}
	}
	c.Sender.Resume()
	c.Clock.Run()
	c.Clock.RunDue() // timers that an earlier process committed but did not fire
	return nil
}

// Stop cancels running deliveries and requests, also those in memory that wait in a
// fault.
func (c *Core) Stop() {
	c.Clock.Close()
	c.Faults.Close()
	c.Sender.Close()
}

// Close closes the data file and ends the event streams, after [Core.Stop].
func (c *Core) Close() error {
	defer c.Events.Close() // events until then are still reported
	return c.data.close()
}

func (c *Core) now() time.Time { return c.Clock.Now() }

// patience is how long a snapshot or a restore waits for receivers,
// in wall time. Attempts that take longer are made again, since they are pending
// in the snapshot.
const patience = 5 * time.Second

// settle waits for the webhooks that are due, at most for [patience].
func (c *Core) settle() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := c.Sender.Wait(ctx, ""); !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// Down makes the gateway unreachable, or reachable again.
func (c *Core) Down(down bool) {
	action := "up"
	if down {
		action = "down"
	}
	if c.down.Swap(down) != down {
		c.Events.Publish("", events.Event{Type: events.TypeFault, Fault: &events.FaultEvent{Action: action}})
	}
}

// IsDown reports whether the gateway is unreachable.
func (c *Core) IsDown() bool { return c.down.Load() }
