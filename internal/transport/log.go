package transport

import (
	"context"
	"log/slog"
	"time"

	"github.com/gateway-go/gateway/internal/truncate"
)

// log writes one line per attempt. It logs only the attributes below: no
// headers, bodies, ids or queries.
func (c *call) log(ctx context.Context, retry bool) {
	level, message := slog.LevelDebug, "gateway: request"
	switch {
	case retry:
		level, message = slog.LevelWarn, "gateway: request failed, retrying"
	case c.outcome != responded:
		level, message = slog.LevelError, "gateway: request failed"
	}
	logger := c.engine.Logger
	if logger == nil || !logger.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 8)
	attrs = append(attrs,
		slog.String("op", c.req.Name),
		slog.String("method", c.req.Method),
		slog.String("path", c.req.Path),
		slog.Int("attempt", c.result.Attempts),
		slog.Duration("duration", time.Since(c.began)),
	)
	if c.result.Status != 0 {
		attrs = append(attrs, slog.Int("status", c.result.Status))
	}
	if id := c.result.RequestID(); id != "" {
		attrs = append(attrs, slog.String("request_id", id))
	}
	if retry {
		attrs = append(attrs, slog.Duration("wait", c.wait))
	}
	logger.LogAttrs(ctx, level, message, attrs...) //nolint:sloglint // one of the three messages above
}

// RequestID returns the trace id of the last response, at most 128 bytes of it,
// or "". A credential in the id is redacted.
func (r *Result) RequestID() string {
	if r.requestID == "" {
		r.requestID = truncate.Text(r.Secrets.Hide(r.Header.Get("X-Request-Id")), 128)
	}
	return r.requestID
}
