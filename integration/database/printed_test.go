package database_test

import (
	"database/sql"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/golang-migrate/migrate/v4"
	migratedatabase "github.com/golang-migrate/migrate/v4/database"
	migratepostgres "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	migratesqlite "github.com/golang-migrate/migrate/v4/database/sqlite"
	_ "github.com/golang-migrate/migrate/v4/source/file"
	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/database"
)

// The files of gateway-schema create what a package creates itself, with each tool.
func TestPrintedFilesCreateTheSame(t *testing.T) {
	t.Parallel()
	command := filepath.Join(t.TempDir(), "gateway-schema")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", command,
		"github.com/gateway-go/gateway/cmd/gateway-schema").CombinedOutput()
	require.NoError(t, err, string(out))
	each(t, func(t *testing.T, k kind) {
		t.Helper()
		created := k.open(t)
		require.NoError(t, k.on(created, database.Location{}).Migrate(t.Context(), allParts...))
		want := k.catalog(t, created)
		require.NotEmpty(t, want)
		for format, apply := range map[string]func(t *testing.T, db *sql.DB, dialect, dir string){
			"plain": applyPlain, "goose": applyGoose, "migrate": applyMigrate, "atlas": applyAtlas,
		} {
			for _, named := range []bool{false, true} {
				if named && k.dialect == database.DialectSQLite {
					continue
				}
				db, dir := k.open(t), t.TempDir()
				args := []string{"-dialect", k.dialect.String(), "-format", format, "-dir", dir}
				if named {
					args = append(args, "-schema", column(t, db, `SELECT current_schema()`)[0])
				}
				out, err := exec.CommandContext(t.Context(), command, args...).CombinedOutput()
				require.NoError(t, err, string(out))
				expected := k.on(db, database.Location{Schema: database.Expect})
				require.ErrorIs(t, expected.Migrate(t.Context(), allParts...), database.ErrSchema, "before")
				apply(t, db, k.dialect.String(), dir)
				assert.Equal(t, want, k.catalog(t, db), format)
				require.NoError(t, expected.Migrate(t.Context(), allParts...), format)
				require.NoError(t, k.on(db, database.Location{}).Migrate(t.Context(), allParts...), format)
				assert.Equal(t, want, k.catalog(t, db), format)
			}
		}
	})
}

// texts returns the files of a folder in order.
func texts(t *testing.T, dir string) (list []string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.sql"))
	require.NoError(t, err)
	slices.Sort(names)
	require.Len(t, names, len(migrations(t, database.DialectPostgres)))
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		list = append(list, string(text))
	}
	return list
}

// simple opens the database of db again, so that one call may have several statements, as psql
// and Atlas send them.
func simple(t *testing.T, db *sql.DB, dialect string) *sql.DB {
	t.Helper()
	if dialect == "sqlite" {
		return db
	}
	schema := column(t, db, `SELECT current_schema()`)[0]
	return server(t, "DATABASE_URL", "default_query_exec_mode=simple_protocol", "search_path="+schema)
}

// applyPlain runs the files as psql -f does. A second time changes nothing.
func applyPlain(t *testing.T, db *sql.DB, dialect, dir string) {
	t.Helper()
	db = simple(t, db, dialect)
	for _, text := range texts(t, dir) {
		run(t, db, text)
	}
	for _, text := range texts(t, dir) {
		conn, err := db.Conn(t.Context())
		require.NoError(t, err)
		_, err = conn.ExecContext(t.Context(), text)
		require.Error(t, err)
		assert.Regexp(t, "already exists|duplicate column name", err.Error())
		_, err = conn.ExecContext(t.Context(), "ROLLBACK")
		require.NoError(t, err)
		require.NoError(t, conn.Close())
	}
}

// applyAtlas runs the files by the rules of Atlas: each in a transaction, unless it begins with
// "-- atlas:txmode none".
func applyAtlas(t *testing.T, db *sql.DB, dialect, dir string) {
	t.Helper()
	db = simple(t, db, dialect)
	for _, text := range texts(t, dir) {
		require.False(t, strings.HasPrefix(text, "-- atlas:txmode"))
		tx, err := db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		_, err = tx.ExecContext(t.Context(), text)
		require.NoError(t, err)
		require.NoError(t, tx.Commit())
	}
}

func applyGoose(t *testing.T, db *sql.DB, dialect, dir string) {
	t.Helper()
	kind := goose.DialectPostgres
	if dialect == "sqlite" {
		kind = goose.DialectSQLite3
	}
	provider, err := goose.NewProvider(kind, db, os.DirFS(dir), goose.WithDisableGlobalRegistry(true))
	require.NoError(t, err)
	results, err := provider.Up(t.Context())
	require.NoError(t, err)
	require.Len(t, results, len(migrations(t, database.DialectPostgres)))
	pending, err := provider.HasPending(t.Context())
	require.NoError(t, err)
	assert.False(t, pending)
}

func applyMigrate(t *testing.T, db *sql.DB, dialect, dir string) {
	t.Helper()
	var driver migratedatabase.Driver
	var err error
	if dialect == "sqlite" {
		driver, err = migratesqlite.WithInstance(db, &migratesqlite.Config{})
	} else {
		driver, err = migratepostgres.WithInstance(db, &migratepostgres.Config{})
	}
	require.NoError(t, err)
	m, err := migrate.NewWithDatabaseInstance("file://"+filepath.ToSlash(dir), dialect, driver)
	require.NoError(t, err)
	require.NoError(t, m.Up())
	err = m.Up()
	require.ErrorIs(t, err, migrate.ErrNoChange)
	version, dirty, err := m.Version()
	require.NoError(t, err)
	assert.EqualValues(t, len(migrations(t, database.DialectPostgres)), version)
	assert.False(t, dirty)
}
