package database_test

import (
	"context"
	"database/sql"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	pgxdriver "github.com/gateway-go/gateway/contrib/pgx"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/dbms"
	"github.com/gateway-go/gateway/internal/sqldb"
)

var postgres = kind{database.DialectPostgres, openPostgres}

// role creates a role that may use a schema, and opens the database as that role.
func role(t *testing.T, admin *sql.DB, name, schema string, settings ...string) *sql.DB {
	t.Helper()
	run(t, admin, `CREATE ROLE `+database.Quote(name)+` LOGIN`)
	run(t, admin, `GRANT USAGE ON SCHEMA `+database.Quote(schema)+` TO `+database.Quote(name))
	url := strings.Replace(os.Getenv("DATABASE_URL"), "user=gateway", "user="+strings.ReplaceAll(name, " ", "%20"), 1)
	return open(t, "pgx", strings.Join(append([]string{url, "search_path=" + schema}, settings...), "&"))
}

// A role without the right to create tables opens what is complete, and is told about the rest.
func TestARoleThatMayNotCreateTables(t *testing.T) {
	t.Parallel()
	admin, schema := server(t, "DATABASE_URL"), unique("roles")
	run(t, admin, "CREATE SCHEMA "+schema)
	name := unique("The Shop")
	shop := role(t, admin, name, schema)
	owner := postgres.on(admin, database.Location{InSchema: schema})

	err := postgres.on(shop, database.Location{}).Migrate(t.Context(), allParts...)
	require.ErrorIs(t, err, database.ErrSchema)
	require.ErrorContains(t, err, "0001_accounts is missing, and the role lacks the right")
	require.ErrorContains(t, err, "gateway-schema -dialect postgres -schema '"+schema+"'")
	err = postgres.on(shop, database.Location{Schema: database.Expect}).Migrate(t.Context(), allParts...)
	require.ErrorIs(t, err, database.ErrSchema)
	assert.Empty(t, column(t, admin, `SELECT relname FROM pg_class WHERE relnamespace = $1::regnamespace`, schema))

	require.NoError(t, owner.Migrate(t.Context(), allParts...))
	for _, mode := range []database.Mode{database.Create, database.Expect} {
		err := postgres.on(shop, database.Location{Schema: mode}).Migrate(t.Context(), allParts...)
		grants := after(t, err, "lacks rights: run ")
		assert.NotContains(t, grants, "ALL TABLES", "the schema may have the shop's own tables")
		if mode == database.Create { // the statements repair it, without a right too many
			for statement := range strings.SplitSeq(grants, "; ") {
				run(t, admin, statement)
			}
			require.NoError(t, postgres.on(shop, database.Location{}).Migrate(t.Context(), allParts...))
			assert.Equal(t, []string{"SELECT"}, column(t, admin, `SELECT privilege_type FROM information_schema.table_privileges
				WHERE grantee = $1 AND table_name = 'gateway_schema'`, name))
			run(t, admin, `REVOKE SELECT ON `+schema+`.gateway_schema FROM `+database.Quote(name))
		}
	}
	run(t, admin, `GRANT SELECT ON `+schema+`.gateway_schema TO `+database.Quote(name))

	for _, right := range []string{"SELECT", "INSERT", "UPDATE", "DELETE"} {
		for _, table := range []string{"gateway_operations", "gateway_facts"} {
			run(t, admin, `REVOKE `+right+` ON `+schema+`.`+table+` FROM `+database.Quote(name))
			err := postgres.on(shop, database.Location{}).Migrate(t.Context(), allParts...)
			grant := after(t, err, "run ")
			assert.Equal(t, `GRANT SELECT, INSERT, UPDATE, DELETE ON "`+schema+`"."`+table+`" TO `+database.Quote(name), grant)
			run(t, admin, grant)
		}
	}
	require.NoError(t, postgres.on(shop, database.Location{}).Migrate(t.Context(), allParts...))
	key, err := register(t, postgres.on(shop, database.Location{}), "shop", "abc")
	require.NoError(t, err)
	assert.NotEmpty(t, key)

	// A later release needs what this role may not do.
	err = postgres.on(shop, database.Location{}).Migrate(release(t.Context(), later(postgres)...), allParts...)
	require.ErrorIs(t, err, database.ErrSchema)
	require.ErrorContains(t, err, "1001_operations is missing, and the role lacks the right")

	run(t, admin, `REVOKE USAGE ON SCHEMA `+schema+` FROM `+database.Quote(name))
	err = postgres.on(shop, database.Location{}).Migrate(t.Context(), allParts...)
	run(t, admin, after(t, err, "or run "))
	require.NoError(t, postgres.on(shop, database.Location{}).Migrate(t.Context(), allParts...))
}

