package webhook_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
)

// unsure is a merchant that has only the references of its orders.
type unsure struct {
	rx         *webhook.Receiver
	got        *effects
	identified map[string]string // id by reference
	absent     []string
	broken     error // what Identified returns
}

func newUnsure(t *testing.T, gw *mockserver.Server) *unsure {
	t.Helper()
	u := &unsure{identified: map[string]string{}}
	u.rx, u.got = shop(t, webhook.Config{
		Keys: []webhook.SigningKey{{Key: gw.Secret()}}, API: gw.Client(), Now: gw.Clock.Now,
	})
	return u
}

func (u *unsure) round(t *testing.T, cfg webhook.ReconcilerConfig, open ...webhook.OpenResource) webhook.Reconciliation {
	t.Helper()
	cfg.Open = openOnes(open...)
	cfg.Identified = func(_ context.Context, o webhook.OpenResource) error {
		u.identified[o.ExternalRef] = o.ID
		return u.broken
	}
	cfg.Absent = func(_ context.Context, o webhook.OpenResource) error {
		u.absent = append(u.absent, o.ExternalRef)
		return nil
	}
	r, err := webhook.NewReconciler(u.rx, cfg)
	require.NoError(t, err)
	sum, err := r.Once(t.Context())
	require.NoError(t, err)
	return sum
}

// TestRecordsThatTheAPIDoesNotHaveAreLogged: Run does not return the counts.
func TestRecordsThatTheAPIDoesNotHaveAreLogged(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	var log strings.Builder
	rx := receiver(t, webhook.Config{
		Keys: []webhook.SigningKey{{Key: gw.Secret()}}, API: gw.Client(), Now: gw.Clock.Now, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	unsent := sent(gw, webhook.FamilyTransaction, "order-1")
	require.NoError(t, gw.Clock.Advance(time.Hour))
	for _, tc := range []struct {
		open webhook.OpenResource
		says string
	}{
		{webhook.OpenResource{Family: webhook.FamilyTransaction, ID: "tx_elsewhere"}, "no resource with the id in the records"},
		{unsent, "there is no Absent function"},
	} {
		log.Reset()
		sum, err := reconciler(t, rx, tc.open).Once(t.Context())
		require.NoError(t, err)
		assert.Equal(t, webhook.Reconciliation{Checked: 1, Missing: 1}, sum)
		assert.Contains(t, log.String(), tc.says)
		assert.Contains(t, log.String(), "family=transaction")
		assert.Contains(t, log.String(), cmp.Or(tc.open.ID, "external_ref="+tc.open.ExternalRef))
	}
}

func sent(gw *mockserver.Server, family webhook.Family, ref string) webhook.OpenResource {
	return webhook.OpenResource{Family: family, ExternalRef: ref, Since: gw.Clock.Now()}
}

func charged(ref string) gateway.TransactionParams {
	p := order("")
	p.ExternalRef = ref
	return p
}

func TestACreateOfUnknownOutcomeIsFoundByItsReference(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // the client waits between its attempts
		gw := mockserver.Run(t)
		u := newUnsure(t, gw)
		open := []webhook.OpenResource{sent(gw, webhook.FamilyTransaction, "order-1"), sent(gw, webhook.FamilyTransfer, "payout-1")}
		require.NoError(t, gw.Faults.Add(mockserver.Status(502).Applied()))
		_, err := gw.Client().Transactions.Create(t.Context(), charged("order-1"))
		require.ErrorIs(t, err, gateway.ErrOutcomeUnknown)
		_, err = gw.Client().Transfers.Create(t.Context(), gateway.TransferParams{
			PixKeyType: gateway.PixKeyEmail, PixKeyValue: "ana@example.com", Amount: 5000, ExternalRef: "payout-1",
		})
		require.ErrorIs(t, err, gateway.ErrOutcomeUnknown)
		gw.Faults.Clear()

		assert.Equal(t, webhook.Reconciliation{Checked: 2}, u.round(t, webhook.ReconcilerConfig{}, open...))
		require.Len(t, u.identified, 2)
		assert.Empty(t, u.got.all(), "both are pending, so there are no events")

		require.NoError(t, gw.Transactions.Pay(u.identified["order-1"]))
		require.NoError(t, gw.Transfers.Process(u.identified["payout-1"]))
		require.NoError(t, gw.Transfers.Settle(u.identified["payout-1"]))
		assert.Equal(t, webhook.Reconciliation{Checked: 2, Found: 2}, u.round(t, webhook.ReconcilerConfig{}, open...))
		assert.ElementsMatch(t, []string{
			"transaction.paid " + u.identified["order-1"] + " paid", "payout.transferred " + u.identified["payout-1"] + " paid",
		}, u.got.all())
		assert.Empty(t, u.absent)
	})
}

