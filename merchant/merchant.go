package merchant

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/gate"
	"github.com/gateway-go/gateway/internal/masking"
	"github.com/gateway-go/gateway/internal/sqldb"
	"github.com/gateway-go/gateway/merchant/internal/books"
	"github.com/gateway-go/gateway/merchant/internal/ledger"
	"github.com/gateway-go/gateway/operations"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/sqlstore"
)

// core is what a [Merchant] is without the type of its transactions.
type core struct {
	reading
	*shared
}

// shared is what is the same for all books, besides what reads them.
type shared struct {
	cfg       Config
	callbacks Callbacks[sqldb.Tx]
	in        func(tx any) sqldb.Tx // of a user's transaction
	clock     clock
	due       chan struct{} // has an element if a fact waits for its callback
	coming    chan struct{} // has an element if the transaction that is going to be committed has such a fact
	events    *sqlstore.Store[sqldb.Tx]
	phase     atomic.Int32 // of Run, see Ready
}

// account is an account with what reads, sends and receives for it. One that this process lacks,
// or that only reports are read of, has neither a client, nor an outbox, nor a receiver.
type account struct {
	Account

	requests accountRequests
	inbox    accountEvents
	clock    *clock
	gate     *gate.Gate
	outbox   *operations.Outbox[sqldb.Tx]
	receiver *webhook.Receiver
	walking  atomic.Bool  // charges that are paid are left to lists
	down     atomic.Bool  // the last list failed while the gateway was down
	unknown  atomic.Int64 // how many events of this process matched no record
	warned   atomic.Bool  // that something is not in the books
	collides atomic.Bool  // the log says that other code uses the prefix

	digestKey string // of the digests by which buyers are found
}

// set is [Open].
func (m *core) set(ctx context.Context, driver database.Driver[sqldb.Tx], cfg Config, on Callbacks[sqldb.Tx]) error {
	if err := cfg.set(); err != nil {
		return err
	}
	m.cfg, m.callbacks = cfg, on
	m.due, m.coming = make(chan struct{}, 1), make(chan struct{}, 1)
	m.ground = newGround(sqldb.New(driver, cfg.Location, cfg.Logger), cfg.lag(), cfg.Keep.Unknown)
	m.heard, m.unheard = heard(&on)
	inbox := []sqlstore.Option{sqlstore.WithLocation(cfg.Location), sqlstore.WithLogger(cfg.Logger)}
	if cfg.Keep.Events > 0 {
		inbox = append(inbox, sqlstore.WithRetention(cfg.Keep.Events))
	}
	m.events = sqlstore.New(driver, inbox...)
	for _, a := range cfg.Accounts {
		if err := m.add(a, m.db.Shared()); err != nil {
			return err
		}
	}
	if err := m.migrate(ctx); err != nil {
		return opening(err)
	}
	if err := m.recognize(ctx); err != nil {
		return opening(err)
	}
	for _, a := range m.accounts {
		if err := m.receive(a, m.events); err != nil { //nolint:contextcheck // the receiver outlives the call
			return err
		}
	}
	return nil
}

// opening names the account's conflict as this package does.
func opening(err error) error {
	if errors.Is(err, gateway.ErrAccountConflict) {
		return fmt.Errorf("%w: %w", ErrAccount, err)
	}
	if errors.Is(err, ErrAccount) {
		return err
	}
	return fmt.Errorf("merchant: open: %w", err)
}

func (m *core) add(cfg Account, driver database.Driver[sqldb.Tx]) (err error) {
	if err := cfg.set(); err != nil {
		return err
	}
	if m.accounts[cfg.Name] != nil {
		return fmt.Errorf("%w: Config.Accounts has two accounts with the name %s", ErrAccount, cfg.Name)
	}
	a := &account{Account: cfg, clock: &m.clock}
	if err := a.gated(&m.cfg); err != nil {
		return err
	}
	a.outbox, err = operations.New(driver, operations.Config{
		Client: a.Client, SendTimeout: m.cfg.SendTimeout, SettleAfter: m.cfg.SettleAfter, KeyLifetime: m.cfg.KeyLifetime,
		HandlerTimeout: m.cfg.CallbackTimeout, Workers: m.cfg.Workers, PollInterval: m.cfg.PollInterval, Logger: m.cfg.Logger,
		Observe: m.cfg.Observe, Location: m.cfg.Location,
	})
	if err != nil {
		return err
	}
	a.requests = a.outbox
	operations.OnResult(a.outbox, func(ctx context.Context, tx sqldb.Tx, r operations.TransactionResult) error {
		return m.storeCharge(ctx, tx, a, r)
	})
	operations.OnResult(a.outbox, func(ctx context.Context, tx sqldb.Tx, r operations.RefundResult) error {
		return m.storeRefund(ctx, tx, a, r)
	})
	operations.OnResult(a.outbox, func(ctx context.Context, tx sqldb.Tx, r operations.TransferResult) error {
		return m.storePayout(ctx, tx, a, r)
	})
	m.storeSubscriptions(a)
	m.accounts[a.Name] = a
	return nil
}

