package inbox

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/gateway-go/gateway"
	pgxdriver "github.com/gateway-go/gateway/contrib/pgx"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/sqlstore"
)

// baseQueue is the first part of the queues' names.
const baseQueue = "gateway_webhooks"

// Config configures an [Inbox]. Pool is required.
type Config struct {
	Pool *pgxpool.Pool

	// Schema is the schema of River's tables and of the events; "" means the
	// search path.
	Schema string

	// Store holds options for the table of events, such as
	// [sqlstore.WithRetention]. [sqlstore.WithLocation] replaces Schema for the
	// events.
	Store []sqlstore.Option

	// SweepInterval is how often the sweep looks for jobs whose process died;
	// 15 s if it is 0. StuckAfter is how long a job must have been running for
	// the sweep to check it; 1 minute if it is 0, which is the default of
	// [webhook.Config.Lease].
	SweepInterval, StuckAfter time.Duration

	Logger *slog.Logger // default slog.Default
}

// Inbox is the [webhook.Store] of a receiver whose events River's workers handle.
// The receiver needs [webhook.Inbox] mode and negative Workers.
type Inbox struct {
	*sqlstore.Store[pgx.Tx] // holds the events

	config  Config
	driver  database.Driver[pgx.Tx]
	river   *river.Client[pgx.Tx] // inserts and retries only
	account gateway.Account       // the zero Account until For is called
}

var _ webhook.Store = (*Inbox)(nil)

var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

// New returns an inbox. A process that only receives events does not call
// [Inbox.Configure].
func New(config Config) (*Inbox, error) {
	config.SweepInterval = cmp.Or(config.SweepInterval, 15*time.Second)
	config.StuckAfter = cmp.Or(config.StuckAfter, time.Minute)
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	switch {
	case config.Pool == nil:
		return nil, errors.New("inbox: Config.Pool is required")
	case config.Schema != "" && !schemaName.MatchString(config.Schema):
		return nil, errors.New("inbox: Config.Schema must consist of lowercase letters, digits and underscores")
	case config.SweepInterval < 0, config.StuckAfter < 0:
		return nil, errors.New("inbox: Config.SweepInterval and StuckAfter must not be negative")
	}
	options := config.Store
	if config.Schema != "" {
		options = append([]sqlstore.Option{sqlstore.WithLocation(database.Location{InSchema: config.Schema})}, options...)
	}
	client, err := river.NewClient(riverpgxv5.New(config.Pool), &river.Config{Schema: config.Schema, Logger: config.Logger})
	if err != nil {
		return nil, fmt.Errorf("inbox: %w", err)
	}
	driver := pgxdriver.New(config.Pool)
	return &Inbox{Store: sqlstore.New(driver, options...), config: config, driver: driver, river: client}, nil
}

// For implements [webhook.Store]. The result is an *Inbox.
func (in *Inbox) For(account gateway.Account) webhook.Store {
	view := *in
	view.Store, _ = in.Store.For(account).(*sqlstore.Store[pgx.Tx]) // it is one
	view.account = account
	return &view
}

// Configure adds the inbox to the configuration of a River client that handles the
// events of these receivers, each of another account: the job types, the queue of
// each account with 16 workers unless it is already configured, and a periodic
// sweep. Register the handlers before the client starts.
//
// A client with LeaderElectionDisabled runs no periodic jobs, so another
// client must run them.
func (in *Inbox) Configure(config *river.Config, receivers ...*webhook.Receiver) error {
	if len(receivers) == 0 {
		return errors.New("inbox: Configure needs a receiver")
	}
	if config.Workers == nil {
		config.Workers = river.NewWorkers()
	}
	if config.Queues == nil {
		config.Queues = make(map[string]river.QueueConfig)
	}
	w := &worker{tenants: make(map[string]tenant)}
	for _, rx := range receivers {
		queue, err := w.add(in, rx)
		if err != nil {
			return err
		}
		addQueue(config, queue, 16)
	}
	addQueue(config, sweepQueue, 1)
	if err := river.AddWorkerSafely(config.Workers, w); err != nil {
		return fmt.Errorf("inbox: %w", err)
	}
	if err := river.AddWorkerSafely(config.Workers, &sweeper{in: in}); err != nil {
		return fmt.Errorf("inbox: %w", err)
	}
	if !config.LeaderElectionDisabled {
		config.PeriodicJobs = append(config.PeriodicJobs, in.sweep())
	}
	return nil
}

