package mockserver_test

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/golden"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/legacy"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
)

// merchant calls the operations of the interface in the order of their rows,
// each with its golden request. Operations on a resource use the one that the
// preceding create returned.
type merchant struct {
	t       *testing.T
	gw      *mockserver.Server
	key     string
	ids     map[string]string // id of the latest resource, by the first part of an operation's name
	session string
}

// call returns the status of an operation, and whether its path names an unknown
// resource because no earlier call created one.
func (m *merchant) call(op spec.Operation) (status int, unknown bool, body object) {
	m.t.Helper()
	resource, call, _ := strings.Cut(op.Name, ".")
	id := cmp.Or(m.ids[resource], "01945f2c-0000-7000-8000-000000000000")
	unknown = strings.Contains(op.Path, "{id}") && m.ids[resource] == ""
	request := ""
	if op.Method != http.MethodGet {
		request = golden.Body(m.t, resource+"/"+call+".request.json")
		if op.Name == spec.Subscriptions.Create.Name {
			request = golden.Edit(m.t, request, "customer_id", `"`+m.ids["customers"]+`"`)
		}
	}
	r, err := http.NewRequestWithContext(m.t.Context(), op.Method,
		"http://localhost"+strings.NewReplacer("{id}", id, "{slug}", id).Replace(op.Path), strings.NewReader(request))
	require.NoError(m.t, err)
	r.Header.Set("Apikey", m.key)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Checkout-Session-Token", m.session)
	resp, err := m.gw.Transport().RoundTrip(r)
	require.NoError(m.t, err)
	defer func() { assert.NoError(m.t, resp.Body.Close()) }()
	var envelope struct {
		Title string         `json:"title"`
		Data  jsontext.Value `json:"data"`
	}
	require.NoError(m.t, json.UnmarshalRead(resp.Body, &envelope))
	body = object{}
	_ = json.Unmarshal(envelope.Data, &body) // a list has no id
	if m.session == "" {
		m.session, _ = body["session_token"].(string)
	}
	if resp.StatusCode == http.StatusUnauthorized {
		assert.Equal(m.t, "Unauthorized", envelope.Title, "%s: a problem in both dialects", op.Name)
	}
	if made, _ := body["id"].(string); call == "create" && made != "" {
		m.ids[resource] = made
		_ = m.gw.Transactions.Pay(made) // so that it can be refunded; other resources can't be paid
	} else if url, _ := body["url"].(string); call == "create" && url != "" {
		m.ids["checkout_sessions"] = url[strings.LastIndexByte(url, '/')+1:]
	}
	return resp.StatusCode, unknown, body
}

// production starts a server in the production environment, at a time when
// tokens can still be created through the API.
func production(t *testing.T, dialect mockserver.Dialect) *mockserver.Server {
	t.Helper()
	return mockserver.Run(t, mockserver.WithProduction(), mockserver.WithDialect(dialect),
		mockserver.WithStart(time.Date(2026, time.July, 1, 0, 0, 0, 0, time.UTC)))
}

// clients returns the two clients of an account.
func clients(t *testing.T, gw *mockserver.Server, key string) (*gateway.Client, *legacy.Client) {
	t.Helper()
	client := gw.Account(key).Client()
	v1, err := legacy.New(client, gateway.NewSecret(key))
	require.NoError(t, err)
	return client, v1
}

// In production every operation except the one that sets a status accepts a
// live key, and none accepts a sandbox key.
func TestProduction(t *testing.T) {
	t.Parallel()
	// The customer comes first: a subscription names one.
	first := func(op spec.Operation) bool { return op.Name == spec.Customers.Create.Name }
	operations := slices.Insert(slices.DeleteFunc(slices.Collect(spec.Operations()), first), 0, spec.Customers.Create)
	for name, dialect := range map[string]mockserver.Dialect{"document": mockserver.Document, "live": mockserver.Live} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gw := production(t, dialect)
			assert.Equal(t, "sk_live_mock", gw.Key())
			m := &merchant{t: t, gw: gw, key: gw.Key(), ids: map[string]string{}}
			for _, op := range operations {
				status, unknown, body := m.call(op)
				switch {
				case op.Name == spec.Transactions.SetSandboxStatus.Name:
					assert.Equal(t, http.StatusForbidden, status)
				case dialect == mockserver.Live: // the golden requests are those of the document dialect
					assert.NotContains(t, []int{http.StatusUnauthorized, http.StatusForbidden}, status, op.Name)
				case unknown:
					assert.Equal(t, http.StatusNotFound, status, op.Name)
				default:
					// Conflicts are with the state after the earlier operations.
					assert.Contains(t, []int{200, 201, http.StatusConflict}, status, op.Name)
				}
				if link, ok := body["link"].(map[string]any); ok {
					assert.Regexp(t, "^pk_live_", link["public_token"])
				}
			}
			client, _ := clients(t, gw, gw.Key())
			read, err := client.Transactions.Get(t.Context(), m.ids["transactions"])
			require.NoError(t, err)
			assert.Equal(t, gateway.TransactionPartiallyRefunded, read.Status, "the forbidden operation changed nothing")

			before := totals(t, client)
			m.key = "sk_test_mock"
			for _, op := range operations {
				status, _, _ := m.call(op)
				assert.Equal(t, http.StatusUnauthorized, status, op.Name)
			}
			assert.Equal(t, before, totals(t, client))
			snapshot, err := gw.Snapshot()
			require.NoError(t, err)
			assert.NotContains(t, string(snapshot), m.key, "a rejected key opens no account")
		})
	}
}

// totals counts an account's resources.
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

// No status can be set, and the response is a problem in both dialects;
// controls for payers, banks and issuers work as in the sandbox.
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

// Every kind of receiver gets its webhooks: a signed endpoint, the notify_url
// of a transaction and the v1 address, also for changes by the clock.
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

	customer, err := client.Customers.Create(t.Context(), gateway.CustomerParams{Name: "Ana", Email: "ana@example.com"})
	require.NoError(t, err)
	_, err = client.Transfers.Create(t.Context(), gateway.TransferParams{
		PixKeyType: gateway.PixKeyEmail, PixKeyValue: "ana@shop.test", Amount: 5000,
	})
	require.NoError(t, err)
	_, err = client.Subscriptions.Create(t.Context(), gateway.SubscriptionParams{
		CustomerID: customer.ID, Amount: 4990, Interval: gateway.IntervalMonth, Token: "pgct_ok_1",
	})
	require.NoError(t, err)
	require.NoError(t, gw.Clock.Advance(32*24*time.Hour))
	kinds := endpoint.got()
	for _, kind := range []webhook.Kind{"payout.created", "payout.transferred", "subscription.started", "subscription.renewed"} {
		assert.Contains(t, kinds, kind)
	}
	assert.ElementsMatch(t, kinds, integrated.got(), "webhookUrl gets every family")
	assert.Empty(t, notified.got(), "a notify_url belongs to one transaction")
	assert.Empty(t, endpoint.bad, "each was signed")
}

// A production key is never sent to a sandbox address, in any form. A sandbox
// key with a production address can't be detected by the client: the gateway
// returns 401.
func TestClientOfProduction(t *testing.T) {
	t.Parallel()
	gw := production(t, mockserver.Document)
	over := gateway.WithHTTPClient(&http.Client{Transport: gw.Transport()})
	credentials := map[string]func(string) gateway.Credential{
		"bearer": gateway.BearerToken, "apiKey": gateway.APIKey, "basic": gateway.BasicToken,
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
