package merchant

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/sqldb"
	"github.com/gateway-go/gateway/operations"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/sqlstore"
)

// Reports reads the books of all accounts of a database, and changes nothing: it has the methods
// of [Merchant] that only read. It needs no client, no key and no right but to read, so that a
// dashboard, a report or a support page can use a read replica. It is safe for concurrent use.
//
// A replica lags: what was committed on the primary server a moment ago may be missing, in two
// calls differently. Decide about money, and respond to a buyer, by [Merchant].
//
// It knows nothing of other processes: AccountHealth.Outage is nil, and Events.Hung is 0.
type Reports struct{ reading }

// ReportsConfig configures [Reports]. The zero value is right for most programs.
type ReportsConfig struct {
	// Location says in which schema the tables are. Nothing is created, whatever its Mode.
	Location database.Location

	// SettleAfter is that of [Config]: how long a resource without a reference is no unknown one
	// yet.
	SettleAfter time.Duration

	// Unknown is that of [Keep]: for how long a resource that matches no record is listed; default
	// 90 days.
	Unknown time.Duration

	// Zones are the zones of accounts whose [Account.Zone] has no name of the IANA database, by
	// the name of the account. All others are read from the database.
	Zones map[string]*time.Location

	Logger *slog.Logger // default slog.Default
}

// OpenReports reads which accounts the database has, and returns what reads their books. db is
// [database.Postgres], [database.SQLite] or the driver of contrib/pgx, on a role that may only
// read or on a file that is opened with mode=ro. An account that a [Merchant] adds later is seen
// by a later OpenReports.
//
// The error is [database.ErrSchema] if the tables are those of an earlier release or may not be
// read, or if this release is too old for them, and [ErrAccount] if no account is there yet. It
// says what to do.
func OpenReports[TX any](ctx context.Context, db database.Driver[TX], cfg ReportsConfig) (*Reports, error) {
	if db == nil {
		return nil, errors.New("merchant: the database is nil: use database.SQLite(db) or database.Postgres(db)")
	}
	if cfg.SettleAfter < 0 {
		return nil, errors.New("merchant: ReportsConfig.SettleAfter must not be negative")
	}
	if cfg.Unknown < 0 {
		return nil, errors.New("merchant: ReportsConfig.Unknown must not be negative")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	lag := (&Config{SettleAfter: cfg.SettleAfter}).lag()
	r := &Reports{reading{ground: newGround(sqldb.New(sqldb.Untyped(db), cfg.Location, cfg.Logger), lag, cmp.Or(cfg.Unknown, unknownFor))}}
	for _, c := range callbacks(new(Callbacks[sqldb.Tx])) { // some process has each
		r.heard = append(r.heard, c.name)
	}
	if err := r.open(ctx, &cfg); err != nil {
		return nil, fmt.Errorf("merchant: open reports: %w", err)
	}
	return r, nil
}

// Book returns the Reports bound to one book; see [Merchant.Book].
func (r *Reports) Book(name string) *Reports { return &Reports{*r.within(name)} }

// open reads the accounts.
func (r *Reports) open(ctx context.Context, cfg *ReportsConfig) error {
	// SQLite's settings protect commits, and a reader makes none.
	check := r.db.Driver().Check
	if r.db.Dialect() == database.DialectSQLite {
		check = func(context.Context) error { return nil }
	}
	if err := r.db.CheckBy(ctx, check); err != nil {
		return err
	}
	if err := r.db.Readable(ctx, parts...); err != nil {
		return err
	}
	stored, err := r.outside().Accounts(ctx)
	if err != nil {
		return err
	}
	if len(stored) == 0 {
		return fmt.Errorf("%w: the database has no account yet: merchant.Open on the primary server stores them, and a replica "+
			"has them once it has caught up", ErrAccount)
	}
	driver := r.db.Shared()
	events := sqlstore.New(driver, sqlstore.WithLocation(cfg.Location), sqlstore.WithLogger(cfg.Logger))
	for _, s := range stored {
		zone := cfg.Zones[s.Name]
		if zone == nil {
			if zone, err = time.LoadLocation(s.Zone); err != nil {
				return fmt.Errorf("the zone of account %s: %w: import time/tzdata, or set ReportsConfig.Zones", s.Name, err)
			}
		}
		a := &account{
			Account: Account{Name: s.Name, Book: s.Book, Prefix: s.Prefix, Zone: zone},
			inbox:   storedEvents{events.For(gateway.Account{Name: s.Name})},
		}
		if a.requests, err = operations.NewReader(driver, s.Name, cfg.Location); err != nil {
			return err
		}
		r.accounts[s.Name] = a
	}
	return nil
}

// storedEvents hides what writes.
type storedEvents struct{ store webhook.Store }

func (s storedEvents) DeadLetters(ctx context.Context, q webhook.DeadLetterQuery) ([]webhook.DeadLetter, error) {
	return s.store.DeadLetters(ctx, q)
}

func (s storedEvents) Counts(ctx context.Context) (webhook.Counts, error) { return s.store.Counts(ctx) }
