package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/golden"
)

// person creates a customer with a name and additional members.
func (m *mock) person(name string, members ...string) string {
	m.t.Helper()
	body := append([]string{
		fmt.Sprintf(`"name":%q,"email":%q`, name, strings.ToLower(strings.ReplaceAll(name, " ", "."))+"@example.com"),
	}, members...)
	a := m.call(http.MethodPost, "/v2/customers", "{"+strings.Join(body, ",")+"}")
	require.Equal(m.t, http.StatusCreated, a.Status, string(a.Body))
	return a.text("data.id")
}

func TestGoldenCustomers(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	m.person("João Souza")
	a := m.sent(http.MethodPost, "/v2/customers", "customers/create.request.json").
		alike(http.StatusCreated, "customers/create.response.json")
	m.call(http.MethodGet, "/v2/customers/"+a.text("data.id"), "").alike(http.StatusOK, "customers/get.response.json")
	other := newMock(t, live)
	a = other.sent(http.MethodPost, "/v2/customers", "customers/create.request.json").
		alike(http.StatusCreated, "customers/create.response.json")
	other.call(http.MethodGet, "/v2/customers/"+a.text("data.id"), "").alike(http.StatusOK, "customers/get.live.response.json")
	list := m.call(http.MethodGet, "/v2/customers?page=1&limit=2", "")
	golden.Alike(t, golden.Read(t, "customers/list.response.json"), list.Body, "metadata", "email")
}

func TestCustomerErrors(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	id := m.person("Ana Souza", `"externalRef":"c-1"`)
	again := m.call(http.MethodPost, "/v2/customers", `{"name":"Ana","email":"other@example.com","externalRef":"c-1"}`)
	again.problem(http.StatusConflict, "DUPLICATE_EXTERNAL_REF")
	assert.Equal(t, "/v2/customers/"+id, again.text("instance"))
	m.person("Ana Souza") // e-mails may repeat
	m.call(http.MethodGet, "/v2/customers/nobody", "").problem(http.StatusNotFound, "NOT_FOUND")
	m.call(http.MethodPost, "/v2/customers", `{"name":"Ana"}`).
		problem(http.StatusBadRequest, "VALIDATION_ERROR").field("email", "required")
	newMock(t, live).call(http.MethodPost, "/v2/customers", `{"name":"Ana","email":"ana@example.com","phone":"1"}`).
		problem(http.StatusUnprocessableEntity, "VALIDATION_ERROR").field("phone", "invalid_string")
}

func (m *mock) names(query string) []string {
	m.t.Helper()
	a := m.call(http.MethodGet, "/v2/customers"+query, "")
	require.Equal(m.t, http.StatusOK, a.Status, string(a.Body))
	list, ok := a.at("data").([]any)
	require.True(m.t, ok)
	names := make([]string, len(list))
	for i, c := range list {
		names[i] = c.(map[string]any)["name"].(string)
	}
	return names
}

func TestCustomerFilters(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	m.person("Ana Souza", `"externalRef":"c-1","phone":"11987654321","ip_address":"203.0.113.7"`)
	m.person("Bia Lima", `"externalRef":"c-2","document":{"type":"CPF","number":"52998224725"}`)
	require.NoError(t, m.clock.Advance(t.Context(), time.Hour))
	m.person("Caio Souza", `"externalRef":"c-3","phone":"11987654321"`)
	for query, want := range map[string][]string{
		"":                                      {"Caio Souza", "Bia Lima", "Ana Souza"},
		"?search=souza":                         {"Caio Souza", "Ana Souza"},
		"?search=BIA.lima":                      {"Bia Lima"},
		"?search=998224":                        {"Bia Lima"},
		"?search=nobody":                        {},
		"?document_number=52998224725":          {"Bia Lima"},
		"?document_number=5299822472":           {},
		"?email=Ana.Souza@example.com":          {"Ana Souza"},
		"?phone=11987654321":                    {"Caio Souza", "Ana Souza"},
		"?external_ref=c-2":                     {"Bia Lima"},
		"?external_ref=c-4":                     {},
		"?external_ref=c-2&search=souza":        {},
		"?status=active":                        {"Caio Souza", "Bia Lima", "Ana Souza"},
		"?status=blocked":                       {},
		"?ip_address=203.0.113.7":               {"Ana Souza"},
		"?limit=2":                              {"Caio Souza", "Bia Lima"},
		"?limit=2&page=2":                       {"Ana Souza"},
		"?limit=2&page=3":                       {},
		"?limit=1&page=2&phone=11987654321":     {"Ana Souza"},
		"?limit=100&page=1000000&search=nobody": {},
	} {
		assert.Equal(t, want, m.names(query), query)
	}
	a := m.call(http.MethodGet, "/v2/customers?limit=1&page=2&search=souza", "")
	assert.Equal(t, map[string]any{"page": 2.0, "limit": 1.0, "total": 2.0}, a.at("metadata"))
	assert.Equal(t, map[string]any{"page": 1.0, "limit": 10.0, "total": 3.0}, m.call(http.MethodGet, "/v2/customers", "").at("metadata"))
}

// A customer is the buyer of a transaction that names its id.
func TestCustomerAsBuyer(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	id := m.person("Ana Souza")
	a := m.call(http.MethodPost, "/v2/transactions", charge("buyer", fmt.Sprintf(`{"id":%q}`, id)))
	assert.Equal(t, id, a.text("data.buyer.id"))
	assert.Equal(t, "Ana Souza", a.text("data.buyer.name"))
}

// A form sends all of its fields, including empty ones.
func TestEmptyPageParametersAreIgnored(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	for range 3 {
		m.person("Ana Souza")
	}
	a := m.get("/v2/customers?page=&limit=&page=2&limit=2")
	assert.InDelta(t, 2, a.at("metadata.page"), 0)
	assert.InDelta(t, 2, a.at("metadata.limit"), 0)
	assert.Len(t, a.at("data"), 1)
}
