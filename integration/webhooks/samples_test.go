package webhooks_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/sqlstore"
	"github.com/gateway-go/gateway/webhook/webhooktest"
)

// openDatabase opens a pool as docs/webhooks.md says.
func openDatabase(dsn string) (*sql.DB, error) {
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxIdleConns(12) // the receiver's Workers + 4; the default is 2
	return db, nil
}

// The code of sqlstore's documentation. A test of the root module compares it
// with this.
func sample(ctx context.Context, db *sql.DB) (*webhook.Receiver, error) {
	store := sqlstore.New(database.Postgres(db)) // db comes from sql.Open("pgx", …)
	if err := store.Migrate(ctx); err != nil {
		return nil, err
	}
	rx, err := webhook.New(webhook.Config{Keys: keys, Account: "shop", Store: store, Mode: webhook.Inbox})
	if err != nil {
		return nil, err
	}
	webhook.OnTransaction(rx, webhook.TransactionPaid,
		sqlstore.HandleTx(store, func(ctx context.Context, tx *sql.Tx, e *webhook.TransactionEvent) error {
			res, err := tx.ExecContext(ctx, `UPDATE orders SET state = CASE state WHEN 'new' THEN 'paid' ELSE state END
				WHERE ref = $1 AND amount = $2 AND currency = $3`,
				e.CorrelationID, e.Data.Charged(), string(e.Data.Currency))
			return changedOne(res, err)
		}))
	return rx, nil
}

// Several accounts, as docs/webhooks.md says.
func severalAccounts(baseURL string, credentials, secrets map[string]string, store *sqlstore.Store[*sql.Tx]) (*http.ServeMux, []*webhook.Receiver, error) {
	mux, receivers := http.NewServeMux(), []*webhook.Receiver(nil)
	for _, name := range []string{"shop-br", "shop-mx"} {
		client, err := gateway.New(baseURL, gateway.BearerToken(credentials[name]), gateway.WithAccount(name))
		if err != nil {
			return nil, nil, err
		}
		rx, err := webhook.New(webhook.Config{
			Keys: []webhook.SigningKey{{Key: gateway.NewSecret(secrets[name])}}, API: client, Store: store, Mode: webhook.Inbox,
		})
		if err != nil {
			return nil, nil, err
		}
		webhook.OnTransaction(rx, webhook.TransactionPaid, sqlstore.HandleTx(store, markPaid))
		rx.Start()
		mux.Handle("POST /webhooks/"+name, rx)
		receivers = append(receivers, rx) // Shutdown each before the program ends
	}
	return mux, receivers, nil
}

// markPaid does nothing: the sample that has one is above.
func markPaid(context.Context, *sql.Tx, *webhook.TransactionEvent) error { return nil }

func TestSeveralAccountsInOneProcess(t *testing.T) {
	t.Parallel()
	d := databases(t)[0]
	store := newStore(t, d.open(t), d)
	secrets := map[string]string{"shop-br": "whsec_of_the_shop_in_brazil", "shop-mx": "whsec_of_the_shop_in_mexico"}
	mux, receivers, err := severalAccounts("https://gateway.invalid", map[string]string{"shop-br": "sk_1", "shop-mx": "sk_2"}, secrets, store)
	require.NoError(t, err)
	t.Cleanup(func() {
		for _, rx := range receivers {
			assert.NoError(t, rx.Shutdown(context.WithoutCancel(t.Context())))
		}
	})
	for name, secret := range secrets {
		rec := httptest.NewRecorder()
		r := webhooktest.Signed(gateway.NewSecret(secret), webhooktest.Event{Kind: webhook.TransactionPaid, ID: "evt_1"}.Body())
		r.URL.Path = "/webhooks/" + name
		mux.ServeHTTP(rec, r)
		assert.Equal(t, 200, rec.Code, name)
	}
	for name := range secrets {
		s := view(store, name)
		require.Eventually(t, func() bool {
			e, err := s.Put(t.Context(), webhook.Record{Key: "id evt_1"})
			require.NoError(t, err)
			return e.State == webhook.StateDone
		}, time.Minute, 20*time.Millisecond, name)
	}
}

// changedOne turns an UPDATE that found no row into an error.
func changedOne(res sql.Result, err error) error {
	if err != nil {
		return err
	}
	n, err := res.RowsAffected()
	if err == nil && n != 1 {
		err = fmt.Errorf("%d rows were changed", n)
	}
	return err
}

// A webhook that arrives before its order is committed is not lost, and an
// order paid with a different amount is not shipped.
func TestAPaymentBeforeItsOrderIsRetried(t *testing.T) {
	t.Parallel()
	db := privateDatabase(t)
	_, err := db.ExecContext(t.Context(), `CREATE TABLE orders (ref TEXT PRIMARY KEY, amount BIGINT, currency TEXT, state TEXT)`)
	require.NoError(t, err)
	rx, err := sample(t.Context(), db)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, rx.Shutdown(context.WithoutCancel(t.Context()))) })
	for _, id := range []string{"1001", "1002"} {
		body := webhooktest.Event{Kind: webhook.TransactionPaid, ResourceID: id}.Body() // order-<id>, BRL 19.90
		response := rx.Receive(t.Context(), webhook.Delivery{Header: webhooktest.Sign(webhooktest.Secret(), time.Now(), body), Body: body})
		require.Equal(t, 200, response.Status)
	}
	state := func(ref string) (s string) {
		require.NoError(t, db.QueryRowContext(t.Context(), `SELECT state FROM orders WHERE ref = $1`, ref).Scan(&s))
		return s
	}
	failed := func() bool { return rx.Stats()[webhook.OutcomeFailed] >= 2 }
	require.Eventually(t, failed, 2*time.Minute, time.Millisecond)

	_, err = db.ExecContext(t.Context(), `INSERT INTO orders VALUES ('order-1001', 1990, 'BRL', 'new'), ('order-1002', 2990, 'BRL', 'new')`)
	require.NoError(t, err) // the late commit
	require.Eventually(t, func() bool { return state("order-1001") == "paid" }, 2*time.Minute, time.Millisecond)
	assert.Equal(t, "new", state("order-1002"))
}

// privateDatabase returns a PostgreSQL schema for one test, so that tables can
// have any name.
func privateDatabase(t *testing.T) *sql.DB {
	t.Helper()
	list := databases(t)
	d := list[len(list)-1]
	if d.dialect != database.DialectPostgres {
		t.Skip("the sample is for PostgreSQL; integration/run starts one")
	}
	schema := table("sample")
	_, err := d.open(t).ExecContext(t.Context(), "CREATE SCHEMA "+schema)
	require.NoError(t, err)
	db, err := openDatabase(d.dsn(t) + "&search_path=" + schema)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}
