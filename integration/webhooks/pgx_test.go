package webhooks_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	pgxdriver "github.com/gateway-go/gateway/contrib/pgx"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/sqlstore"
	"github.com/gateway-go/gateway/webhook/webhooktest"
)

// pgxStore returns the store of an account on a pool, with a table of its own.
func pgxStore(t *testing.T, pool *pgxpool.Pool) *sqlstore.Store[pgx.Tx] {
	t.Helper()
	schema := table("events")
	_, err := pool.Exec(t.Context(), "CREATE SCHEMA "+schema)
	require.NoError(t, err)
	s := sqlstore.New(pgxdriver.New(pool), in(schema), sqlstore.WithLogger(quiet))
	require.NoError(t, s.Migrate(t.Context()))
	one, _ := s.For(gateway.Account{Name: "shop"}).(*sqlstore.Store[pgx.Tx])
	return one
}

// newPool opens a pool with parameters in its connection string.
func newPool(t *testing.T, params string) *pgxpool.Pool {
	t.Helper()
	if os.Getenv("DATABASE_URL") == "" {
		t.Skip("DATABASE_URL is not set: integration/run starts PostgreSQL")
	}
	pool, err := pgxpool.New(t.Context(), os.Getenv("DATABASE_URL")+"&pool_max_conns=12"+params)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

func TestTheStoreOnPGXPassesTheStoreTests(t *testing.T) {
	t.Parallel()
	for name, params := range map[string]string{
		"cache_statement":              "",
		"exec, serializable, no flush": "&default_query_exec_mode=exec&default_transaction_isolation=serializable&synchronous_commit=off",
		"simple_protocol":              "&default_query_exec_mode=simple_protocol",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := newPool(t, params)
			webhooktest.RunStore(t, func() webhook.Store { return pgxStore(t, pool) })
		})
	}
}

// pgxEffects is a merchant's table. It has no unique constraint.
func pgxEffects(t *testing.T, pool *pgxpool.Pool) (name string, rows func() int) {
	t.Helper()
	name = table("effects")
	_, err := pool.Exec(t.Context(), "CREATE TABLE "+name+" (event_id TEXT NOT NULL)")
	require.NoError(t, err)
	return name, func() (n int) {
		require.NoError(t, pool.QueryRow(t.Context(), "SELECT COUNT(*) FROM "+name).Scan(&n))
		return n
	}
}

// The effect is written with CopyFrom, which only a pgx.Tx has. The handler fails in each
// of the ways in which its transaction can end without a commit, before it succeeds.
func TestHandleTxOfPGXWritesBothOrNeither(t *testing.T) {
	t.Parallel()
	pool := newPool(t, "")
	s := pgxStore(t, pool)
	effects, rows := pgxEffects(t, pool)
	failures := []func(ctx context.Context, tx pgx.Tx) error{
		func(context.Context, pgx.Tx) error { return errors.New("after the effect") },
		func(context.Context, pgx.Tx) error { panic("after the effect") },
		func(ctx context.Context, tx pgx.Tx) error { // the session ends between the effect and the commit
			_, _ = tx.Exec(ctx, "SELECT pg_terminate_backend(pg_backend_pid())")
			return nil
		},
		func(ctx context.Context, tx pgx.Tx) error { // the same, from outside
			_, err := pool.Exec(ctx, "SELECT pg_terminate_backend($1, 5000)", tx.Conn().PgConn().PID())
			return err
		},
		func(ctx context.Context, tx pgx.Tx) error { // a savepoint is the handler's own affair
			inner, err := tx.Begin(ctx)
			if err != nil {
				return err
			}
			if _, err := inner.Exec(ctx, "INSERT INTO "+effects+" VALUES ('rolled back')"); err != nil {
				return err
			}
			return inner.Rollback(ctx)
		},
	}
	rx, err := webhook.New(webhook.Config{Keys: keys, Account: "shop", Store: s, Logger: quiet, Backoff: func(int) time.Duration { return 0 }})
	require.NoError(t, err)
	webhook.OnTransaction(rx, webhook.TransactionPaid, sqlstore.HandleTx(s, func(ctx context.Context, tx pgx.Tx, e *webhook.TransactionEvent) error {
		if _, err := tx.CopyFrom(ctx, pgx.Identifier{effects}, []string{"event_id"}, pgx.CopyFromRows([][]any{{e.ID}})); err != nil {
			return err
		}
		fail := failures[0]
		failures = failures[1:]
		return fail(ctx, tx)
	}))
	body := record("e1", "tx_1").Body
	for i, want := range []int{500, 500, 500, 500, 200, 200} {
		got := rx.Receive(t.Context(), webhook.Delivery{Header: webhooktest.Sign(webhooktest.Secret(), time.Now(), body), Body: body})
		assert.Equal(t, want, got.Status, "delivery %d", i)
		assert.Equal(t, want == 200, rows() == 1, "delivery %d: %d effects", i, rows())
	}
	assert.Equal(t, map[webhook.Outcome]uint64{webhook.OutcomeFailed: 4, webhook.OutcomeHandled: 1, webhook.OutcomeDuplicate: 1}, rx.Stats())
}

// The store's other methods for a merchant's transaction, committed and rolled back.
func TestThePutsOfAPGXTransaction(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	pool := newPool(t, "")
	s := pgxStore(t, pool)
	fact := record("e2", "tx_2")
	fact.Fact = "paid tx_2"
	errUndone := errors.New("undone")
	inTx := func(commit bool, work func(tx pgx.Tx)) {
		err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			work(tx)
			if !commit {
				return errUndone
			}
			return nil
		})
		assert.Equal(t, !commit, errors.Is(err, errUndone), "%v", err)
	}
	for _, commit := range []bool{false, true} {
		inTx(commit, func(tx pgx.Tx) {
			for _, r := range []webhook.Record{record("e1", "tx_1"), fact} {
				e, err := s.PutTx(ctx, tx, r)
				require.NoError(t, err)
				assert.Equal(t, webhook.Entry{Key: r.Key, State: webhook.StateWaiting, Added: true}, e)
			}
			e, err := s.PutDeadTx(ctx, tx, record("e3", "tx_3"), "a conflict")
			require.NoError(t, err)
			assert.True(t, e.Added)
		})
	}
	n, err := s.Counts(ctx)
	require.NoError(t, err)
	assert.Equal(t, "2 1", fmt.Sprint(n.Waiting, " ", n.Dead))
	claim, _, err := s.Claim(ctx, "id e1", time.Minute)
	require.NoError(t, err)
	for _, commit := range []bool{false, true} {
		inTx(commit, func(tx pgx.Tx) {
			require.NoError(t, s.CompleteTx(ctx, tx, claim))
			requeued, err := s.RequeueTx(ctx, tx, "id e3")
			require.NoError(t, err)
			assert.True(t, requeued)
			requeued, err = s.RequeueTx(ctx, tx, "id e2")
			require.NoError(t, err)
			assert.False(t, requeued, "it is no dead letter")
		})
	}
	inTx(false, func(tx pgx.Tx) {
		require.ErrorIs(t, s.CompleteTx(ctx, tx, claim), webhook.ErrClaimLost)
	})
	n, err = s.Counts(ctx)
	require.NoError(t, err)
	assert.Equal(t, "2 0 0", fmt.Sprint(n.Waiting, " ", n.Claimed, " ", n.Dead))
}
