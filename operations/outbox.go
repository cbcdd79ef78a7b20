package operations

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/gate"
	"github.com/gateway-go/gateway/internal/sqldb"
)

// Config configures an [Outbox]. Client is required.
type Config struct {
	// Client sends the operations. It must name its account with
	// [gateway.WithAccount]: the outbox has only the operations of this account.
	// Other outboxes on the same database may have other accounts. The name stays
	// when the credential is rotated. An account of package merchant can't have an
	// outbox beside it: then each call returns [gateway.ErrAccountConflict].
	Client *gateway.Client

	// Location says where the outbox's tables are, and who creates them. The zero Location
	// is right for most programs.
	Location database.Location

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
	// [Ambiguous]. A search that takes longer than an attempt is continued by the
	// next one; see [EventSearching].
	MaxSearchPages int

	// HandlerAttempts is how often a handler may fail before the operation is
	// [Dead]; default 20. The gateway is not called again meanwhile.
	HandlerAttempts int

	// HandlerTimeout is how long a handler and its transaction may take; 30 s
	// if it is 0.
	HandlerTimeout time.Duration

	// Workers is how many operations [Outbox.Run] works on at the same time;
	// default 16.
	Workers int

	// PollInterval is how often [Outbox.Run] looks for operations that another process
	// inserted or left; default 1 s. It finds those of its own process at once.
	PollInterval time.Duration

	Logger  *slog.Logger                       // default slog.Default
	Observe func(context.Context, Observation) // metrics; it must not block
}

// Outbox stores the operations of one account and sends them. TX is the type of your
// transactions. It is safe for concurrent use once its handlers are registered.
type Outbox[TX any] struct {
	*core

	driver database.Driver[TX]
}

// core is what does not depend on the type of the transactions.
type core struct {
	reader

	config   Config
	client   *gateway.Client // as the operations use it
	handlers map[string]handler

	purging purging

	// wake is called in the transaction that makes an operation due.
	wake func(ctx context.Context, tx sqldb.Tx, id int64, kind string) error
	// woken has an element if an operation became due in this process. It is nil if an
	// engine works on the operations.
	woken chan struct{}

	nudged chan struct{} // has an element if Nudge has said that an operation is due
	idleAt atomic.Int64  // when it has said that none is
}

// New returns an outbox whose operations [Outbox.Run] works on. A process that only
// inserts operations does not call Run.
func New[TX any](driver database.Driver[TX], config Config) (*Outbox[TX], error) {
	o, err := newOutbox(driver, config)
	if err != nil {
		return nil, err
	}
	o.woken = make(chan struct{}, 1)
	o.wake = func(context.Context, sqldb.Tx, int64, string) error {
		signal(o.woken)
		return nil
	}
	return o, nil
}

// NewWithEngine returns an outbox whose operations an engine works on, instead of
// [Outbox.Run].
func NewWithEngine[TX any](driver database.Driver[TX], engine Engine[TX], config Config) (*Outbox[TX], error) {
	if engine == nil {
		return nil, errors.New("operations: the engine is nil")
	}
	o, err := newOutbox(driver, config)
	if err != nil {
		return nil, err
	}
	o.wake = func(ctx context.Context, tx sqldb.Tx, id int64, kind string) error {
		return engine.Wake(ctx, sqldb.User[TX](tx), id, kind)
	}
	return o, nil
}

func newOutbox[TX any](driver database.Driver[TX], config Config) (*Outbox[TX], error) {
	config.SendTimeout = cmp.Or(config.SendTimeout, 30*time.Second)
	config.SettleAfter = cmp.Or(config.SettleAfter, max(2*time.Minute, 2*config.SendTimeout))
	config.MaxBackoff = cmp.Or(config.MaxBackoff, 5*time.Minute)
	config.MaxSends = cmp.Or(config.MaxSends, 500)
	config.MaxResends = cmp.Or(config.MaxResends, 10)
	config.MaxSearchPages = cmp.Or(config.MaxSearchPages, 10_000)
	config.HandlerAttempts = cmp.Or(config.HandlerAttempts, 20)
	config.HandlerTimeout = cmp.Or(config.HandlerTimeout, 30*time.Second)
	config.Workers = cmp.Or(config.Workers, 16)
	config.PollInterval = cmp.Or(config.PollInterval, time.Second)
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	if driver == nil {
		return nil, errors.New("operations: the driver is nil: use database.SQLite(db) or database.Postgres(db)")
	}
	if err := config.check(driver.Dialect()); err != nil {
		return nil, err
	}
	client := config.Client
	if config.KeyLifetime > 0 {
		var err error
		if client, err = client.With(gateway.WithIdempotencyKeys()); err != nil {
			return nil, err
		}
	}
	store := &store{
		db: sqldb.New(sqldb.Untyped(driver), config.Location, config.Logger), account: client.Account(), foreign: !sqldb.IsTx[TX](),
	}
	return &Outbox[TX]{driver: driver, core: &core{
		reader: reader{store}, config: config, client: client, handlers: make(map[string]handler), nudged: make(chan struct{}, 1),
	}}, nil
}

