package books_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/merchant/internal/books"
)

func TestWhetherAListShowsTheMoney(t *testing.T) {
	t.Parallel()
	for status, want := range map[gateway.TransactionStatus]bool{
		gateway.TransactionPending: true, gateway.TransactionExpired: true, gateway.TransactionPaid: true, gateway.TransactionCaptured: true,
		gateway.TransactionRefunded: true, gateway.TransactionPartiallyPaid: false, gateway.TransactionPartiallyRefunded: false,
		gateway.TransactionMED: false, gateway.TransactionChargedback: false, "new": true, // which books.Shown reports
	} {
		listed := &gateway.Transaction{Status: status, Amount: 500}
		assert.Equal(t, want, books.ShowsMoney(listed), status)
		listed.PaidAmount = 500
		assert.True(t, books.ShowsMoney(listed), status)
	}
}

// A list shows what is settled, 475, and not what was paid: that counts as it was booked.
func TestAListThatLacksThePaidAmountShowsWhatIsBooked(t *testing.T) {
	t.Parallel()
	booked := books.Side{Paid: 500, Fee: 25}
	there, wrong := books.Shown(&gateway.Transaction{Status: gateway.TransactionPaid, Amount: 475}, booked)
	assert.Empty(t, wrong)
	assert.Equal(t, booked, there)
}
