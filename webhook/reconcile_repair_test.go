package webhook_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/webhook"
)

// books is a merchant whose handler can be made to skip its effect.
type books struct {
	rx     *webhook.Receiver
	api    *fakeAPI
	apply  func() error // nil applies
	runs   int
	ids    map[string]bool
	closed map[string]bool
}

func newBooks(t *testing.T) *books {
	t.Helper()
	b := &books{api: &fakeAPI{}, ids: map[string]bool{}, closed: map[string]bool{}}
	cfg := mixed(t, b.api)
	cfg.Logger = quiet
	b.rx = receiver(t, cfg)
	webhook.OnTransaction(b.rx, webhook.TransactionPaid, func(_ context.Context, e *webhook.TransactionEvent) error {
		b.runs++
		b.ids[e.ID] = true
		if b.apply != nil {
			return b.apply()
		}
		b.closed[e.ResourceID] = true
		return nil
	})
	b.api.setTransaction("tx_1", "paid")
	return b
}

func (b *books) reconciler(t *testing.T, cfg webhook.ReconcilerConfig) *webhook.Reconciler {
	t.Helper()
	cfg.Open = openOnes(pendingTx("tx_1")...)
	r, err := webhook.NewReconciler(b.rx, cfg)
	require.NoError(t, err)
	return r
}

func once(t *testing.T, r *webhook.Reconciler) webhook.Reconciliation {
	t.Helper()
	sum, err := r.Once(t.Context())
	require.NoError(t, err)
	return sum
}

func nothing() error { return nil }

func TestAnEventWithoutItsEffectIsRepairedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBooks(t)
		b.apply = nothing // like an unchecked UPDATE that matches no row
		assert.Equal(t, received, response(b.rx, signed(paid("evt_1", "tx_1"))))
		r := b.reconciler(t, webhook.ReconcilerConfig{})
		other := b.reconciler(t, webhook.ReconcilerConfig{}) // the reconciler of another process

		assert.Equal(t, webhook.Reconciliation{Checked: 1, Known: 1}, once(t, r))
		assert.Equal(t, webhook.Reconciliation{Checked: 1, Known: 1}, once(t, other))
		time.Sleep(15*time.Minute - time.Second)
		assert.Equal(t, webhook.Reconciliation{Checked: 1, Known: 1}, once(t, r), "the records may be behind")
		time.Sleep(time.Second)
		assert.Equal(t, webhook.Reconciliation{Checked: 1, Repaired: 1}, once(t, r))
		assert.Equal(t, 2, b.runs)
		assert.Len(t, b.ids, 2, "a handler that dedupes by event id sees a new id")

		assert.Equal(t, webhook.Reconciliation{Checked: 1, Unapplied: 1}, once(t, other), "two processes repair once")
		assert.Equal(t, webhook.Reconciliation{Checked: 1, Unapplied: 1}, once(t, r))
		assert.Equal(t, 2, b.runs)
	})
}

func TestARecordThatWasClosedMeanwhileIsNotRepaired(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBooks(t)
		assert.Equal(t, received, response(b.rx, signed(paid("evt_1", "tx_1"))))
		open := pendingTx("tx_1")
		r, err := webhook.NewReconciler(b.rx, webhook.ReconcilerConfig{
			Open: func(ctx context.Context) iter.Seq2[webhook.OpenResource, error] { return openOnes(open...)(ctx) },
		})
		require.NoError(t, err)
		assert.Equal(t, 1, once(t, r).Known)
		open = nil
		assert.Equal(t, webhook.Reconciliation{}, once(t, r))
		time.Sleep(time.Hour)
		open = pendingTx("tx_1") // reopened manually, for example
		assert.Equal(t, webhook.Reconciliation{Checked: 1, Known: 1}, once(t, r), "the time starts again")
		assert.Equal(t, 1, b.runs)
	})
}

func TestARetriedEventOrADeadLetterIsNotRepaired(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBooks(t)
		b.apply = func() error { return webhook.Permanent(errors.New("no such order")) }
		assert.Equal(t, received, response(b.rx, signed(paid("evt_1", "tx_1"))))
		r := b.reconciler(t, webhook.ReconcilerConfig{})
		for range 3 {
			assert.Equal(t, webhook.Reconciliation{Checked: 1, Known: 1}, once(t, r))
			time.Sleep(time.Hour)
		}
		assert.Equal(t, 1, b.runs, "a dead letter waits for Requeue")
	})
}

func TestRepairsCanBeSwitchedOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBooks(t)
		b.apply = nothing
		assert.Equal(t, received, response(b.rx, signed(paid("evt_1", "tx_1"))))
		r := b.reconciler(t, webhook.ReconcilerConfig{RepairAfter: -1})
		for range 3 {
			assert.Equal(t, webhook.Reconciliation{Checked: 1, Known: 1}, once(t, r))
			time.Sleep(time.Hour)
		}
		assert.Equal(t, 1, b.runs)
	})
}

func TestAnOldEventIsRepairedAlthoughLaterOnesWereHandled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBooks(t)
		b.apply = nothing
		assert.Equal(t, received, response(b.rx, signed(paid("evt_1", "tx_1"))))
		b.api.setTransaction("tx_1", "refunded", "refunded_amount", 1990)
		assert.Equal(t, received, response(b.rx, signed(txBody("evt_2", webhook.TransactionRefunded, "tx_1", "refunded"))))
		r := b.reconciler(t, webhook.ReconcilerConfig{})
		assert.Equal(t, 2, once(t, r).Known)
		time.Sleep(time.Hour)
		assert.Equal(t, webhook.Reconciliation{Checked: 1, Known: 1, Repaired: 1}, once(t, r), "the refund has no handler")
		assert.Equal(t, 2, b.runs, "not skipped as stale")
	})
}

func TestAnOperatorReplaysAResource(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	assert.Equal(t, received, response(b.rx, signed(paid("evt_1", "tx_1"))))
	r := b.reconciler(t, webhook.ReconcilerConfig{})
	for range 2 {
		sum, err := r.Replay(t.Context(), pendingTx("tx_1")[0])
		require.NoError(t, err)
		assert.Equal(t, webhook.Reconciliation{Checked: 1, Repaired: 1}, sum)
	}
	assert.Equal(t, 3, b.runs)

	b.apply = func() error { return errors.New("no database") }
	sum, err := r.Replay(t.Context(), pendingTx("tx_1")[0])
	require.ErrorContains(t, err, "no database")
	assert.Equal(t, 1, sum.Failed)
}

func TestAFailedReplayBecomesADeadLetter(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	b.apply = func() error { return errors.New("no database") }
	_, err := b.reconciler(t, webhook.ReconcilerConfig{}).Replay(t.Context(), pendingTx("tx_1")[0])
	require.ErrorContains(t, err, "no database")
	counts, err := b.rx.Counts(t.Context())
	require.NoError(t, err)
	assert.Equal(t, webhook.Counts{Dead: 1}, counts)

	b.apply = func() error { return nil }
	n, err := b.rx.RequeueAll(t.Context(), webhook.DeadLetterFilter{})
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	assert.Equal(t, 2, b.runs)
}

func TestAPausedReceiverRejectsAReplay(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	b.rx.Pause()
	_, err := b.reconciler(t, webhook.ReconcilerConfig{}).Replay(t.Context(), pendingTx("tx_1")[0])
	require.ErrorIs(t, err, webhook.ErrPaused)
	counts, err := b.rx.Counts(t.Context())
	require.NoError(t, err)
	assert.Zero(t, counts)
}
