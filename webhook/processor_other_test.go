//go:build !linux

package webhook_test

import "time"

// processorTime returns the time that one call of f takes.
func processorTime(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}
