package exam_test

import (
	"net/http"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	goshop "github.com/gateway-go/gateway/examples/exam/goshop/shop"
	engine "github.com/gateway-go/gateway/internal/exam"
	"github.com/gateway-go/gateway/mockserver/exam"
)

// The mistakes of the shop that is an example are found in a bubble, too. It is another
// program than the one of this package, and believes the gateway only.
func TestMistakesOfTheExampleAreFound(t *testing.T) {
	t.Parallel()
	claims := map[goshop.Mistake]engine.Claim{
		goshop.NoDedup: engine.ShippedOnce, goshop.MemoryDedup: engine.ShippedOnce, goshop.NewRef: engine.ChargedOnce,
		goshop.Unsigned: engine.ShippedOnce, goshop.SwallowErrors: engine.NothingLost, goshop.NoAmountCheck: engine.NothingMadeUp,
		goshop.LateOverwrites: engine.NothingLost, goshop.TimeoutIsFailure: engine.TrueAnswers, goshop.RefundRepeated: engine.RefundedOnce,
		goshop.AnyRefundIsFull: engine.BooksAgree, goshop.AcksUnknownOrder: engine.NothingLost, goshop.CheckThenAct: engine.ShippedOnce,
		goshop.ChargebackIgnored: engine.BooksAgree, goshop.FloatCents: engine.RightCharge, goshop.DoubleClick: engine.ChargedOnce,
	}
	lives := map[goshop.Mistake]string{
		goshop.RefundRepeated: "partial-refunds", goshop.AnyRefundIsFull: "partial-refunds", goshop.ChargebackIgnored: "chargeback",
		goshop.Unsigned: "forged",
	}
	for _, mistake := range goshop.Mistakes() {
		t.Run(string(mistake), func(t *testing.T) {
			t.Parallel()
			life := lives[mistake]
			if life == "" {
				life = "pix"
			}
			all, err := exam.Find(t, func(p *exam.Process) (http.Handler, error) {
				store, err := goshop.OpenFile(filepath.Join(p.Dir(), "shop.jsonl"))
				if err != nil {
					return nil, err
				}
				p.OnExit(store.Close)
				s, err := goshop.New(store, p.Client(goshop.ClientOptions()...), p.Secret(), mistake)
				if err != nil {
					return nil, err
				}
				return s.Handler(true), nil
			}, exam.Deviations(1), exam.Lives(life))
			require.NoError(t, err)
			found := slices.ContainsFunc(all, func(f exam.Found) bool { return slices.Contains(f.Claims, claims[mistake]) })
			assert.True(t, found, "the claim %s fails: %v", claims[mistake], all)
		})
	}
}