func TestAReferenceIsAbsentOnlyAfterTheMinimumAge(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	u := newUnsure(t, gw)
	_, err := gw.Client().Transactions.Create(t.Context(), charged("order-0"))
	require.NoError(t, err)
	open := []webhook.OpenResource{sent(gw, webhook.FamilyTransaction, "order-1"), sent(gw, webhook.FamilyTransfer, "payout-1")}

	require.NoError(t, gw.Clock.Advance(15*time.Minute-time.Second))
	assert.Equal(t, webhook.Reconciliation{Checked: 2, Undecided: 2}, u.round(t, webhook.ReconcilerConfig{}, open...))
	assert.Empty(t, u.absent, "a late first attempt may still arrive")

	require.NoError(t, gw.Clock.Advance(time.Second))
	assert.Equal(t, webhook.Reconciliation{Checked: 2, Missing: 2}, u.round(t, webhook.ReconcilerConfig{}, open...))
	assert.ElementsMatch(t, []string{"order-1", "payout-1"}, u.absent)

	_, err = gw.Client().Transactions.Create(t.Context(), charged("order-1")) // the create was not carried out
	require.NoError(t, err)
	assert.Equal(t, webhook.Reconciliation{Checked: 1}, u.round(t, webhook.ReconcilerConfig{}, open[0]))
	assert.Contains(t, u.identified, "order-1")
}

func TestAbsentIsCalledInTheOrderOfOpen(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	u := newUnsure(t, gw)
	var open []webhook.OpenResource
	var want []string
	for i := range 30 {
		family := webhook.FamilyTransaction
		if i >= 15 {
			family = webhook.FamilyTransfer
		}
		open = append(open, sent(gw, family, fmt.Sprintf("order-%d", i)))
		want = append(want, open[i].ExternalRef)
	}
	require.NoError(t, gw.Clock.Advance(time.Hour))
	sum := u.round(t, webhook.ReconcilerConfig{}, append(open, open[3])...)
	assert.Equal(t, want, u.absent, "a reference that is yielded twice is reported once")
	assert.Equal(t, 30, sum.Missing)
}

func TestAnIncompleteSearchCallsNothingAbsent(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	u := newUnsure(t, gw)
	first, err := gw.Client().Transactions.Create(t.Context(), charged("order-0"))
	require.NoError(t, err)
	open := []webhook.OpenResource{sent(gw, webhook.FamilyTransaction, "order-0"), sent(gw, webhook.FamilyTransaction, "order-none")}
	for range 100 {
		_, err := gw.Client().Transactions.Create(t.Context(), order(""))
		require.NoError(t, err)
	}
	require.NoError(t, gw.Clock.Advance(time.Hour-time.Second))

	sum := u.round(t, webhook.ReconcilerConfig{SearchPages: 1}, open...)
	assert.Equal(t, webhook.Reconciliation{Checked: 2, Undecided: 2}, sum)
	sum = u.round(t, webhook.ReconcilerConfig{SearchPages: 2}, open...)
	assert.Equal(t, webhook.Reconciliation{Checked: 2, Missing: 1}, sum)
	assert.Equal(t, map[string]string{"order-0": first.ID}, u.identified)
	assert.Equal(t, []string{"order-none"}, u.absent)
}

