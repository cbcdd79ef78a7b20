package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gateway-go/gateway/mockserver/internal/duration"
)

const (
	// patience is how long a call waits, in wall time, for what it reports.
	patience = 30 * time.Second
	// maxPatience is the longest time that a call may ask for.
	maxPatience = time.Hour
)

// timeout returns how long a call waits: its parameter of this name.
func (c *call) timeout() (time.Duration, error) {
	text := c.r.URL.Query().Get("timeout")
	if text == "" {
		return patience, nil
	}
	d, err := duration.Parse(text)
	if err != nil || d < 0 || d > maxPatience {
		return 0, invalid("timeout must be a duration from 0s to 1h, such as 500ms, not %q", text)
	}
	return d, nil
}

// settle waits for deliveries, at most for the given time.
func (c *call) settle(limit time.Duration, wait func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(c.r.Context(), limit)
	defer cancel()
	err := wait(ctx)
	if errors.Is(err, context.DeadlineExceeded) && c.r.Context().Err() == nil {
		return &RefusedError{http.StatusConflict, "STILL_DELIVERING", fmt.Sprintf(
			"webhooks are still being delivered after %s; GET /__mock/deliveries?status=pending lists them", limit)}
	}
	return err
}
