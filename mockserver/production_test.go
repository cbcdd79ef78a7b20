package mockserver_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/legacy"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/mockserver/internal/httpapi"
	"github.com/gateway-go/gateway/webhook"
)

// merchant calls every operation of the interface. What a call made is used by
// those after it.
type merchant struct {
	t           *testing.T
	customer    string
	transaction string
	transfer    string
	subscribed  string
	slug        string
	session     gateway.Secret
}

// step is one call. want is nil where it succeeds with a key of production.
type step struct {
	op   string
	want error
	call func(*gateway.Client, *legacy.Client) error
}

// keep remembers the id of what was made.
func keep[T any](to *string, made T, err error, id func(T) string) error {
	if err == nil {
		*to = id(made)
	}
	return err
}

func (m *merchant) steps() []step {
	ctx := m.t.Context()
	return []step{
		{op: "customers.create", call: func(c *gateway.Client, _ *legacy.Client) error {
			made, err := c.Customers.Create(ctx, gateway.CustomerParams{Name: "Ana", Email: "ana@example.com"})
			return keep(&m.customer, made, err, func(c *gateway.Customer) string { return c.ID })
		}},
		{op: "customers.get", call: func(c *gateway.Client, _ *legacy.Client) error {
			_, err := c.Customers.Get(ctx, m.customer)
			return err
		}},
		{op: "customers.list", call: func(c *gateway.Client, _ *legacy.Client) error {
			_, err := c.Customers.List(ctx, gateway.CustomerListParams{})
			return err
		}},
		{op: "transactions.create", call: func(c *gateway.Client, _ *legacy.Client) error {
			params := order("")
			params.Method, params.Token = gateway.CreditCard, "pgpm_paid"
			made, err := c.Transactions.Create(ctx, params)
			return keep(&m.transaction, made, err, func(tx *gateway.Transaction) string { return tx.ID })
		}},
		{op: "transactions.get", call: func(c *gateway.Client, _ *legacy.Client) error {
			_, err := c.Transactions.Get(ctx, m.transaction)
			return err
		}},
		{op: "transactions.list", call: func(c *gateway.Client, _ *legacy.Client) error {
			_, err := c.Transactions.List(ctx, gateway.TransactionListParams{})
			return err
		}},
		{op: "transactions.update_delivery", call: func(c *gateway.Client, _ *legacy.Client) error {
			_, err := c.Transactions.UpdateDelivery(ctx, m.transaction, gateway.DeliveryParams{TrackingCode: "BR1"})
			return err
		}},
		{op: "transactions.refund", call: func(c *gateway.Client, _ *legacy.Client) error {
			_, err := c.Transactions.Refund(ctx, m.transaction, gateway.RefundParams{Amount: 1})
			return err
		}},
		{op: "transactions.set_sandbox_status", want: gateway.ErrForbidden, call: func(c *gateway.Client, _ *legacy.Client) error {
			_, err := c.Transactions.SetSandboxStatus(ctx, m.transaction, gateway.SandboxStatusParams{Status: gateway.TransactionChargedback})
			return err
		}},
		{op: "transfers.create", call: func(c *gateway.Client, _ *legacy.Client) error {
			made, err := c.Transfers.Create(ctx, gateway.TransferParams{
				PixKeyType: gateway.PixKeyEmail, PixKeyValue: "ana@shop.test", Amount: 5000,
			})
			return keep(&m.transfer, made, err, func(tr *gateway.Transfer) string { return tr.ID })
		}},
		{op: "transfers.get", call: func(c *gateway.Client, _ *legacy.Client) error {
			_, err := c.Transfers.Get(ctx, m.transfer)
			return err
		}},
		{op: "transfers.list", call: func(c *gateway.Client, _ *legacy.Client) error {
			_, err := c.Transfers.List(ctx, gateway.TransferListParams{})
			return err
		}},
		{op: "transfers.cancel", call: func(c *gateway.Client, _ *legacy.Client) error {
			_, err := c.Transfers.Cancel(ctx, m.transfer, gateway.TransferCancelParams{})
			return err
		}},
		{op: "subscriptions.create", call: func(c *gateway.Client, _ *legacy.Client) error {
			made, err := c.Subscriptions.Create(ctx, gateway.SubscriptionParams{
				CustomerID: m.customer, Amount: 4990, Interval: gateway.IntervalMonth, Token: "pgct_ok_1",
			})
			return keep(&m.subscribed, made, err, func(s *gateway.Subscription) string { return s.ID })
		}},
		{op: "subscriptions.get", call: func(c *gateway.Client, _ *legacy.Client) error {
			_, err := c.Subscriptions.Get(ctx, m.subscribed)
			return err
		}},
		{op: "subscriptions.list", call: func(c *gateway.Client, _ *legacy.Client) error {
			_, err := c.Subscriptions.List(ctx, gateway.SubscriptionListParams{})
			return err
		}},
		{op: "subscriptions.update", call: func(c *gateway.Client, _ *legacy.Client) error {
			_, err := c.Subscriptions.Update(ctx, m.subscribed, gateway.SubscriptionUpdateParams{RetryOffsetsDays: []int{1}})
			return err
		}},
		{op: "subscriptions.cancel", call: func(c *gateway.Client, _ *legacy.Client) error {
			_, err := c.Subscriptions.Cancel(ctx, m.subscribed, gateway.SubscriptionCancelParams{})
			return err
		}},
		{op: "checkout_links.create", call: func(c *gateway.Client, _ *legacy.Client) error {
			made, err := c.CheckoutLinks.Create(ctx, gateway.CheckoutLinkParams{Amount: 4990})
			return keep(&m.slug, made, err, (*gateway.CheckoutLink).Slug)
		}},
		{op: "checkout_sessions.open", call: func(c *gateway.Client, _ *legacy.Client) error {
			session, err := c.CheckoutSessions.Open(ctx, m.slug)
			if err == nil {
				m.session = session.SessionToken
				assert.Regexp(m.t, "^pk_live_", session.Link.PublicToken)
			}
			return err
		}},
		{op: "checkout_sessions.update", call: func(c *gateway.Client, _ *legacy.Client) error {
			_, err := c.CheckoutSessions.Update(ctx, m.slug, m.session, gateway.CheckoutSessionParams{PaymentMethod: gateway.Pix})
			return err
		}},
		{op: "legacy.configure_integration", call: func(_ *gateway.Client, v1 *legacy.Client) error {
			_, err := v1.ConfigureIntegration(ctx, legacy.IntegrationParams{PixWebhookURL: "https://shop.test/pix"})
			return err
		}},
		{op: "legacy.balance", call: func(_ *gateway.Client, v1 *legacy.Client) error {
			_, err := v1.Balance(ctx)
			return err
		}},
		{op: "legacy.create_pix_payment", call: func(_ *gateway.Client, v1 *legacy.Client) error {
			_, err := v1.CreatePixPayment(ctx, legacy.PixPaymentParams{
				Payer: legacy.Payer{FullName: "Ana"}, Transaction: legacy.PixCharge{Value: 100},
			})
			return err
		}},
		{op: "legacy.create_payment_token", call: func(c *gateway.Client, _ *legacy.Client) error {
			return c.Do(ctx, http.MethodPost, "/v2/payment_token/pub_1", struct{}{}, nil)
		}},
		{op: "legacy.payment_token", call: func(_ *gateway.Client, v1 *legacy.Client) error {
			_, err := v1.PaymentToken(ctx, "pub_1")
			return err
		}},
	}
}

