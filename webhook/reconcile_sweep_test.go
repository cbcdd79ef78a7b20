package webhook_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
)

var disputes = []gateway.TransactionStatus{gateway.TransactionMED, gateway.TransactionInProtest, gateway.TransactionPreChargedback}

// A paid order is complete for the merchant, whose records no longer yield it. Its
// dispute, weeks later, is found by its state.
func TestADisputeOfAnOldOrderIsFound(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	gw := mockserver.Run(t, mockserver.WithDialect(mockserver.Live))
	client := gw.Client()
	rx, got := shop(t, webhook.Config{Keys: []webhook.SigningKey{{Key: gw.Secret()}}, API: client, Trust: webhook.SignatureOrReadBack})
	gw.Webhooks.Send(rx)
	var open []webhook.OpenResource // the merchant's records
	r, err := webhook.NewReconciler(rx, webhook.ReconcilerConfig{
		Open:  func(ctx context.Context) iter.Seq2[webhook.OpenResource, error] { return openOnes(open...)(ctx) },
		Sweep: disputes, RepairAfter: time.Nanosecond,
	})
	require.NoError(t, err)
	round := func(want webhook.Reconciliation) {
		t.Helper()
		sum, err := r.Once(ctx)
		require.NoError(t, err)
		assert.Equal(t, want, sum)
	}
	params := order("")
	params.Buyer.Document = &gateway.Document{Type: gateway.CPF, Number: "52998224725"}
	seen := 0
	fresh := func() []string { return got.all()[seen:] }
	var ids [2]string
	for i := range ids {
		tx, err := client.Transactions.Create(ctx, params)
		require.NoError(t, err)
		require.NoError(t, gw.Transactions.Pay(tx.ID))
		ids[i] = tx.ID
	}
	lost, won := ids[0], ids[1]
	require.NoError(t, gw.Clock.Advance(79*24*time.Hour))
	require.NoError(t, gw.Wait(ctx))
	round(webhook.Reconciliation{})
	seen = len(got.all())

	require.NoError(t, gw.Transactions.OpenDispute(lost))
	require.NoError(t, gw.Transactions.OpenDispute(won))
	round(webhook.Reconciliation{Checked: 2, Found: 2})
	assert.ElementsMatch(t, []string{"transaction.med " + lost + " med", "transaction.med " + won + " med"}, fresh())
	round(webhook.Reconciliation{}) // nothing has changed, so nothing is read, and nothing is repaired
	restarted, err := webhook.NewReconciler(rx, webhook.ReconcilerConfig{Open: openOnes(), Sweep: disputes})
	require.NoError(t, err)
	sum, err := restarted.Once(ctx)
	require.NoError(t, err)
	assert.Equal(t, webhook.Reconciliation{Checked: 2, Known: 2}, sum, "after a restart")

	// The records have the disputes now.
	open = []webhook.OpenResource{
		{Family: webhook.FamilyTransaction, ID: lost, Status: "med"}, {Family: webhook.FamilyTransaction, ID: won, Status: "med"},
	}
	require.NoError(t, gw.Clock.Advance(time.Hour))
	require.NoError(t, gw.Transactions.ContestDispute(won))
	require.NoError(t, gw.Transactions.LoseDispute(lost))
	seen = len(got.all())
	round(webhook.Reconciliation{Checked: 2, Found: 2})
	assert.ElementsMatch(t, []string{"transaction.pre_chargedback " + lost + " pre_chargedback", "transaction.in_protest " + won + " in_protest"}, fresh())

	require.NoError(t, gw.Transactions.WinDispute(won))
	require.NoError(t, gw.Clock.Advance(24*time.Hour))
	require.NoError(t, gw.Wait(ctx))
	open[0].Status, open[1].Status = "chargedback", "in_protest"
	seen = len(got.all())
	round(webhook.Reconciliation{Checked: 2, Found: 1})
	assert.Equal(t, []string{"transaction.dispute_won " + won + " paid"}, fresh(), "and no second payment")
}

// A list that can't be read is counted, and the next round tries again.
func TestASweepThatFailsIsRepeated(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t, mockserver.WithDialect(mockserver.Live))
	client := gw.Client()
	rx, got := shop(t, webhook.Config{Keys: []webhook.SigningKey{{Key: gw.Secret()}}, API: client})
	params := order("")
	params.Buyer.Document = &gateway.Document{Type: gateway.CPF, Number: "52998224725"}
	tx, err := client.Transactions.Create(t.Context(), params)
	require.NoError(t, err)
	require.NoError(t, gw.Transactions.Pay(tx.ID))
	require.NoError(t, gw.Transactions.OpenDispute(tx.ID))
	r, err := webhook.NewReconciler(rx, webhook.ReconcilerConfig{Open: openOnes(), Sweep: disputes})
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("stopped"))
	_, err = r.Once(ctx)
	require.Error(t, err)
	assert.Empty(t, got.all())
	sum, err := r.Once(t.Context())
	require.NoError(t, err)
	assert.Equal(t, webhook.Reconciliation{Checked: 1, Found: 1}, sum)
}
