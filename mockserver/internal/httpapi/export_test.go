package httpapi

import "time"

// Limiter is the limit of requests, for tests.
type Limiter struct{ limiter }

// Allow reports whether a request is within the limit.
func (l *Limiter) Allow(key string, now time.Time) bool { return l.allow(key, now) }

// Keys returns how many keys are remembered.
func (l *Limiter) Keys() int { return len(l.last) }
