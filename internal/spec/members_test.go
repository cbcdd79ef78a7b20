package spec_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/gateway-go/gateway/internal/spec"
)

// What decides about money is written down here again: a member that is no longer strict
// would be left out in silence.
func TestMembersThatDecideAboutMoney(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"transaction": "id status amount base_price paid_amount refunded_amount currency external_ref " +
			"payment.amount payment.base_price payment.currency payment.external_ref; fee products " +
			"splits payment.fee",
		"next action": "; ",
		"refund":      "amount_refunded remaining_balance; ",
		"sandbox status": "transaction.id transaction.status transaction.amount transaction.base_price " +
			"transaction.paid_amount transaction.refunded_amount transaction.currency " +
			"transaction.external_ref transaction.payment.amount transaction.payment.base_price " +
			"transaction.payment.currency transaction.payment.external_ref; transaction.fee " +
			"transaction.products transaction.splits transaction.payment.fee",
		"delivery": "status; ",
		"transfer": "id status amount external_ref; ",
		"customer": "id status externalRef; ",
		"subscription": "id status amount currency transactions.id transactions.status transactions.amount " +
			"transactions.paidAmount transactions.refundedAmount transactions.currency " +
			"transactions.externalRef; products retryOffsetsDays",
		"authorization":           "; ",
		"checkout link":           "url; ",
		"checkout session":        "session_token link.id link.status link.amount link.currency; items link.payment_methods",
		"checkout session update": "status; ",
		"v1 payment":              "transactionId status; ",
		"payment token":           "token; ",
		"page of a list":          "total next_cursor prev_cursor metadata.page metadata.limit metadata.total; ",
	}
	for _, m := range spec.ResponseMembers() {
		got := strings.Join(m.Strict, " ") + "; " + strings.Join(m.Whole, " ")
		assert.Equal(t, want[m.Resource], got, m.Resource)
		for _, path := range m.Strict {
			assert.True(t, m.IsStrict(path), path)
			for i := range strings.Count(path, ".") {
				parent := strings.Join(strings.Split(path, ".")[:i+1], ".")
				assert.True(t, m.IsStrict(parent), "%s contains a strict member", parent)
			}
			assert.False(t, m.IsStrict(path+"x"), path)
			assert.False(t, m.IsWhole(path), path)
		}
		for _, path := range m.Whole {
			assert.True(t, m.IsWhole(path), path)
			assert.False(t, m.IsStrict(path), path)
		}
		assert.True(t, m.IsStrict(""), "the resource itself")
		assert.False(t, m.IsStrict("surely_unknown"))
	}
	var none *spec.Members
	assert.True(t, none.IsStrict("anything"))
	assert.False(t, none.IsWhole("anything"))
	assert.Len(t, want, len(spec.ResponseMembers()), fmt.Sprint(want))
}
