package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/sqlstore"
	_ "modernc.org/sqlite" // the driver
)

// The environment variables that configure the receiver.
const (
	databaseVariable = "SHOP_DATABASE"
	secretVariable   = "GATEWAY_WEBHOOK_SECRET"
	diesAtVariable   = "WEBHOOKS_EXAMPLE_DIES_AT"
)

// openShop opens the one database of the shop, for the inbox and the ledger.
func openShop(ctx context.Context, path string) (*sql.DB, *sqlstore.Store, error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)")
	if err != nil {
		return nil, nil, err
	}
	db.SetMaxIdleConns(12) // the receiver's 8 workers, and a few more
	store := sqlstore.New(db, sqlstore.SQLite)
	if err := store.Migrate(ctx); err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	// A shop would make transaction_id the primary key. Here only the receiver
	// prevents a second row for a payment.
	_, err = db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS ledger (transaction_id TEXT NOT NULL, order_ref TEXT NOT NULL, cents INTEGER NOT NULL)`)
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return db, store, nil
}

// newReceiver returns the shop's receiver: it stores an event, responds, and
// handles it from the store.
func newReceiver(store *sqlstore.Store, secret gateway.Secret, saboteur *saboteur) (*webhook.Receiver, error) {
	rx, err := webhook.New(webhook.Config{
		Keys:    []webhook.SigningKey{{Key: secret}},
		Account: "books",
		Store:   store,
		Mode:    webhook.Inbox,
		Workers: 2,
		// How long an event of a killed process waits for another process. The
		// default is a minute.
		Lease:        2 * time.Second,
		PollInterval: 100 * time.Millisecond,
		Logger:       slog.New(slog.DiscardHandler), // the receiver's log would clutter the output
	})
	if err != nil {
		return nil, err
	}
	// The writes of this handler and the completion of the event are committed
	// together, or not at all.
	book := sqlstore.HandleTx(store, func(ctx context.Context, tx *sql.Tx, e *webhook.TransactionEvent) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO ledger (transaction_id, order_ref, cents) VALUES (?, ?, ?)`,
			e.ResourceID, e.CorrelationID, e.Data.Charged())
		saboteur.beforeCommit(e.ResourceID) // where the second process is killed
		return err
	})
	webhook.OnTransaction(rx, webhook.TransactionPaid, func(ctx context.Context, e *webhook.TransactionEvent) error {
		if err := printLabel(ctx); err != nil {
			return err
		}
		return book(ctx, e)
	})
	return rx, nil
}

// printLabel is slow work. It runs before the transaction begins: SQLite has
// one writer, and deliveries must be stored meanwhile.
func printLabel(ctx context.Context) error {
	done := time.NewTimer(50 * time.Millisecond)
	defer done.Stop()
	select {
	case <-done.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// receive is the receiver's process. It writes its address to out, and shuts
// down gracefully when in is closed.
func receive(ctx context.Context, in io.Reader, out io.Writer) error {
	db, store, err := openShop(ctx, os.Getenv(databaseVariable))
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // everything was committed
	diesAt, _ := strconv.ParseInt(os.Getenv(diesAtVariable), 10, 64)
	rx, err := newReceiver(store, gateway.NewSecret(os.Getenv(secretVariable)), &saboteur{diesAt: diesAt, out: out}) //nolint:contextcheck // it outlives every context
	if err != nil {
		return err
	}
	rx.Start() // handles first what the last process left; Shutdown ends it

	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /webhooks/gateway", rx)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	if _, err := fmt.Fprintln(out, "listens", listener.Addr()); err != nil {
		return err
	}

	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, in) // until the parent process closes the input or exits
		close(ended)
	}()
	select {
	case err := <-failed:
		return err
	case <-ended:
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return errors.Join(server.Shutdown(ctx), rx.Shutdown(ctx))
}

// saboteur kills its own process at the worst time: the payment is written, but
// not committed.
type saboteur struct {
	diesAt int64 // at the payment with this number; 0 is never
	seen   atomic.Int64
	out    io.Writer
}

func (s *saboteur) beforeCommit(transaction string) {
	if s.diesAt == 0 || s.seen.Add(1) != s.diesAt {
		return
	}
	_, _ = fmt.Fprintln(s.out, "dies", transaction)
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill() // SIGKILL: no handler runs, nothing is flushed
	}
	if err != nil {
		panic(err)
	}
	select {}
}
