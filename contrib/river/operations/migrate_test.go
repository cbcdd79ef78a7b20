package operations_test

import (
	"crypto/rand"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/contrib/river/operations"
)

// A role that may only read and write the tables registers its account.
func TestARoleWithoutCreateMigrates(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	var schema string
	require.NoError(t, w.pool.QueryRow(t.Context(), `SELECT current_schema()`).Scan(&schema))
	role := "role_" + strings.ToLower(rand.Text()[:16])
	_, err := w.pool.Exec(t.Context(), fmt.Sprintf(`CREATE ROLE %[1]s LOGIN; GRANT USAGE ON SCHEMA %[2]s TO %[1]s;
		GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %[2]s TO %[1]s; GRANT USAGE ON ALL SEQUENCES IN SCHEMA %[2]s TO %[1]s`,
		role, schema))
	require.NoError(t, err)
	config := w.pool.Config().Copy()
	config.ConnConfig.User = role
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	_, err = pool.Exec(t.Context(), `CREATE TABLE mine ()`)
	require.ErrorContains(t, err, "permission denied")
	w.pool = pool
	b := w.beside("b") // migrates
	b.work(b.outbox)
	b.insert(payout("payout-1", 100))
	b.reaches("payout-1", operations.Done)
}
