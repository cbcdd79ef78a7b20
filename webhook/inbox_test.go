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
	"github.com/gateway-go/gateway/internal/storetest"
	"github.com/gateway-go/gateway/webhook"
)

type durable = storetest.Durable

// newDurable returns a store whose methods use the events of ownAccount.
func newDurable() durable {
	return durable{Store: webhook.NewMemoryStore(webhook.MemoryOptions{}).For(ownAccount)}
}

func inbox(store webhook.Store) webhook.Config {
	cfg := signedConfig()
	cfg.Mode, cfg.Store = webhook.Inbox, store
	cfg.Backoff = func(attempt int) time.Duration { return time.Duration(attempt) * 10 * time.Second }
	return cfg
}

func TestTheInboxRespondsBeforeItHandles(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rx := receiver(t, inbox(newDurable()))
		var got effects
		webhook.OnTransaction(rx, webhook.TransactionPaid, func(_ context.Context, e *webhook.TransactionEvent) error {
			time.Sleep(time.Minute / 2)
			got.add("%s", e.ID)
			return nil
		})
		began := time.Now()
		for range 3 {
			assert.Equal(t, received, response(rx, signed(paid("evt_1", "tx_1"))))
		}
		assert.Zero(t, time.Since(began))
		assert.Empty(t, got.all())
		time.Sleep(time.Minute)
		assert.Equal(t, received, response(rx, signed(paid("evt_1", "tx_1"))))
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"evt_1"}, got.all())
		assert.Equal(t, map[webhook.Outcome]uint64{webhook.OutcomeStored: 1, webhook.OutcomeDuplicate: 3, webhook.OutcomeHandled: 1}, rx.Stats())
	})
}

func TestTheInboxRetriesWithBackoffAndGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := inbox(newDurable())
		cfg.MaxAttempts = 5
		rx := receiver(t, cfg)
		began := time.Now()
		var at []time.Duration
		webhook.OnTransaction(rx, webhook.TransactionPaid, func(_ context.Context, e *webhook.TransactionEvent) error {
			at = append(at, time.Since(began).Round(time.Second))
			switch e.Attempt {
			case 2:
				return fmt.Errorf("locked: %w", webhook.RetryAfter(time.Hour))
			case 3:
				panic("a nil pointer")
			default:
				return errors.New("no database")
			}
		})
		response(rx, signed(paid("evt_1", "tx_1")))
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		assert.Equal(t, []time.Duration{0, 10 * time.Second, 10*time.Second + time.Hour, 40*time.Second + time.Hour, 80*time.Second + time.Hour}, at)
		assert.Equal(t, uint64(1), rx.Stats()[webhook.OutcomeDead])
		dead, err := rx.DeadLetters(t.Context(), webhook.DeadLetterQuery{})
		require.NoError(t, err)
		require.Len(t, dead, 1)
		assert.Equal(t, 5, dead[0].Attempts)

		n, err := rx.Requeue(t.Context(), dead[0].Key)
		require.NoError(t, err)
		assert.Equal(t, 1, n)
		synctest.Wait()
		assert.Len(t, at, 6, "begun at once, with five attempts again")
	})
}

// cutStore is a store whose process can be killed: after that, calls fail and
// change nothing.
type cutStore struct {
	webhook.Store

	mu   sync.Mutex
	dead bool
}

var errKilled = errors.New("the process was killed")

func (s *cutStore) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead = true
}

func (s *cutStore) killed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead {
		return errKilled
	}
	return nil
}

func (*cutStore) Durable() bool { return true }

// For serves one account.
func (s *cutStore) For(a gateway.Account) webhook.Store {
	s.Store = s.Store.For(a)
	return s
}

func (s *cutStore) Put(ctx context.Context, rec webhook.Record) (webhook.Entry, error) {
	if err := s.killed(); err != nil {
		return webhook.Entry{}, err
	}
	return s.Store.Put(ctx, rec)
}

