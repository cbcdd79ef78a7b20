package operations_test

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/contrib/river/operations"
	"github.com/gateway-go/gateway/mockserver"
)

// date turns the tables into those of the last release whose times are of the type
// timestamptz.
func (w *world) date() {
	w.Helper()
	_, err := w.pool.Exec(w.Context(), `
DROP INDEX gateway_operations_due, gateway_operations_unerased;
ALTER TABLE gateway_operations DROP COLUMN digest;
ALTER TABLE gateway_operations_accounts DROP COLUMN digest_key;
ALTER TABLE gateway_operations
	ALTER COLUMN lease_until TYPE timestamptz USING to_timestamp(lease_until / 1000.0), ALTER COLUMN due_at TYPE timestamptz USING to_timestamp(due_at / 1000.0),
	ALTER COLUMN created_at TYPE timestamptz USING to_timestamp(created_at / 1000.0), ALTER COLUMN updated_at TYPE timestamptz USING to_timestamp(updated_at / 1000.0);
ALTER TABLE gateway_operations ALTER COLUMN state SET DEFAULT 'waiting', ALTER COLUMN progress SET DEFAULT '{}', ALTER COLUMN claims SET DEFAULT 0,
	ALTER COLUMN due_at SET DEFAULT now(), ALTER COLUMN created_at SET DEFAULT now(), ALTER COLUMN updated_at SET DEFAULT now();
ALTER TABLE gateway_operations_accounts ALTER COLUMN created_at TYPE timestamptz USING to_timestamp(created_at / 1000.0);
ALTER TABLE gateway_operations_accounts ALTER COLUMN created_at SET DEFAULT now();
CREATE INDEX gateway_operations_open ON gateway_operations (due_at) WHERE state IN ('waiting', 'working', 'sent', 'decided');`)
	require.NoError(w, err)
}

// downgrade turns the tables into those of the last release without accounts.
func (w *world) downgrade() {
	w.Helper()
	w.date()
	_, err := w.pool.Exec(w.Context(), `
DROP TABLE gateway_operations_accounts;
DROP INDEX gateway_operations_key, gateway_operations_in_flight, gateway_operations_resource, gateway_operations_open, gateway_operations_unfinished;
ALTER TABLE gateway_operations DROP COLUMN account, DROP COLUMN scope;
ALTER TABLE gateway_operations RENAME COLUMN claims TO fence;
ALTER TABLE gateway_operations ADD CONSTRAINT gateway_operations_kind_key_key UNIQUE (kind, key);
CREATE UNIQUE INDEX gateway_operations_in_flight ON gateway_operations (resource) WHERE state IN ('working', 'sent', 'ambiguous');
CREATE INDEX gateway_operations_resource ON gateway_operations (resource, id) WHERE resource IS NOT NULL;
CREATE INDEX gateway_operations_open ON gateway_operations (due_at) WHERE state IN ('waiting', 'working', 'sent', 'decided');
CREATE INDEX gateway_operations_unfinished ON gateway_operations (state, id) WHERE state <> 'done';
UPDATE river_job SET queue = 'gateway_operations', args = args - 'account' WHERE kind IN ('gateway_operation', 'gateway_operations_sweep');
DELETE FROM river_queue;`)
	require.NoError(w, err)
}