// production starts a server of the production environment, at a moment when
// tokens can still be made through the API.
func production(t *testing.T, dialect mockserver.Dialect) *mockserver.Server {
	t.Helper()
	return mockserver.Run(t, mockserver.WithEnvironment(mockserver.Production), mockserver.WithDialect(dialect),
		mockserver.WithStart(time.Date(2026, time.July, 1, 0, 0, 0, 0, time.UTC)))
}

// clients returns the two clients of an account.
func clients(t *testing.T, gw *mockserver.Server, key string) (*gateway.Client, *legacy.Client) {
	t.Helper()
	client := gw.Account(key).Client()
	v1, err := legacy.New(client, gateway.Secret(key))
	require.NoError(t, err)
	return client, v1
}

// In production every operation takes a live key but the one that sets a
// status, and none takes a key of the sandbox.
func TestProduction(t *testing.T) {
	t.Parallel()
	for name, dialect := range map[string]mockserver.Dialect{"document": mockserver.Document, "live": mockserver.Live} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gw, m := production(t, dialect), &merchant{t: t}
			assert.Equal(t, "sk_live_mock", gw.Key())
			client, v1 := clients(t, gw, gw.Key())
			var called []string
			for _, s := range m.steps() {
				called = append(called, s.op)
				require.ErrorIs(t, s.call(client, v1), s.want, s.op)
			}
			var served []string
			for _, op := range httpapi.New(httpapi.Config{}).Operations() {
				if op.Name != "checkout_links.page" { // a page for buyers, who have no key
					served = append(served, op.Name)
				}
			}
			assert.ElementsMatch(t, served, called)
			read, err := client.Transactions.Get(t.Context(), m.transaction)
			require.NoError(t, err)
			assert.Equal(t, gateway.TransactionPartiallyRefunded, read.Status, "the refused change changed nothing")

			const key = "sk_test_mock"
			before := totals(t, client)
			client, v1 = clients(t, gw, key)
			for _, s := range m.steps() {
				var e *gateway.Error
				require.ErrorAs(t, s.call(client, v1), &e, s.op)
				assert.Equal(t, http.StatusUnauthorized, e.StatusCode, s.op)
				assert.Equal(t, "Unauthorized", e.Title, "%s: a problem in both dialects", s.op)
			}
			assert.Equal(t, len(m.steps()), gw.Account(key).Requests.Count(""), "each was sent, once")
			client, _ = clients(t, gw, gw.Key())
			assert.Equal(t, before, totals(t, client))
			snapshot, err := gw.Snapshot()
			require.NoError(t, err)
			assert.NotContains(t, string(snapshot), key, "a refused key opens no account")
		})
	}
}

