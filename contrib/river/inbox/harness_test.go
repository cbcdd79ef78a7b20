package inbox_test

import (
	"context"
	"crypto/rand"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/contrib/river/inbox"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/webhooktest"
)

var (
	quiet = slog.New(slog.DiscardHandler)
	keys  = []webhook.SigningKey{{Key: webhooktest.Secret()}}
)

// newDatabase creates a schema for the test, with River's tables and a merchant's
// table, and returns its connection string.
func newDatabase(t *testing.T) (url string) {
	t.Helper()
	if url = os.Getenv("DATABASE_URL"); url == "" {
		t.Skip("DATABASE_URL is not set: run ../../integration/with-postgres go test ./...")
	}
	schema := "t_" + strings.ToLower(rand.Text()[:16])
	admin, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	_, err = admin.Exec(t.Context(), `CREATE SCHEMA `+schema)
	require.NoError(t, err)
	require.NoError(t, admin.Close(t.Context()))
	url += "&search_path=" + schema
	pool := newPool(t, url)
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: quiet})
	require.NoError(t, err)
	_, err = migrator.Migrate(t.Context(), rivermigrate.DirectionUp, nil)
	require.NoError(t, err)
	// It has no unique constraint: only the inbox prevents a second row for an
	// event.
	_, err = pool.Exec(t.Context(), `CREATE TABLE effects (n BIGINT GENERATED ALWAYS AS IDENTITY, event_id TEXT NOT NULL, resource TEXT NOT NULL)`)
	require.NoError(t, err)
	return url
}

func newPool(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), url+"&pool_max_conns=24")
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// shop is one of a merchant's processes.
type shop struct {
	*testing.T

	pool   *pgxpool.Pool
	in     *inbox.Inbox
	rx     *webhook.Receiver
	client *river.Client[pgx.Tx]

	mu       sync.Mutex
	observed []webhook.Observation
}

// open starts a process. register adds its handlers; change alters the receiver's
// configuration.
func open(t *testing.T, url string, register func(*shop), change func(*webhook.Config)) *shop {
	t.Helper()
	s := &shop{T: t, pool: newPool(t, url)}
	var err error
	s.in, err = inbox.New(inbox.Config{Pool: s.pool, Logger: quiet, SweepInterval: time.Second, StuckAfter: 2 * time.Second})
	require.NoError(t, err)
	require.NoError(t, s.in.Migrate(t.Context()))
	cfg := webhook.Config{
		Keys: keys, Account: "shop", Store: s.in, Mode: webhook.Inbox, Workers: -1, Logger: quiet, HandleStale: true,
		Lease: 2 * time.Second, Backoff: func(int) time.Duration { return 20 * time.Millisecond },
		Observe: func(_ context.Context, o webhook.Observation) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.observed = append(s.observed, o)
		},
	}
	if change != nil {
		change(&cfg)
	}
	s.rx, err = webhook.New(cfg)
	require.NoError(t, err)
	register(s)
	config := &river.Config{Logger: quiet, FetchPollInterval: 100 * time.Millisecond, FetchCooldown: 10 * time.Millisecond, TestOnly: true}
	require.NoError(t, s.in.Configure(config, s.rx))
	s.client, err = river.NewClient(riverpgxv5.New(s.pool), config)
	require.NoError(t, err)
	require.NoError(t, s.client.Start(context.WithoutCancel(t.Context())))
	t.Cleanup(s.stop)
	return s
}

// store returns the inbox of the process's account.
func (s *shop) store() *inbox.Inbox {
	in, _ := s.in.For(s.rx.Account()).(*inbox.Inbox)
	return in
}

func (s *shop) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	assert.NoError(s, s.client.Stop(ctx))
	assert.NoError(s, s.rx.Shutdown(ctx))
}

// writes is a handler that writes a row.
func (s *shop) writes(ctx context.Context, tx pgx.Tx, e *webhook.Event) error {
	_, err := tx.Exec(ctx, `INSERT INTO effects (event_id, resource) VALUES ($1, $2)`, e.ID, e.ResourceID)
	return err
}

func (s *shop) deliver(kind webhook.Kind, id, resource string) webhook.Response {
	s.Helper()
	body := webhooktest.Event{Kind: kind, ID: id, ResourceID: resource}.Body()
	return s.rx.Receive(s.Context(), webhook.Delivery{Header: webhooktest.Sign(webhooktest.Secret(), time.Now(), body), Body: body})
}

// effects are the ids of the handled events, in the order of their transactions.
func (s *shop) effects() []string {
	s.Helper()
	rows, err := s.pool.Query(s.Context(), `SELECT event_id FROM effects ORDER BY n`)
	require.NoError(s, err)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(s, err)
	return ids
}

// job returns the newest job of an event.
func (s *shop) job(id string) *rivertype.JobRow {
	s.Helper()
	list, err := s.client.JobList(s.Context(), river.NewJobListParams().Kinds("gateway_webhook").Where(
		"args->>'key' = @key", river.NamedArgs{"key": "id " + id}).OrderBy(river.JobListOrderByID, river.SortOrderDesc))
	require.NoError(s, err)
	require.NotEmpty(s, list.Jobs)
	return list.Jobs[0]
}

func (s *shop) eventually(what string, ok func() bool) {
	s.Helper()
	require.Eventually(s, ok, 2*time.Minute, 20*time.Millisecond, what)
}

func (s *shop) state(id string, want rivertype.JobState) {
	s.Helper()
	s.eventually("job "+id+" "+string(want), func() bool { return s.job(id).State == want })
}
