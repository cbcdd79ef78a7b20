package transport

import (
	"context"
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

// retryAfter parses a Retry-After header: seconds, which may have a fraction, a
// date, or a Unix time in seconds or milliseconds. The wait is at most a day. ok
// is false if the header is missing or invalid.
func retryAfter(header string, now time.Time) (wait time.Duration, ok bool) {
	header = strings.TrimSpace(header)
	n, err := strconv.ParseFloat(header, 64)
	if err != nil {
		date, err := http.ParseTime(header)
		if err != nil {
			return 0, false
		}
		return clampWait(date.Sub(now)), true
	}
	if !(n >= 0) { // also NaN
		return 0, false
	}
	if n >= firstEpoch*1000 {
		n /= 1000
	}
	if n >= firstEpoch {
		n -= float64(now.UnixMilli()) / 1000
	}
	return clampWait(time.Duration(min(n, longestRetryAfter.Seconds()) * float64(time.Second))), true
}

// Numbers from it on are Unix times, from the year 2001 on, and no waits of decades.
const firstEpoch = 1_000_000_000

// longestRetryAfter bounds the wait of a header that makes no sense.
const longestRetryAfter = 24 * time.Hour

func clampWait(wait time.Duration) time.Duration { return max(0, min(wait, longestRetryAfter)) }
