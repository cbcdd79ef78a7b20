package operations_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/lib/pq"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/dbms"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/operations"
)

// A setting of SQLite that could lose a commit or block its users is refused, by a
// process that migrates and by one that only works, and named.
func TestSettingsOfSQLiteAreChecked(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	file := filepath.Join(t.TempDir(), "shop.db")
	for message, change := range map[string]func(name string) (string, int){
		"set journal_mode to WAL": func(string) (string, int) {
			return strings.ReplaceAll(sqliteName(filepath.Join(t.TempDir(), "new.db")), "WAL", "DELETE"), 0
		},
		"synchronous NORMAL":   func(name string) (string, int) { return strings.ReplaceAll(name, "FULL", "NORMAL"), 0 },
		"synchronous OFF":      func(name string) (string, int) { return strings.ReplaceAll(name, "FULL", "OFF"), 0 },
		"without busy_timeout": func(name string) (string, int) { return strings.ReplaceAll(name, "10000", "0"), 0 },
		"_txlock=immediate":    func(name string) (string, int) { return strings.ReplaceAll(name, "immediate", "deferred"), 0 },
		"in memory":            func(string) (string, int) { return ":memory:", 0 },
		"SetMaxOpenConns(1)":   func(name string) (string, int) { return name, 1 },
		"":                     func(name string) (string, int) { return strings.ReplaceAll(name, "FULL", "EXTRA"), 2 },
	} {
		name, connections := change(sqliteName(file))
		db, err := sql.Open("sqlite", name)
		require.NoError(t, err)
		db.SetMaxOpenConns(connections)
		o, err := operations.New(database.SQLite(db), operations.Config{Client: gw.Client(gateway.WithAccount("shop")), Logger: quiet})
		require.NoError(t, err)
		began := time.Now()
		err = o.Migrate(t.Context())
		if message == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, message)
			require.ErrorContains(t, o.Run(t.Context()), message)
		}
		assert.Less(t, time.Since(began), dbms.BusyTimeout, "%q: the check must not be repeated as if the database was locked", message)
		require.NoError(t, db.Close())
	}
	// A pragma that is set by a statement holds for one connection.
	db, err := sql.Open("sqlite", strings.ReplaceAll(sqliteName(file), "FULL", "NORMAL"))
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	_, err = db.ExecContext(t.Context(), "PRAGMA synchronous = FULL")
	require.NoError(t, err)
	o, err := operations.New(database.SQLite(db), operations.Config{Client: gw.Client(gateway.WithAccount("shop")), Logger: quiet})
	require.NoError(t, err)
	require.ErrorContains(t, o.Migrate(t.Context()), "synchronous NORMAL")
}

// Without a data source name that sets anything, each message leads to the next
// setting, and the last one to a database that is accepted.
func TestMessagesAboutSettingsLeadToTheRightOnes(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	name := "file:" + filepath.Join(t.TempDir(), "shop.db") + "?"
	var messages int
	for ; messages < 10; messages++ {
		db, err := sql.Open("sqlite", name)
		require.NoError(t, err)
		o, err := operations.New(database.SQLite(db), operations.Config{Client: gw.Client(gateway.WithAccount("shop")), Logger: quiet})
		require.NoError(t, err)
		err = o.Migrate(t.Context())
		require.NoError(t, db.Close())
		if err == nil {
			break
		}
		_, add, found := strings.Cut(err.Error(), `add "`)
		require.True(t, found, "%v", err)
		add, _, _ = strings.Cut(add, `"`)
		name += add
	}
	assert.Equal(t, 3, messages, "journal_mode, busy_timeout and _txlock; synchronous is FULL by default")
}

