package explore_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/explore"
)

// TestEverySequenceOfChoicesIsRunOnce has a first choice that determines which
// other choices exist.
func TestEverySequenceOfChoicesIsRunOnce(t *testing.T) {
	t.Parallel()
	var tree explore.Tree
	var seen [][]int
	for run := tree.Next(); run != nil; run = tree.Next() {
		if run.Choose(3) == 1 && run.Choose(2) == 1 {
			run.Choose(1)
		}
		seen = append(seen, run.Picks())
	}
	assert.Equal(t, [][]int{{0}, {1, 0}, {1, 1, 0}, {2}}, seen)
	assert.Equal(t, len(seen), tree.Runs())

	var plain explore.Tree
	assert.NotNil(t, plain.Next(), "a test without choices runs once")
	assert.Nil(t, plain.Next())
}

// Choices that the failure does not need are reset to the default.
func TestACounterExampleIsMinimized(t *testing.T) {
	t.Parallel()
	fails := func(r *explore.Run) bool {
		first, second := r.Choose(4), r.Choose(4)
		if second == 0 {
			return false
		}
		return r.Choose(9) >= 5 && first >= 0
	}
	assert.Equal(t, []int{0, 2, 7}, explore.Minimize([]int{3, 2, 7}, fails))
}

// Reset needs as few runs as there are deviations.
func TestChoicesAreResetOneByOne(t *testing.T) {
	t.Parallel()
	runs := 0
	picks := explore.Reset([]int{0, 3, 0, 2, 1, 0}, func(r *explore.Run) bool {
		runs++
		r.Choose(4)
		a, _, b := r.Choose(4), r.Choose(4), r.Choose(4)
		r.Choose(2)
		return a > 0 && b > 1
	})
	assert.Equal(t, []int{0, 3, 0, 2}, picks)
	assert.Equal(t, 3, runs)
}

// A test that is not deterministic is reported rather than explored in part.
func TestATestThatIsNotDeterministicIsReported(t *testing.T) {
	t.Parallel()
	var tree explore.Tree
	tree.Next().Choose(2)
	run := tree.Next()
	assert.PanicsWithValue(t, "explore: the test is not deterministic: choice 1 had 2 options and now has 3", func() { run.Choose(3) })
}

// What a choice is about belongs to it, even if the number of options is the same.
func TestTheErrorPathNamesBothSequences(t *testing.T) {
	t.Parallel()
	var tree explore.Tree
	first := tree.Next()
	for _, what := range []string{"create", "read"} {
		_, err := first.ChooseOf(what, 2)
		require.NoError(t, err)
	}
	require.NoError(t, first.End())

	again := first.Again()
	_, err := again.ChooseOf("create", 2)
	require.NoError(t, err)
	_, err = again.ChooseOf("delete", 2)
	assert.Equal(t, &explore.NotDeterministicError{At: 2, Same: []string{"create"}, Before: "read", Now: "delete", BeforeOptions: 2, NowOptions: 2}, err)

	short := first.Again()
	_, err = short.ChooseOf("create", 2)
	require.NoError(t, err)
	require.EqualError(t, short.End(), "explore: the test is not deterministic: choice 2 had 2 options and is not made any more")

	lenient := explore.Replay([]int{0, 1})
	require.NoError(t, lenient.End(), "a replay may make fewer choices")
}
