package engine_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/ids"
	"github.com/gateway-go/gateway/mockserver/internal/paymentcode"
)

// These tests cover the rows X1 to X20 of docs/states.md.

var noon = time.Date(2027, time.January, 4, 12, 0, 0, 0, time.UTC)

func paymentEnv() engine.Env {
	return engine.Env{Now: noon, Sandbox: true, IDs: ids.Seeded(7)}
}

func liveEnv() engine.Env {
	env := paymentEnv()
	env.Dialect = spec.LiveDialect
	return env
}

// challengeEnv has a dialect that differs from the document's only by challenge-state.
func challengeEnv() engine.Env {
	env := paymentEnv()
	env.Dialect = spec.DocumentDialect.With(spec.ChallengeState)
	return env
}

func payment(method, token string) engine.NewTransaction {
	return engine.NewTransaction{
		Transaction: engine.Transaction{
			ExternalRef: "order-1", Amount: 1000, Currency: "BRL", Method: method, Installments: 1,
			Buyer:    &engine.Buyer{Name: "Ana", Email: "ana@example.com"},
			Products: []engine.Product{{Name: "Book", Price: 1000, Quantity: 1}},
		},
		Token: token,
	}
}

func create(t *testing.T, env engine.Env, in engine.NewTransaction) (*engine.Transaction, engine.Change) {
	t.Helper()
	c, refusal := engine.CreateTransaction(env, in, engine.Existing{})
	require.Nil(t, refusal)
	require.Len(t, c.Transactions, 1)
	checkAmounts(t, c.Transactions[0])
	return c.Transactions[0], c
}

// inState returns a transaction of a method that has been put into a state.
func inState(t *testing.T, env engine.Env, method, status string) *engine.Transaction {
	t.Helper()
	tx, _ := create(t, env, payment(method, "pgct_ok"))
	if status == "pending" {
		return tx
	}
	c, refusal := engine.SetStatus(env, tx, status)
	require.Nil(t, refusal)
	return c.Transactions[0]
}

func checkAmounts(t *testing.T, tx *engine.Transaction) {
	t.Helper()
	assert.GreaterOrEqual(t, tx.RefundedAmount, int64(0))
	assert.LessOrEqual(t, tx.RefundedAmount, tx.PaidAmount)
	assert.LessOrEqual(t, tx.PaidAmount, tx.Amount)
	assert.Equal(t, tx.PaidAmount > 0, !tx.PaidAt.IsZero(), "paid_at is set if and only if something is paid")
}

func kinds(c engine.Change) string {
	var list []string
	for _, e := range c.Events {
		list = append(list, e.Kind)
	}
	return strings.Join(list, " ")
}

func TestTransactionCreation(t *testing.T) {
	t.Parallel()
	const announced = "transaction.created transaction.pending"
	for _, row := range []struct {
		name   string
		env    engine.Env
		in     engine.NewTransaction
		status string
		events string
		timers []engine.TimerKind
		check  func(t *testing.T, tx *engine.Transaction)
	}{
		{
			"X1 pix", paymentEnv(), payment("pix", ""), "pending", announced,
			[]engine.TimerKind{engine.TimerExpire},
			func(t *testing.T, tx *engine.Transaction) {
				t.Helper()
				assert.Equal(t, paymentcode.ChargeCode(tx.ID, tx.Amount), tx.QRCode())
				assert.Equal(t, noon.Add(24*time.Hour), tx.Pix.ExpirationDate)
				assert.Empty(t, tx.Pix.EndToEndID)
			},
		},
		{
			"X2 voucher", paymentEnv(), payment("voucher", ""), "pending", announced,
			[]engine.TimerKind{engine.TimerExpire},
			func(t *testing.T, tx *engine.Transaction) {
				t.Helper()
				barcode := tx.Voucher.Barcode
				assert.Equal(t, paymentcode.Line(barcode), tx.Voucher.DigitableLine)
				assert.Equal(t, "0000001000", barcode[9:19], "the amount")
				other, _ := create(t, engine.Env{Now: noon, IDs: ids.Seeded(8)}, payment("voucher", ""))
				assert.NotEqual(t, barcode, other.Voucher.Barcode, "each voucher has its own barcode")
				assert.Empty(t, tx.QRCode())
				assert.Equal(t, noon.Add(3*24*time.Hour), tx.Voucher.ExpirationDate)
			},
		},
		{
			"X2 voucher of another currency", paymentEnv(), inCurrency(payment("voucher", ""), "MXN"), "pending", announced,
			[]engine.TimerKind{engine.TimerExpire},
			func(t *testing.T, tx *engine.Transaction) {
				t.Helper()
				assert.Empty(t, tx.Voucher.Barcode)
				assert.Empty(t, tx.Voucher.DigitableLine)
				assert.NotEmpty(t, tx.VoucherURL())
			},
		},
		{"X3 card", paymentEnv(), payment("credit_card", "pgct_ok"), "pending", announced, nil, nil},
		{"X3 card, unknown token", paymentEnv(), payment("credit_card", "pgpm_whatever"), "pending", announced, nil, nil},
		{
			"X4 3DS", paymentEnv(), payment("credit_card", "pgct_3ds_1"), "pending",
			"transaction.created transaction.three_ds_required",
			[]engine.TimerKind{engine.TimerExpireChallenge},
			func(t *testing.T, tx *engine.Transaction) {
				t.Helper()
				require.NotNil(t, tx.NextAction)
				assert.Len(t, tx.NextAction.ChallengeSessionID, 36)
				assert.Regexp(t, "^cs_[A-Z0-9]{32}$", tx.NextAction.ClientSecret)
				assert.Equal(t, noon.Add(15*time.Minute), tx.NextAction.ExpiresAt)
			},
		},
		{
			"X4 3DS, live", challengeEnv(), payment("credit_card", "pgct_3ds_1"), "three_ds_required",
			"transaction.created transaction.three_ds_required",
			[]engine.TimerKind{engine.TimerExpireChallenge},
			func(t *testing.T, tx *engine.Transaction) {
				t.Helper()
				require.NotNil(t, tx.NextAction)
			},
		},
		{
			"X5 refused", paymentEnv(), payment("credit_card", "pgct_refused_insufficient_funds_9"), "refused",
			"transaction.created", nil,
			func(t *testing.T, tx *engine.Transaction) {
				t.Helper()
				assert.Equal(t, []engine.Information{{Key: "refusal_reason", Value: "insufficient_funds"}}, tx.Informations)
			},
		},
		{
			"X5 always refused", paymentEnv(), payment("credit_card", "pgct_always_fails"), "refused",
			"transaction.created", nil,
			func(t *testing.T, tx *engine.Transaction) {
				t.Helper()
				assert.Equal(t, []engine.Information{{Key: "refusal_reason", Value: "declined"}}, tx.Informations)
			},
		},
		{
			"X6 paid at once", paymentEnv(), payment("credit_card", "pgct_paid"), "paid",
			"transaction.created transaction.paid", nil,
			func(t *testing.T, tx *engine.Transaction) {
				t.Helper()
				assert.Equal(t, tx.Amount, tx.PaidAmount)
			},
		},
		{
			"X6 captured at once", paymentEnv(), payment("credit_card", "pgpm_captured"), "captured",
			"transaction.created transaction.paid", nil,
			func(t *testing.T, tx *engine.Transaction) {
				t.Helper()
				assert.Equal(t, noon, tx.PaidAt)
			},
		},
		{
			"X6 paid, charged back later", paymentEnv(), payment("credit_card", "pgct_chargeback"), "paid",
			"transaction.created transaction.paid",
			[]engine.TimerKind{engine.TimerChargeBack},
			nil,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			tx, c := create(t, row.env, row.in)
			assert.Equal(t, row.status, tx.Status)
			assert.Equal(t, row.events, kinds(c))
			assert.Equal(t, noon, tx.CreatedAt)
			assert.Equal(t, tx.PaidAmount, c.Balance)
			var timers []engine.TimerKind
			for _, timer := range c.Timers {
				timers = append(timers, timer.Kind)
			}
			assert.Equal(t, row.timers, timers)
			if row.check != nil {
				row.check(t, tx)
			}
		})
	}
}

