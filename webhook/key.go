package webhook

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/gate"
)

// keyWatch notices when the gateway rejects the API's key. A key expires without notice,
// and webhooks go on.
type keyWatch struct {
	logger   *slog.Logger
	rejected atomic.Int64 // when the gateway began to reject the key, Unix nanoseconds; 0 while it accepts it
}

// saw takes the result of a read. Any other response of the gateway itself means that it
// accepts the key.
func (w *keyWatch) saw(ctx context.Context, err error) {
	switch {
	case rejectsKey(err):
		if w.rejected.CompareAndSwap(0, time.Now().UnixNano()) {
			w.logger.LogAttrs(ctx, slog.LevelError, "webhook: the gateway rejects the key of Config.API: unsigned events get 503 until it is replaced", errorAttr(err))
		}
	case err == nil, errors.Is(err, gateway.ErrNotFound):
		if w.rejected.Swap(0) != 0 {
			w.logger.LogAttrs(ctx, slog.LevelInfo, "webhook: the gateway accepts the key of Config.API again")
		}
	}
}

// rejectsKey reports whether the gateway rejects the key, also if that is why it was not asked.
func rejectsKey(err error) bool {
	return errors.Is(err, gateway.ErrUnauthorized) || gate.RejectsKey(err)
}

// KeyRejectedSince returns when the gateway began to reject the key of Config.API, as far
// as this receiver's reads show; the zero time while it accepts it. Unsigned events then
// get 503, and the gateway delivers them again for a limited time, so alert on it.
func (rx *Receiver) KeyRejectedSince() time.Time {
	if at := rx.key.rejected.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}
