package engine_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
)

// without returns the live dialect but for one row.
func without(row spec.Row) spec.Dialect { return spec.LiveDialect &^ (1 << row) }

// The settled amount is rounded down, to at least a cent.
func TestTheSettledShareOfANewTransaction(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ amount, hundredths, want int64 }{
		{19800, 1927, 3815}, {10000, 1927, 1927}, {5000, 4, 2}, {100, 1, 1}, {1000, 10000, 1000}, {1000, 0, 1000},
	} {
		env := liveEnv()
		env.Settled = test.hundredths
		in := payment("pix", "")
		in.Amount = test.amount
		tx, _ := create(t, env, in)
		assert.Equal(t, test.want, tx.Reported(), "%d of %d", test.hundredths, test.amount)
		assert.Equal(t, test.amount, tx.Amount)
		env.Dialect = without(spec.BasePrice)
		tx, _ = create(t, env, in)
		assert.Equal(t, test.amount, tx.Reported())
	}
}

func TestSettleFor(t *testing.T) {
	t.Parallel()
	env := liveEnv()
	tx := inState(t, env, "pix", "paid")
	for cents, want := range map[int64]int64{381: 381, tx.Amount: tx.Amount, 0: tx.Amount, spec.MaxSafeAmount: spec.MaxSafeAmount} {
		c, refusal := engine.SettleFor(env, tx, cents)
		require.Nil(t, refusal)
		got := c.Transactions[0]
		assert.Equal(t, want, got.Reported())
		assert.Equal(t, cents == 0 || cents == tx.Amount, got.SettledAmount == 0)
		assert.Equal(t, tx.Amount, got.Amount)
		assert.Empty(t, c.Events)
	}
	for _, cents := range []int64{-1, spec.MaxSafeAmount + 1} {
		_, refusal := engine.SettleFor(env, tx, cents)
		require.NotNil(t, refusal)
		assert.Equal(t, []spec.Violation{{Field: "amount", Message: "must be an amount in cents, or 0", Code: spec.CodeInvalid}}, refusal.Fields)
	}
	for _, dialect := range []spec.Dialect{spec.DocumentDialect, without(spec.BasePrice)} {
		env.Dialect = dialect
		_, refusal := engine.SettleFor(env, tx, 381)
		require.NotNil(t, refusal)
		assert.Equal(t, engine.CodeInvalidState, refusal.Code)
		assert.Equal(t, "Only the live dialect reports what it settles as the amount.", refusal.Detail)
	}
}

// Each of these belongs to one row of the dialects.
func TestRowsOfTheirOwn(t *testing.T) {
	t.Parallel()
	env := liveEnv()
	env.Dialect = without(spec.SandboxPays)
	in := payment("pix", "")
	in.Amount = 7300
	_, c := create(t, env, in)
	for _, timer := range c.Timers {
		assert.NotEqual(t, engine.TimerPay, timer.Kind)
	}

	env.Dialect = without(spec.TransactionStates)
	_, refusal := engine.OpenDispute(env, inState(t, liveEnv(), "pix", "paid"))
	require.NotNil(t, refusal)
	assert.Equal(t, engine.CodeInvalidState, refusal.Code)

	s := &engine.Subscription{Metadata: `{"c":1,"b":2,"a":3}`, Authorization: &engine.Authorization{Status: "approved"}}
	assert.Equal(t, s.Metadata, s.ReportedMetadata(without(spec.PixAuthorization)))
	reported := s.ReportedMetadata(spec.LiveDialect)
	assert.JSONEq(t, `{"a":3,"b":2,"c":1,"provider_recurring":{"mandate_status":"approved"}}`, reported)
	for range 20 {
		assert.Equal(t, reported, s.ReportedMetadata(spec.LiveDialect), "in the same order")
	}
}

// A dispute that the merchant wins leaves what was refunded before, be it a cent.
func TestAWonDisputeOfAPartlyRefundedPayment(t *testing.T) {
	t.Parallel()
	env := liveEnv()
	tx := *inState(t, env, "pix", "med")
	tx.RefundedAmount = 1
	c, refusal := engine.WinDispute(env, &tx)
	require.Nil(t, refusal)
	assert.Equal(t, "partially_refunded", c.Transactions[0].Status)
}