func inCurrency(in engine.NewTransaction, currency string) engine.NewTransaction {
	in.Currency = currency
	return in
}

func TestRejectedTransactionCreation(t *testing.T) {
	t.Parallel()
	first, _ := create(t, paymentEnv(), payment("pix", ""))
	byID := payment("credit_card", "pgct_used")
	byID.BuyerID = "nobody"
	for _, row := range []struct {
		name     string
		in       engine.NewTransaction
		existing engine.Existing
		code     string
	}{
		{"X7 reference seen before", payment("pix", ""), engine.Existing{Reference: first}, engine.CodeDuplicateReference},
		{"X7 comes before the buyer and the token", byID, engine.Existing{Reference: first}, engine.CodeDuplicateReference},
		{"the buyer comes before the token", byID, engine.Existing{}, engine.CodeNotFound},
		{"X3 token used", payment("credit_card", "pgct_ok"), engine.Existing{TokenSpent: true}, engine.CodeTokenUsed},
		{"X3 test token that counts as used", payment("credit_card", "pgpm_used_1"), engine.Existing{}, engine.CodeTokenUsed},
		{"X3 token expired", payment("credit_card", "pgct_expired_1"), engine.Existing{}, engine.CodeTokenExpired},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			c, refusal := engine.CreateTransaction(paymentEnv(), row.in, row.existing)
			require.NotNil(t, refusal)
			assert.Equal(t, row.code, refusal.Code)
			assert.Equal(t, engine.Change{}, c, "no token is used up")
			if row.code == engine.CodeNotFound {
				assert.Equal(t, "There is no buyer with this id.", refusal.Detail)
			}
		})
	}
}

func TestADuplicateNamesTheFirstTransaction(t *testing.T) {
	t.Parallel()
	first, _ := create(t, paymentEnv(), payment("pix", ""))
	_, refusal := engine.CreateTransaction(paymentEnv(), payment("pix", ""), engine.Existing{Reference: first})
	require.NotNil(t, refusal)
	assert.Equal(t, "/v2/transactions/"+first.ID, refusal.Instance)
	assert.Equal(t, "A transaction with this external reference already exists", refusal.Detail)
}

func TestSingleUseTokensAreUsedUp(t *testing.T) {
	t.Parallel()
	for token, spent := range map[string][]string{
		"pgct_ok":      {"pgct_ok"},
		"pgct_refused": {"pgct_refused"}, // by a refused charge as well
		"pgpm_ok":      nil,
	} {
		_, c := create(t, paymentEnv(), payment("credit_card", token))
		assert.Equal(t, spent, c.Spent, token)
	}
}

func TestRefusalReasons(t *testing.T) {
	t.Parallel()
	for token, reason := range map[string]string{
		"pgct_refused":                      "declined",
		"pgct_refused_by_nobody":            "declined",
		"pgct_refused_insufficient_funds_1": "insufficient_funds",
		"pgct_refused_expired_card":         "expired_card",
		"pgct_refused_fraud":                "fraud",
		"pgct_refused_do_not_honor":         "do_not_honor",
		"pgct_refused_lost_card":            "lost_card",
		"pgct_refused_stolen_card":          "stolen_card",
		"pgct_refused_limit_exceeded":       "limit_exceeded",
		"pgpm_refused_invalid_card":         "invalid_card",
	} {
		tx, _ := create(t, paymentEnv(), payment("credit_card", token))
		assert.Equal(t, []engine.Information{{Key: "refusal_reason", Value: reason}}, tx.Informations, token)
	}
}

