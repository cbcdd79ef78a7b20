package database_test

import (
	"context"
	"database/sql"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	pgxdriver "github.com/gateway-go/gateway/contrib/pgx"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/sqldb"
)

// The code of docs/databases.md.

func openSQL(url string) (database.Driver[*sql.Tx], error) {
	db, err := sql.Open("pgx", url)
	if err != nil {
		return nil, err
	}
	db.SetMaxIdleConns(16) // with the default of two, every burst opens connections
	return database.Postgres(db), nil
}

func openPgx(ctx context.Context, url string) (database.Driver[pgx.Tx], error) {
	pool, err := pgxpool.New(ctx, url) // pool_max_conns is in the url
	if err != nil {
		return nil, err
	}
	return pgxdriver.New(pool), nil
}

func lend(pool *pgxpool.Pool) *sql.DB {
	return stdlib.OpenDBFromPool(pool) // keeps no idle connections: don't call SetMaxIdleConns
}

var billing = database.Location{InSchema: "billing", Schema: database.Expect}

func TestTheCodeOfTheGuide(t *testing.T) {
	t.Parallel()
	admin := server(t, "DATABASE_URL")
	run(t, admin, "CREATE SCHEMA billing") // no other test has it
	require.NoError(t, postgres.on(admin, database.Location{InSchema: "billing"}).Migrate(t.Context(), allParts...))
	url := os.Getenv("DATABASE_URL")

	one, err := openSQL(url)
	require.NoError(t, err)
	require.NoError(t, sqldb.New(sqldb.Untyped(one), billing, quiet).Migrate(t.Context(), allParts...))
	two, err := openPgx(t.Context(), url)
	require.NoError(t, err)
	require.NoError(t, sqldb.New(sqldb.Untyped(two), billing, quiet).Migrate(t.Context(), allParts...))
}
