package books_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/merchant/internal/books"
)

func TestACorrectionChangesOnlyWhatRemains(t *testing.T) {
	t.Parallel()
	o, first := books.Adjust(books.Order{ID: "order/A1", Paid: 100}, "7", -30, gateway.BRL, start)
	o, second := books.Adjust(o, "8", 10, gateway.BRL, start)
	assert.Equal(t, books.Order{ID: "order/A1", Currency: gateway.BRL, Paid: 100, Adjusted: -20}, o)
	assert.Equal(t, int64(100), o.Left())
	assert.Equal(t, int64(80), o.Net())
	assert.Equal(t, []books.Fact{{
		Key: "adjusted/7", Kind: books.EntryAdjusted, Order: "order/A1", Record: "7", Amount: -30, Currency: gateway.BRL, At: start, Source: books.FromPerson,
	}}, first.Facts)
	assert.Equal(t, "adjusted/8", second.Facts[0].Key)
	assert.Empty(t, second.Problems)
	other, third := books.Adjust(o, "9", 10, gateway.USD, start)
	assert.Equal(t, o, other, "sums are in one currency")
	assert.Equal(t, "currency/9/adjusted/9", third.Problems[0].Key)
	assert.Equal(t, "9: adjusted, USD 0.10 is not in the sums of order/A1, which are in BRL", third.Problems[0].Text)
	assert.Equal(t, gateway.USD, third.Facts[0].Currency)
}

func TestWhatAListShowsIsComparedWithTheEntries(t *testing.T) {
	t.Parallel()
	booked := books.Side{Paid: 500, Fee: 25, Refunded: 100}
	tx := gateway.Transaction{Status: gateway.TransactionPartiallyRefunded, Amount: 475, BasePrice: 500, PaidAmount: 500, RefundedAmount: 100, Fee: &gateway.Fee{EstimatedFee: 25}}
	for name, c := range map[string]struct {
		change func(*gateway.Transaction)
		want   books.Side
	}{
		"the same":           {func(*gateway.Transaction) {}, booked},
		"no fee in the list": {func(t *gateway.Transaction) { t.Fee = nil }, booked},
		"another fee":        {func(t *gateway.Transaction) { t.Fee.EstimatedFee = 30 }, books.Side{Paid: 500, Fee: 30, Refunded: 100}},
		"no paid amount":     {func(t *gateway.Transaction) { t.PaidAmount = 0 }, booked},
		"paid more":          {func(t *gateway.Transaction) { t.PaidAmount = 600 }, books.Side{Paid: 600, Fee: 25, Refunded: 100}},
		"refunded more":      {func(t *gateway.Transaction) { t.RefundedAmount = 200 }, books.Side{Paid: 500, Fee: 25, Refunded: 200}},
		"refunded":           {func(t *gateway.Transaction) { t.Status, t.RefundedAmount = gateway.TransactionRefunded, 0 }, books.Side{Paid: 500, Fee: 25, Refunded: 500}},
		"refunded, unknown paid": {func(t *gateway.Transaction) {
			t.Status, t.RefundedAmount, t.PaidAmount = gateway.TransactionRefunded, 0, 0
		}, books.Side{Paid: 500, Fee: 25, Refunded: 500}},
		"charged back":            {func(t *gateway.Transaction) { t.Status = gateway.TransactionChargedback }, books.Side{Paid: 500, Fee: 25, Refunded: 100, Disputed: 400}},
		"charged back, all of it": {func(t *gateway.Transaction) { t.Status, t.RefundedAmount = gateway.TransactionMED, 0 }, books.Side{Paid: 500, Fee: 25, Disputed: 500}},
		"not paid": {func(t *gateway.Transaction) {
			t.Status, t.PaidAmount, t.RefundedAmount, t.Fee = gateway.TransactionPending, 0, 0, nil
		}, books.Side{Fee: 25}},
	} {
		shown := tx
		shown.Fee = &gateway.Fee{EstimatedFee: tx.Fee.EstimatedFee}
		c.change(&shown)
		got, wrong := books.Shown(&shown, booked)
		assert.Empty(t, wrong, name)
		assert.Equal(t, c.want, got, name)
	}
	for name, c := range map[string]struct {
		booked, want books.Side
		status       gateway.TransactionStatus
		refunded     int64
	}{
		"nothing is booked":         {books.Side{}, books.Side{Paid: 500}, gateway.TransactionPaid, 0},
		"a cent is booked":          {books.Side{Paid: 1}, books.Side{Paid: 1}, gateway.TransactionPaid, 0},
		"refunded in part":          {books.Side{Paid: 400}, books.Side{Paid: 400, Refunded: 300}, gateway.TransactionPartiallyRefunded, 300},
		"refunded more":             {books.Side{Paid: 400}, books.Side{Paid: 450, Refunded: 450}, gateway.TransactionPartiallyRefunded, 450},
		"refunded what is booked":   {books.Side{Paid: 400}, books.Side{Paid: 400, Refunded: 400}, gateway.TransactionRefunded, 0},
		"refunded more than booked": {books.Side{Paid: 400}, books.Side{Paid: 450, Refunded: 450}, gateway.TransactionRefunded, 450},
	} { // without a paid amount
		got, wrong := books.Shown(&gateway.Transaction{Status: c.status, Amount: 475, BasePrice: 500, RefundedAmount: c.refunded}, c.booked)
		assert.Empty(t, wrong, name)
		assert.Equal(t, c.want, got, name)
	}
	for name, c := range map[string]gateway.Transaction{
		"unknown status brand_new": {Status: "brand_new", PaidAmount: 500},
		"-1 is no amount":          {Status: gateway.TransactionPaid, PaidAmount: -1},
		"700 of 500 was refunded":  {Status: gateway.TransactionPaid, PaidAmount: 500, RefundedAmount: 700},
	} {
		_, wrong := books.Shown(&c, booked)
		assert.Equal(t, name, wrong)
	}
}