func (s *cutStore) Next(ctx context.Context, limit int, lease time.Duration) ([]*webhook.Claim, error) {
	if err := s.killed(); err != nil {
		return nil, err
	}
	return s.Store.Next(ctx, limit, lease)
}

func (s *cutStore) Extend(ctx context.Context, c *webhook.Claim, lease time.Duration) error {
	if err := s.killed(); err != nil {
		return err
	}
	return s.Store.Extend(ctx, c, lease)
}

func (s *cutStore) Settle(ctx context.Context, c *webhook.Claim, d webhook.Disposition) error {
	if err := s.killed(); err != nil {
		return err
	}
	return s.Store.Settle(ctx, c, d)
}

func TestTheEventsOfAKilledProcessAreTakenOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := newDurable()
		doomed := &cutStore{Store: shared}
		first := receiver(t, inbox(doomed))
		var runs effects
		handler := func(name string, then func()) func(context.Context, *webhook.Event) error {
			return func(_ context.Context, e *webhook.Event) error {
				runs.add("%s %s, attempt %d", name, e.ID, e.Attempt)
				then()
				return nil
			}
		}
		webhook.OnOther(first, handler("first", doomed.kill)) // killed between claim and completion
		assert.Equal(t, received, response(first, signed(paid("evt_1", "tx_1"))))
		synctest.Wait()
		assert.Equal(t, `503 {"error":"unavailable"}`, response(first, signed(paid("evt_2", "tx_2"))), "an event that is not stored is not acknowledged")

		second := receiver(t, inbox(shared))
		webhook.OnOther(second, handler("second", func() {}))
		second.Start()
		time.Sleep(59 * time.Second)
		assert.Equal(t, []string{"first evt_1, attempt 1"}, runs.all(), "the lease has not expired")
		time.Sleep(2 * time.Second)
		assert.Equal(t, []string{"first evt_1, attempt 1", "second evt_1, attempt 2"}, runs.all())
	})
}

func TestAnEventThatKillsEveryProcessBecomesADeadLetter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := newDurable()
		cfg := inbox(shared)
		cfg.MaxAttempts = 3
		var runs atomic.Int64
		for range 7 {
			doomed := &cutStore{Store: shared}
			cfg.Store = doomed
			rx := receiver(t, cfg)
			webhook.OnOther(rx, func(context.Context, *webhook.Event) error {
				runs.Add(1)
				doomed.kill()
				return nil
			})
			rx.Start()
			if runs.Load() == 0 {
				response(rx, signed(paid("evt_1", "tx_1")))
			}
			time.Sleep(2 * time.Minute)
		}
		assert.Equal(t, int64(2+3), runs.Load(), "two that don't count, and three that do")
		dead, err := shared.DeadLetters(t.Context(), webhook.DeadLetterQuery{})
		require.NoError(t, err)
		require.Len(t, dead, 1)
		assert.Contains(t, dead[0].Reason, "gave up after 3 attempts")
	})
}

func TestTheInboxKeepsTheOrderOfAResource(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rx := receiver(t, inbox(newDurable()))
		var got effects
		webhook.OnOther(rx, func(_ context.Context, e *webhook.Event) error {
			time.Sleep(time.Second)
			got.add("%s", e.ID)
			return nil
		})
		for i := range 6 {
			response(rx, signed(paid(fmt.Sprintf("evt_%d", i), "tx_1")))
			response(rx, signed(paid(fmt.Sprintf("other_%d", i), fmt.Sprintf("tx_%d", 10+i))))
		}
		time.Sleep(time.Minute)
		var ofOne []string
		for _, id := range got.all() {
			if id[:3] == "evt" {
				ofOne = append(ofOne, id)
			}
		}
		assert.Equal(t, []string{"evt_0", "evt_1", "evt_2", "evt_3", "evt_4", "evt_5"}, ofOne)
		assert.Len(t, got.all(), 12)
	})
}

