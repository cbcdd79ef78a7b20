package database_test

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/sqldb"
)

// step is a migration of a later release, which only tests have. "{s}" is the schema.
func step(version, oldest int, body string) database.Migration {
	row := fmt.Sprintf(`
INSERT INTO {s}gateway_schema (part, version, oldest, applied_at)
	VALUES ('operations', %d, %d, 1);
`, version, oldest)
	return database.Migration{
		Version: version, Part: database.PartOperations, Oldest: oldest, Concurrent: strings.Contains(body, "CONCURRENTLY"),
		SQL: body + row,
	}
}

// release returns the context of a release with more migrations.
func release(ctx context.Context, steps ...database.Migration) context.Context {
	return sqldb.WithMigrations(ctx, func(d database.Dialect, inSchema string) ([]database.Migration, error) {
		list, err := database.Schema(d, inSchema)
		for _, m := range steps {
			prefix := ""
			if inSchema != "" {
				prefix = database.Quote(inSchema) + "."
			}
			m.SQL = strings.ReplaceAll(m.SQL, "{s}", prefix)
			list = append(list, m)
		}
		return list, err
	})
}

// again opens the same database with a pool of its own, as another process does.
func again(t *testing.T, k kind, db *sql.DB) *sql.DB {
	t.Helper()
	if k.dialect == database.DialectSQLite {
		return open(t, "sqlite", sqliteName(column(t, db, `SELECT file FROM pragma_database_list WHERE name = 'main'`)[0]))
	}
	return server(t, "DATABASE_URL", "search_path="+column(t, db, `SELECT current_schema()`)[0])
}

// The later release has two columns and an index more, one of them on a table that it creates.
func later(k kind) []database.Migration {
	index := "CREATE INDEX gateway_extra_made ON {s}gateway_operations (created_at);"
	if k.dialect == database.DialectPostgres {
		index = "DROP INDEX CONCURRENTLY IF EXISTS {s}gateway_extra_made;\n" +
			"CREATE INDEX CONCURRENTLY gateway_extra_made ON {s}gateway_operations (created_at);"
	}
	return []database.Migration{
		step(1001, 2, "ALTER TABLE {s}gateway_operations ADD COLUMN extra bigint NOT NULL DEFAULT 7;"),
		step(1002, 2, index),
		step(1003, 2, "CREATE TABLE {s}gateway_extra (id bigint NOT NULL PRIMARY KEY, note text NOT NULL DEFAULT '');"),
	}
}

// Several processes of two releases open an empty database at once, each with its own pool.
// All succeed, and each migration is applied once.
func TestProcessesThatOpenAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, k kind) {
		t.Helper()
		alone := k.open(t)
		require.NoError(t, k.on(alone, database.Location{}).Migrate(release(t.Context(), later(k)...), allParts...))
		want := k.catalog(t, alone)

		db := k.open(t)
		var wg sync.WaitGroup
		failed := make(chan error, 8)
		for i := range cap(failed) {
			pool, ctx := again(t, k, db), t.Context()
			if i%2 == 0 {
				ctx = release(ctx, later(k)...)
			}
			wg.Go(func() { failed <- k.on(pool, database.Location{}).Migrate(ctx, allParts...) })
		}
		wg.Wait()
		close(failed)
		for err := range failed {
			require.NoError(t, err)
		}
		assert.Equal(t, want, k.catalog(t, db))
		assert.Equal(t, []string{strconv.Itoa(len(migrations(t, k.dialect)) + len(later(k)))}, column(t, db, `SELECT COUNT(*) FROM gateway_schema`))
	})
}

// During a deploy, the release before opens what the later one has changed, and the other way
// round.
func TestTwoReleasesSideBySide(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, k kind) {
		t.Helper()
		db := k.open(t)
		insert := func() {
			run(t, db, `INSERT INTO gateway_operations
				(account, kind, key, state, params, progress, claims, due_at, created_at, updated_at)
				VALUES ('shop', 'refund', '`+unique("key")+`', 'waiting', '{}', '{}', 0, 0, 0, 0)`)
		}
		require.NoError(t, k.on(db, database.Location{}).Migrate(t.Context(), allParts...))
		insert()
		err := k.on(db, database.Location{Schema: database.Expect}).Migrate(release(t.Context(), later(k)...), allParts...)
		require.ErrorIs(t, err, database.ErrSchema)
		require.ErrorContains(t, err, "1001_operations, 1002_operations, 1003_operations are missing")
		require.ErrorContains(t, err, "gateway-schema -dialect "+k.dialect.String())
		require.NoError(t, k.on(db, database.Location{}).Migrate(release(t.Context(), later(k)...), allParts...))
		insert()
		for _, mode := range []database.Mode{database.Create, database.Expect} {
			require.NoError(t, k.on(db, database.Location{Schema: mode}).Migrate(t.Context(), allParts...), "the release before")
			require.NoError(t, k.on(db, database.Location{Schema: mode}).Migrate(release(t.Context(), later(k)...), allParts...))
		}
		assert.Equal(t, []string{"7", "7"}, column(t, db, `SELECT extra FROM gateway_operations`))
	})
}

