package operations

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
)

// Config configures an [Outbox]. Pool and Client are required.
type Config struct {
	Pool *pgxpool.Pool

	// Client sends the operations. It must name its account with
	// [gateway.WithAccount]: the outbox has only the operations of this account.
	// Other outboxes on the same database may have other accounts. The name stays
	// when the credential is rotated.
	Client *gateway.Client

	// Schema is the schema of River's tables and of the outbox's; "" means the
	// search path.
	Schema string

	// SendTimeout is how long one request to the gateway may take; 30 s if it
	// is 0.
	SendTimeout time.Duration

	// SettleAfter is how long after a request was sent the gateway may still
	// apply it, and how far its reads may lag behind its writes. Earlier reads
	// are not conclusive for an operation without a reference. It is 2 minutes
	// if it is 0, and at least twice SendTimeout.
	SettleAfter time.Duration

	// KeyLifetime is how long the gateway remembers an Idempotency-Key. If it
	// is set, refunds and cancellations are sent with a stored key, and after
	// a lost response they are repeated with it within this time. Ask your
	// gateway's operator, and set a shorter time. Leave it 0 if the gateway
	// ignores the header.
	KeyLifetime time.Duration

	// MaxBackoff is the longest wait between two requests of an operation while
	// the gateway is down or rejects the credential; default 5 minutes.
	MaxBackoff time.Duration

	// MaxSends is how often an operation may be sent without a known outcome;
	// default 500, which is more than a day with the default MaxBackoff.
	// Requests that never left the process don't count. At the limit the
	// resource is read once more; if that shows no effect, the operation is
	// [Ambiguous], with [EventSendLimit].
	MaxSends int

	// MaxResends is how often an operation may be sent again after reads showed
	// that it was not applied; default 10. After that it is [Ambiguous]: reads
	// that never show the change may be wrong.
	MaxResends int

	// MaxSearchPages is how many pages of 100 resources are read to find the
	// resource of a create whose response was lost and whose repeats are
	// rejected; default 10,000. If the list is longer, the operation is
	// [Ambiguous]. A search that takes longer than a job is continued by the next
	// one; see [EventSearching].
	MaxSearchPages int

	// HandlerAttempts is how often a handler may fail before the operation is
	// [Dead]; default 20. The gateway is not called again meanwhile.
	HandlerAttempts int

	// HandlerTimeout is how long a handler and its transaction may take; 30 s
	// if it is 0.
	HandlerTimeout time.Duration

	// SweepInterval is how often the sweep looks for operations whose worker
	// died; 30 s if it is 0.
	SweepInterval time.Duration

	Logger  *slog.Logger                       // default slog.Default
	Observe func(context.Context, Observation) // metrics; it must not block
}

// Outbox stores the operations of one account and sends them. It is safe for
// concurrent use once its handlers are registered.
type Outbox struct {
	config   Config
	client   *gateway.Client // as the operations use it
	store    *store
	river    *river.Client[pgx.Tx] // inserts only
	handlers map[string]handler
}

var schemaName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// New returns an outbox. A process that only inserts operations does not call
// [Outbox.Configure].
func New(config Config) (*Outbox, error) {
	config.SendTimeout = cmp.Or(config.SendTimeout, 30*time.Second)
	config.SettleAfter = cmp.Or(config.SettleAfter, max(2*time.Minute, 2*config.SendTimeout))
	config.MaxBackoff = cmp.Or(config.MaxBackoff, 5*time.Minute)
	config.MaxSends = cmp.Or(config.MaxSends, 500)
	config.MaxResends = cmp.Or(config.MaxResends, 10)
	config.MaxSearchPages = cmp.Or(config.MaxSearchPages, 10_000)
	config.HandlerAttempts = cmp.Or(config.HandlerAttempts, 20)
	config.HandlerTimeout = cmp.Or(config.HandlerTimeout, 30*time.Second)
	config.SweepInterval = cmp.Or(config.SweepInterval, 30*time.Second)
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	if err := config.check(); err != nil {
		return nil, err
	}
	client := config.Client
	if config.KeyLifetime > 0 {
		var err error
		if client, err = client.With(gateway.WithIdempotencyKeys()); err != nil {
			return nil, err
		}
	}
	inserter, err := river.NewClient(riverpgxv5.New(config.Pool), &river.Config{Schema: config.Schema, Logger: config.Logger})
	if err != nil {
		return nil, fmt.Errorf("operations: %w", err)
	}
	return &Outbox{
		config: config, client: client, river: inserter, store: newStore(config.Pool, config.Schema, client.Account()),
		handlers: make(map[string]handler),
	}, nil
}

func (c *Config) check() error {
	switch {
	case c.Pool == nil:
		return errors.New("operations: Config.Pool is required")
	case c.Client == nil:
		return errors.New("operations: Config.Client is required")
	case c.Schema != "" && !schemaName.MatchString(c.Schema):
		return errors.New("operations: Config.Schema must consist of letters, digits and underscores")
	case c.SendTimeout < 0, c.KeyLifetime < 0, c.MaxBackoff < 0, c.MaxSends < 0, c.MaxResends < 0, c.MaxSearchPages < 0, c.HandlerAttempts < 0, c.HandlerTimeout < 0, c.SweepInterval < 0:
		return errors.New("operations: Config: durations and counts must not be negative")
	case c.SettleAfter < 2*c.SendTimeout:
		return fmt.Errorf("operations: Config.SettleAfter is %s: it must be at least twice SendTimeout (%s), "+
			"or a request could be applied after it was found missing", c.SettleAfter, c.SendTimeout)
	}
	return checkAccount(c.Client)
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

// InsertTx stores an operation in your transaction. It is sent after the
// transaction is committed, and never if it is rolled back.
//
// Inserting an operation again with the same key returns the account's existing
// one, with Existing set, whatever its state; nothing is sent twice. InsertTx
// returns [ErrKeyReused] if the existing one differs, and
// [gateway.ErrValidation] if the operation breaks a rule of the gateway: then
// nothing was stored, and the transaction is still usable.
func (o *Outbox) InsertTx(ctx context.Context, tx pgx.Tx, op Operation) (*Entry, error) {
	params, err := encode(op)
	if err == nil {
		err = op.Validate()
	}
	if err != nil {
		return nil, err
	}
	if err := o.store.open(ctx, tx); err != nil {
		return nil, err
	}
	r, err := o.store.insert(ctx, tx, op.identity(), params)
	if err != nil || r.Existing {
		return r, err
	}
	return r, o.wake(ctx, tx, r.ID, r.Kind)
}

// wake inserts the River job that runs an operation. An extra job does
// nothing, and the sweep replaces a lost one.
func (o *Outbox) wake(ctx context.Context, tx pgx.Tx, id int64, kind string) error {
	job, err := o.river.InsertTx(ctx, tx, jobArgs{ID: id, Operation: kind, Account: o.store.account.Name}, nil)
	if err != nil {
		return fmt.Errorf("operations: %w", err)
	}
	return o.store.setJob(ctx, tx, id, job.Job.ID)
}

// lease is how long a worker owns an operation: enough for two reads and the
// request, or for the request and the handler.
func (o *Outbox) lease() time.Duration { return 3*o.config.SendTimeout + o.config.HandlerTimeout }
