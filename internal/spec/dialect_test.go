package spec_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/spec"
)

// allRows are the rows in their order.
var allRows = [...]string{
	"list-envelope", "transaction-states", "challenge-state", "repeated-transfer", "validation-status",
	"plain-errors", "transfer-minimum", "voucher-address", "transaction-metadata", "transfer-amount",
	"listed-transaction", "method-optional", "buyer-id-alone", "pix-document", "idempotency-header",
	"delivery-errors", "null-members", "customer-formats", "cancellation-reason", "malformed-id",
	"link-product-limits", "base-price", "informations", "customer-read", "repeated-subscription",
	"pix-automatic-members", "pix-authorization", "api-version", "absent-phone", "sandbox-pays", "body-not-object",
	"customer-phone", "hosted-routes", "partial-refund-event", "colombian-vouchers",
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
	_, found := spec.RowOf("bare-transaction")
	assert.False(t, found)
	assert.Equal(t, "live in repeated-transfer, transfer-minimum", spec.DocumentDialect.With(spec.TransferMinimum).With(spec.RepeatedTransfer).String())
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
		{spec.TransactionStates, "live", spec.SandboxStatus, `{"status":"authorized"}`, "status"},
		{spec.TransferMinimum, "document", spec.Transfer, edit(t, transferBase, "amount", "999"), "amount"},
		{spec.VoucherAddress, "live", spec.Transaction, charge(`"method":"voucher",`, buyer), "buyer.address"},
		{spec.MethodOptional, "live", spec.Transaction, charge("", `{"name":"x","email":"a@b","document":{"type":"CPF","number":"1"}}`), "method"},
		{spec.BuyerIDAlone, "document", spec.Transaction, charge(`"method":"pix",`, `{"id":1,"name":"x"}`), "buyer.name"},
		{spec.BuyerIDAlone, "document", spec.Transaction, charge(`"method":"pix",`, `{"id":1,"email":"a@b"}`), "buyer.email"},
		{spec.PixDocument, "document", spec.Transaction, charge(`"method":"pix",`, buyer), "buyer.document"},
		{spec.NullMembers, "live", spec.Subscription, edit(t, cardSubscription, "idempotency_key", "null"), "idempotency_key"},
		{spec.CustomerFormats, "live", spec.Customer, edit(t, customerBase, "ip_address", `"unknown"`), "ip_address"},
		{spec.CustomerFormats, "live", spec.Customer, edit(t, customerBase, "document.number", `""`), "document.number"},
		{spec.CustomerFormats, "live", spec.Customer, edit(t, customerBase, "address.country", `"US"`), "address.country"},
		{spec.CancellationReason, "document", spec.SubscriptionCancel, `{"reason":"moved"}`, "reason"},
		{spec.LinkProductLimits, "document", spec.CheckoutLink, `{"products":[{"name":"x","price":1}]}`, "products[0].external_id"},
		{spec.Informations, "document", spec.Transaction, charge(`"method":"voucher","informations":[{"key":"a"}],`, `{"name":"x","email":"a@b","address":{"street":"A","city":"B","zipCode":"1"}}`), "informations[0].value"},
		{spec.CustomerRead, "document", spec.Customer, `{"name":"x","email":"a@b","birth_date":1}`, "birth_date"},
		{spec.PixAutomaticMembers, "document", spec.Subscription, `{"customer_id":"x","amount":1,"interval":"month","payment_method":"pix_automatic","colour":"red"}`, "colour"},
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
