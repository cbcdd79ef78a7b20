package bench_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/operations"
)

// BenchmarkOutboxDrain measures how fast the refunds in a full outbox are sent, each of
// its own transaction, to a gateway in memory. The process and its plans are as old as the
// statistics, which take the queue for empty: in "new" the table was empty, in "old" it had
// 50,000 operations, all done.
func BenchmarkOutboxDrain(b *testing.B) {
	for name, driver := range map[string]string{"PostgreSQL": "pgx", "SQLite": "sqlite"} {
		for table, done := range map[string]int{"new": 0, "old": 50_000} {
			b.Run(name+"/"+table, func(b *testing.B) { drainOutbox(b, driver, done) })
		}
	}
}

func drainOutbox(b *testing.B, driver string, done int) {
	b.Helper()
	dsn, on := os.Getenv("DATABASE_URL"), database.Postgres
	if driver == "sqlite" {
		dsn, on = strings.Replace(sqliteFile(b), "(NORMAL)", "(FULL)", 1)+"&_txlock=immediate", database.SQLite
	}
	if dsn == "" {
		b.Skip("DATABASE_URL is not set: ../integration/with-postgres starts a PostgreSQL and sets it")
	}
	db, err := sql.Open(driver, dsn)
	require.NoError(b, err)
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(32)
	db.SetMaxIdleConns(32)

	gw := mockserver.Run(b)
	client := gw.Client(gateway.WithAccount("shop"))
	outbox, err := operations.New(on(db), operations.Config{
		Client: client, Location: database.Location{InSchema: newSchema(b, db, driver)}, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(b, err)
	require.NoError(b, outbox.Migrate(b.Context()))
	table, err := outbox.Table(b.Context())
	require.NoError(b, err)
	exec := func(text string) {
		_, err := db.ExecContext(b.Context(), text)
		require.NoError(b, err)
	}
	if driver == "pgx" {
		exec("ALTER TABLE " + table + " SET (autovacuum_enabled = off)")
	}
	exec(fmt.Sprintf(`INSERT INTO %s (account, kind, key, resource, params, state, progress, claims, due_at, created_at, updated_at)
		WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		SELECT 'shop', 'transactions.refund', 'old' || i, 'transactions/old' || i, 'null', 'done', '{}', 3, 0, 0, 0 FROM n WHERE i > 0`, table, done))
	exec("ANALYZE " + table)

	var all *countdown
	operations.OnResult(outbox, func(_ context.Context, _ *sql.Tx, r operations.RefundResult) error {
		if r.Err != nil {
			b.Error(r.Err)
		}
		all.one()
		return nil
	})
	insert := func(prefix string, n int) {
		all = newCountdown(n)
		tx, err := db.BeginTx(b.Context(), nil)
		require.NoError(b, err)
		for i := range n {
			charge, err := client.Transactions.Create(b.Context(), gateway.TransactionParams{
				ExternalRef: fmt.Sprint(prefix, i), Amount: 1000, Method: gateway.Pix,
				Buyer:    gateway.BuyerParams{Name: "Ana", Email: "ana@example.com", Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"}},
				Products: []gateway.Product{{Name: "Mug", Price: 1000}},
			})
			require.NoError(b, err)
			require.NoError(b, gw.Transactions.Pay(charge.ID))
			_, err = outbox.InsertTx(b.Context(), tx, operations.RefundUpTo(fmt.Sprint(prefix, i), charge.ID, 300))
			require.NoError(b, err)
		}
		b.ResetTimer()
		require.NoError(b, tx.Commit())
	}
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- outbox.Run(ctx) }()
	for _, prefix := range []string{"early", "late"} {
		insert(prefix, map[string]int{"early": 100, "late": b.N}[prefix])
		select {
		case <-all.done:
		case <-time.After(10 * time.Minute):
			b.Fatal("the outbox is not empty after 10 minutes")
		}
	}
	b.StopTimer()
	cancel()
	require.NoError(b, <-ended)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "operations/s")
}
