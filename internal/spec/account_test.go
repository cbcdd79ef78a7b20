package spec_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/spec"
)

func TestNamesOfAccounts(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "z", "A", "Z", "0", "9", "shop-BR_2.eu", strings.Repeat("m", 64)} {
		require.NoError(t, spec.CheckAccountName(name), name)
	}
	require.EqualError(t, spec.CheckAccountName(strings.Repeat("m", 65)), "the name has 65 bytes: it must have 1 to 64")
	for _, name := range []string{"", "a b", "a/b", "a:b", "a@b", "a[b", "a`b", "a{b", "ä", strings.Repeat("m", 65)} {
		require.Error(t, spec.CheckAccountName(name), name)
	}
}

func TestRetryPoliciesThatBanksDoNotExecute(t *testing.T) {
	t.Parallel()
	for warnings, policies := range [][][]int{
		{nil, {1, 2, 3}, {5, 6, 7}},
		{{1, 2, 3, 4}, {8}, {2, 2}},
		{{1, 2, 3, 8}, {1, 1, 9}},
		{{1, 1, 2, 30}},
	} {
		for _, offsets := range policies {
			assert.Len(t, spec.PixRetryWarnings("retry_then_cancel", offsets), warnings, "%v", offsets)
			assert.Empty(t, spec.PixRetryWarnings("immediate_cancel", offsets))
		}
	}
}

func TestPeriodsThatBanksDoNotHave(t *testing.T) {
	t.Parallel()
	const years = 24
	has := map[string][]int{"day": {7}, "week": {1}, "month": {1, 3, 6, 12}}
	for interval, counts := range has {
		for count := 1; count <= years; count++ {
			assert.Equal(t, slices.Contains(counts, count), spec.PixPeriodWarnings(interval, count) == nil, "every %d %s", count, interval)
		}
	}
	assert.Empty(t, spec.PixPeriodWarnings("month", 0), "the default is 1")
	assert.Empty(t, spec.PixPeriodWarnings("", 5), "which is invalid")
}