// older returns a merchant with a table of the last release without accounts. It
// has an operation that is done, one in doubt, one that waits for it, one that
// was never sent and one that a person must decide.
func older(t *testing.T, lifetime time.Duration) (w *world, charges []*gateway.Transaction) {
	t.Helper()
	dialect := mockserver.Document
	if lifetime > 0 {
		dialect = mockserver.Live
	}
	w = open(t, func(c *operations.Config) { c.MaxSends, c.KeyLifetime = 2, lifetime }, mockserver.WithDialect(dialect))
	charges = []*gateway.Transaction{w.paid(1000), w.paid(1000)}
	require.NoError(t, w.gw.Faults.Add(mockserver.Status(503).On("transfers.create")))
	stop := w.work(w.outbox)
	done := operations.CreateTransaction(order("done", 500))
	w.insert(done, payout("stuck", 900))
	w.reaches("done", operations.Done)
	w.reaches("stuck", operations.Ambiguous)
	stop()
	params, err := json.Marshal(done)
	require.NoError(t, err)
	_, err = w.pool.Exec(t.Context(), `UPDATE gateway_operations SET params = $1 WHERE key = 'done'`, string(params))
	require.NoError(t, err)

	require.NoError(t, w.gw.Faults.Add(mockserver.LoseResponse().On("transactions.refund").Times(1), mockserver.Status(503).On("transactions.refund")))
	w.config.SettleAfter, w.config.MaxSends = time.Minute, 0 // the outcome stays unknown
	w.outbox = w.newOutbox()
	stop = w.work(w.outbox)
	w.insert(operations.Refund{Key: "in doubt", TransactionID: charges[0].ID, Amount: 300})
	require.Eventually(t, func() bool { return w.gw.Requests.Count("transactions.refund") > 0 }, time.Minute, 10*time.Millisecond)
	stop()
	w.gw.Faults.Clear()
	w.reaches("in doubt", operations.Sent)
	w.insert(
		operations.Refund{Key: "behind it", TransactionID: charges[0].ID, Amount: 200},
		operations.Refund{Key: "waiting", TransactionID: charges[1].ID, Amount: 400},
	)
	w.downgrade()
	return w, charges
}

// hurry makes all operations due.
func (w *world) hurry() {
	w.Helper()
	_, err := w.pool.Exec(w.Context(), `UPDATE gateway_operations SET due_at = 0;
		UPDATE river_job SET scheduled_at = now(), state = 'available' WHERE state IN ('scheduled', 'retryable')`)
	require.NoError(w, err)
}

// The operations of an older table belong to the first account that opens it, and
// continue where they were.
func TestAnOlderTableBelongsToTheFirstAccount(t *testing.T) {
	t.Parallel()
	w, charges := older(t, 0)
	w.config.SettleAfter = time.Second
	w.outbox = w.newOutbox() // migrates
	var params string
	require.NoError(t, w.pool.QueryRow(t.Context(), `SELECT params::text FROM gateway_operations WHERE key = 'done'`).Scan(&params))
	assert.Equal(t, "null", params, "it is erased")
	assert.True(t, w.insert(operations.CreateTransaction(order("done", 500)))[0].Existing)
	b := w.beside("b")
	list, err := b.outbox.List(t.Context(), operations.Query{})
	require.NoError(t, err)
	assert.Empty(t, list)
	b.insert(payout("stuck", 77), operations.CreateTransaction(order("done", 88)))

	// A worker of the older release can't claim, nor a program of it insert.
	_, err = w.pool.Exec(t.Context(), `UPDATE gateway_operations SET fence = fence + 1`)
	require.ErrorContains(t, err, `column "fence" does not exist`)
	_, err = w.pool.Exec(t.Context(), `INSERT INTO gateway_operations (kind, key, params) VALUES ('transfers.create', 'new', '{}') ON CONFLICT (kind, key) DO NOTHING`)
	require.ErrorContains(t, err, "no unique or exclusion constraint")

	var left int
	require.NoError(t, w.pool.QueryRow(t.Context(), `SELECT count(*) FROM river_job
		WHERE queue = 'gateway_operations' AND state IN ('available', 'scheduled', 'retryable')`).Scan(&left))
	assert.Zero(t, left, "the jobs are in the account's queue")
	// One that ran during the migration was put back by the older release.
	_, err = w.pool.Exec(t.Context(), `UPDATE river_job SET queue = 'gateway_operations', args = args - 'account'
		WHERE id = (SELECT job_id FROM gateway_operations WHERE key = 'waiting')`)
	require.NoError(t, err)
	w.hurry()

	w.work(w.outbox, b.outbox)
	for key, want := range map[string]string{"in doubt": "300", "behind it": "200", "waiting": "400"} {
		e := w.reaches(key, operations.Done)
		value, _ := w.result(key)
		assert.Equal(t, want, value, key)
		assert.Equal(t, 1, e.Sends, key)
		assert.Equal(t, "shop", e.Account)
	}
	assert.Equal(t, int64(500), w.refunded(charges[0].ID))
	assert.Equal(t, int64(400), w.refunded(charges[1].ID))
	b.reaches("stuck", operations.Done)
	b.reaches("done", operations.Done)
	assert.Equal(t, map[string][]int64{"stuck": {77}}, b.payouts())
	stuck := w.reaches("stuck", operations.Ambiguous)
	require.NoError(t, w.outbox.Resolve(t.Context(), stuck.ID, operations.Resolution{Decision: operations.SendAgain, By: "Rui"}))
	w.reaches("stuck", operations.Done)
	assert.Equal(t, map[string][]int64{"stuck": {900}}, w.payouts())
}

