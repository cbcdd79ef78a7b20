package operations

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	pgxdriver "github.com/gateway-go/gateway/contrib/pgx"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/operations"
)

// Outbox stores the operations of one account and sends them with River. It is safe
// for concurrent use once its handlers are registered.
type Outbox struct {
	*operations.Outbox[pgx.Tx]

	engine *engine
}

// NewReader is operations.NewReader on the database of a pool.
func NewReader(pool *pgxpool.Pool, account string, at database.Location) (*Reader, error) {
	if pool == nil {
		return nil, errors.New("operations: the pool is nil")
	}
	return operations.NewReader(pgxdriver.New(pool), account, at)
}

// New returns an outbox on the database of a pool. A process that only inserts
// operations does not call [Outbox.Configure].
//
// On River, Config.Workers is the number of workers of the queue that Configure
// adds, and Config.PollInterval is how often the sweep looks for operations whose
// worker died; 30 s if it is 0. Config.Location is where the outbox's tables are; for
// River's own tables, see [RiverSchema].
func New(pool *pgxpool.Pool, config Config, options ...Option) (*Outbox, error) {
	if pool == nil {
		return nil, errors.New("operations: the pool is nil")
	}
	config.PollInterval = cmp.Or(config.PollInterval, 30*time.Second)
	config.Workers = cmp.Or(config.Workers, 16)
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	e := &engine{pool: pool, workers: config.Workers, interval: config.PollInterval, logger: config.Logger}
	for _, option := range options {
		option(e)
	}
	core, err := operations.NewWithEngine(pgxdriver.New(pool), e, config)
	if err != nil {
		return nil, err
	}
	e.river, err = river.NewClient(riverpgxv5.New(pool), &river.Config{Schema: e.schema, Logger: config.Logger})
	if err != nil {
		return nil, fmt.Errorf("operations: %w", err)
	}
	e.account, e.table = core.Account().Name, core.Table
	e.jobs = pgx.Identifier{"river_job"}.Sanitize()
	if e.schema != "" {
		e.jobs = pgx.Identifier{e.schema, "river_job"}.Sanitize()
	}
	return &Outbox{Outbox: core, engine: e}, nil
}

// Option is an option of [New].
type Option func(*engine)

// RiverSchema is the schema of River's tables, as in the Schema of [river.Config]. Without it,
// River looks for them in the search path. It says nothing about the outbox's own tables.
func RiverSchema(name string) Option { return func(e *engine) { e.schema = name } }

// Configure adds the outbox to the configuration of a River client that runs
// its operations: the job types, the queue with Config.Workers workers unless it is
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
		config.Queues[o.Queue()] = river.QueueConfig{MaxWorkers: o.engine.workers}
	}
	if !config.LeaderElectionDisabled {
		config.PeriodicJobs = append(config.PeriodicJobs, o.sweep())
	}
	return nil
}
