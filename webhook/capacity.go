package webhook

import (
	"errors"
	"math"
	"sync/atomic"
)

// deliveryPool is the capacity for deliveries of one kind. Signed and unsigned
// ones have a pool each: whoever knows the receiver's URL can fill the unsigned one.
type deliveryPool struct {
	slots  chan struct{}
	reader *reader // nil without an API
}

func newDeliveryPool(cfg *Config) deliveryPool {
	l := deliveryPool{slots: make(chan struct{}, cfg.MaxConcurrent)}
	if cfg.API != nil && cfg.Trust != UnsafeTrustBody {
		l.reader = newReader(clientAPI{client: cfg.API}, cfg.ReadBack)
	}
	return l
}

// enter takes a slot, if there is one.
func (l *deliveryPool) enter() bool {
	select {
	case l.slots <- struct{}{}:
		return true
	default:
		return false
	}
}

func (l *deliveryPool) leave() { <-l.slots }

// poolOf returns the pool of an event. What the receiver's own Reconciler
// reports is as good as signed.
func (rx *Receiver) poolOf(e *Event) *deliveryPool {
	if e.Signed || e.Source == SourceReconciler {
		return &rx.signed
	}
	return &rx.unsigned
}

// The memory of a body: it starts with firstBody, and what it needs beyond
// freeBody comes from the pool. The gateway's events are a few KiB, so however
// many large bodies strangers send, ordinary deliveries are not affected.
const (
	firstBody = 4 << 10
	freeBody  = 16 << 10
)

var errBodyMemory = errors.New("webhook: the bodies that are being received need too much memory")

// bodyPool bounds the memory of all bodies that are being received together.
type bodyPool struct {
	size int64
	used atomic.Int64
}

// bodyMemory is the size of the pool.
func bodyMemory(cfg *Config) int64 {
	if cfg.MaxBody > math.MaxInt64/int64(cfg.MaxConcurrent) {
		return math.MaxInt64
	}
	return int64(cfg.MaxConcurrent) * cfg.MaxBody
}

// resize accounts for a body that grows from one size to another, or shrinks.
func (p *bodyPool) resize(from, to int) bool {
	change := max(int64(to), freeBody) - max(int64(from), freeBody)
	if p.used.Add(change) > p.size && change > 0 {
		p.used.Add(-change)
		return false
	}
	return true
}
