package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/webhook"
)

const unavailable = `503 {"error":"unavailable"}`

// hanging is a handler that hangs for events whose id begins with "hang", and
// ignores its context.
type hanging struct {
	effects

	release chan struct{}
}

func newHanging() *hanging { return &hanging{release: make(chan struct{})} }

func (h *hanging) handle(_ context.Context, e *webhook.Event) error {
	h.add("%s", e.ID)
	if e.ID[:4] == "hang" {
		<-h.release
	}
	return nil
}

func TestHungHandlersAreReportedAndReleaseTheirWorkers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := newDurable()
		cfg := inbox(shared)
		cfg.Workers = 2
		var mu sync.Mutex
		var seen []string
		cfg.Observe = func(_ context.Context, o webhook.Observation) {
			mu.Lock()
			defer mu.Unlock()
			if o.FromWorker {
				seen = append(seen, fmt.Sprintf("%s %s %v", o.Outcome, o.EventID, o.Duration))
			}
		}
		rx := receiver(t, cfg)
		h := newHanging()
		webhook.OnOther(rx, h.handle)
		for i := range 4 {
			assert.Equal(t, received, response(rx, signed(paid(fmt.Sprintf("hang_%d", i), fmt.Sprintf("tx_%d", i)))))
			synctest.Wait()
			if i%2 == 1 {
				time.Sleep(35 * time.Second) // the timeout plus the grace period
			}
		}
		synctest.Wait()
		assert.Equal(t, uint64(4), rx.Stats()[webhook.OutcomeHung])
		assert.Equal(t, received, response(rx, signed(paid("evt_other", "tx_9"))))
		assert.Equal(t, received, response(rx, signed(paid("evt_same", "tx_0"))))
		synctest.Wait()
		assert.Contains(t, h.all(), "evt_other", "other events are handled")
		assert.NotContains(t, h.all(), "evt_same", "an event of a resource that is being handled waits")

		second := receiver(t, inbox(shared))
		webhook.OnOther(second, h.handle)
		second.Start()
		time.Sleep(time.Hour)
		running := rx.Running()
		require.Len(t, running, 4)
		assert.Equal(t, "id hang_0", running[0].Key)
		assert.Equal(t, webhook.Run{
			Key: "id hang_3", EventID: "hang_3", Kind: webhook.TransactionPaid, Resource: "transaction/tx_3",
			Attempt: 1, Since: running[3].Since, Overdue: true,
		}, running[3])
		assert.Equal(t, time.Hour+35*time.Second, time.Since(running[3].Since))
		counts, err := rx.Counts(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 4, counts.Claimed, "the leases are kept")
		assert.Equal(t, 4, counts.Hung)

		close(h.release)
		time.Sleep(time.Minute)
		assert.Empty(t, rx.Running())
		assert.ElementsMatch(t, []string{"hang_0", "hang_1", "hang_2", "hang_3", "evt_other", "evt_same"}, h.all(), "each once")
		assert.Subset(t, seen, []string{"hung hang_3 35s", "handled hang_3 1h0m35s"})
	})
}

func TestTooManyHungHandlersKeepTheirWorkers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := inbox(newDurable())
		cfg.Workers, cfg.MaxHung = 2, 1
		rx := receiver(t, cfg)
		h := newHanging()
		webhook.OnOther(rx, h.handle)
		for i := range 4 {
			assert.Equal(t, received, response(rx, signed(paid(fmt.Sprintf("hang_%d", i), fmt.Sprintf("tx_%d", i)))))
		}
		time.Sleep(time.Hour)
		assert.Len(t, rx.Running(), 3, "room for one, two workers")
		assert.Equal(t, uint64(3), rx.Stats()[webhook.OutcomeHung], "all are reported")
		close(h.release)
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, uint64(4), rx.Stats()[webhook.OutcomeHandled])
		assert.Len(t, h.all(), 4)
	})
}

func TestADeliveryDoesNotWaitForAHungHandler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := signedConfig()
		cfg.MaxConcurrent = 1
		rx := receiver(t, cfg)
		h := newHanging()
		webhook.OnOther(rx, h.handle)
		began := time.Now()
		assert.Equal(t, unavailable, response(rx, signed(paid("hang_1", "tx_1"))))
		assert.Equal(t, 35*time.Second, time.Since(began))
		assert.Equal(t, received, response(rx, signed(paid("evt_2", "tx_2"))), "the slot is free")
		for range 5 {
			time.Sleep(time.Hour)
			assert.Equal(t, unavailable, response(rx, signed(paid("hang_1", "tx_1"))), "it is not started again while it runs")
		}
		close(h.release)
		synctest.Wait()
		assert.Equal(t, received, response(rx, signed(paid("hang_1", "tx_1"))))
		assert.Equal(t, []string{"hang_1", "evt_2"}, h.all())
	})
}

