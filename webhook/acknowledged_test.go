package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/webhook"
)

// TestOnlyWhatIsDoneOrDurableIsAcknowledged redelivers an event in each state
// of its entry: unchanged, with newer data, and with its id on another event.
func TestOnlyWhatIsDoneOrDurableIsAcknowledged(t *testing.T) {
	t.Parallel()
	type settings struct {
		mode    webhook.Mode
		durable bool
		trust   webhook.Trust
	}
	for name, s := range map[string]settings{
		"Sync, memory":             {webhook.Sync, false, webhook.RequireSignature},
		"Sync, memory, unsigned":   {webhook.Sync, false, webhook.UnsafeTrustBody},
		"Sync, memory, confirmed":  {webhook.Sync, false, webhook.ReadBackOnly},
		"Sync, durable":            {webhook.Sync, true, webhook.RequireSignature},
		"Sync, durable, unsigned":  {webhook.Sync, true, webhook.UnsafeTrustBody},
		"Sync, durable, confirmed": {webhook.Sync, true, webhook.ReadBackOnly},
		"Inbox":                    {webhook.Inbox, true, webhook.RequireSignature},
		"Inbox, unsigned":          {webhook.Inbox, true, webhook.UnsafeTrustBody},
		"Inbox, confirmed":         {webhook.Inbox, true, webhook.ReadBackOnly},
	} {
		for _, state := range []string{"waiting", "claimed", "unhandled", "dead", "done"} {
			for _, redelivery := range []string{"same", "newer", "unrelated"} {
				if redelivery == "unrelated" && s.trust == webhook.ReadBackOnly {
					continue // its id is not used
				}
				t.Run(fmt.Sprintf("%s/%s/%s", name, state, redelivery), func(t *testing.T) {
					t.Parallel()
					unfinished := state == "waiting" || state == "claimed"
					lost := redelivery == "unrelated" && !s.durable // a restart would lose it
					synctest.Test(t, func(t *testing.T) {
						redeliver(t, redelivered{
							mode: s.mode, durable: s.durable, trust: s.trust, state: state, redelivery: redelivery,
							refusedAtFirst: s.mode == webhook.Sync && unfinished || lost, refusedLater: lost, handled: unfinished || state == "done",
						})
					})
				})
			}
		}
	}
}

type redelivered struct {
	mode    webhook.Mode
	durable bool
	trust   webhook.Trust

	state, redelivery string

	refusedAtFirst, refusedLater, handled bool
}

func redeliver(t *testing.T, tc redelivered) {
	t.Helper()
	var api fakeAPI
	api.setTransaction("tx_1", "paid")
	cfg := webhook.Config{
		Mode: tc.mode, Trust: tc.trust, Logger: quiet, Account: ownAccount.Name, Store: webhook.NewMemoryStore(webhook.MemoryOptions{}).For(ownAccount),
		Backoff: func(int) time.Duration { return time.Minute },
	}
	if tc.durable {
		cfg.Store = newDurable()
	}
	deliver := request
	switch tc.trust {
	case webhook.RequireSignature:
		cfg.Keys, deliver = []webhook.SigningKey{{Key: secret}}, signed
	case webhook.ReadBackOnly:
		cfg.API = api.client(t)
	case webhook.SignatureOrReadBack, webhook.UnsafeTrustBody: // not in the table
	}
	time.Sleep(time.Hour) // the memory store remembers the time since it was created
	rx := receiver(t, cfg)
	var got effects
	var ready atomic.Bool
	block := make(chan struct{})
	handler := func(_ context.Context, e *webhook.TransactionEvent) error {
		switch {
		case ready.Load() || tc.state == "done":
		case tc.state == "dead":
			return webhook.Permanent(errors.New("no such order"))
		case tc.state == "claimed":
			<-block
		default:
			return errors.New("the shop's database is down")
		}
		got.add("%s", e.ResourceID)
		return nil
	}
	if tc.state != "unhandled" {
		webhook.OnTransaction(rx, webhook.TransactionPaid, handler)
	}
	rx.Start()

	first := paid("evt_1", "tx_1")
	body := map[string]string{
		"same":      first,
		"newer":     strings.Replace(first, `"amount"`, `"updated_at":"2027-01-04T12:00:00Z","amount"`, 1),
		"unrelated": paid("evt_1", "tx_2"),
	}[tc.redelivery]
	go serve(rx, deliver(first))
	synctest.Wait()
	expect := func(refused bool, when string) {
		t.Helper()
		code := serve(rx, deliver(body)).Code
		assert.Equal(t, refused, code != http.StatusOK, "%s the response is %d", when, code)
	}
	expect(tc.refusedAtFirst, "at first")
	if tc.redelivery == "same" {
		expect(tc.refusedAtFirst, "again")
	}
	ready.Store(true)
	close(block)
	time.Sleep(2 * time.Minute)
	expect(tc.refusedLater, "later")
	synctest.Wait()
	want := []string{}
	if tc.handled {
		want = append(want, "tx_1")
	}
	assert.Equal(t, want, got.all())
	if tc.refusedLater {
		n, err := rx.DiscardAll(t.Context(), webhook.DeadLetterFilter{})
		require.NoError(t, err)
		assert.NotZero(t, n)
		expect(false, "after the operator's decision")
	}
}