// A release that must not run beside what a later one has changed says so and changes nothing,
// also if it lacks a part of its own. Other parts are not affected.
func TestAReleaseThatIsTooOld(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, k kind) {
		t.Helper()
		db := k.open(t)
		drop := step(1001, 1001, "ALTER TABLE {s}gateway_operations ADD COLUMN instead bigint;")
		ctx := release(t.Context(), drop)
		require.NoError(t, k.on(db, database.Location{}).Migrate(ctx, database.PartAccounts, database.PartOperations))
		before := k.catalog(t, db)
		for _, mode := range []database.Mode{database.Create, database.Expect} {
			err := k.on(db, database.Location{Schema: mode}).Migrate(t.Context(), allParts...)
			require.ErrorIs(t, err, database.ErrSchema)
			require.ErrorContains(t, err, "part operations to version 1001, which a release that knows version 2 must not use")
		}
		assert.Equal(t, before, k.catalog(t, db), "nothing was changed")
		require.NoError(t, k.on(db, database.Location{}).Migrate(t.Context(), database.PartAccounts, database.PartEvents))
	})
}

// A migration that fails in the middle leaves nothing, and is repeated at the next start.
func TestAMigrationThatFails(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, k kind) {
		t.Helper()
		const column = "ALTER TABLE {s}gateway_operations ADD COLUMN extra bigint;\n"
		broken := step(1002, 2, column+"INSERT INTO {s}gateway_absent VALUES (1);")
		db := k.open(t)
		ctx := release(t.Context(), step(1001, 2, "CREATE TABLE {s}gateway_extra (id bigint);"), broken)
		err := k.on(db, database.Location{}).Migrate(ctx, allParts...)
		require.ErrorContains(t, err, "the migration 1002_operations failed")
		assert.Empty(t, k.catalog(t, db), "in an empty database, nothing is left")

		require.NoError(t, k.on(db, database.Location{}).Migrate(t.Context(), allParts...))
		before := k.catalog(t, db)
		err = k.on(db, database.Location{}).Migrate(ctx, allParts...)
		require.ErrorContains(t, err, "the migration 1002_operations failed")
		assert.Equal(t, before, k.catalog(t, db))

		ctx = release(t.Context(), step(1001, 2, "CREATE TABLE {s}gateway_extra (id bigint);"), step(1002, 2, column))
		require.NoError(t, k.on(db, database.Location{}).Migrate(ctx, allParts...))
	})
}

// A concurrent migration that fails leaves an invalid index, which the next start drops.
func TestAConcurrentMigrationThatFails(t *testing.T) {
	t.Parallel()
	k := kind{database.DialectPostgres, openPostgres}
	db := func() *sql.DB { server(t, "DATABASE_URL"); return k.open(t) }()
	require.NoError(t, k.on(db, database.Location{}).Migrate(t.Context(), allParts...))
	for range 2 {
		run(t, db, `INSERT INTO gateway_orders
			(book, subject, currency, paid, fee, refunded, disputed, paid_out, adjusted, settled_by)
			VALUES ('shop', $1, 'BRL', 0, 0, 0, 0, 0, 0, '')`, unique("order"))
	}
	ctx := release(t.Context(), step(1001, 2, "DROP INDEX CONCURRENTLY IF EXISTS {s}gateway_extra_index;\n"+
		"CREATE UNIQUE INDEX CONCURRENTLY gateway_extra_index ON {s}gateway_orders (currency);"))
	for range 2 {
		err := k.on(db, database.Location{}).Migrate(ctx, allParts...)
		require.ErrorContains(t, err, "the migration 1001_operations failed")
	}
	const valid = `SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('gateway_extra_index')`
	assert.Equal(t, []string{"false"}, column(t, db, valid))
	run(t, db, `UPDATE gateway_orders SET currency = subject`)
	require.NoError(t, k.on(db, database.Location{}).Migrate(ctx, allParts...))
	assert.Equal(t, []string{"true"}, column(t, db, valid))
}

