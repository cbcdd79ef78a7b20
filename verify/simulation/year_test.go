package simulation_test

import (
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/verify/simulation"
)

func TestMain(m *testing.M) {
	if err := simulation.SimulateDatabaseTime(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	m.Run()
}

// runYear runs a shop in a synctest bubble.
func runYear(t *testing.T, cfg simulation.YearConfig) (log []byte, counts simulation.YearCounts, err error) {
	t.Helper()
	cfg.Dir = t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		log, counts, err = simulation.RunYear(t.Context(), cfg)
	})
	return log, counts, err
}

// TestTheBooksOfAShopEqualTheGateways runs shops on package merchant with SEEDS seeds from
// SEED on, each for a year; without SEEDS one shop for two months.
func TestTheBooksOfAShopEqualTheGateways(t *testing.T) {
	t.Parallel()
	seeds, months, first := envUint(t, "SEEDS", 1), 2, envUint(t, "SEED", 1)
	if os.Getenv("SEEDS") != "" {
		months = 12
	}
	var total simulation.YearCounts
	began := time.Now()
	for seed := first; seed < first+seeds; seed++ {
		_, counts, err := runYear(t, simulation.YearConfig{Seed: seed, Months: months})
		if err != nil {
			t.Fatalf("%v\n\nTo try this seed again:\n  SEED=%d SEEDS=1 go test -count=1 -run '^TestTheBooksOfAShopEqualTheGateways$' ./simulation", err, seed)
		}
		total.Add(counts)
	}
	fmt.Printf("%d shops for %d months from seed %d: %d orders, %d requests, %d webhooks, %d facts, %d callbacks, %d refunds, %d crashes, %d faults; %.1f s each\n",
		seeds, months, first, total.Orders, total.Requests, total.Webhooks, total.Facts, total.Callbacks, total.Refunds, total.Crashes, total.Faults,
		time.Since(began).Seconds()/float64(seeds))
	for what, n := range map[string]int{"refunds": total.Refunds, "crashes": total.Crashes, "callbacks": total.Callbacks, "faults": total.Faults} {
		assert.Positive(t, n, "there were no %s: the year proves nothing about them", what)
	}
}

// TestTheBooksOfAShopAreRightWithEveryFate runs a shop with each fate for two months, with
// FULL_SIZE with SEEDS seeds from SEED on.
func TestTheBooksOfAShopAreRightWithEveryFate(t *testing.T) {
	t.Parallel()
	const months = 2
	for i, fate := range simulation.Fates() {
		// An odd seed is of one dialect, an even one of the other.
		seeds, first := uint64(1), uint64(1+i%2)
		if os.Getenv("FULL_SIZE") != "" {
			seeds, first = envUint(t, "SEEDS", 1), envUint(t, "SEED", 1)
		}
		for seed := first; seed < first+seeds; seed++ {
			t.Run(fmt.Sprintf("%s, seed %d", fate, seed), func(t *testing.T) {
				t.Parallel()
				_, counts, err := runYear(t, simulation.YearConfig{Seed: seed, Months: months, Fate: fate})
				require.NoError(t, err)
				assert.Positive(t, counts.Callbacks)
				assert.Greater(t, counts.Fate, 10, "the fate did not show: the year proves nothing about it")
				t.Log("the fate showed ", counts.Fate, " times")
			})
		}
	}
}

// Equal seeds have equal fates, which are bounded.
func TestEqualSeedsHaveEqualFates(t *testing.T) {
	t.Parallel()
	windows := make(map[string]bool)
	for _, fate := range simulation.Fates() {
		for seed := range uint64(50) {
			c := simulation.YearConfig{Seed: seed, Fate: fate}
			for month := range 12 {
				list := c.Windows(month)
				assert.Equal(t, list, c.Windows(month))
				assert.LessOrEqual(t, len(list), 12)
				for _, w := range list {
					assert.LessOrEqual(t, w.From, 20*24*time.Hour)
					assert.LessOrEqual(t, w.Length, 6*time.Hour)
					assert.GreaterOrEqual(t, w.Skew, -time.Hour)
					assert.LessOrEqual(t, w.Skew, time.Duration(0))
				}
				windows[fmt.Sprint(list)] = true
			}
		}
	}
	assert.Greater(t, len(windows), 500, "other seeds and months have other fates")
}

// TestEveryDefectOfAShopIsFound injects one defect at a time, which the comparison of a
// month must find within four months. A seed doesn't decide how goroutines alternate, so
// now and then one finds nothing, and the next one is tried.
func TestEveryDefectOfAShopIsFound(t *testing.T) {
	t.Parallel()
	for defect, want := range map[simulation.YearDefect]string{
		simulation.ShipsAtOnce:       "shipped ",
		simulation.RefundsByItself:   "were refunded",
		simulation.NeverCompares:     "CheckMonth",
		simulation.CallsBackAnyOrder: "callbacks of",
	} {
		t.Run(string(defect), func(t *testing.T) {
			t.Parallel()
			var found *simulation.DifferenceError
			for seed := uint64(1); seed <= 8 && found == nil; seed++ {
				_, _, err := runYear(t, simulation.YearConfig{Seed: seed, Months: 4, Defect: defect})
				if err != nil {
					require.ErrorAs(t, err, &found)
				}
			}
			require.NotNil(t, found, "not found")
			t.Log(found)
			assert.Contains(t, found.Error(), want)
		})
	}
}
