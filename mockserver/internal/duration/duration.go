// Package duration parses durations for a virtual clock, in Go's syntax plus
// days.
package duration

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

// Parse parses a duration in the syntax of [time.ParseDuration], optionally
// starting with a number of 24-hour days: "40d", "1d12h", "-0.5d", "720h".
func Parse(text string) (time.Duration, error) {
	days, rest, found := strings.Cut(text, "d")
	if !found {
		d, err := time.ParseDuration(text)
		if err != nil {
			return 0, invalid(text)
		}
		return d, nil
	}
	negative := strings.HasPrefix(days, "-")
	n, err := strconv.ParseFloat(strings.TrimLeft(days, "+-"), 64)
	if err != nil || strings.ContainsAny(days, "eExXpPnNiI_") || strings.LastIndexAny(days, "+-") > 0 {
		return 0, invalid(text)
	}
	var more time.Duration
	if rest != "" {
		more, err = time.ParseDuration(rest)
		if err != nil || strings.ContainsAny(rest[:1], "+-") {
			return 0, invalid(text)
		}
	}
	if n > float64((math.MaxInt64-more)/day) {
		return 0, fmt.Errorf("%q is longer than 292 years", text)
	}
	sum := time.Duration(n*float64(day)) + more
	if negative {
		return -sum, nil
	}
	return sum, nil
}

func invalid(text string) error {
	return fmt.Errorf("%q is not a duration such as 90m, 12h or 40d", text)
}
