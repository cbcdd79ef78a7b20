package webhook_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/webhook"
)

func TestShutdownWaitsForRunningHandlers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rx, err := webhook.New(signedConfig())
		require.NoError(t, err)
		webhook.OnTransaction(rx, webhook.TransactionPaid, func(ctx context.Context, e *webhook.TransactionEvent) error {
			wait := time.NewTimer(time.Duration(e.Data.Amount) * time.Millisecond) // 1.99 s
			defer wait.Stop()
			select {
			case <-wait.C:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
		done := make(chan string, 1)
		go func() { done <- response(rx, signed(paid("evt_1", "tx_1"))) }()
		synctest.Wait()

		over, end := make(chan error, 1), make(chan struct{})
		go func() { over <- rx.Shutdown(t.Context()); close(end) }()
		synctest.Wait()
		assert.Equal(t, `503 {"error":"unavailable"}`, response(rx, signed(paid("evt_2", "tx_2"))))
		require.NoError(t, <-over)
		assert.Equal(t, received, <-done)
	})
}

func TestShutdownReleasesUnfinishedEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := webhook.NewMemoryStore(webhook.MemoryOptions{}).For(ownAccount)
		cfg := signedConfig()
		cfg.Store = store
		rx, err := webhook.New(cfg)
		require.NoError(t, err)
		webhook.OnTransaction(rx, webhook.TransactionPaid, func(ctx context.Context, _ *webhook.TransactionEvent) error {
			<-ctx.Done()
			assert.Equal(t, webhook.ErrShutdown, context.Cause(ctx))
			return ctx.Err()
		})
		done := make(chan string, 1)
		go func() { done <- response(rx, signed(paid("evt_1", "tx_1"))) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, rx.Shutdown(ctx), context.DeadlineExceeded)
		assert.Equal(t, `503 {"error":"unavailable"}`, <-done)

		claim, entry, err := store.Claim(t.Context(), "id evt_1", time.Minute)
		require.NoError(t, err)
		require.Equal(t, webhook.StateClaimed, entry.State)
		assert.Equal(t, 1, claim.Attempt, "the attempt that was cut short is not counted")
	})
}

func TestALongHandlerKeepsItsLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := signedConfig()
		cfg.Lease, cfg.HandlerTimeout = 3*time.Second, time.Hour
		rx := receiver(t, cfg)
		calls := 0
		webhook.OnTransaction(rx, webhook.TransactionPaid, func(context.Context, *webhook.TransactionEvent) error {
			calls++
			time.Sleep(time.Minute)
			return nil
		})
		done := make(chan string, 1)
		go func() { done <- response(rx, signed(paid("evt_1", "tx_1"))) }()
		time.Sleep(30 * time.Second)
		assert.Equal(t, `503 {"error":"unavailable"}`, response(rx, signed(paid("evt_1", "tx_1"))))
		assert.Equal(t, received, <-done)
		assert.Equal(t, 1, calls)
	})
}

func TestTheHandlerTimeoutIsThirtySecondsByDefault(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rx := receiver(t, signedConfig())
		webhook.OnTransaction(rx, webhook.TransactionPaid, func(ctx context.Context, _ *webhook.TransactionEvent) error {
			<-ctx.Done()
			return ctx.Err()
		})
		began := time.Now()
		assert.Equal(t, failedNow, response(rx, signed(paid("evt_1", "tx_1"))))
		assert.Equal(t, 30*time.Second, time.Since(began))
	})
}
