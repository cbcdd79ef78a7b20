package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/webhook"
)

// traced names every delivery and every run, as a tracer would with spans, and
// stores the names.
func traced(cfg webhook.Config, process string, out *effects) webhook.Config {
	n := 0
	name := func(ctx context.Context) string {
		s, _ := ctx.Value(traceKey{}).(string)
		return s
	}
	cfg.Begin = func(ctx context.Context, c *webhook.Claim) context.Context {
		n++
		span := fmt.Sprintf("%s%d", process, n)
		if c != nil {
			span += fmt.Sprintf("(attempt %d of %s after %s)", c.Attempt, c.EventID, c.Trace)
		}
		return context.WithValue(ctx, traceKey{}, span)
	}
	cfg.Trace = name
	cfg.Observe = func(ctx context.Context, o webhook.Observation) { out.add("%s: %s", name(ctx), o.Outcome) }
	return cfg
}

func TestARunInAnotherProcessHasTheTraceOfItsDelivery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newDurable()
		var out effects
		receives := inbox(store)
		receives.Workers = -1
		rx := receiver(t, traced(receives, "a", &out))
		response(rx, signed(paid("evt_1", "tx_1")))
		response(rx, signed(paid("evt_1", "tx_1")))

		handles := receiver(t, traced(inbox(store), "b", &out))
		webhook.OnTransaction(handles, webhook.TransactionPaid, func(ctx context.Context, e *webhook.TransactionEvent) error {
			out.add("handler in %v", ctx.Value(traceKey{}))
			if e.Attempt == 1 {
				return errors.New("no database")
			}
			return nil
		})
		handles.Start()
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, []string{
			"a1: stored", "a2: duplicate",
			"handler in b1(attempt 1 of evt_1 after a1)", "b1(attempt 1 of evt_1 after a1): failed",
			"handler in b2(attempt 2 of evt_1 after a1)", "b2(attempt 2 of evt_1 after a1): handled",
		}, out.all())
	})
}

func TestBeginIsCalledBeforeEveryDeliveryEvenIfItIsRejected(t *testing.T) {
	t.Parallel()
	var out effects
	rx := receiver(t, traced(signedConfig(), "a", &out))
	webhook.OnTransaction(rx, webhook.TransactionPaid, func(ctx context.Context, _ *webhook.TransactionEvent) error {
		out.add("handler in %v", ctx.Value(traceKey{}))
		return nil
	})
	serve(rx, httptest.NewRequest(http.MethodGet, "/", nil))
	serve(rx, request(paid("evt_1", "tx_1")))
	serve(rx, signed(paid("evt_1", "tx_1")))
	body := paid("evt_2", "tx_2")
	rx.Receive(t.Context(), webhook.Delivery{Header: signed(body).Header, Body: []byte(body)})
	assert.Equal(t, []string{
		"a1: refused", "a2: refused", "handler in a3", "a3: handled", "handler in a4", "a4: handled",
	}, out.all())
}

func TestAnObserverThatPanicsOrReturnsNilLosesNoEvent(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*webhook.Config){
		"Begin panics": func(c *webhook.Config) {
			c.Begin = func(context.Context, *webhook.Claim) context.Context { panic("x") }
		},
		"Begin returns nil": func(c *webhook.Config) {
			c.Begin = func(context.Context, *webhook.Claim) context.Context { return nil }
		},
		"Trace panics": func(c *webhook.Config) { c.Trace = func(context.Context) string { panic("x") } },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := signedConfig()
			change(&cfg)
			rx := receiver(t, cfg)
			handled := 0
			webhook.OnTransaction(rx, webhook.TransactionPaid, func(context.Context, *webhook.TransactionEvent) error {
				handled++
				return nil
			})
			assert.Equal(t, received, response(rx, signed(paid("evt_1", "tx_1"))))
			assert.Equal(t, 1, handled)
		})
	}
}

func TestAnInvalidTraceIsDropped(t *testing.T) {
	t.Parallel()
	for trace, kept := range map[string]string{
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		strings.Repeat("x", 255):                                  strings.Repeat("x", 255),
		strings.Repeat("x", 256):                                  "",
		"a\x00b":                                                  "",
		"a\nb":                                                    "",
		"é":                                                       "",
	} {
		cfg := inbox(newDurable())
		cfg.Workers = -1
		cfg.Trace = func(context.Context) string { return trace }
		response(receiver(t, cfg), signed(paid("evt_1", "tx_1")))
		claims, err := cfg.Store.Next(t.Context(), 1, time.Minute)
		require.NoError(t, err)
		require.Len(t, claims, 1)
		assert.Equal(t, kept, claims[0].Trace)
	}
}
