package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// edge is a member of a request at the last allowed and the first refused
// value of one rule.
type edge struct {
	field   string
	allowed []string // whole requests
	refused string
	code    string
}

func text(n int) string { return `"` + strings.Repeat("é", n) + `"` }

func product(members string) string { return charge("products", `[{`+members+`}]`) }

func products(n int) string {
	return charge("products", "["+strings.TrimSuffix(strings.Repeat(`{"name":"Book","price":1},`, n), ",")+"]")
}

func buyer(members string) string {
	return charge("buyer", `{"name":"Ana","email":"ana@example.com",`+members+`}`)
}

func address(members string) string {
	return buyer(`"address":{"street":"Rua A","city":"Recife",` + members + `}`)
}

func card(members ...string) string {
	return charge(append([]string{"method", `"credit_card"`, "token", `"pgpm_ok"`}, members...)...)
}

func shopURL(n int) string { return `"https://shop.example.com/` + strings.Repeat("a", n-25) + `"` }

func transactionEdges() []edge {
	return []edge{
		{"external_ref", []string{charge("external_ref", "null"), charge("external_ref", `""`)}, charge("external_ref", "1"), "invalid_type"},
		{"amount", []string{charge("amount", "1")}, charge("amount", "0"), "too_small"},
		{"amount", []string{charge("amount", "100000000")}, charge("amount", "100000001"), "too_big"},
		{"amount", nil, charge("amount", ""), "required"},
		{"amount", nil, charge("amount", "null"), "invalid_type"},
		{"amount", nil, charge("amount", `"1000"`), "invalid_type"},
		{"amount", nil, charge("amount", "10.5"), "invalid_type"},
		{"amount", nil, charge("amount", "true"), "invalid_type"},
		{"currency", []string{charge("currency", `"UYU"`)}, charge("currency", `"EUR"`), "invalid_enum_value"},
		{"currency", nil, charge("currency", `"brl"`), "invalid_enum_value"},
		{"currency", nil, charge("currency", "null"), "invalid_type"},
		{"method", nil, charge("method", `"boleto"`), "invalid_enum_value"},
		{"installments", []string{charge("installments", "1"), charge("installments", "null")}, charge("installments", "0"), "too_small"},
		{"installments", []string{charge("installments", "12")}, charge("installments", "13"), "too_big"},
		{"interest_rate", []string{charge("interest_rate", "0"), charge("interest_rate", "null")}, charge("interest_rate", "-0.01"), "too_small"},
		{"interest_rate", []string{charge("interest_rate", "100")}, charge("interest_rate", "100.01"), "too_big"},
		{"buyer", nil, charge("buyer", ""), "required"},
		{"buyer", nil, charge("buyer", `"Ana"`), "invalid_type"},
		{"buyer.name", nil, charge("buyer", `{"email":"ana@example.com"}`), "required"},
		{"buyer.name", nil, charge("buyer", `{"name":null,"email":"ana@example.com"}`), "invalid_type"},
		{"buyer.email", nil, charge("buyer", `{"name":"Ana"}`), "required"},
		{"buyer.email", nil, charge("buyer", `{"name":"Ana","email":"ana"}`), "invalid_string"},
		{"buyer.phone", []string{buyer(`"phone":null`)}, buyer(`"phone":1`), "invalid_type"},
		{"buyer.document.type", []string{buyer(`"document":{"type":"CURP","number":"1"}`)}, buyer(`"document":{"type":"cpf","number":"1"}`), "invalid_enum_value"},
		{"buyer.document.number", nil, buyer(`"document":{"type":"CPF"}`), "required"},
		{"buyer.address.street", nil, buyer(`"address":{"city":"Recife"}`), "required"},
		{"buyer.address.city", nil, buyer(`"address":{"street":"Rua A","city":""}`), "too_small"},
		{"buyer.address.state", []string{address(`"state":"PE"`)}, address(`"state":"P"`), "too_small"},
		{"buyer.address.state", []string{address(`"state":"A1Z"`)}, address(`"state":"ABCD"`), "too_big"},
		{"buyer.address.state", nil, address(`"state":"P-"`), "invalid_string"},
		{"buyer.address.country", []string{address(`"country":"UY"`)}, address(`"country":"US"`), "invalid_enum_value"},
		{"products", nil, charge("products", ""), "required"},
		{"products", []string{products(1)}, charge("products", "[]"), "too_small"},
		{"products", []string{products(100)}, products(101), "too_big"},
		{"products[0]", nil, charge("products", `["Book"]`), "invalid_type"},
		{"products[0].name", []string{product(`"name":"B","price":1`)}, product(`"name":"","price":1`), "too_small"},
		{"products[0].name", []string{product(`"price":1,"name":` + text(255))}, product(`"price":1,"name":` + text(256)), "too_big"},
		{"products[0].price", []string{product(`"name":"B","price":0`)}, product(`"name":"B","price":-1`), "too_small"},
		{"products[0].price", []string{product(`"name":"B","price":100000000`)}, product(`"name":"B","price":100000001`), "too_big"},
		{"products[0].quantity", []string{product(`"name":"B","price":1,"quantity":1`)}, product(`"name":"B","price":1,"quantity":0`), "too_small"},
		{"products[0].quantity", []string{product(`"name":"B","price":1,"quantity":999999`)}, product(`"name":"B","price":1,"quantity":1000000`), "too_big"},
		{"products[0].tangible", nil, product(`"name":"B","price":1,"tangible":"yes"`), "invalid_type"},
		{"products[0].sku", []string{product(`"name":"B","price":1,"sku":` + text(255))}, product(`"name":"B","price":1,"sku":` + text(256)), "too_big"},
		{"token", []string{card()}, charge("method", `"credit_card"`), "required"},
		{"token", []string{card("token", `"pgct_x"`)}, card("token", `"tok_x"`), "invalid_string"},
		{"notify_url", []string{charge("notify_url", shopURL(2048)), charge("notify_url", "null")}, charge("notify_url", shopURL(2049)), "too_big"},
		{"notify_url", []string{charge("notify_url", `"http://127.0.0.1:8080/hook"`)}, charge("notify_url", `"http://shop.example.com/hook"`), "invalid_string"},
		{"metadata", []string{charge("metadata", "null")}, charge("metadata", `{"a":"b"}`), "invalid_type"},
		{"traceable", []string{charge("traceable", "false")}, charge("traceable", "null"), "invalid_type"},
		{"ip_address", []string{charge("ip_address", `"2001:db8::1"`)}, charge("ip_address", `"300.1.1.1"`), "invalid_string"},
	}
}

