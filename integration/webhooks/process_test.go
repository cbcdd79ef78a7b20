package webhooks_test

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gateway-go/gateway/internal/storm"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/sqlstore"
	"github.com/gateway-go/gateway/webhook/webhooktest"
)

func TestMain(m *testing.M) { storm.Main(m, runReceiver) }

// processSpec configures a receiver process.
type processSpec struct {
	Driver   string           `json:"driver"`
	DSN      string           `json:"dsn"`
	Dialect  sqlstore.Dialect `json:"dialect"`
	Events   string           `json:"events"`   // the store's table
	Business string           `json:"business"` // the merchant's table
	Deaths   float64          `json:"deaths"`   // how often a handler kills its process between claim and completion
}

func runReceiver(ctx context.Context, spec processSpec) error {
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
		if err == nil && rand.Float64() < spec.Deaths {
			storm.Die()
		}
		return err
	}
	webhook.OnOther(rx, sqlstore.HandleTx(store, handler))
	rx.Start()
	err = storm.Serve(ctx, rx)
	return errors.Join(err, rx.Shutdown(context.WithoutCancel(ctx)))
}