// A process that was not migrated stores and sends nothing, and says why.
func TestAnAccountIsRegisteredByMigrate(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, e engine) {
		t.Helper()
		w := open(t, e, nil)
		config := w.config
		config.Client = w.client(gateway.WithAccount("unknown"))
		unknown, err := w.connected.outbox(config)
		require.NoError(t, err)
		const message = "the database has no account unknown: run Outbox.Migrate"
		_, err = unknown.insert(t.Context(), []operations.Operation{payout("payout-1", 100)}, nil)
		require.ErrorContains(t, err, message)
		if e != onRiver { // whose workers start without the database
			require.ErrorContains(t, w.work(t.Context(), unknown), message)
		}
	})
}

// Another package, which calls no gateway, may have registered the account without a base
// URL: that is not enough to send.
func TestAnAccountWithoutABaseURLSendsNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, e engine) {
		t.Helper()
		w := open(t, e, nil)
		_, err := w.db.ExecContext(t.Context(), `UPDATE gateway_accounts SET fingerprint = ''`)
		require.NoError(t, err)
		other, err := w.connected.outbox(w.config)
		require.NoError(t, err)
		_, err = other.insert(t.Context(), []operations.Operation{payout("payout-1", 100)}, nil)
		require.ErrorContains(t, err, "the database has no account shop: run Outbox.Migrate")
		require.NoError(t, other.Migrate(t.Context()))
		_, err = other.insert(t.Context(), []operations.Operation{payout("payout-1", 100)}, nil)
		require.NoError(t, err)
		var fingerprint string
		require.NoError(t, w.db.QueryRowContext(t.Context(), `SELECT fingerprint FROM gateway_accounts`).Scan(&fingerprint))
		assert.Equal(t, w.config.Client.Account().Fingerprint, fingerprint)
	})
}

// A merchant whose own migrations create the tables gets an error that names what is
// missing, and nothing is created.
func TestMigrateCreatesNothingIfTheTablesAreExpected(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, e engine) {
		t.Helper()
		name := e.create(t)
		e.migrate(t, name)
		d, err := e.open(t.Context(), name)
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, d.close()) })
		config := operations.Config{Client: mockserver.Run(t).Client(gateway.WithAccount("shop")), Logger: quiet}
		created, err := d.outbox(config)
		require.NoError(t, err)
		config.Location.Schema = database.Expect
		o, err := d.outbox(config)
		require.NoError(t, err)
		for range 2 {
			err = o.Migrate(t.Context())
			require.ErrorIs(t, err, database.ErrSchema)
			require.ErrorContains(t, err, "0001_accounts, 0002_operations")
		}
		require.NoError(t, created.Migrate(t.Context()))
		_, err = d.db.ExecContext(t.Context(), `DELETE FROM gateway_accounts`)
		require.NoError(t, err)
		require.NoError(t, o.Migrate(t.Context()))
		_, err = o.insert(t.Context(), []operations.Operation{payout("payout-1", 100)}, nil)
		require.NoError(t, err)
	})
}

// A process that did not migrate looks the tables up beside its first transaction, which
// may have another search path. If the pool has no other connection, it must not wait for
// itself.
func TestTheFirstTransactionFindsTheTables(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, e engine) {
		t.Helper()
		w := open(t, e, nil)
		_, schema, _ := strings.Cut(w.name, "&search_path=")
		for _, connections := range []int{2, 1} {
			db, err := sql.Open("pgx", w.name)
			require.NoError(t, err)
			defer func() { require.NoError(t, db.Close()) }()
			db.SetMaxOpenConns(connections)
			o, err := operations.New(database.Postgres(db), w.config)
			require.NoError(t, err)
			insert := func() error {
				tx, err := db.BeginTx(t.Context(), nil)
				require.NoError(t, err)
				defer func() { _ = tx.Rollback() }() // no-op after a commit
				_, err = tx.ExecContext(t.Context(), `SET LOCAL search_path TO pg_temp`)
				require.NoError(t, err)
				if _, err = o.InsertTx(t.Context(), tx, payout(fmt.Sprint("payout-", connections), 100)); err != nil {
					return err
				}
				return tx.Commit()
			}
			if connections == 1 {
				require.ErrorContains(t, insert(), "call Outbox.Migrate or Outbox.Ready before it")
				require.NoError(t, o.Ready(t.Context()))
			}
			require.NoError(t, insert())
			name, err := o.Table(t.Context())
			require.NoError(t, err)
			assert.Equal(t, `"`+schema+`"."gateway_operations"`, name)
		}
		list, err := w.outbox.List(t.Context(), operations.Query{})
		require.NoError(t, err)
		assert.Len(t, list, 2)
	}, onPostgres)
}

