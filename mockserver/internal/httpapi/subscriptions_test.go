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
	"github.com/gateway-go/gateway/mockserver/internal/engine"
)

// goldenCustomer is the customer in the golden requests; each mock creates its
// own.
const goldenCustomer = "019416f1-8a00-7c3e-9d51-6b0f4e2a7c10"

// subscribed sends a golden request for a customer of this mock.
func (m *mock) subscribed(file string) response {
	m.t.Helper()
	a := m.call(http.MethodPost, "/v2/customers", `{"name":"Ana Souza","email":"ana@example.com"}`)
	body := strings.ReplaceAll(string(golden.Read(m.t, file)), goldenCustomer, a.text("data.id"))
	return m.call(http.MethodPost, "/v2/subscriptions", body)
}

// subscribe makes a monthly subscription; members replace or add to its JSON.
func (m *mock) subscribe(customer string, members ...string) response {
	m.t.Helper()
	body := []string{fmt.Sprintf(`"customer_id":%q,"amount":4990,"interval":"month"`, customer)}
	return m.call(http.MethodPost, "/v2/subscriptions", "{"+strings.Join(append(body, members...), ",")+"}")
}

func (m *mock) authorize(id string) {
	m.t.Helper()
	_, refusal := m.account().Subscription(id, engine.AuthorizeSubscription)
	require.Nil(m.t, refusal)
}

func TestGoldenSubscriptions(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	card := m.subscribed("subscriptions/create.request.json").
		alike(http.StatusCreated, "subscriptions/create.response.json").text("data.id")
	newMock(t, live).subscribed("subscriptions/create_pix_automatic.request.json").
		alike(http.StatusCreated, "subscriptions/create_pix_automatic.live.response.json")
	m.subscribed("subscriptions/create_pix_automatic.request.json").
		alike(http.StatusCreated, "subscriptions/create_pix_automatic.response.json")
	path := "/v2/subscriptions/" + card
	assert.InDelta(t, 3, m.subscribe(m.person("Bia"), `"token":"pgct_ok_2","interval_count":3`).at("data.intervalCount"), 0)

	m.sent(http.MethodPatch, path, "subscriptions/update.request.json").
		alike(http.StatusOK, "subscriptions/update.response.json", "informations", "products")
	cleared := m.sent(http.MethodPatch, path, "subscriptions/update_clear.request.json")
	assert.Nil(t, cleared.at("data.metadata"))
	m.sent(http.MethodPost, path+"/cancel", "subscriptions/cancel.request.json").
		alike(http.StatusOK, "subscriptions/cancel.response.json", "informations", "products", "failurePolicy", "retryOffsetsDays")
}

// The golden read is a trial's first charge, paid and refunded in part.
func TestGoldenSubscriptionRead(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	id := m.subscribe(m.person("Ana"), `"token":"pgct_always_fails_4242","trial_end":"2027-01-10T00:00:00-03:00",`+
		`"failure_policy":"immediate_cancel","retry_offsets_days":[1,30],`+
		`"metadata":{"account": 9007199254740993, "tags": ["a", "b"], "trial": true},`+
		`"informations":[{"key":"contract","value":"C-17"},{"key":"channel","value":"web"}],`+
		`"products":[{"name":"Gold plan","price":3990},{"name":"Welcome box","price":500,"quantity":2,"tangible":true}]`).text("data.id")
	require.NoError(t, m.clock.Advance(t.Context(), 10*24*time.Hour))
	read := m.call(http.MethodGet, "/v2/subscriptions/"+id, "")
	read.alike(http.StatusOK, "subscriptions/get.response.json",
		"transactions", "billingDayOfMonth", "cancelAtPeriodEnd", "cancellationReason")
	assert.Contains(t, string(read.Body), `"metadata":{"account":9007199254740993,`, "no digit is lost")
	want := []string{"id", "status", "amount", "paidAmount", "refundedAmount", "currency", "externalRef", "createdAt", "paidAt"}
	assert.ElementsMatch(t, want, read.keys("data.transactions.0"))
	assert.Equal(t, "refused", read.text("data.transactions.0.status"), "newest first")
	assert.Equal(t, "refunded", read.text("data.transactions.1.status"), "the validation of the trial's card")
	assert.InDelta(t, 100, read.at("data.transactions.1.paidAmount"), 0)
	assert.InDelta(t, 100, read.at("data.transactions.1.refundedAmount"), 0)
	assert.Equal(t, "payment_failure", read.text("data.cancellationReason"))
}

