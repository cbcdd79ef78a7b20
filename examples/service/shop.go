package main

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/sqlstore"
)

//go:embed schema.sql
var schema string

// shop is the whole service without its listener.
type shop struct {
	cfg        config
	db         *sql.DB
	gateway    *gateway.Client
	events     *sqlstore.Store
	receiver   *webhook.Receiver
	reconciler *webhook.Reconciler
	log        *slog.Logger
}

func newShop(ctx context.Context, cfg config, db *sql.DB, client *gateway.Client, log *slog.Logger) (*shop, error) {
	s := &shop{cfg: cfg, db: db, gateway: client, events: sqlstore.New(db, sqlstore.Postgres), log: log}
	if err := s.migrate(ctx); err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	if err := s.events.Migrate(ctx); err != nil {
		return nil, err
	}
	if err := s.receive(); err != nil { //nolint:contextcheck // its workers outlive ctx, until Shutdown
		return nil, err
	}
	return s, s.reconcile()
}

// migrate creates the tables. If several processes start together, only one of
// them does it.
func (s *shop) migrate(ctx context.Context) error {
	return s.inTx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock(hashtext('shop schema'))`); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, schema)
		return err
	})
}

func (s *shop) inTx(ctx context.Context, fn func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // does nothing after the commit
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// execer is the database or one of its transactions.
type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// errNoRow reports that an UPDATE changed nothing: the row does not exist (yet).
var errNoRow = errors.New("no such row")

// changesOne runs an UPDATE that must change one row. An UPDATE of a row that
// does not exist is not an error to the database, but would lose a payment.
func changesOne(ctx context.Context, db execer, query string, args ...any) error {
	res, err := db.ExecContext(ctx, query, args...)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n == 1 {
		return err
	}
	return errNoRow
}

// exists runs an INSERT … ON CONFLICT DO NOTHING and reports whether the row existed.
func exists(ctx context.Context, db execer, query string, args ...any) (bool, error) {
	err := changesOne(ctx, db, query, args...)
	if errors.Is(err, errNoRow) {
		return true, nil
	}
	return false, err
}

// repeatOf marks the create of a row that existed before this request: an earlier
// request may have sent it too, so a rejection of this one would prove nothing.
func repeatOf(existed bool, since time.Time) []gateway.RequestOption {
	if !existed {
		return nil
	}
	return []gateway.RequestOption{gateway.FirstSent(since)}
}

// outcome classifies the result of a create with a reference.
type outcome int

const (
	applied  outcome = iota // there is a resource
	existing                // the reference was used before, by an earlier attempt
	unknown                 // there may be one: the record stays open for the reconciler
	rejected                // there is none, and a repeat would be rejected too
)

func outcomeOf(err error) outcome {
	switch {
	case err == nil:
		return applied
	case errors.Is(err, gateway.ErrDuplicate):
		return existing
	case errors.Is(err, gateway.ErrOutcomeUnknown):
		return unknown
	case errors.Is(err, gateway.ErrValidation), errors.Is(err, gateway.ErrNotFound), errors.Is(err, gateway.ErrConflict):
		return rejected
	default: // a revoked key, an overloaded gateway: the record is still valid
		return unknown
	}
}
