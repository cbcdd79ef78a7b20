package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const boundary = "testdata/sample/sample.go Max\n- if a > b {\n+ if a >= b {"

func sample() []area {
	return []area{{"sample", []string{"testdata/sample/*.go"}, []string{"testdata/sample"}}}
}

func TestMutantsOfTheSample(t *testing.T) {
	t.Parallel()
	m, err := load(sample())
	require.NoError(t, err)
	var got []string
	for _, m := range m.mutants {
		got = append(got, m.id)
	}
	want, err := os.ReadFile("testdata/mutants.txt")
	require.NoError(t, err)
	assert.Equal(t, string(want), strings.Join(got, "\n\n")+"\n")
}

func TestAMutantIsKilledListedOrReported(t *testing.T) {
	t.Parallel()
	known := survivors{
		boundary: "equivalent: if the numbers are equal, either is the maximum",
		"testdata/sample/sample.go Max\n- return a\n+ return b":      "equivalent: it does not exist",
		"testdata/sample/sample.go Max\n- if a > b {\n+ if a <= b {": "accepted: it is killed",
	}
	var out strings.Builder
	require.EqualError(t, run(&out, sample(), known, options{match: "Max", workers: 2, patience: time.Minute}),
		"2 mutants need a test or an entry in verify/mutate/survivors.txt")
	assert.Equal(t, `in survivors.txt, but does not exist:
testdata/sample/sample.go Max
- return a
+ return b

in survivors.txt, but killed by a test:
testdata/sample/sample.go Max
- if a > b {
+ if a <= b {

sample        3 mutants tried,    2 killed,   0 survived,   1 equivalent: 100.0 %
`, out.String())

	out.Reset()
	require.Error(t, run(&out, sample(), survivors{}, options{match: "Forgotten", workers: 2, patience: time.Minute}))
	assert.Contains(t, out.String(), "survived:\ntestdata/sample/sample.go Forgotten\n- return false, errLimit\n+ return false, nil\n")
	assert.Contains(t, out.String(), "   0 killed")
}

// TestAFlakyTestKillsNoMutant has a test that fails with a mutant only once, one
// that also fails without a mutant, and one that times out only once.
func TestAFlakyTestKillsNoMutant(t *testing.T) {
	t.Parallel()
	flaky := []area{{"flaky", []string{"testdata/flaky/*.go"}, []string{"testdata/flaky"}}}
	var out strings.Builder
	require.Error(t, run(&out, flaky, survivors{}, options{match: `n \* 2`, workers: 1, patience: time.Second}))
	assert.Contains(t, out.String(), "survived:\ntestdata/flaky/flaky.go Half\n")
	assert.Contains(t, out.String(), "flaky         1 mutants tried,    0 killed,   1 survived,   0 equivalent: 0.0 %\n")
}

func TestASeedChoosesTheSameSample(t *testing.T) {
	t.Parallel()
	m, err := load(sample())
	require.NoError(t, err)
	choose := func(seed string) (ids []string) {
		o := options{seed: seed, sample: 4}
		for _, m := range o.choose(m.of(sample()[0]), survivors{boundary: "equivalent: x"}) {
			assert.NotEqual(t, boundary, m.id)
			ids = append(ids, m.id)
		}
		return ids
	}
	assert.Len(t, choose("a"), 4)
	first := choose("a")
	assert.Equal(t, first, choose("a"))
	assert.NotEqual(t, first, choose("b"))
}

func TestASurvivorNeedsAReason(t *testing.T) {
	t.Parallel()
	known, err := parseSurvivors("# a comment\n\n" + boundary + "\nequivalent: x\n")
	require.NoError(t, err)
	assert.Equal(t, survivors{boundary: "equivalent: x"}, known)
	for _, text := range []string{boundary, boundary + "\nbecause", boundary + "\nequivalent: x\naccepted: y", "x\nequivalent: y"} {
		_, err := parseSurvivors(text)
		require.Error(t, err, text)
	}
	_, err = parseSurvivors(survivorsFile)
	assert.NoError(t, err)
}
