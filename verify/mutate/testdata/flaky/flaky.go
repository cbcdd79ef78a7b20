// Package flaky contains tests that fail without a mutant.
package flaky

// Half is reached by tests, but none of them checks its result.
func Half(n int) int { return n / 2 }