// The times of a table of the last release become Unix milliseconds, and nothing
// else changes. Its processes can neither insert nor claim.
func TestTimesBecomeMilliseconds(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	charge := w.paid(1000)
	require.NoError(t, w.gw.Faults.Add(mockserver.Status(503).On("transfers.create")))
	w.config.MaxSends = 2
	w.outbox = w.newOutbox()
	stop := w.work(w.outbox)
	w.insert(operations.CreateTransaction(order("done", 500)), payout("stuck", 900))
	w.reaches("done", operations.Done)
	w.reaches("stuck", operations.Ambiguous)
	stop()
	w.insert(operations.Refund{Key: "waiting", TransactionID: charge.ID, Amount: 300})
	before, err := w.outbox.List(t.Context(), operations.Query{})
	require.NoError(t, err)
	_, err = w.pool.Exec(t.Context(), `UPDATE gateway_operations SET lease_until = due_at + 1 WHERE key = 'waiting'`)
	require.NoError(t, err)
	w.date()
	w.outbox = w.newOutbox() // migrates
	after, err := w.outbox.List(t.Context(), operations.Query{})
	require.NoError(t, err)
	assert.Equal(t, before, after)
	var lease bool
	require.NoError(t, w.pool.QueryRow(t.Context(), `SELECT lease_until = due_at + 1 FROM gateway_operations WHERE key = 'waiting'`).Scan(&lease))
	assert.True(t, lease)
	require.NoError(t, w.outbox.Migrate(t.Context()), "a second time")

	_, err = w.pool.Exec(t.Context(), `UPDATE gateway_operations SET claims = claims + 1, lease_until = now() + $1, updated_at = now() WHERE due_at <= now()`, time.Minute)
	require.ErrorContains(t, err, "bigint")
	_, err = w.pool.Exec(t.Context(), `INSERT INTO gateway_operations (account, scope, kind, key, params) VALUES ('shop', 'shop', 'transfers.create', 'new', '{}')`)
	require.ErrorContains(t, err, "not-null constraint")

	w.work(w.outbox)
	w.reaches("waiting", operations.Done)
	assert.Equal(t, int64(300), w.refunded(charge.ID))
	value, _ := w.result("done")
	assert.NotEmpty(t, value)
}

// Operations of an older table keep their idempotency keys: the gateway may have
// seen them already.
func TestAnOlderTableKeepsItsIdempotencyKeys(t *testing.T) {
	t.Parallel()
	w, charges := older(t, time.Hour)
	var stored, waiting, params string
	require.NoError(t, w.pool.QueryRow(t.Context(), `SELECT progress->>'send_key' FROM gateway_operations WHERE key = 'in doubt'`).Scan(&stored))
	require.NotEmpty(t, stored)
	require.NoError(t, w.pool.QueryRow(t.Context(), `SELECT params::text FROM gateway_operations WHERE key = 'waiting'`).Scan(&params))
	sum := sha256.New()
	for _, part := range []string{"transactions.refund", "waiting", params, "400"} {
		_, _ = fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	waiting = base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum.Sum(nil)[:16])

	var mu sync.Mutex
	keys := make(map[string]bool)
	w.config.MaxBackoff, w.config.SettleAfter = 50*time.Millisecond, time.Second
	w.through(roundTripper(func(req *http.Request) (*http.Response, error) {
		if key := req.Header.Get("Idempotency-Key"); key != "" && strings.HasSuffix(req.URL.Path, "/refund") {
			mu.Lock()
			keys[key] = true
			mu.Unlock()
		}
		return w.gw.Transport().RoundTrip(req)
	}))
	w.hurry()
	w.work(w.outbox)
	for _, key := range []string{"in doubt", "behind it", "waiting"} {
		w.reaches(key, operations.Done)
	}
	assert.Equal(t, int64(500), w.refunded(charges[0].ID))
	assert.Equal(t, int64(400), w.refunded(charges[1].ID))
	mu.Lock()
	defer mu.Unlock()
	assert.True(t, keys[stored], "the repeat has the stored key")
	assert.True(t, keys[waiting], "an operation that was not sent has the key that the older release would have sent")
}

