package spec_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/spec"
)

func TestDescribeListsEveryLimitOfABody(t *testing.T) {
	t.Parallel()
	body := spec.Describe(spec.Transaction, spec.Variant{})

	amount := body.Member("amount")
	require.NotNil(t, amount)
	assert.Equal(t, spec.Required, amount.Presence)
	assert.True(t, amount.Integer)
	assert.InDelta(t, spec.MinAmount, amount.Min, 0)
	assert.InDelta(t, spec.MaxAmount, amount.Max, 0)
	assert.Equal(t, []string{"pix", "voucher", "credit_card"}, body.Member("method").Enum)
	assert.Equal(t, spec.MaxNotifyURL, body.Member("notify_url").MaxLen)
	assert.Equal(t, "must be an https URL", body.Member("notify_url").Format.Must)

	products := body.Member("products")
	assert.Equal(t, [2]int{spec.MinProducts, spec.MaxProducts}, [2]int{products.MinLen, products.MaxLen})
	assert.Equal(t, spec.MaxProductName, products.Element.Member("name").MaxLen)
	assert.Equal(t, spec.Nullable, products.Element.Member("sku").Presence)
	assert.Equal(t, spec.Required, body.Member("buyer").Member("address").Member("city").Presence)
	assert.True(t, body.Member("buyer").Member("id").Integer, "a string that may also be an integer")
	assert.Contains(t, body.Dependencies, spec.Dependency{When: []spec.Term{{Path: "method", Values: []string{"credit_card"}}}, Path: "token"})
}

func TestDescribeFollowsTheVariant(t *testing.T) {
	t.Parallel()
	assert.InDelta(t, 1, spec.Describe(spec.Transfer, spec.Variant{}).Member("amount").Min, 0)
	assert.InDelta(t, 1000, spec.Describe(spec.Transfer, spec.Variant{Dialect: spec.LiveDialect}).Member("amount").Min, 0)
}

func TestDescribeIncludesListParameters(t *testing.T) {
	t.Parallel()
	query := spec.Describe(spec.TransactionList, spec.Variant{})
	for list, want := range map[string][]string{
		"customers":     {"page", "limit", "search", "document_number", "email", "phone", "external_ref", "status", "ip_address"},
		"subscriptions": {"limit", "direction", "status", "customer_email", "created_after", "created_before"},
	} {
		rule := map[string]spec.Rule{"customers": spec.CustomerList, "subscriptions": spec.SubscriptionList}[list]
		var got []string
		for _, m := range spec.Describe(rule, spec.Variant{}).Members {
			got = append(got, m.Name)
		}
		assert.Equal(t, want, got, list)
	}
	installments := query.Member("installments")
	assert.True(t, installments.Joined)
	assert.True(t, installments.Element.Integer)
	assert.InDelta(t, spec.MaxInstallments, installments.Element.Max, 0)
	assert.Equal(t, -1, query.Member("dateFrom").MaxLen, "no limit")
	assert.True(t, math.IsInf(spec.Describe(spec.Refund, spec.Variant{}).Member("amount").Max, 1))
}
