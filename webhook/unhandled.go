package webhook

import (
	"context"
	"log/slog"
	"time"
)

// maxMissing bounds the memory of kinds that were logged.
const maxMissing = 100

// missing logs that there is no handler, once per kind.
func (rx *Receiver) missing(ctx context.Context, family Family, kind Kind) {
	r := route{family, kind}
	rx.mu.Lock()
	_, logged := rx.unrouted[r]
	logged = logged || len(rx.unrouted) >= maxMissing
	if !logged {
		rx.unrouted[r] = struct{}{}
	}
	rx.mu.Unlock()
	if !logged {
		rx.cfg.Logger.LogAttrs(ctx, slog.LevelWarn,
			"webhook: there is no handler for this kind; its events are kept, see Counts: register a handler, or use Ignore",
			slog.String("family", string(family)), slog.String("kind", string(kind)))
	}
}

// handleSetAside handles, in Sync mode and beside the deliveries, what other processes
// set aside: those events were acknowledged, so no delivery brings them again.
// Inbox mode has its workers for that, and a memory store no other processes.
func (rx *Receiver) handleSetAside() {
	if rx.cfg.Mode != Sync || !rx.cfg.Store.Durable() {
		return
	}
	now, last := time.Now().UnixMilli(), rx.lastScan.Load()
	if d := now - last; (d >= 0 && d < rx.cfg.PollInterval.Milliseconds()) || !rx.lastScan.CompareAndSwap(last, now) || !rx.enter() {
		return
	}
	go func() {
		defer rx.running.Done()
		ctx := context.Background()
		for !rx.stopping() && !rx.runs.isPaused() {
			claims, err := rx.nextUnhandled(ctx, 1)
			if err != nil {
				rx.cfg.Logger.LogAttrs(ctx, slog.LevelError, "webhook: the unhandled events can't be read", errorAttr(err))
			}
			if len(claims) == 0 {
				return
			}
			rx.work(ctx, claims[0])
		}
	}()
}

func (rx *Receiver) nextUnhandled(ctx context.Context, limit int) (claims []*Claim, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	err = rx.guarded(ctx, "Store.NextUnhandled", func() error {
		claims, err = rx.cfg.Store.NextUnhandled(ctx, rx.handles, limit, rx.cfg.Lease)
		return err
	})
	return claims, err
}
