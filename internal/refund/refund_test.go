package refund_test

import (
	"testing"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/refund"
)

func TestMissing(t *testing.T) {
	t.Parallel()
	tx := &gateway.Transaction{PaidAmount: 1000, RefundedAmount: 300}
	for goal, want := range map[refund.Goal]int64{
		{Amount: 500}: 500, {UpTo: 500}: 200, {UpTo: 300}: 0, {UpTo: 200}: -100, {Full: true}: 700,
	} {
		if got := goal.Missing(tx); got != want {
			t.Errorf("%+v: %d cents are missing, want %d", goal, got, want)
		}
	}
}

// TestCompare is about a transaction of 1000 of which 300 were refunded before.
func TestCompare(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		goal refund.Goal
		sent int64
		now  int64
		want refund.Finding
	}{
		{refund.Goal{Amount: 200}, 200, 300, refund.NotApplied},
		{refund.Goal{Amount: 200}, 200, 499, refund.NotApplied},
		{refund.Goal{Amount: 200}, 200, 500, refund.Applied},
		{refund.Goal{Amount: 200}, 200, 501, refund.Unclear},
		{refund.Goal{UpTo: 500}, 200, 499, refund.NotApplied},
		{refund.Goal{UpTo: 500}, 200, 500, refund.Applied},
		{refund.Goal{UpTo: 500}, 200, 501, refund.Applied},
		{refund.Goal{Full: true}, 700, 999, refund.NotApplied},
		{refund.Goal{Full: true}, 700, 1000, refund.Applied},
	} {
		tx := &gateway.Transaction{PaidAmount: 1000, RefundedAmount: c.now}
		if got := c.goal.Compare(tx, 300, c.sent); got != c.want {
			t.Errorf("%+v of which %d are refunded: %d, want %d", c.goal, c.now, got, c.want)
		}
	}
	if got := (refund.Goal{Full: true}).Compare(&gateway.Transaction{Status: gateway.TransactionRefunded}, 0, 0); got != refund.Applied {
		t.Errorf("a refunded transaction without amounts: %d, want Applied", got)
	}
}