func TestGoldenSubscriptionList(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]option{"": document, ".live": live} {
		t.Run("dialect"+name, func(t *testing.T) {
			t.Parallel()
			m := newMock(t, change)
			customer := m.call(http.MethodPost, "/v2/customers", `{"name":"Ana","email":"ana@example.com"}`).text("data.id")
			id := m.subscribe(customer, `"payment_method":"pix_automatic","trial_end":"2027-01-31T03:00:00Z"`).text("data.id")
			m.authorize(id)
			list := m.call(http.MethodGet, "/v2/subscriptions", "")
			golden.Alike(t, golden.Read(t, "subscriptions/list"+name+".response.json"), list.Body, "total", "next_cursor", "amount")
		})
	}
}

func TestSubscriptionErrors(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	ana := m.person("Ana")
	m.subscribe("nobody", `"token":"pgct_ok"`).problem(http.StatusNotFound, "NOT_FOUND")
	m.subscribe(ana, `"token":"pgct_ok","trial_end":"2027-01-04T12:00:00Z"`).
		problem(http.StatusBadRequest, "VALIDATION_ERROR").field("trial_end", "invalid_string")
	m.subscribe(ana, `"token":"pgct_ok","payment_method":"pix_automatic"`).
		problem(http.StatusBadRequest, "VALIDATION_ERROR").field("token", "invalid_string")
	m.subscribe(ana, `"token":"pgpm_ok"`).
		problem(http.StatusBadRequest, "VALIDATION_ERROR").field("token", "invalid_string")
	m.subscribe(ana, `"token":"pgct_expired"`).problem(http.StatusBadRequest, "TOKEN_EXPIRED").field("token", "invalid_string")

	id := m.subscribe(ana, `"token":"pgct_ok"`).text("data.id")
	m.subscribe(ana, `"token":"pgct_ok"`).problem(http.StatusBadRequest, "TOKEN_ALREADY_USED").field("token", "invalid_string")
	path := "/v2/subscriptions/" + id
	m.call(http.MethodPatch, path, `{"amount":1}`).
		problem(http.StatusBadRequest, "VALIDATION_ERROR").field("amount", "invalid_string")
	m.call(http.MethodPost, path+"/cancel", "")
	m.call(http.MethodPost, path+"/cancel", "{}").problem(http.StatusConflict, "INVALID_STATE")
	require.NoError(t, m.clock.Advance(t.Context(), 31*24*time.Hour))
	m.call(http.MethodPatch, path, `{"metadata":{}}`).problem(http.StatusConflict, "INVALID_STATE")
	for _, method := range []string{http.MethodGet, http.MethodPatch} {
		m.call(method, "/v2/subscriptions/nothing", "{}").problem(http.StatusNotFound, "NOT_FOUND")
	}
}

// A request rejected with 4xx uses up neither key nor token; a refused charge
// uses up both.
func TestARefusedChargeUsesUpTokenAndKey(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	ana := m.person("Ana")
	m.subscribe("nobody", `"token":"pgct_refused","idempotency_key":"k"`).problem(http.StatusNotFound, "NOT_FOUND")
	first := m.subscribe(ana, `"token":"pgct_refused","idempotency_key":"k"`)
	assert.Equal(t, http.StatusCreated, first.Status)
	assert.Equal(t, "incomplete", first.text("data.status"))
	m.subscribe(ana, `"token":"pgct_refused"`).problem(http.StatusBadRequest, "TOKEN_ALREADY_USED")
	m.subscribe(ana, `"token":"pgct_ok","idempotency_key":"k"`).problem(http.StatusConflict, "IDEMPOTENCY_KEY_REUSED")
}

// S22: the same body is the same request, whatever the order of its members.
func TestSubscriptionIdempotency(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	ana := m.person("Ana")
	first := m.subscribe(ana, `"token":"pgct_ok","idempotency_key":"k","metadata":{"a":1,"b":[2, 3]}`)
	require.Equal(t, http.StatusCreated, first.Status, string(first.Body))
	again := m.call(http.MethodPost, "/v2/subscriptions", fmt.Sprintf(`{
		"metadata": {"b": [2,3], "a": 1}, "idempotency_key": "k", "token": "pgct_ok",
		"interval": "month", "amount": 4990, "customer_id": %q}`, ana))
	assert.Equal(t, http.StatusCreated, again.Status)
	assert.Equal(t, first.text("data.id"), again.text("data.id"))
	other := m.subscribe(ana, `"token":"pgct_ok","idempotency_key":"k","metadata":{"a":1,"b":[3, 2]}`)
	other.problem(http.StatusConflict, "IDEMPOTENCY_KEY_REUSED")
	assert.Equal(t, "/v2/subscriptions/"+first.text("data.id"), other.text("instance"))
	list := m.call(http.MethodGet, "/v2/subscriptions", "")
	assert.InDelta(t, 1, list.at("data.total"), 0)
}

