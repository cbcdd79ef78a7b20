package operations_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/operations"
)

func TestATransactionFindsAnOperation(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, e engine) {
		t.Helper()
		w := open(t, e, nil)
		other := w.beside("Shop.B")
		const kind, key = "transactions.create", "order-1"
		ops := []operations.Operation{operations.CreateTransaction(order(key, 500))}
		missing := func(o outbox, kind, key string) {
			_, err := o.find(t.Context(), nil, kind, key)
			require.ErrorIs(t, err, operations.ErrNotFound)
			require.ErrorContains(t, err, kind+" "+key)
		}
		missing(w.outbox, kind, key)

		rolledBack, err := w.outbox.find(t.Context(), ops, kind, key, errRolledBack)
		require.ErrorIs(t, err, errRolledBack)
		assert.Equal(t, operations.Waiting, rolledBack.State, "the inserting transaction sees it")
		missing(w.outbox, kind, key)

		inserted := w.add(ops...)[0]
		found, err := w.outbox.find(t.Context(), nil, kind, key)
		require.NoError(t, err)
		assert.Equal(t, inserted, found)
		assert.False(t, found.Existing)
		missing(w.outbox, "transfers.create", key)
		missing(w.outbox, kind, "order-2")
		missing(other.outbox, kind, key)

		theirs := other.add(operations.CreateTransaction(order(key, 700)))[0]
		found, err = other.outbox.find(t.Context(), nil, kind, key)
		require.NoError(t, err)
		assert.Equal(t, theirs.ID, found.ID)
		assert.Equal(t, "Shop.B", found.Account)

		w.start(w.outbox)
		w.reaches(key, operations.Done)
		found, err = w.outbox.find(t.Context(), nil, kind, key)
		require.NoError(t, err)
		assert.Equal(t, inserted.ID, found.ID)
		assert.Equal(t, operations.Done, found.State)
		assert.NotEmpty(t, found.History)
	})
}
