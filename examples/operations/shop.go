package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/contrib/river/operations"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// shop is the part of a merchant's program that handles returns.
type shop struct {
	db     *pgxpool.Pool
	outbox *operations.Outbox
}

// newClient returns a client of the shop's account. The name says whose the stored
// operations are; it stays when the key is rotated.
func newClient(base, key string, transport http.RoundTripper) (*gateway.Client, error) {
	return gateway.New(base, gateway.BearerToken(key), gateway.WithAccount("shop-br"), gateway.WithHTTPClient(&http.Client{Transport: transport}))
}

// openShop connects to the shop's database and gateway.
func openShop(ctx context.Context, database string, client *gateway.Client) (*shop, error) {
	db, err := pgxpool.New(ctx, database)
	if err != nil {
		return nil, err
	}
	outbox, err := operations.New(db, operations.Config{
		Client: client, Logger: slog.New(slog.DiscardHandler), // River's log would clutter the output
		// Short, to keep the example fast. The defaults suit a real gateway.
		SendTimeout: 500 * time.Millisecond, SettleAfter: 2 * time.Second, HandlerTimeout: 2 * time.Second, PollInterval: time.Second,
	})
	if err != nil {
		return nil, err
	}
	operations.OnResult(outbox, refunded)
	return &shop{db: db, outbox: outbox}, nil
}

// migrate creates the tables: River's, the outbox's and the shop's.
func (s *shop) migrate(ctx context.Context) error {
	migrator, err := rivermigrate.New(riverpgxv5.New(s.db), nil)
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	if err := s.outbox.Migrate(ctx); err != nil {
		return err
	}
	_, err = s.db.Exec(ctx, `CREATE TABLE IF NOT EXISTS returns (
		id text PRIMARY KEY, transaction_id text NOT NULL, cents bigint NOT NULL,
		state text NOT NULL DEFAULT 'refunding', reason text NOT NULL DEFAULT '', reports int NOT NULL DEFAULT 0)`)
	return err
}

// accept accepts a return. The return and its refund are stored in one
// transaction: there is never one without the other.
func (s *shop) accept(ctx context.Context, id, transactionID string, cents int64) error {
	return pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO returns (id, transaction_id, cents) VALUES ($1, $2, $3)`, id, transactionID, cents)
		if err != nil {
			return err
		}
		_, err = s.outbox.InsertTx(ctx, tx, operations.Refund{Key: id, TransactionID: transactionID, Amount: cents})
		return err
	})
}

// refunded records the outcome of a refund. It runs in the transaction that
// marks the refund as done, so its writes happen exactly once.
func refunded(ctx context.Context, tx pgx.Tx, r operations.RefundResult) error {
	state, reason := "refunded", ""
	if r.Err != nil { // rejected for good: nothing was refunded
		state, reason = "refused", r.Err.Error()
	}
	tag, err := tx.Exec(ctx, `UPDATE returns SET state = $2, reason = $3, reports = reports + 1 WHERE id = $1`, r.Operation.Key, state, reason)
	if err == nil && tag.RowsAffected() != 1 {
		return fmt.Errorf("there is no return %s", r.Operation.Key)
	}
	return err
}

// work runs the outbox's worker until ctx ends.
func (s *shop) work(ctx context.Context) error {
	config := &river.Config{Logger: slog.New(slog.DiscardHandler)}
	if err := s.outbox.Configure(config); err != nil {
		return err
	}
	client, err := river.NewClient(riverpgxv5.New(s.db), config)
	if err != nil {
		return err
	}
	if err := client.Start(ctx); err != nil {
		return err
	}
	<-client.Stopped()
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil
	}
	return ctx.Err()
}