func TestSubscriptionListFilters(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	ana, bia := m.person("Ana"), m.person("Bia")
	first := m.subscribe(ana, `"token":"pgct_1"`).text("data.id")
	require.NoError(t, m.clock.Advance(t.Context(), 24*time.Hour))
	second := m.subscribe(bia, `"token":"pgct_refused"`).text("data.id")
	third := m.subscribe(ana, `"token":"pgct_2"`).text("data.id")
	for query, want := range map[string][]string{
		"":                                    {third, second, first},
		"?status=active":                      {third, first},
		"?status=incomplete":                  {second},
		"?customer_email=ANA@example.com":     {third, first},
		"?created_after=2027-01-05":           {third, second},
		"?created_before=2027-01-04":          {first},
		"?created_after=2027-01-05T12:00:00Z": {third, second},
		"?limit=1":                            {third},
	} {
		a := m.call(http.MethodGet, "/v2/subscriptions"+query, "")
		list, ok := a.at("data.data").([]any)
		require.True(t, ok, query)
		ids := make([]string, len(list))
		for i, s := range list {
			ids[i] = s.(map[string]any)["id"].(string)
			assert.NotContains(t, s, "transactions", "in a read by id only")
		}
		assert.Equal(t, want, ids, query)
	}
}

// A first charge that needs 3-D Secure is found through the transactions.
func TestSubscriptionChallenge(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	id := m.subscribe(m.person("Ana"), `"token":"pgct_3ds"`).text("data.id")
	read := m.call(http.MethodGet, "/v2/subscriptions/"+id, "")
	assert.Equal(t, "incomplete", read.text("data.status"))
	tx := read.text("data.transactions.0.id")
	assert.Equal(t, "three_ds_challenge", m.call(http.MethodGet, "/v2/transactions/"+tx, "").text("data.next_action.type"))
	m.move(tx, engine.PassChallenge)
	assert.Equal(t, "active", m.call(http.MethodGet, "/v2/subscriptions/"+id, "").text("data.status"))
}

// A Pix Automatico's debit needs no action of the buyer: its QR code and its
// expiry are null.
func TestAutomaticDebit(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	id := m.subscribe(m.person("Ana"), `"payment_method":"pix_automatic"`).text("data.id")
	m.authorize(id)
	debit := m.get("/v2/transactions/" + m.get("/v2/subscriptions/"+id).text("data.transactions.0.id"))
	assert.Nil(t, debit.at("data.pix.qr_code"))
	assert.Nil(t, debit.at("data.pix.expiration_date"))
	assert.NotEmpty(t, debit.text("data.pix.end_to_end_id"))
	assert.NotEmpty(t, debit.text("data.pix.receipt_url"))
}

// Retry policies and periods that banks don't execute for a Pix Automatico are accepted
// with a warning.
func TestWarningsOfAPixAutomatico(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	ana := m.person("Ana")
	for policy, warnings := range map[string]int{
		``: 0, `,"retry_offsets_days":[1,7]`: 0, `,"retry_offsets_days":[1,2,3,4]`: 1, `,"retry_offsets_days":[8]`: 1,
		`,"retry_offsets_days":[1,1]`: 1, `,"retry_offsets_days":[1,1,8,9]`: 3,
		`,"retry_offsets_days":[8],"failure_policy":"immediate_cancel"`: 0,
		`,"interval_count":3`: 0, `,"interval_count":2`: 1, `,"interval_count":5,"retry_offsets_days":[8]`: 2,
	} {
		a := m.subscribe(ana, `"payment_method":"pix_automatic"`+policy)
		require.Equal(t, http.StatusCreated, a.Status, string(a.Body))
		assert.Len(t, a.Header.Values("X-Mock-Warning"), warnings, policy)
		b := m.call(http.MethodPatch, "/v2/subscriptions/"+a.text("data.id"), `{"retry_offsets_days":[30],"failure_policy":"retry_then_cancel"}`)
		assert.Contains(t, strings.Join(b.Header.Values("X-Mock-Warning"), "\n"), "after 30 days")
	}
	card := m.subscribe(ana, `"token":"pgct_ok","retry_offsets_days":[1,2,3,30]`)
	assert.Empty(t, card.Header.Values("X-Mock-Warning"))
}
