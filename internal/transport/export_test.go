package transport

import "time"

// RetryAfter parses a Retry-After header.
func RetryAfter(header string, now time.Time) (time.Duration, bool) { return retryAfter(header, now) }
