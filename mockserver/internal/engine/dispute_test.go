package engine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
)

const disputeWindow = 80 * 24 * time.Hour

// A dispute of a Pix payment, by every path: rows X21 (opened), X22 (contested),
// X23 (lost) and X24 (won).
func TestDisputes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, from string
		path       []transition
		want       string
	}{
		{"X21 opened", "paid", []transition{engine.OpenDispute}, "med"},
		{"X22 contested", "paid", []transition{engine.OpenDispute, engine.ContestDispute}, "in_protest"},
		{"X23 lost at once", "paid", []transition{engine.OpenDispute, engine.LoseDispute}, "pre_chargedback"},
		{"X23 lost after a protest", "paid", []transition{engine.OpenDispute, engine.ContestDispute, engine.LoseDispute}, "pre_chargedback"},
		{"X18 returned", "paid", []transition{engine.OpenDispute, engine.LoseDispute, engine.Chargeback}, "chargedback"},
		{"X24 won at once", "paid", []transition{engine.OpenDispute, engine.WinDispute}, "paid"},
		{"X24 won, refunded in part", "partially_refunded", []transition{engine.OpenDispute, engine.ContestDispute, engine.WinDispute}, "partially_refunded"},
		{"X21 opened again", "paid", []transition{engine.OpenDispute, engine.WinDispute, engine.OpenDispute}, "med"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			env := liveEnv()
			tx := inState(t, env, "pix", tc.from)
			before, balance := *tx, int64(0)
			for _, do := range tc.path {
				c, refusal := do(env, tx)
				require.Nil(t, refusal)
				tx, balance = c.Transactions[0], balance+c.Balance
				checkAmounts(t, tx)
				checkState(t, tx)
			}
			assert.Equal(t, tc.want, tx.Status)
			assert.Equal(t, before.PaidAmount, tx.PaidAmount)
			assert.Equal(t, before.RefundedAmount, tx.RefundedAmount)
			if tc.want == "chargedback" {
				assert.Equal(t, -before.PaidAmount, balance, "the money has left, the fee is kept")
			} else {
				assert.Zero(t, balance, "no money moves before the dispute is decided")
			}
		})
	}
}

// X21 and X23: the last moment of the window, and when the money is returned.
func TestTheTimesOfADispute(t *testing.T) {
	t.Parallel()
	env := liveEnv()
	tx := inState(t, env, "pix", "paid")
	env.Now = tx.PaidAt.Add(disputeWindow)
	c, refusal := engine.OpenDispute(env, tx)
	require.Nil(t, refusal)
	env.Now = env.Now.Add(time.Millisecond)
	_, refusal = engine.OpenDispute(env, tx)
	require.NotNil(t, refusal)
	assert.Equal(t, "INVALID_STATE", refusal.Code)
	assert.Equal(t, "A Pix payment can only be disputed within 80 days.", refusal.Detail)

	c, refusal = engine.LoseDispute(env, c.Transactions[0])
	require.Nil(t, refusal)
	assert.Equal(t, []engine.Timer{{At: env.Now.Add(24 * time.Hour), Kind: engine.TimerChargeBack, ID: tx.ID}}, c.Timers)
	c, refusal = engine.TransactionTimer(engine.TimerChargeBack)(env, c.Transactions[0])
	require.Nil(t, refusal)
	assert.Equal(t, "transaction.chargedback", kinds(c))
}

func TestWhatCannotBeDisputed(t *testing.T) {
	t.Parallel()
	env := liveEnv()
	for name, tx := range map[string]*engine.Transaction{
		"unpaid":   inState(t, env, "pix", "pending"),
		"refunded": inState(t, env, "pix", "refunded"),
		"a card":   inState(t, env, "credit_card", "paid"),
		"voucher":  inState(t, env, "voucher", "paid"),
		"disputed": inState(t, env, "pix", "med"),
	} {
		_, refusal := engine.OpenDispute(env, tx)
		require.NotNil(t, refusal, name)
		assert.Equal(t, "INVALID_STATE", refusal.Code, name)
		assert.Contains(t, refusal.Detail, "can't be disputed.", name)
	}
	_, refusal := engine.OpenDispute(paymentEnv(), inState(t, paymentEnv(), "pix", "paid"))
	require.NotNil(t, refusal)
	assert.Equal(t, "Only the live dialect has states for a dispute.", refusal.Detail)
	for what, do := range map[string]transition{
		"contested": engine.ContestDispute, "decided for its payer": engine.LoseDispute, "decided for the merchant": engine.WinDispute,
	} {
		_, refusal := do(env, inState(t, env, "pix", "paid"))
		require.NotNil(t, refusal)
		assert.Equal(t, "A pix transaction in state paid can't be "+what+".", refusal.Detail)
	}
	_, refusal = refund(1)(env, inState(t, env, "pix", "med"))
	require.NotNil(t, refusal, "the money is blocked")
	assert.Equal(t, "NOT_REFUNDABLE", refusal.Code)
}

// An account whose new payments are waiting_payment can do with them what others can
// do with pending ones.
func TestAWaitingPaymentIsLikeAPendingOne(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"pix", "voucher"} {
		env := liveEnv()
		pending, _ := create(t, env, payment(method, ""))
		env.Waiting = true
		waiting, c := create(t, env, payment(method, ""))
		assert.Equal(t, "pending", pending.Status, method)
		assert.Equal(t, "waiting_payment", waiting.Status, method)
		assert.Equal(t, "transaction.created transaction.pending", kinds(c), method)
		for name, do := range map[string]transition{"pay": engine.Pay, "expire": engine.Expire, "cancel": engine.Cancel, "refuse": engine.Refuse} {
			of, refusal := do(env, pending)
			same, alike := do(env, waiting)
			require.Equal(t, refusal == nil, alike == nil, "%s %s", method, name)
			if refusal == nil {
				assert.Equal(t, of.Transactions[0].Status, same.Transactions[0].Status, "%s %s", method, name)
				assert.Equal(t, kinds(of), kinds(same), "%s %s", method, name)
			}
		}
		for _, status := range []string{pending.Status, waiting.Status} {
			old := *pending
			old.Status, old.Legacy = status, &engine.LegacyPayment{}
			assert.Equal(t, "WAITING_PAYMENT", old.LegacyStatus(), status)
		}
		env.Dialect = without(spec.TransactionStates)
		mixed, _ := create(t, env, payment(method, ""))
		assert.Equal(t, "pending", mixed.Status)
		env.Dialect = spec.DocumentDialect
		plain, _ := create(t, env, payment(method, ""))
		assert.Equal(t, "pending", plain.Status, "the document has no such state")
	}
}

// What the sandbox of a live gateway pays by itself is paid no later than after 15 seconds.
func TestTheSandboxPaysByItself(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		amount int64
		auto   time.Duration
		want   time.Duration // 0: never
	}{
		{1000, 0, 0},
		{1000, time.Minute, time.Minute},
		{7300, 0, 15 * time.Second},
		{7300, time.Minute, 15 * time.Second},
		{7300, 5 * time.Second, 5 * time.Second},
	} {
		env := liveEnv()
		env.AutoPay = test.auto
		in := payment("pix", "")
		in.Amount = test.amount
		_, c := create(t, env, in)
		var paid time.Duration
		for _, timer := range c.Timers {
			if timer.Kind == engine.TimerPay {
				paid = timer.At.Sub(env.Now)
			}
		}
		assert.Equal(t, test.want, paid, "%d %s", test.amount, test.auto)
	}
}
