package webhooks_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	_ "github.com/lib/pq"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/sqlstore"
	"github.com/gateway-go/gateway/webhook/webhooktest"
)

// setting is one way in which merchants configure their database or its pool.
type setting struct {
	target

	full bool          // also run the store's tests, which take seconds
	tune func(*sql.DB) // nil for the pool that sql.Open returns
}

func (s setting) open(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open(s.driver, s.dsn(t))
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	if s.tune != nil {
		s.tune(db)
	}
	return db
}

// settings are the settings that the inbox must survive. For a role without
// CREATE see TestMigrateNeedsNoRightsWhenThereIsNothingToDo.
func settings(t *testing.T) []setting {
	t.Helper()
	list := []setting{sqliteSetting("FULL"), sqliteSetting("NORMAL"), sqliteSetting("EXTRA")}
	if os.Getenv("DATABASE_URL") == "" {
		t.Log("DATABASE_URL is not set: PostgreSQL is skipped; integration/run starts one")
		return list
	}
	for _, isolation := range []string{"read committed", "repeatable read", "serializable"} {
		for _, commit := range []string{"on", "off"} {
			one := postgresSetting("pgx", "DATABASE_URL", "default_transaction_isolation", isolation, "synchronous_commit", commit)
			one.full = isolation != "read committed" && commit == "off"
			list = append(list, one)
		}
	}
	for _, mode := range []string{"cache_describe", "describe_exec", "exec", "simple_protocol"} {
		list = append(list, postgresSetting("pgx", "DATABASE_URL", "default_query_exec_mode", mode))
	}
	timeouts := []string{"statement_timeout", "5s", "lock_timeout", "100ms", "idle_in_transaction_session_timeout", "5s"}
	list = append(list,
		postgresSetting("pgx", "DATABASE_URL", timeouts...),
		postgresSetting("pgx", "DATABASE_URL", append(timeouts, "default_transaction_isolation", "serializable")...),
		postgresSetting("postgres", "DATABASE_URL").and(func(s *setting) { s.full = true }),
		postgresSetting("postgres", "DATABASE_URL", "default_transaction_isolation", "repeatable read", "binary_parameters", "yes"),
		postgresSetting("pgx", "DATABASE_URL").and(func(s *setting) {
			s.name += ", large pool"
			s.tune = func(db *sql.DB) { db.SetMaxOpenConns(40); db.SetMaxIdleConns(40) }
		}),
		postgresSetting("pgx", "DATABASE_URL").and(func(s *setting) {
			s.name += ", one connection"
			s.tune = func(db *sql.DB) { db.SetMaxOpenConns(1) }
		}),
	)
	if os.Getenv("PGBOUNCER_URL") == "" {
		t.Log("PGBOUNCER_URL is not set: PgBouncer is skipped; integration/run starts one")
		return list
	}
	return append(list,
		postgresSetting("pgx", "PGBOUNCER_URL", "default_query_exec_mode", "exec").and(func(s *setting) { s.full = true }),
		postgresSetting("pgx", "PGBOUNCER_URL", "default_query_exec_mode", "cache_describe"),
		postgresSetting("pgx", "PGBOUNCER_URL", "default_query_exec_mode", "simple_protocol"),
		postgresSetting("postgres", "PGBOUNCER_URL", "binary_parameters", "yes"),
	)
}

func (s setting) and(change func(*setting)) setting {
	change(&s)
	return s
}

func sqliteSetting(synchronous string) setting {
	return setting{target: target{"SQLite, synchronous " + synchronous, database.DialectSQLite, "sqlite", func(t *testing.T) string {
		t.Helper()
		return "file:" + filepath.Join(t.TempDir(), "events.db") +
			"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(" + synchronous + ")"
	}}}
}

// postgresSetting has pairs of parameters that are added to a connection
// string.
func postgresSetting(driver, env string, pairs ...string) setting {
	name, params := map[string]string{"pgx": "pgx", "postgres": "lib/pq"}[driver], ""
	if env == "PGBOUNCER_URL" {
		name += ", PgBouncer"
	}
	for i := 0; i < len(pairs); i += 2 {
		name += ", " + pairs[i] + " " + pairs[i+1]
		params += "&" + pairs[i] + "=" + url.PathEscape(pairs[i+1])
	}
	if driver == "postgres" {
		params += "&sslmode=disable"
	}
	return setting{target: target{name, database.DialectPostgres, driver, func(*testing.T) string { return os.Getenv(env) + params }}}
}