func TestTransactionLimits(t *testing.T) {
	t.Parallel()
	for _, dialect := range []struct {
		name   string
		change option
		status int
	}{{"document", document, 400}, {"live", live, 422}} {
		for i, e := range transactionEdges() {
			t.Run(fmt.Sprintf("%s %s %s %d", dialect.name, e.field, e.code, i), func(t *testing.T) {
				t.Parallel()
				m := newMock(t, dialect.change)
				for _, body := range e.allowed {
					a := m.call(http.MethodPost, "/v2/transactions", body)
					assert.Equal(t, http.StatusCreated, a.Status, string(a.Body))
				}
				a := m.call(http.MethodPost, "/v2/transactions", e.refused)
				a.problem(dialect.status, "VALIDATION_ERROR").field(e.field, e.code)
				assert.Equal(t, "Validation Error", a.at("title"))
				assert.Equal(t, "/v2/transactions", a.at("instance"))
			})
		}
	}
}

func TestAllFieldErrorsAtOnce(t *testing.T) {
	t.Parallel()
	a := newMock(t).call(http.MethodPost, "/v2/transactions",
		`{"amount":0,"method":"x","buyer":{"email":1},"products":[{"name":"B","price":1},{}]}`).problem(400, "VALIDATION_ERROR")
	errors, ok := a.at("errors").([]any)
	assert.True(t, ok)
	assert.Len(t, errors, 6, string(a.Body)) // amount, method, buyer.name, buyer.email, products[1].name, products[1].price
	assert.Equal(t, "6 members of the request break a rule.", a.at("detail"))
}

// Whole numbers may be written in other ways; what no integer can hold is
// refused with its name.
func TestNumberForms(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	for _, amount := range []string{"1e3", "1000.0", "1.0E3"} {
		a := m.call(http.MethodPost, "/v2/transactions", charge("amount", amount))
		if a.Status == http.StatusCreated {
			assert.InDelta(t, 1000, a.at("data.amount"), 0)
			continue
		}
		a.problem(400, "VALIDATION_ERROR").field("amount", "invalid_type")
	}
	m.call(http.MethodPost, "/v2/transactions", charge("amount", "1e400")).problem(400, "VALIDATION_ERROR").field("amount", "invalid_type")
	m.call(http.MethodPost, "/v2/transactions", charge("amount", "99999999999999999999")).problem(400, "VALIDATION_ERROR")
}

func TestUnknownMembersAreIgnored(t *testing.T) {
	t.Parallel()
	a := newMock(t).call(http.MethodPost, "/v2/transactions", charge("Amount", "5", "colour", `{"x":[1]}`))
	assert.Equal(t, http.StatusCreated, a.Status)
	assert.InDelta(t, 1000, a.at("data.amount"), 0, "names are matched exactly")
}