// The last four digits of a card are those that its token ends with. Every other
// token has four digits that never change.
func TestLastFourDigits(t *testing.T) {
	t.Parallel()
	last4 := func(token string) string {
		tx, _ := create(t, paymentEnv(), payment("credit_card", token))
		return tx.Card.Last4
	}
	assert.Equal(t, "4242", last4("pgct_ok_4242"))
	for _, token := range []string{"pgpm_ok", "pgpm_ok_123", "pgpm_ok_12345", "pgpm_ok_12a4", "pgpm_ok_a234", "pgpm_ok_123?"} {
		first := last4(token)
		assert.Regexp(t, `^[1-9]\d{3}$`, first, token)
		assert.Equal(t, first, last4(token), token)
	}
	assert.Equal(t, "7066", last4("pgpm_ok"), "the same in every version, since data files contain tokens")
	assert.Equal(t, "2682", last4("pgpm_ok_a"))
}

func TestTheTestCardsAreListed(t *testing.T) {
	t.Parallel()
	var tokens []string
	for _, c := range engine.TestCards() {
		assert.NotEmpty(t, c.Outcome)
		tokens = append(tokens, c.Token)
	}
	assert.Equal(t, []string{
		"pgct_ok", "pgct_paid", "pgct_captured", "pgct_authorized", "pgct_refused", "pgct_3ds", "pgct_used", "pgct_expired", "pgct_chargeback",
		"pgct_renewal_fails", "pgct_renewal_fails_2", "pgct_always_fails",
	}, tokens)
}

func TestAChargebackComesADayLater(t *testing.T) {
	t.Parallel()
	tx, c := create(t, paymentEnv(), payment("credit_card", "pgct_chargeback"))
	assert.Equal(t, []engine.Timer{{At: noon.Add(24 * time.Hour), Kind: engine.TimerChargeBack, ID: tx.ID}}, c.Timers)
}

// step is a test of one transition of an existing transaction.
type step struct {
	name    string
	from    func(t *testing.T, env engine.Env) *engine.Transaction
	after   time.Duration // how much time passes first
	do      func(env engine.Env, tx *engine.Transaction) (engine.Change, *engine.Refusal)
	status  string // after it; "" if it is rejected
	events  string
	worth   int64 // the change of the balance
	check   func(t *testing.T, tx *engine.Transaction)
	refusal string // the code of its rejection; "" if it succeeds
}

func has(method, status string) func(t *testing.T, env engine.Env) *engine.Transaction {
	return func(t *testing.T, env engine.Env) *engine.Transaction {
		t.Helper()
		return inState(t, env, method, status)
	}
}

func byToken(token string) func(t *testing.T, env engine.Env) *engine.Transaction {
	return func(t *testing.T, env engine.Env) *engine.Transaction {
		t.Helper()
		tx, _ := create(t, env, payment("credit_card", token))
		return tx
	}
}

