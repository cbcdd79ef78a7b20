// Service is a small shop as it would run in production: orders by Pix and by
// card with 3-D Secure, refunds, a monthly membership, and payouts to suppliers,
// over an HTTP API and PostgreSQL. README.md explains its decisions.
package main

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/gateway-go/gateway"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver
)

func main() {
	log := slog.New(slog.NewJSONHandler(os.Stdout, nil))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, log); err != nil {
		log.ErrorContext(ctx, "shop: ended", slog.Any("error", err))
		os.Exit(1) //nolint:gocritic // stop only restores the signals
	}
}

func run(ctx context.Context, log *slog.Logger) error {
	cfg, err := configFromEnv(os.Getenv)
	if err != nil {
		return err
	}
	client, err := gateway.NewFromEnv(gateway.WithAccount("shop"), gateway.WithLogger(log))
	if err != nil {
		return err
	}
	db, err := sql.Open("pgx", cfg.database)
	if err != nil {
		return err
	}
	defer db.Close()       //nolint:errcheck // everything was committed
	db.SetMaxIdleConns(12) // the receiver's 8 workers, and a few more
	s, err := newShop(ctx, cfg, db, client, log)
	if err != nil {
		return err
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", cfg.listen)
	if err != nil {
		return err
	}
	log.InfoContext(ctx, "shop: listening", slog.String("address", listener.Addr().String()))
	return s.serve(ctx, listener)
}

// shutdownTime is shorter than an orchestrator's grace period.
const shutdownTime = 20 * time.Second

// serve handles requests and events until ctx ends, and then finishes those in
// progress.
func (s *shop) serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler: s.handler(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second,
		WriteTimeout: requestTime + 10*time.Second, IdleTimeout: 2 * time.Minute,
	}
	s.receiver.Start()
	reconciled := make(chan struct{})
	reconcileCtx, stopReconciling := context.WithCancel(ctx)
	go func() {
		defer close(reconciled)
		s.reconciler.Run(reconcileCtx)
	}()
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()

	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	err = errors.Join(err, server.Shutdown(ctx)) // deliveries too
	stopReconciling()
	<-reconciled
	return errors.Join(err, s.receiver.Shutdown(ctx))
}