// store returns a store with a table of its own.
func (s setting) store(t *testing.T, db *sql.DB, opts ...sqlstore.Option) *sqlstore.Store[*sql.Tx] {
	t.Helper()
	return newStore(t, db, s.target, append(opts, sqlstore.WithLogger(quiet))...)
}

// eachSetting runs a test with a few settings at a time: it mostly waits for
// leases and commits.
func eachSetting(t *testing.T, test func(t *testing.T, s setting)) {
	t.Helper()
	var all sync.WaitGroup
	defer all.Wait()
	places := make(chan struct{}, 6)
	for _, s := range settings(t) {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			t.Run(s.name, func(t *testing.T) { test(t, s) })
		})
	}
}

// The store passes its tests with the settings that differ most.
func TestTheStoreSurvivesTheSettingsOfItsDatabase(t *testing.T) {
	t.Parallel()
	eachSetting(t, func(t *testing.T, s setting) {
		t.Helper()
		if !s.full {
			return
		}
		db := s.open(t)
		webhooktest.RunStore(t, func() webhook.Store { return s.store(t, db) })
	})
}

// Two processes receive each payment signed and unsigned at once, and handle it
// once, with every setting.
func TestPaymentsAreHandledOnceWithEverySettingOfTheDatabase(t *testing.T) {
	t.Parallel()
	eachSetting(t, func(t *testing.T, s setting) {
		t.Helper()
		const payments, senders = 40, 6
		ctx := t.Context()
		db := s.open(t)
		schema := s.schema(t, db)
		effects, count := business(t, db)
		var receivers []*webhook.Receiver
		var stores []*sqlstore.Store[*sql.Tx]
		for range 2 {
			store := s.store(t, db, in(schema))
			rx, err := webhook.New(webhook.Config{
				Keys: keys, Account: "shop", Store: store, Mode: webhook.Inbox, Logger: quiet, Workers: 4, PollInterval: 20 * time.Millisecond,
				Backoff: func(int) time.Duration { return 10 * time.Millisecond },
			})
			require.NoError(t, err)
			webhook.OnOther(rx, sqlstore.HandleTx(store, func(ctx context.Context, tx *sql.Tx, e *webhook.Event) error {
				_, err := tx.ExecContext(ctx, "INSERT INTO "+effects+" (event_id) VALUES ($1)", e.ResourceID)
				return err
			}))
			rx.Start()
			receivers, stores = append(receivers, rx), append(stores, store)
		}
		deliveries := make(chan func(), 3*payments)
		for i := range payments {
			tx := fmt.Sprintf("tx_%d", i)
			signed, confirmed := record("s"+tx, tx), record("c"+tx, tx)
			signed.Fact, confirmed.Fact = "paid "+tx, "paid "+tx
			confirmed.Key, confirmed.Signed = "fact paid "+tx, false
			for n, rec := range []webhook.Record{signed, confirmed, signed} {
				deliveries <- func() {
					_, err := stores[n%2].Put(ctx, rec)
					assert.NoError(t, err)
				}
			}
		}
		close(deliveries)
		var all sync.WaitGroup
		for range senders {
			all.Go(func() {
				for deliver := range deliveries {
					deliver()
				}
			})
		}
		all.Wait()
		settled := func() bool {
			n, err := stores[0].Counts(ctx)
			return assert.NoError(t, err) && n.Waiting == 0 && n.Claimed == 0
		}
		assert.Eventually(t, settled, 2*time.Minute, 10*time.Millisecond)
		for _, rx := range receivers {
			require.NoError(t, rx.Shutdown(ctx))
			t.Log(rx.Stats())
		}
		assert.Equal(t, payments, count(), "payments handled")
		left, err := stores[0].Counts(ctx)
		require.NoError(t, err)
		assert.Zero(t, left.Dead)
	})
}

