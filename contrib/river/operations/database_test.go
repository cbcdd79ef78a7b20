package operations_test

import (
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/contrib/river/operations"
)

// withSettings makes the outbox's connections use settings, as ALTER DATABASE
// and ALTER ROLE do.
func (w *world) withSettings(settings map[string]string) {
	w.Helper()
	config := w.pool.Config().Copy()
	maps.Copy(config.ConnConfig.RuntimeParams, settings)
	pool, err := pgxpool.NewWithConfig(w.Context(), config)
	require.NoError(w, err)
	w.Cleanup(pool.Close)
	w.pool = pool
	w.outbox = w.newOutbox()
}

// What a request or a handler depends on is flushed to disk whatever the
// database's default; a stronger default stays.
func TestCommitsAreDurableWhateverTheDefault(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]string{"off": "on", "local": "on", "remote_write": "on", "on": "on", "remote_apply": "remote_apply"} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			w := open(t, nil)
			w.withSettings(map[string]string{"synchronous_commit": setting})
			_, err := w.pool.Exec(t.Context(), `CREATE TABLE seen (state text, setting text);
				CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
					INSERT INTO seen VALUES (NEW.state, current_setting('synchronous_commit')); RETURN NEW; END $$;
				CREATE TRIGGER see BEFORE UPDATE ON gateway_operations FOR EACH ROW WHEN (NEW.state IN ('sent', 'done')) EXECUTE FUNCTION see()`)
			require.NoError(t, err)
			charge := w.paid(1000)
			w.work(w.outbox)
			w.insert(operations.Refund{Key: "refund", TransactionID: charge.ID, Amount: 300})
			w.reaches("refund", operations.Done)
			rows, err := w.pool.Query(t.Context(), `SELECT DISTINCT state, setting FROM seen ORDER BY state`)
			require.NoError(t, err)
			got, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct{ State, Setting string }])
			require.NoError(t, err)
			assert.Equal(t, []struct{ State, Setting string }{{"done", want}, {"sent", want}}, got)
		})
	}
}

func TestTheOutboxWorksAtEveryIsolationLevel(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"read committed", "repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			w := open(t, nil)
			w.withSettings(map[string]string{"default_transaction_isolation": level})
			accounts := []*world{w, w.beside("b")}
			require.NoError(t, w.gw.Faults.Add(mockserver.LoseResponse().On("transactions.refund").Times(1)))
			w.work(w.outbox, accounts[1].outbox)
			charges := make(map[*world]*gateway.Transaction)
			for _, a := range accounts {
				charges[a] = a.paid(1000)
				a.insert(
					operations.Refund{Key: "first", TransactionID: charges[a].ID, Amount: 100},
					operations.Refund{Key: "second", TransactionID: charges[a].ID, Amount: 200},
					operations.CreateTransaction(order("order-1", 500)),
				)
			}
			for _, a := range accounts {
				for _, key := range []string{"first", "second", "order-1"} {
					a.reaches(key, operations.Done)
				}
				assert.Equal(t, int64(300), a.refunded(charges[a].ID))
			}
		})
	}
}

func TestManyProcessesMigrateAtOnce(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	_, err := w.pool.Exec(t.Context(), `DROP TABLE gateway_operations, gateway_operations_accounts`)
	require.NoError(t, err)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() { assert.NoError(t, w.outbox.Migrate(t.Context())) })
	}
	wg.Wait()
}

// An older release must not send an operation without the members that it does
// not know.
func TestAnOperationOfANewerReleaseIsNotSent(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	charge := w.paid(1000)
	e := w.insert(operations.Refund{Key: "refund", TransactionID: charge.ID, Amount: 300})[0]
	_, err := w.pool.Exec(t.Context(), `UPDATE gateway_operations SET params = params || '{"destination": "wallet"}' WHERE id = $1`, e.ID)
	require.NoError(t, err)
	w.work(w.outbox)
	require.Eventually(t, func() bool { return w.saw(operations.EventUnhandled) }, time.Minute, 10*time.Millisecond)
	assert.Zero(t, w.gw.Requests.Count("transactions.refund"))
	var destination string
	require.NoError(t, w.pool.QueryRow(t.Context(), `SELECT params->>'destination' FROM gateway_operations`).Scan(&destination))
	assert.Equal(t, "wallet", destination)
}

// A backup from before the refund was sent is restored. The same key is sent
// again, so a gateway that honors it applies the refund once.
func TestARestoredOperationIsSentWithTheSameKey(t *testing.T) {
	t.Parallel()
	w := open(t, func(c *operations.Config) { c.KeyLifetime = time.Hour }, mockserver.WithDialect(mockserver.Live))
	charge := w.paid(1000)
	w.work(w.outbox)
	w.insert(operations.Refund{Key: "refund", TransactionID: charge.ID, Amount: 300})
	w.reaches("refund", operations.Done)
	require.NoError(t, pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `DELETE FROM results`)
		if err == nil {
			_, err = tx.Exec(t.Context(), `UPDATE gateway_operations SET state = 'waiting', progress = '{}', refunded = NULL, job_id = NULL, due_at = 0`)
		}
		return err
	}))
	w.reaches("refund", operations.Done)
	value, _ := w.result("refund")
	assert.Equal(t, "300", value)
	assert.Equal(t, int64(300), w.refunded(charge.ID))
	assert.Equal(t, 2, w.gw.Requests.Count("transactions.refund"))
}

// A person can't report another merchant's payout as ours by mistake.
func TestAResolutionIsComparedWithTheOperation(t *testing.T) {
	t.Parallel()
	w := open(t, func(c *operations.Config) { c.MaxSends = 2 })
	theirs, err := w.gw.Client().Transfers.Create(t.Context(), gateway.TransferParams{
		PixKeyType: gateway.PixKeyEmail, PixKeyValue: "mallory@example.com", Amount: 900, ExternalRef: "payout-2",
	})
	require.NoError(t, err)
	require.NoError(t, w.gw.Faults.Add(mockserver.Status(503).On("transfers.create")))
	w.work(w.outbox)
	w.insert(operations.CreateTransfer{PixKeyType: gateway.PixKeyEmail, PixKeyValue: "b@example.com", Amount: 900, ExternalRef: "payout-1"})
	e := w.reaches("payout-1", operations.Ambiguous)
	assert.Contains(t, e.Ambiguity, "it was sent 2 times")

	resolution := operations.Resolution{Decision: operations.Applied, ResourceID: theirs.ID, By: "Rui"}
	require.ErrorIs(t, w.outbox.Resolve(t.Context(), e.ID, resolution), operations.ErrMismatch)
	resolution.Override = "the supplier changed its key"
	require.NoError(t, w.outbox.Resolve(t.Context(), e.ID, resolution))
	e = w.reaches("payout-1", operations.Done)
	var texts []string
	for _, note := range e.History {
		texts = append(texts, note.Text)
	}
	assert.Contains(t, strings.Join(texts, "\n"), "the supplier changed its key")
}