// after returns what an ErrSchema says after some words.
func after(t *testing.T, err error, words string) string {
	t.Helper()
	require.ErrorIs(t, err, database.ErrSchema)
	_, rest, found := strings.Cut(err.Error(), words)
	require.True(t, found, err)
	return rest
}

// register registers an account, as a package does.
func register(t *testing.T, db *sqldb.DB, name, fingerprint string) (string, error) {
	t.Helper()
	require.NoError(t, db.Find(t.Context()))
	return db.Register(t.Context(), db.Conn(), gateway.Account{Name: name, Fingerprint: fingerprint})
}

// A server that is read-only opens if nothing is missing.
func TestAServerThatIsReadOnly(t *testing.T) {
	t.Parallel()
	db := func() *sql.DB { server(t, "DATABASE_URL"); return openPostgres(t) }()
	schema := column(t, db, `SELECT current_schema()`)[0]
	replica := server(t, "DATABASE_URL", "default_transaction_read_only=on", "search_path="+schema)
	err := postgres.on(replica, database.Location{}).Migrate(t.Context(), allParts...)
	require.ErrorIs(t, err, database.ErrSchema)
	require.ErrorContains(t, err, "the database is read-only: open it on the primary server")
	err = postgres.on(replica, database.Location{Schema: database.Expect}).Migrate(t.Context(), allParts...)
	require.ErrorIs(t, err, database.ErrSchema)
	require.ErrorContains(t, err, "0001_accounts, 0002_operations, 0003_events, 0004_merchant, 0005_merchant, 0006_merchant, 0007_merchant, 0008_merchant, 0009_merchant are missing")
	assert.Empty(t, postgres.catalog(t, db), "nothing was created")

	require.NoError(t, postgres.on(db, database.Location{}).Migrate(t.Context(), allParts...))
	key, err := register(t, postgres.on(db, database.Location{}), "shop", "abc")
	require.NoError(t, err)
	for _, mode := range []database.Mode{database.Create, database.Expect} {
		on := postgres.on(replica, database.Location{Schema: mode})
		require.NoError(t, on.Migrate(t.Context(), allParts...))
		same, err := register(t, on, "shop", "abc")
		require.NoError(t, err, "a known account is only read")
		assert.Equal(t, key, same)
		_, err = register(t, on, "another", "abc")
		require.ErrorIs(t, err, database.ErrSchema)
		require.ErrorContains(t, err, "the account another can't be registered, since the database is read-only")
	}
	assert.Equal(t, []string{"shop"}, column(t, db, `SELECT name FROM gateway_accounts`))
}

// Two tenants that share a schema after their own never meet.
func TestTenantsNeverMeet(t *testing.T) {
	t.Parallel()
	admin := server(t, "DATABASE_URL")
	a, b, shared := unique("tenant"), unique("tenant"), unique("shared")
	for _, schema := range []string{a, b, shared} {
		run(t, admin, "CREATE SCHEMA "+schema)
	}
	// The shared one has tables, too, which PostgreSQL would find first.
	require.NoError(t, postgres.on(admin, database.Location{InSchema: shared}).Migrate(t.Context(), allParts...))
	keys := make(map[string]bool)
	for _, tenant := range []string{a, b} {
		pool := server(t, "DATABASE_URL", "search_path="+tenant+","+shared)
		db := postgres.on(pool, database.Location{})
		require.NoError(t, db.Migrate(t.Context(), allParts...))
		key, err := register(t, db, "shop", tenant)
		require.NoError(t, err)
		keys[key] = true
		assert.Equal(t, []string{tenant}, column(t, pool, `SELECT fingerprint FROM `+tenant+`.gateway_accounts`))

		// A search path that a transaction sets changes nothing.
		require.NoError(t, db.Transaction(t.Context(), func(tx sqldb.Tx) error {
			if _, err := tx.Exec(t.Context(), `SET LOCAL search_path TO `+shared); err != nil {
				return err
			}
			again, err := db.Register(t.Context(), db.In(tx), gateway.Account{Name: "shop", Fingerprint: tenant})
			assert.True(t, keys[again])
			return err
		}))
	}
	assert.Len(t, keys, 2)
	assert.Empty(t, column(t, admin, `SELECT name FROM `+shared+`.gateway_accounts`))

	// A tenant without a schema must not get the shared one.
	absent := server(t, "DATABASE_URL", "search_path="+unique("absent")+","+shared)
	for _, mode := range []database.Mode{database.Create, database.Expect} {
		err := postgres.on(absent, database.Location{Schema: mode}).Migrate(t.Context(), allParts...)
		require.ErrorIs(t, err, database.ErrSchema)
		require.ErrorContains(t, err, "set InSchema to the schema of the gateway's tables")
	}
	require.NoError(t, postgres.on(absent, database.Location{InSchema: a}).Migrate(t.Context(), allParts...))
	none := server(t, "DATABASE_URL", "search_path=")
	err := postgres.on(none, database.Location{}).Migrate(t.Context(), allParts...)
	require.ErrorContains(t, err, "no schema is named")
}