func (c *Config) check(dialect database.Dialect) error {
	switch {
	case dialect != database.DialectPostgres && dialect != database.DialectSQLite:
		return errors.New("operations: the driver has an unknown Dialect")
	case c.Client == nil:
		return errors.New("operations: Config.Client is required")
	case c.Location.InSchema != "" && dialect == database.DialectSQLite:
		return errors.New("operations: Config.Location.InSchema is only for PostgreSQL")
	case c.Location.Schema > database.Expect:
		return errors.New("operations: Config.Location.Schema must be database.Create or database.Expect")
	case c.SettleAfter < 2*c.SendTimeout:
		return fmt.Errorf("operations: Config.SettleAfter is %s: it must be at least twice SendTimeout (%s), "+
			"or a request could be applied after it was found missing", c.SettleAfter, c.SendTimeout)
	}
	for _, is := range []struct {
		name  string
		value int64
	}{
		{"SendTimeout", int64(c.SendTimeout)},
		{"KeyLifetime", int64(c.KeyLifetime)},
		{"MaxBackoff", int64(c.MaxBackoff)},
		{"MaxSends", int64(c.MaxSends)},
		{"MaxResends", int64(c.MaxResends)},
		{"MaxSearchPages", int64(c.MaxSearchPages)},
		{"HandlerAttempts", int64(c.HandlerAttempts)},
		{"HandlerTimeout", int64(c.HandlerTimeout)},
		{"Workers", int64(c.Workers)},
		{"PollInterval", int64(c.PollInterval)},
	} {
		if is.value < 0 {
			return fmt.Errorf("operations: Config.%s must not be negative", is.name)
		}
	}
	return checkAccount(c.Client)
}

// Table returns the quoted name of the table of operations with its schema, which it looks
// up in the database once. An [Engine] may need it.
func (o *Outbox[TX]) Table(ctx context.Context) (string, error) {
	if err := o.store.db.Find(ctx); err != nil {
		return "", wrap(err)
	}
	return o.store.db.Qualified("gateway_operations"), nil
}

// Account returns the account whose operations the outbox has.
func (o *Outbox[TX]) Account() gateway.Account { return o.store.account }

// InsertTx stores an operation in your transaction. It is sent after the
// transaction is committed, and never if it is rolled back.
//
// Inserting an operation again with the same key returns the account's existing
// one, with Existing set, whatever its state; nothing is sent twice. InsertTx
// returns [ErrKeyReused] if the existing one differs, and
// [gateway.ErrValidation] if the operation breaks a rule of the gateway, and
// [gateway.ErrAccountConflict] if package merchant has the account: then nothing was stored, and the transaction is still usable. If the response to your COMMIT
// is lost, insert it again in another transaction.
func (o *Outbox[TX]) InsertTx(ctx context.Context, tx TX, op Operation) (*Entry, error) {
	in := sqldb.Wrap(o.driver, tx)
	r, err := o.insert(ctx, in, op, 0)
	if err != nil {
		return nil, err
	}
	if r.Existing {
		return &r.Entry, nil
	}
	return &r.Entry, wrap(o.wake(ctx, in, r.ID, r.Kind))
}

// insert stores an operation, unless there is one with its key. With a lease, the caller has
// claimed it, and is going to send it.
func (o *core) insert(ctx context.Context, in sqldb.Tx, op Operation, lease time.Duration) (*record, error) {
	params, err := encode(op)
	if err == nil {
		err = op.Validate()
	}
	if err != nil {
		return nil, err
	}
	c, err := o.store.in(ctx, in)
	if err != nil {
		return nil, err
	}
	return o.store.insert(ctx, c, op.identity(), params, lease)
}

// Work works on an operation if it is due, and returns when to call Work again: next
// is negative if nothing is left to do, or nothing before a person decides. Only
// engines call it.
//
// An error says that the database failed, or that Config.Observe panicked. Its
// text has no personal data. The operation stays stored, and is due again after its
// lease at the latest. The error is [gateway.ErrAccountConflict] if this process must
// not send the account's operations.
func (o *Outbox[TX]) Work(ctx context.Context, id int64) (next time.Duration, err error) {
	next, _, err = o.work(ctx, id)
	return next, err
}

// work is Work. It also returns the operation if this worker claimed it, as it left it.
func (o *core) work(ctx context.Context, id int64) (next time.Duration, claimed *record, err error) {
	ctx, cancel := context.WithTimeout(ctx, o.lease())
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			o.config.Logger.LogAttrs(ctx, slog.LevelError, "gateway: the worker of operations panicked",
				slog.String("account", o.store.account.Name), slog.String("stack", string(debug.Stack())))
			err = fmt.Errorf("operations: panic: %v", p)
		}
		err = shown(err)
	}()
	if err := o.store.ready(ctx); err != nil {
		return 0, nil, err
	}
	if !gate.Passed(ctx) { // a caller waits
		pass, err := gate.From(ctx).Ask(ctx)
		if err != nil {
			return shortestWait, nil, ctx.Err()
		}
		defer pass.End()
		ctx = pass.In(ctx)
	}
	r, err := o.store.claim(ctx, id, o.lease())
	if err != nil {
		return 0, nil, err
	}
	if r == nil {
		next, err = o.store.until(ctx, id)
		return next, nil, err
	}
	a := &attempt{core: o, record: r}
	next, err = a.run(ctx)
	if errors.Is(err, errLost) {
		next, err = o.store.until(ctx, id)
	}
	return next, r, err
}

// lease is how long a worker owns an operation: enough for two reads and the
// request, or for the request and the handler.
func (o *core) lease() time.Duration { return 3*o.config.SendTimeout + o.config.HandlerTimeout }