// TestAnEventThatCantBeReadIsNotLost delivers events whose amounts this version
// can't read. A durable store keeps them as dead letters. A memory store in Sync
// mode has the gateway keep them.
func TestAnEventThatCantBeReadIsNotLost(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"transaction":  strings.Replace(paid("evt_1", "tx_1"), "1990", "10.5", 1),
		"subscription": `{"id":"evt_1","event":"subscription","data":{"id":"s_1","event_type":"subscription.renewed","status":"active","amount":10.5}}`,
		"transfer":     `{"id":"evt_1","type":"payout.failed","data":{"object":{"id":"po_1","status":"error","amount":10.5}}}`,
	} {
		for mode, tc := range map[string]struct {
			mode    webhook.Mode
			durable bool
		}{"Sync, memory": {webhook.Sync, false}, "Sync, durable": {webhook.Sync, true}, "Inbox": {webhook.Inbox, true}} {
			t.Run(name+", "+mode, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					cfg := signedConfig()
					cfg.Mode, cfg.Backoff, cfg.Store = tc.mode, atOnce, webhook.NewMemoryStore(webhook.MemoryOptions{})
					if tc.durable {
						cfg.Store = newDurable()
					}
					rx := receiver(t, cfg)
					webhook.OnTransaction(rx, webhook.AnyKind, func(context.Context, *webhook.TransactionEvent) error { return nil })
					webhook.OnSubscription(rx, webhook.AnyKind, func(context.Context, *webhook.SubscriptionEvent) error { return nil })
					webhook.OnTransfer(rx, webhook.AnyKind, func(context.Context, *webhook.TransferEvent) error { return nil })
					rx.Start()
					letters := 0
					for range 20 { // more than MaxAttempts
						want := failedNow
						if tc.durable {
							want, letters = received, 1
						}
						assert.Equal(t, want, response(rx, signed(body)))
						synctest.Wait()
					}
					counts, err := rx.Counts(t.Context())
					require.NoError(t, err)
					assert.Equal(t, letters, counts.Dead)
				})
			})
		}
	}
}

// TestARedeliveryHandlesARequeuedConflict requeues the dead letter of a conflict in
// a process that dies before it handles the event. In Sync mode nothing else
// retries it.
func TestARedeliveryHandlesARequeuedConflict(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]webhook.Store{"durable": newDurable(), "memory": webhook.NewMemoryStore(webhook.MemoryOptions{}).For(ownAccount)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := signedConfig()
			cfg.Store, cfg.Backoff = store, atOnce
			rx := receiver(t, cfg)
			var got effects
			var down atomic.Bool
			webhook.OnTransaction(rx, webhook.TransactionPaid, func(_ context.Context, e *webhook.TransactionEvent) error {
				if down.Load() {
					return errors.New("the shop's database is down")
				}
				got.add("%s %d", e.ResourceID, e.Data.Amount)
				return nil
			})
			newer := strings.Replace(paid("evt_1", "tx_1"), "1990", "2990", 1)
			assert.Equal(t, received, response(rx, signed(paid("evt_1", "tx_1"))))
			assert.Equal(t, received, response(rx, signed(newer)), "kept for an operator")
			letters, err := rx.DeadLetters(t.Context(), webhook.DeadLetterQuery{})
			require.NoError(t, err)
			require.Len(t, letters, 1)
			n, err := store.Requeue(t.Context(), letters[0].Key)
			require.NoError(t, err)
			require.Equal(t, 1, n)
			down.Store(true)
			assert.Equal(t, failedNow, response(rx, signed(newer)))
			assert.Equal(t, []string{"tx_1 1990"}, got.all())
			down.Store(false)
			assert.Equal(t, received, response(rx, signed(newer)))
			assert.Equal(t, received, response(rx, signed(newer)), "a duplicate")
			assert.Equal(t, []string{"tx_1 1990", "tx_1 2990"}, got.all())
			nothingLeft(t, rx)
		})
	}
}