// "$user" is the role's schema, if it has one.
func TestTheSchemaOfTheRole(t *testing.T) {
	t.Parallel()
	admin, shared := server(t, "DATABASE_URL"), unique("shared")
	run(t, admin, "CREATE SCHEMA "+shared)
	name := unique("role")
	run(t, admin, "CREATE ROLE "+name+" LOGIN")
	run(t, admin, "GRANT USAGE, CREATE ON SCHEMA "+shared+" TO "+name)
	url := strings.Replace(os.Getenv("DATABASE_URL"), "user=gateway", "user="+name, 1)
	pool := open(t, "pgx", url+`&search_path="$user",`+shared)
	require.NoError(t, postgres.on(pool, database.Location{}).Migrate(t.Context(), allParts...))
	const where = `SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relname = 'gateway_schema' AND n.nspname IN ($1, $2) ORDER BY n.nspname`
	assert.Equal(t, []string{shared}, column(t, admin, where, shared, name))

	run(t, admin, "CREATE SCHEMA "+name+" AUTHORIZATION "+name)
	require.NoError(t, postgres.on(pool, database.Location{}).Migrate(t.Context(), allParts...))
	assert.Equal(t, []string{name, shared}, column(t, admin, where, shared, name))

	// Without "$user", the role's name is a schema as any other, and must exist.
	run(t, admin, "DROP SCHEMA "+name+" CASCADE")
	pool = open(t, "pgx", url+`&search_path=`+name+`,`+shared)
	err := postgres.on(pool, database.Location{}).Migrate(t.Context(), allParts...)
	require.ErrorContains(t, err, `there is no schema "`+name+`"`)
}

// A name with quotes, upper case or spaces is quoted in statements, errors and commands.
func TestNamesThatNeedQuotes(t *testing.T) {
	t.Parallel()
	admin := server(t, "DATABASE_URL")
	for _, prefix := range []string{`It's "my" Shop`, "Shop", "ÄRGER; -- ", strings.Repeat("long", 12)} {
		name := unique(prefix)
		run(t, admin, "CREATE SCHEMA "+database.Quote(name))
		db := postgres.on(admin, database.Location{InSchema: name})
		expected := postgres.on(admin, database.Location{InSchema: name, Schema: database.Expect})
		err := expected.Migrate(t.Context(), allParts...)
		require.ErrorContains(t, err, "-schema '"+strings.ReplaceAll(name, "'", `'\''`)+"'")
		require.NoError(t, db.Migrate(t.Context(), allParts...), name)
		require.NoError(t, expected.Migrate(t.Context(), allParts...))
		_, err = register(t, db, "shop", "abc")
		require.NoError(t, err)
		assert.Equal(t, []string{"shop"}, column(t, admin, `SELECT name FROM `+database.Quote(name)+`.gateway_accounts`))

		// The same name in a search path.
		conn := server(t, "DATABASE_URL")
		conn.SetMaxOpenConns(1)
		run(t, conn, "SET search_path TO "+database.Quote(name)+", public")
		path := postgres.on(conn, database.Location{Schema: database.Expect})
		require.NoError(t, path.MigrateUnchecked(t.Context(), allParts...))
		assert.Equal(t, db.Qualified("gateway_accounts"), path.Qualified("gateway_accounts"))
	}
}