// An account's name that is used for another environment is found before anything is
// sent, also by a process that does not call Migrate. contrib/river tests what its
// workers do.
func TestANameOfAnotherEnvironmentSendsNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, e engine) {
		t.Helper()
		w := open(t, e, nil)
		right := w.config.Client
		client, err := gateway.New("https://sandbox.gateway.example", gateway.BearerToken("sk_test_x"), gateway.WithAccount("shop"))
		require.NoError(t, err)
		w.config.Client = client
		w.outbox, err = w.connected.outbox(w.config)
		require.NoError(t, err)
		err = w.outbox.Migrate(t.Context())
		require.ErrorIs(t, err, gateway.ErrAccountConflict)
		require.ErrorContains(t, err, client.Account().Fingerprint)
		require.ErrorContains(t, err, right.Account().Fingerprint)
		require.ErrorIs(t, w.insertRejected(payout("payout-1", 100)), gateway.ErrAccountConflict)
		_, err = w.outbox.List(t.Context(), operations.Query{})
		require.ErrorIs(t, err, gateway.ErrAccountConflict)
		_, err = w.outbox.Purge(t.Context(), time.Now())
		require.ErrorIs(t, err, gateway.ErrAccountConflict)
		require.ErrorIs(t, w.work(t.Context(), w.outbox), gateway.ErrAccountConflict)

		// The gateway's address changes: the error has the statement to run.
		_, statement, found := strings.Cut(err.Error(), "has changed, run ")
		require.True(t, found, "%v", err)
		_, err = w.db.ExecContext(t.Context(), statement)
		require.NoError(t, err)
		require.NoError(t, w.outbox.Migrate(t.Context()))
	}, onPostgres, onSQLite)
}

