package inbox_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/contrib/river/inbox"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/webhooktest"
)

// Each payment arrives signed and unsigned at once, and is handled once, with
// every setting of the database.
func TestPaymentsAreHandledOnceWithEverySettingOfTheDatabase(t *testing.T) {
	t.Parallel()
	for name, params := range map[string]url.Values{
		"repeatable read, no flush": {"default_transaction_isolation": {"repeatable read"}, "synchronous_commit": {"off"}},
		"serializable, timeouts": {
			"default_transaction_isolation": {"serializable"}, "statement_timeout": {"5s"}, "lock_timeout": {"100ms"},
			"idle_in_transaction_session_timeout": {"5s"},
		},
		"exec":            {"default_query_exec_mode": {"exec"}},
		"simple protocol": {"default_query_exec_mode": {"simple_protocol"}},
		"cache describe":  {"default_query_exec_mode": {"cache_describe"}},
		"describe exec":   {"default_query_exec_mode": {"describe_exec"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const payments, senders = 20, 4
			s := open(t, newDatabase(t)+"&"+strings.ReplaceAll(params.Encode(), "+", "%20"), handleEverything, nil)
			deliveries := make(chan webhook.Record, 3*payments)
			for i := range payments {
				id := fmt.Sprintf("e%d", i)
				signed := webhook.Record{
					Key: "id " + id, EventID: id, Kind: webhook.TransactionPaid, Resource: "transaction/" + id, Fact: "paid " + id, Signed: true,
					Body: []byte(`{"id":"` + id + `","event":"transaction","data":{"id":"` + id + `","event_type":"transaction.paid"}}`),
				}
				confirmed := signed
				confirmed.Key, confirmed.EventID, confirmed.Signed = "fact paid "+id, "c"+id, false
				deliveries <- signed
				deliveries <- confirmed
				deliveries <- signed
			}
			close(deliveries)
			var all sync.WaitGroup
			for range senders {
				all.Go(func() {
					for rec := range deliveries {
						_, err := s.store().Put(t.Context(), rec)
						assert.NoError(t, err)
					}
				})
			}
			all.Wait()
			s.eventually("all payments", func() bool {
				n, err := s.rx.Counts(t.Context())
				return assert.NoError(t, err) && n.Waiting == 0 && n.Claimed == 0
			})
			assert.Len(t, s.effects(), payments)
		})
	}
}

// Requeue changes the event and its job or neither, so it can be repeated.
func TestARequeueThatFailsChangesNothing(t *testing.T) {
	t.Parallel()
	s := open(t, newDatabase(t), handleEverything, nil)
	rec := webhook.Record{
		Key: "id e1", EventID: "e1", Kind: webhook.TransactionPaid, Resource: "transaction/e1", Signed: true,
		Body: []byte(`{"id":"e1","event":"transaction","data":{"id":"e1","event_type":"transaction.paid"}}`),
	}
	_, err := s.store().PutDead(t.Context(), rec, "a test")
	require.NoError(t, err)
	refuse := func(statement string) {
		_, err := s.pool.Exec(t.Context(), statement)
		require.NoError(t, err)
	}
	refuse(`ALTER TABLE river_job ADD CONSTRAINT no_requeue CHECK (kind <> 'gateway_webhook') NOT VALID`)
	_, err = s.store().Requeue(t.Context(), "id e1")
	require.Error(t, err)
	dead, err := s.rx.DeadLetters(t.Context(), webhook.DeadLetterQuery{})
	require.NoError(t, err)
	require.Len(t, dead, 1, "still a dead letter")
	refuse(`ALTER TABLE river_job DROP CONSTRAINT no_requeue`)
	n, err := s.store().Requeue(t.Context(), "id e1")
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	s.eventually("the event is handled", func() bool { return len(s.effects()) == 1 })
}

// Behind PgBouncer in transaction mode the inbox works with the mode exec of
// pgx, and River, whose notifications the pooler does not pass on, with
// PollOnly. Without exec Migrate names it.
func TestTheInboxBehindPgBouncer(t *testing.T) {
	t.Parallel()
	pooler := os.Getenv("PGBOUNCER_URL")
	if pooler == "" {
		t.Skip("PGBOUNCER_URL is not set: run ../../integration/with-postgres ../../integration/with-pgbouncer go test ./...")
	}
	direct, err := url.Parse(newDatabase(t))
	require.NoError(t, err)
	schema := direct.Query().Get("search_path")
	config := inbox.Config{Pool: newPool(t, pooler), Schema: schema, Logger: quiet}
	var in *inbox.Inbox
	for range 20 { // the pooler may give a connection the same session again; a process checks it once
		in, err = inbox.New(config)
		require.NoError(t, err)
		if err = in.Migrate(t.Context()); err != nil {
			break
		}
	}
	require.ErrorContains(t, err, "default_query_exec_mode=exec")

	config.Pool = newPool(t, pooler+"&default_query_exec_mode=exec")
	in, err = inbox.New(config)
	require.NoError(t, err)
	require.NoError(t, in.Migrate(t.Context()))
	rx, err := webhook.New(webhook.Config{Keys: keys, Account: "shop", Store: in, Mode: webhook.Inbox, Workers: -1, Logger: quiet})
	require.NoError(t, err)
	webhook.OnOther(rx, inbox.HandleTx(in, func(ctx context.Context, tx pgx.Tx, e *webhook.Event) error {
		_, err := tx.Exec(ctx, `INSERT INTO `+schema+`.effects (event_id, resource) VALUES ($1, $2)`, e.ID, e.ResourceID)
		return err
	}))
	jobs := &river.Config{Logger: quiet, Schema: schema, PollOnly: true, FetchPollInterval: 100 * time.Millisecond, TestOnly: true}
	require.NoError(t, in.Configure(jobs, rx))
	client, err := river.NewClient(riverpgxv5.New(config.Pool), jobs)
	require.NoError(t, err)
	require.NoError(t, client.Start(context.WithoutCancel(t.Context())))
	const events = 20
	for i := range events {
		id := fmt.Sprintf("e%d", i)
		body := webhooktest.Event{Kind: webhook.TransactionPaid, ID: id, ResourceID: id}.Body()
		got := rx.Receive(t.Context(), webhook.Delivery{Header: webhooktest.Sign(webhooktest.Secret(), time.Now(), body), Body: body})
		assert.Equal(t, http.StatusOK, got.Status)
	}
	assert.Eventually(t, func() bool {
		n, err := rx.Counts(t.Context())
		return assert.NoError(t, err) && n.Waiting == 0 && n.Claimed == 0
	}, 2*time.Minute, 20*time.Millisecond)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 20*time.Second)
	defer cancel()
	require.NoError(t, client.Stop(ctx))
	require.NoError(t, rx.Shutdown(ctx))
	var effects int
	require.NoError(t, config.Pool.QueryRow(t.Context(), `SELECT COUNT(DISTINCT event_id) FROM `+schema+`.effects`).Scan(&effects))
	assert.Equal(t, events, effects)
}
