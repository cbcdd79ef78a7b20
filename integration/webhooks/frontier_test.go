package webhooks_test

import (
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/webhook/sqlstore"
)

// A process remembers the position up to which its inbox is handled. Due
// events before that position must still be found.

// passed calls Next until the store's position is past its current events.
func passed(t *testing.T, s *sqlstore.Store[*sql.Tx]) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); {
		claims, err := s.Next(t.Context(), 10, time.Minute)
		require.NoError(t, err)
		require.Empty(t, claims)
		time.Sleep(50 * time.Millisecond)
	}
}

func TestTheNextEventOfAResourceIsFoundHoweverLongTheFirstTook(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d target) {
		t.Helper()
		ctx := t.Context()
		s := newStore(t, d.open(t), d)
		for _, id := range []string{"e1", "e2", "e3"} {
			_, err := s.Put(ctx, record(id, "tx"))
			require.NoError(t, err)
		}
		slow, err := s.Next(ctx, 10, time.Minute)
		require.NoError(t, err)
		require.Len(t, slow, 1)
		passed(t, s)
		_, err = s.Put(ctx, record("e4", "tx"))
		require.NoError(t, err)
		require.NoError(t, s.Settle(ctx, slow[0], done))
		for _, id := range []string{"e2", "e3", "e4"} {
			claims, err := s.Next(ctx, 10, time.Minute)
			require.NoError(t, err)
			require.Len(t, claims, 1)
			assert.Equal(t, id, claims[0].EventID)
			require.NoError(t, s.Settle(ctx, claims[0], done))
		}
	})
}

// An event that is committed late is found, no later one of its resource is handled
// before it, and those of other resources don't wait for it.
func TestAnEventThatIsCommittedLateIsNotOvertaken(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d target) {
		t.Helper()
		if d.dialect != database.DialectPostgres {
			t.Skip("SQLite has one writer at a time")
		}
		ctx := t.Context()
		db := d.open(t)
		s := newStore(t, db, d)
		late, err := db.BeginTx(ctx, nil)
		require.NoError(t, err)
		defer func() { _ = late.Rollback() }()
		in := inboxTable{db: late, name: tableOf(t, s), account: "shop"}
		in.add(t, "late", 20, 1, 0)
		passed(t, s)
		require.NoError(t, late.Commit())
		for i := range 20 {
			_, err = s.Put(ctx, record(fmt.Sprintf("next%d", i+1), fmt.Sprintf("late%d", i+1)))
			require.NoError(t, err)
		}
		_, err = s.Put(ctx, record("other", "other"))
		require.NoError(t, err)
		claims, err := s.Next(ctx, 10, time.Minute)
		require.NoError(t, err)
		require.Len(t, claims, 1)
		assert.Equal(t, "other", claims[0].EventID)
		require.Eventually(t, func() bool {
			claims, err = s.Next(ctx, 10, time.Minute)
			require.NoError(t, err)
			return len(claims) > 0
		}, 2*time.Minute, 100*time.Millisecond)
		for i, c := range claims {
			assert.Equal(t, fmt.Sprintf("late%d", i+1), c.EventID)
		}
	})
}

// A lease that expires while a long HandleTx holds a lock on its row ends when
// the lock is released.
func TestALeaseThatExpiredUnderALockIsReclaimed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d target) {
		t.Helper()
		if d.dialect != database.DialectPostgres {
			t.Skip("SQLite locks no rows")
		}
		ctx := t.Context()
		db := d.open(t)
		s := newStore(t, db, d)
		_, err := s.Put(ctx, record("e1", "tx"))
		require.NoError(t, err)
		claims, err := s.Next(ctx, 1, 100*time.Millisecond)
		require.NoError(t, err)
		require.Len(t, claims, 1)
		handler, err := db.BeginTx(ctx, nil)
		require.NoError(t, err)
		defer func() { _ = handler.Rollback() }()
		_, err = handler.ExecContext(ctx, "SELECT seq FROM "+tableOf(t, s)+" FOR UPDATE")
		require.NoError(t, err)
		passed(t, s)
		require.NoError(t, handler.Rollback())
		require.Eventually(t, func() bool {
			claims, err = s.Next(ctx, 1, time.Minute)
			require.NoError(t, err)
			return len(claims) > 0
		}, 2*time.Minute, 100*time.Millisecond)
		assert.Equal(t, 1, claims[0].Expired)
	})
}