func TestTransactionMoves(t *testing.T) {
	t.Parallel()
	steps := []step{
		{
			name: "X8 pix", from: has("pix", "pending"), do: engine.Pay, after: 24*time.Hour - time.Millisecond,
			status: "paid", events: "transaction.paid", worth: 1000,
			check: func(t *testing.T, tx *engine.Transaction) {
				t.Helper()
				assert.Regexp(t, `^E\d{8}20270105\d{4}[A-Z0-9]{11}$`, tx.Pix.EndToEndID)
				assert.NotEmpty(t, tx.ReceiptURL())
				assert.Equal(t, tx.UpdatedAt, tx.PaidAt)
			},
		},
		{name: "X8 pix after its expiry", from: has("pix", "pending"), do: engine.Pay, after: 24 * time.Hour, refusal: engine.CodeInvalidState},
		{
			name: "X8 voucher", from: has("voucher", "pending"), do: engine.Pay, status: "paid", events: "transaction.paid", worth: 1000,
			check: func(t *testing.T, tx *engine.Transaction) {
				t.Helper()
				assert.NotEmpty(t, tx.ReceiptURL())
			},
		},
		{name: "X8 card", from: byToken("pgct_ok"), do: engine.Pay, status: "paid", events: "transaction.paid", worth: 1000},
		{name: "X8 twice", from: has("pix", "paid"), do: engine.Pay, refusal: engine.CodeInvalidState},
		{name: "X8 voucher twice", from: has("voucher", "paid"), do: engine.Pay, refusal: engine.CodeInvalidState},
		{name: "X8 voucher that was canceled", from: has("voucher", "canceled"), do: engine.Pay, refusal: engine.CodeInvalidState},
		{name: "X8 with an open challenge", from: byToken("pgct_3ds"), do: engine.Pay, refusal: engine.CodeInvalidState},
		{name: "X9 pix", from: has("pix", "pending"), do: engine.ExpireByTimer, after: 24 * time.Hour, status: "expired"},
		{name: "X9 too early", from: has("pix", "pending"), do: engine.ExpireByTimer, after: 24*time.Hour - 1, refusal: engine.CodeInvalidState},
		{name: "X9 by control", from: has("pix", "pending"), do: engine.Expire, status: "expired"},
		{name: "X9 voucher", from: has("voucher", "pending"), do: engine.ExpireByTimer, after: 3 * 24 * time.Hour, status: "expired"},
		{name: "X9 voucher too early", from: has("voucher", "pending"), do: engine.ExpireByTimer, after: 3*24*time.Hour - 1, refusal: engine.CodeInvalidState},
		{name: "X9 card", from: has("credit_card", "pending"), do: engine.Expire, refusal: engine.CodeInvalidState},
		{name: "X9 paid already", from: has("pix", "paid"), do: engine.ExpireByTimer, after: 24 * time.Hour, refusal: engine.CodeInvalidState},
		{name: "X10 voucher", from: has("voucher", "expired"), do: engine.Pay, status: "paid", events: "transaction.paid", worth: 1000},
		{name: "X10 pix", from: has("pix", "expired"), do: engine.Pay, refusal: engine.CodeInvalidState},
		{name: "X11 card", from: has("credit_card", "pending"), do: engine.Refuse, status: "refused"},
		{name: "X11 pix", from: has("pix", "pending"), do: engine.Refuse, refusal: engine.CodeInvalidState},
		{name: "X11 paid", from: has("credit_card", "paid"), do: engine.Refuse, refusal: engine.CodeInvalidState},
		{name: "X12", from: has("pix", "pending"), do: engine.Cancel, status: "canceled", events: "transaction.cancelled"},
		{name: "X12 paid", from: has("pix", "paid"), do: engine.Cancel, refusal: engine.CodeInvalidState},
		{
			name: "X13 passed", from: byToken("pgct_3ds"), do: engine.PassChallenge, status: "paid", events: "transaction.paid", worth: 1000,
			check: func(t *testing.T, tx *engine.Transaction) {
				t.Helper()
				assert.Nil(t, tx.NextAction)
			},
		},
		{
			name: "X13 failed", from: byToken("pgct_3ds"), do: engine.FailChallenge, status: "refused",
			check: func(t *testing.T, tx *engine.Transaction) {
				t.Helper()
				assert.Equal(t, []engine.Information{{Key: "refusal_reason", Value: "three_ds_failed"}}, tx.Informations)
				assert.Nil(t, tx.NextAction)
			},
		},
		{
			name: "X13 expired", from: byToken("pgct_3ds"), do: engine.ExpireByTimer, after: 15 * time.Minute,
			status: "canceled", events: "transaction.cancelled",
		},
		{name: "X13 expired too early", from: byToken("pgct_3ds"), do: engine.ExpireByTimer, after: 15*time.Minute - 1, refusal: engine.CodeInvalidState},
		{name: "X13 without a challenge", from: byToken("pgct_ok"), do: engine.PassChallenge, refusal: engine.CodeInvalidState},
		{name: "X13 failed without a challenge", from: byToken("pgct_ok"), do: engine.FailChallenge, refusal: engine.CodeInvalidState},
		{
			name: "X14 paid, in full", from: has("pix", "paid"), do: refund(0), status: "refunded", events: "transaction.refunded", worth: -1000,
			check: func(t *testing.T, tx *engine.Transaction) {
				t.Helper()
				assert.Equal(t, int64(1000), tx.RefundedAmount)
			},
		},
		{name: "X14 the rest by amount", from: has("pix", "partially_refunded"), do: refund(500), status: "refunded", events: "transaction.refunded", worth: -500},
		{name: "X14 captured", from: has("credit_card", "captured"), do: refund(1000), status: "refunded", events: "transaction.refunded", worth: -1000},
		{name: "X14 voucher", from: has("voucher", "paid"), do: refund(0), status: "refunded", events: "transaction.refunded", worth: -1000},
		{name: "X15 pix", from: has("pix", "paid"), do: refund(999), status: "partially_refunded", events: "transaction.refunded", worth: -999},
		{name: "X15 card", from: has("credit_card", "captured"), do: refund(1), status: "partially_refunded", events: "transaction.refunded", worth: -1},
		{name: "X15 again", from: has("pix", "partially_refunded"), do: refund(499), status: "partially_refunded", events: "transaction.refunded", worth: -499},
		{name: "X15 voucher", from: has("voucher", "paid"), do: refund(999), refusal: engine.CodeNotRefundable},
		{name: "X17", from: has("pix", "paid"), do: refund(1001), refusal: engine.CodeValidation},
		{name: "X17 after a partial refund", from: has("pix", "partially_refunded"), do: refund(501), refusal: engine.CodeValidation},
		{name: "X18 paid", from: has("credit_card", "paid"), do: engine.Chargeback, status: "chargedback", events: "transaction.chargedback", worth: -1000},
		{name: "X18 captured", from: has("credit_card", "captured"), do: engine.Chargeback, status: "chargedback", events: "transaction.chargedback", worth: -1000},
		{
			name: "X18 after a partial refund", from: has("credit_card", "partially_refunded"), do: engine.Chargeback,
			status: "chargedback", events: "transaction.chargedback", worth: -500,
		},
		{name: "X18 pix", from: has("pix", "paid"), do: engine.Chargeback, refusal: engine.CodeInvalidState},
		{name: "X18 pending", from: has("credit_card", "pending"), do: engine.Chargeback, refusal: engine.CodeInvalidState},
	}
	for _, status := range []string{"pending", "expired", "canceled", "refused", "refunded", "chargedback"} {
		steps = append(steps, step{name: "X16 " + status, from: has("credit_card", status), do: refund(0), refusal: engine.CodeNotRefundable})
	}
	for _, row := range steps {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			row.run(t, paymentEnv())
		})
	}
}

func refund(amount int64) func(engine.Env, *engine.Transaction) (engine.Change, *engine.Refusal) {
	return func(env engine.Env, tx *engine.Transaction) (engine.Change, *engine.Refusal) {
		return engine.Refund(env, tx, engine.RefundRequest{Amount: amount})
	}
}

