package webhook_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/webhook"
)

// schedule lists when the gateway delivers an event that is never
// acknowledged.
var schedule = []time.Duration{
	0, 5 * time.Second, 5 * time.Minute, 30 * time.Minute,
	2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

// A handler fails for 12 hours. An attacker who captures the signed deliveries
// replays each one many times while its signature is valid.
func TestAnAttackerCannotUseUpTheAttempts(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]func() webhook.Store{
		"in memory": func() webhook.Store { return webhook.NewMemoryStore(webhook.MemoryOptions{}).For(ownAccount) },
		"durable":   func() webhook.Store { return newDurable() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				cfg := signedConfig()
				cfg.Store = store()
				rx := receiver(t, cfg)
				began := time.Now()
				handled := 0
				webhook.OnTransaction(rx, webhook.TransactionPaid, func(context.Context, *webhook.TransactionEvent) error {
					if time.Since(began) < 12*time.Hour {
						return errors.New("no database")
					}
					handled++
					return nil
				})
				body := paid("evt_1", "tx_1")
				for _, at := range schedule[:8] {
					time.Sleep(time.Until(began.Add(at)))
					captured := signed(body).Header
					for i := range 60 {
						r := request(body)
						r.Header = captured
						status := serve(rx, r).Code
						if at < 12*time.Hour {
							assert.NotEqual(t, http.StatusOK, status, "delivery at %v, number %d", at, i)
						}
						if at < 5*time.Minute {
							break // the next attempt is due
						}
						time.Sleep(4 * time.Second)
					}
				}
				assert.Equal(t, 1, handled, "the first delivery after the outage")
				nothingLeft(t, rx)
			})
		})
	}
}

// deadAfter delivers an event that always fails on the gateway's schedule, and
// returns the responses.
func deadAfter(t *testing.T, store webhook.Store) (rx *webhook.Receiver, fail *bool, responses []int) {
	t.Helper()
	cfg := signedConfig()
	cfg.Store = store
	rx, fail = receiver(t, cfg), new(bool)
	*fail = true
	webhook.OnTransaction(rx, webhook.TransactionPaid, func(context.Context, *webhook.TransactionEvent) error {
		if *fail {
			return errors.New("always")
		}
		return nil
	})
	began := time.Now()
	for _, at := range schedule {
		time.Sleep(time.Until(began.Add(at)))
		responses = append(responses, serve(rx, signed(paid("evt_1", "tx_1"))).Code)
	}
	return rx, fail, responses
}

// A store's column may hold only valid UTF-8.
func TestALongReasonEndsWithAWholeCharacter(t *testing.T) {
	t.Parallel()
	cfg := signedConfig()
	cfg.Store = newDurable()
	rx := receiver(t, cfg)
	text := "x" + strings.Repeat("ã", 1000)
	webhook.OnTransaction(rx, webhook.TransactionPaid, func(context.Context, *webhook.TransactionEvent) error {
		return webhook.Permanent(errors.New(text))
	})

	serve(rx, signed(paid("evt_1", "tx_1")))

	dead, err := rx.DeadLetters(t.Context(), webhook.DeadLetterQuery{})
	require.NoError(t, err)
	require.Len(t, dead, 1)
	assert.Equal(t, text[:499]+"…", dead[0].Reason)
}

func TestSyncModeGivesUpWithTheGateway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rx, fail, responses := deadAfter(t, newDurable())
		assert.Equal(t, []int{500, 500, 500, 500, 500, 500, 500, 500, 500, 200}, responses, "the last delivery created a dead letter, so it is acknowledged")
		dead, err := rx.DeadLetters(t.Context(), webhook.DeadLetterQuery{})
		require.NoError(t, err)
		require.Len(t, dead, 1)
		assert.Equal(t, "evt_1", dead[0].EventID)
		assert.Equal(t, "always", dead[0].Reason)
		assert.Equal(t, paid("evt_1", "tx_1"), string(dead[0].Body))
		assert.Equal(t, received, response(rx, signed(paid("evt_1", "tx_1"))))

		n, err := rx.Requeue(t.Context(), dead[0].Key)
		assert.Equal(t, 1, n)
		require.ErrorContains(t, err, "requeue of id evt_1: dead")
		counts, err := rx.Counts(t.Context())
		require.NoError(t, err)
		assert.Equal(t, webhook.Counts{Dead: 1}, counts, "redeliveries do not run it again")
		*fail = false
		n, err = rx.Requeue(t.Context(), dead[0].Key, "id unknown")
		require.NoError(t, err)
		assert.Equal(t, 1, n)
		assert.Equal(t, uint64(1), rx.Stats()[webhook.OutcomeFailed]/9)
	})
}

// A dead letter in a memory store is lost after a restart, so the event must
// not be acknowledged.
func TestSyncModeInMemoryNeverGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rx, fail, responses := deadAfter(t, webhook.NewMemoryStore(webhook.MemoryOptions{}).For(ownAccount))
		assert.Equal(t, []int{500, 500, 500, 500, 500, 500, 500, 500, 500, 500}, responses)
		*fail = false
		time.Sleep(time.Hour)
		assert.Equal(t, received, response(rx, signed(paid("evt_1", "tx_1"))), "redelivered manually")
		assert.Equal(t, uint64(1), rx.Stats()[webhook.OutcomeHandled])
	})
}

func TestAPermanentErrorMakesADeadLetterAtOnce(t *testing.T) {
	t.Parallel()
	rx := receiver(t, signedConfig())
	webhook.OnTransaction(rx, webhook.TransactionRefunded, func(context.Context, *webhook.TransactionEvent) error {
		return webhook.Permanent(errors.New("no such order"))
	})
	body := txBody("evt_2", webhook.TransactionRefunded, "tx_2", "refunded")
	for range 3 {
		assert.Equal(t, received, response(rx, signed(body)))
	}
	dead, err := rx.DeadLetters(t.Context(), webhook.DeadLetterQuery{})
	require.NoError(t, err)
	require.Len(t, dead, 1)
	assert.Equal(t, "no such order", dead[0].Reason)
	assert.Equal(t, 1, dead[0].Attempts)
	n, err := rx.Requeue(t.Context(), "id unknown")
	require.NoError(t, err)
	assert.Zero(t, n)
}
