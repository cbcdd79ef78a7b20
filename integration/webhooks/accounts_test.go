package webhooks_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/sqlstore"
	"github.com/gateway-go/gateway/webhook/webhooktest"
)

// tenant is a company with an account at the gateway.
type tenant struct {
	account, key string
	secret       gateway.Secret
}

var (
	brazil = tenant{"shop-br", "sk_of_brazil", gateway.NewSecret("whsec_of_the_shop_in_brazil")}
	mexico = tenant{"shop-mx", "sk_of_mexico", gateway.NewSecret("whsec_of_the_shop_in_mexico")}
)

func (c tenant) client(t *testing.T, baseURL string) *gateway.Client {
	t.Helper()
	client, err := gateway.New(baseURL, gateway.BearerToken(c.key), gateway.WithAccount(c.account))
	require.NoError(t, err)
	return client
}

const production = "https://gateway.invalid"

// receiver returns a receiver of the tenant, as a process of its own would have it.
// Its handlers write the events to the merchant's table, after the tenant's name.
func (c tenant) receiver(t *testing.T, s *sqlstore.Store[*sql.Tx], effects string) *webhook.Receiver {
	t.Helper()
	rx, err := webhook.New(webhook.Config{
		Keys: []webhook.SigningKey{{Key: c.secret}}, API: c.client(t, production), Store: s, Mode: webhook.Inbox, Logger: quiet,
		HandleStale: true, PollInterval: 20 * time.Millisecond, Workers: 4, Backoff: func(int) time.Duration { return 0 },
	})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, rx.Shutdown(context.WithoutCancel(t.Context()))) })
	webhook.OnOther(rx, sqlstore.HandleTx(s, func(ctx context.Context, tx *sql.Tx, e *webhook.Event) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO "+effects+" (event_id) VALUES ($1)", c.account+" "+e.ID)
		if err == nil && e.Attempt == 1 && strings.HasSuffix(e.ID, "7") {
			err = errors.New("no connection to the warehouse")
		}
		return err
	}))
	return rx
}

func (c tenant) deliver(t *testing.T, rx *webhook.Receiver, id string) {
	t.Helper()
	body := webhooktest.Event{Kind: webhook.TransactionPaid, ID: id, ResourceID: "tx_" + id}.Body()
	got := rx.Receive(t.Context(), webhook.Delivery{Header: webhooktest.Sign(c.secret, time.Now(), body), Body: body})
	assert.Equal(t, 200, got.Status)
}

// Two companies share a table. Each has two processes, and one more process has
// receivers of both. The events of both have the same ids and resources.
func TestTwoAccountsShareATable(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d target) {
		t.Helper()
		const events = 80
		db := d.open(t)
		first := newStore(t, db, d, sqlstore.WithLogger(quiet))
		effects, _ := business(t, db)
		both := sqlstore.New(d.on(db), like(t, first), sqlstore.WithLogger(quiet))
		want := map[string]int{}
		var deliveries sync.WaitGroup
		var receivers []*webhook.Receiver
		for _, c := range []tenant{brazil, mexico} {
			var mine []*webhook.Receiver
			for _, s := range []*sqlstore.Store[*sql.Tx]{
				sqlstore.New(d.on(db), like(t, first), sqlstore.WithLogger(quiet)),
				sqlstore.New(d.on(db), like(t, first), sqlstore.WithLogger(quiet)), both,
			} {
				mine = append(mine, c.receiver(t, s, effects))
			}
			receivers = append(receivers, mine...)
			for i := range events {
				id := fmt.Sprintf("evt_%d", i)
				want[c.account+" "+id] = 1
				deliveries.Go(func() {
					c.deliver(t, mine[i%3], id)
					c.deliver(t, mine[(i+1)%3], id)
				})
			}
		}
		for _, rx := range receivers {
			rx.Start()
		}
		deliveries.Wait()
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
		assert.Equal(t, want, effectsOf(t, db, effects))
		for _, rx := range receivers {
			n, err := rx.Counts(t.Context())
			require.NoError(t, err)
			assert.Equal(t, webhook.Counts{}, n)
		}
	})
}

