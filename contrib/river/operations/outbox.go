package operations

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/operations"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
)

// Config configures an [Outbox]. Pool and Client are required. The fields that have
// no comment are those of the Config of package
// github.com/gateway-go/gateway/operations.
type Config struct {
	Pool   *pgxpool.Pool
	Client *gateway.Client

	// Schema is the schema of River's tables and of the outbox's; "" means the
	// search path.
	Schema string

	SendTimeout     time.Duration
	SettleAfter     time.Duration
	KeyLifetime     time.Duration
	MaxBackoff      time.Duration
	MaxSends        int
	MaxResends      int
	MaxSearchPages  int
	HandlerAttempts int
	HandlerTimeout  time.Duration

	// SweepInterval is how often the sweep looks for operations whose worker
	// died; 30 s if it is 0.
	SweepInterval time.Duration

	Logger  *slog.Logger
	Observe func(context.Context, Observation)
}

// Outbox stores the operations of one account and sends them with River. It is safe
// for concurrent use once its handlers are registered.
type Outbox struct {
	*operations.Outbox[pgx.Tx]

	engine *engine
}

// New returns an outbox. A process that only inserts operations does not call
// [Outbox.Configure].
func New(config Config) (*Outbox, error) {
	config.SweepInterval = cmp.Or(config.SweepInterval, 30*time.Second)
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	switch {
	case config.Pool == nil:
		return nil, errors.New("operations: Config.Pool is required")
	case config.SweepInterval < 0:
		return nil, errors.New("operations: Config.SweepInterval must not be negative")
	}
	e := &engine{pool: config.Pool, interval: config.SweepInterval, logger: config.Logger}
	core, err := operations.NewWithEngine(driver{config.Pool}, e, operations.Config{
		Client: config.Client, Schema: config.Schema,
		SendTimeout: config.SendTimeout, SettleAfter: config.SettleAfter, KeyLifetime: config.KeyLifetime, MaxBackoff: config.MaxBackoff,
		MaxSends: config.MaxSends, MaxResends: config.MaxResends, MaxSearchPages: config.MaxSearchPages,
		HandlerAttempts: config.HandlerAttempts, HandlerTimeout: config.HandlerTimeout, Logger: config.Logger, Observe: config.Observe,
	})
	if err != nil {
		return nil, err
	}
	e.river, err = river.NewClient(riverpgxv5.New(config.Pool), &river.Config{Schema: config.Schema, Logger: config.Logger})
	if err != nil {
		return nil, fmt.Errorf("operations: %w", err)
	}
	e.account, e.table = core.Account().Name, core.Table()
	e.jobs, e.queues = qualified(config.Schema, "river_job"), qualified(config.Schema, "river_queue")
	return &Outbox{Outbox: core, engine: e}, nil
}

func qualified(schema, name string) string {
	if schema == "" {
		return pgx.Identifier{name}.Sanitize()
	}
	return pgx.Identifier{schema, name}.Sanitize()
}

// Configure adds the outbox to the configuration of a River client that runs
// its operations: the job types, the queue with 16 workers unless it is
// already configured, and the periodic sweep. The outboxes of several accounts can
// share a River client: call Configure of each.
//
// A client with LeaderElectionDisabled runs no periodic jobs, so another
// client must run them.
func (o *Outbox) Configure(config *river.Config) error {
	all, err := outboxesOf(config)
	if err != nil {
		return err
	}
	if err := all.add(o); err != nil {
		return err
	}
	if config.Queues == nil {
		config.Queues = make(map[string]river.QueueConfig)
	}
	if _, set := config.Queues[o.Queue()]; !set {
		config.Queues[o.Queue()] = river.QueueConfig{MaxWorkers: 16}
	}
	if !config.LeaderElectionDisabled {
		config.PeriodicJobs = append(config.PeriodicJobs, o.sweep())
	}
	return nil
}
