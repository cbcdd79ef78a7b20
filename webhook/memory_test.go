package webhook_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/webhooktest"
)

func TestTheMemoryStorePassesTheStoreTests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		webhooktest.RunStore(t, func() webhook.Store { return webhook.NewMemoryStore(webhook.MemoryOptions{}) })
	})
}

func record(id string) webhook.Record {
	return webhook.Record{Key: "id " + id, EventID: id, Resource: "transaction/" + id, Signed: true, Body: []byte("{}")}
}

func complete(t *testing.T, s webhook.Store, id string) {
	t.Helper()
	c, _, err := s.Claim(t.Context(), "id "+id, time.Minute)
	require.NoError(t, err)
	require.NotNil(t, c)
	require.NoError(t, s.Settle(t.Context(), c, webhook.Disposition{State: webhook.StateDone}))
}

func TestTheMemoryStoreIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := webhook.NewMemoryStore(webhook.MemoryOptions{MaxEvents: 3})
		put := func(id string) (webhook.Entry, error) { return s.Put(t.Context(), record(id)) }
		for i := range 5 {
			_, err := put(fmt.Sprint(i))
			require.NoError(t, err)
			complete(t, s, fmt.Sprint(i))
			time.Sleep(time.Minute)
		}
		remembers, err := s.Remembers(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 4*time.Minute, remembers, "0 and 1 were evicted; 1 was done at minute 1")
		e, err := put("4")
		require.NoError(t, err)
		assert.Equal(t, webhook.StateDone, e.State)

		// Waiting events were not acknowledged, so they are evicted too.
		for _, id := range []string{"a", "b", "c", "d"} {
			_, err := put(id)
			require.NoError(t, err)
		}
		e, err = put("a")
		require.NoError(t, err)
		assert.True(t, e.Added, "forgotten, and therefore new")

		// Claimed events and dead letters are not evicted.
		for _, id := range []string{"a", "c", "d"} {
			c, _, err := s.Claim(t.Context(), "id "+id, time.Minute)
			require.NoError(t, err)
			require.NotNil(t, c)
			if id == "d" {
				require.NoError(t, s.Settle(t.Context(), c, webhook.Disposition{State: webhook.StateDead, Reason: "for ever"}))
			}
		}
		_, err = put("e")
		assert.Equal(t, webhook.ErrStoreFull, err)
	})
}

func TestTheMemoryStoreForgetsAfterTheRetention(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := webhook.NewMemoryStore(webhook.MemoryOptions{TTL: time.Hour})
		for _, id := range []string{"old", "young"} {
			_, err := s.Put(t.Context(), record(id))
			require.NoError(t, err)
			complete(t, s, id)
			time.Sleep(31 * time.Minute)
		}
		n, err := s.Purge(t.Context())
		require.NoError(t, err)
		assert.Equal(t, webhook.Purged{Done: 1}, n)
		for id, want := range map[string]bool{"old": true, "young": false} {
			e, err := s.Put(t.Context(), record(id))
			require.NoError(t, err)
			assert.Equal(t, want, e.Added, id)
		}
	})
}

// A store that was just started has no record of the events that its
// predecessor handled.
func TestAnOldPaymentCannotBeReplayedAfterARestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := &fakeAPI{}
		paidAt := time.Now()
		at := paidAt.UTC().Format(time.RFC3339)
		api.setTransaction("tx_1", "paid", "paid_at", at, "updated_at", at)
		shipped := 0
		start := func() *webhook.Receiver {
			rx := receiver(t, webhook.Config{API: api.client(t), Logger: quiet})
			webhook.OnTransaction(rx, webhook.TransactionPaid, func(context.Context, *webhook.TransactionEvent) error {
				shipped++
				return nil
			})
			return rx
		}
		assert.Equal(t, received, response(start(), request(paid("evt_1", "tx_1"))))
		time.Sleep(time.Minute)
		assert.Equal(t, received, response(start(), request(paid("evt_1", "tx_1"))), "probably in flight while the process restarted")
		time.Sleep(6 * 24 * time.Hour)
		restarted := start()
		time.Sleep(time.Hour)
		assert.Equal(t, `401 {"error":"unconfirmed_event"}`, response(restarted, request(paid("evt_2", "tx_1"))))
		assert.Equal(t, 2, shipped)
	})
}

func TestTheMemoryStoreSurvivesAClockThatIsSetBack(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := webhook.NewMemoryStore(webhook.MemoryOptions{Now: func() time.Time { return now }})
	for _, id := range []string{"leased", "failed"} {
		_, err := s.Put(t.Context(), record(id))
		require.NoError(t, err)
	}
	_, _, err := s.Claim(t.Context(), "id leased", time.Minute)
	require.NoError(t, err)
	failed, _, err := s.Claim(t.Context(), "id failed", time.Minute)
	require.NoError(t, err)
	require.NoError(t, s.Settle(t.Context(), failed, webhook.Disposition{State: webhook.StateWaiting, Delay: time.Minute, Reason: ""}))
	now = now.Add(-3 * time.Hour)
	claims, err := s.Next(t.Context(), 10, time.Minute)
	require.NoError(t, err)
	assert.Empty(t, claims)
	now = now.Add(2 * time.Minute)
	claims, err = s.Next(t.Context(), 10, time.Minute)
	require.NoError(t, err)
	assert.Len(t, claims, 2)
}
