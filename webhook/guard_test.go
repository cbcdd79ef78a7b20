package webhook_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/webhook"
)

func TestAPanickingObserverStopsNeitherDeliveriesNorWorkers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := inbox(newDurable())
		var calls atomic.Int64
		cfg.Workers = 1
		cfg.Observe = func(context.Context, webhook.Observation) {
			calls.Add(1)
			panic("a metric without labels")
		}
		rx := receiver(t, cfg)
		var got effects
		webhook.OnOther(rx, func(_ context.Context, e *webhook.Event) error {
			got.add("%s", e.ID)
			return nil
		})
		for _, id := range []string{"a", "b"} {
			assert.Equal(t, received, response(rx, signed(paid(id, id))))
			synctest.Wait()
		}
		assert.Equal(t, []string{"a", "b"}, got.all())
		assert.Equal(t, int64(4), calls.Load())
	})
}

func TestAnObserverThatDoesNotReturnIsLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := signedConfig()
		var out bytes.Buffer
		cfg.Logger = slog.New(slog.NewTextHandler(&out, nil))
		cfg.Observe = func(context.Context, webhook.Observation) { time.Sleep(6 * time.Second) }
		assert.Equal(t, received, response(receiver(t, cfg), signed(paid("evt_1", "tx_1"))))
		synctest.Wait()
		assert.Contains(t, out.String(), `level=ERROR msg="webhook: Observe does not return" account=shop outcome=unhandled event_id=evt_1`)
	})
}

type traceKey struct{}

func TestObserveHasTheContextOfTheDelivery(t *testing.T) {
	t.Parallel()
	cfg := signedConfig()
	var seen []any
	cfg.Observe = func(ctx context.Context, _ webhook.Observation) {
		require.NoError(t, ctx.Err())
		seen = append(seen, ctx.Value(traceKey{}))
	}
	rx := receiver(t, cfg)
	ctx, hangUp := context.WithCancel(context.WithValue(t.Context(), traceKey{}, "trace 1"))
	hangUp()
	serve(rx, signed(paid("evt_1", "tx_1")).WithContext(ctx))
	assert.Equal(t, []any{"trace 1"}, seen)
}

// panickyStore panics in one method.
type panickyStore struct {
	webhook.Store

	in atomic.Value // string
}

func (s *panickyStore) Durable() bool { return true }

// For serves one account.
func (s *panickyStore) For(a gateway.Account) webhook.Store {
	s.Store = s.Store.For(a)
	return s
}

func (s *panickyStore) panicIn(method string) {
	if s.in.Load() == method {
		panic("a nil connection")
	}
}

func (s *panickyStore) Put(ctx context.Context, rec webhook.Record) (webhook.Entry, error) {
	s.panicIn("Put")
	return s.Store.Put(ctx, rec)
}

func (s *panickyStore) Next(ctx context.Context, limit int, lease time.Duration) ([]*webhook.Claim, error) {
	s.panicIn("Next")
	return s.Store.Next(ctx, limit, lease)
}

func (s *panickyStore) Extend(ctx context.Context, c *webhook.Claim, lease time.Duration) error {
	s.panicIn("Extend")
	return s.Store.Extend(ctx, c, lease)
}

func (s *panickyStore) Settle(ctx context.Context, c *webhook.Claim, d webhook.Disposition) error {
	s.panicIn("Settle")
	return s.Store.Settle(ctx, c, d)
}

func TestAPanicOfTheStoreIsAStoreError(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"Put", "Next", "Extend", "Settle"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := &panickyStore{Store: newDurable()}
				store.in.Store(method)
				cfg := inbox(store)
				cfg.HandlerTimeout = time.Hour
				rx := receiver(t, cfg)
				webhook.OnOther(rx, func(context.Context, *webhook.Event) error {
					time.Sleep(time.Minute / 2) // until the lease is extended once
					return nil
				})
				w := serve(rx, signed(paid("evt_1", "tx_1")))
				want := http.StatusOK
				if method == "Put" {
					want = http.StatusServiceUnavailable
				}
				assert.Equal(t, want, w.Code)
				time.Sleep(time.Minute)
				store.in.Store("")
				assert.Equal(t, received, response(rx, signed(paid("evt_1", "tx_1"))))
				time.Sleep(3 * time.Minute)
				assert.Equal(t, uint64(1), rx.Stats()[webhook.OutcomeHandled])
			})
		})
	}
}

func TestPanicsInOtherCallbacksAreContained(t *testing.T) {
	t.Parallel()
	t.Run("Backoff: the default is used", func(t *testing.T) {
		t.Parallel()
		cfg := signedConfig()
		cfg.Backoff = func(int) time.Duration { panic("no table for this attempt") }
		rx := receiver(t, cfg)
		webhook.OnOther(rx, func(context.Context, *webhook.Event) error { return assert.AnError })
		assert.Equal(t, failedNow, response(rx, signed(paid("evt_1", "tx_1"))))
	})
	t.Run("Now: the delivery is not acknowledged", func(t *testing.T) {
		t.Parallel()
		cfg := signedConfig()
		broken := false
		cfg.Now = func() time.Time {
			if broken {
				panic("no clock")
			}
			return time.Now()
		}
		rx := receiver(t, cfg)
		broken = true
		body := []byte(paid("evt_1", "tx_1"))
		got := rx.Receive(t.Context(), webhook.Delivery{Header: signed(string(body)).Header, Body: body})
		assert.Equal(t, http.StatusServiceUnavailable, got.Status)
		assert.Equal(t, webhook.OutcomePanicked, got.Outcome)
	})
	t.Run("Logger: there is no log", func(t *testing.T) {
		t.Parallel()
		cfg := signedConfig()
		cfg.Logger = slog.New(panickyHandler{slog.DiscardHandler})
		assert.Equal(t, received, response(receiver(t, cfg), signed(paid("evt_1", "tx_1"))))
	})
	t.Run("the transport: the event is not confirmed", func(t *testing.T) {
		t.Parallel()
		client, err := newClient(panickyTransport{})
		require.NoError(t, err)
		rx, _ := shop(t, webhook.Config{API: client})
		assert.Equal(t, notConfirmedYet, response(rx, request(paid("evt_1", "tx_1"))))
	})
}

type panickyHandler struct{ slog.Handler }

func (panickyHandler) Enabled(context.Context, slog.Level) bool { return true }

func (panickyHandler) Handle(context.Context, slog.Record) error { panic("a closed file") }

type panickyTransport struct{}

func (panickyTransport) RoundTrip(*http.Request) (*http.Response, error) { panic("a nil map") }