// What a request or a handler depends on is flushed to disk whatever PostgreSQL's
// default; a stronger default stays.
func TestCommitsAreDurableWhateverTheDefault(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]string{"off": "on", "local": "on", "remote_write": "on", "on": "on", "remote_apply": "remote_apply"} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, e engine) {
				t.Helper()
				w := openOn(t, e, e.create(t)+"&synchronous_commit="+setting, nil)
				_, err := w.db.ExecContext(t.Context(), `CREATE TABLE seen (state text, setting text);
				CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
					INSERT INTO seen VALUES (TG_OP || ' ' || NEW.state, current_setting('synchronous_commit')); RETURN NULL; END $$;
				CREATE CONSTRAINT TRIGGER see AFTER INSERT OR UPDATE ON gateway_operations DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
					WHEN (NEW.state IN ('sent', 'done')) EXECUTE FUNCTION see()`) // at the commit
				require.NoError(t, err)
				charge := w.paid(1000)
				w.start(w.outbox)
				w.add(operations.Refund{Key: "refund", TransactionID: charge.ID, Amount: 300})
				w.reaches("refund", operations.Done)
				all := 2
				if _, polls := w.outbox.(*in[*sql.Tx]); polls {
					all = 3
					_, err := w.claim(operations.CreateTransaction(order("A1", 700))).Send(t.Context())
					require.NoError(t, err)
				}
				var seen, right int
				require.NoError(t, w.db.QueryRowContext(t.Context(), `SELECT COUNT(DISTINCT state), COUNT(DISTINCT state) FILTER (WHERE setting = $1) FROM seen`,
					want).Scan(&seen, &right))
				assert.Equal(t, all, right)
				assert.Equal(t, all, seen, "a refund is marked and done, and a claim is inserted as sent")
				var wrong int
				require.NoError(t, w.db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM seen WHERE setting <> $1`, want).Scan(&wrong))
				assert.Zero(t, wrong)
			}, onRiver, onPostgres)
		})
	}
}

// Every default isolation level, both drivers with default pools, and River. Two
// accounts use the same keys.
func TestTheOutboxWorksAsPostgreSQLIsOpened(t *testing.T) {
	t.Parallel()
	for driver, e := range map[string]engine{"pgx": onPostgres, "postgres": onPostgres, "River": onRiver} {
		for _, level := range []string{"read committed", "repeatable read", "serializable"} {
			t.Run(driver+", "+level, func(t *testing.T) {
				t.Parallel()
				w := openOn(t, e, e.create(t)+"&default_transaction_isolation="+strings.ReplaceAll(level, " ", "%20"), nil)
				if driver == "postgres" {
					db, err := sql.Open(driver, w.name+"&sslmode=disable")
					require.NoError(t, err)
					t.Cleanup(func() { assert.NoError(t, db.Close()) })
					w.connected = &connected{engine: e, db: db}
					w.outbox = w.newOutbox()
				}
				var got string
				require.NoError(t, w.db.QueryRowContext(t.Context(), `SHOW transaction_isolation`).Scan(&got))
				require.Equal(t, level, got)
				accounts := []*world{w, w.beside("b")}
				require.NoError(t, w.gw.Faults.Add(mockserver.LoseResponse().On("transactions.refund").Times(2)))
				w.start(w.outbox, accounts[1].outbox)
				charges := make(map[*world][]*gateway.Transaction)
				for _, a := range accounts {
					for i := range 3 {
						charge, n := a.paid(1000), fmt.Sprint(i)
						charges[a] = append(charges[a], charge)
						a.add(
							operations.Refund{Key: "first " + n, TransactionID: charge.ID, Amount: int64(100 + i)},
							operations.Refund{Key: "second " + n, TransactionID: charge.ID, Amount: 200},
							operations.CreateTransaction(order("order "+n, 500)),
						)
					}
				}
				for _, a := range accounts {
					for i, charge := range charges[a] {
						for _, key := range []string{"first ", "second ", "order "} {
							a.reaches(key+fmt.Sprint(i), operations.Done)
						}
						assert.Equal(t, int64(300+i), a.refunded(charge.ID))
					}
				}
			})
		}
	}
}

func TestManyProcessesMigrateAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, e engine) {
		t.Helper()
		name := e.create(t)
		e.migrate(t, name)
		gw := mockserver.Run(t)
		var wg sync.WaitGroup
		for i := range 10 {
			config := operations.Config{Client: gw.Client(gateway.WithAccount([]string{"shop", "other"}[i%2])), Logger: quiet}
			if _, schema, found := strings.Cut(name, "&search_path="); found && i%4 >= 2 {
				config.Location.InSchema = schema // the same tables under another name
			}
			wg.Go(func() {
				db, err := e.open(t.Context(), name)
				if err != nil {
					t.Error(err)
					return
				}
				o, err := db.outbox(config)
				if assert.NoError(t, err) {
					assert.NoError(t, o.Migrate(t.Context()))
				}
				assert.NoError(t, db.close())
			})
		}
		wg.Wait()
	})
}

// An idle process looks for operations with one query per interval, which reads an
// index.
func TestAnIdleProcessReadsAnIndex(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, e engine) {
		t.Helper()
		w := open(t, e, nil)
		query := `SELECT id, due_at FROM gateway_operations AS o WHERE account = 'shop' AND state IN ('waiting', 'working', 'sent', 'decided') AND due_at <= 5
			AND (lease_until IS NULL OR lease_until < 7) ORDER BY due_at LIMIT 10`
		explain := `EXPLAIN QUERY PLAN `
		if e == onPostgres {
			explain = `EXPLAIN `
			_, err := w.db.ExecContext(t.Context(), `INSERT INTO gateway_operations (account, kind, key, state, params, progress, claims, due_at, created_at, updated_at)
				SELECT 'shop', 'k', i::text, 'done', '{}', '{}', 0, i, i, i FROM generate_series(1, 5000) i; ANALYZE gateway_operations`)
			require.NoError(t, err)
		}
		rows, err := w.db.QueryContext(t.Context(), explain+query)
		require.NoError(t, err)
		defer func() { require.NoError(t, rows.Close()) }()
		columns, err := rows.Columns()
		require.NoError(t, err)
		var plan []string
		for rows.Next() {
			values := make([]any, len(columns))
			for i := range values {
				values[i] = new(string)
			}
			require.NoError(t, rows.Scan(values...))
			plan = append(plan, *values[len(values)-1].(*string))
		}
		require.NoError(t, rows.Err())
		assert.Contains(t, strings.Join(plan, "\n"), "gateway_operations_due")
	}, onPostgres, onSQLite)
}

// When Run is told to end, it finishes what it has begun and begins nothing else.
func TestRunEndsGracefully(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, e engine) {
		t.Helper()
		w := open(t, e, func(c *operations.Config) { c.Workers, c.SendTimeout, c.SettleAfter = 2, 10*time.Second, time.Minute })
		require.NoError(t, w.gw.Faults.Add(mockserver.Latency(300*time.Millisecond).On("transactions.create")))
		stop := w.start(w.outbox)
		for _, key := range []string{"1", "2", "3", "4", "5", "6"} {
			w.add(operations.CreateTransaction(order(key, 500)))
		}
		require.Eventually(t, func() bool { return w.gw.Requests.Count("transactions.create") > 0 }, time.Minute, time.Millisecond)
		stop()
		counts, err := w.outbox.Counts(t.Context())
		require.NoError(t, err)
		assert.Zero(t, counts[operations.Working]+counts[operations.Sent]+counts[operations.Decided], counts)
		assert.Positive(t, counts[operations.Waiting])
		sent := w.gw.Requests.Count("transactions.create")
		w.start(w.outbox)
		for _, key := range []string{"1", "2", "3", "4", "5", "6"} {
			w.reaches(key, operations.Done)
			w.result(key)
		}
		assert.Equal(t, 6, w.gw.Requests.Count("transactions.create"))
		assert.Less(t, sent, 6)
	}, onPostgres, onSQLite)
}

// A process finds the operations that it inserts at once, although it polls rarely, and
// those that wait for them.
func TestRunFindsItsOwnOperationsAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, e engine) {
		t.Helper()
		w := open(t, e, func(c *operations.Config) { c.PollInterval = time.Hour })
		charge := w.paid(1000)
		w.start(w.outbox)
		for _, key := range []string{"1", "2", "3"} { // the second time, the process has been idle
			w.add(operations.Refund{Key: key, TransactionID: charge.ID, Amount: 100}, operations.Refund{Key: key + " too", TransactionID: charge.ID, Amount: 50})
			w.reaches(key, operations.Done)
			w.reaches(key+" too", operations.Done)
		}
		assert.Equal(t, int64(450), w.refunded(charge.ID))
	}, onPostgres, onSQLite)
}

// Another process inserts. The operation is found within the interval.
func TestRunFindsTheOperationsOfOtherProcesses(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, e engine) {
		t.Helper()
		w := open(t, e, nil)
		w.start(w.newOutbox())
		w.add(operations.CreateTransaction(order("order-1", 500)))
		w.reaches("order-1", operations.Done)
	}, onPostgres, onSQLite)
}

// logBuffer is a log that several goroutines write.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// The database fails while operations are worked on: Run logs it, and goes on.
func TestRunSurvivesFailuresOfTheDatabase(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, e engine) {
		t.Helper()
		logs := &logBuffer{}
		w := open(t, e, func(c *operations.Config) { c.Logger = slog.New(slog.NewTextHandler(logs, nil)) })
		w.start(w.outbox)
		_, err := w.db.ExecContext(t.Context(), `ALTER TABLE gateway_operations RENAME TO elsewhere`)
		require.NoError(t, err)
		require.Eventually(t, func() bool { return strings.Contains(logs.text(), "operations could not be worked on") }, time.Minute, time.Millisecond)
		_, err = w.db.ExecContext(t.Context(), `ALTER TABLE elsewhere RENAME TO gateway_operations`)
		require.NoError(t, err)
		w.add(operations.CreateTransaction(order("order-1", 500)))
		w.reaches("order-1", operations.Done)
	}, onPostgres, onSQLite)
}

// Behind a pooler in transaction mode, prepared statements are lost: Migrate says what
// to set, and with that the outbox works.
func TestPreparedStatementsBehindPgBouncerAreRefused(t *testing.T) {
	t.Parallel()
	url := os.Getenv("PGBOUNCER_URL")
	if url == "" {
		t.Skip("PGBOUNCER_URL is not set: integration/run starts PgBouncer")
	}
	gw := mockserver.Run(t)
	open := func(name string) *operations.Outbox[*sql.Tx] {
		db, err := sql.Open("pgx", name)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, db.Close()) })
		client := gw.Client(gateway.WithAccount("a" + strings.ToLower(rand.Text()[:16])))
		o, err := operations.New(database.Postgres(db), operations.Config{Client: client, Logger: quiet})
		require.NoError(t, err)
		return o
	}
	var refused error
	for range 20 { // one call finds it unless no two clients of the pooler meet
		if refused = open(url).Migrate(t.Context()); refused != nil {
			break
		}
	}
	require.ErrorContains(t, refused, "add default_query_exec_mode=exec")
	o := open(url + "&default_query_exec_mode=exec")
	require.NoError(t, o.Migrate(t.Context()))
	done := make(chan error, 1)
	operations.OnResult(o, func(_ context.Context, _ *sql.Tx, r operations.TransactionResult) error {
		done <- r.Err
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- o.Run(ctx) }()
	db, err := sql.Open("pgx", url+"&default_query_exec_mode=exec")
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = o.InsertTx(t.Context(), tx, operations.CreateTransaction(order("order-1", 500)))
	require.NoError(t, err)
	require.NoError(t, tx.Commit())
	require.NoError(t, <-done)
	cancel()
	require.NoError(t, <-ended)
}

// A query that the end of its context interrupts gives back its connection without the
// write lock. modernc.org/sqlite before v1.41.0 did not always do that.
func TestAnInterruptedQueryOfSQLiteKeepsNoLock(t *testing.T) {
	t.Parallel()
	name := strings.ReplaceAll(sqliteName(filepath.Join(t.TempDir(), "shop.db")), "busy_timeout(10000)", "busy_timeout(1000)")
	db, err := sql.Open("sqlite", name)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	_, err = db.ExecContext(t.Context(), "CREATE TABLE orders (id INTEGER PRIMARY KEY, paid INTEGER)")
	require.NoError(t, err)
	insert := func(patience time.Duration) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // no-op after a commit
		var id int64
		if err := tx.QueryRowContext(ctx, "INSERT INTO orders (paid) VALUES (1) RETURNING id").Scan(&id); err != nil {
			return err
		}
		return tx.Commit()
	}
	const writers, inserts = 16, 200
	var interrupted atomic.Int64
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range inserts {
				if insert(time.Duration((w*inserts+i)*37%20_000)*time.Microsecond) != nil {
					interrupted.Add(1)
				}
			}
		})
	}
	wg.Wait()
	assert.Positive(t, interrupted.Load())
	require.NoError(t, insert(time.Minute), "no one can write after %d of %d transactions were interrupted", interrupted.Load(), writers*inserts)
}