func TestNegativeWorkersOnlyReceive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := newDurable()
		cfg := inbox(shared)
		cfg.Workers = -1
		front := receiver(t, cfg)
		webhook.OnOther(front, func(context.Context, *webhook.Event) error {
			t.Error("handled by the process that only receives")
			return nil
		})
		assert.Equal(t, received, response(front, signed(paid("evt_1", "tx_1"))))
		time.Sleep(time.Hour)
		counts, err := front.Counts(t.Context())
		require.NoError(t, err)
		assert.Equal(t, webhook.Counts{Waiting: 1, Oldest: time.Hour}, counts)

		back := receiver(t, inbox(shared))
		back.Start()
		back.Start()
		time.Sleep(time.Second)
		assert.Equal(t, uint64(1), back.Stats()[webhook.OutcomeUnhandled])
		counts, err = back.Counts(t.Context())
		require.NoError(t, err)
		assert.Equal(t, webhook.Counts{Unhandled: 1}, counts)
	})
}

func TestShutdownOfAnInbox(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := newDurable()
		cfg := inbox(shared)
		cfg.Workers, cfg.HandlerTimeout = 1, time.Hour
		rx, err := webhook.New(cfg)
		require.NoError(t, err)
		var got effects
		webhook.OnOther(rx, func(ctx context.Context, e *webhook.Event) error {
			select {
			case <-time.After(10 * time.Second):
				got.add("%s", e.ID)
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		for _, id := range []string{"a", "b", "c"} {
			assert.Equal(t, received, response(rx, signed(paid(id, id))))
		}
		time.Sleep(time.Second)
		require.NoError(t, rx.Shutdown(t.Context()), "running handlers finish")
		assert.Len(t, got.all(), 1)
		counts, err := shared.Counts(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 2, counts.Waiting, "nothing new was begun")
		assert.Equal(t, `503 {"error":"unavailable"}`, response(rx, signed(paid("d", "d"))))
		_, err = rx.Requeue(t.Context(), "x")
		require.ErrorIs(t, err, webhook.ErrShutdown)

		again, err := webhook.New(cfg)
		require.NoError(t, err)
		webhook.OnOther(again, func(ctx context.Context, _ *webhook.Event) error {
			<-ctx.Done()
			return ctx.Err()
		})
		again.Start()
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, again.Shutdown(ctx), context.DeadlineExceeded)
		synctest.Wait()
		counts, err = shared.Counts(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 2, counts.Waiting, "what did not finish is released")
		assert.Zero(t, counts.Claimed)
	})
}

func TestTheInboxRecoversWhenTheStoreIsBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		flaky := &flakyStore{Store: newDurable()}
		rx := receiver(t, inbox(flaky))
		var got effects
		webhook.OnOther(rx, func(_ context.Context, e *webhook.Event) error {
			got.add("%s", e.ID)
			return nil
		})
		assert.Equal(t, received, response(rx, signed(paid("evt_1", "tx_1"))))
		flaky.down(true)
		time.Sleep(10 * time.Minute)
		reads := flaky.count()
		time.Sleep(10 * time.Minute)
		assert.InDelta(t, 20, flaky.count()-reads, 1, "asked every 30 s")
		assert.Equal(t, `503 {"error":"unavailable"}`, response(rx, signed(paid("evt_2", "tx_2"))))
		flaky.down(false)
		time.Sleep(time.Minute)
		assert.Equal(t, received, response(rx, signed(paid("evt_2", "tx_2"))))
		synctest.Wait()
		assert.Equal(t, []string{"evt_1", "evt_2"}, got.all())
	})
}

// failsOnce is a store whose first claim fails, as with a database timeout.
type failsOnce struct {
	durable

	failed atomic.Bool
}

func (s *failsOnce) For(gateway.Account) webhook.Store { return s } // newDurable's account

