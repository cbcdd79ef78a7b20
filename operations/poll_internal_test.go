package operations

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/sqldb"
)

// emptyDatabase is a database with one account and no operations.
type emptyDatabase struct {
	account gateway.Account

	mu      sync.Mutex
	looks   []time.Time // for due operations
	failing bool
}

func (*emptyDatabase) Dialect() database.Dialect   { return database.DialectSQLite }
func (*emptyDatabase) Check(context.Context) error { return nil }
func (*emptyDatabase) Begin(context.Context, sql.IsolationLevel) (int, error) {
	return 0, errors.New("there is nothing to write")
}
func (*emptyDatabase) Commit(context.Context, int) error   { return nil }
func (*emptyDatabase) Rollback(context.Context, int) error { return nil }
func (d *emptyDatabase) In(int) database.Conn              { return d }
func (d *emptyDatabase) Conn() database.Conn               { return d }

func (*emptyDatabase) Exec(context.Context, string, ...any) (int64, error) { return 0, nil }

func (d *emptyDatabase) Query(_ context.Context, query string, _ []any, row func(database.Scanner) error) error {
	if strings.Contains(query, "fingerprint") {
		return row(fingerprint(d.account.Fingerprint))
	}
	if !strings.Contains(query, "gateway_operations") { // package merchant does not have the account
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.looks = append(d.looks, time.Now())
	if d.failing {
		return errors.New("the disk is full")
	}
	return nil
}

type fingerprint string

func (f fingerprint) Scan(columns ...any) error {
	*columns[0].(*string), *columns[1].(*string) = string(f), "key"
	return nil
}

// idle runs an outbox without operations.
func idle(t *testing.T, during func(d *emptyDatabase, o *Outbox[int])) *emptyDatabase {
	t.Helper()
	client, err := gateway.New("https://api.gateway.example", gateway.BearerToken("sk_test_x"), gateway.WithAccount("shop"))
	require.NoError(t, err)
	d := &emptyDatabase{account: client.Account()}
	o, err := New[int](d, Config{Client: client, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- o.Run(ctx) }()
	synctest.Wait()
	during(d, o)
	cancel()
	require.NoError(t, <-ended)
	return d
}

func TestAnIdleOutboxLooksOnceASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := idle(t, func(*emptyDatabase, *Outbox[int]) { time.Sleep(time.Minute + time.Millisecond) })
		assert.Len(t, d.looks, 61)
	})
}

// The commit of a transaction that inserted an operation can't be seen: Run looks
// soon, and then less and less often.
func TestAnInsertedOperationIsLookedForSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var began time.Time
		d := idle(t, func(d *emptyDatabase, o *Outbox[int]) {
			time.Sleep(500 * time.Millisecond)
			d.looks, began = nil, time.Now()
			require.NoError(t, o.wake(t.Context(), sqldb.Tx{}, 1, "transactions.refund"))
			time.Sleep(10 * time.Second)
		})
		var after []time.Duration
		for _, look := range d.looks[:9] {
			after = append(after, look.Sub(began))
		}
		var want []time.Duration
		for at := 5 * time.Millisecond; len(want) < 9; at *= 2 {
			want = append(want, at)
		}
		assert.Equal(t, want, after)
		assert.Len(t, d.looks, 9+8, "then once a second")
	})
}

// Inserting all the time does not put off the looks, and a database that fails is not
// asked more often for it.
func TestLooksAreNeitherPutOffNorHurried(t *testing.T) {
	t.Parallel()
	for name, failing := range map[string]bool{"inserting": false, "failing": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := idle(t, func(d *emptyDatabase, o *Outbox[int]) {
					d.mu.Lock()
					d.failing = failing
					d.mu.Unlock()
					for range 10_000 {
						require.NoError(t, o.wake(t.Context(), sqldb.Tx{}, 1, "transactions.refund"))
						time.Sleep(time.Millisecond)
					}
				})
				if failing {
					assert.LessOrEqual(t, len(d.looks), 13)
				} else {
					assert.InDelta(t, 2000, len(d.looks), 100)
				}
			})
		})
	}
}