// Another address of an account is reported, and the UPDATE in the message repairs it.
func TestAnAccountAtAnotherAddress(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, k kind) {
		t.Helper()
		db := k.on(k.open(t), database.Location{})
		require.NoError(t, db.Migrate(t.Context(), allParts...))
		const name = `O'Brien "& sons"`
		key, err := register(t, db, name, "abc")
		require.NoError(t, err)
		_, err = register(t, db, "other", "abc")
		require.NoError(t, err)
		_, err = register(t, db, name, "def")
		require.ErrorIs(t, err, gateway.ErrAccountConflict)
		_, update, found := strings.Cut(err.Error(), "run UPDATE ")
		require.True(t, found, err)
		assert.NotContains(t, update, "UPDATE", "there is one")
		_, err = register(t, db, name, "abc")
		require.NoError(t, err, "nothing was changed")
		n, err := db.Conn().Exec(t.Context(), "UPDATE "+update)
		require.NoError(t, err)
		assert.EqualValues(t, 1, n)
		same, err := register(t, db, name, "def")
		require.NoError(t, err)
		assert.Equal(t, key, same, "the key of the digests stays")
		_, err = register(t, db, name, "")
		require.NoError(t, err, "without a fingerprint it fits any")
	})
}

// Behind a pooler in transaction mode, the setting of the driver is found when a package is
// opened.
func TestAPoolerInTransactionMode(t *testing.T) {
	t.Parallel()
	server(t, "PGBOUNCER_URL")
	admin, schema := server(t, "DATABASE_URL"), unique("pooled")
	run(t, admin, "CREATE SCHEMA "+schema)
	where := database.Location{InSchema: schema}
	err := postgres.on(server(t, "PGBOUNCER_URL"), where).Migrate(t.Context(), allParts...)
	require.ErrorIs(t, err, dbms.ErrPooler)
	require.ErrorContains(t, err, "default_query_exec_mode=exec")
	created := column(t, admin, `SELECT relname FROM pg_class WHERE relnamespace = $1::regnamespace`, schema)
	assert.Empty(t, created)
	db := postgres.on(server(t, "PGBOUNCER_URL", "default_query_exec_mode=exec"), where)
	require.NoError(t, db.Migrate(release(t.Context(), later(postgres)...), allParts...), "also what is concurrent")
	_, err = register(t, db, "shop", "abc")
	require.NoError(t, err)
}

// A pool of pgx that database/sql borrows from must keep no idle connections there: they are
// those of the shop's own queries.
func TestALentPoolKeepsNoIdleConnections(t *testing.T) {
	t.Parallel()
	server(t, "DATABASE_URL")
	const connections, queries = 8, 20
	for _, idle := range []int{0, 16} {
		pool, err := pgxpool.New(t.Context(), os.Getenv("DATABASE_URL")+"&pool_max_conns=8")
		require.NoError(t, err)
		t.Cleanup(pool.Close)
		db := lend(pool)
		t.Cleanup(func() { _ = db.Close() }) // before the pool
		if idle > 0 {
			db.SetMaxIdleConns(idle)
		}
		var taken []*sql.Conn
		for range connections { // the packages are busy for a moment
			conn, err := db.Conn(t.Context())
			require.NoError(t, err)
			taken = append(taken, conn)
		}
		for _, conn := range taken {
			require.NoError(t, conn.Close())
		}
		failed := make(chan bool, queries)
		for range queries { // of the shop, on its pool
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err := pool.Exec(ctx, `SELECT 1`)
				failed <- err != nil
			}()
		}
		n := 0
		for range queries {
			if <-failed {
				n++
			}
		}
		if idle == 0 {
			assert.Zero(t, n)
		} else {
			assert.Equal(t, queries, n, "the idle connections of database/sql are all that the pool has")
		}
	}
}

// The packages work on a pool of pgx itself, where nothing is lent.
func TestAPoolOfPgx(t *testing.T) {
	t.Parallel()
	admin, schema := server(t, "DATABASE_URL"), unique("pgx")
	run(t, admin, "CREATE SCHEMA "+schema)
	pool, err := pgxpool.New(t.Context(), os.Getenv("DATABASE_URL")+"&pool_max_conns=2&search_path="+schema)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	db := sqldb.New(sqldb.Untyped(pgxdriver.New(pool)), database.Location{}, quiet)
	require.NoError(t, db.Migrate(release(t.Context(), later(postgres)...), allParts...))
	_, err = register(t, db, "shop", "abc")
	require.NoError(t, err)
	assert.Equal(t, []string{strconv.Itoa(len(migrations(t, database.DialectPostgres)) + len(later(postgres)))}, column(t, admin, `SELECT COUNT(*) FROM `+schema+`.gateway_schema`))
}
