package httpapi_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/golden"
	"github.com/gateway-go/gateway/mockserver/internal/clock"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/httpapi"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// write is an operation with a body, as the interface document describes it.
// The tests in contract_test.go check what all of them have in common.
type write struct {
	name   string
	method string
	status int // of success
	// path creates the resource in the path; edit creates those in the body.
	path func(m *mock) string
	edit func(m *mock, body string) string
	body string // with every member
	mock option // options of the mock besides its dialect

	required []string          // required members
	nullable []string          // members that may be null
	live     differences       // in the live dialect
	free     []string          // objects whose members are the caller's own
	anyType  []string          // members of more than one type
	instead  map[string]string // members that are required if this one is missing: "products" for "amount"

	other map[string]int // the success status if a member is missing

	v1       bool // returns 422 in both dialects, accepts only the apiKey header
	plain    bool // a rejected member is reported as {error, message, status}
	optional bool // the body may be absent
}

// differences are required and nullable members of the live dialect only.
type differences struct{ required, nullable []string }

// in returns the operation in the dialect.
func (w write) in(dialect string) write {
	if dialect == "live" {
		w.required, w.nullable = slices.Concat(w.required, w.live.required), slices.Concat(w.nullable, w.live.nullable)
	}
	return w
}

func (w write) String() string { return w.name }

// prepared is an operation that succeeds, with its own mock.
type prepared struct {
	write

	m      *mock
	path   string
	body   string
	header []string
}

func (w write) prepare(t *testing.T, dialect string) prepared {
	t.Helper()
	if w.mock == nil {
		w.mock = document
	}
	m := newMock(t, w.mock, dialects[dialect])
	p := prepared{write: w, m: m, path: w.path(m), body: strings.TrimSpace(w.body)}
	if w.edit != nil {
		p.body = w.edit(m, p.body)
	}
	if w.v1 {
		p.header = []string{"Authorization", "", "apiKey", key}
	}
	if slug, found := strings.CutPrefix(p.path, "/v2/checkout/"); found {
		token := m.visit(strings.TrimSuffix(slug, "/session"), "").text("data.session_token")
		p.header = []string{"X-Checkout-Session-Token", token}
	}
	return p
}

// send sends a body to the operation.
func (p prepared) send(body string, header ...string) response {
	p.m.t.Helper()
	return p.m.call(p.method, p.path, body, slices.Concat(p.header, header)...)
}

func at(path string) func(*mock) string { return func(*mock) string { return path } }

func writes(t *testing.T) []write {
	t.Helper()
	return slices.Concat(transactionWrites(t), moneyWrites(t), subscriptionWrites(t), checkoutWrites(t), legacyWrites(t))
}

var (
	addressRequired = []string{"address.street", "address.city"}
	addressNullable = []string{"address.complement"}
)

// under puts members below another one.
func under(parent string, members ...[]string) []string {
	var list []string
	for _, m := range slices.Concat(members...) {
		list = append(list, parent+"."+m)
	}
	return list
}

// with returns a golden request with more members.
func with(t *testing.T, file string, members ...string) string {
	t.Helper()
	body := string(golden.Read(t, file))
	for i := 0; i+1 < len(members); i += 2 {
		body = golden.Edit(t, body, members[i], members[i+1])
	}
	return body
}