func TestRefundAndDeliveryAndStatusLimits(t *testing.T) {
	t.Parallel()
	type target struct{ path, allowed, refused, field, code string }
	const tracking = `{"tracking_code":"BR1"`
	rows := []target{
		{"/refund", `{"amount":1}`, `{"amount":0}`, "amount", "too_small"},
		{"/refund", `{}`, `{"amount":null}`, "amount", "invalid_type"},
		{"/refund", `{"amount":1,"reason":` + text(500) + `}`, `{"reason":` + text(501) + `}`, "reason", "too_big"},
		{"/delivery", tracking + `}`, `{}`, "tracking_code", "required"},
		{"/delivery", `{"tracking_code":` + text(255) + `}`, `{"tracking_code":` + text(256) + `}`, "tracking_code", "too_big"},
		{"/delivery", tracking + `}`, `{"tracking_code":""}`, "tracking_code", "too_small"},
		{"/delivery", tracking + `,"delivery_status":"waiting"}`, tracking + `,"delivery_status":"lost"}`, "delivery_status", "invalid_enum_value"},
		{"/delivery", tracking + `,"tracking_url":` + shopURL(255) + `}`, tracking + `,"tracking_url":` + shopURL(256) + `}`, "tracking_url", "too_big"},
		{"/delivery", tracking + `,"tracking_url":null}`, tracking + `,"tracking_url":"ftp://x"}`, "tracking_url", "invalid_string"},
		{"/delivery", tracking + `,"tracking_company":` + text(64) + `}`, tracking + `,"tracking_company":` + text(65) + `}`, "tracking_company", "too_big"},
		{"", `{"status":"captured"}`, `{"status":"med"}`, "status", "invalid_enum_value"},
		{"", `{"status":"paid"}`, `{}`, "status", "required"},
	}
	for i, row := range rows {
		for _, dialect := range []struct {
			status int
			change option
		}{{400, document}, {422, live}} {
			if row.code == "invalid_enum_value" && row.path == "" && dialect.status == 422 {
				row.refused = `{"status":"lost"}`
			}
			t.Run(fmt.Sprint(i, row.path, dialect.status), func(t *testing.T) {
				t.Parallel()
				m := newMock(t, dialect.change)
				id := m.create(card("token", `"pgct_paid"`))
				a := m.call(http.MethodPut, "/v2/transactions/"+id+row.path, row.refused)
				a.problem(dialect.status, "VALIDATION_ERROR").field(row.field, row.code)
				a = m.call(http.MethodPut, "/v2/transactions/"+id+row.path, row.allowed)
				assert.Equal(t, http.StatusOK, a.Status, string(a.Body))
			})
		}
	}
}

func TestListLimits(t *testing.T) {
	t.Parallel()
	for _, m := range []*mock{newMock(t), newMock(t, live)} {
		for _, row := range []struct{ allowed, refused, field, code string }{
			{"limit=1", "limit=0", "limit", "too_small"},
			{"limit=100", "limit=101", "limit", "too_big"},
			{"limit=20", "limit=x", "limit", "invalid_type"},
			{"direction=prev", "direction=back", "direction", "invalid_enum_value"},
			{"status=paid,expired", "status=paid,lost", "status", "invalid_enum_value"},
			{"status=paid&status=captured", "status=paid&status=lost", "status", "invalid_enum_value"},
			{"paymentMethods=pix,voucher", "paymentMethods=boleto", "paymentMethods", "invalid_enum_value"},
			{"currency=BRL", "currency=XXX", "currency", "invalid_enum_value"},
			{"deliveryStatus=waiting", "deliveryStatus=lost", "deliveryStatus", "invalid_enum_value"},
			{"traceable=true", "traceable=1", "traceable", "invalid_type"},
			{"dateFrom=2027-01-04", "dateFrom=yesterday", "dateFrom", "invalid_string"},
			{"dateTo=2027-01-04T00:00:00Z", "dateTo=2027-01-04T00:00:00", "dateTo", "invalid_string"},
			{"colour=red", "cursor=red", "cursor", "invalid_string"},
		} {
			assert.Equal(t, http.StatusOK, m.call(http.MethodGet, "/v2/transactions?"+row.allowed, "").Status, row.allowed)
			m.call(http.MethodGet, "/v2/transactions?"+row.refused, "").problem(422, "VALIDATION_ERROR").field(row.field, row.code)
		}
		assert.Equal(t, http.StatusUnprocessableEntity, m.call(http.MethodGet, "/v2/transactions?a=%zz", "").Status)
	}
}
