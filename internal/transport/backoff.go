package transport

import (
	"context"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter is the longest wait that the gateway can impose within a call.
const maxRetryAfter = time.Minute

// nextWait returns how long to wait before the next attempt. It returns false if
// Retry-After is too long or past the caller's deadline; the caller then decides
// whether to repeat the call.
func (c *call) nextWait(ctx context.Context) (time.Duration, bool) {
	if !c.hasRetryAfter {
		return c.exponential(), true
	}
	requested := c.result.RetryAfter
	deadline, bounded := ctx.Deadline()
	return requested, requested <= maxRetryAfter && (!bounded || time.Until(deadline) > requested)
}

// exponential returns a wait that doubles with every attempt up to the longest
// wait, reduced at random by up to half, so that callers that failed together don't
// retry together.
func (c *call) exponential() time.Duration {
	wait := c.engine.LongestWait
	if n := c.result.Attempts - 1; n < 32 && c.engine.FirstWait<<n < wait && c.engine.FirstWait<<n > 0 {
		wait = c.engine.FirstWait << n
	}
	half := float64(wait) / 2
	return time.Duration(half + half*c.engine.Jitter())
}

// retryAfter parses a Retry-After header: seconds, which may have a fraction, or
// a date. ok is false if the header is missing or invalid.
func retryAfter(header string, now time.Time) (wait time.Duration, ok bool) {
	header = strings.TrimSpace(header)
	if seconds, err := strconv.ParseFloat(header, 64); err == nil {
		if !(seconds >= 0) { // also NaN
			return 0, false
		}
		return time.Duration(min(seconds*float64(time.Second), math.MaxInt64/2)), true
	}
	date, err := http.ParseTime(header)
	if err != nil {
		return 0, false
	}
	return max(0, date.Sub(now)), true
}
