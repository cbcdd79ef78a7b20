package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/deliver"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
)

// informations: the merchant's own informations.
func dialectOfInformations(m *mock, dialect string) {
	live := dialect == "live"
	list := func(key, value string) string {
		return charge("informations", fmt.Sprintf(`[{"key":%q,"value":%q}]`, key, value))
	}
	longest := list(strings.Repeat("é", 64), strings.Repeat("é", 255))
	id := m.create(longest)
	path := "/v2/transactions/" + id
	if !live {
		assert.Empty(m.t, m.get(path).at("data.informations"))
		return
	}
	sent := []any{map[string]any{"key": strings.Repeat("é", 64), "value": strings.Repeat("é", 255)}}
	assert.Equal(m.t, sent, m.get(path).at("data.informations"))
	for body, field := range map[string]string{
		list(strings.Repeat("é", 65), ""):                         "informations[0].key",
		list("", strings.Repeat("é", 256)):                        "informations[0].value",
		charge("informations", `[{"key":"a"}]`):                   "informations[0].value",
		charge("informations", `[{"value":"a"}]`):                 "informations[0].key",
		charge("informations", "["+strings.Repeat(`1,`, 50)+"1]"): "informations",
		charge("informations", `{"key":"a","value":"b"}`):         "informations",
	} {
		assert.Equal(m.t, field, m.call(http.MethodPost, "/v2/transactions", body).at("errors.0.field"), body)
	}
	m.move(id, engine.Pay)
	m.call(http.MethodPut, path+"/refund", `{"reason":"broken"}`)
	assert.Equal(m.t, append(sent, map[string]any{"key": "refund_reason", "value": "broken"}), m.get(path).at("data.informations"))
}

// customer-read: a customer that is read by id.
func dialectOfCustomerReads(m *mock, dialect string) {
	body := `{"name":"Ana","email":"ana@example.com","birth_date":"1990-05-17","document":{"type":"CPF","number":"52998224725"},
		"address":{"street":"Rua A","city":"Recife","zipCode":"50030000"}}`
	made := m.call(http.MethodPost, "/v2/customers", body)
	assert.Equal(m.t, "52998224725", made.at("data.document.number"), "a create has the document's spelling in both")
	a := m.get("/v2/customers/" + made.text("data.id"))
	document := in(dialect, []string{"type", "number"}, []string{"document_type", "document_number"})
	assert.ElementsMatch(m.t, document, a.keys("data.document"))
	assert.Equal(m.t, "52998224725", a.at("data.document."+document[1]))
	assert.Equal(m.t, "50030000", a.at("data.address."+in(dialect, "zipCode", "zip_code")))
	assert.NotContains(m.t, a.keys("data.address"), in(dialect, "zip_code", "zipCode"))
	if dialect == "document" {
		assert.NotContains(m.t, a.keys("data"), "birth_date")
		return
	}
	assert.Equal(m.t, "1990-05-17", a.at("data.birth_date"))
	m.call(http.MethodPost, "/v2/customers", `{"name":"Bia","email":"bia@example.com","birth_date":1}`).
		problem(422, "VALIDATION_ERROR").field("birth_date", "invalid_type")
	bare := m.get("/v2/customers/" + m.person("Bia Lima"))
	assert.Nil(m.t, bare.at("data.birth_date"))
	assert.NotContains(m.t, bare.keys("data"), "document")
}

// repeated-subscription: a subscription's key with another body.
func dialectOfReusedSubscriptionKeys(m *mock, dialect string) {
	live, customer := dialect == "live", m.person("Ana Souza")
	keyed := func(members string) response { return m.subscribe(customer, `"idempotency_key":"k",`+members) }
	first := keyed(`"token":"pgct_ok"`)
	path := "/v2/subscriptions/" + first.text("data.id")
	again := keyed(`"token":"pgct_ok"`)
	assert.Equal(m.t, in(dialect, http.StatusCreated, http.StatusOK), again.Status)
	assert.Equal(m.t, first.at("data"), again.at("data"))
	for _, other := range []string{`"token":"pgct_other"`, `"token":"pgct_ok","interval_count":2`, `"payment_method":"pix_automatic"`} {
		a := keyed(other)
		if !live {
			a.problem(http.StatusConflict, "IDEMPOTENCY_KEY_REUSED")
			assert.Equal(m.t, path, a.text("instance"))
			continue
		}
		assert.Equal(m.t, http.StatusOK, a.Status, string(a.Body))
		assert.Equal(m.t, first.at("data"), a.at("data"), "the first subscription, whatever the body says")
	}
	assert.InDelta(m.t, 1, m.get("/v2/subscriptions").at(in(dialect, "data.total", "total")), 0)
	assert.InDelta(m.t, 1, m.get("/v2/transactions").at(in(dialect, "data.total", "total")), 0, "one charge")
}