// With another credential, the account and its events are the same.
func TestAKeyRotationKeepsTheEvents(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d target) {
		t.Helper()
		db := d.open(t)
		s := newStore(t, db, d, sqlstore.WithLogger(quiet))
		effects, count := business(t, db)
		for _, c := range []tenant{brazil, mexico} {
			c.deliver(t, c.receiver(t, s, effects), "evt_1")
		}
		require.Eventually(t, func() bool { return count() == 2 }, time.Minute, 10*time.Millisecond)
		rotated := mexico
		rotated.key = "sk_rotated"
		rx := rotated.receiver(t, sqlstore.New(d.on(db), like(t, s), sqlstore.WithLogger(quiet)), effects)
		rotated.deliver(t, rx, "evt_1")
		require.NoError(t, rx.Idle(t.Context()))
		assert.Equal(t, uint64(1), rx.Stats()[webhook.OutcomeDuplicate])
		assert.Equal(t, 2, count())
	})
}

func TestAnAccountOfAnotherEnvironmentIsRejected(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d target) {
		t.Helper()
		db := d.open(t)
		s := newStore(t, db, d, sqlstore.WithLogger(quiet))
		cfg := webhook.Config{Keys: keys, Account: brazil.account, Store: s, Logger: quiet}
		_, err := webhook.New(cfg) // it has no API: its environment is unknown
		require.NoError(t, err)
		cfg.API = brazil.client(t, production)
		rx, err := webhook.New(cfg)
		require.NoError(t, err)
		assert.Equal(t, cfg.API.Account(), rx.Account())
		cfg.API = brazil.client(t, "https://sandbox.gateway.invalid")
		cfg.Store = sqlstore.New(d.on(db), like(t, s), sqlstore.WithLogger(quiet))
		_, err = webhook.New(cfg)
		require.ErrorIs(t, err, gateway.ErrAccountConflict)
		require.ErrorContains(t, err, "give each account and environment its own name")

		// The statement in the error is for an address that has changed.
		_, fix, _ := strings.Cut(err.Error(), "run UPDATE")
		_, err = db.ExecContext(t.Context(), "UPDATE"+fix)
		require.NoError(t, err)
		_, err = webhook.New(cfg)
		require.NoError(t, err)
	})
}

func TestPurgeLeavesOtherAccountsAlone(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d target) {
		t.Helper()
		ctx := t.Context()
		db := d.open(t)
		base := newStore(t, db, d, sqlstore.WithRetention(webhook.MinRetention), sqlstore.WithLogger(quiet))
		stores := []*sqlstore.Store[*sql.Tx]{view(base, brazil.account), view(base, mexico.account)}
		for _, s := range stores {
			for id, settle := range map[string]func(*webhook.Claim) error{
				"done":      func(c *webhook.Claim) error { return s.Settle(ctx, c, done) },
				"unhandled": func(c *webhook.Claim) error { return s.Settle(ctx, c, aside(webhook.FamilyTransaction)) },
			} {
				_, err := s.Put(ctx, record(id, id))
				require.NoError(t, err)
				c, _, err := s.Claim(ctx, "id "+id, time.Minute)
				require.NoError(t, err)
				require.NoError(t, settle(c))
			}
		}
		age(t, db, base, webhook.MinRetention+time.Minute)
		for _, s := range stores {
			purged, err := s.Purge(ctx)
			require.NoError(t, err)
			assert.Equal(t, webhook.Purged{Done: 1, Unhandled: 1}, purged)
			remembers, err := s.Remembers(ctx)
			require.NoError(t, err)
			assert.Equal(t, webhook.MinRetention, remembers.Round(time.Minute))
		}
	})
}

