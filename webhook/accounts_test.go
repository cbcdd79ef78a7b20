package webhook_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/webhooktest"
)

// company is a tenant with an account of its own, at the same gateway.
type company struct {
	account string
	secret  gateway.Secret
}

func companies() []company {
	return []company{
		{"shop-br", gateway.NewSecret("whsec_of_the_shop_in_brazil")},
		{"shop-mx", gateway.NewSecret("whsec_of_the_shop_in_mexico")},
	}
}

func accountClient(t *testing.T, baseURL, key, name string) *gateway.Client {
	t.Helper()
	c, err := gateway.New(baseURL, gateway.BearerToken(key), gateway.WithAccount(name))
	require.NoError(t, err)
	return c
}

func (c company) deliver(t *testing.T, rx *webhook.Receiver, id, resource string) {
	t.Helper()
	body := webhooktest.Event{Kind: webhook.TransactionPaid, ID: id, ResourceID: resource}.Body()
	got := rx.Receive(t.Context(), webhook.Delivery{Header: webhooktest.Sign(c.secret, time.Now(), body), Body: body})
	assert.Equal(t, 200, got.Status, id)
}

// Two companies share a store. Their events have the same ids and resources; half of
// the handlers' runs fail once.
func TestTwoAccountsShareAStore(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]webhook.Mode{"Inbox": webhook.Inbox, "Sync": webhook.Sync} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const events = 80
				store := durable{Store: webhook.NewMemoryStore(webhook.MemoryOptions{})}
				var got effects
				want := make([]string, 0, 2*events)
				receivers := map[string]*webhook.Receiver{}
				for _, c := range companies() {
					cfg := webhook.Config{
						Keys: []webhook.SigningKey{{Key: c.secret}}, API: accountClient(t, "https://gateway.invalid", "sk_of_"+c.account, c.account),
						Store: store, Mode: mode, Logger: quiet, HandleStale: true, Backoff: func(int) time.Duration { return time.Second },
					}
					rx := receiver(t, cfg)
					assert.Equal(t, cfg.API.Account(), rx.Account())
					webhook.OnTransaction(rx, webhook.TransactionPaid, func(_ context.Context, e *webhook.TransactionEvent) error {
						if mode == webhook.Inbox && e.Attempt == 1 && strings.HasSuffix(e.ID, "7") {
							return errors.New("no connection")
						}
						got.add("%s %s", c.account, e.ID)
						return nil
					})
					receivers[c.account] = rx
				}
				for i := range events {
					for _, c := range companies() {
						id := fmt.Sprintf("evt_%d", i)
						want = append(want, c.account+" "+id)
						for range 2 {
							c.deliver(t, receivers[c.account], id, fmt.Sprintf("tx_%d", i%8))
						}
					}
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				assert.ElementsMatch(t, want, got.all())
				for account, rx := range receivers {
					n, err := rx.Counts(t.Context())
					require.NoError(t, err)
					assert.Equal(t, webhook.Counts{}, n, account)
				}
			})
		})
	}
}

// The admin methods of a receiver see the events of its account only.
func TestDeadLettersBelongToAnAccount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := durable{Store: webhook.NewMemoryStore(webhook.MemoryOptions{})}
		var receivers []*webhook.Receiver
		for _, c := range companies() {
			rx := receiver(t, webhook.Config{
				Keys: []webhook.SigningKey{{Key: c.secret}}, Account: c.account, Store: store, Mode: webhook.Inbox, Logger: quiet,
			})
			webhook.OnOther(rx, func(context.Context, *webhook.Event) error { return webhook.Permanent(errors.New("no such order")) })
			c.deliver(t, rx, "evt_1", "tx_1")
			receivers = append(receivers, rx)
		}
		synctest.Wait()
		n, err := receivers[0].DiscardAll(t.Context(), webhook.DeadLetterFilter{})
		require.NoError(t, err)
		assert.Equal(t, 1, n)
		letters, err := receivers[0].DeadLetters(t.Context(), webhook.DeadLetterQuery{})
		require.NoError(t, err)
		assert.Empty(t, letters)
		letters, err = receivers[1].DeadLetters(t.Context(), webhook.DeadLetterQuery{})
		require.NoError(t, err)
		assert.Len(t, letters, 1)
	})
}