// With synchronous_commit off, PostgreSQL loses the last commits in a crash.
// Every change of an event's state is flushed regardless, also in the
// transaction of a merchant; stricter settings stay. A deferred trigger runs
// during the commit and sees the setting that applies to it.
func TestEveryStateOfAnEventIsFlushed(t *testing.T) {
	t.Parallel()
	if os.Getenv("DATABASE_URL") == "" {
		t.Skip("DATABASE_URL is not set: integration/run starts PostgreSQL")
	}
	for configured, want := range map[string]string{
		"off": "on", "local": "on", "on": "on", "remote_write": "on", "remote_apply": "remote_apply",
	} {
		t.Run(configured, func(t *testing.T) {
			t.Parallel()
			s := postgresSetting("pgx", "DATABASE_URL", "synchronous_commit", configured)
			db := s.open(t)
			commits := table("commits")
			_, err := db.ExecContext(t.Context(), `CREATE TABLE `+commits+` (op TEXT, was BIGINT, now BIGINT, setting TEXT);
				CREATE FUNCTION `+commits+`() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
					INSERT INTO `+commits+` VALUES (TG_OP, OLD.state, NEW.state, current_setting('synchronous_commit')); RETURN NULL; END $$`)
			require.NoError(t, err)
			watched := func() *sqlstore.Store[*sql.Tx] {
				store := s.store(t, db)
				_, err := db.ExecContext(t.Context(), `CREATE CONSTRAINT TRIGGER watch AFTER INSERT OR UPDATE ON `+tableOf(t, store)+
					` DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION `+commits+`()`)
				require.NoError(t, err)
				return store
			}
			kinds := 3
			if configured == "off" { // the others go through the same expression
				kinds = 10
				webhooktest.RunStore(t, func() webhook.Store { return watched() })
			}
			store := watched()
			tx, err := db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			_, err = store.PutTx(t.Context(), tx, record("e1", "tx_1"))
			require.NoError(t, err)
			require.NoError(t, tx.Commit())
			claim, _, err := store.Claim(t.Context(), "id e1", time.Minute)
			require.NoError(t, err)
			tx, err = db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			require.NoError(t, store.CompleteTx(t.Context(), tx, claim))
			require.NoError(t, tx.Commit())

			rows, err := db.QueryContext(t.Context(), `SELECT DISTINCT op, COALESCE(was, 0), now, setting FROM `+commits+
				` WHERE op = 'INSERT' OR was <> now ORDER BY op, 2, 3`)
			require.NoError(t, err)
			defer func() { _ = rows.Close() }()
			seen := 0
			for ; rows.Next(); seen++ {
				var op, setting string
				var was, now int
				require.NoError(t, rows.Scan(&op, &was, &now, &setting))
				assert.Equal(t, want, setting, "%s, state %d to %d", op, was, now)
			}
			require.NoError(t, rows.Err())
			assert.GreaterOrEqual(t, seen, kinds, "kinds of changes: the trigger runs")
			var leaked string
			require.NoError(t, db.QueryRowContext(t.Context(), "SHOW synchronous_commit").Scan(&leaked))
			assert.Equal(t, configured, leaked, "the session's setting")
		})
	}
}

// In a merchant's transaction with an older snapshot the same event of another
// delivery is invisible, so the store must not decide there.
func TestPutTxOfAFactNeedsReadCommitted(t *testing.T) {
	t.Parallel()
	if os.Getenv("DATABASE_URL") == "" {
		t.Skip("DATABASE_URL is not set: integration/run starts PostgreSQL")
	}
	s := postgresSetting("pgx", "DATABASE_URL", "default_transaction_isolation", "repeatable read")
	db := s.open(t)
	store := s.store(t, db)
	rec := record("e1", "tx_1")
	rec.Fact = "paid tx_1"
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = store.PutTx(t.Context(), tx, rec)
	require.ErrorContains(t, err, "needs a transaction at the isolation level read committed, not repeatable read")
	require.NoError(t, tx.Rollback())
	tx, err = db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	require.NoError(t, err)
	entry, err := store.PutTx(t.Context(), tx, rec)
	require.NoError(t, err)
	assert.True(t, entry.Added)
	require.NoError(t, tx.Commit())
}

// Drivers whose prepared statements outlive a transaction fail behind PgBouncer
// in transaction mode. Migrate says which setting to write.
func TestMigrateRejectsPreparedStatementsBehindPgBouncer(t *testing.T) {
	t.Parallel()
	if os.Getenv("PGBOUNCER_URL") == "" {
		t.Skip("PGBOUNCER_URL is not set: integration/run starts PgBouncer")
	}
	for _, s := range []setting{
		postgresSetting("pgx", "PGBOUNCER_URL"),
		postgresSetting("pgx", "PGBOUNCER_URL", "default_query_exec_mode", "cache_statement"),
		postgresSetting("pgx", "PGBOUNCER_URL", "default_query_exec_mode", "describe_exec"),
		postgresSetting("postgres", "PGBOUNCER_URL"),
	} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			db := s.open(t)
			schema := s.schema(t, db)
			var err error
			for range 20 { // one process finds it unless no two clients of the pooler meet
				if err = sqlstore.New(s.on(db), in(schema)).Migrate(t.Context()); err != nil {
					break
				}
			}
			require.ErrorContains(t, err, "default_query_exec_mode=exec")
		})
	}
}

