package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/webhook"
)

// logBuffer is a log that can be read while it is written.
type logBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// release starts a receiver that handles the given kinds of transaction
// events.
func release(t *testing.T, cfg webhook.Config, got *effects, kinds ...webhook.Kind) *webhook.Receiver {
	t.Helper()
	rx := receiver(t, cfg)
	for _, kind := range kinds {
		webhook.OnTransaction(rx, kind, func(_ context.Context, e *webhook.TransactionEvent) error {
			got.add("%s %s", e.Kind, e.ID)
			return nil
		})
	}
	rx.Start()
	return rx
}

func TestARollingDeployLosesNoEvent(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]webhook.Mode{"Inbox": webhook.Inbox, "Sync": webhook.Sync} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				cfg := inbox(newDurable())
				cfg.Mode = mode
				var byOld, byNew effects
				oldRelease := release(t, cfg, &byOld, webhook.TransactionPaid)
				newRelease := release(t, cfg, &byNew, webhook.TransactionPaid, webhook.TransactionRefunded)
				const events = 200
				for i := range events {
					rx := oldRelease
					if i%4 == 3 {
						rx = newRelease
					}
					tx := fmt.Sprintf("tx_%d", i)
					assert.Equal(t, received, response(rx, signed(paid("paid_"+tx, tx))))
					assert.Equal(t, received, response(rx, signed(txBody("refunded_"+tx, webhook.TransactionRefunded, tx, "refunded"))))
				}
				time.Sleep(time.Minute)
				response(newRelease, signed(paid("last", "tx_last"))) // Sync mode handles these events in the background
				time.Sleep(time.Minute)
				assert.Len(t, append(byOld.all(), byNew.all()...), 2*events+1)
				assert.NotContains(t, strings.Join(byOld.all(), "\n"), "refunded")
				nothingLeft(t, newRelease)
			})
		})
	}
}

func TestAKindWithoutAHandlerIsKeptAndCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newDurable()
		cfg := inbox(store)
		var logged logBuffer
		cfg.Logger = slog.New(slog.NewTextHandler(&logged, nil))
		var got effects
		first := release(t, cfg, &got, webhook.TransactionPaid)
		for i := range 3 {
			assert.Equal(t, received, response(first, signed(txBody(fmt.Sprint(i), webhook.TransactionRefunded, "tx_1", "refunded"))))
		}
		unknown := `{"id":"new","event":"brand_new","data":{"id":"x","event_type":"brand_new.thing"}}`
		assert.Equal(t, received, response(first, signed(unknown)))
		assert.Equal(t, received, response(first, signed(paid("evt_1", "tx_1"))))
		time.Sleep(time.Hour) // 3,600 polls
		assert.Equal(t, []string{"transaction.paid evt_1"}, got.all(), "an unhandled event must not block a later one of its resource")
		kinds, err := first.Unhandled(t.Context())
		require.NoError(t, err)
		require.Len(t, kinds, 2)
		assert.Equal(t, webhook.UnhandledKind{Family: "brand_new", Kind: "brand_new.thing", Events: 1, Since: kinds[0].Since}, kinds[0])
		assert.Equal(t, webhook.UnhandledKind{
			Family: webhook.FamilyTransaction, Kind: webhook.TransactionRefunded, Events: 3, Since: kinds[1].Since,
		}, kinds[1])
		assert.Equal(t, 2, strings.Count(logged.String(), "there is no handler for this kind"), "once per kind:\n%s", logged.String())
		assert.Equal(t, uint64(4), first.Stats()[webhook.OutcomeUnhandled], "each was claimed once")

		second := receiver(t, cfg)
		webhook.Ignore(second, webhook.TransactionRefunded)
		webhook.OnOther(second, func(_ context.Context, e *webhook.Event) error {
			got.add("other %s", e.ID)
			return nil
		})
		second.Start()
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"transaction.paid evt_1", "other new"}, got.all())
		assert.Equal(t, uint64(3), second.Stats()[webhook.OutcomeIgnored])
		nothingLeft(t, second)
	})
}

func TestPurgedUnhandledEventsAreLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var logged logBuffer
		cfg := inbox(newDurable())
		cfg.Logger, cfg.PollInterval = slog.New(slog.NewTextHandler(&logged, nil)), time.Hour
		rx := release(t, cfg, &effects{})
		response(rx, signed(paid("evt_1", "tx_1")))
		time.Sleep(8 * 24 * time.Hour) // the memory store remembers 7 days
		synctest.Wait()
		nothingLeft(t, rx)
		assert.Contains(t, logged.String(), "events were deleted that no process had a handler for")
	})
}

