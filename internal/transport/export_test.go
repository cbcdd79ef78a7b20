package transport

import "time"

// RetryAfter reads the header of that name.
func RetryAfter(header string, now time.Time) (time.Duration, bool) { return retryAfter(header, now) }
