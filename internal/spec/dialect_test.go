package spec_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/spec"
)

// allRows are the rows in their order.
var allRows = [...]string{
	"D1", "D2", "D3", "D4", "D5", "D6", "D7", "D8", "D10", "D11", "D12", "D13", "D14", "D15", "D16", "D18", "D19", "D20", "D21", "D22", "D23", "D24",
	"D26", "D27", "D28", "D29", "D30", "D32", "D33", "D35", "D36", "customer-phone", "hosted-routes",
}

func TestADialectIsASetOfLiveRows(t *testing.T) {
	t.Parallel()
	for i, id := range allRows {
		r, found := spec.RowOf(id)
		require.True(t, found, id)
		assert.Equal(t, spec.Row(i), r, id)
		d := spec.DocumentDialect.With(r)
		assert.Equal(t, "live in "+id, d.String())
		for _, other := range allRows {
			o, _ := spec.RowOf(other)
			assert.Equal(t, o == r, d.Live(o), "%s in a dialect of %s", other, id)
			assert.True(t, spec.LiveDialect.Live(o), other)
			assert.False(t, spec.DocumentDialect.Live(o), other)
		}
	}
	_, found := spec.RowOf("D9")
	assert.False(t, found)
	assert.Equal(t, "live in D4, D7", spec.DocumentDialect.With(spec.D7).With(spec.D4).String())
	assert.Equal(t, "document", spec.DocumentDialect.String())
	assert.Equal(t, "live", spec.LiveDialect.String())
}

func TestTheNearestDialectSharesMostRows(t *testing.T) {
	t.Parallel()
	d := spec.DocumentDialect
	for n, id := range allRows {
		want := spec.DocumentDialect
		if n > len(allRows)/2 {
			want = spec.LiveDialect
		}
		assert.Equal(t, want, d.Nearest(), "%d rows", n)
		r, _ := spec.RowOf(id)
		d = d.With(r)
	}
	assert.Equal(t, spec.LiveDialect, d)
}

// TestEachRowChangesOnlyItsOwnRule checks bodies that are valid in only one of
// a row's two readings.
func TestEachRowChangesOnlyItsOwnRule(t *testing.T) {
	t.Parallel()
	const buyer = `{"name":"x","email":"a@b"}`
	charge := func(more, buyer string) string {
		return `{"amount":1,"products":[{"name":"x","price":0}],` + more + `"buyer":` + buyer + `}`
	}
	for _, tc := range []struct {
		row      spec.Row
		validIn  string // the reading
		rule     spec.Rule
		body     string
		violated string
	}{
		{spec.D2, "live", spec.SandboxStatus, `{"status":"authorized"}`, "status"},
		{spec.D7, "document", spec.Transfer, edit(t, transferBase, "amount", "999"), "amount"},
		{spec.D8, "live", spec.Transaction, charge(`"method":"voucher",`, buyer), "buyer.address"},
		{spec.D13, "live", spec.Transaction, charge("", `{"name":"x","email":"a@b","document":{"type":"CPF","number":"1"}}`), "method"},
		{spec.D14, "document", spec.Transaction, charge(`"method":"pix",`, `{"id":1,"name":"x"}`), "buyer.name"},
		{spec.D15, "document", spec.Transaction, charge(`"method":"pix",`, buyer), "buyer.document"},
		{spec.D19, "live", spec.Subscription, edit(t, cardSubscription, "idempotency_key", "null"), "idempotency_key"},
		{spec.D20, "live", spec.Customer, edit(t, customerBase, "ip_address", `"unknown"`), "ip_address"},
		{spec.D20, "live", spec.Customer, edit(t, customerBase, "document.number", `""`), "document.number"},
		{spec.D20, "live", spec.Customer, edit(t, customerBase, "address.country", `"US"`), "address.country"},
		{spec.D21, "document", spec.SubscriptionCancel, `{"reason":"moved"}`, "reason"},
		{spec.D23, "document", spec.CheckoutLink, `{"products":[{"name":"x","price":1}]}`, "products[0].external_id"},
		{spec.D26, "document", spec.Transaction, charge(`"method":"voucher","informations":[{"key":"a"}],`, `{"name":"x","email":"a@b","address":{"street":"A","city":"B","zipCode":"1"}}`), "informations[0].value"},
		{spec.D27, "document", spec.Customer, `{"name":"x","email":"a@b","birth_date":1}`, "birth_date"},
		{spec.D29, "document", spec.Subscription, `{"customer_id":"x","amount":1,"interval":"month","payment_method":"pix_automatic","colour":"red"}`, "colour"},
		{spec.CustomerPhone, "document", spec.Customer, edit(t, customerBase, "phone", `"1"`), "phone"},
	} {
		for _, id := range allRows {
			r, _ := spec.RowOf(id)
			found, err := spec.Check([]byte(tc.body), tc.rule, spec.Variant{Dialect: spec.DocumentDialect.With(r)})
			require.NoError(t, err)
			if (r == tc.row) == (tc.validIn == "live") {
				assert.Empty(t, found, "%s in %s", tc.body, id)
				continue
			}
			if assert.Len(t, found, 1, "%s in %s", tc.body, id) {
				assert.Equal(t, tc.violated, found[0].Field)
			}
		}
	}
}
