package operations

import (
	"context"
	"time"
)

// Engine decides when the operations of an [Outbox] are worked on: it calls
// [Outbox.Work]. What happens then, and whether anything does, depends only on the
// table. So an engine may call it too often, too early or from several processes.
// Without an engine, [Outbox.Run] works on them.
type Engine[TX any] interface {
	// Wake is called in the transaction that makes an operation due.
	Wake(ctx context.Context, tx TX, id int64, kind string) error
}

// ms returns a duration in milliseconds, rounded up.
func ms(d time.Duration) int64 { return (d + time.Millisecond - 1).Milliseconds() }

func fromMS(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
