package histories_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// With one caller and no faults, every response equals the model's, and after
// every operation a read shows the model's state. A failing sequence is
// reduced to a short one.
//
//	go test ./histories -run TestSequencesMatchTheModel -rapid.checks=10000 -v
func TestSequencesMatchTheModel(t *testing.T) {
	t.Parallel()
	eachSetup(t, func(t *testing.T, s setup) {
		t.Helper()
		rapid.Check(t, func(rt *rapid.T) {
			sh := open(rt, s)
			states := make(map[string]state)
			do := func(in input) {
				payout := isPayout(in.Ref)
				next, want := s.dialect().step(payout, states[in.Ref], in)
				states[in.Ref] = next
				require.Equal(rt, want, sh.do(rt.Context(), in), "%v %v", in.Ref, in)
				if next.Status != "" && in.Do != "read" {
					read := input{Ref: in.Ref, Do: "read"}
					_, want = s.dialect().step(payout, next, read)
					require.Equal(rt, want, sh.do(rt.Context(), read), "a read after %v %v", in.Ref, in)
				}
			}
			steps := rapid.SliceOfN(operation(), 1, 40).Draw(rt, "operations")
			for _, in := range steps {
				if states[in.Ref].Status == "" {
					in = input{Ref: in.Ref, Do: "create"}
				}
				do(in)
			}
		})
	})
}

func operation() *rapid.Generator[input] {
	return rapid.Custom(func(t *rapid.T) input {
		ref := fmt.Sprintf("%s %d", rapid.SampledFrom([]string{"charge", "payout"}).Draw(t, "kind"), rapid.IntRange(1, 2).Draw(t, "n"))
		in := input{Ref: ref, Do: rapid.SampledFrom(operationsOf[isPayout(ref)]).Draw(t, "operation")}
		if in.Do == "refund" {
			in.Amount = rapid.SampledFrom([]int64{0, 1, 500, 989, 1989, 1990, 1991}).Draw(t, "amount")
		}
		return in
	})
}
