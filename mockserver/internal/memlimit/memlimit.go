// Package memlimit counts the approximate memory that all parts of a server use
// against one limit.
package memlimit

import (
	"math"
	"sync/atomic"
)

// Limit is a memory limit and how much of it is used. It is safe for concurrent
// use.
type Limit struct {
	limit int64
	used  atomic.Int64
}

// New returns a limit in bytes.
func New(limit int64) *Limit { return &Limit{limit: limit} }

// Unlimited returns a limit that is never reached.
func Unlimited() *Limit { return New(math.MaxInt64) }

// Fits reports whether n more bytes fit within the limit.
func (l *Limit) Fits(n int64) bool { return n <= l.limit-l.used.Load() }

// Add adds n bytes to the used memory; n may be negative. It does not enforce the
// limit: callers that can reject a change check [Limit.Fits] first.
func (l *Limit) Add(n int64) { l.used.Add(n) }

// Used returns how many bytes are used.
func (l *Limit) Used() int64 { return l.used.Load() }

// Part returns 1/n of the limit.
func (l *Limit) Part(n int64) int64 { return l.limit / n }
