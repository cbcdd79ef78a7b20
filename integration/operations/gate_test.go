package operations_test

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/gate"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/operations"
)

// refusals is a gate that refuses the next requests of some names, as a closed one does.
type refusals struct {
	mu   sync.Mutex
	left map[string]int
}

func (r *refusals) Enter(_ context.Context, a gateway.Attempt) (func(gateway.AttemptResult) bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left[a.Name]--; r.left[a.Name] >= 0 {
		return nil, &gate.ClosedError{Account: "shop", Since: time.Now(), Status: 503}
	}
	return nil, nil
}

func (r *refusals) refuse(name string, times int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left[name] = times
}

// What a closed gate refuses is proven to be not sent: it is not in doubt, not counted, not
// ambiguous, and due again at once.
func TestARefusalOfTheGateIsNotCounted(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		refused map[string]int
		lost    bool // the response to the first request
		sends   int
	}{
		"the read before":       {refused: map[string]int{"transactions.get": 3}, sends: 1},
		"the request":           {refused: map[string]int{"transactions.refund": 3}, sends: 1},
		"both":                  {refused: map[string]int{"transactions.get": 2, "transactions.refund": 2}, sends: 1},
		"reads after the doubt": {refused: map[string]int{"transactions.get": 3}, lost: true, sends: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gw := mockserver.Run(t, mockserver.WithStart(time.Now()))
			charge, err := gw.Client().Transactions.Create(t.Context(), order("", 10_000))
			require.NoError(t, err)
			require.NoError(t, gw.Transactions.Pay(charge.ID))
			db, err := onSQLite.connect(onSQLite.create(t))
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, db.Close()) })
			g := &refusals{left: make(map[string]int)}
			var mu sync.Mutex
			events := make(map[operations.Event]int)
			o, err := operations.New(database.SQLite(db), operations.Config{
				Client: gw.Client(gateway.WithAccount("shop"), gateway.WithGate(g)), Logger: quiet, PollInterval: 20 * time.Millisecond,
				SendTimeout: 2 * time.Second, SettleAfter: 4 * time.Second, MaxSends: 2,
				Observe: func(_ context.Context, ob operations.Observation) {
					mu.Lock()
					defer mu.Unlock()
					events[ob.Event]++
					if tc.lost && ob.Event == operations.EventUnknown {
						for name, times := range tc.refused {
							g.refuse(name, times)
						}
					}
				},
			})
			require.NoError(t, err)
			require.NoError(t, o.Migrate(t.Context()))
			done := make(chan operations.RefundResult, 1)
			operations.OnResult(o, func(_ context.Context, _ *sql.Tx, r operations.RefundResult) error {
				done <- r
				return nil
			})
			if tc.lost {
				require.NoError(t, gw.Faults.Add(mockserver.LoseResponse().On("transactions.refund").Times(1)))
			} else {
				for name, times := range tc.refused {
					g.refuse(name, times)
				}
			}
			tx, err := db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			_, err = o.InsertTx(t.Context(), tx, operations.Refund{Key: "r", TransactionID: charge.ID, Amount: 100})
			require.NoError(t, err)
			require.NoError(t, tx.Commit())
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- o.Run(ctx) }()
			r := <-done
			cancel()
			require.NoError(t, errors.Join(<-ended, r.Err))
			assert.Equal(t, tc.sends, r.Entry.Sends)
			now, err := gw.Client().Transactions.Get(t.Context(), charge.ID)
			require.NoError(t, err)
			assert.EqualValues(t, 100, now.RefundedAmount)
			want := map[operations.Event]int{operations.EventDone: 1}
			if tc.lost {
				want[operations.EventUnknown] = 1
			}
			mu.Lock()
			defer mu.Unlock()
			assert.Equal(t, want, events)
		})
	}
}

// A repeat of a create that the gate refuses leaves it as it was: its outcome is not known, and
// nothing is counted.
func TestARefusedRepeatIsNotCounted(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t, mockserver.WithStart(time.Now()))
	db, err := onSQLite.connect(onSQLite.create(t))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, db.Close()) })
	g := &refusals{left: make(map[string]int)}
	o, err := operations.New(database.SQLite(db), operations.Config{
		Client: gw.Client(gateway.WithAccount("shop"), gateway.WithGate(g)), Logger: quiet, MaxSends: 2,
		Observe: func(_ context.Context, ob operations.Observation) {
			if ob.Event == operations.EventUnknown {
				g.refuse("transactions.create", 3)
			}
		},
	})
	require.NoError(t, err)
	require.NoError(t, o.Migrate(t.Context()))
	done := make(chan operations.TransactionResult, 1)
	operations.OnResult(o, func(_ context.Context, _ *sql.Tx, r operations.TransactionResult) error {
		done <- r
		return nil
	})
	require.NoError(t, gw.Faults.Add(mockserver.LoseResponse().On("transactions.create").Times(1)))
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	e, err := o.InsertTx(t.Context(), tx, operations.CreateTransaction(order("A1", 1000)))
	require.NoError(t, err)
	require.NoError(t, tx.Commit())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- o.Run(ctx) }()
	r := <-done
	cancel()
	require.NoError(t, errors.Join(<-ended, r.Err))
	assert.Equal(t, e.ID, r.Entry.ID)
	assert.Equal(t, 2, r.Entry.Sends)
	require.NotNil(t, r.Value)
	assert.Equal(t, "A1", r.Value.ExternalRef)
}