func (s step) run(t *testing.T, env engine.Env) {
	t.Helper()
	before := s.from(t, env)
	untouched := *before
	env.Now = env.Now.Add(s.after)
	c, refusal := s.do(env, before)
	assert.Equal(t, untouched, *before, "the engine does not modify its input")
	if s.refusal != "" {
		require.NotNil(t, refusal)
		assert.Equal(t, s.refusal, refusal.Code)
		assert.Equal(t, engine.Change{}, c)
		return
	}
	require.Nil(t, refusal)
	require.Len(t, c.Transactions, 1)
	after := c.Transactions[0]
	checkAmounts(t, after)
	assert.Equal(t, s.status, after.Status)
	assert.Equal(t, s.events, kinds(c))
	assert.Equal(t, s.worth, c.Balance)
	assert.Equal(t, env.Now, after.UpdatedAt)
	if s.check != nil {
		s.check(t, after)
	}
}

func TestRefundFieldErrorNamesAmount(t *testing.T) {
	t.Parallel()
	_, refusal := refund(1001)(paymentEnv(), inState(t, paymentEnv(), "pix", "paid"))
	require.NotNil(t, refusal)
	assert.Equal(t, "amount", refusal.Fields[0].Field)
	assert.Equal(t, "too_big", refusal.Fields[0].Code)
}

func TestRefundReasonIsStored(t *testing.T) {
	t.Parallel()
	c, refusal := engine.Refund(paymentEnv(), inState(t, paymentEnv(), "pix", "paid"), engine.RefundRequest{Amount: 1, Reason: "damaged"})
	require.Nil(t, refusal)
	assert.Equal(t, []engine.Information{{Key: "refund_reason", Value: "damaged"}}, c.Transactions[0].Informations)
	c, refusal = engine.Refund(paymentEnv(), c.Transactions[0], engine.RefundRequest{Amount: 1, Reason: "late"})
	require.Nil(t, refusal)
	assert.Equal(t, []engine.Information{{Key: "refund_reason", Value: "late"}}, c.Transactions[0].Informations, "only the latest one")
}

// X19: every state can be reached from every state, with amounts that fit it.
func TestSandboxStatus(t *testing.T) {
	t.Parallel()
	states := map[string]string{ // and the event that each causes
		"pending": "transaction.pending", "paid": "transaction.paid", "captured": "transaction.paid",
		"expired": "", "canceled": "transaction.cancelled", "refused": "", "refunded": "transaction.refunded",
		"partially_refunded": "transaction.partially_refunded", "chargedback": "transaction.chargedback",
		"authorized": "", "three_ds_required": "transaction.three_ds_required", "in_protest": "",
		"partially_paid": "", "processing": "", "processed": "", "med": "", "pre_chargedback": "", "waiting_payment": "",
	}
	for _, method := range []string{"pix", "voucher", "credit_card"} {
		for from := range states {
			for to, event := range states {
				t.Run("X19 "+method+" "+from+" "+to, func(t *testing.T) {
					t.Parallel()
					env := liveEnv()
					before := inState(t, env, method, from)
					c, refusal := engine.SetStatus(env, before, to)
					require.Nil(t, refusal)
					if from == to {
						assert.Equal(t, engine.Change{}, c, "a repeat changes nothing")
						return
					}
					after := c.Transactions[0]
					checkAmounts(t, after)
					checkState(t, after)
					assert.Equal(t, to, after.Status)
					assert.Equal(t, event, kinds(c))
				})
			}
		}
	}
}

// checkState checks that the other members fit the state.
func checkState(t *testing.T, tx *engine.Transaction) {
	t.Helper()
	left := tx.PaidAmount - tx.RefundedAmount
	switch tx.Status {
	case "paid", "captured", "processed":
		assert.Equal(t, tx.Amount, left)
	case "refunded":
		assert.Equal(t, tx.Amount, tx.PaidAmount)
		assert.Zero(t, left)
	case "partially_refunded":
		assert.Positive(t, left)
		assert.Positive(t, tx.RefundedAmount)
	case "chargedback", "in_protest", "med", "pre_chargedback", "partially_paid":
		assert.Positive(t, left)
	default:
		assert.Zero(t, tx.PaidAmount)
		assert.True(t, tx.Pix == nil || tx.Pix.EndToEndID == "")
	}
	assert.Equal(t, tx.Status == "three_ds_required", tx.NextAction != nil)
	assert.Equal(t, tx.Status == "refused", hasInformation(tx, "refusal_reason"))
	assert.False(t, tx.RefundedAmount == 0 && hasInformation(tx, "refund_reason"))
}

func hasInformation(tx *engine.Transaction, key string) bool {
	return slices.ContainsFunc(tx.Informations, func(i engine.Information) bool { return i.Key == key })
}

// Undoing a refund removes its reason, but not from the earlier version of the
// transaction.
func TestSandboxStatusRemovesReasons(t *testing.T) {
	t.Parallel()
	env := paymentEnv()
	c, refusal := engine.Refund(env, inState(t, env, "pix", "paid"), engine.RefundRequest{Reason: "torn"})
	require.Nil(t, refusal)
	refunded := c.Transactions[0]
	require.True(t, hasInformation(refunded, "refund_reason"))
	for _, status := range []string{"paid", "pending", "refused"} {
		c, refusal := engine.SetStatus(env, refunded, status)
		require.Nil(t, refusal)
		checkState(t, c.Transactions[0])
	}
	assert.True(t, hasInformation(refunded, "refund_reason"))
}

