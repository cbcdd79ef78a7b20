// Package room counts the memory that a server's parts take together, about,
// against one limit.
package room

import (
	"math"
	"sync/atomic"
)

// Room is a limit and what is taken of it. It is safe for concurrent use.
type Room struct {
	limit int64
	used  atomic.Int64
}

// New returns a room of so many bytes.
func New(limit int64) *Room { return &Room{limit: limit} }

// Endless returns a room that nothing fills.
func Endless() *Room { return New(math.MaxInt64) }

// Fits reports whether n more bytes keep the limit.
func (r *Room) Fits(n int64) bool { return n <= r.limit-r.used.Load() }

// Add takes n bytes, or gives them back where n is negative. It takes them also
// beyond the limit: whoever may be refused asks [Room.Fits] first.
func (r *Room) Add(n int64) { r.used.Add(n) }

// Used returns how many bytes are taken.
func (r *Room) Used() int64 { return r.used.Load() }

// Part returns what one of n equal parts of the limit is.
func (r *Room) Part(n int64) int64 { return r.limit / n }
