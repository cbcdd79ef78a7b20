package jsonread_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/gateway-go/gateway/internal/jsonread"
)

func TestIntegersAreReadExactlyOrNotAtAll(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"0": 0, "-0": 0, "0.0": 0, "0e5": 0, "1000": 1000, "-1000": -1000, "1000.0": 1000, "1e3": 1000, "1E+3": 1000,
		"1.2e3": 1200, "1200e-2": 12, "1000.00": 1000, "-12.50e1": -125, "9007199254740991.0": 1<<53 - 1,
		"9223372036854775807": math.MaxInt64, "-9223372036854775808": math.MinInt64,
		"0." + strings.Repeat("0", 30) + "1e31": 1,
	} {
		got, ok := jsonread.Integer(text)
		assert.True(t, ok, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{
		"", "-", ".", "1.", ".5", "10.5", "1e-1", "1000.00000000000000000001", "9223372036854775808", "9007199254740992.0", "9007199254740993.0", "1e19", "1e999999999999999999999",
		"1e9223372036854775807", "10e9223372036854775807", "1.5e-9223372036854775808", "1_000", "1_000.0", "0x10", "0x1p4", "Inf", "NaN",
		"1,000", " 1", "1 ", "1.0 ", "--1.0", "1e", "1e1.0", "1.0.0", "ten",
	} {
		_, ok := jsonread.Integer(text)
		assert.False(t, ok, text)
	}
}