// What was created by hand or only in part is reported with the repair, and nothing is lost.
func TestTablesThatAreThereInPart(t *testing.T) {
	t.Parallel()
	type test struct {
		damage string // after all was created
		ctx    func(ctx context.Context) context.Context
		want   []string
		repair string
	}
	extra := func(ctx context.Context) context.Context {
		return release(ctx, step(1001, 2, "ALTER TABLE {s}gateway_operations ADD COLUMN extra bigint;"))
	}
	for name, c := range map[string]test{
		"tables without their row": {
			damage: `DELETE FROM gateway_schema WHERE part = 'events'`,
			want:   []string{"is there", "no row for the migration 0003_events", "the last statement of its file", "-dialect "},
			repair: `INSERT INTO gateway_schema (part, version, oldest, applied_at) VALUES ('events', 3, 3, 0)`,
		},
		"a row without its table": {
			damage: `ALTER TABLE gateway_webhook_events RENAME TO kept`,
			want:   []string{"the table gateway_webhook_events is missing", "0003_events", "restore it", "DELETE FROM "},
			repair: `ALTER TABLE kept RENAME TO gateway_webhook_events`,
		},
		"a column that is there": {
			damage: `ALTER TABLE gateway_operations ADD COLUMN extra bigint`,
			ctx:    extra,
			want:   []string{"is there", "no row for the migration 1001_operations", "the last statement of its file"},
			repair: `INSERT INTO gateway_schema (part, version, oldest, applied_at) VALUES ('operations', 1001, 2, 0)`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, k kind) {
				t.Helper()
				db, ctx := k.open(t), t.Context()
				if c.ctx != nil {
					ctx = c.ctx(ctx)
				}
				require.NoError(t, k.on(db, database.Location{}).Migrate(t.Context(), allParts...))
				run(t, db, c.damage)
				before := k.catalog(t, db)
				err := k.on(db, database.Location{}).Migrate(ctx, allParts...)
				require.ErrorIs(t, err, database.ErrSchema)
				for _, part := range c.want {
					require.ErrorContains(t, err, part)
				}
				expected := k.on(db, database.Location{Schema: database.Expect})
				require.ErrorIs(t, expected.Migrate(ctx, allParts...), database.ErrSchema)
				assert.Equal(t, before, k.catalog(t, db), "nothing was changed")
				run(t, db, c.repair)
				require.NoError(t, k.on(db, database.Location{}).Migrate(ctx, allParts...))
			})
		})
	}
}

// The statement that the error about a missing table names makes the next start create it.
func TestARowThatIsDeletedAsTheErrorSays(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, k kind) {
		t.Helper()
		db := k.open(t)
		require.NoError(t, k.on(db, database.Location{}).Migrate(t.Context(), allParts...))
		want := k.catalog(t, db)
		run(t, db, `DROP TABLE gateway_webhook_events`)
		err := k.on(db, database.Location{}).Migrate(t.Context(), allParts...)
		_, statement, found := strings.Cut(err.Error(), " run ")
		require.True(t, found, err)
		run(t, db, statement)
		require.NoError(t, k.on(db, database.Location{}).Migrate(t.Context(), allParts...))
		assert.Equal(t, want, k.catalog(t, db))
	})
}

// The rows of later migrations of the part go too, so the next start also adds their columns.
func TestATableThatALaterReleaseAltersIsMadeAgain(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, k kind) {
		t.Helper()
		db := k.open(t)
		ctx := release(t.Context(), step(1001, 2, "ALTER TABLE {s}gateway_operations ADD COLUMN extra bigint;"))
		require.NoError(t, k.on(db, database.Location{}).Migrate(ctx, allParts...))
		want := k.catalog(t, db)
		run(t, db, `DROP TABLE gateway_operations`)
		err := k.on(db, database.Location{}).Migrate(ctx, allParts...)
		_, statement, found := strings.Cut(err.Error(), " run ")
		require.True(t, found, err)
		run(t, db, statement)
		require.NoError(t, k.on(db, database.Location{}).Migrate(ctx, allParts...))
		assert.Equal(t, want, k.catalog(t, db))
	})
}

func TestALocationThatIsWrong(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, k kind) {
		t.Helper()
		db := k.open(t)
		require.ErrorContains(t, k.on(db, database.Location{Schema: 7}).Migrate(t.Context(), allParts...), "Create or Expect")
		err := k.on(db, database.Location{InSchema: "absent"}).Migrate(t.Context(), allParts...)
		if k.dialect == database.DialectSQLite {
			require.ErrorContains(t, err, "InSchema is only for PostgreSQL")
		} else {
			require.ErrorIs(t, err, database.ErrSchema)
			require.ErrorContains(t, err, `there is no schema "absent"; create it, or set InSchema to another one`)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		err = k.on(db, database.Location{}).Migrate(ended, allParts...)
		require.ErrorIs(t, err, context.Canceled)
		assert.Empty(t, k.catalog(t, db), "nothing was created")
	})
}
