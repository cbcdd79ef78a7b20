package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/webhook"
)

// remote is a store whose calls take as long as those of a database: a claim 5 ms,
// whatever its size, and an outcome 1 ms.
type remote struct {
	durable

	state *remoteState
}

type remoteState struct {
	claims, released atomic.Int64
	crashed          chan struct{} // closed when the process has crashed: no call returns
}

func newRemote(shared durable) remote {
	return remote{shared, &remoteState{crashed: make(chan struct{})}}
}

func (s remote) For(a gateway.Account) webhook.Store {
	return remote{durable{Store: s.Store.For(a)}, s.state}
}

func (s remote) wait(d time.Duration) error {
	time.Sleep(d)
	select {
	case <-s.state.crashed:
		return errors.New("the process has crashed")
	default:
		return nil
	}
}

func (s remote) Next(ctx context.Context, limit int, lease time.Duration) ([]*webhook.Claim, error) {
	if err := s.wait(5 * time.Millisecond); err != nil {
		return nil, err
	}
	s.state.claims.Add(1)
	return s.Store.Next(ctx, limit, lease)
}

func (s remote) Settle(ctx context.Context, c *webhook.Claim, d webhook.Disposition) error {
	if err := s.wait(time.Millisecond); err != nil {
		return err
	}
	if d.Released {
		s.state.released.Add(1)
	}
	return s.Store.Settle(ctx, c, d)
}

func (s remote) Extend(ctx context.Context, c *webhook.Claim, lease time.Duration) error {
	if err := s.wait(0); err != nil {
		return err
	}
	return s.Store.Extend(ctx, c, lease)
}

// TestWorkersHaveEventsWhileAClaimRuns: with handlers of 0.2 ms, eight workers handle
// 200 events while a claim runs. They are ready before it begins, so no worker waits for it.
func TestWorkersHaveEventsWhileAClaimRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const events, warm = 9000, 3000
		shared := newDurable()
		fill(t, shared, events)
		cfg := inbox(newRemote(shared))
		cfg.Workers = 8
		rx := receiver(t, cfg)
		var handled atomic.Int64
		var began time.Time
		took := make(chan time.Duration, 1)
		webhook.OnOther(rx, func(context.Context, *webhook.Event) error {
			time.Sleep(200 * time.Microsecond)
			switch handled.Add(1) {
			case warm:
				began = time.Now()
			case events:
				took <- time.Since(began)
			}
			return nil
		})
		rx.Start()
		assert.InDelta(t, (events-warm)/8/5, (<-took).Milliseconds(), 5)
		require.NoError(t, rx.Idle(t.Context()))
		nothingLeft(t, rx)
	})
}

// fill stores events of different resources.
func fill(t *testing.T, store webhook.Store, n int) {
	t.Helper()
	for i := range n {
		id := fmt.Sprintf("evt_%d", i)
		_, err := store.Put(t.Context(), webhook.Record{
			Key: "id " + id, EventID: id, Kind: webhook.TransactionPaid, Resource: fmt.Sprintf("transaction/tx_%d", i),
			Signed: true, Source: webhook.SourceDelivery, Body: []byte(paid(id, fmt.Sprintf("tx_%d", i))),
		})
		require.NoError(t, err)
	}
}

// TestEventsAreClaimedAhead: eight workers that wait for each claim and each outcome
// would handle at most eight events in 6 ms.
func TestEventsAreClaimedAhead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const events = 2000
		shared := newDurable()
		fill(t, shared, events)
		store := newRemote(shared)
		cfg := inbox(store)
		cfg.Workers = 8
		rx := receiver(t, cfg)
		var handled, running, most atomic.Int64
		webhook.OnOther(rx, func(context.Context, *webhook.Event) error {
			if n := running.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(100 * time.Microsecond)
			running.Add(-1)
			handled.Add(1)
			return nil
		})
		rx.Start()
		time.Sleep(events / 16 * time.Millisecond)
		assert.Less(t, store.state.claims.Load(), int64(events/50))
		assert.Equal(t, int64(events), handled.Load())
		assert.LessOrEqual(t, most.Load(), int64(8), "handlers at a time")
		assert.Equal(t, uint64(events), rx.Stats()[webhook.OutcomeHandled])
		nothingLeft(t, rx)
	})
}