// X19: the paid and refunded amounts stay the same, as far as the new state
// allows.
func TestSandboxStatusKeepsConsistentAmounts(t *testing.T) {
	t.Parallel()
	set := func(t *testing.T, tx *engine.Transaction, status string) *engine.Transaction {
		t.Helper()
		env := paymentEnv()
		env.Now = noon.Add(time.Hour)
		c, refusal := engine.SetStatus(env, tx, status)
		require.Nil(t, refusal)
		return c.Transactions[0]
	}
	for _, row := range []struct {
		from, to       string
		paid, refunded int64
		paidAt         time.Time
	}{
		{"paid", "refunded", 1000, 1000, noon},
		{"paid", "partially_refunded", 1000, 500, noon},
		{"refunded", "partially_refunded", 1000, 500, noon},
		{"paid", "chargedback", 1000, 0, noon},
		{"partially_refunded", "chargedback", 1000, 500, noon},
		{"partially_refunded", "refunded", 1000, 1000, noon},
		{"refunded", "in_protest", 1000, 0, noon},
		{"partially_refunded", "paid", 1000, 0, noon.Add(time.Hour)},
		{"paid", "partially_paid", 500, 0, noon.Add(time.Hour)},
		{"partially_paid", "chargedback", 1000, 0, noon.Add(time.Hour)},
		{"paid", "pending", 0, 0, time.Time{}},
	} {
		tx := set(t, inState(t, paymentEnv(), "pix", row.from), row.to)
		assert.Equal(t, row.paid, tx.PaidAmount, "%s to %s", row.from, row.to)
		assert.Equal(t, row.refunded, tx.RefundedAmount, "%s to %s", row.from, row.to)
		assert.Equal(t, row.paidAt, tx.PaidAt, "%s to %s", row.from, row.to)
		assert.Equal(t, noon.Add(24*time.Hour), tx.Pix.ExpirationDate, "%s to %s", row.from, row.to)
	}
	c, refusal := refund(300)(paymentEnv(), inState(t, paymentEnv(), "pix", "paid"))
	require.Nil(t, refusal)
	back := set(t, set(t, c.Transactions[0], "in_protest"), "partially_refunded")
	assert.Equal(t, int64(300), back.RefundedAmount)
	assert.Equal(t, []engine.Information{{Key: "refusal_reason", Value: "declined"}},
		set(t, inState(t, paymentEnv(), "pix", "pending"), "refused").Informations)
}

func TestSandboxStatusInProduction(t *testing.T) {
	t.Parallel()
	env := paymentEnv()
	tx := inState(t, env, "pix", "pending")
	env.Sandbox = false
	_, refusal := engine.SetStatus(env, tx, "paid")
	require.NotNil(t, refusal)
	assert.Equal(t, engine.CodeForbidden, refusal.Code)
}

func TestSandboxStatusCannotSplitOneCent(t *testing.T) {
	t.Parallel()
	for _, status := range []string{"partially_refunded", "partially_paid"} {
		cents := payment("pix", "")
		cents.Amount = 1
		tx, _ := create(t, paymentEnv(), cents)
		_, refusal := engine.SetStatus(paymentEnv(), tx, status)
		require.NotNil(t, refusal, status)
		assert.Equal(t, engine.CodeInvalidState, refusal.Code)

		cents.Amount = 2
		tx, _ = create(t, paymentEnv(), cents)
		c, refusal := engine.SetStatus(paymentEnv(), tx, status)
		require.Nil(t, refusal, status)
		assert.Equal(t, int64(1), c.Balance, status)
	}
}

// A payment that is set to pending again after it expired gets a new expiry,
// with its timer.
func TestSandboxStatusReopens(t *testing.T) {
	t.Parallel()
	for method, life := range map[string]time.Duration{"pix": 24 * time.Hour, "voucher": 72 * time.Hour} {
		for _, status := range []string{"pending", "waiting_payment"} {
			env := liveEnv()
			tx := inState(t, env, method, "expired")
			env.Now = env.Now.Add(30 * 24 * time.Hour)
			c, refusal := engine.SetStatus(env, tx, status)
			require.Nil(t, refusal)
			assert.Equal(t, []engine.Timer{{At: env.Now.Add(life), Kind: engine.TimerExpire, ID: tx.ID}}, c.Timers)
			env.Now = c.Timers[0].At
			c, refusal = engine.ExpireByTimer(env, c.Transactions[0])
			require.Nil(t, refusal)
			assert.Equal(t, "expired", c.Transactions[0].Status)
		}
	}
}

func TestSandboxStatusSetsTheExpiryOfAChallenge(t *testing.T) {
	t.Parallel()
	tx := inState(t, liveEnv(), "credit_card", "pending")
	c, refusal := engine.SetStatus(liveEnv(), tx, "three_ds_required")
	require.Nil(t, refusal)
	assert.Equal(t, []engine.Timer{{At: noon.Add(15 * time.Minute), Kind: engine.TimerExpireChallenge, ID: tx.ID}}, c.Timers)
}

