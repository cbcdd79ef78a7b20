package httpapi_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

func TestTransactionHasEveryKey(t *testing.T) {
	t.Parallel()
	whole := []string{
		"id", "amount", "currency", "method", "status", "external_ref", "buyer", "fee", "installments", "informations",
		"paid_amount", "refunded_amount", "paid_at", "pix", "voucher", "products", "metadata", "traceable", "ip_address",
		"splits", "next_action", "created_at", "updated_at",
	}
	m := newMock(t)
	for _, body := range []string{
		charge(), card("token", `"pgct_3ds"`),
		charge("method", `"voucher"`, "buyer", `{"name":"Ana","email":"a@example.com","address":{"street":"A","city":"B","zipCode":"1"}}`),
	} {
		created := m.call(http.MethodPost, "/v2/transactions", body)
		require.Equal(t, http.StatusCreated, created.Status, string(created.Body))
		assert.ElementsMatch(t, whole, created.keys("data"))
		assert.ElementsMatch(t, []string{"id", "name", "email", "phone", "birth_date", "document", "address"}, created.keys("data.buyer"))
		read := m.call(http.MethodGet, "/v2/transactions/"+created.text("data.id"), "")
		assert.Equal(t, created.at("data"), read.at("data"), "create and read return the same object")
	}
	list := m.call(http.MethodGet, "/v2/transactions", "")
	assert.ElementsMatch(t, []string{"barcode", "digitable_line", "url", "expiration_date", "instructions", "receipt_url"},
		list.keys("data.data.0.voucher"))
	assert.ElementsMatch(t, []string{"type", "challenge_session_id", "client_secret", "expires_at"}, list.keys("data.data.1.next_action"))
	assert.ElementsMatch(t, []string{"qr_code", "expiration_date", "end_to_end_id", "receipt_url"}, list.keys("data.data.2.pix"))
	assert.ElementsMatch(t, whole, list.keys("data.data.2"))
	assert.Equal(t, "BR", list.at("data.data.0.buyer.address.country"), "country is always present")
	assert.Nil(t, list.at("data.data.0.buyer.address.complement"))
}

// Row X7; the live dialect's body is row plain-errors.
func TestADuplicateReference(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	id := m.create(charge("external_ref", `"order-1"`))
	a := m.call(http.MethodPost, "/v2/transactions", charge("external_ref", `"order-1"`, "amount", "5"))
	a.problem(409, "DUPLICATE_EXTERNAL_REF")
	assert.Equal(t, "/v2/transactions/"+id, a.at("instance"))
	assert.Equal(t, "A transaction with this external reference already exists", a.at("detail"))
	assert.Equal(t, "Conflict", a.at("title"))
}

func TestReferenceMayBeAbsent(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	for _, ref := range []string{"", `""`, "null", "", `""`} {
		a := m.call(http.MethodPost, "/v2/transactions", charge("external_ref", ref))
		require.Equal(t, http.StatusCreated, a.Status)
		assert.Nil(t, a.at("data.external_ref"))
	}
}

// 50 creates with one reference at the same time: one 201, 49 times 409 with
// the winner's id.
func TestConcurrentCreatesHaveOneWinner(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	var wg sync.WaitGroup
	responses := make([]response, 50)
	for i := range responses {
		wg.Go(func() { responses[i] = m.call(http.MethodPost, "/v2/transactions", charge("external_ref", `"one"`)) })
	}
	wg.Wait()
	winner := ""
	for _, a := range responses {
		if a.Status == http.StatusCreated {
			assert.Empty(t, winner, "two winners")
			winner = a.text("data.id")
		}
	}
	require.NotEmpty(t, winner)
	for _, a := range responses {
		if a.Status != http.StatusCreated {
			a.problem(409, "DUPLICATE_EXTERNAL_REF")
			assert.Equal(t, "/v2/transactions/"+winner, a.at("instance"))
		}
	}
}

