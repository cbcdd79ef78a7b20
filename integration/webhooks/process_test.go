package webhooks_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/sqlstore"
	"github.com/gateway-go/gateway/webhook/webhooktest"
)

// A test starts its own program again as a receiver: a process of its own, that
// can be killed.

const processVariable = "GATEWAY_TEST_RECEIVER"

func TestMain(m *testing.M) {
	if spec := os.Getenv(processVariable); spec != "" {
		if err := runReceiver(spec); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// processSpec is what a receiver process is told.
type processSpec struct {
	Driver   string           `json:"driver"`
	DSN      string           `json:"dsn"`
	Dialect  sqlstore.Dialect `json:"dialect"`
	Events   string           `json:"events"`   // the store's table
	Business string           `json:"business"` // the merchant's table
	Suicide  float64          `json:"suicide"`  // how often a handler kills its process between claim and completion
}

func runReceiver(text string) error {
	var spec processSpec
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		return err
	}
	db, err := sql.Open(spec.Driver, spec.DSN)
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(8)
	store := sqlstore.New(db, spec.Dialect, sqlstore.WithTable(spec.Events))
	rx, err := webhook.New(webhook.Config{
		Keys: []webhook.SigningKey{{Key: webhooktest.Secret()}}, Store: store, Mode: webhook.Inbox, Logger: quiet,
		Workers: 4, Lease: 3 * time.Second, PollInterval: 100 * time.Millisecond, HandleStale: true,
	})
	if err != nil {
		return err
	}
	handler := func(ctx context.Context, tx *sql.Tx, e *webhook.Event) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO "+spec.Business+" (event_id) VALUES ($1)", e.ID)
		if err == nil && rand.Float64() < spec.Suicide {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return err
	}
	webhook.OnOther(rx, sqlstore.HandleTx(store, handler))
	rx.Start()
	return serve(rx)
}

func serve(rx *webhook.Receiver) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: rx, ReadHeaderTimeout: 10 * time.Second}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(listener) }()
	fmt.Println(listener.Addr())
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := srv.Shutdown(end); err != nil {
		return err
	}
	return rx.Shutdown(end)
}
