package webhook_test

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/webhook"
)

// openOnes are the open resources in a merchant's records.
func openOnes(list ...webhook.OpenResource) func(context.Context) iter.Seq2[webhook.OpenResource, error] {
	return func(context.Context) iter.Seq2[webhook.OpenResource, error] {
		return func(yield func(webhook.OpenResource, error) bool) {
			for _, o := range list {
				if !yield(o, nil) {
					return
				}
			}
		}
	}
}

func pendingTx(ids ...string) (list []webhook.OpenResource) {
	for _, id := range ids {
		list = append(list, webhook.OpenResource{Family: webhook.FamilyTransaction, ID: id, Status: "pending"})
	}
	return list
}

func reconciler(t *testing.T, rx *webhook.Receiver, list ...webhook.OpenResource) *webhook.Reconciler {
	t.Helper()
	r, err := webhook.NewReconciler(rx, webhook.ReconcilerConfig{Open: openOnes(list...)})
	require.NoError(t, err)
	return r
}

func TestTheReconcilerFindsMissedEvents(t *testing.T) {
	t.Parallel()
	api := &fakeAPI{}
	rx, got := shop(t, mixed(t, api))
	for id, status := range map[string]string{
		"tx_pending": "pending", "tx_expired": "expired", "tx_refused": "refused", "tx_canceled": "canceled", "tx_captured": "captured",
		"tx_refunded": "refunded", "tx_chargedback": "chargedback", "tx_odd": "brand_new",
	} {
		api.setTransaction(id, status)
	}
	ids := []string{"tx_pending", "tx_expired", "tx_refused", "tx_canceled", "tx_captured", "tx_refunded", "tx_chargedback", "tx_odd", "tx_gone"}
	r := reconciler(t, rx, pendingTx(ids...)...)
	found, err := r.Once(t.Context())
	require.NoError(t, err)
	assert.Equal(t, webhook.Reconciliation{Checked: 9, Missing: 1, Found: 9}, found)
	assert.ElementsMatch(t, []string{
		"transaction.expired tx_expired expired", "transaction.refused tx_refused refused", "transaction.cancelled tx_canceled canceled",
		"transaction.paid tx_captured captured", "transaction.paid tx_refunded refunded", "transaction.refunded tx_refunded refunded",
		"transaction.paid tx_chargedback chargedback", "transaction.chargedback tx_chargedback chargedback",
		"transaction.brand_new tx_odd brand_new",
	}, got.all())

	found, err = r.Once(t.Context())
	require.NoError(t, err)
	assert.Equal(t, webhook.Reconciliation{Checked: 9, Missing: 1, Known: 9}, found, "once")
	assert.Len(t, got.all(), 9)
}

func TestAnEventOfAWebhookAndTheReconcilerIsHandledOnce(t *testing.T) {
	t.Parallel()
	api := &fakeAPI{}
	rx, got := shop(t, mixed(t, api))
	api.setTransaction("tx_1", "paid")
	api.setTransaction("tx_2", "paid")
	api.setTransaction("tx_3", "refunded", "refunded_amount", 1990)
	assert.Equal(t, received, response(rx, signed(paid("evt_1", "tx_1"))))
	found, err := reconciler(t, rx, pendingTx("tx_1", "tx_2")...).Once(t.Context())
	require.NoError(t, err)
	assert.Equal(t, webhook.Reconciliation{Checked: 2, Found: 1, Known: 1}, found)
	assert.Equal(t, received, response(rx, signed(paid("evt_2", "tx_2"))), "late, but the same")

	paidBefore := webhook.OpenResource{Family: webhook.FamilyTransaction, ID: "tx_3", Status: "paid"}
	found, err = reconciler(t, rx, paidBefore).Once(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 1, found.Found)
	assert.Equal(t, received, response(rx, signed(txBody("evt_3", webhook.TransactionRefunded, "tx_3", "refunded"))))
	assert.Equal(t, []string{"transaction.paid tx_1 paid", "transaction.paid tx_2 paid", "transaction.refunded tx_3 refunded"}, got.all())
}

func TestAReconciledEventLooksLikeAnEvent(t *testing.T) {
	t.Parallel()
	api := &fakeAPI{}
	cfg := mixed(t, api)
	cfg.Logger = quiet
	rx := receiver(t, cfg)
	api.setTransaction("tx_1", "expired", "external_ref", "order-7", "currency", "BRL",
		"buyer", map[string]any{"name": "Ana", "email": "ana@example.com"},
		"products", []map[string]any{{"name": "Mug", "price": 995, "quantity": 2}})
	var got *webhook.TransactionEvent
	webhook.OnTransaction(rx, webhook.TransactionExpired, func(_ context.Context, e *webhook.TransactionEvent) error {
		got = e
		return nil
	})
	_, err := reconciler(t, rx, pendingTx("tx_1")...).Once(t.Context())
	require.NoError(t, err)
	require.NotNil(t, got)
	assert.Equal(t, webhook.SourceReconciler, got.Source)
	assert.False(t, got.Signed)
	assert.Equal(t, "order-7", got.CorrelationID)
	assert.Equal(t, int64(1990), got.Data.Amount)
	assert.Equal(t, "Ana", got.Data.Customer.Name)
	assert.Equal(t, []gateway.ProductLine{{Name: "Mug", Price: 995, Quantity: 2}}, got.Data.Products)
	assert.Equal(t, "expired", got.ConfirmedStatus)
	assert.Equal(t, "order-7", got.Confirmed.ExternalRef)
}

