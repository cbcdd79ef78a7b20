package webhooks_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	pgxdriver "github.com/gateway-go/gateway/contrib/pgx"
	"github.com/gateway-go/gateway/database"
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
	Dialect  database.Dialect `json:"dialect"`
	PGX      bool             `json:"pgx"`      // the transactions are those of a pgxpool
	Schema   string           `json:"schema"`   // of the store's tables; "" on SQLite
	Business string           `json:"business"` // the merchant's table
	Deaths   float64          `json:"deaths"`   // how often a handler kills its process between claim and completion
}

func runReceiver(ctx context.Context, spec processSpec) error {
	insert := "INSERT INTO " + spec.Business + " (event_id) VALUES ($1)"
	if spec.PGX {
		pool, err := pgxpool.New(ctx, spec.DSN+"&pool_max_conns=8")
		if err != nil {
			return err
		}
		defer pool.Close()
		store := sqlstore.New(pgxdriver.New(pool), in(spec.Schema))
		return serve(ctx, spec, store, func(ctx context.Context, tx pgx.Tx, id string) error {
			_, err := tx.Exec(ctx, insert, id)
			return err
		})
	}
	db, err := sql.Open(spec.Driver, spec.DSN)
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(8)
	store := sqlstore.New(target{dialect: spec.Dialect}.on(db), in(spec.Schema))
	return serve(ctx, spec, store, func(ctx context.Context, tx *sql.Tx, id string) error {
		_, err := tx.ExecContext(ctx, insert, id)
		return err
	})
}

// serve runs a process's receivers. effect writes an event to the merchant's table.
func serve[TX any](
	ctx context.Context, spec processSpec, store *sqlstore.Store[TX],
	effect func(ctx context.Context, tx TX, id string) error,
) (err error) {
	var shops tenants
	for i, account := range stormAccounts {
		rx, err := webhook.New(webhook.Config{
			Keys: []webhook.SigningKey{{Key: webhooktest.Secret()}}, Account: account, Store: store, Mode: webhook.Inbox, Logger: quiet,
			Workers: 2, Lease: 3 * time.Second, PollInterval: 200 * time.Millisecond, HandleStale: true,
		})
		if err != nil {
			return err
		}
		webhook.OnOther(rx, sqlstore.HandleTx(store, func(ctx context.Context, tx TX, e *webhook.Event) error {
			id := e.ID
			if accountOf(e.ResourceID) != i {
				id = "of another account: " + id
			}
			err := effect(ctx, tx, id)
			if err == nil && rand.Float64() < spec.Deaths {
				storm.Die()
			}
			return err
		}))
		rx.Start()
		shops[i] = rx
	}
	err = storm.Serve(ctx, shops)
	for _, rx := range shops {
		err = errors.Join(err, rx.Shutdown(context.WithoutCancel(ctx)))
	}
	return err
}

// stormAccounts are the accounts of a process, each with a receiver of its own.
var stormAccounts = [2]string{"shop-br", "shop-mx"}

// accountOf returns the index of the account that a resource belongs to.
func accountOf(resource string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(resource)) // never fails
	return int(h.Sum32() % uint32(len(stormAccounts)))
}

// tenants passes each delivery to the receiver of its account.
type tenants [len(stormAccounts)]*webhook.Receiver

func (s tenants) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	i := 0
	if e, err := webhook.Parse(body); err == nil { // anything else is a forgery
		i = accountOf(e.ResourceID)
	}
	s[i].ServeHTTP(w, r)
}
