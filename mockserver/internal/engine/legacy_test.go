package engine_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
)

func (w *world) legacyPayment() string {
	w.tb.Helper()
	c, refusal := engine.CreateLegacyPayment(w.env, engine.NewLegacyPayment{
		LegacyPayment: engine.LegacyPayment{ExternalID: "order-1", Description: "Order 1"},
		Amount:        4990,
		Buyer:         engine.Buyer{Name: "Ana Souza"},
		Lifetime:      time.Hour,
	})
	w.do(c, refusal)
	return c.Transactions[0].ID
}

func TestLegacyStatusFollowsTheTransaction(t *testing.T) {
	t.Parallel()
	refundPart := func(env engine.Env, t *engine.Transaction) (engine.Change, *engine.Refusal) {
		return engine.Refund(env, t, engine.RefundRequest{Amount: 1})
	}
	tests := []struct {
		name  string
		moves []transition
		want  string
	}{
		{"created", nil, "WAITING_PAYMENT"},
		{"paid", []transition{engine.Pay}, "PAID"},
		{"canceled", []transition{engine.Cancel}, "CANCELLED"},
		{"partially refunded", []transition{engine.Pay, refundPart}, "REFUND"},
		{"captured", []transition{setStatus("captured")}, "PAID"},
		{"refused", []transition{setStatus("refused")}, "DECLINED"},
		{"charged back", []transition{setStatus("chargedback")}, "REVERSED"},
		{"in a state that v1 does not have", []transition{setStatus("in_protest")}, "ERROR"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			id := w.legacyPayment()
			for _, m := range test.moves {
				require.Nil(t, w.move(id, m))
			}
			assert.Equal(t, test.want, w.transactions.rows[id].LegacyStatus())
		})
	}
	t.Run("expired", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		id := w.legacyPayment()
		w.advance(time.Hour)
		assert.Equal(t, "CANCELLED", w.transactions.rows[id].LegacyStatus())
	})
}

func TestLegacyStatusByControl(t *testing.T) {
	t.Parallel()
	set := func(status string) transition {
		return func(env engine.Env, t *engine.Transaction) (engine.Change, *engine.Refusal) {
			return engine.SetLegacyStatus(env, t, status)
		}
	}
	t.Run("every state", func(t *testing.T) {
		t.Parallel()
		for status := range spec.LegacyStatuses.All() {
			w := newWorld(t)
			id := w.legacyPayment()
			if status == "REFUND" {
				require.Nil(t, w.move(id, engine.Pay))
			}
			require.Nil(t, w.move(id, set(status)), status)
			assert.Equal(t, status, w.transactions.rows[id].LegacyStatus())
		}
	})
	t.Run("money moves with PAID and REFUND", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		id := w.legacyPayment()
		require.Nil(t, w.move(id, set("PAID")))
		assert.Equal(t, int64(4990-149), w.balance)
		require.Nil(t, w.move(id, set("REFUND")))
		assert.Equal(t, int64(-149), w.balance)
		require.NotNil(t, w.move(id, set("PAID")))
		refusal := w.move(id, set("WAITING_PAYMENT"))
		require.NotNil(t, refusal)
		assert.Equal(t, "INVALID_STATE", refusal.Code)
	})
	t.Run("CANCELLED cancels the transaction", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		id := w.legacyPayment()
		require.Nil(t, w.move(id, set("CANCELLED")))
		assert.Equal(t, "canceled", w.transactions.rows[id].Status)
		require.NotNil(t, w.move(id, engine.Pay), "it can no longer be paid")
	})
	t.Run("a label stays until the transaction changes", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		id := w.legacyPayment()
		w.emitted()
		require.Nil(t, w.move(id, set("IN_ANALYSIS")))
		assert.Empty(t, w.emitted())
		require.Nil(t, w.move(id, set("WAITING_PAYMENT")))
		assert.Equal(t, "WAITING_PAYMENT", w.transactions.rows[id].LegacyStatus())
		require.Nil(t, w.move(id, set("APPROVED")))
		require.Nil(t, w.move(id, engine.Pay))
		assert.Equal(t, "PAID", w.transactions.rows[id].LegacyStatus())
	})
	t.Run("rejections", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		refusal := w.move(w.legacyPayment(), set("WON"))
		require.NotNil(t, refusal)
		assert.Equal(t, "status", refusal.Fields[0].Field)
		assert.Equal(t, spec.CodeInvalidEnum, refusal.Fields[0].Code)
		refusal = w.move(w.sub(w.subscribe("pgct_ok")).Latest.ID, set("PAID"))
		require.NotNil(t, refusal)
		assert.Equal(t, engine.CodeNotFound, refusal.Code)
	})
}

// A v1 externalId is not an idempotency key.
func TestLegacyReferencesMayRepeat(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, second := w.legacyPayment(), w.legacyPayment()
	assert.NotEqual(t, first, second)
	tx := w.transactions.rows[second]
	assert.Equal(t, "order-1", tx.Reference())
	assert.Empty(t, tx.ExternalRef)
	assert.Equal(t, "BRL", tx.Currency)
	assert.Equal(t, 1, tx.Installments)
	assert.Equal(t, start().Add(time.Hour), tx.Pix.ExpirationDate)
	assert.Equal(t, []engine.Product{{Name: "Order 1", Price: 4990, Quantity: 1}}, tx.Products)

	c, refusal := engine.CreateLegacyPayment(w.env, engine.NewLegacyPayment{Amount: 1})
	w.do(c, refusal)
	assert.Equal(t, start().Add(24*time.Hour), c.Transactions[0].Pix.ExpirationDate, "24 hours by default")
	assert.Equal(t, "Pix", c.Transactions[0].Products[0].Name)
	assert.Equal(t, "order-2", (&engine.Transaction{ExternalRef: "order-2"}).Reference())
}

func TestIntegration(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	text := func(s string) *string { return &s }
	w.apply(engine.ConfigureIntegration(w.env, nil, engine.IntegrationUpdate{WebhookURL: text("https://a.example")}))
	first := *w.integration
	assert.Equal(t, engine.Integration{ID: first.ID, WebhookURL: "https://a.example", Status: "active"}, first)
	w.apply(engine.ConfigureIntegration(w.env, &first, engine.IntegrationUpdate{PixWebhookURL: text("https://b.example")}))
	assert.Equal(t, engine.Integration{
		ID: first.ID, WebhookURL: "https://a.example", PixWebhookURL: "https://b.example", Status: "active",
	}, *w.integration)
}

func TestTokenizationRetires(t *testing.T) {
	t.Parallel()
	assert.Nil(t, engine.TokenizationEnded(time.Date(2026, time.August, 1, 2, 59, 59, 999e6, time.UTC)))
	refusal := engine.TokenizationEnded(time.Date(2026, time.August, 1, 0, 0, 0, 0, time.FixedZone("", -3*60*60)))
	require.NotNil(t, refusal)
	assert.Equal(t, "LEGACY_TOKENIZATION_RETIRED", refusal.Code)
}

func TestPaymentTokenIsTheSameEachTime(t *testing.T) {
	t.Parallel()
	first := engine.PaymentToken("public-1")
	assert.Equal(t, first, engine.PaymentToken("public-1"))
	assert.NotEqual(t, first.Token, engine.PaymentToken("public-2").Token)
	for i := range 50 {
		assert.Regexp(t, "^pgct_ok_[0-9a-f]{1,16}$", engine.PaymentToken("public-"+strconv.Itoa(i)).Token)
	}
	assert.Equal(t, &engine.Card{Token: "pgpm_ok_4242", Last4: "4242"}, engine.PaymentToken("pgpm_ok_4242"))
}