// pix-automatic-members: members that a Pix Automatico does not have.
func dialectOfUnknownMembers(m *mock, dialect string) {
	customer := m.person("Ana Souza")
	plan := func(members string) string {
		return `{"customer_id":"` + customer + `","amount":4990,"interval":"month",` + members + `}`
	}
	const create = "/v2/subscriptions"
	m.accepts(dialect == "document", http.MethodPost, create, plan(`"payment_method":"pix_automatic","color":"red"`), 201, "color", "invalid_string")
	m.accepts(true, http.MethodPost, create, plan(`"payment_method":"pix_automatic","metadata":{"color":"red"}`), 201, "", "")
	m.accepts(true, http.MethodPost, create, plan(`"payment_method":"pix_automatic","interval_count":1,"failure_policy":"immediate_cancel",`+
		`"currency":"BRL","informations":[],"idempotency_key":"club-0001","products":[],`+
		`"billing_day_of_month":5,"comment":"Club"`), 201, "", "")
	m.accepts(true, http.MethodPost, create, plan(`"token":"pgct_ok","color":"red"`), 201, "", "")
}

// pix-authorization: what the payer of a Pix Automatico needs, and what the metadata says of it.
func dialectOfAuthorizations(m *mock, dialect string) {
	live := dialect == "live"
	made := m.subscribe(m.person("Ana Souza"), `"payment_method":"pix_automatic","metadata":{"plan":"gold","n":12345678901234567890}`)
	path := "/v2/subscriptions/" + made.text("data.id")
	keys := in(dialect, []string{"status", "qr_code", "expiration_date"}, []string{"qr_code", "expires_at", "payment_link_url"})
	for _, a := range []response{made, m.get(path)} {
		assert.ElementsMatch(m.t, keys, a.keys("data.authorization"))
		assert.ElementsMatch(m.t, []string{"status", "qr_code", "expiration_date"}, a.keys("data.recurringAuthorization"))
		assert.Equal(m.t, a.at("data.recurringAuthorization.expiration_date"), a.at("data.authorization."+in(dialect, "expiration_date", "expires_at")))
		assert.Equal(m.t, "gold", a.at("data.metadata.plan"))
	}
	status := func() any { return m.get(path).at("data.metadata.provider_recurring.mandate_status") }
	if !live {
		assert.NotContains(m.t, made.keys("data.metadata"), "provider_recurring")
		return
	}
	assert.Contains(m.t, string(made.Body), "12345678901234567890", "numbers are unchanged")
	assert.Equal(m.t, "pending", status())
	m.call(http.MethodPatch, path, `{"metadata":null}`)
	assert.Equal(m.t, "pending", status(), "an update does not remove it")
	m.call(http.MethodPatch, path, `{"metadata":{"provider_recurring":"mine"}}`)
	assert.Equal(m.t, "pending", status(), "nor replace it")
	_, refusal := m.account().Subscription(made.text("data.id"), engine.AuthorizeSubscription)
	assert.Nil(m.t, refusal)
	assert.Equal(m.t, "approved", status())
	assert.NotContains(m.t, m.get(path).keys("data"), "authorization")
	card := m.subscribe(m.person("Bia Lima"), `"token":"pgct_ok"`)
	assert.Nil(m.t, card.at("data.metadata"))
}

// api-version: the api_version of events. Their bodies are tested in package deliver.
func dialectOfEventVersions(m *mock, dialect string) {
	for _, e := range []engine.Event{
		{Transaction: &engine.Transaction{}}, {Subscription: &engine.Subscription{}}, {Transfer: &engine.Transfer{}},
	} {
		assert.Contains(m.t, event(m, dialect, &e), in(dialect, `"api_version":"2.0.0"`, `"api_version":"v2"`))
	}
	legacy := engine.Event{Transaction: &engine.Transaction{Legacy: &engine.LegacyPayment{}}}
	assert.Contains(m.t, event(m, dialect, &legacy), in(dialect, `"api_version":"2.0.0"`, `"api_version":"v1"`))
}

// absent-phone: the phone of a buyer without one.
func dialectOfAbsentPhones(m *mock, dialect string) {
	ana := engine.Event{Transaction: &engine.Transaction{Buyer: &engine.Buyer{Name: "Ana"}}}
	assert.Contains(m.t, event(m, dialect, &ana), in(dialect, `"email":null,"phone":null`, `"email":null,"phone":"null"`))
	ana.Transaction.Buyer.Phone = "1"
	assert.Contains(m.t, event(m, dialect, &ana), `"phone":"1"`)
}

// event returns the body of an event.
func event(m *mock, dialect string, e *engine.Event) string {
	body, err := deliver.Render(e, in(dialect, spec.DocumentDialect, spec.LiveDialect))
	require.NoError(m.t, err)
	return string(body)
}

// partial-refund-event: the kind of the event of a refund in part.
func dialectOfPartialRefunds(m *mock, dialect string) {
	id := m.create(charge())
	m.move(id, engine.Pay)
	for i, kind := range []string{in(dialect, "transaction.refunded", "transaction.partially_refunded"), "transaction.refunded"} {
		m.move(id, func(env engine.Env, t *engine.Transaction) (engine.Change, *engine.Refusal) {
			amount := int64(1 - i) // first a part, then the rest
			c, refusal := engine.Refund(env, t, engine.RefundRequest{Amount: amount})
			require.Nil(m.t, refusal)
			require.Len(m.t, c.Events, 1)
			assert.Equal(m.t, kind, c.Events[0].Kind)
			return c, refusal
		})
	}
}

