package operations_test

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/contrib/river/operations"
	"github.com/gateway-go/gateway/mockserver"
)

// Neither River's schema nor that of the outbox is in the search path. An operation whose
// job is lost is found too.
func TestRiverAndTheOutboxHaveSchemasOfTheirOwn(t *testing.T) {
	t.Parallel()
	setup := poolOf(t)
	var rivers string
	require.NoError(t, setup.QueryRow(t.Context(), `SELECT current_schema()`).Scan(&rivers))
	outboxes := "o_" + strings.ToLower(rand.Text()[:16])
	_, err := setup.Exec(t.Context(), `CREATE SCHEMA `+outboxes)
	require.NoError(t, err)
	config := setup.Config().Copy()
	config.ConnConfig.RuntimeParams["search_path"] = "public"
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)

	c := operations.Config{Logger: quiet, PollInterval: time.Second, Client: mockserver.Run(t, mockserver.WithOpeningBalance(1000)).Client(gateway.WithAccount("shop"))}
	c.Location.InSchema = outboxes
	outbox, err := operations.New(pool, c, operations.RiverSchema(rivers))
	require.NoError(t, err)
	require.NoError(t, outbox.Migrate(t.Context()))
	done := make(chan string, 2)
	operations.OnResult(outbox, func(_ context.Context, _ pgx.Tx, r operations.TransferResult) error {
		done <- r.Operation.ExternalRef
		return r.Err
	})
	for _, ref := range []string{"payout-1", "payout-2"} {
		require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			_, err := outbox.InsertTx(t.Context(), tx, payout(ref, 100))
			return err
		}))
	}
	deleted, err := setup.Exec(t.Context(), `DELETE FROM river_job WHERE id = (SELECT MAX(id) FROM river_job)`)
	require.NoError(t, err)
	require.EqualValues(t, 1, deleted.RowsAffected())

	jobs := &river.Config{Logger: quiet, TestOnly: true, FetchCooldown: 10 * time.Millisecond, FetchPollInterval: 50 * time.Millisecond, Schema: rivers}
	require.NoError(t, outbox.Configure(jobs))
	client, err := river.NewClient(riverpgxv5.New(pool), jobs)
	require.NoError(t, err)
	require.NoError(t, client.Start(context.WithoutCancel(t.Context())))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 20*time.Second)
		defer cancel()
		assert.NoError(t, client.StopAndCancel(ctx))
	})
	assert.ElementsMatch(t, []string{"payout-1", "payout-2"}, []string{<-done, <-done})
}