func TestAHandlerThatReturnsLateIsNotHung(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := signedConfig()
		cfg.HandlerTimeout = time.Second
		rx := receiver(t, cfg)
		webhook.OnOther(rx, func(ctx context.Context, _ *webhook.Event) error {
			<-ctx.Done()
			time.Sleep(900 * time.Millisecond) // a rollback
			return ctx.Err()
		})
		assert.Equal(t, failedNow, response(rx, signed(paid("evt_1", "tx_1"))))
		assert.Equal(t, map[webhook.Outcome]uint64{webhook.OutcomeFailed: 1}, rx.Stats())
	})
}

func TestAShutdownDoesNotWaitForeverForAHungHandler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := newDurable()
		rx, err := webhook.New(inbox(shared))
		require.NoError(t, err)
		h := newHanging()
		webhook.OnOther(rx, h.handle)
		response(rx, signed(paid("hang_1", "tx_1")))
		time.Sleep(time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, rx.Shutdown(ctx), context.DeadlineExceeded)
		time.Sleep(time.Hour)
		counts, err := shared.Counts(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 1, counts.Claimed, "while it runs, no other process may handle it")
		close(h.release)
		require.NoError(t, rx.Shutdown(t.Context()))
		counts, err = shared.Counts(t.Context())
		require.NoError(t, err)
		assert.Zero(t, counts.Claimed)
	})
}

func TestAHandlerCanHaveItsOwnTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rx := receiver(t, signedConfig())
		until := func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}
		webhook.OnTransaction(rx, webhook.TransactionPaid, func(ctx context.Context, _ *webhook.TransactionEvent) error {
			return until(ctx)
		}, webhook.WithTimeout(2*time.Minute))
		webhook.OnOther(rx, func(ctx context.Context, _ *webhook.Event) error { return until(ctx) })
		for body, want := range map[string]time.Duration{
			paid("evt_1", "tx_1"): 2 * time.Minute,
			txBody("evt_2", webhook.TransactionRefunded, "tx_2", "refunded"): 30 * time.Second,
		} {
			began := time.Now()
			assert.Equal(t, failedNow, response(rx, signed(body)))
			assert.Equal(t, want, time.Since(began))
		}
	})
	assert.Panics(t, func() { webhook.WithTimeout(0) })
}

func TestMiddlewareWrapsHandlersInTheOrderOfRegistration(t *testing.T) {
	t.Parallel()
	rx := receiver(t, signedConfig())
	var got effects
	trace := func(name string) webhook.Middleware {
		return func(next webhook.Handler) webhook.Handler {
			return func(ctx context.Context, e *webhook.Event) error {
				got.add("%s begins %s", name, e.Kind)
				err := next(context.WithValue(ctx, traceKey{}, name), e)
				got.add("%s ends: %v", name, err)
				return err
			}
		}
	}
	rx.Use(trace("first"))
	webhook.OnTransaction(rx, webhook.TransactionPaid, func(ctx context.Context, e *webhook.TransactionEvent) error {
		_, claimed := webhook.ClaimFromContext(ctx)
		got.add("handler of %s in %v, claimed %v", e.ID, ctx.Value(traceKey{}), claimed)
		return errors.New("no database")
	})
	rx.Use(trace("second"), trace("third"))
	assert.Equal(t, failedNow, response(rx, signed(paid("evt_1", "tx_1"))))
	assert.Equal(t, received, response(rx, signed(txBody("evt_2", webhook.TransactionRefunded, "tx_2", "refunded"))))
	assert.Equal(t, []string{
		"first begins transaction.paid", "second begins transaction.paid", "third begins transaction.paid",
		"handler of evt_1 in third, claimed true",
		"third ends: no database", "second ends: no database", "first ends: no database",
	}, got.all(), "an event without a handler does not reach it")
	assert.Panics(t, func() { rx.Use(trace("too late")) })
}

func TestMiddlewareThatPanicsOrReturnsNil(t *testing.T) {
	t.Parallel()
	rx := receiver(t, signedConfig())
	webhook.OnOther(rx, func(context.Context, *webhook.Event) error { return nil })
	rx.Use(func(webhook.Handler) webhook.Handler {
		return func(context.Context, *webhook.Event) error { panic("a nil span") }
	})
	assert.Equal(t, failedNow, response(rx, signed(paid("evt_1", "tx_1"))), "its panic is a failure")

	for _, bad := range []webhook.Middleware{nil, func(webhook.Handler) webhook.Handler { return nil }} {
		rx := receiver(t, signedConfig())
		rx.Use(bad)
		assert.Panics(t, func() { webhook.OnOther(rx, func(context.Context, *webhook.Event) error { return nil }) })
	}
}

func TestAPausedInboxStoresAndHandlesLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rx := receiver(t, inbox(newDurable()))
		h := newHanging()
		webhook.OnOther(rx, h.handle)
		response(rx, signed(paid("hang_1", "tx_1")))
		synctest.Wait()
		rx.Pause()
		assert.Equal(t, received, response(rx, signed(paid("evt_2", "tx_2"))))
		time.Sleep(10 * time.Second)
		assert.Equal(t, []string{"hang_1"}, h.all(), "no handler is started")
		idle := make(chan error, 1)
		go func() { idle <- rx.Idle(t.Context()) }()
		time.Sleep(10 * time.Second)
		assert.Empty(t, idle, "a handler is running")
		close(h.release)
		require.NoError(t, <-idle)
		time.Sleep(time.Hour)
		assert.Equal(t, []string{"hang_1"}, h.all())
		rx.Resume()
		synctest.Wait()
		assert.Equal(t, []string{"hang_1", "evt_2"}, h.all(), "at once")
	})
}

func TestAPausedReceiverInSyncModeAsksForARedelivery(t *testing.T) {
	t.Parallel()
	rx := receiver(t, signedConfig())
	var got effects
	webhook.OnOther(rx, func(_ context.Context, e *webhook.Event) error {
		got.add("%s", e.ID)
		return nil
	})
	rx.Pause()
	w := serve(rx, signed(paid("evt_1", "tx_1")))
	assert.Equal(t, unavailable, fmt.Sprintf("%d %s", w.Code, w.Body))
	assert.Equal(t, "1", w.Header().Get("Retry-After"))
	assert.Equal(t, `401 {"error":"invalid_signature"}`, response(rx, forged(paid("evt_1", "tx_1"))))
	_, err := rx.Requeue(t.Context(), "id evt_1")
	require.ErrorIs(t, err, webhook.ErrPaused)
	assert.Empty(t, got.all())
	rx.Resume()
	assert.Equal(t, received, response(rx, signed(paid("evt_1", "tx_1"))))
	assert.Equal(t, []string{"evt_1"}, got.all())
}

func TestIdleWaitsForDueEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := inbox(newDurable())
		cfg.Workers = 2
		rx := receiver(t, cfg)
		var got effects
		webhook.OnOther(rx, func(_ context.Context, e *webhook.Event) error {
			time.Sleep(time.Second)
			got.add("%s", e.ID)
			if e.ID == "evt_0" && e.Attempt == 1 {
				return errors.New("no database")
			}
			return nil
		})
		require.NoError(t, rx.Idle(t.Context()), "nothing to do")
		for i := range 10 {
			response(rx, signed(paid(fmt.Sprintf("evt_%d", i), "tx_1"))) // one after the other
			response(rx, signed(paid(fmt.Sprintf("oth_%d", i), fmt.Sprintf("tx_%d", 10+i))))
		}
		require.NoError(t, rx.Idle(t.Context()))
		assert.Len(t, got.all(), 20)
		assert.Equal(t, uint64(19), rx.Stats()[webhook.OutcomeHandled], "all of them are reported")
		counts, err := rx.Counts(t.Context())
		require.NoError(t, err)
		assert.Equal(t, webhook.Counts{Waiting: 1}, counts, "a retry that is not due yet")
		time.Sleep(time.Minute)
		require.NoError(t, rx.Idle(t.Context()))
		assert.Len(t, got.all(), 21)
	})
}

// Idle counts all handlers that return at the same moment. Otherwise it would
// return only after the next poll.
func TestIdleReturnsWithTheLastHandler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := inbox(newDurable())
		cfg.Workers, cfg.PollInterval = 8, time.Hour
		rx := receiver(t, cfg)
		webhook.OnOther(rx, func(context.Context, *webhook.Event) error {
			time.Sleep(time.Second)
			return nil
		})
		for round := range 100 {
			began := time.Now()
			for i := range cfg.Workers {
				id := fmt.Sprintf("%d_%d", round, i)
				response(rx, signed(paid("evt_"+id, "tx_"+id)))
			}
			var callers sync.WaitGroup
			for range cfg.Workers {
				callers.Go(func() { assert.NoError(t, rx.Idle(t.Context())) })
			}
			callers.Wait()
			require.Less(t, time.Since(began), 2*time.Second, "round %d", round)
		}
	})
}

func TestIdleReturnsWithTheLastHandlerInSyncMode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := signedConfig()
		cfg.PollInterval = time.Hour
		rx := receiver(t, cfg)
		webhook.OnOther(rx, func(context.Context, *webhook.Event) error {
			time.Sleep(time.Second)
			return nil
		})
		began := time.Now()
		go response(rx, signed(paid("evt_1", "tx_1")))
		synctest.Wait()
		require.NoError(t, rx.Idle(t.Context()))
		assert.Equal(t, time.Second, time.Since(began))
	})
}