func TestReconciledTransfersAndSubscriptions(t *testing.T) {
	t.Parallel()
	api := &fakeAPI{}
	rx, got := shop(t, mixed(t, api))
	var open []webhook.OpenResource
	transfer := func(id, was, is string) {
		api.set("transfers/"+id, map[string]any{"id": id, "status": is, "amount": "1200"})
		open = append(open, webhook.OpenResource{Family: webhook.FamilyTransfer, ID: id, Status: was})
	}
	charge := map[string]any{"status": "paid", "amount": 100}
	subscription := func(id, was, is string, periodEnd time.Time, charges ...any) {
		api.set("subscriptions/"+id, map[string]any{
			"id": id, "status": is, "amount": 100, "transactions": charges, "metadata": map[string]any{"plan": "gold"},
			"currentPeriodStart": "2027-02-04T12:00:00.000Z", "currentPeriodEnd": "2027-03-04T12:00:00.000Z",
		})
		open = append(open, webhook.OpenResource{Family: webhook.FamilySubscription, ID: id, Status: was, PeriodEnd: periodEnd})
	}
	transfer("po_same", "pending", "pending")
	transfer("po_analysis", "pending", "in_analysis")
	transfer("po_processing", "pending", "processing")
	transfer("po_paid", "processing", "paid")
	transfer("po_error", "pending", "error")
	transfer("po_rejected", "pending", "rejected")
	transfer("po_cancelled", "pending", "cancelled")
	february := time.Date(2027, 2, 4, 12, 0, 0, 0, time.UTC)
	subscription("s_same", "active", "active", time.Time{}, charge)
	subscription("s_started", "incomplete", "active", time.Time{}, charge)
	subscription("s_renewed", "active", "active", february, charge, charge)
	subscription("s_recovered", "past_due", "active", time.Time{}, charge, charge)
	subscription("s_past_due", "active", "past_due", time.Time{}, charge)
	subscription("s_missed_all", "trialing", "canceled", time.Time{}, charge)
	subscription("s_never", "incomplete", "canceled", time.Time{})
	subscription("s_leaving", "active", "cancel_scheduled", time.Time{}, charge)
	found, err := reconciler(t, rx, open...).Once(t.Context())
	require.NoError(t, err)
	assert.Zero(t, found.Failed)
	assert.ElementsMatch(t, []string{
		"payout.in_analysis po_analysis in_analysis", "payout.processing po_processing processing", "payout.transferred po_paid paid",
		"payout.failed po_error error", "payout.rejected po_rejected rejected", "payout.canceled po_cancelled cancelled",
		"subscription.started s_started active", "subscription.renewed s_renewed active", "subscription.renewed s_recovered active",
		"subscription.past_due s_past_due past_due", "subscription.started s_missed_all canceled", "subscription.canceled s_missed_all canceled",
		"subscription.canceled s_never canceled", "subscription.updated s_leaving cancel_scheduled",
	}, got.all())
}

func TestFailedEventsAreReconciledAgain(t *testing.T) {
	t.Parallel()
	api := &fakeAPI{}
	cfg := mixed(t, api)
	cfg.Logger, cfg.Backoff = quiet, atOnce
	rx := receiver(t, cfg)
	calls := 0
	webhook.OnTransaction(rx, webhook.AnyKind, func(context.Context, *webhook.TransactionEvent) error {
		if calls++; calls == 1 {
			return errors.New("no database")
		}
		return nil
	})
	r := reconciler(t, rx, pendingTx("tx_1")...)
	api.setTransaction("tx_1", "refunded", "refunded_amount", 1)
	api.fail(500)
	for _, want := range []webhook.Reconciliation{{Checked: 1, Failed: 1}, {Checked: 1, Failed: 1}, {Checked: 1, Found: 2}, {Checked: 1, Known: 2}} {
		found, err := r.Once(t.Context())
		require.NoError(t, err)
		assert.Equal(t, want, found)
		api.fail(0)
	}
	assert.Equal(t, 3, calls, "paid failed once, then paid and refunded")
}

func TestReconcilerRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := &fakeAPI{}
		cfg := mixed(t, api)
		cfg.Logger = quiet
		rx, err := webhook.New(cfg)
		require.NoError(t, err)
		var rounds atomic.Int64
		r, err := webhook.NewReconciler(rx, webhook.ReconcilerConfig{
			Open: func(context.Context) iter.Seq2[webhook.OpenResource, error] {
				rounds.Add(1)
				return func(yield func(webhook.OpenResource, error) bool) {
					yield(webhook.OpenResource{}, errors.New("no database"))
				}
			},
		})
		require.NoError(t, err)
		done := make(chan struct{})
		go func() { r.Run(t.Context()); close(done) }()
		time.Sleep(10 * time.Hour)
		assert.InDelta(t, 60, rounds.Load(), 20)
		require.NoError(t, rx.Shutdown(t.Context()))
		<-done
	})
}

func TestAReconcilerNeedsAnAPI(t *testing.T) {
	t.Parallel()
	_, err := webhook.NewReconciler(receiver(t, signedConfig()), webhook.ReconcilerConfig{Open: openOnes()})
	require.ErrorContains(t, err, "API")
	_, err = webhook.NewReconciler(receiver(t, mixed(t, &fakeAPI{})), webhook.ReconcilerConfig{})
	require.ErrorContains(t, err, "Open")
}
