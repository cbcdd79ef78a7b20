// Package room counts the approximate memory of a server's parts against one
// limit.
package room

import (
	"math"
	"sync/atomic"
)

// Room is a memory limit and its use. It is safe for concurrent use.
type Room struct {
	limit int64
	used  atomic.Int64
}

// New returns a room with a limit in bytes.
func New(limit int64) *Room { return &Room{limit: limit} }

// Endless returns a room without a limit.
func Endless() *Room { return New(math.MaxInt64) }

// Fits reports whether n more bytes fit within the limit.
func (r *Room) Fits(n int64) bool { return n <= r.limit-r.used.Load() }

// Add takes n bytes, or releases them if n is negative, even beyond the limit:
// callers that can be rejected check [Room.Fits] first.
func (r *Room) Add(n int64) { r.used.Add(n) }

// Used returns how many bytes are taken.
func (r *Room) Used() int64 { return r.used.Load() }

// Part returns the size of one of n equal parts of the limit.
func (r *Room) Part(n int64) int64 { return r.limit / n }
