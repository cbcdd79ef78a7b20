// Package room counts the approximate memory that the parts of a server use,
// against one limit.
package room

import (
	"math"
	"sync/atomic"
)

// Room is a memory limit and how much of it is used. It is safe for concurrent
// use.
type Room struct {
	limit int64
	used  atomic.Int64
}

// New returns a room with a limit in bytes.
func New(limit int64) *Room { return &Room{limit: limit} }

// Unlimited returns a room without a limit.
func Unlimited() *Room { return New(math.MaxInt64) }

// Fits reports whether n more bytes fit within the limit.
func (r *Room) Fits(n int64) bool { return n <= r.limit-r.used.Load() }

// Add counts n more bytes as used, or -n fewer if n is negative. It does not
// enforce the limit: callers that can reject a change check [Room.Fits] first.
func (r *Room) Add(n int64) { r.used.Add(n) }

// Used returns how many bytes are used.
func (r *Room) Used() int64 { return r.used.Load() }

// Part returns 1/n of the limit.
func (r *Room) Part(n int64) int64 { return r.limit / n }