func (s *failsOnce) Next(ctx context.Context, limit int, lease time.Duration) ([]*webhook.Claim, error) {
	if s.failed.CompareAndSwap(false, true) {
		return nil, context.DeadlineExceeded
	}
	return s.durable.Next(ctx, limit, lease)
}

func TestContinuousDeliveriesDoNotDelayClaims(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		store webhook.Store
		slow  int // handlers that keep running while deliveries arrive
	}{
		"after a claim that failed":          {store: &failsOnce{durable: newDurable()}},
		"while most of the workers are busy": {store: newDurable(), slow: 5},
		"while all workers but one are busy": {store: newDurable(), slow: 7},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rx := receiver(t, inbox(test.store))
				var handled atomic.Int64
				webhook.OnOther(rx, func(_ context.Context, e *webhook.Event) error {
					if strings.HasPrefix(e.ID, "slow") {
						time.Sleep(10 * time.Second)
					}
					handled.Add(1)
					return nil
				})
				for i := range test.slow {
					assert.Equal(t, received, response(rx, signed(paid(fmt.Sprintf("slow_%d", i), fmt.Sprintf("slow_%d", i)))))
				}
				const deliveries = 2000
				for i := range deliveries {
					assert.Equal(t, received, response(rx, signed(paid(fmt.Sprintf("evt_%d", i), fmt.Sprintf("tx_%d", i)))))
					time.Sleep(2 * time.Millisecond)
				}
				assert.Greater(t, handled.Load(), int64(deliveries/4), "of the events that arrived in the meantime")
				time.Sleep(time.Minute)
				assert.EqualValues(t, deliveries+test.slow, handled.Load())
			})
		})
	}
}

// flakyStore is a database that is temporarily down.
type flakyStore struct {
	webhook.Store

	bound bool // to the account, by the first receiver

	mu    sync.Mutex
	fails bool
	reads int
}

func (*flakyStore) Durable() bool { return true }

// For serves one account.
func (s *flakyStore) For(a gateway.Account) webhook.Store {
	if !s.bound {
		s.Store, s.bound = s.Store.For(a), true
	}
	return s
}

func (s *flakyStore) down(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = down
}

func (s *flakyStore) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads
}

func (s *flakyStore) check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	if s.fails {
		return errors.New("connection refused")
	}
	return nil
}

func (s *flakyStore) Put(ctx context.Context, rec webhook.Record) (webhook.Entry, error) {
	if err := s.check(); err != nil {
		return webhook.Entry{}, err
	}
	return s.Store.Put(ctx, rec)
}

func (s *flakyStore) Next(ctx context.Context, limit int, lease time.Duration) ([]*webhook.Claim, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	return s.Store.Next(ctx, limit, lease)
}

func (s *flakyStore) NextUnhandled(
	ctx context.Context, handles func(webhook.Family, webhook.Kind) bool, limit int, lease time.Duration,
) ([]*webhook.Claim, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	return s.Store.NextUnhandled(ctx, handles, limit, lease)
}

func TestACompletionIsRetriedIfTheStoreFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stumbling := &stumblingStore{Store: newDurable(), left: 2}
		cfg := signedConfig()
		cfg.Store = stumbling
		rx := receiver(t, cfg)
		webhook.OnOther(rx, func(context.Context, *webhook.Event) error { return nil })
		assert.Equal(t, received, response(rx, signed(paid("evt_1", "tx_1"))))
		stumbling.left = 100
		assert.Equal(t, `503 {"error":"unavailable"}`, response(rx, signed(paid("evt_2", "tx_2"))), "handled, but not completed")
	})
}

type stumblingStore struct {
	webhook.Store

	left int
}

func (s *stumblingStore) For(gateway.Account) webhook.Store { return s } // newDurable's account

func (s *stumblingStore) Settle(ctx context.Context, c *webhook.Claim, d webhook.Disposition) error {
	if s.left--; s.left >= 0 {
		return errors.New("connection reset")
	}
	return s.Store.Settle(ctx, c, d)
}
