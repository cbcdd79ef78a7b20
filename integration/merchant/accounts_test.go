package merchant_test

import (
	"context"
	"database/sql"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/operations"
	"github.com/gateway-go/gateway/webhook"
)

// secrets are those of the two accounts.
var secrets = map[string]gateway.Secret{
	"shop":  gateway.NewSecret("the secret of the first account, 32 bytes"),
	"other": gateway.NewSecret("the secret of the other account, 32 bytes"),
}

// two opens a shop with two accounts at the gateway, each with a secret of its own.
func (w *world) two() *world {
	w.Helper()
	w.cfg.Accounts = []merchant.Account{w.account("shop", w.gw.Key(), secrets["shop"]), w.account("other", "sk_test_other", secrets["other"])}
	w.open()
	w.rotate(secrets)
	return w
}

// rotate makes the gateway sign with these secrets.
func (w *world) rotate(secrets map[string]gateway.Secret) {
	w.Helper()
	for _, a := range w.cfg.Accounts {
		hooks := w.gw.Account(keyOf(w, a)).Webhooks
		for _, e := range hooks.Endpoints() {
			require.NoError(w, hooks.RotateSecret(e.ID, secrets[a.Name]))
		}
	}
}

// on charges an order on an account.
func on(account string, p merchant.ChargeParams) merchant.ChargeParams {
	p.Account = account
	return p
}

// facts returns how many entries an account has.
func (w *world) facts(account string) (n int) {
	w.Helper()
	require.NoError(w, w.db.QueryRowContext(w.Context(), w.sql(`SELECT COUNT(*) FROM gateway_facts WHERE account = ?`), account).Scan(&n))
	return n
}

// An order is charged on both accounts, and both charges are paid.
func TestAnOrderThatIsPaidOnTwoAccountsShipsOnce(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.two().start()
		order := w.order("A1")
		_, err := w.m.Charge(w.Context(), pix(order, 700))
		require.ErrorIs(w, err, merchant.ErrAccount)
		require.ErrorContains(w, err, "several accounts")
		first, second := w.charge(on("shop", pix(order, 700))), w.charge(on("other", pix(order, 700)))
		assert.Equal(w, "other-A1-2", second.ID)
		require.NoError(w, w.gw.Account("sk_test_other").Transactions.Pay(second.TransactionID))
		w.reaches(order, "paid other-A1-2 700")
		require.NoError(w, w.gw.Transactions.Pay(first.TransactionID))
		w.reaches(order, "paid other-A1-2 700", "paid_again shop-A1-1 700")
		assert.Equal(w, 1, w.ships(order))
		assert.Equal(w, int64(1400), w.state(order).Paid)

		// A refund goes to the account of its charge.
		_, err = w.m.Refund(w.Context(), merchant.RefundParams{ID: "r", Order: order, Full: true})
		require.ErrorIs(w, err, merchant.ErrState)
		r, err := w.m.Refund(w.Context(), merchant.RefundParams{ID: "r", Charge: second.ID, Full: true})
		require.NoError(w, err)
		assert.Equal(w, "other", r.Account)
		assert.Equal(w, merchant.Done, r.State)
		assert.Equal(w, 1, w.gw.Account("sk_test_other").Requests.Count("transactions.refund"))
		assert.Zero(w, w.gw.Account(w.gw.Key()).Requests.Count("transactions.refund"))
		assert.Equal(w, int64(700), w.state(order).Left())
	})
}

// A webhook is configured with the URL or the secret of the other account: nothing is
// booked, and someone is told.
func TestAWebhookOfAnotherAccountBooksNothing(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.two()
		other := w.gw.Account("sk_test_other")
		for _, e := range other.Webhooks.Endpoints() {
			require.NoError(w, other.Webhooks.RemoveEndpoint(e.ID))
		}
		other.Webhooks.Send(w.m.Webhook("shop"))
		w.rotate(secrets)
		c := w.charge(on("other", pix(w.order("B1"), 700)))
		require.NoError(w, other.Transactions.Pay(c.TransactionID))
		require.NoError(w, other.Wait(w.Context()))
		list := other.Webhooks.Deliveries()
		assert.Equal(w, 401, list[len(list)-1].Attempts[0].Status, "the signature is not that of the account")

		w.rotate(map[string]gateway.Secret{"shop": secrets["shop"], "other": secrets["shop"]}) // both have the same
		require.NoError(w, other.Webhooks.Redeliver(list[len(list)-1].ID))
		stop := w.start()
		var reason string
		w.eventually("the event fails", func() bool {
			err := w.db.QueryRowContext(w.Context(), `SELECT COALESCE(MAX(reason), '') FROM gateway_webhook_events WHERE attempts > 0`).Scan(&reason)
			return assert.NoError(w, err) && reason != ""
		})
		stop()
		assert.Contains(w, reason, "belongs to account other")
		assert.Zero(w, w.facts("shop"))
		assert.Zero(w, w.facts("other"))
		require.NoError(w, w.m.Refresh(w.Context(), c.ID))
		assert.Zero(w, w.facts("shop"))
		assert.Equal(w, int64(700), w.state("B1").Paid)
	})
}

