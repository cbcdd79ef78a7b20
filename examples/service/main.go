// Service is a shop's backend as it would run in production, on package merchant: orders
// by Pix and by card with 3-D Secure, refunds, a monthly membership, sales by link and
// payouts to suppliers, over an HTTP API and PostgreSQL. README.md explains its decisions.
package main

import (
	"cmp"
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

	_ "github.com/jackc/pgx/v5/stdlib" // the driver

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/merchant"
)

func main() {
	log := slog.New(slog.NewJSONHandler(os.Stdout, nil))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, log, merchant.Config{}, (*shop).handler); err != nil {
		log.ErrorContext(ctx, "shop: ended", slog.Any("error", err))
		os.Exit(1) //nolint:gocritic // stop only restores the signals
	}
}

// config is the configuration of a deployment. GATEWAY_BASE_URL and GATEWAY_API_KEY are
// read by gateway.NewFromEnv.
type config struct {
	listen, database          string
	webhookSecret, adminToken gateway.Secret
}

// configFromEnv reads the configuration. Its error names every missing variable.
func configFromEnv(getenv func(string) string) (c config, err error) {
	required := func(name string) string {
		if getenv(name) == "" {
			err = errors.Join(err, errors.New(name+" is not set"))
		}
		return getenv(name)
	}
	c.listen, c.database = cmp.Or(getenv("LISTEN"), ":8080"), required("DATABASE_URL")
	c.webhookSecret = gateway.NewSecret(required("GATEWAY_WEBHOOK_SECRET"))
	c.adminToken = gateway.NewSecret(required("ADMIN_TOKEN"))
	return c, err
}

// run runs the service until ctx ends. waits shortens waits, for tests.
func run(ctx context.Context, log *slog.Logger, waits merchant.Config, handler func(*shop) http.Handler) error {
	cfg, err := configFromEnv(os.Getenv)
	if err != nil {
		return err
	}
	client, err := gateway.NewFromEnv(gateway.WithLogger(log))
	if err != nil {
		return err
	}
	db, err := sql.Open("pgx", cfg.database)
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // everything was committed
	db.SetMaxIdleConns(16)
	s, err := open(ctx, db, client, cfg, waits, log)
	if err != nil {
		return err
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", cfg.listen)
	if err != nil {
		return err
	}
	return s.serve(ctx, listener, handler(s))
}

// shutdownTime is shorter than an orchestrator's grace period.
const shutdownTime = 20 * time.Second

// serve handles requests and webhooks until ctx ends. It then finishes the requests in
// progress, and after them the callbacks.
func (s *shop) serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadTimeout: 15 * time.Second, WriteTimeout: requestTime + 10*time.Second, IdleTimeout: 2 * time.Minute}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ended := make(chan error, 1)
	go func() { defer cancel(); ended <- s.Run(running) }()
	context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
		defer cancel()
		_ = server.Shutdown(grace) // what it interrupts is stored
		stop()
	})
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-ended
}