func TestDelivery(t *testing.T) {
	t.Parallel()
	clear, shop := "", "https://carrier.example.com/1"
	update := func(t *testing.T, tx *engine.Transaction, in engine.DeliveryUpdate) *engine.Transaction {
		t.Helper()
		c, refusal := engine.UpdateDelivery(paymentEnv(), tx, in)
		require.Nil(t, refusal)
		assert.Empty(t, c.Events)
		assert.Zero(t, c.Balance)
		return c.Transactions[0]
	}
	for _, status := range []string{"paid", "captured"} {
		t.Run("X20 "+status, func(t *testing.T) {
			t.Parallel()
			tx := update(t, inState(t, paymentEnv(), "credit_card", status), engine.DeliveryUpdate{Code: "BR1", URL: &shop})
			assert.Equal(t, status, tx.Status)
			assert.Equal(t, engine.Delivery{Status: "in_transit", Code: "BR1", URL: shop, LastUpdate: noon}, *tx.Delivery)
			tx = update(t, tx, engine.DeliveryUpdate{Code: "BR2", Company: &status})
			assert.Equal(t, shop, tx.Delivery.URL, "absent members are unchanged")
			assert.Equal(t, status, tx.Delivery.Company)
			tx = update(t, tx, engine.DeliveryUpdate{Code: "BR2", URL: &clear, Status: "waiting"})
			assert.Empty(t, tx.Delivery.URL)
			tx = update(t, tx, engine.DeliveryUpdate{Code: "BR2", Status: "delivered"})
			tx = update(t, tx, engine.DeliveryUpdate{Code: "BR2", Status: "delivered"})
			tx = update(t, tx, engine.DeliveryUpdate{Code: "BR3"})
			assert.Equal(t, "delivered", tx.Delivery.Status)
			for _, back := range []string{"waiting", "in_transit"} {
				_, refusal := engine.UpdateDelivery(paymentEnv(), tx, engine.DeliveryUpdate{Code: "BR3", Status: back})
				require.NotNil(t, refusal, back)
				assert.Equal(t, engine.CodeDeliveryState, refusal.Code)
			}
		})
	}
	for _, status := range []string{"pending", "refunded", "partially_refunded", "chargedback", "expired"} {
		t.Run("X20 rejected when "+status, func(t *testing.T) {
			t.Parallel()
			_, refusal := engine.UpdateDelivery(paymentEnv(), inState(t, paymentEnv(), "pix", status), engine.DeliveryUpdate{Code: "BR1"})
			require.NotNil(t, refusal)
			assert.Equal(t, engine.CodeDeliveryState, refusal.Code)
		})
	}
}

func TestAutoPay(t *testing.T) {
	t.Parallel()
	env := paymentEnv()
	env.AutoPay = 5 * time.Second
	for token, pays := range map[string]bool{"pgct_ok": true, "pgct_3ds": false, "pgct_refused": false, "pgct_paid": false} {
		_, c := create(t, env, payment("credit_card", token))
		existing := false
		for _, timer := range c.Timers {
			existing = existing || timer.Kind == engine.TimerPay && timer.At.Equal(noon.Add(5*time.Second))
		}
		assert.Equal(t, pays, existing, token)
	}
	env.AutoPay = 1
	_, c := create(t, env, payment("credit_card", "pgct_ok"))
	assert.Len(t, c.Timers, 1, "any duration but 0")
}

func TestARefusalByTheIssuerHasAReason(t *testing.T) {
	t.Parallel()
	c, refusal := engine.Refuse(paymentEnv(), inState(t, paymentEnv(), "credit_card", "pending"))
	require.Nil(t, refusal)
	assert.Equal(t, []engine.Information{{Key: "refusal_reason", Value: "declined"}}, c.Transactions[0].Informations)
}

func TestTransactionLifetimes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		method, token string
		want          time.Time
	}{
		{"pix", "", noon.Add(24 * time.Hour)},
		{"voucher", "", noon.Add(3 * 24 * time.Hour)},
		{"credit_card", "pgct_3ds", noon.Add(15 * time.Minute)},
		{"credit_card", "pgct_ok", time.Time{}},
	} {
		tx, _ := create(t, paymentEnv(), payment(tc.method, tc.token))
		until, bounded := engine.Deadline(tx)
		assert.Equal(t, tc.want, until, tc)
		assert.Equal(t, !tc.want.IsZero(), bounded, tc)
	}
}

func TestARejectionNamesTheStateOfTheTransaction(t *testing.T) {
	t.Parallel()
	tx := inState(t, paymentEnv(), "pix", "refunded")
	for what, transition := range map[string]func(engine.Env, *engine.Transaction) (engine.Change, *engine.Refusal){
		"paid": engine.Pay, "expired": engine.Expire, "refused": engine.Refuse, "canceled": engine.Cancel,
		"charged back": engine.Chargeback,
	} {
		_, refusal := transition(paymentEnv(), tx)
		require.NotNil(t, refusal)
		assert.Equal(t, engine.CodeInvalidState, refusal.Code)
		assert.Equal(t, "A pix transaction in state refunded can't be "+what+".", refusal.Detail)
	}
	for _, transition := range []func(engine.Env, *engine.Transaction) (engine.Change, *engine.Refusal){engine.PassChallenge, engine.FailChallenge} {
		_, refusal := transition(paymentEnv(), tx)
		require.NotNil(t, refusal)
		assert.Equal(t, engine.CodeInvalidState, refusal.Code)
		assert.Equal(t, "The transaction has no open 3-D Secure challenge.", refusal.Detail)
	}
}

func TestTheGatewayKeepsItsFee(t *testing.T) {
	t.Parallel()
	env := paymentEnv()
	env.Fee = 10
	tx, c := create(t, env, payment("credit_card", "pgct_paid"))
	assert.Equal(t, int64(10), tx.FeeAmount)
	assert.Equal(t, int64(990), c.Balance)
	c, refusal := engine.Chargeback(env, tx)
	require.Nil(t, refusal)
	assert.Equal(t, int64(-1000), c.Balance, "the gateway keeps its fee")
}