// A store that schedules its own events handles them through Work.
func TestIdleReturnsWithTheLastWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newDurable()
		cfg := inbox(store)
		cfg.Workers, cfg.PollInterval = -1, time.Hour
		rx := receiver(t, cfg)
		webhook.OnOther(rx, func(context.Context, *webhook.Event) error {
			time.Sleep(time.Second)
			return nil
		})
		began := time.Now()
		response(rx, signed(paid("evt_1", "tx_1")))
		go func() {
			claim, _, err := rx.Work(t.Context(), "id evt_1")
			assert.NoError(t, err)
			assert.NotNil(t, claim)
		}()
		synctest.Wait()
		require.NoError(t, rx.Idle(t.Context()))
		assert.Equal(t, time.Second, time.Since(began))
	})
}

// In both modes Idle waits for the events that another release set aside.
func TestIdleWaitsForEventsThatAnotherReleaseSetAside(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]webhook.Mode{"Inbox": webhook.Inbox, "Sync": webhook.Sync} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				cfg := inbox(newDurable())
				cfg.Mode, cfg.PollInterval = mode, time.Hour
				var got effects
				setAside := func(rx *webhook.Receiver, n int) {
					for i := range 3 {
						id := fmt.Sprintf("%d_%d", n, i)
						assert.Equal(t, received, response(rx, signed(txBody("evt_"+id, webhook.TransactionRefunded, "tx_"+id, "refunded"))))
					}
					synctest.Wait()
				}
				oldRelease := release(t, cfg, &effects{}, webhook.TransactionPaid)
				setAside(oldRelease, 0)
				newRelease := receiver(t, cfg)
				webhook.OnTransaction(newRelease, webhook.AnyKind, func(_ context.Context, e *webhook.TransactionEvent) error {
					time.Sleep(time.Second)
					got.add("%s", e.ID)
					return nil
				})
				require.NoError(t, newRelease.Idle(t.Context()))
				assert.Len(t, got.all(), 3)
				setAside(oldRelease, 1)
				require.NoError(t, newRelease.Idle(t.Context()))
				assert.Len(t, got.all(), 6)
			})
		})
	}
}

// While the store is down, Idle waits; it looks again at every PollInterval, and
// immediately after a pause.
func TestIdleInSyncModeOutlastsAnOutageAndAPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &flakyStore{Store: newDurable()}
		cfg := signedConfig()
		cfg.Store, cfg.PollInterval = store, time.Minute
		oldRelease := release(t, cfg, &effects{}, webhook.TransactionPaid)
		for i := range 3 {
			id := fmt.Sprint(i)
			assert.Equal(t, received, response(oldRelease, signed(txBody("evt_"+id, webhook.TransactionRefunded, "tx_"+id, "refunded"))))
		}
		var got effects
		newRelease := receiver(t, cfg)
		webhook.OnTransaction(newRelease, webhook.AnyKind, func(_ context.Context, e *webhook.TransactionEvent) error {
			time.Sleep(time.Second)
			got.add("%s", e.ID)
			return nil
		})
		began := time.Now()
		store.down(true)
		time.AfterFunc(90*time.Second, func() { store.down(false) })
		time.AfterFunc(2*time.Minute+time.Second/2, newRelease.Pause) // during the first of the three
		time.AfterFunc(5*time.Minute, newRelease.Resume)
		require.NoError(t, newRelease.Idle(t.Context()))
		assert.Len(t, got.all(), 1, "paused")
		assert.Equal(t, 2*time.Minute+time.Second, time.Since(began))
		time.Sleep(5 * time.Minute)
		require.NoError(t, newRelease.Idle(t.Context()))
		assert.Len(t, got.all(), 3)
	})
}

func TestIdleEndsWithItsContextAndWithTheReceiver(t *testing.T) {
	t.Parallel()
	for _, mode := range []webhook.Mode{webhook.Sync, webhook.Inbox} {
		synctest.Test(t, func(t *testing.T) {
			cfg := inbox(newDurable())
			cfg.Mode = mode
			rx, err := webhook.New(cfg)
			require.NoError(t, err)
			h := newHanging()
			webhook.OnOther(rx, h.handle)
			go response(rx, signed(paid("hang_1", "tx_1")))
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			require.ErrorIs(t, rx.Idle(ctx), context.DeadlineExceeded)
			idle := make(chan error, 1)
			go func() { idle <- rx.Idle(t.Context()) }()
			synctest.Wait()
			go func() {
				time.Sleep(time.Second)
				close(h.release)
			}()
			require.NoError(t, rx.Shutdown(t.Context()))
			require.ErrorIs(t, <-idle, webhook.ErrShutdown)
		})
	}
}
