package webhook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gateway-go/gateway"
)

// Receiver receives the gateway's deliveries and passes each event to its
// handler. Create one with [New], register handlers with [OnTransaction],
// [OnSubscription] and [OnTransfer], and mount it: it implements
// [net/http.Handler]. It is safe for concurrent use.
type Receiver struct {
	// These are pointers because fmt, when it can't call Format, prints only
	// their addresses and not the signing keys.
	cfg       *Config
	account   gateway.Account
	intake    intake
	judge     judge
	stats     stats
	runs      runs
	hungSlots chan struct{} // one place for each hung handler that has given up its slot

	mu       sync.Mutex
	routes   map[route]*handler
	around   []Middleware
	serving  bool // no more handlers may be registered
	closed   bool
	unrouted map[route]struct{} // kinds without a handler that were logged
	running  sync.WaitGroup     // deliveries and workers

	started     sync.Once
	aborted     sync.Once
	quit        chan struct{}  // closed by Shutdown: start nothing new
	abort       chan struct{}  // closed when Shutdown has no more time: end what runs
	wake        chan struct{}  // there is work in the inbox
	idleQueries chan chan bool // requests of Idle to the dispatcher
	idleAt      atomic.Int64   // when Nudge has said that nothing is due, Unix nanoseconds
	lastPurge   atomic.Int64   // when old events were last purged, Unix seconds
	setAside    setAside
	said        sync.Map // members that were reported as left out
	key         *keyWatch
}

// New returns a receiver, or an error if the configuration is invalid or can't
// keep the receiver's guarantees. It asks a durable store for the account's
// events, for up to 5 seconds, and returns [gateway.ErrAccountConflict] if they belong to
// another base URL.
func New(cfg Config) (*Receiver, error) {
	cfg.setDefaults()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	account := cfg.account()
	if err := cfg.bindStore(account); err != nil {
		return nil, err
	}
	key := &keyWatch{logger: cfg.Logger}
	rx := &Receiver{
		cfg:         &cfg,
		account:     account,
		intake:      newIntake(&cfg),
		judge:       newJudge(&cfg, key),
		key:         key,
		routes:      make(map[route]*handler),
		hungSlots:   make(chan struct{}, max(cfg.MaxHung, 0)),
		unrouted:    make(map[route]struct{}),
		quit:        make(chan struct{}),
		abort:       make(chan struct{}),
		wake:        make(chan struct{}, 1),
		idleQueries: make(chan chan bool),
	}
	if err := rx.openAccount(); err != nil {
		return nil, err
	}
	if cfg.Trust == UnsafeTrustBody {
		cfg.Logger.WarnContext(context.Background(), "webhook: UnsafeTrustBody accepts every delivery, signed or not; use it only in tests")
	}
	return rx, nil
}

// openTimeout limits how long New waits for a durable store.
const openTimeout = 5 * time.Second

// openAccount returns an error if the account's name is used for another base
// URL. Other errors may be temporary, and every delivery reports them again.
func (rx *Receiver) openAccount() error {
	if rx.account.Name == "" {
		return nil
	}
	if m, ok := rx.cfg.Store.(*memoryStore); ok {
		return m.identify(rx.account)
	}
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	err := rx.guarded(ctx, "Store.Remembers", func() error {
		_, err := rx.cfg.Store.Remembers(ctx)
		return err
	})
	if errors.Is(err, gateway.ErrAccountConflict) {
		return err
	}
	if err != nil {
		rx.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "webhook: the store can't be read yet", errorAttr(err))
	}
	return nil
}

// Account returns the account whose events the receiver handles. Its Name is ""
// if neither [gateway.WithAccount] nor Config.Account set one, and its
// Fingerprint if the receiver has no API.
func (rx *Receiver) Account() gateway.Account { return rx.account }

// enter registers a delivery or worker, unless the receiver is shut down.
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

// Shutdown stops the receiver gracefully: deliveries get 503, no handler is
// started, and running handlers may finish. If ctx ends first, it cancels
// their contexts with [ErrShutdown] as the cause, releases unfinished events
// to other processes, and returns ctx's error.
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

// Counts returns how many events in the shared store are waiting, being
// handled, dead letters or without a handler. Hung counts only this process's
// handlers.
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

// Format writes the type's name for every verb, because the fields hold the
// signing keys and package fmt prints unexported fields.
func (*Receiver) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("webhook.Receiver")) }

// Format writes the type's name for every verb.
func (*Reconciler) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("webhook.Reconciler")) }
