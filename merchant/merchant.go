package merchant

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/merchant/internal/books"
	"github.com/gateway-go/gateway/operations"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/sqlstore"
)

// Merchant is the merchant's side of the gateway. It is safe for concurrent use.
type Merchant struct {
	cfg      Config
	store    *store
	accounts map[string]*account
	woken    chan struct{} // has an element if a fact may be waiting for its callback
	events   *sqlstore.Store[*sql.Tx]
	phase    atomic.Int32 // of Run, see Ready
}

// account is an account with what sends and receives for it.
type account struct {
	Account

	m        *Merchant
	outbox   *operations.Outbox[*sql.Tx]
	receiver *webhook.Receiver
}

// Open checks the database and the accounts and creates the tables, whose names begin
// with "gateway_", if they are missing. On PostgreSQL they are in the first schema of the
// search path.
//
// It reads a transaction of each account that has made one. A gateway that can't be reached
// is logged and causes no error.
//
// The error is [ErrAccount] if the name or the prefix of an account is in use for another
// one, a prefix begins with that of another account, or the client has the credential of
// another account. Any other names the setting that is wrong, in the configuration or the
// database.
func Open(ctx context.Context, db *sql.DB, cfg Config) (*Merchant, error) {
	if db == nil {
		return nil, errors.New("merchant: the database is nil")
	}
	if err := cfg.set(); err != nil {
		return nil, err
	}
	var driver operations.Driver[*sql.Tx]
	var events database.Driver[*sql.Tx]
	switch cfg.Dialect {
	case operations.DialectSQLite:
		driver, events = operations.SQLite(db), database.SQLite(db)
	case operations.DialectPostgres:
		driver, events = operations.Postgres(db), database.Postgres(db)
	default:
		return nil, errors.New("merchant: Config.Dialect is unknown: use operations.DialectSQLite or operations.DialectPostgres")
	}
	m := &Merchant{cfg: cfg, store: newStore(driver), accounts: make(map[string]*account), woken: make(chan struct{}, 1)}
	m.events = sqlstore.New(events, sqlstore.WithLogger(cfg.Logger))
	for _, a := range cfg.Accounts {
		if err := m.add(a, driver); err != nil {
			return nil, err
		}
	}
	for _, a := range m.accounts { // checks the database before a table is created
		if err := a.outbox.Migrate(ctx); err != nil {
			return nil, opening(err)
		}
	}
	if err := m.events.Migrate(ctx); err != nil {
		return nil, opening(err)
	}
	if err := m.store.look(ctx); err != nil {
		return nil, opening(err)
	}
	if err := m.migrate(ctx); err != nil {
		return nil, opening(err)
	}
	for _, a := range m.accounts {
		if err := m.recognize(ctx, a); err != nil {
			return nil, opening(err)
		}
		if err := m.receive(a, m.events); err != nil { //nolint:contextcheck // the receiver outlives the call
			return nil, err
		}
	}
	return m, nil
}

// opening names the account's conflict as this package does.
func opening(err error) error {
	if errors.Is(err, operations.ErrAccountConflict) || errors.Is(err, gateway.ErrAccountConflict) {
		return fmt.Errorf("%w: %w", ErrAccount, err)
	}
	if errors.Is(err, ErrAccount) {
		return err
	}
	return fmt.Errorf("merchant: open: %w", err)
}

func (m *Merchant) add(cfg Account, driver operations.Driver[*sql.Tx]) (err error) {
	if err := cfg.set(); err != nil {
		return err
	}
	if m.accounts[cfg.Name] != nil {
		return fmt.Errorf("%w: Config.Accounts has two accounts with the name %s", ErrAccount, cfg.Name)
	}
	a := &account{Account: cfg, m: m}
	a.outbox, err = operations.New(driver, operations.Config{
		Client: a.Client, SendTimeout: m.cfg.SendTimeout, SettleAfter: m.cfg.SettleAfter, KeyLifetime: m.cfg.KeyLifetime,
		HandlerTimeout: m.cfg.CallbackTimeout, Workers: m.cfg.Workers, PollInterval: m.cfg.PollInterval, Logger: m.cfg.Logger,
		Observe: m.cfg.Observe,
	})
	if err != nil {
		return err
	}
	operations.OnResult(a.outbox, func(ctx context.Context, tx *sql.Tx, r operations.TransactionResult) error {
		return m.charged(ctx, tx, a, r)
	})
	operations.OnResult(a.outbox, func(ctx context.Context, tx *sql.Tx, r operations.RefundResult) error {
		return m.refunded(ctx, tx, a, r)
	})
	operations.OnResult(a.outbox, func(ctx context.Context, tx *sql.Tx, r operations.TransferResult) error {
		return m.transferred(ctx, tx, a, r)
	})
	m.handleSubscriptions(a)
	m.accounts[a.Name] = a
	return nil
}