func TestAFailedUnhandledEventIsRetriedAndBecomesADeadLetter(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]webhook.Mode{"Inbox": webhook.Inbox, "Sync": webhook.Sync} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				cfg := inbox(newDurable())
				cfg.Mode, cfg.MaxAttempts = mode, 3
				oldRelease := release(t, cfg, &effects{}, webhook.TransactionPaid)
				response(oldRelease, signed(txBody("evt_1", webhook.TransactionRefunded, "tx_1", "refunded")))
				time.Sleep(time.Minute)
				newRelease := receiver(t, cfg)
				var runs atomic.Int64
				webhook.OnTransaction(newRelease, webhook.TransactionRefunded, func(context.Context, *webhook.TransactionEvent) error {
					runs.Add(1)
					return errors.New("no database")
				})
				newRelease.Start()
				for range 5 {
					time.Sleep(time.Minute)
					newRelease.Start() // in Sync mode, check again
				}
				synctest.Wait()
				assert.Equal(t, int64(3), runs.Load())
				counts, err := newRelease.Counts(t.Context())
				require.NoError(t, err)
				assert.Equal(t, webhook.Counts{Dead: 1}, counts)
			})
		})
	}
}

func TestAnotherEventWithAKnownIDIsNotADuplicate(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]webhook.Mode{"Inbox": webhook.Inbox, "Sync": webhook.Sync} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var logged logBuffer
				cfg := inbox(newDurable())
				cfg.Mode, cfg.Logger = mode, slog.New(slog.NewTextHandler(&logged, nil))
				var got effects
				rx := receiver(t, cfg)
				webhook.OnTransaction(rx, webhook.AnyKind, func(_ context.Context, e *webhook.TransactionEvent) error {
					got.add("%s %s %d", e.Kind, e.ResourceID, e.Data.Amount)
					return nil
				})
				first := paid("evt_1", "tx_1")
				assert.Equal(t, received, response(rx, signed(first)))
				synctest.Wait()
				same := strings.Replace(strings.ReplaceAll(first, ",", " ,\n"), `"id":"evt_1"`, `"sent_at":"now","id":"evt_1"`, 1)
				assert.Equal(t, received, response(rx, signed(same)))
				assert.Zero(t, rx.Stats()[webhook.OutcomeConflict], "the gateway may encode one event in different ways")

				for range 2 {
					assert.Equal(t, received, response(rx, signed(paid("evt_1", "tx_2"))))
					assert.Equal(t, received, response(rx, signed(strings.Replace(first, "1990", "5", 1))))
					assert.Equal(t, received, response(rx, signed(first)))
				}
				synctest.Wait()
				assert.Equal(t, []string{"transaction.paid tx_1 1990"}, got.all())
				assert.Equal(t, uint64(4), rx.Stats()[webhook.OutcomeConflict])
				assert.Equal(t, 4, strings.Count(logged.String(), "level=ERROR"), logged.String())

				n, err := rx.RequeueAll(t.Context(), webhook.DeadLetterFilter{Kind: webhook.TransactionPaid})
				require.NoError(t, err)
				assert.Equal(t, 2, n, "an operator must decide")
				time.Sleep(time.Minute)
				assert.ElementsMatch(t, []string{"transaction.paid tx_1 1990", "transaction.paid tx_2 1990", "transaction.paid tx_1 5"}, got.all())
			})
		})
	}
}

func TestDeadLettersAreRequeuedAndDiscardedByFilter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rx := receiver(t, inbox(newDurable()))
		var fixed atomic.Bool
		var handled atomic.Int64
		webhook.OnOther(rx, func(context.Context, *webhook.Event) error {
			if !fixed.Load() {
				return webhook.Permanent(errors.New("no such order"))
			}
			handled.Add(1)
			return nil
		})
		const payments, refunds = 3, 1005 // more refunds than fit on a page
		for i := range payments + refunds {
			kind := webhook.TransactionRefunded
			if i < payments {
				kind = webhook.TransactionPaid
			}
			response(rx, signed(txBody(fmt.Sprint(i), kind, fmt.Sprint(i), "")))
		}
		time.Sleep(10 * time.Second)
		fixed.Store(true)
		_, err := rx.DeadLetters(t.Context(), webhook.DeadLetterQuery{Limit: -1})
		require.ErrorContains(t, err, "Limit is -1; it must be 1 to 1000")
		n, err := rx.DiscardAll(t.Context(), webhook.DeadLetterFilter{Kind: webhook.TransactionRefunded, Resource: "transaction/7"})
		require.NoError(t, err)
		assert.Equal(t, 1, n)
		n, err = rx.RequeueAll(t.Context(), webhook.DeadLetterFilter{Kind: webhook.TransactionRefunded})
		require.NoError(t, err)
		assert.Equal(t, refunds-1, n)
		n, err = rx.RequeueAll(t.Context(), webhook.DeadLetterFilter{Since: time.Now()})
		require.NoError(t, err)
		assert.Zero(t, n)
		time.Sleep(10 * time.Second)
		assert.Equal(t, int64(refunds-1), handled.Load())
		n, err = rx.DiscardAll(t.Context(), webhook.DeadLetterFilter{})
		require.NoError(t, err)
		assert.Equal(t, payments, n)
		assert.Equal(t, received, response(rx, signed(txBody("0", webhook.TransactionPaid, "0", ""))))
		assert.Equal(t, uint64(1), rx.Stats()[webhook.OutcomeDuplicate], "a discarded event is known")
	})
}
