package httpapi_test

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// accepts checks that a dialect accepts a request, or, in the other dialect,
// rejects it with a code for the field.
func (m *mock) accepts(taken bool, method, path, body string, status int, field, code string) {
	m.t.Helper()
	a := m.call(method, path, body)
	if taken {
		assert.Equal(m.t, status, a.Status, "%s: %s", body, a.Body)
		return
	}
	assert.Contains(m.t, []int{http.StatusBadRequest, http.StatusUnprocessableEntity}, a.Status, body)
	if a.Header.Get("Content-Type") == "application/json" { // a checkout link's errors
		assert.Contains(m.t, a.text("message"), field, body)
		return
	}
	assert.Equal(m.t, field, a.at("errors.0.field"), body)
	assert.Equal(m.t, code, a.at("errors.0.code"), body)
}

// listed-fee: the fee in a list.
func dialectOfListedFees(m *mock, dialect string) {
	m = newMock(m.t, fees, dialects[dialect])
	id := m.create(charge())
	read, list := m.get("/v2/transactions/"+id), m.get("/v2/transactions")
	path := in(dialect, "data.data.0.fee", "data.0.payment.fee")
	assert.Equal(m.t, read.at("data.fee"), list.at(path))
	assert.ElementsMatch(m.t, []string{"estimated_fee", "net_amount"}, list.keys(path))
}

// delivery-errors: the errors of a refund and of a delivery.
func dialectOfRefundAndDeliveryErrors(m *mock, dialect string) {
	path := "/v2/transactions/" + m.create(charge())
	m.call(http.MethodPut, path+"/refund", `{}`).problem(http.StatusConflict, "NOT_REFUNDABLE")
	tracked := `{"tracking_code":"BR1"}`
	contentType := in(dialect, "application/problem+json", "application/json")
	for _, a := range []response{
		m.call(http.MethodPut, path+"/delivery", tracked),
		m.call(http.MethodPut, path+"/delivery", tracked, "If-Match", `"other"`),
		m.call(http.MethodPut, path+"/delivery", `{}`),
		m.call(http.MethodPut, "/v2/transactions/"+unknownID+"/delivery", tracked),
	} {
		assert.Equal(m.t, contentType, a.Header.Get("Content-Type"), string(a.Body))
		for _, name := range []string{"title", "status", "detail", "code"} {
			assert.Contains(m.t, a.keysOfBody(), name)
		}
	}
}

// null-members: null for some optional members. The contract tests send it for every
// member of every body; this test checks the result.
func dialectOfNulls(m *mock, dialect string) {
	live := dialect == "live"
	payout := fmt.Sprintf(payoutTo, "payout-1")
	m.accepts(live, http.MethodPost, "/v2/transfers", strings.Replace(payout, "{", `{"origin":null,`, 1), 201, "origin", "invalid_type")
	customer := m.person("Ana Souza")
	for i, name := range []string{"trial_end", "metadata", "idempotency_key"} {
		body := fmt.Sprintf(`{"customer_id":%q,"amount":1,"interval":"month","token":"pgct_ok_%d",%q:null}`, customer, i, name)
		m.accepts(live, http.MethodPost, "/v2/subscriptions", body, 201, name, "invalid_type")
	}
	if live {
		made := m.get("/v2/subscriptions").at("data.0")
		assert.Equal(m.t, "active", made.(map[string]any)["status"])
		assert.Nil(m.t, made.(map[string]any)["metadata"])
	}
	m.accepts(false, http.MethodPost, "/v2/subscriptions", `{"customer_id":"`+customer+`","amount":1,"interval":"month",
		"token":"pgct_ok_9","currency":null}`, 0, "currency", "invalid_type")
}

// customer-formats: a customer's country, IP address and document.
func dialectOfCustomers(m *mock, dialect string) {
	live := dialect == "live"
	for member, want := range map[string][2]string{
		`"address":{"street":"Main St","city":"Reno","country":"US"}`: {"address.country", "invalid_enum_value"},
		`"ip_address":"unknown"`:                {"ip_address", "invalid_string"},
		`"document":{"type":"CPF","number":""}`: {"document.number", "too_small"},
	} {
		m.accepts(live, http.MethodPost, "/v2/customers", `{"name":"Ana","email":"ana@example.com",`+member+`}`, 201, want[0], want[1])
	}
	for _, country := range []string{"", "B", "BRA", "B1", "ÇA"} {
		m.accepts(false, http.MethodPost, "/v2/customers", `{"name":"Ana","email":"ana@example.com",
			"address":{"street":"A","city":"B","country":"`+country+`"}}`, 0, "address.country",
			in(dialect, "invalid_enum_value", "invalid_string"))
	}
	m.accepts(false, http.MethodPost, "/v2/transactions", charge("buyer", `{"name":"Ana","email":"ana@example.com",
		"document":{"type":"CPF","number":"1"},"address":{"street":"A","city":"B","country":"US"}}`),
		0, "buyer.address.country", "invalid_enum_value")
}