func TestAFailedSearchCallsNothingAbsent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gw := mockserver.Run(t)
		u := newUnsure(t, gw)
		open := []webhook.OpenResource{sent(gw, webhook.FamilyTransaction, "order-1"), sent(gw, webhook.FamilyTransfer, "payout-1")}
		require.NoError(t, gw.Clock.Advance(time.Hour))
		require.NoError(t, gw.Faults.Add(mockserver.Status(503)))
		assert.Equal(t, webhook.Reconciliation{Checked: 2, Failed: 2}, u.round(t, webhook.ReconcilerConfig{}, open...))
		assert.Empty(t, u.absent)
	})
}

func TestReferencesThatCannotBeSearchedFail(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	u := newUnsure(t, gw)
	sum := u.round(t, webhook.ReconcilerConfig{},
		sent(gw, webhook.FamilySubscription, "club-1"),                                  // no list shows an idempotency key
		webhook.OpenResource{Family: webhook.FamilyTransaction, ExternalRef: "order-1"}, // no Since
		webhook.OpenResource{Family: webhook.FamilyTransaction},
		sent(gw, "dispute", "d-1"))
	assert.Equal(t, webhook.Reconciliation{Checked: 4, Failed: 4}, sum)
	assert.Empty(t, u.absent)
}

func TestAnIDThatWasNotStoredIsIdentifiedAgain(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	u := newUnsure(t, gw)
	open := sent(gw, webhook.FamilyTransaction, "order-1")
	tx, err := gw.Client().Transactions.Create(t.Context(), charged("order-1"))
	require.NoError(t, err)
	require.NoError(t, gw.Transactions.Pay(tx.ID))

	u.broken = errors.New("no database")
	assert.Equal(t, webhook.Reconciliation{Checked: 1, Failed: 1}, u.round(t, webhook.ReconcilerConfig{}, open))
	assert.Empty(t, u.got.all(), "the handler could not match the reference")
	u.broken = nil
	assert.Equal(t, webhook.Reconciliation{Checked: 1, Found: 1}, u.round(t, webhook.ReconcilerConfig{}, open))
}

// calling counts the concurrent requests, each of which takes some time.
type calling struct {
	http.RoundTripper

	requests gauge
}

func (c *calling) RoundTrip(r *http.Request) (*http.Response, error) {
	c.requests.add(1)
	defer c.requests.add(-1)
	time.Sleep(time.Second)
	return c.RoundTripper.RoundTrip(r)
}

func TestConcurrentLimitsTheCallsOfARound(t *testing.T) {
	t.Parallel()
	for _, concurrent := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			gw := mockserver.Run(t)
			calls := &calling{RoundTripper: gw.Transport()}
			rx, _ := shop(t, webhook.Config{
				API: gw.Client(gateway.WithHTTPClient(&http.Client{Transport: calls})), Now: gw.Clock.Now,
			})
			open := []webhook.OpenResource{sent(gw, webhook.FamilyTransaction, "order-1"), sent(gw, webhook.FamilyTransfer, "payout-1")}
			for range 4 {
				tx, err := gw.Client().Transactions.Create(t.Context(), order(""))
				require.NoError(t, err)
				open = append(open, pendingTx(tx.ID)...)
			}
			r, err := webhook.NewReconciler(rx, webhook.ReconcilerConfig{Open: openOnes(open...), Concurrent: concurrent})
			require.NoError(t, err)
			sum, err := r.Once(t.Context())
			require.NoError(t, err)
			assert.Equal(t, 6, sum.Checked)
			assert.Equal(t, concurrent, calls.requests.maximum())
		})
	}
}
