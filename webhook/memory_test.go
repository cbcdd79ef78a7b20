package webhook_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/webhooktest"
)

func TestTheMemoryStoreIsAStore(t *testing.T) {
	t.Parallel()
	webhooktest.RunStore(t, func() webhook.Store { return webhook.NewMemoryStore(webhook.MemoryOptions{}) })
}

func record(id string) webhook.Record {
	return webhook.Record{Key: "id " + id, EventID: id, Resource: "transaction/" + id, Signed: true, Body: []byte("{}")}
}

func complete(t *testing.T, s webhook.Store, id string) {
	t.Helper()
	c, _, err := s.Claim(t.Context(), "id "+id, time.Minute)
	require.NoError(t, err)
	require.NotNil(t, c)
	require.NoError(t, s.Complete(t.Context(), c))
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
		assert.Equal(t, 4*time.Minute, s.Remembers(), "0 and 1 had to make room; 1 was done at minute 1")
		e, err := put("4")
		require.NoError(t, err)
		assert.Equal(t, webhook.StateDone, e.State)

		// Nobody was promised anything about waiting events: they give way too.
		for _, id := range []string{"a", "b", "c", "d"} {
			_, err := put(id)
			require.NoError(t, err)
		}
		e, err = put("a")
		require.NoError(t, err)
		assert.True(t, e.Added, "forgotten, and so new again")

		// Claimed events and dead letters do not.
		for _, id := range []string{"a", "c", "d"} {
			c, _, err := s.Claim(t.Context(), "id "+id, time.Minute)
			require.NoError(t, err)
			require.NotNil(t, c)
			if id == "d" {
				require.NoError(t, s.Bury(t.Context(), c, "for ever"))
			}
		}
		_, err = put("e")
		assert.Equal(t, webhook.ErrStoreFull, err)
	})
}

func TestTheMemoryStoreForgetsInTime(t *testing.T) {
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
		assert.Equal(t, 1, n)
		for id, want := range map[string]bool{"old": true, "young": false} {
			e, err := s.Put(t.Context(), record(id))
			require.NoError(t, err)
			assert.Equal(t, want, e.Added, id)
		}
	})
}
