package httpapi_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// JSON has one kind of number: 1000.0 and 1e3 are the integer 1000.
func TestAnIntegerMayBeWrittenWithADecimalPoint(t *testing.T) {
	t.Parallel()
	for dialect, change := range dialects {
		m := newMock(t, change)
		for _, amount := range []string{"1000", "1000.0", "1e3", "10.00E2"} {
			a := m.call(http.MethodPost, "/v2/transactions", charge("amount", amount, "products", `[{"name":"Book","price":5e2,"quantity":2.0}]`))
			require.Equal(t, http.StatusCreated, a.Status, "%s %s: %s", dialect, amount, a.Body)
			assert.Contains(t, string(a.Body), `"amount":1000,`)
			assert.Contains(t, string(a.Body), `"price":500,"quantity":2}`)
		}
		a := m.call(http.MethodPost, "/v2/transactions", charge("amount", "1000.5", "products", `[{"name":"","price":1e-1}]`))
		require.Len(t, a.at("errors"), 3, string(a.Body))
		free := m.subscribe(m.person("Ana Souza"), `"token":"pgct_ok_1","interval_count":1.0,"metadata":{"rate":1.0}`)
		assert.Contains(t, string(free.Body), `"metadata":{"rate":1.0}`, "free objects stay as they are")
	}
}

// RFC 3339 lets T and Z be lower case.
func TestATimestampMayBeInLowerCase(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	customer := m.person("Ana Souza")
	for i, end := range []string{"2027-02-01T00:00:00z", "2027-02-01t00:00:00Z", "2027-02-01t00:00:00z", "2027-01-31t21:00:00-03:00"} {
		a := m.subscribe(customer, fmt.Sprintf(`"token":"pgct_ok_%d","trial_end":%q`, i, end))
		require.Equal(t, http.StatusCreated, a.Status, string(a.Body))
		assert.Equal(t, "2027-02-01T00:00:00.000Z", a.text("data.trialEnd"), end)
	}
	m.link(`{"amount":1,"expires_at":"2027-02-01t00:00:00z"}`)
	m.create(charge())
	assert.InDelta(t, 5, m.get("/v2/transactions?dateFrom=2027-01-04t12:00:00z&dateTo=2027-01-04t12:00:00z").at("data.total"), 0, "four cards were checked")
	assert.InDelta(t, 0, m.get("/v2/transactions?dateFrom=2027-01-04t12:00:01z").at("data.total"), 0)
}

func TestALinkHasOneCurrency(t *testing.T) {
	t.Parallel()
	const path = "/v2/checkout-links"
	product := func(id, currency string) string {
		return fmt.Sprintf(`{"external_id":%q,"name":"A","price":1,"currency":%q}`, id, currency)
	}
	for dialect, change := range dialects {
		m := newMock(t, change)
		for _, body := range []string{
			`{"products":[` + product("A", "BRL") + `,` + product("B", "USD") + `]}`,
			`{"currency":"BRL","products":[` + product("A", "BRL") + `,` + product("B", "USD") + `]}`,
		} {
			a := m.call(http.MethodPost, path, body).plain(http.StatusUnprocessableEntity, "VALIDATION_ERROR")
			assert.Contains(t, a.text("message"), "products[1].currency must be BRL", dialect)
		}
		slug := m.link(`{"products":[` + product("A", "USD") + `,{"external_id":"B","name":"B","price":1}]}`)
		visit := m.visit(slug, "")
		assert.Equal(t, "USD", visit.at("data.link.currency"), "of its products, if it names none")
		assert.Equal(t, "USD", visit.at("data.items.1.currency"))

		again := m.call(http.MethodPost, path, `{"products":[`+product("A", "EUR")+`]}`).plain(http.StatusUnprocessableEntity, "VALIDATION_ERROR")
		assert.Contains(t, again.text("message"), "products[0].currency must be USD", "the earlier link would have two")
	}
}