// The order of checks: body, reference, buyer, token. A rejected request uses
// up nothing.
func TestOrderOfChecks(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	const (
		one  = `"order-1"`
		used = `"pgct_used_1"`
	)
	m.call(http.MethodPost, "/v2/transactions", card("external_ref", one, "buyer", `{"id":"nobody"}`, "token", `"tok"`)).
		problem(400, "VALIDATION_ERROR").field("token", "invalid_string")
	m.call(http.MethodPost, "/v2/transactions", card("external_ref", one, "buyer", `{"id":"nobody"}`, "token", used)).
		problem(404, "NOT_FOUND")
	m.call(http.MethodPost, "/v2/transactions", card("external_ref", one, "token", used)).
		problem(400, "TOKEN_ALREADY_USED").field("token", "invalid_string")
	m.call(http.MethodPost, "/v2/transactions", card("external_ref", one, "token", `"pgpm_expired"`)).
		problem(400, "TOKEN_EXPIRED").field("token", "invalid_string")
	m.create(card("external_ref", one, "token", `"pgct_refused_1"`)) // 201: uses up both
	m.call(http.MethodPost, "/v2/transactions", card("external_ref", one, "buyer", `{"id":"nobody"}`, "token", used)).
		problem(409, "DUPLICATE_EXTERNAL_REF")
	m.call(http.MethodPost, "/v2/transactions", card("external_ref", `"order-2"`, "token", `"pgct_refused_1"`)).
		problem(400, "TOKEN_ALREADY_USED")
	m.create(card("external_ref", `"order-2"`, "token", `"pgpm_ok"`))
	m.create(card("external_ref", `"order-3"`, "token", `"pgpm_ok"`)) // reusable
}

func TestRefunds(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	id := m.create(charge())
	path := "/v2/transactions/" + id + "/refund"
	a := m.call(http.MethodPut, path, `{"amount":1}`).problem(409, "NOT_REFUNDABLE")
	assert.Equal(t, path, a.at("instance"))
	m.move(id, engine.Pay)
	a = m.call(http.MethodPut, path, `{"amount":400,"reason":"damaged"}`)
	assert.JSONEq(t, `{"message":"The refund was made.","amount_refunded":400,"remaining_balance":600,"is_full_refund":false}`, string(member(a, "data")))
	m.call(http.MethodPut, path, `{"amount":601}`).problem(400, "VALIDATION_ERROR").field("amount", "too_big")
	a = m.call(http.MethodPut, path, "") // no body at all: all that is left
	assert.JSONEq(t, `{"message":"The refund was made.","amount_refunded":600,"remaining_balance":0,"is_full_refund":true}`, string(member(a, "data")))
	m.call(http.MethodPut, path, "{}").problem(409, "NOT_REFUNDABLE")
	m.call(http.MethodPut, "/v2/transactions/nobody/refund", "{}").problem(404, "NOT_FOUND")
	m.call(http.MethodPut, path, "{}", "Content-Type", "text/plain").problem(415, "UNSUPPORTED_MEDIA_TYPE")
	read := m.call(http.MethodGet, "/v2/transactions/"+id, "")
	assert.Equal(t, "refunded", read.at("data.status"))
	assert.Equal(t, "damaged", read.at("data.informations.0.value"))
}

func TestSetSandboxStatus(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	id := m.create(charge("external_ref", `"order-1"`))
	a := m.call(http.MethodPut, "/v2/transactions/"+id, `{"status":"paid"}`)
	assert.JSONEq(t, `{"transaction":{"id":"`+id+`","status":"paid","method":"pix","amount":1000,"currency":"BRL","external_ref":"order-1"}}`,
		string(member(a, "data")))
	read := m.call(http.MethodGet, "/v2/transactions/"+id, "")
	assert.Equal(t, "2027-01-04T12:00:00.000Z", read.at("data.paid_at"))
	m.call(http.MethodPut, "/v2/transactions/nobody", `{"status":"paid"}`).problem(404, "NOT_FOUND")

	p := newMock(t, production) // no other member is checked
	p.call(http.MethodPut, "/v2/transactions/nobody", "{", "Authorization", "Bearer sk_live_mock").problem(403, "FORBIDDEN")
}