// totals counts what an account holds.
func totals(t *testing.T, client *gateway.Client) [4]int {
	t.Helper()
	ctx := t.Context()
	transactions, err := client.Transactions.List(ctx, gateway.TransactionListParams{})
	require.NoError(t, err)
	transfers, err := client.Transfers.List(ctx, gateway.TransferListParams{})
	require.NoError(t, err)
	subscriptions, err := client.Subscriptions.List(ctx, gateway.SubscriptionListParams{})
	require.NoError(t, err)
	customers, err := client.Customers.List(ctx, gateway.CustomerListParams{})
	require.NoError(t, err)
	return [...]int{transactions.Total, transfers.Total, subscriptions.Total, customers.Total}
}

// A status can't be set, whatever it is, and the answer is a problem in both
// dialects; what payers, banks and issuers do works as in the sandbox.
func TestProductionControls(t *testing.T) {
	t.Parallel()
	for name, dialect := range map[string]mockserver.Dialect{"document": mockserver.Document, "live": mockserver.Live} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gw := production(t, dialect)
			client := gw.Client()
			tx, err := client.Transactions.Create(t.Context(), order("order-1"))
			require.NoError(t, err)
			for _, row := range [][2]string{{tx.ID, "paid"}, {tx.ID, "pending"}, {tx.ID, "no state"}, {"nobody", "paid"}} {
				err := client.Do(t.Context(), http.MethodPut, "/v2/transactions/"+row[0], map[string]string{"status": row[1]}, nil)
				var e *gateway.Error
				require.ErrorAs(t, err, &e)
				assert.Equal(t, http.StatusForbidden, e.StatusCode)
				assert.Equal(t, "Forbidden", e.Title)
				assert.Equal(t, "FORBIDDEN", e.Code)
			}

			assert.Equal(t, "production", do[object](plane{t: t, gw: gw, key: "sk_test_mock"}, http.MethodGet, "/health", "")["environment"])
			status, refused := plane{t: t, gw: gw, key: "sk_test_mock"}.call(http.MethodPost, "/transactions/"+tx.ID+"/pay", "")
			assert.Equal(t, http.StatusUnauthorized, status)
			assert.Equal(t, "UNAUTHORIZED", refused["code"])
			paid := do[object](plane{t: t, gw: gw, key: gw.Key()}, http.MethodPost, "/transactions/"+tx.ID+"/pay", "")
			assert.Equal(t, "paid", paid["status"])
			tx, err = client.Transactions.Create(t.Context(), order("order-2"))
			require.NoError(t, err)
			expired := do[object](plane{t: t, gw: gw}, http.MethodPost, "/transactions/"+tx.ID+"/expire", "")
			assert.Equal(t, "expired", expired["status"], "without a key it is the account sk_live_mock")
		})
	}
}

