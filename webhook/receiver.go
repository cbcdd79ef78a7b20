package webhook

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Receiver receives the gateway's deliveries and has each event handled,
// exactly once as far as its handlers' effects allow it. Make one with [New],
// register the handlers with [OnTransaction] and its kind, and mount it: it is
// an [net/http.Handler]. It is safe for concurrent use.
type Receiver struct {
	// Pointers: fmt prints only their addresses if it can't call Format, and
	// not the signing keys behind them.
	cfg       *Config
	verifier  *Verifier
	signed    deliveryPool
	unsigned  deliveryPool
	bodies    bodyPool
	stats     stats
	runs      runs
	hungSlots chan struct{} // a place for every handler that hangs without a slot

	mu       sync.Mutex
	routes   map[route]*handler
	around   []Middleware
	serving  bool // no handler is registered from here on
	closed   bool
	unrouted map[route]struct{} // kinds without a handler that were logged
	running  sync.WaitGroup     // deliveries and workers

	started     sync.Once
	aborted     sync.Once
	quit        chan struct{}  // closed by Shutdown: start nothing new
	abort       chan struct{}  // closed when Shutdown has no more time: end what runs
	wake        chan struct{}  // there is work in the inbox
	idleQueries chan chan bool // requests of Idle to the dispatcher
	lastPurge   atomic.Int64   // when old events were last purged, Unix seconds
	lastScan    atomic.Int64   // when unhandled events were last looked for, Unix milliseconds
}

// New returns a receiver, or an error that says which guarantee the
// configuration can't keep.
func New(cfg Config) (*Receiver, error) {
	cfg.setDefaults()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	rx := &Receiver{
		cfg:         &cfg,
		verifier:    &Verifier{Keys: cfg.Keys, Headers: cfg.Headers, Tolerance: cfg.Tolerance, Now: cfg.Now},
		bodies:      bodyPool{size: bodyMemory(&cfg)},
		routes:      make(map[route]*handler),
		hungSlots:   make(chan struct{}, max(cfg.MaxHung, 0)),
		unrouted:    make(map[route]struct{}),
		quit:        make(chan struct{}),
		abort:       make(chan struct{}),
		wake:        make(chan struct{}, 1),
		idleQueries: make(chan chan bool),
	}
	rx.signed, rx.unsigned = newDeliveryPool(&cfg), newDeliveryPool(&cfg)
	if cfg.Trust == UnsafeTrustBody {
		cfg.Logger.WarnContext(context.Background(), "webhook: every delivery is believed, signed or not: UnsafeTrustBody is for tests")
	}
	return rx, nil
}

// enter counts a delivery or worker in, unless the receiver is shut down.
func (rx *Receiver) enter() bool {
	rx.mu.Lock()
	defer rx.mu.Unlock()
	if rx.closed {
		return false
	}
	rx.serving = true
	rx.running.Add(1)
	return true
}

// Shutdown stops the receiver gracefully: deliveries get 503, nothing new is
// begun, and handlers that run may finish. When ctx ends first their contexts
// end too, with [ErrShutdown] as the cause; events that were not finished are
// released for another process, and ctx's error is returned.
func (rx *Receiver) Shutdown(ctx context.Context) error {
	rx.mu.Lock()
	if !rx.closed {
		rx.closed = true
		close(rx.quit)
	}
	rx.mu.Unlock()

	done := make(chan struct{})
	go func() {
		rx.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		rx.aborted.Do(func() { close(rx.abort) })
		rx.logRunning(ctx)
		return ctx.Err()
	}
}

// Counts returns how many events wait, are being handled, are dead letters, and
// have no handler, in the store that the processes share. Hung is this
// process's own.
func (rx *Receiver) Counts(ctx context.Context) (Counts, error) {
	counts, err := rx.cfg.Store.Counts(ctx)
	for _, run := range rx.Running() {
		if run.Overdue {
			counts.Hung++
		}
	}
	return counts, err
}

const purgeEvery = time.Hour

// purge periodically purges old events from the store, in the background.
func (rx *Receiver) purge(ctx context.Context) {
	now, last := time.Now().Unix(), rx.lastPurge.Load()
	if now-last < int64(purgeEvery/time.Second) || !rx.lastPurge.CompareAndSwap(last, now) || !rx.enter() {
		return
	}
	ctx = context.WithoutCancel(ctx)
	go func() {
		defer rx.running.Done()
		ctx, cancel := context.WithTimeout(ctx, storeTimeout)
		defer cancel()
		var n Purged
		err := rx.guarded(ctx, "Store.Purge", func() (err error) {
			n, err = rx.cfg.Store.Purge(ctx)
			return err
		})
		if err != nil {
			rx.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "webhook: old events could not be purged", errorAttr(err))
		}
		if n.Unhandled > 0 {
			rx.cfg.Logger.LogAttrs(ctx, slog.LevelError, "webhook: events were deleted that no process had a handler for",
				slog.Int("events", n.Unhandled))
		}
	}()
}

// Format writes the type's name, whatever the verb: the receiver's fields hold
// the signing keys, and package fmt shows unexported fields as they are.
func (*Receiver) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("webhook.Receiver")) }

// Format writes the type's name, whatever the verb.
func (*Reconciler) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("webhook.Reconciler")) }