// addQueue adds a queue, unless it is configured.
func addQueue(config *river.Config, name string, workers int) {
	if _, set := config.Queues[name]; !set {
		config.Queues[name] = river.QueueConfig{MaxWorkers: workers}
	}
}

// QueueOf returns the name of the River queue of an account's events:
// "gateway_webhooks_" and the account's name, or a hash of a name that has capital
// letters or dots or is too long. Pause and resume it with River:
// QueuePause(ctx, in.QueueOf(rx.Account()), nil). Events that arrive meanwhile wait.
func (in *Inbox) QueueOf(account gateway.Account) string { return queueOf(account.Name) }

// of is For with the type of its result.
func (in *Inbox) of(account gateway.Account) *Inbox {
	view, _ := in.For(account).(*Inbox) // it is one
	return view
}

var queueName = regexp.MustCompile(`^[a-z0-9]+([_-][a-z0-9]+)*$`)

// maxQueueName is the longest name of a queue in River.
const maxQueueName = 64

// queueOf returns the queue of an account. An account's name that River does not
// allow in a queue's is hashed.
func queueOf(account string) string {
	name := baseQueue + "_" + account
	if queueName.MatchString(account) && len(name) <= maxQueueName {
		return name
	}
	sum := sha256.Sum256([]byte(account))
	return baseQueue + "_" + hex.EncodeToString(sum[:8])
}

// HandleTx returns a handler that runs fn in the database transaction that completes
// its event and its River job: all changes are committed or none, so the
// effects of fn through tx happen exactly once. It is [sqlstore.HandleTx] for
// River.
//
// An UPDATE that changes no row is not an error, so check RowsAffected. fn
// must neither commit nor roll back. Its effects outside tx are repeated if
// the transaction fails.
func HandleTx[E any](in *Inbox, fn func(ctx context.Context, tx pgx.Tx, e E) error) func(ctx context.Context, e E) error {
	return func(ctx context.Context, e E) error {
		claim, ok := webhook.ClaimFromContext(ctx)
		r := runFrom(ctx)
		if !ok || r == nil {
			return errors.New("inbox: HandleTx needs the context of a handler that a River worker runs")
		}
		// The isolation is the session's default: fn may depend on it, and
		// completing an event is correct at every level.
		err := in.inTx(ctx, sql.LevelDefault, func(tx pgx.Tx) error {
			if err := in.CompleteTx(ctx, tx, claim); err != nil {
				return err
			}
			if err := r.completeTx(ctx, tx, claim); err != nil {
				return err
			}
			return fn(ctx, tx, e)
		})
		if err == nil {
			claim.Completed = true
			r.settle(claim, webhook.Disposition{State: webhook.StateDone})
		}
		return err
	}
}

// inTx runs fn in a transaction.
func (in *Inbox) inTx(ctx context.Context, level sql.IsolationLevel, fn func(pgx.Tx) error) error {
	tx, err := in.driver.Begin(ctx, level)
	if err != nil {
		return err
	}
	defer in.driver.Rollback(ctx, tx) //nolint:errcheck // after a commit it does nothing
	if err := fn(tx); err != nil {
		return err
	}
	if err := in.driver.Commit(ctx, tx); err != nil {
		return fmt.Errorf("inbox: the transaction was not committed: %w", err)
	}
	return nil
}