// A receiver is healthy with the pool of sql.Open, which keeps two idle
// connections: it does not open a new session for almost every statement.
func TestAReceiverIsHealthyWithThePoolOfSQLOpen(t *testing.T) {
	t.Parallel()
	if os.Getenv("DATABASE_URL") == "" {
		t.Skip("DATABASE_URL is not set: integration/run starts PostgreSQL")
	}
	const events, senders = 600, 6
	var opened connections
	db := opened.open(t, os.Getenv("DATABASE_URL"))
	var logged bytes.Buffer
	store := sqlstore.New(database.Postgres(db), in(postgres.schema(t, db)),
		sqlstore.WithLogger(slog.New(slog.NewTextHandler(&logged, nil))))
	require.NoError(t, store.Migrate(t.Context()))
	effects, count := business(t, db)
	rx, err := webhook.New(webhook.Config{Keys: keys, Account: "shop", Store: store, Mode: webhook.Inbox, Logger: quiet})
	require.NoError(t, err)
	webhook.OnOther(rx, sqlstore.HandleTx(store, func(ctx context.Context, tx *sql.Tx, e *webhook.Event) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO "+effects+" (event_id) VALUES ($1)", e.ID)
		return err
	}))
	rx.Start()
	work := make(chan int)
	var all sync.WaitGroup
	for range senders {
		all.Go(func() {
			for i := range work {
				id := fmt.Sprintf("e%d", i)
				body := record(id, id).Body
				got := rx.Receive(t.Context(), webhook.Delivery{Header: webhooktest.Sign(webhooktest.Secret(), time.Now(), body), Body: body})
				assert.Equal(t, 200, got.Status)
			}
		})
	}
	for i := range events {
		work <- i
	}
	close(work)
	all.Wait()
	require.Eventually(t, func() bool { return rx.Stats()[webhook.OutcomeHandled] == events }, 2*time.Minute, 10*time.Millisecond)
	require.NoError(t, rx.Shutdown(t.Context()))
	assert.Equal(t, events, count())
	// 8 workers, 6 puts, the dispatcher and the upkeep, and a few that are
	// closed before the store notices.
	t.Log(opened.n.Load(), "sessions")
	assert.Less(t, opened.n.Load(), int64(24), "sessions")
	assert.Equal(t, 1, bytes.Count(logged.Bytes(), []byte("db.SetMaxIdleConns(")), logged.String())
}

// The database of a pgx pool has no idle connections of its own: each would
// take one from the pool for good. A limit that the owner set is not touched
// either if it suffices.
func TestThePoolOfAnotherOwnerIsLeftAlone(t *testing.T) {
	t.Parallel()
	if os.Getenv("DATABASE_URL") == "" {
		t.Skip("DATABASE_URL is not set: integration/run starts PostgreSQL")
	}
	pool, err := pgxpool.New(t.Context(), os.Getenv("DATABASE_URL")+"&pool_max_conns=8")
	require.NoError(t, err)
	defer pool.Close()
	lent := stdlib.OpenDBFromPool(pool)
	defer func() { _ = lent.Close() }()
	own, err := sql.Open("pgx", os.Getenv("DATABASE_URL"))
	require.NoError(t, err)
	defer func() { _ = own.Close() }()
	own.SetMaxIdleConns(8)
	for _, db := range []*sql.DB{lent, own} {
		var logged bytes.Buffer
		store := view(sqlstore.New(database.Postgres(db), in(postgres.schema(t, db)),
			sqlstore.WithLogger(slog.New(slog.NewTextHandler(&logged, nil)))), "shop")
		require.NoError(t, store.Migrate(t.Context()))
		var all sync.WaitGroup
		for n := range 6 {
			all.Go(func() {
				for i := range 30 {
					_, err := store.Put(t.Context(), record(fmt.Sprintf("e%d.%d", n, i), "tx"))
					assert.NoError(t, err)
				}
			})
		}
		all.Wait()
		assert.Empty(t, logged.String())
	}
	assert.Positive(t, lent.Stats().MaxIdleClosed, "it gives back each connection")
	assert.Zero(t, lent.Stats().Idle)
}