// account returns an account by its name, which may be omitted if there is only one.
func (m *Merchant) account(name string) (*account, error) {
	if name == "" && len(m.accounts) == 1 {
		for _, a := range m.accounts {
			return a, nil
		}
	}
	if a := m.accounts[name]; a != nil {
		return a, nil
	}
	if name == "" {
		return nil, fmt.Errorf("%w: there are several accounts: name one", ErrAccount)
	}
	return nil, fmt.Errorf("%w: there is no account %q", ErrAccount, name)
}

// Webhook returns the handler of an account's webhook URL. It stores each event before it
// acknowledges it, and works on events also in a process that does not Run. It panics if there is no such
// account; with one account the name may be "".
func (m *Merchant) Webhook(account string) http.Handler {
	a, err := m.account(account)
	if err != nil {
		panic(err)
	}
	return a.receiver
}

// Run sends what is stored, handles webhooks, compares charges with the gateway and calls
// your callbacks until ctx ends, finishes what is in progress, and returns nil. Several
// processes may run at once, on SQLite those of one machine. A process that only takes
// orders and webhooks need not run it. Call it once: after it has returned, the handlers of
// Webhook accept no events.
//
// It returns an error at once if the database is not set up. Later failures of the
// database or the gateway are logged, and the work is repeated.
func (m *Merchant) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	failed := make(chan error, len(m.accounts))
	for _, a := range m.accounts {
		a.receiver.Start() //nolint:contextcheck // Shutdown ends it
		running.Go(func() {
			if err := a.outbox.Run(ctx); err != nil {
				failed <- err
				cancel()
			}
		})
	}
	running.Go(func() { m.deliver(ctx) })
	running.Go(func() { m.compare(ctx) })
	m.phase.Store(isRunning)
	<-ctx.Done()
	m.phase.Store(hasEnded)
	for _, a := range m.accounts {
		running.Go(func() { m.shutDown(ctx, a) })
	}
	running.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// shutDown ends an account's receiver after the handlers that are running.
func (m *Merchant) shutDown(ctx context.Context, a *account) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.cfg.CallbackTimeout)
	defer cancel()
	if err := a.receiver.Shutdown(ctx); err != nil {
		m.fail(ctx, "the webhook receiver did not shut down in time", err, slog.String("account", a.Name))
	}
}

// fail logs a failure that is repeated later.
func (m *Merchant) fail(ctx context.Context, what string, err error, attrs ...slog.Attr) {
	m.cfg.Logger.LogAttrs(ctx, slog.LevelError, "merchant: failed, and will be repeated", append(attrs, slog.String("what", what), slog.String("error", err.Error()))...)
}

// wake makes the loop of callbacks look for facts. The transaction that stored one may
// not be committed yet.
func (m *Merchant) wake() {
	select {
	case m.woken <- struct{}{}:
	default:
	}
}

// Refresh reads what the gateway has of a charge, payout or subscription now, and books what
// it shows. If several have the ID, it is all of them. The error is [ErrNotFound] if there is
// none, and that of the client if it can't be read.
func (m *Merchant) Refresh(ctx context.Context, id string) error {
	known := false
	var failed error
	for _, kind := range m.comparisons() {
		found, err := m.store.conn().first(ctx, `SELECT id FROM `+kind.table+` WHERE id = ?`, []any{id}, new(string))
		if err == nil && found {
			err = kind.look(ctx, id, books.FromPerson)
		}
		known = known || found
		failed = errors.Join(failed, err)
	}
	if failed == nil && !known {
		return fmt.Errorf("%w: charge, payout or subscription %s", ErrNotFound, id)
	}
	return failed
}

// look reads the transaction of a charge and books what it shows. Without a transaction it
// takes over what the outbox knows.
func (m *Merchant) look(ctx context.Context, chargeID string, source books.Source) error {
	ch, err := m.readCharge(ctx, m.store.conn(), chargeID)
	if err != nil {
		return err
	}
	r := books.Reading[gateway.Transaction]{Source: source, At: time.Now()}
	if ch.Books.TransactionID != "" {
		if r.Resource, err = ch.account.Client.Transactions.Get(ctx, ch.Books.TransactionID); err != nil {
			return err
		}
	}
	return m.book(ctx, ch, r)
}

// book books a reading of a charge's transaction, if there is one.
func (m *Merchant) book(ctx context.Context, ch *charge, r books.Reading[gateway.Transaction]) error {
	return m.store.transaction(ctx, func(tx *sql.Tx) error {
		d, err := m.open(ctx, tx, ch.subject)
		if err == nil {
			err = d.load(ctx, ch.Books.ID)
		}
		if err == nil && r.Resource != nil {
			err = d.readOne(ctx, r)
		}
		if err == nil {
			err = d.save(ctx)
		}
		return err
	})
}

// One returns an error unless a statement changed exactly one row, for callbacks:
//
//	return merchant.One(tx.ExecContext(ctx, `UPDATE orders SET state = 'paid' WHERE id = ?`, c.Order))
func One(result sql.Result, err error) error {
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err == nil && n != 1 {
		err = fmt.Errorf("merchant: the statement changed %d rows instead of 1", n)
	}
	return err
}