// An account's name is a part of statements, so no other name may get there.
func TestAnInvalidAccountNameIsReported(t *testing.T) {
	t.Parallel()
	db := databases(t)[0].open(t)
	s := sqlstore.New(database.SQLite(db))
	require.NoError(t, s.Migrate(t.Context()))
	for _, name := range []string{"", "x' OR ''='", "a b", strings.Repeat("x", 65)} {
		one := s.For(gateway.Account{Name: name})
		_, err := one.Put(t.Context(), record("e1", "tx"))
		require.ErrorContains(t, err, "sqlstore: the account", name)
		require.Error(t, one.Settle(t.Context(), &webhook.Claim{}, done), name)
	}
}

// A Store that For was not called on has the table's only account, if there is one.
func TestAStoreWithoutAnAccountHasTheOnlyOne(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d target) {
		t.Helper()
		ctx := t.Context()
		db := d.open(t)
		s := sqlstore.New(d.on(db), in(d.schema(t, db)), sqlstore.WithLogger(quiet))
		_, err := s.Counts(ctx)
		require.ErrorContains(t, err, "run Migrate")
		require.NoError(t, s.Migrate(ctx))
		_, err = s.Put(ctx, record("e1", "tx_1"))
		require.ErrorContains(t, err, "has no account yet")
		_, err = view(s, brazil.account).Put(ctx, record("e1", "tx_1"))
		require.NoError(t, err)
		n, err := s.Counts(ctx)
		require.NoError(t, err)
		assert.Equal(t, 1, n.Waiting)

		n, err = view(s, mexico.account).Counts(ctx)
		require.NoError(t, err)
		assert.Zero(t, n.Waiting)
		_, err = view(s, mexico.account).Put(ctx, record("e2", "tx_2")) // what only reads registers no account
		require.NoError(t, err)
		_, err = sqlstore.New(d.on(db), like(t, s), sqlstore.WithLogger(quiet)).Counts(ctx)
		require.ErrorContains(t, err, "several accounts (shop-br, shop-mx)")
	})
}

// The key "" is that of the table's metadata.
func TestAnEventWithoutAKeyIsRejected(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d target) {
		t.Helper()
		s := newStore(t, d.open(t), d)
		r := record("e1", "tx_1")
		r.Key = ""
		_, err := s.Put(t.Context(), r)
		require.ErrorContains(t, err, "Record.Key is empty")
		_, err = s.PutDead(t.Context(), r, "a test")
		require.ErrorContains(t, err, "Record.Key is empty")
	})
}

func TestThePutsOfATransactionBelongToTheAccount(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d target) {
		t.Helper()
		ctx := t.Context()
		db := d.open(t)
		base := newStore(t, db, d, sqlstore.WithLogger(quiet))
		for _, c := range []tenant{brazil, mexico} {
			s := view(base, c.account)
			_, err := s.Counts(ctx) // before the transaction: SQLite has one writer
			require.NoError(t, err)
			tx, err := db.BeginTx(ctx, nil)
			require.NoError(t, err)
			fact := record("e2", "tx_2")
			fact.Fact = "paid tx_2"
			for _, r := range []webhook.Record{record("e1", "tx_1"), fact} {
				e, err := s.PutTx(ctx, tx, r)
				require.NoError(t, err)
				assert.Equal(t, webhook.Entry{Key: r.Key, State: webhook.StateWaiting, Added: true}, e)
			}
			e, err := s.PutDeadTx(ctx, tx, record("e3", "tx_3"), "a conflict")
			require.NoError(t, err)
			assert.True(t, e.Added)
			require.NoError(t, tx.Commit())
			list, err := s.Unfinished(ctx, "", 10)
			require.NoError(t, err)
			require.Len(t, list, 2)
			list, err = s.Unfinished(ctx, list[0].Key, 10)
			require.NoError(t, err)
			require.Len(t, list, 1)
			assert.Equal(t, "id e2", list[0].Key)
		}
	})
}
