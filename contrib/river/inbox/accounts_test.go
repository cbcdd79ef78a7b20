package inbox_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/contrib/river/inbox"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/sqlstore"
	"github.com/gateway-go/gateway/webhook/webhooktest"
)

const events = 80

// tenants starts a process with a receiver for each of these accounts, and returns
// the receivers by account. The handlers write the event's id after the account's
// name, and fail once for some events.
func tenants(t *testing.T, url string, accounts ...string) map[string]*webhook.Receiver {
	t.Helper()
	pool := newPool(t, url)
	in, err := inbox.New(inbox.Config{Pool: pool, Logger: quiet, SweepInterval: time.Second, StuckAfter: 2 * time.Second})
	require.NoError(t, err)
	require.NoError(t, in.Migrate(t.Context()))
	byAccount := map[string]*webhook.Receiver{}
	var receivers []*webhook.Receiver
	for _, account := range accounts {
		rx, err := webhook.New(webhook.Config{
			Keys: keys, Account: account, Store: in, Mode: webhook.Inbox, Workers: -1, Logger: quiet, HandleStale: true,
			Lease: 2 * time.Second, Backoff: func(int) time.Duration { return 20 * time.Millisecond },
		})
		require.NoError(t, err)
		webhook.OnOther(rx, inbox.HandleTx(in, func(ctx context.Context, tx pgx.Tx, e *webhook.Event) error {
			_, err := tx.Exec(ctx, `INSERT INTO effects (event_id, resource) VALUES ($1, $2)`, account+" "+e.ID, e.ResourceID)
			switch {
			case err != nil:
				return err
			case e.ID == "evt_dead":
				return webhook.Permanent(fmt.Errorf("no such order"))
			case e.Attempt == 1 && strings.HasSuffix(e.ID, "7"):
				return fmt.Errorf("no connection to the warehouse")
			default:
				return nil
			}
		}))
		byAccount[account] = rx
		receivers = append(receivers, rx)
	}
	config := &river.Config{Logger: quiet, FetchPollInterval: 100 * time.Millisecond, FetchCooldown: 10 * time.Millisecond, TestOnly: true}
	require.NoError(t, in.Configure(config, receivers...))
	client, err := river.NewClient(riverpgxv5.New(pool), config)
	require.NoError(t, err)
	require.NoError(t, client.Start(context.WithoutCancel(t.Context())))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		assert.NoError(t, client.Stop(ctx))
		for _, rx := range receivers {
			assert.NoError(t, rx.Shutdown(ctx))
		}
	})
	return byAccount
}

func deliver(t *testing.T, rx *webhook.Receiver, id string) int {
	t.Helper()
	body := webhooktest.Event{Kind: webhook.TransactionPaid, ID: id, ResourceID: "tx_" + id}.Body()
	return rx.Receive(t.Context(), webhook.Delivery{Header: webhooktest.Sign(webhooktest.Secret(), time.Now(), body), Body: body}).Status
}

func drained(t *testing.T, receivers ...*webhook.Receiver) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, rx := range receivers {
			n, err := rx.Counts(t.Context())
			require.NoError(t, err)
			if n.Waiting+n.Claimed > 0 {
				return false
			}
		}
		return true
	}, 2*time.Minute, 20*time.Millisecond)
}