// base-price: the amount that the gateway settles, and what the buyer is charged.
func dialectOfSettledAmounts(m *mock, dialect string) {
	t := m.t
	id := m.create(charge("external_ref", `"one"`))
	settle := func(cents int64) *engine.Refusal {
		_, refusal := m.account().Transaction(id, func(env engine.Env, tx *engine.Transaction) (engine.Change, *engine.Refusal) {
			return engine.SettleFor(env, tx, cents)
		})
		return refusal
	}
	if dialect == "document" {
		assert.NotContains(t, m.get("/v2/transactions/"+id).keys("data"), "base_price")
		require.NotNil(t, settle(193), "the document dialect reports one amount")
		return
	}
	for _, cents := range []int64{193, 1, 1 << 40, 0} {
		reported := cmp.Or(cents, 1000)
		require.Nil(t, settle(cents))
		read := m.get("/v2/transactions/" + id)
		assert.InDelta(t, reported, read.at("data.amount"), 0)
		assert.InDelta(t, 1000, read.at("data.base_price"), 0)
		item := m.get("/v2/transactions")
		assert.InDelta(t, reported, item.at("data.0.payment.amount"), 0)
		assert.InDelta(t, 1000, item.at("data.0.payment.base_price"), 0)
	}
	require.Nil(t, settle(193))
	m.move(id, engine.Pay)
	path := "/v2/transactions/" + id
	assert.InDelta(t, 1000, m.get(path).at("data.paid_amount"), 0)
	assert.InDelta(t, 193, m.call(http.MethodPut, path, `{"status":"paid"}`).at("data.transaction.amount"), 0)
	m.call(http.MethodPut, path+"/refund", `{"amount":1001}`).problem(422, "VALIDATION_ERROR")
	part := m.call(http.MethodPut, path+"/refund", `{"amount":400}`) // more than the settled amount
	assert.InDelta(t, 600, part.at("data.remaining_balance"), 0)
	assert.InDelta(t, 600, m.call(http.MethodPut, path+"/refund", `{}`).at("data.amount_refunded"), 0, "the rest of what the buyer paid")
	assert.Equal(t, "refunded", m.get(path).at("data.status"))
}

// cancellation-reason: why a merchant cancels a subscription.
func dialectOfCancelReasons(m *mock, dialect string) {
	live, customer := dialect == "live", m.person("Ana Souza")
	subscription := func(i int) string {
		made := m.subscribe(customer, fmt.Sprintf(`"token":"pgct_ok_%d"`, i))
		require.Equal(m.t, http.StatusCreated, made.Status, string(made.Body))
		return "/v2/subscriptions/" + made.text("data.id")
	}
	for i, reason := range []string{"", "user_requested", "payment_failure", "chargeback", "system"} {
		path, body := subscription(i), `{"reason":"`+reason+`"}`
		if reason == "" {
			body = "{}"
		}
		a := m.call(http.MethodPost, path+"/cancel", body)
		want := "user_requested"
		if live && reason != "" {
			want = reason
		}
		assert.Equal(m.t, want, a.at("data.cancellationReason"), body)
		require.NoError(m.t, m.clock.Advance(m.t.Context(), 32*24*time.Hour))
		assert.Equal(m.t, "canceled", m.get(path).at("data.status"))
		assert.Equal(m.t, want, m.get(path).at("data.cancellationReason"), "also at the period's end")
	}
	m.accepts(!live, http.MethodPost, subscription(9)+"/cancel", `{"reason":"moved abroad"}`, 200, "reason", "invalid_enum_value")
}