// colombian-vouchers: how long a voucher in Colombian pesos lives.
func dialectOfColombianVouchers(m *mock, dialect string) {
	body := charge("method", `"voucher"`, "currency", `"COP"`,
		"buyer", `{"name":"Ana","email":"ana@example.com","address":{"street":"Calle 1","city":"Bogota","zipCode":"110111","country":"CO"}}`)
	for key, lives := range map[string]string{
		"sk_test_shop":    in(dialect, "2027-01-07T12:00:00.000Z", "2027-01-04T12:10:00.000Z"),
		"sk_test_bre_b_1": in(dialect, "2027-01-07T12:00:00.000Z", "2027-01-04T12:05:00.000Z"),
	} {
		a := m.call(http.MethodPost, "/v2/transactions", body, "Authorization", "Bearer "+key)
		require.Equal(m.t, http.StatusCreated, a.Status, string(a.Body))
		assert.Equal(m.t, lives, a.at("data.voucher.expiration_date"))
	}
}

// sandbox-pays: payments that the sandbox settles by itself.
func dialectOfSandboxSettlement(m *mock, dialect string) {
	buyer := func(document string) string {
		return `{"name":"Ana","email":"ana@example.com","document":{"type":"CPF","number":"` + document + `"}}`
	}
	settled := map[string]bool{}
	for body, settles := range map[string]bool{
		charge("amount", "7300"):                     true,
		charge("amount", "7301"):                     false,
		charge("buyer", buyer("06957410600")):        true,
		charge("buyer", buyer("390.271.878-19")):     true,
		charge("buyer", buyer("52998224725")):        false,
		card("amount", "7300", "token", `"pgct_ok"`): false,
	} {
		settled[m.create(body)] = settles && dialect == "live"
	}
	require.NoError(m.t, m.clock.Advance(m.t.Context(), 15*time.Second-time.Millisecond))
	for id := range settled {
		assert.Equal(m.t, "pending", m.get("/v2/transactions/"+id).at("data.status"))
	}
	require.NoError(m.t, m.clock.Advance(m.t.Context(), time.Millisecond))
	for id, paid := range settled {
		assert.Equal(m.t, paid, m.get("/v2/transactions/"+id).at("data.status") == "paid")
	}
}

// A production account has no such documents.
func TestNothingSettlesItselfInProduction(t *testing.T) {
	t.Parallel()
	m := newMock(t, production, live)
	a := m.call(http.MethodPost, "/v2/transactions", charge("amount", "7300"), "Authorization", "Bearer sk_live_mock")
	require.Equal(t, http.StatusCreated, a.Status)
	require.NoError(t, m.clock.Advance(t.Context(), time.Minute))
	a = m.call(http.MethodGet, "/v2/transactions/"+a.text("data.id"), "", "Authorization", "Bearer sk_live_mock")
	assert.Equal(t, "pending", a.at("data.status"))
}

// An account may not be allowed to use Pix Automatico.
func TestADisabledPixAutomatico(t *testing.T) {
	t.Parallel()
	for name, dialect := range dialects {
		m := newMock(t, dialect)
		key := []string{"Authorization", "Bearer sk_test_no_pix_automatic_1"}
		ana := m.call(http.MethodPost, "/v2/customers", `{"name":"Ana","email":"ana@example.com"}`, key...).text("data.id")
		plan := `{"customer_id":"` + ana + `","amount":4990,"interval":"month",`
		m.call(http.MethodPost, "/v2/subscriptions", plan+`"payment_method":"pix_automatic"}`, key...).
			plain(http.StatusForbidden, "PIX_AUTOMATIC_DISABLED").alike(403, "errors/pix_automatic_disabled.403.json")
		a := m.call(http.MethodPost, "/v2/subscriptions", plan+`"token":"pgct_ok"}`, key...)
		assert.Equal(t, http.StatusCreated, a.Status, "%s: %s", name, a.Body)
	}
}

// body-not-object: JSON that is not an object.
func dialectOfBodies(m *mock, dialect string) {
	for _, body := range []string{`[]`, ` "text"`, `1`, `null`, `[{"amount":1}]`} {
		for _, path := range []string{"/v2/transactions", "/v2/transfers", "/v2/customers", "/v2/subscriptions"} {
			a := m.call(http.MethodPost, path, body)
			if dialect == "document" {
				a.problem(http.StatusBadRequest, "MALFORMED_JSON")
				continue
			}
			a.problem(http.StatusUnprocessableEntity, "VALIDATION_ERROR").field("body", "invalid_type")
		}
	}
	for _, body := range []string{`[`, `{"a":1,"a":2}`, `nul`, `{} 1`, `[] []`} {
		m.call(http.MethodPost, "/v2/transactions", body).problem(http.StatusBadRequest, "MALFORMED_JSON")
	}
}