// Two companies share River's tables and the events'. The events of both have the
// same ids and resources. Each has a process of its own, or one process serves both.
func TestTwoAccountsShareRiver(t *testing.T) {
	t.Parallel()
	for name, processes := range map[string][][]string{
		"a process for each": {{"shop-br"}, {"Shop.MX"}},
		"one process":        {{"shop-br", "Shop.MX"}},
		"both kinds":         {{"shop-br"}, {"shop-br", "Shop.MX"}, {"Shop.MX"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := newDatabase(t)
			var all []*webhook.Receiver
			last := map[string]*webhook.Receiver{}
			for _, accounts := range processes {
				for account, rx := range tenants(t, url, accounts...) {
					all = append(all, rx)
					last[account] = rx
				}
			}
			want := map[string]int{}
			for i := range events {
				for account, rx := range last {
					id := fmt.Sprintf("evt_%d", i)
					want[account+" "+id] = 1
					assert.Equal(t, 200, deliver(t, rx, id))
					assert.Equal(t, 200, deliver(t, rx, id), "a duplicate")
				}
			}
			for _, rx := range last {
				assert.Equal(t, 200, deliver(t, rx, "evt_dead"))
			}
			drained(t, all...)
			pool := newPool(t, url)
			effects := func() map[string]int {
				rows, err := pool.Query(t.Context(), `SELECT event_id FROM effects`)
				require.NoError(t, err)
				ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
				require.NoError(t, err)
				got := map[string]int{}
				for _, id := range ids {
					got[id]++
				}
				return got
			}
			assert.Equal(t, want, effects())
			for _, rx := range last {
				n, err := rx.Counts(t.Context())
				require.NoError(t, err)
				assert.Equal(t, webhook.Counts{Dead: 1}, n)
			}

			// A dead letter is requeued in its own account.
			n, err := last["Shop.MX"].Requeue(t.Context(), "id evt_dead")
			require.NoError(t, err)
			assert.Equal(t, 1, n)
			require.Eventually(t, func() bool {
				letters, err := last["Shop.MX"].DeadLetters(t.Context(), webhook.DeadLetterQuery{})
				require.NoError(t, err)
				return len(letters) == 1 && letters[0].Attempts == 1
			}, time.Minute, 20*time.Millisecond)
			n, err = last["shop-br"].Discard(t.Context(), "id evt_dead")
			require.NoError(t, err)
			assert.Equal(t, 1, n)
		})
	}
}

func TestEachAccountHasAQueue(t *testing.T) {
	t.Parallel()
	pool := newPool(t, newDatabase(t))
	in, err := inbox.New(inbox.Config{Pool: pool, Logger: quiet})
	require.NoError(t, err)
	rx := func(account string) *webhook.Receiver {
		rx, err := webhook.New(webhook.Config{Keys: keys, Account: account, Store: in, Mode: webhook.Inbox, Workers: -1, Logger: quiet})
		require.NoError(t, err)
		return rx
	}
	require.NoError(t, in.Migrate(t.Context()))
	long := strings.Repeat("x", 64)
	config := &river.Config{}
	require.NoError(t, in.Configure(config, rx("shop-br"), rx("shop-mx"), rx("Shop.AR"), rx(long)))
	names := map[string]bool{}
	for _, account := range []string{"shop-br", "shop-mx", "Shop.AR", long} {
		name := in.QueueOf(gateway.Account{Name: account})
		assert.Contains(t, config.Queues, name)
		names[name] = true
	}
	assert.Len(t, names, 4)
	assert.True(t, names["gateway_webhooks_shop-br"] && names["gateway_webhooks_shop-mx"])
	_, err = river.NewClient(riverpgxv5.New(pool), config)
	require.NoError(t, err, "River allows the names")

	require.ErrorContains(t, in.Configure(&river.Config{}), "needs a receiver")
	require.ErrorContains(t, in.Configure(&river.Config{}, rx("shop-mx"), rx("shop-mx")), "two receivers have the account shop-mx")
}

