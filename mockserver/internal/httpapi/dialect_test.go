package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The points D1 to D14 in which the dialects differ, as far as transactions
// show them; the list's own shapes are in the golden files.

func TestDialectLists(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	m.create(charge())
	a := m.call(http.MethodGet, "/v2/transactions", "")
	assert.ElementsMatch(t, []string{"success", "requestId", "data"}, a.keysOfBody(), "D1")
	assert.ElementsMatch(t, []string{"data", "total", "next_cursor", "prev_cursor"}, a.keys("data"), "D1")
	assert.Equal(t, "pix", a.at("data.data.0.method"), "D12")

	m = newMock(t, live)
	m.create(charge())
	a = m.call(http.MethodGet, "/v2/transactions", "")
	assert.ElementsMatch(t, []string{"success", "requestId", "data", "total", "next_cursor", "prev_cursor"}, a.keysOfBody(), "D1 live")
	assert.Equal(t, "pix", a.at("data.0.payment.method"), "D12 live")
	assert.NotContains(t, a.keys("data.0"), "method", "D12 live")
}

func TestDialectStates(t *testing.T) {
	t.Parallel()
	for _, status := range []string{"authorized", "three_ds_required", "in_protest", "partially_paid", "processing", "processed", "med"} {
		m := newMock(t)
		m.call(http.MethodPut, "/v2/transactions/"+m.create(charge()), `{"status":"`+status+`"}`).
			problem(400, "VALIDATION_ERROR").field("status", "invalid_enum_value") // D2
		m = newMock(t, live)
		a := m.call(http.MethodPut, "/v2/transactions/"+m.create(charge()), `{"status":"`+status+`"}`)
		assert.Equal(t, status, a.at("data.transaction.status"), "D2 live")
	}
}

func TestDialectChallenge(t *testing.T) {
	t.Parallel()
	a := newMock(t).call(http.MethodPost, "/v2/transactions", card("token", `"pgct_3ds"`))
	assert.Equal(t, "pending", a.at("data.status"), "D3")
	assert.NotNil(t, a.at("data.next_action"))
	a = newMock(t, live).call(http.MethodPost, "/v2/transactions", card("token", `"pgct_3ds"`))
	assert.Equal(t, "three_ds_required", a.at("data.status"), "D3 live")
	assert.NotNil(t, a.at("data.next_action"))
}

func TestDialectConflictBody(t *testing.T) {
	t.Parallel()
	m := newMock(t, live)
	path := "/v2/transactions/" + m.create(charge()) + "/refund"
	a := m.call(http.MethodPut, path, "{}")
	require.Equal(t, http.StatusConflict, a.Status)
	assert.Equal(t, "NOT_REFUNDABLE", a.at("error"), "D6 live")
	assert.ElementsMatch(t, []string{"error", "message", "status"}, a.keysOfBody(), "D6 live")
	m.call(http.MethodGet, "/v2/transactions/nobody", "").problem(404, "NOT_FOUND") // only the 409 of transactions
}

func TestDialectVoucherAddress(t *testing.T) {
	t.Parallel()
	bare := charge("method", `"voucher"`)
	partial := charge("method", `"voucher"`, "buyer", `{"name":"A","email":"a@example.com","address":{"street":"A","city":"B"}}`)
	newMock(t).call(http.MethodPost, "/v2/transactions", bare).problem(400, "VALIDATION_ERROR").field("buyer.address", "required")            // D8
	newMock(t).call(http.MethodPost, "/v2/transactions", partial).problem(400, "VALIDATION_ERROR").field("buyer.address.zipCode", "required") // D8
	for _, body := range []string{bare, partial} {
		assert.Equal(t, http.StatusCreated, newMock(t, live).call(http.MethodPost, "/v2/transactions", body).Status, "D8 live")
	}
}

func TestLooseness(t *testing.T) {
	t.Parallel()
	body := charge("buyer", "", "products", "")
	for _, dialect := range []option{document, live} {
		assert.NotEqual(t, http.StatusCreated, newMock(t, dialect).call(http.MethodPost, "/v2/transactions", body).Status, "D9")
		a := newMock(t, dialect, loose).call(http.MethodPost, "/v2/transactions", body)
		require.Equal(t, http.StatusCreated, a.Status, "D9 loose")
		assert.Equal(t, []any{}, a.at("data.products"))
		assert.NotEmpty(t, a.text("data.buyer.id"))
		assert.Nil(t, a.at("data.buyer.email"))
	}
}

func TestDialectMetadata(t *testing.T) {
	t.Parallel()
	for sent, wanted := range map[string]any{
		`"order 7"`:                       map[string]any{"metadata": "order 7"},
		`"{\"a\":\"b\",\"n\":{\"m\":1}}"`: map[string]any{"a": "b", "n": `{"m":1}`},
		`"a=b&c=d=e"`:                     map[string]any{"a": "b", "c": "d=e"},
		`"[1]"`:                           map[string]any{"metadata": "[1]"},
		`"null"`:                          map[string]any{"metadata": "null"},
		`"=a"`:                            map[string]any{"metadata": "=a"},
		"null":                            nil,
		"":                                nil,
	} {
		a := newMock(t, live).call(http.MethodPost, "/v2/transactions", charge("metadata", sent))
		assert.Equal(t, wanted, a.at("data.metadata"), "D10 live %s", sent)
	}
	a := newMock(t).call(http.MethodPost, "/v2/transactions", charge("metadata", `"{\"a\":\"b\"}"`))
	assert.JSONEq(t, `{"a":"b"}`, a.text("data.metadata"), "D10")
}

func TestDialectDefaults(t *testing.T) {
	t.Parallel()
	bare := charge("method", "")
	newMock(t).call(http.MethodPost, "/v2/transactions", bare).problem(400, "VALIDATION_ERROR").field("method", "required") // D13
	assert.InDelta(t, 1, newMock(t).call(http.MethodPost, "/v2/transactions", charge()).at("data.installments"), 0, "D13")
	a := newMock(t, live).call(http.MethodPost, "/v2/transactions", bare)
	assert.Equal(t, "pix", a.at("data.method"), "D13 live")
	assert.Nil(t, a.at("data.installments"), "D13 live")
	assert.Equal(t, "BRL", a.at("data.currency"))
}

func TestDialectBuyerID(t *testing.T) {
	t.Parallel()
	body := charge("buyer", `{"id":"c","name":"Eve","email":"eve@example.com"}`)
	newMock(t).call(http.MethodPost, "/v2/transactions", body).problem(404, "NOT_FOUND") // D14: the names are not looked at
	a := newMock(t, live).call(http.MethodPost, "/v2/transactions", body).problem(422, "VALIDATION_ERROR")
	assert.Equal(t, "buyer.name", a.at("errors.0.field"), "D14 live")
	assert.Equal(t, "buyer.email", a.at("errors.1.field"), "D14 live")
}