func transactionWrites(t *testing.T) []write {
	t.Helper()
	paid := func(action string) func(m *mock) string {
		return func(m *mock) string { return "/v2/transactions/" + m.create(card("token", `"pgpm_paid"`)) + action }
	}
	return []write{
		{
			name: "transactions.create", method: http.MethodPost, status: 201, path: at("/v2/transactions"),
			body: with(t, "transactions/create.request.json",
				"installments", "1", "interest_rate", "0.5", "token", `"pgpm_ok"`, "currency", `"BRL"`),
			required: slices.Concat([]string{
				"amount", "method", "buyer", "products", "products[0].name", "products[0].price",
				"products[1].name", "products[1].price", "buyer.name", "buyer.email", "buyer.document.type", "buyer.document.number",
			},
				under("buyer", addressRequired)),
			nullable: slices.Concat([]string{
				"external_ref", "installments", "interest_rate", "notify_url", "metadata", "ip_address",
				"products[0].sku", "buyer.phone", "buyer.birth_date", "buyer.document", "buyer.address",
			}, under("buyer", addressNullable)),
		},
		{
			name: "transactions.create for a known buyer", method: http.MethodPost, status: 201, path: at("/v2/transactions"),
			edit: func(m *mock, body string) string {
				return golden.Edit(m.t, body, "buyer.id", `"`+m.person("Ana Souza")+`"`)
			},
			body:     with(t, "transactions/create_buyer_id.request.json", "buyer", `{"id":"x"}`),
			required: []string{"amount", "method", "buyer", "products", "products[0].name", "products[0].price"},
			nullable: []string{"external_ref"},
			anyType:  []string{"buyer.id"}, // without it name and email are needed: see TestBuyerByID
		},
		{
			name: "transactions.refund", method: http.MethodPut, status: 200, path: paid("/refund"), optional: true,
			body: `{"amount":100,"reason":"broken"}`,
		},
		{
			name: "transactions.update_delivery", method: http.MethodPut, status: 200, path: paid("/delivery"),
			body: with(t, "transactions/update_delivery.request.json", "tracking_company", `"Post"`), required: []string{"tracking_code"},
			nullable: []string{"tracking_url", "tracking_company"},
		},
		{
			name: "transactions.set_sandbox_status", method: http.MethodPut, status: 200, path: paid(""),
			body: `{"status":"paid"}`, required: []string{"status"},
		},
	}
}

func moneyWrites(t *testing.T) []write {
	t.Helper()
	return []write{
		{
			name: "customers.create", method: http.MethodPost, status: 201, path: at("/v2/customers"),
			body:     with(t, "customers/create.request.json"),
			required: slices.Concat([]string{"name", "email", "document.type", "document.number"}, addressRequired),
			nullable: slices.Concat([]string{"phone", "document", "externalRef", "address", "ip_address"}, addressNullable),
		},
		{
			name: "transfers.create", method: http.MethodPost, status: 201, path: at("/v2/transfers"),
			body:     with(t, "transfers/create.request.json"),
			required: []string{"pix_key_type", "pix_key_value", "amount"},
			nullable: []string{"notify_url"},
			live:     differences{nullable: []string{"origin"}},
		},
		{
			name: "transfers.cancel", method: http.MethodPost, status: 200, optional: true,
			path: func(m *mock) string { return "/v2/transfers/" + m.payout("payout-1") + "/cancel" },
			body: `{"reason":"a mistake"}`,
		},
	}
}

func subscriptionWrites(t *testing.T) []write {
	t.Helper()
	made := func(action string) func(m *mock) string {
		return func(m *mock) string {
			return "/v2/subscriptions/" + m.subscribe(m.person("Bia Lima"), `"token":"pgct_ok_0001"`).text("data.id") + action
		}
	}
	return []write{
		{
			name: "subscriptions.create", method: http.MethodPost, status: 201, path: at("/v2/subscriptions"),
			edit: func(m *mock, body string) string {
				return golden.Edit(m.t, body, "customer_id", `"`+m.person("Ana Souza")+`"`)
			},
			body: with(t, "subscriptions/create.request.json", "products[0].tangible", "false",
				"trial_end", `"2027-02-01T00:00:00Z"`, "billing_day_of_month", "1", "comment", `"gold"`),
			required: []string{
				"customer_id", "amount", "token", "interval", "informations[0].key", "informations[0].value",
				"products[0].name", "products[0].price",
			},
			nullable: []string{"products[0].sku"},
			live:     differences{nullable: []string{"metadata", "trial_end", "idempotency_key"}},
			free:     []string{"metadata"},
		},
		{
			name: "subscriptions.update", method: http.MethodPatch, status: 200, path: made(""),
			body: with(t, "subscriptions/update.request.json"), nullable: []string{"metadata"}, free: []string{"metadata"},
		},
		{
			name: "subscriptions.cancel", method: http.MethodPost, status: 200, path: made("/cancel"), optional: true,
			body: `{"reason":"chargeback"}`,
		},
	}
}