func TestADurableStoreNeedsAnAccount(t *testing.T) {
	t.Parallel()
	api := (&fakeAPI{}).client(t)
	named := accountClient(t, "https://gateway.invalid", "sk_1", "shop-br")
	store := durable{Store: webhook.NewMemoryStore(webhook.MemoryOptions{})}
	for want, cfg := range map[string]webhook.Config{
		`set Account: "shop-br" in webhook.Config`:                     {Store: store, Mode: webhook.Inbox},
		`a durable Store needs a name for your account`:                {Store: store}, // in Sync mode too
		`create the client in API with gateway.WithAccount("shop-br")`: {Store: store, Mode: webhook.Inbox, API: api},
		`Account is "shop-mx", but the client in API belongs to the account "shop-br": remove Account`: {
			Store: store, Mode: webhook.Inbox, API: named, Account: "shop-mx",
		},
		`webhook: Account: the name contains ' '`: {Account: "shop br"},
	} {
		cfg.Keys = signedConfig().Keys
		_, err := webhook.New(cfg)
		require.ErrorContains(t, err, want)
	}
	for account, cfg := range map[gateway.Account]webhook.Config{
		{}:                                       {},
		{Fingerprint: api.Account().Fingerprint}: {API: api},
		{Name: "shop-br"}:                        {Account: "shop-br", Store: store, Mode: webhook.Inbox},
		{Name: "shop-mx", Fingerprint: api.Account().Fingerprint}: {Account: "shop-mx", API: api, Store: store, Mode: webhook.Inbox},
		named.Account(): {Account: "shop-br", API: named, Store: store, Mode: webhook.Inbox},
	} {
		cfg.Keys = signedConfig().Keys
		rx, err := webhook.New(cfg)
		require.NoError(t, err)
		assert.Equal(t, account, rx.Account())
	}
}

// Without For, a wrapper of a store would be bypassed.
func TestAStoreMustWrapItsViews(t *testing.T) {
	t.Parallel()
	cfg := signedConfig()
	cfg.Mode, cfg.Store = webhook.Inbox, unwrapped{newDurable()}
	_, err := webhook.New(cfg)
	require.ErrorContains(t, err, "For of the Store, a webhook_test.unwrapped, returned a storetest.Durable")
}

type unwrapped struct{ webhook.Store }

func TestTheMemoryStoreRejectsAnotherEnvironment(t *testing.T) {
	t.Parallel()
	cfg := signedConfig()
	cfg.Store, cfg.Account = webhook.NewMemoryStore(webhook.MemoryOptions{}), ""
	for _, key := range []string{"sk_1", "sk_2"} { // a key rotation
		cfg.API = accountClient(t, "https://gateway.invalid", key, "shop-br")
		_, err := webhook.New(cfg)
		require.NoError(t, err)
	}
	cfg.API = accountClient(t, "https://sandbox.gateway.invalid", "sk_1", "shop-br")
	_, err := webhook.New(cfg)
	require.ErrorIs(t, err, gateway.ErrAccountConflict)
	cfg.API = accountClient(t, "https://sandbox.gateway.invalid", "sk_1", "shop-br-sandbox")
	_, err = webhook.New(cfg)
	require.NoError(t, err)
}

// A durable store is asked once. If it can't be read, the receiver starts anyway.
func TestNewAsksTheStoreForTheAccount(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	cfg := signedConfig()
	cfg.Mode, cfg.Logger = webhook.Inbox, slog.New(slog.NewTextHandler(&out, nil))
	cfg.Store = closedStore{newDurable(), gateway.ErrAccountConflict}
	_, err := webhook.New(cfg)
	require.ErrorIs(t, err, gateway.ErrAccountConflict)
	cfg.Store = closedStore{newDurable(), errors.New("connection refused")}
	_, err = webhook.New(cfg)
	require.NoError(t, err)
	assert.Contains(t, out.String(), `level=WARN msg="webhook: the store can't be read yet" account=shop error="connection refused"`)
}

// closedStore is a database that can't be read.
type closedStore struct {
	durable

	err error
}

func (s closedStore) For(gateway.Account) webhook.Store { return s }

func (s closedStore) Remembers(context.Context) (time.Duration, error) { return 0, s.err }