// Webhook returns the handler of an account's webhook URL. It stores each event before it
// acknowledges it, and works on events also in a process that does not Run. It panics if there is no such
// account; with one account the name may be "".
func (m *core) Webhook(account string) http.Handler {
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
func (m *core) Run(ctx context.Context) error {
	m = m.bound("")
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	failed := make(chan error, len(m.accounts))
	for _, a := range m.accounts {
		a.receiver.Start() //nolint:contextcheck // Shutdown ends it
		running.Go(func() {
			if err := a.outbox.Run(gate.With(ctx, a.gate)); err != nil {
				failed <- err
				cancel()
			}
		})
	}
	sweeper := newSweeper(m)
	running.Go(func() { m.scout(ctx) })
	running.Go(func() { newCourier(m).run(ctx) })
	running.Go(func() { newComparer(m).run(inBackground(ctx)) })
	running.Go(func() { sweeper.run(inBackground(ctx)) })
	running.Go(func() { m.keepTotals(ctx) })
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
func (m *core) shutDown(ctx context.Context, a *account) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.cfg.CallbackTimeout)
	defer cancel()
	a.gate.Stop() // handlers that wait at it release their events
	if err := a.receiver.Shutdown(ctx); err != nil {
		m.fail(ctx, "the webhook receiver did not shut down in time", err, slog.String("account", a.Name))
	}
}

// fail logs a failure that is repeated later.
func (m *core) fail(ctx context.Context, what string, err error, attrs ...slog.Attr) {
	m.cfg.Logger.LogAttrs(ctx, slog.LevelError, "merchant: failed, and will be repeated", append(attrs, slog.String("what", what), slog.String("error", err.Error()))...)
}

// signal makes what waits for c go on.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Refresh reads what the gateway has of a charge, payout or subscription now, and books what
// it shows. If several have the ID, also in several books, it is all of them. The error is
// [ErrNotFound] if there is none, [ErrAccount] if this process lacks its account, and that of
// the client if it can't be read; see [ErrMaybeStored] too.
func (m *core) Refresh(ctx context.Context, id string) error {
	hits, err := m.Find(ctx, id)
	if err != nil {
		return err
	}
	known := false
	var failed error
	for _, h := range hits {
		if kind := ledger.Kind(h.Kind); h.As == h.Kind && slices.Contains(ledger.Kinds, kind) {
			known = true
			failed = errors.Join(failed, sure(ctx, func(ctx context.Context, _ bool) error {
				return m.look(ctx, kind, h.Book, id, books.FromPerson)
			}))
		}
	}
	if failed == nil && !known {
		return fmt.Errorf("%w: charge, payout or subscription %s", ErrNotFound, id)
	}
	return failed
}

// present returns an error if this process lacks the account, so that nothing can be sent or
// read for it.
func (a *account) present() error {
	if a.outbox == nil {
		return fmt.Errorf("%w: this process has no account %s", ErrAccount, a.Name)
	}
	return nil
}

// clock is the database's clock: times that several processes compare are read from it. It is
// at most as late as a round trip takes, and never ahead.
type clock struct{ ahead atomic.Int64 } // of this process's clock

// set notes that a statement read a time from the database.
func (c *clock) set(now time.Time) { c.ahead.Store(int64(time.Until(now))) }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// outcome returns what became of a request, and why it was refused: the gateway's code and the
// fields that it names. Its text may repeat what is personal, of this request or another.
func outcome(err error) (books.Operation, string) {
	if err == nil {
		return books.Applied, ""
	}
	rejected, ok := errors.AsType[*operations.RejectedError](err)
	if !ok {
		return books.Refused, err.Error()
	}
	if rejected.StatusCode == 0 { // a rule of ours, before it was sent
		return books.Refused, ledger.Clean(masking.Text(rejected.Text))
	}
	reason := cmp.Or(rejected.Code, rejected.Kind)
	var fields []string
	for _, f := range rejected.Fields {
		fields = append(fields, f.Field)
	}
	if len(fields) > 0 {
		reason += ": " + strings.Join(fields, ", ")
	}
	return books.Refused, ledger.Clean(masking.Text(reason))
}

// One returns an error unless a statement changed exactly one row, for callbacks:
//
//	return merchant.One(tx.ExecContext(ctx, setPaid, c.Order))
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