func TestDeliveryAndETag(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	id := m.create(charge())
	path := "/v2/transactions/" + id
	m.call(http.MethodPut, path+"/delivery", `{"tracking_code":"BR1"}`).problem(409, "DELIVERY_STATE")
	pending := m.call(http.MethodGet, path, "").Header.Get("ETag")
	require.NotEmpty(t, pending)
	m.move(id, engine.Pay)
	paid := m.call(http.MethodGet, path, "").Header.Get("ETag")
	assert.NotEqual(t, pending, paid, "another version has another tag, although the clock has not moved")
	assert.Equal(t, paid, m.call(http.MethodGet, path, "").Header.Get("ETag"))

	m.call(http.MethodPut, path+"/delivery", `{"tracking_code":"BR1"}`, "If-Match", pending).problem(412, "PRECONDITION_FAILED")
	m.call(http.MethodPut, path+"/delivery", `{"tracking_code":"BR1"}`, "If-Match", "W/"+paid).problem(412, "PRECONDITION_FAILED")
	a := m.call(http.MethodPut, path+"/delivery", `{"tracking_code":"BR1","tracking_url":"https://t.example.com/1"}`, "If-Match", pending+", "+paid)
	assert.JSONEq(t, `{"status":"in_transit","code":"BR1","url":"https://t.example.com/1","company":null,"last_update":"2027-01-04T12:00:00.000Z"}`,
		string(member(a, "data")))
	m.call(http.MethodPut, path+"/delivery", `{"tracking_code":"BR1"}`, "If-Match", paid).problem(412, "PRECONDITION_FAILED")
	a = m.call(http.MethodPut, path+"/delivery", `{"tracking_code":"BR2","tracking_url":null,"delivery_status":"delivered"}`, "If-Match", a.Header.Get("ETag"))
	assert.Nil(t, a.at("data.url"))
	m.call(http.MethodPut, path+"/delivery", `{"tracking_code":"BR2","delivery_status":"waiting"}`, "If-Match", "*").problem(409, "DELIVERY_STATE")
	assert.Equal(t, "delivered", m.call(http.MethodPut, path+"/delivery", `{"tracking_code":"BR3"}`).at("data.status"))
}

// A customer's id names the buyer: a string, or a number that is compared as a
// string.
func TestBuyerByID(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	for _, id := range []string{"c-1", "4711"} {
		require.Nil(t, refusalOf(m.account().Apply(func(*store.Data) (engine.Change, *engine.Refusal) {
			return engine.Change{Customers: []*engine.Customer{{
				Buyer: engine.Buyer{ID: id, Name: "Ana", Email: "ana@example.com"}, ExternalRef: id, CreatedAt: noon,
			}}}, nil
		})))
	}
	a := m.call(http.MethodPost, "/v2/transactions", charge("buyer", `{"id":"c-1","phone":"11"}`))
	require.Equal(t, http.StatusCreated, a.Status, string(a.Body))
	assert.Equal(t, "c-1", a.at("data.buyer.id"))
	assert.Equal(t, "Ana", a.at("data.buyer.name"))
	assert.Equal(t, "11", a.at("data.buyer.phone"))
	a = m.call(http.MethodPost, "/v2/transactions", charge("buyer", `{"id":4711}`))
	assert.Equal(t, "4711", a.at("data.buyer.id"))
	m.call(http.MethodPost, "/v2/transactions", charge("buyer", `{"id":4712}`)).problem(404, "NOT_FOUND")
}

func TestMemoryLimitOnTheWire(t *testing.T) {
	t.Parallel()
	m := newMock(t, limited)
	a := m.call(http.MethodPost, "/v2/transactions", charge("metadata", text(4000)))
	a.problem(507, "MEMORY_LIMIT")
	assert.Equal(t, "Insufficient Storage", a.at("title"))
	m.v1(http.MethodPost, "/pix/v1/payment", `{"type":"PIX","payer":{"fullName":`+text(4000)+`},"transaction":{"value":1}}`).
		problem(507, "MEMORY_LIMIT")
}

