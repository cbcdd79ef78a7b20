package exam_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	engine "github.com/gateway-go/gateway/internal/exam"
	"github.com/gateway-go/gateway/internal/explore"
	"github.com/gateway-go/gateway/mockserver/exam"
)

// With FULL_SIZE, two things go wrong in each schedule, which takes minutes for each life.
// SAMPLE selects the lives of which this is tried.
func TestACorrectShopPasses(t *testing.T) {
	t.Parallel()
	for i, life := range engine.Lives() {
		t.Run(life.Name, func(t *testing.T) {
			t.Parallel()
			opts := []exam.Option{exam.Lives(life.Name)}
			if !explore.Sampled(i) {
				opts = append(opts, exam.Deviations(1))
			}
			exam.Explore(t, open(""), opts...)
		})
	}
}

// Each mistake that public code made is found, in a schedule with as few deviations as
// it needs.
func TestMistakesAreFound(t *testing.T) {
	t.Parallel()
	for _, m := range []struct {
		name, life string
		claim      engine.Claim
		deviations int
		says       string // how the messages show it
	}{
		{"no_dedup", "pix", engine.ShippedOnce, 1, "shipped 2 times"},
		{"memory_dedup", "pix", engine.ShippedOnce, 1, "killed"},
		{"new_ref", "pix", engine.ChargedOnce, 1, "transactions.create"},
		{"unsigned", "forged", engine.NothingMadeUp, 0, "forged, unsigned"},
		{"swallow_errors", "pix", engine.NothingLost, 1, "transactions.get"},
		{"no_amount_check", "pix", engine.NothingMadeUp, 1, "its reference is taken"},
		{"late_overwrites", "pix", engine.NothingLost, 1, "late"},
		{"timeout_is_failure", "pix", engine.TrueAnswers, 1, "transactions.create, "},
		{"refund_repeated", "partial-refunds", engine.RefundedOnce, 1, "transactions.refund"},
		{"any_refund_is_full", "partial-refunds", engine.BooksAgree, 0, "transaction.refunded"},
		{"acks_unknown_order", "pix", engine.NothingLost, 1, "transactions.create"},
		{"check_then_act", "pix", engine.ShippedOnce, 1, "twice at once"},
		{"chargeback_ignored", "chargeback", engine.BooksAgree, 0, "transaction.chargedback"},
		{"float_cents", "pix", engine.RightCharge, 0, "19.98"},
		{"double_click", "pix", engine.ChargedOnce, 1, "transactions.create"},
	} {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			all, err := exam.Find(t, open(m.name), exam.Deviations(1), exam.Lives(m.life))
			require.NoError(t, err)
			i := slices.IndexFunc(all, func(f exam.Found) bool { return slices.Contains(f.Claims, m.claim) })
			require.GreaterOrEqual(t, i, 0, "the claim %s fails", m.claim)
			found := all[i]
			t.Log(found.Text)
			assert.Equal(t, m.deviations, found.Deviations)
			assert.Contains(t, found.Text, m.says)

			again, err := exam.FindAgain(t, open(m.name), found.Picks)
			require.NoError(t, err)
			assert.Equal(t, found.Text, again.Text, "the schedule can be repeated")
		})
	}
}

// The choices of an order's beginning keep their numbers, whether they are explored or not.
func TestAScheduleMeansTheSameWithMoreDeviations(t *testing.T) {
	t.Parallel()
	all, err := exam.Find(t, open("refund_repeated"), exam.Deviations(1), exam.Lives("partial-refunds"))
	require.NoError(t, err)
	require.NotEmpty(t, all)
	found := all[0]
	again, err := exam.FindAgain(t, open("refund_repeated"), found.Picks, exam.Deviations(3))
	require.NoError(t, err)
	assert.Equal(t, found.Text, again.Text)
}
