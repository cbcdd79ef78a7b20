// Merchant is a small shop on package merchant: orders by Pix and by card with 3-D
// Secure, shipped once, and refunds, in a SQLite database. shop.go is the shop.
//
//	GATEWAY_BASE_URL=… GATEWAY_API_KEY=… GATEWAY_WEBHOOK_SECRET=… go run . -data shop.db
package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"flag"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/merchant"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	data := flag.String("data", filepath.Join(os.Getenv("EXAM_DATA_DIR"), "shop.db"), "the SQLite `file`")
	flag.Parse()
	if err := run(ctx, *data); err != nil {
		slog.ErrorContext(ctx, "the shop ended", slog.Any("error", err))
		os.Exit(1) //nolint:gocritic // stop only restores the signals
	}
}

func run(ctx context.Context, file string) error {
	client, err := gateway.NewFromEnv()
	if err != nil {
		return err
	}
	db, err := sql.Open("sqlite", "file:"+file+"?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // everything was committed
	exam := os.Getenv("EXAM") == "1"
	var cfg merchant.Config
	if exam { // the gateway's clock jumps, this process's doesn't
		cfg = merchant.Config{
			SendTimeout: time.Second, SettleAfter: 2 * time.Second, CallbackTimeout: time.Second, Lease: time.Second, PollInterval: 100 * time.Millisecond,
		}
	}
	shop, err := Open(ctx, db, client, gateway.NewSecret(os.Getenv("GATEWAY_WEBHOOK_SECRET")), cfg)
	if err != nil {
		return err
	}
	handler := shop.Handler()
	if exam {
		handler = shop.exam(handler)
	}
	return serve(ctx, shop, handler)
}

// serve handles requests until ctx ends, and then finishes those in progress.
func serve(ctx context.Context, shop *Shop, handler http.Handler) error {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", cmp.Or(os.Getenv("PORT"), "8080")))
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { defer cancel(); ended <- shop.Run(ctx) }()
	go func() {
		<-ctx.Done()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
		defer cancel()
		_ = server.Shutdown(grace) // what it interrupts is stored
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-ended
}
