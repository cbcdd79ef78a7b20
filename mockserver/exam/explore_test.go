package exam_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	engine "github.com/gateway-go/gateway/internal/exam"
	"github.com/gateway-go/gateway/mockserver/exam"
)

func TestACorrectShopPasses(t *testing.T) {
	t.Parallel()
	exam.Explore(t, open(""))
}

// Each mistake that public code made is found, in a schedule with as few deviations as
// it needs.
func TestMistakesAreFound(t *testing.T) {
	t.Parallel()
	for _, m := range []struct {
		name       string
		claim      engine.Claim
		deviations int
	}{
		{"no_dedup", engine.ShippedOnce, 1},
		{"memory_dedup", engine.ShippedOnce, 1},
		{"new_ref", engine.ChargedOnce, 1},
		{"unsigned", engine.NothingMadeUp, 0},
		{"swallow_errors", engine.NothingLost, 1},
		{"no_amount_check", engine.NothingMadeUp, 1},
		{"late_overwrites", engine.NothingLost, 1},
		{"timeout_is_failure", engine.TrueAnswers, 1},
		{"refund_repeated", engine.RefundedOnce, 1},
		{"any_refund_is_full", engine.BooksAgree, 0},
		{"acks_unknown_order", engine.NothingLost, 1},
		{"check_then_act", engine.ShippedOnce, 1},
		{"chargeback_ignored", engine.BooksAgree, 0},
		{"float_cents", engine.RightCharge, 0},
		{"double_click", engine.ChargedOnce, 1},
	} {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			found, err := exam.Find(t, open(m.name))
			require.NoError(t, err)
			t.Logf("%d schedules\n%s", found.Played, found.Text)
			assert.Contains(t, found.Claims, m.claim)
			assert.Equal(t, m.deviations, found.Deviations)

			again, err := exam.FindAgain(t, open(m.name), found.Picks)
			require.NoError(t, err)
			assert.Equal(t, found.Text, again.Text, "the schedule can be repeated")
		})
	}
}
