package webhook

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
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

// takeUp handles, in Sync mode and beside the deliveries, what other processes
// set aside: those events were acknowledged, so no delivery brings them again.
// Inbox mode has its workers for that, and a memory store no other processes.
func (rx *Receiver) takeUp() {
	if rx.cfg.Mode != Sync || !rx.cfg.Store.Durable() {
		return
	}
	now, last := time.Now().UnixMilli(), rx.looked.Load()
	if d := now - last; (d >= 0 && d < rx.cfg.PollInterval.Milliseconds()) || !rx.looked.CompareAndSwap(last, now) || !rx.enter() {
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

// errConflict is the reason of a dead letter whose id was used before.
var errConflict = errors.New("webhook: an event with this id and other content was received before")

// conflict keeps an event whose id is that of another event. Handling it as the
// first would lose it, and to handle it as a new one is for a person to decide:
// the gateway may have sent the first event again, with other content.
func (rx *Receiver) conflict(ctx context.Context, rec Record) result {
	rec.Key += " " + rec.Digest
	rec.Resource = "event/" + rec.Key // it waits for no other event
	rec.Fact, rec.Position = "", 0
	if _, err := rx.cfg.Store.PutDead(ctx, rec, reason(errConflict)); err != nil {
		return storeError(rec, err)
	}
	r := outcome(rec, OutcomeConflict)
	r.Err = errConflict
	return r
}

// digest identifies what an event says: its kind, its resource and its data,
// however they are spelled. The rest of the envelope may differ between two
// deliveries of one event.
func digest(e *Event) string {
	var env struct {
		Data jsontext.Value `json:"data"`
	}
	data := jsontext.Value(e.Raw)
	if err := jsonv2.Unmarshal(e.Raw, &env); err == nil && len(env.Data) > 0 {
		data = env.Data
	}
	if canonical := data.Clone(); canonical.Canonicalize(jsontext.AllowDuplicateNames(true)) == nil {
		data = canonical
	}
	h := sha256.New()
	for _, part := range []string{string(e.Kind), string(e.Family), e.ResourceID} {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	h.Write(data)
	return hex.EncodeToString(h.Sum(nil)[:16])
}