// Two accounts open an older table at once, from eight processes: one gets all the
// operations, and none is lost.
func TestExactlyOneAccountGetsTheOlderOperations(t *testing.T) {
	t.Parallel()
	for range 5 {
		w := open(t, nil)
		var ops []operations.Operation
		for i := range 20 {
			ops = append(ops, payout(fmt.Sprintf("payout-%d", i), 100))
		}
		w.insert(ops...)
		w.downgrade()
		var wg sync.WaitGroup
		var entries [2]atomic.Int64
		start := make(chan struct{})
		for i := range 8 {
			config := w.config
			if i%4 >= 2 {
				config.Schema = currentSchema(w) // the same table under another name
			}
			config.Client = w.client(gateway.WithAccount([]string{"a", "b"}[i%2]))
			outbox, err := operations.New(w.pool, config)
			require.NoError(t, err)
			wg.Go(func() {
				<-start
				err := outbox.Migrate(t.Context())
				var list []*operations.Entry
				if err == nil {
					list, err = outbox.List(t.Context(), operations.Query{})
				}
				if err != nil {
					t.Error(err)
				}
				entries[i%2].Add(int64(len(list)))
			})
		}
		close(start)
		wg.Wait()
		got := []int64{entries[0].Load(), entries[1].Load()}
		assert.ElementsMatch(t, []int64{0, 80}, got)
	}
}

func currentSchema(w *world) (schema string) {
	w.Helper()
	require.NoError(w, w.pool.QueryRow(w.Context(), `SELECT current_schema()`).Scan(&schema))
	return schema
}

// An operator paused the queue, for example to restore a backup, and upgrades
// before resuming it.
func TestAPausedQueueStaysPaused(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	w.insert(payout("payout-1", 100))
	w.downgrade()
	_, err := w.pool.Exec(t.Context(), `INSERT INTO river_queue (name, created_at, metadata, paused_at, updated_at) VALUES ('gateway_operations', now(), '{}', now(), now())`)
	require.NoError(t, err)
	w.outbox = w.newOutbox()
	w.work(w.outbox)
	client, err := river.NewClient(riverpgxv5.New(w.pool), &river.Config{Logger: quiet})
	require.NoError(t, err)
	require.Eventually(t, func() bool { // the workers started after the migration
		queue, err := client.QueueGet(t.Context(), w.outbox.Queue())
		return assert.NoError(t, err) && queue.UpdatedAt.After(*queue.PausedAt)
	}, time.Minute, 10*time.Millisecond)
	list, err := w.outbox.List(t.Context(), operations.Query{})
	require.NoError(t, err)
	assert.Equal(t, operations.Waiting, list[0].State)
	require.NoError(t, client.QueueResume(t.Context(), w.outbox.Queue(), nil))
	w.reaches("payout-1", operations.Done)
}

// A role that may only read and write the tables registers its account.
func TestARoleWithoutCreateMigrates(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	role := "role_" + strings.ToLower(rand.Text()[:16])
	_, err := w.pool.Exec(t.Context(), fmt.Sprintf(`CREATE ROLE %[1]s LOGIN; GRANT USAGE ON SCHEMA %[2]s TO %[1]s;
		GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %[2]s TO %[1]s; GRANT USAGE ON ALL SEQUENCES IN SCHEMA %[2]s TO %[1]s`,
		role, currentSchema(w)))
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
