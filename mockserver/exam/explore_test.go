package exam_test

import (
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/examples/exam/goshop/shop"
	engine "github.com/gateway-go/gateway/internal/exam"
	"github.com/gateway-go/gateway/internal/explore"
	"github.com/gateway-go/gateway/mockserver/exam"
)

// With FULL_SIZE, two things go wrong in each schedule. SAMPLE selects the lives of which
// this is tried. With one, the example's own test plays them all.
func TestTwoDeviationsLoseNoMoney(t *testing.T) {
	t.Parallel()
	if os.Getenv("FULL_SIZE") == "" {
		t.Skip("FULL_SIZE is not set")
	}
	for i, life := range engine.Lives() {
		if !explore.Sampled(i) {
			continue
		}
		t.Run(life.Name, func(t *testing.T) {
			t.Parallel()
			exam.Explore(t, open(shop.NoMistake), exam.Lives(life.Name), exam.Deviations(2))
		})
	}
}

// Each mistake that public code made is found, in a schedule with as few deviations as
// it needs.
func TestMistakesAreFound(t *testing.T) {
	t.Parallel()
	for _, m := range []struct {
		mistake    shop.Mistake
		life       string
		claim      engine.Claim
		deviations int
		says       string // how the messages show it
	}{
		{shop.NoDedup, "pix", engine.ShippedOnce, 1, "shipped 2 times"},
		{shop.MemoryDedup, "pix", engine.ShippedOnce, 1, "killed"},
		{shop.NewRef, "pix", engine.ChargedOnce, 1, "transactions.create"},
		{shop.Unsigned, "forged", engine.NothingMadeUp, 0, "forged, unsigned"},
		{shop.SwallowErrors, "pix", engine.NothingLost, 1, "transactions.get"},
		{shop.NoAmountCheck, "pix", engine.NothingMadeUp, 1, "its reference is taken"},
		{shop.LateOverwrites, "pix", engine.NothingLost, 1, "late"},
		{shop.TimeoutIsFailure, "pix", engine.TrueAnswers, 1, "transactions.create, "},
		{shop.RefundRepeated, "partial-refunds", engine.RefundedOnce, 1, "transactions.refund"},
		{shop.AnyRefundIsFull, "partial-refunds", engine.BooksAgree, 0, "transaction.refunded"},
		{shop.AcksUnknownOrder, "pix", engine.NothingLost, 1, "transactions.create"},
		{shop.CheckThenAct, "pix", engine.ShippedOnce, 1, "twice at once"},
		{shop.ChargebackIgnored, "chargeback", engine.BooksAgree, 0, "transaction.chargedback"},
		{shop.FloatCents, "pix", engine.RightCharge, 0, "19.98"},
		{shop.DoubleClick, "pix", engine.ChargedOnce, 1, "transactions.create"},
	} {
		t.Run(string(m.mistake), func(t *testing.T) {
			t.Parallel()
			all, err := exam.Find(t, open(m.mistake), exam.Deviations(1), exam.Lives(m.life))
			require.NoError(t, err)
			i := slices.IndexFunc(all, func(f exam.Found) bool { return slices.Contains(f.Claims, m.claim) })
			require.GreaterOrEqual(t, i, 0, "the claim %s fails", m.claim)
			found := all[i]
			t.Log(found.Text)
			assert.Equal(t, m.deviations, found.Deviations)
			assert.Contains(t, found.Text, m.says)

			again, err := exam.FindAgain(t, open(m.mistake), found.Picks)
			require.NoError(t, err)
			assert.Equal(t, found.Text, again.Text, "the schedule can be repeated")
		})
	}
}

// The choices of an order's beginning keep their numbers, whether they are explored or not.
func TestAScheduleMeansTheSameWithMoreDeviations(t *testing.T) {
	t.Parallel()
	all, err := exam.Find(t, open(shop.RefundRepeated), exam.Deviations(1), exam.Lives("partial-refunds"))
	require.NoError(t, err)
	require.NotEmpty(t, all)
	found := all[0]
	again, err := exam.FindAgain(t, open(shop.RefundRepeated), found.Picks, exam.Deviations(3))
	require.NoError(t, err)
	assert.Equal(t, found.Text, again.Text)
}
