package duration_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/mockserver/internal/duration"
)

func TestDurationsMayHaveDays(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"40d":         40 * 24 * time.Hour,
		"1d12h":       36 * time.Hour,
		"0.5d":        12 * time.Hour,
		"-1d1h":       -25 * time.Hour,
		"+2d":         48 * time.Hour,
		"1d0.5s":      24*time.Hour + 500*time.Millisecond,
		"720h":        720 * time.Hour,
		"90m":         90 * time.Minute,
		"0":           0,
		"0d":          0,
		"100000d1ns":  100000*24*time.Hour + 1,
		"106751d":     106751 * 24 * time.Hour,
		"36500d23h1s": 36500*24*time.Hour + 23*time.Hour + time.Second,
	} {
		got, err := duration.Parse(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{
		"", "d", "1", "1dd", "1h2d", "1d2", "1d-2h", "1d+2h", "--1d", "1e3d", "0x1d", "infd", "nand", "tomorrow", "1 d",
	} {
		_, err := duration.Parse(text)
		require.ErrorContains(t, err, "is not a duration such as 90m, 12h or 40d", text)
	}
	_, err := duration.Parse("200000d")
	require.ErrorContains(t, err, "292 years")
}