// An account has the credential of the other one, at the same base URL.
func TestACredentialOfAnotherAccountIsRefused(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.two()
		c := w.charge(on("shop", pix(w.order("C1"), 700)))
		d := w.charge(on("other", pix(w.order("C2"), 700)))
		require.NoError(w, w.gw.Transactions.Pay(c.TransactionID))
		require.NoError(w, w.gw.Account("sk_test_other").Transactions.Pay(d.TransactionID))
		right := w.cfg.Accounts
		usual := w.cfg
		w.cfg.SendTimeout, w.cfg.SettleAfter = time.Millisecond, 2*time.Millisecond // a younger transaction may not be shown yet
		for _, swapped := range [][2]string{{"sk_test_other", "sk_test_other"}, {w.gw.Key(), w.gw.Key()}, {"sk_test_other", w.gw.Key()}} {
			w.cfg.Accounts = []merchant.Account{w.account("shop", swapped[0], secrets["shop"]), w.account("other", swapped[1], secrets["other"])}
			_, err := w.openOn(w.db, w.cfg)
			require.ErrorIs(w, err, merchant.ErrAccount)
			require.ErrorContains(w, err, "the credential of another account")
		}
		w.cfg = usual
		w.cfg.Accounts = right
		w.gw.Down() // then the credential can't be checked, and the shop opens
		_, err := w.openOn(w.db, w.cfg)
		require.NoError(w, err)
		w.gw.Up()
		_, err = w.openOn(w.db, w.cfg)
		require.NoError(w, err)
	})
}

// What was opened with one name, address and prefix is not opened with others.
func TestAnAccountKeepsItsNameAddressAndPrefix(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.open()
		elsewhere, err := gateway.New("https://sandbox.gateway.example", gateway.BearerToken("sk_test_x"))
		require.NoError(w, err)
		for message, change := range map[string]func(a *merchant.Account) []merchant.Account{
			"was stored with the fingerprint":                                    func(a *merchant.Account) []merchant.Account { a.Client = elsewhere; return nil },
			`references with the prefix "shop-", and Account.Prefix is "kiosk-"`: func(a *merchant.Account) []merchant.Account { a.Prefix = "kiosk-"; return nil },
			`another account than kiosk has the prefix "shop-"`: func(a *merchant.Account) []merchant.Account {
				a.Name, a.Prefix, a.Client = "kiosk", "shop-", w.gw.Client()
				return nil
			},
			`the prefix "shop-2-" begins with "shop-", the prefix of shop`: func(a *merchant.Account) []merchant.Account {
				a.Name, a.Client = "shop-2", w.gw.Client()
				return nil
			},
			`the prefix "shop-" of shop begins with "sh"`: func(a *merchant.Account) []merchant.Account {
				a.Name, a.Client, a.Prefix = "sh", w.gw.Client(), "sh"
				return nil
			},
			`created with gateway.WithAccount("shop")`: func(a *merchant.Account) []merchant.Account { a.Name = "kiosk"; return nil },
			"two accounts with the name shop":          func(a *merchant.Account) []merchant.Account { return []merchant.Account{*a, *a} },
		} {
			a := w.account("shop", w.gw.Key(), w.gw.Secret())
			cfg := w.cfg
			if cfg.Accounts = change(&a); cfg.Accounts == nil {
				cfg.Accounts = []merchant.Account{a}
			}
			_, err := w.openOn(w.db, cfg)
			require.ErrorIs(w, err, merchant.ErrAccount, message)
			require.ErrorContains(w, err, message)
		}
		rotated := w.account("shop", w.gw.Key(), w.gw.Secret())
		rotated.Keys = append(rotated.Keys, webhook.SigningKey{Key: secrets["other"]})
		w.cfg.Accounts = []merchant.Account{rotated}
		_, err = w.openOn(w.db, w.cfg)
		require.NoError(w, err)
	})
}

// A process that serves only one of the accounts leaves the records of the other one
// alone, and says so.
func TestAProcessWithoutTheAccountLeavesItsRecords(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.two()
		order := w.order("E1")
		c := w.charge(on("other", pix(order, 700)))
		require.NoError(w, w.gw.Account("sk_test_other").Transactions.Pay(c.TransactionID))
		require.NoError(w, w.gw.Wait(w.Context()))
		require.NoError(w, w.m.Refresh(w.Context(), c.ID))
		cfg := w.cfg
		cfg.Accounts = w.cfg.Accounts[:1]
		alone, err := w.openOn(w.connect(), cfg)
		require.NoError(w, err)
		again, err := alone.Charge(w.Context(), pix(order, 700))
		require.NoError(w, err)
		assert.Equal(w, c.ID, again.ID, "it was paid there")
		for _, err := range []error{
			alone.Refresh(w.Context(), c.ID),
			w.in(w.db, sql.LevelDefault, func(tx *txn) error {
				_, err := alone.RefundTx(w.Context(), tx, merchant.RefundParams{ID: "r", Charge: c.ID, Full: true})
				return err
			}),
		} {
			require.ErrorIs(w, err, merchant.ErrAccount)
			require.ErrorContains(w, err, "other")
		}
		w.start()
		w.reaches(order, "paid other-E1-1 700")
	})
}

// Each account has an outbox of its own; their events reach the same function.
func TestTheRequestsOfAllAccountsAreObserved(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		var mu sync.Mutex
		done := make(map[string]operations.Observation)
		w.cfg.Observe = func(_ context.Context, o operations.Observation) {
			mu.Lock()
			defer mu.Unlock()
			if o.Event == operations.EventDone {
				done[o.Account] = o
			}
		}
		w.two()
		order := w.order("O1")
		for _, account := range []string{"shop", "other"} {
			c := w.charge(on(account, pix(order, 700)))
			mu.Lock()
			o := done[account]
			mu.Unlock()
			assert.Equal(w, []string{"transactions.create", c.ID}, []string{o.Kind, o.Key})
		}
	})
}