func TestTransactionFilters(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	first := m.create(charge("buyer", `{"name":"Ana Souza","email":"Ana@example.com","phone":"11","document":{"type":"CPF","number":"529"}}`,
		"currency", `"MXN"`, "traceable", "true"))
	require.NoError(t, m.clock.Advance(t.Context(), 36*time.Hour)) // the first one expires
	second := m.create(card("buyer", `{"name":"Beto","email":"beto@example.com"}`, "token", `"pgct_paid"`, "installments", "3",
		"products", `[{"name":"Shoe","price":1},{"name":"Sock","price":1}]`))
	m.call(http.MethodPut, "/v2/transactions/"+second+"/delivery", `{"tracking_code":"1"}`)
	for query, want := range map[string]string{
		"":                                   second + " " + first,
		"id=" + first:                        first,
		"id=" + first + "," + second:         second + " " + first,
		"id=" + first + "&id=" + second:      second + " " + first,
		"paymentMethods=pix":                 first,
		"paymentMethods=credit_card,voucher": second,
		"paymentMethods=pix&paymentMethods=credit_card": second + " " + first,
		"currency=MXN":                          first,
		"status=paid":                           second,
		"status=expired":                        first,
		"status=pending":                        "",
		"deliveryStatus=in_transit":             second,
		"installments=3":                        second,
		"installments=03,12":                    second,
		"name=souza":                            first,
		"email=ana@EXAMPLE.com":                 first,
		"email=nobody@example.com":              "",
		"documentNumber=529":                    first,
		"phone=11":                              first,
		"products=Sock":                         second,
		"products=Hat,Book":                     first,
		"traceable=true":                        first,
		"traceable=false":                       second,
		"dateFrom=2027-01-05":                   second,
		"dateTo=2027-01-04":                     first,
		"dateTo=2027-01-05":                     first, // the second is of the next midnight
		"dateTo=2027-01-06":                     second + " " + first,
		"dateFrom=2027-01-04T12:00:00Z":         second + " " + first,
		"dateFrom=2027-01-04T12:00:00.001Z":     second,
		"dateTo=2027-01-05T21:00:00-03:00":      second + " " + first,
		"dateFrom=2027-01-04&dateTo=2027-01-04": first,
		"status=paid&name=ana":                  "",
		"colour=red":                            second + " " + first,
	} {
		a := m.call(http.MethodGet, "/v2/transactions?"+query, "")
		require.Equal(t, http.StatusOK, a.Status, query)
		assert.Equal(t, want, idsOf(a), query)
		assert.InDelta(t, len(strings.Fields(want)), a.at("data.total"), 0, query)
	}
}

func idsOf(a response) string {
	a.t.Helper()
	items, ok := a.at("data.data").([]any)
	require.True(a.t, ok)
	var list []string
	for i := range items {
		list = append(list, a.text(fmt.Sprintf("data.data.%d.id", i)))
	}
	return strings.Join(list, " ")
}

func TestListPages(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	var made []string
	for range 45 {
		made = append([]string{m.create(charge())}, made...)
	}
	page := func(query string) response { return m.call(http.MethodGet, "/v2/transactions?"+query, "") }
	cursor := func(a response, name string) string { return "cursor=" + url.QueryEscape(a.text("data."+name)) }

	first := page("") // the default is 20
	items, _ := first.at("data.data").([]any)
	assert.Len(t, items, 20)
	assert.Nil(t, first.at("data.prev_cursor"))
	first = page("limit=9")
	assert.Equal(t, strings.Join(made[:9], " "), idsOf(first))
	m.create(charge()) // while someone pages
	second := page("limit=9&" + cursor(first, "next_cursor"))
	assert.Equal(t, strings.Join(made[9:18], " "), idsOf(second))
	assert.Equal(t, idsOf(second), idsOf(page("limit=9&direction=next&"+cursor(first, "next_cursor"))))
	assert.Equal(t, idsOf(first), idsOf(page("limit=9&direction=prev&"+cursor(second, "prev_cursor"))))
	last := page("limit=100&" + cursor(second, "next_cursor"))
	assert.Nil(t, last.at("data.next_cursor"))
	assert.InDelta(t, 46, last.at("data.total"), 0)
}