// Events that a plain sqlstore has stored get jobs in the queues of their accounts.
func TestTheEventsOfEveryAccountAreAdopted(t *testing.T) {
	t.Parallel()
	url := newDatabase(t)
	pool := newPool(t, url)
	in, err := inbox.New(inbox.Config{Pool: pool, Logger: quiet})
	require.NoError(t, err)
	require.NoError(t, in.Migrate(t.Context()))
	accounts := []gateway.Account{{Name: "shop-br"}, {Name: "shop-mx"}}
	for _, account := range accounts {
		plain, ok := in.Store.For(account).(*sqlstore.Store[pgx.Tx])
		require.True(t, ok)
		body := webhooktest.Event{Kind: webhook.TransactionPaid, ID: "evt_1", ResourceID: "tx_1"}.Body()
		_, err := plain.Put(t.Context(), webhook.Record{
			Key: "id evt_1", EventID: "evt_1", Kind: webhook.TransactionPaid, Resource: "transaction/tx_1", Signed: true, Body: body,
		})
		require.NoError(t, err)
	}
	n, err := in.Adopt(t.Context(), accounts...)
	require.NoError(t, err)
	assert.Equal(t, 2, n)
	n, err = in.Adopt(t.Context(), accounts...)
	require.NoError(t, err)
	assert.Zero(t, n)
	both := tenants(t, url, "shop-br", "shop-mx")
	drained(t, both["shop-br"], both["shop-mx"])
	var effects int
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT COUNT(DISTINCT event_id) FROM effects`).Scan(&effects))
	assert.Equal(t, 2, effects)
}

// A job whose process died is rescued although an event with the same key, of another
// account, is being handled.
func TestTheSweepTellsAccountsApart(t *testing.T) {
	t.Parallel()
	url := newDatabase(t)
	pool := newPool(t, url)
	in, err := inbox.New(inbox.Config{Pool: pool, Logger: quiet})
	require.NoError(t, err)
	require.NoError(t, in.Migrate(t.Context()))
	for _, account := range []string{"shop-br", "shop-mx"} {
		body := webhooktest.Event{Kind: webhook.TransactionPaid, ID: "evt_1", ResourceID: "tx_1"}.Body()
		e, err := in.For(gateway.Account{Name: account}).Put(t.Context(), webhook.Record{
			Key: "id evt_1", EventID: "evt_1", Kind: webhook.TransactionPaid, Resource: "transaction/tx_1", Signed: true, Body: body,
		})
		require.NoError(t, err)
		assert.True(t, e.Added, account)
	}
	_, err = pool.Exec(t.Context(), `UPDATE river_job SET state = 'running', attempted_at = now() - interval '1 hour', attempt = 1`)
	require.NoError(t, err)
	brazil, _ := in.Store.For(gateway.Account{Name: "shop-br"}).(*sqlstore.Store[pgx.Tx])
	claim, _, err := brazil.Claim(t.Context(), "id evt_1", time.Hour)
	require.NoError(t, err)
	require.NotNil(t, claim)
	drained(t, tenants(t, url, "shop-mx")["shop-mx"])
	var effects string
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT string_agg(event_id, ',') FROM effects`).Scan(&effects))
	assert.Equal(t, "shop-mx evt_1", effects)
	var running string
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT string_agg(args->>'account', ',') FROM river_job WHERE kind = 'gateway_webhook' AND state = 'running'`).Scan(&running))
	assert.Equal(t, "shop-br", running)
}

// No worker would run the job of an event without an account.
func TestAnInboxWithoutAnAccountStoresNothing(t *testing.T) {
	t.Parallel()
	s := open(t, newDatabase(t), handleEverything, nil)
	const message = "use the store of a receiver, or call For"
	_, err := s.in.Put(t.Context(), webhook.Record{Key: "id e1"})
	require.ErrorContains(t, err, message)
	_, err = s.in.PutDead(t.Context(), webhook.Record{Key: "id e1"}, "a test")
	require.ErrorContains(t, err, message)
	_, err = s.in.Requeue(t.Context(), "id e1")
	require.ErrorContains(t, err, message)
	_, err = s.in.Adopt(t.Context())
	require.ErrorContains(t, err, "Adopt needs the accounts")
	n, err := s.rx.Counts(t.Context())
	require.NoError(t, err)
	assert.Equal(t, webhook.Counts{}, n)
}