func TestACustomerAsBuyer(t *testing.T) {
	t.Parallel()
	customer := &engine.Customer{Buyer: engine.Buyer{ID: "c1", Name: "Ana", Email: "ana@example.com", Phone: "11"}}
	in := payment("pix", "")
	in.BuyerID = "c1"
	in.Buyer = &engine.Buyer{}
	c, refusal := engine.CreateTransaction(paymentEnv(), in, engine.Existing{Customer: customer})
	require.Nil(t, refusal)
	assert.Equal(t, customer.Buyer, *c.Transactions[0].Buyer)

	in.Buyer = &engine.Buyer{
		Phone: "22", BirthDate: "1990-01-02", Document: &engine.Document{Type: "CPF", Number: "52998224725"},
		Address: &engine.Address{Street: "Rua A", City: "Recife", Country: "BR"},
	}
	c, refusal = engine.CreateTransaction(paymentEnv(), in, engine.Existing{Customer: customer})
	require.Nil(t, refusal)
	assert.Equal(t, engine.Buyer{
		ID: "c1", Name: "Ana", Email: "ana@example.com", Phone: "22", BirthDate: "1990-01-02",
		Document: in.Buyer.Document, Address: in.Buyer.Address,
	}, *c.Transactions[0].Buyer)
	assert.Equal(t, "11", customer.Phone, "the customer does not change")
}

// X25 and X26: a card that stays authorized until it is captured or canceled.
func TestAnAuthorizedCard(t *testing.T) {
	t.Parallel()
	env := liveEnv()
	env.AutoPay = time.Minute
	tx, c := create(t, env, payment("credit_card", "pgct_authorized"))
	assert.Equal(t, "authorized", tx.Status)
	assert.Equal(t, "transaction.created", kinds(c))
	assert.Empty(t, c.Timers, "nothing captures it by itself")
	assert.Zero(t, c.Balance)
	for _, do := range []transition{engine.Refuse, engine.Expire, engine.Chargeback, refund(0), refund(1)} {
		_, refusal := do(env, tx)
		require.NotNil(t, refusal)
	}
	captured, refusal := engine.Pay(env, tx)
	require.Nil(t, refusal)
	assert.Equal(t, "captured", captured.Transactions[0].Status)
	assert.Equal(t, tx.Amount, captured.Transactions[0].PaidAmount)
	assert.Equal(t, "transaction.paid", kinds(captured))
	canceled, refusal := engine.Cancel(env, tx)
	require.Nil(t, refusal)
	assert.Equal(t, "canceled", canceled.Transactions[0].Status)
	assert.Equal(t, "transaction.cancelled", kinds(canceled))
	assert.Zero(t, canceled.Balance)

	tx, _ = create(t, paymentEnv(), payment("credit_card", "pgct_authorized"))
	assert.Equal(t, "pending", tx.Status, "the document dialect has no such state")
}

// X14 and X15, live: the event of a part, and how long a Pix can be refunded.
func TestRefundsOfLiveGateways(t *testing.T) {
	t.Parallel()
	env := liveEnv()
	tx := inState(t, env, "pix", "paid")
	c, refusal := engine.Refund(env, tx, engine.RefundRequest{Amount: 1})
	require.Nil(t, refusal)
	assert.Equal(t, "transaction.partially_refunded", kinds(c))
	part := c.Transactions[0]
	c, refusal = engine.Refund(env, part, engine.RefundRequest{})
	require.Nil(t, refusal)
	assert.Equal(t, "transaction.refunded", kinds(c))

	env.Now = tx.PaidAt.Add(90 * 24 * time.Hour)
	_, refusal = engine.Refund(env, part, engine.RefundRequest{Amount: 1})
	require.Nil(t, refusal, "the last moment")
	env.Now = env.Now.Add(time.Millisecond)
	for _, amount := range []int64{0, 1} {
		_, refusal = engine.Refund(env, part, engine.RefundRequest{Amount: amount})
		require.NotNil(t, refusal)
		assert.Equal(t, "NOT_REFUNDABLE", refusal.Code)
		assert.Equal(t, "A Pix can't be refunded more than 90 days after its payment.", refusal.Detail)
	}
	_, refusal = engine.Refund(env, inState(t, liveEnv(), "credit_card", "paid"), engine.RefundRequest{})
	require.Nil(t, refusal, "a card has no such limit")
	document := paymentEnv()
	paid := inState(t, document, "pix", "paid")
	document.Now = paid.PaidAt.AddDate(1, 0, 0)
	_, refusal = engine.Refund(document, paid, engine.RefundRequest{})
	require.Nil(t, refusal, "the interface document has no limit")
}

// X2 and X9, live: a voucher in Colombian pesos expires after minutes.
func TestColombianVouchers(t *testing.T) {
	t.Parallel()
	breB := liveEnv()
	breB.BreB = true
	for _, tc := range []struct {
		env      engine.Env
		currency string
		lives    time.Duration
	}{
		{liveEnv(), "COP", 10 * time.Minute}, {breB, "COP", 5 * time.Minute}, {breB, "BRL", 72 * time.Hour}, {paymentEnv(), "COP", 72 * time.Hour},
	} {
		in := payment("voucher", "")
		in.Currency = tc.currency
		tx, c := create(t, tc.env, in)
		assert.Equal(t, tc.env.Now.Add(tc.lives), tx.Voucher.ExpirationDate)
		require.Len(t, c.Timers, 1)
		assert.Equal(t, tx.Voucher.ExpirationDate, c.Timers[0].At)
		tc.env.Now = tx.Voucher.ExpirationDate
		expired, refusal := engine.ExpireByTimer(tc.env, tx)
		require.Nil(t, refusal)
		reopened, refusal := engine.SetStatus(tc.env, expired.Transactions[0], "pending")
		require.Nil(t, refusal)
		assert.Equal(t, tc.env.Now.Add(tc.lives), reopened.Transactions[0].Voucher.ExpirationDate)
	}
}