func checkoutWrites(t *testing.T) []write {
	t.Helper()
	const link = "/v2/checkout-links"
	return []write{
		{
			name: "checkout_links.create", method: http.MethodPost, status: 201, path: at(link), plain: true,
			body: with(t, "checkout_links/create.request.json", "description", `"Two mugs"`, "expires_at", `"2027-02-04T12:00:00Z"`,
				"max_uses", "1", "success_url", `"https://shop.example/thanks"`, "cancel_url", `"https://shop.example/cart"`,
				"payment_methods", `["pix"]`, "metadata", `{"order":17}`, "products[0].metadata", `{"color":"blue"}`, "products[1].price", "1"),
			live:     differences{required: []string{"products[0].external_id", "products[1].external_id"}},
			required: []string{"products", "products[0].name", "products[0].price", "products[1].name", "products[1].price"},
			nullable: []string{
				"products[0].description", "products[0].image_url", "products[0].compare_price", "products[0].metadata",
				"description", "expires_at", "max_uses", "success_url", "cancel_url", "metadata",
			},
			free: []string{"metadata", "products[0].metadata"},
		},
		{
			name: "checkout_links.create by amount", method: http.MethodPost, status: 201, path: at(link), plain: true,
			body: with(t, "checkout_links/create_amount.request.json"), instead: map[string]string{"amount": "products"},
		},
		{
			name: "checkout_sessions.update", method: http.MethodPatch, status: 200,
			path:     func(m *mock) string { return "/v2/checkout/" + m.link(`{"amount":4990}`) + "/session" },
			body:     with(t, "checkout_sessions/update.request.json"),
			required: slices.Concat([]string{"buyer.document.type", "buyer.document.number"}, under("buyer", addressRequired)),
			nullable: slices.Concat(under("buyer", []string{"name", "email", "phone", "birth_date", "document", "address"}, addressNullable)),
		},
	}
}

func legacyWrites(t *testing.T) []write {
	t.Helper()
	return []write{
		{
			name: "legacy.configure_integration", method: http.MethodPost, status: 200, path: at("/v1/business/integration"), v1: true,
			body: with(t, "legacy/configure_integration.request.json"), other: map[string]int{"webhookUrl": 201}, // the second variant
		},
		{
			name: "legacy.create_pix_payment", method: http.MethodPost, status: 201, path: at("/pix/v1/payment"), v1: true,
			body:     with(t, "legacy/create_pix_payment.request.json", "splits[0].amount", "100"),
			required: []string{"type", "payer", "transaction", "transaction.value"},
		},
		{
			name: "legacy.create_payment_token", method: http.MethodPost, status: 200, path: at("/v2/payment_token/pgct_ok_4242"),
			body: `{"holder":{"name":"Ana"}}`, free: []string{""}, mock: before,
		},
	}
}

// before is an option for a start time at which tokens can still be created
// through the API.
func before(hc *httpapi.Config, sc *store.Config) {
	c := clock.New(clock.Config{Start: time.Date(2026, time.July, 1, 0, 0, 0, 0, time.UTC), Fire: func(clock.Timer) error { return nil }})
	hc.Now, sc.Clock = c.Now, c
}

// records returns everything that a mock stores.
func (m *mock) records() []engine.Change {
	m.t.Helper()
	m.account() // so that it is there before the first request
	state, err := m.store.State()
	require.NoError(m.t, err)
	var all []engine.Change
	for _, a := range state.Accounts {
		all = append(all, a.Records)
	}
	return all
}