// Everyone who asked for webhooks gets them: a signed endpoint, the notify_url
// of a transaction and the v1 address, also of what the clock does.
func TestProductionWebhooks(t *testing.T) {
	t.Parallel()
	gw, endpoint := production(t, mockserver.Document), &shop{}
	gw.Webhooks.Send(endpoint)
	notified, integrated := &shop{all: true}, &shop{all: true}
	gw.Webhooks.ServeHost("shop.test", notified)
	gw.Webhooks.ServeHost("v1.shop.test", integrated)
	client, v1 := clients(t, gw, gw.Key())
	_, err := v1.ConfigureIntegration(t.Context(), legacy.IntegrationParams{WebhookURL: "https://v1.shop.test/all"})
	require.NoError(t, err)

	params := order("order-1")
	params.NotifyURL = "https://shop.test/hook"
	tx, err := client.Transactions.Create(t.Context(), params)
	require.NoError(t, err)
	require.NoError(t, gw.Transactions.Pay(tx.ID))
	require.NoError(t, gw.Wait(t.Context()))
	want := []webhook.Kind{"transaction.created", "transaction.pending", "transaction.paid"}
	assert.Equal(t, want, endpoint.got())
	assert.Equal(t, want, notified.got())
	assert.Equal(t, want, integrated.got())

	m := &merchant{t: t}
	for _, s := range m.steps() {
		if s.op == "customers.create" || s.op == "transfers.create" || s.op == "subscriptions.create" {
			require.NoError(t, s.call(client, v1))
		}
	}
	require.NoError(t, gw.Clock.Advance(32*24*time.Hour))
	kinds := endpoint.got()
	for _, kind := range []webhook.Kind{"payout.created", "payout.transferred", "subscription.started", "subscription.renewed"} {
		assert.Contains(t, kinds, kind)
	}
	assert.ElementsMatch(t, kinds, integrated.got(), "webhookUrl gets every family")
	assert.Empty(t, notified.got(), "a notify_url is of one transaction")
	assert.Empty(t, endpoint.bad, "each was signed")
}

// A key of production never leaves for an address of a sandbox, in any of its
// forms. The other way round the address says nothing: the gateway answers 401.
func TestClientOfProduction(t *testing.T) {
	t.Parallel()
	gw := production(t, mockserver.Document)
	over := gateway.WithHTTPClient(&http.Client{Transport: gw.Transport()})
	credentials := map[string]func(string) gateway.Credential{
		"bearer": gateway.BearerToken[string], "apiKey": gateway.APIKey[string], "basic": gateway.BasicToken[string],
	}
	for form, credential := range credentials {
		_, err := gateway.New("https://api.sandbox.gateway.test", credential(gw.Key()), over)
		require.ErrorContains(t, err, "sandbox", form)
		assert.NotContains(t, err.Error(), gw.Key(), form)
		assert.Zero(t, gw.Requests.Count(""), form)
	}
	for form, credential := range credentials {
		client, err := gateway.New("https://api.gateway.test", credential(gw.Key()), over)
		require.NoError(t, err, form)
		_, err = client.Transactions.Create(t.Context(), order(form))
		require.NoError(t, err, form)
		client, err = gateway.New("https://api.gateway.test", credential("sk_test_mock"), over)
		require.NoError(t, err, form)
		_, err = client.Transactions.Create(t.Context(), order(form))
		require.ErrorIs(t, err, gateway.ErrUnauthorized, form)
	}
	client, _ := clients(t, gw, gw.Key())
	assert.Equal(t, len(credentials), totals(t, client)[0])
}
