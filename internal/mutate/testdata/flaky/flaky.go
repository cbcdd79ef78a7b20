// Package flaky has tests that fail by themselves.
package flaky

// Half is reached by tests, none of which looks at its result.
func Half(n int) int { return n / 2 }
