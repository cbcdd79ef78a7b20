package gateway_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
)

// settledAt is transactionJSON of a charge of 15990 whose amount the gateway
// reports as 3815, with the members that have the requested amount.
func settledAt(id, reference, members string) string {
	return strings.Replace(transactionJSON(id, reference, 3815), `"amount":3815`, `"amount":3815,`+members, 1)
}

// TestSettledAmount: a live gateway may report in amount what it settles. The
// create was still applied with the requested amount.
func TestSettledAmount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testSettledAmount)
}

func testSettledAmount(t *testing.T) {
	for members, same := range map[string]bool{
		`"base_price":15990`:                      true,
		`"paid_amount":15990`:                     true,
		`"base_price":0,"paid_amount":15990`:      true,
		`"base_price":15990,"paid_amount":15990`:  true,
		`"base_price":4000,"paid_amount":0`:       false,
		`"base_price":null`:                       false,
		`"base_price":15991,"paid_amount":159900`: false,
	} {
		created := reply(201, `{"success":true,"requestId":"r-1","data":`+settledAt(orderID, "order-1001", members)+`}`)
		read := reply(200, `{"success":true,"requestId":"r-1","data":`+settledAt(orderID, "order-1001", members)+`}`)
		for name, s := range map[string]*fakeTransport{
			"returned by the create": play(created),
			"after a lost create":    play(fail(errReset), reply(409, duplicate("/v2/transactions/"+orderID)), read),
		} {
			order := pixOrder()
			order.ExternalRef = "order-1001"
			got, err := clientOf(t, s).Transactions.Create(t.Context(), order)
			if !same {
				require.Error(t, err, "%s, %s", name, members)
				continue
			}
			require.NoError(t, err, "%s, %s", name, members)
			assert.True(t, got.AmountIs(15990), "%s, %s", name, members)
			assert.Equal(t, int64(15990), got.Charged(), "%s, %s", name, members)
		}
	}
}

func TestCharged(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		amount, basePrice, paid int64
		charged                 int64
		is                      []int64
	}{
		{amount: 500, charged: 500, is: []int64{500}},
		{amount: 475, basePrice: 500, charged: 500, is: []int64{475, 500}},
		{amount: 475, basePrice: 500, paid: 500, charged: 500, is: []int64{475, 500}},
		{amount: 475, paid: 500, charged: 500, is: []int64{475, 500}},
		{amount: 500, basePrice: 500, paid: 200, charged: 200, is: []int64{200, 500}}, // partially paid
		{basePrice: 500, charged: 500, is: []int64{500}},
		{},
	} {
		tx := gateway.Transaction{Amount: row.amount, BasePrice: row.basePrice, PaidAmount: row.paid}
		item := gateway.Transaction{Amount: row.amount, BasePrice: row.basePrice, PaidAmount: row.paid}
		assert.Equal(t, row.charged, tx.Charged(), "%+v", row)
		assert.Equal(t, row.charged, item.Charged(), "%+v", row)
		for _, cents := range []int64{-1, 0, 200, 475, 500, 501} {
			is := false
			for _, a := range row.is {
				is = is || a == cents
			}
			assert.Equal(t, is, tx.AmountIs(cents), "%+v, %d", row, cents)
			assert.Equal(t, is, item.AmountIs(cents), "%+v, %d", row, cents)
		}
	}
}