// malformed-id: a malformed id in a path.
func dialectOfMalformedIDs(m *mock, dialect string) {
	bodies := map[string]string{}
	for _, w := range writes(m.t) {
		bodies[w.name] = w.body
	}
	for _, op := range m.api.Operations() {
		if !strings.Contains(op.Path, "{id}") {
			continue
		}
		body := bodies[op.Name]
		if body == "" && op.Method != http.MethodGet {
			body = "{}"
		}
		for _, id := range []string{"1", "order-1", "01945f2c-0000-7000-8000-00000000000g", "%20"} {
			a := m.call(op.Method, strings.Replace(op.Path, "{id}", id, 1), body)
			assert.Equal(m.t, in(dialect, http.StatusNotFound, http.StatusUnprocessableEntity), a.Status, "%s %s", op.Name, a.Body)
			if dialect == "live" {
				a.field("id", "invalid_string")
			}
		}
		a := m.call(op.Method, strings.Replace(op.Path, "{id}", unknownID, 1), body)
		assert.Equal(m.t, http.StatusNotFound, a.Status, "%s %s", op.Name, a.Body)
	}
}

// link-product-limits: the products of a checkout link.
func dialectOfLinkProducts(m *mock, dialect string) {
	live := dialect == "live"
	product := func(members string) string {
		return `{"products":[{"external_id":"MUG","name":"Mug","price":1,` + members + `}]}`
	}
	const most = "9007199254740991"
	for body, in := range map[string]struct {
		document, live bool
		field          string
	}{
		`{"products":[{"name":"Mug","price":1}]}`:                                                  {true, false, "products[0].external_id"},
		`{"products":[{"external_id":"` + strings.Repeat("x", 255) + `","name":"Mug","price":1}]}`: {true, true, ""},
		`{"products":[{"external_id":"` + strings.Repeat("x", 256) + `","name":"Mug","price":1}]}`: {true, false, "products[0].external_id"},
		`{"products":[{"external_id":"MUG","name":"Mug","price":0}]}`:                              {true, false, "products[0].price"},
		`{"products":[{"external_id":"MUG","name":"Mug","price":` + most + `}]}`:                   {false, true, "products[0].price"},
		`{"products":[{"external_id":"MUG","name":"Mug","price":9007199254740992}]}`:               {false, false, "products[0].price"},
		`{"amount":100000001}`:                                       {false, false, "amount"},
		product(`"quantity":` + most):                                {false, true, "products[0].quantity"},
		product(`"quantity":0`):                                      {false, false, "products[0].quantity"},
		product(`"compare_price":0`):                                 {true, false, "products[0].compare_price"},
		product(`"compare_price":null`):                              {true, true, ""},
		product(`"compare_price":` + most):                           {false, true, "products[0].compare_price"},
		product(`"description":"` + strings.Repeat("é", 2000) + `"`): {true, true, ""},
		product(`"description":"` + strings.Repeat("é", 2001) + `"`): {true, false, "products[0].description"},
	} {
		m.accepts(live && in.live || !live && in.document, http.MethodPost, "/v2/checkout-links", body, 201, in.field, "")
	}
	if live {
		slug := m.link(`{"products":[{"external_id":"A","name":"A","price":` + most + `,"quantity":` + most + `}]}`)
		assert.InDelta(m.t, int64(9007199254740991), m.get("/v2/checkout/"+slug).at("data.link.amount"), 0, "no sum overflows")
	}
}

// In production a status can't be set, even with a malformed id.
func TestSandboxStatusInProductionWithAMalformedID(t *testing.T) {
	t.Parallel()
	for name, dialect := range dialects {
		m := newMock(t, production, dialect)
		a := m.call(http.MethodPut, "/v2/transactions/1", `{"status":"paid"}`, "Authorization", "Bearer sk_live_mock")
		assert.Equal(t, http.StatusForbidden, a.Status, name)
	}
}

// A snapshot keeps a reason of the live dialect.
func TestACancelReasonIsKept(t *testing.T) {
	t.Parallel()
	m := newMock(t, live)
	made := m.subscribe(m.person("Ana Souza"), `"token":"pgct_ok_1"`)
	m.call(http.MethodPost, "/v2/subscriptions/"+made.text("data.id")+"/cancel", `{"reason":"system"}`)
	m.account().View(func(d *store.Data) {
		assert.Equal(t, "system", d.Subscriptions.Get(made.text("data.id")).CancellationReason)
	})
	_, refusal := m.account().Subscription(made.text("data.id"), func(env engine.Env, s *engine.Subscription) (engine.Change, *engine.Refusal) {
		return engine.FireSubscription(engine.Env{Now: s.CurrentPeriodEnd, IDs: env.IDs}, s, engine.TimerPeriodEnd), nil
	})
	require.Nil(t, refusal)
	assert.Equal(t, "system", m.get("/v2/subscriptions/"+made.text("data.id")).at("data.cancellationReason"))
}
