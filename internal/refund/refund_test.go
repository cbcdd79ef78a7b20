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

// A gateway may omit paid_amount, and report in amount what it settles: a Full refund must
// not take what is left for refunded.
func TestWithoutAPaidAmount(t *testing.T) {
	t.Parallel()
	full := refund.Goal{Full: true}
	for name, c := range map[string]struct {
		tx      gateway.Transaction
		missing int64
		reached bool
	}{
		"part, document":                    {gateway.Transaction{Status: "partially_refunded", Amount: 1000, RefundedAmount: 300}, 700, false},
		"part, live":                        {gateway.Transaction{Status: "partially_refunded", Amount: 190, BasePrice: 1000, RefundedAmount: 300}, 700, false},
		"part, less in amount":              {gateway.Transaction{Status: "partially_refunded", Amount: 190, RefundedAmount: 300}, 0, false},
		"all":                               {gateway.Transaction{Status: "refunded", Amount: 1000, RefundedAmount: 1000}, 0, true},
		"all, more in amount":               {gateway.Transaction{Status: "refunded", Amount: 1000, RefundedAmount: 900}, 0, true},
		"all, disputed since":               {gateway.Transaction{Status: "chargedback", Amount: 1000, RefundedAmount: 1000}, 0, true},
		"not paid yet":                      {gateway.Transaction{Status: "pending", Amount: 1000}, 1000, false},
		"no amount at all":                  {gateway.Transaction{Status: "paid"}, 0, false},
		"paid in part, with a paid_amount":  {gateway.Transaction{Status: "partially_paid", Amount: 1000, PaidAmount: 400, RefundedAmount: 400}, 0, true},
		"unknown status, with paid_amount":  {gateway.Transaction{Status: "brand_new", Amount: 190, PaidAmount: 1000, RefundedAmount: 300}, 700, false},
		"unknown status, without an amount": {gateway.Transaction{Status: "brand_new", RefundedAmount: 300}, 0, false},
	} {
		if got := full.Missing(&c.tx); got != c.missing {
			t.Errorf("%s: %d cents are missing, want %d", name, got, c.missing)
		}
		if got := full.Reached(&c.tx); got != c.reached {
			t.Errorf("%s: reached %t, want %t", name, got, c.reached)
		}
		want := refund.NotApplied
		if c.reached {
			want = refund.Applied
		}
		if got := full.Compare(&c.tx, 0, c.missing); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}