// TestReadyEventsAreReleased: the events that were claimed ahead do not wait for
// workers that have become slow, nor for a receiver that shuts down or pauses.
func TestReadyEventsAreReleased(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(*testing.T, *webhook.Receiver){
		"slow handlers": func(*testing.T, *webhook.Receiver) {},
		"a shutdown": func(t *testing.T, rx *webhook.Receiver) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			require.ErrorIs(t, rx.Shutdown(ctx), context.DeadlineExceeded)
		},
		"a pause": func(_ *testing.T, rx *webhook.Receiver) { rx.Pause() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const events, fast = 3000, 2000
				shared := newDurable()
				fill(t, shared, events)
				store := newRemote(shared)
				cfg := inbox(store)
				cfg.Workers = 8
				rx := receiver(t, cfg)
				var begun atomic.Int64
				hang := make(chan struct{})
				webhook.OnOther(rx, func(context.Context, *webhook.Event) error {
					if begun.Add(1) > fast {
						<-hang
					}
					return nil
				})
				rx.Start()
				time.Sleep(500 * time.Millisecond)
				require.Equal(t, int64(fast+8), begun.Load())
				counts, err := rx.Counts(t.Context())
				require.NoError(t, err)
				require.Greater(t, counts.Claimed, 8, "some are ready")
				stop(t, rx)
				time.Sleep(2 * time.Second)
				counts, err = rx.Counts(t.Context())
				require.NoError(t, err)
				assert.Equal(t, webhook.Counts{Waiting: events - fast - 8, Claimed: 8, Oldest: counts.Oldest}, counts)
				assert.Positive(t, store.state.released.Load())

				other := receiver(t, inbox(shared))
				var attempts effects
				webhook.OnOther(other, func(_ context.Context, e *webhook.Event) error {
					attempts.add("%d", e.Attempt)
					return nil
				})
				require.NoError(t, other.Idle(t.Context()))
				assert.Equal(t, strings.Repeat("1 ", events-fast-8), strings.Join(attempts.all(), " ")+" ")
				close(hang)
				require.NoError(t, other.Idle(t.Context()))
				rx.Resume()
				if name != "a shutdown" {
					require.NoError(t, rx.Idle(t.Context()))
				}
			})
		})
	}
}

// TestAPoisonEventDoesNotUseUpTheAttemptsOfOthers has an event that makes its
// process crash, again and again, while many others were claimed ahead.
func TestAPoisonEventDoesNotUseUpTheAttemptsOfOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const events, poison = 1000, "evt_300"
		shared := newDurable()
		fill(t, shared, events)
		var mu sync.Mutex
		handled := make(map[string]int)
		var late []string
		cleanup := make(chan struct{})
		process := func() (store remote, rx *webhook.Receiver) {
			store = newRemote(shared)
			cfg := inbox(store)
			cfg.Workers, cfg.MaxAttempts = 8, 3
			rx = receiver(t, cfg)
			webhook.OnOther(rx, func(ctx context.Context, e *webhook.Event) error {
				time.Sleep(100 * time.Microsecond)
				mu.Lock()
				if e.ID == poison {
					close(store.state.crashed)
				}
				mu.Unlock()
				select {
				case <-store.state.crashed:
					<-cleanup
					return nil
				default:
				}
				mu.Lock()
				defer mu.Unlock()
				handled[e.ID]++
				if c, _ := webhook.ClaimFromContext(ctx); c.Attempt > 1 {
					late = append(late, e.ID)
				}
				return nil
			})
			return store, rx
		}
		crashes := 0
		for range 10 {
			store, rx := process()
			rx.Start()
			time.Sleep(2 * time.Minute) // the leases of the last process end
			select {
			case <-store.state.crashed:
				crashes++
			default:
			}
		}
		assert.Equal(t, 2+3, crashes, "two that don't count, and one for each attempt")
		counts, err := shared.Counts(t.Context())
		require.NoError(t, err)
		assert.Equal(t, webhook.Counts{Dead: 1}, counts)
		mu.Lock()
		defer mu.Unlock()
		assert.Equal(t, events-1, len(handled)) //nolint:testifylint // it would print them all
		assert.Zero(t, handled[poison])
		assert.Empty(t, late, "events that lost an attempt")
		again := 0
		for _, n := range handled {
			again += n - 1
		}
		assert.LessOrEqual(t, again, 3*(8+256), "events whose outcome was not stored")
		close(cleanup)
	})
}
