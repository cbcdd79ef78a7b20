package webhooks_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/sqlstore"
	"github.com/gateway-go/gateway/webhook/webhooktest"
)

// TestSnapshots stores and handles 800 events a second while three overlapping
// transactions hold snapshots, each for the duration in SNAPSHOTS:
//
//	SNAPSHOTS=120s integration/run -run TestSnapshots -v ./webhooks
//
//nolint:paralleltest // it measures latency
func TestSnapshots(t *testing.T) {
	text, dsn := os.Getenv("SNAPSHOTS"), os.Getenv("DATABASE_URL")
	if text == "" || dsn == "" {
		t.Skip("SNAPSHOTS is not set; TestAClaimSkipsRowsThatASnapshotKeepsFromVacuum counts buffers instead")
	}
	hold, err := time.ParseDuration(text)
	require.NoError(t, err)
	db, err := sql.Open("pgx", dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(40)
	db.SetMaxIdleConns(40)
	s := newStore(t, db, postgres)
	name, _ := business(t, db)
	table := tableOf(t, s)

	ctx, stop := context.WithCancel(t.Context())
	var holders sync.WaitGroup
	for i := range 3 {
		holders.Go(func() { holdSnapshots(ctx, t, db, table, hold, time.Duration(i)*hold/3) })
	}
	var l latencies
	rx, err := webhook.New(webhook.Config{Keys: keys, Account: "shop", Store: s, Logger: quiet, Mode: webhook.Inbox, Workers: 16, HandleStale: true})
	require.NoError(t, err)
	webhook.OnOther(rx, sqlstore.HandleTx(s, func(ctx context.Context, tx *sql.Tx, e *webhook.Event) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO "+name+" (event_id) VALUES ($1)", e.ID)
		l.end(e.ID)
		return err
	}))
	rx.Start()
	l.send(t, rx, 800, 2*hold)
	require.Eventually(t, func() bool { return l.waiting() == 0 }, time.Minute, 10*time.Millisecond)
	stop()
	holders.Wait()
	require.NoError(t, rx.Shutdown(t.Context()))
	p50, p99 := l.percentiles()
	fmt.Printf("%d events under snapshots of %v: p50 %v, p99 %v from the delivery to the handler's end, at most %d waited\n",
		len(l.took), hold, p50.Round(time.Millisecond), p99.Round(time.Millisecond), l.most)
	assert.Less(t, l.most, 1000)
	assert.Less(t, p99, 250*time.Millisecond)
}

// holdSnapshots holds one snapshot after the other, the first after a delay.
func holdSnapshots(ctx context.Context, t *testing.T, db *sql.DB, table string, hold, delay time.Duration) {
	t.Helper()
	for wait := delay; ; wait = 0 {
		if !pause(ctx, wait) {
			return
		}
		tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
		if err != nil {
			assert.ErrorIs(t, err, context.Canceled)
			return
		}
		if _, err = tx.Exec("SELECT COUNT(*) FROM " + table); err != nil {
			t.Error(err) // not require, which must not be called outside the test's own goroutine
		}
		pause(ctx, hold)
		_ = tx.Rollback()
	}
}

func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// latencies measures how long events take from delivery to the end of their
// handler.
type latencies struct {
	mu    sync.Mutex
	began map[string]time.Time
	took  []time.Duration
	most  int
}

// send delivers a number of events per second for a while, three per resource.
func (l *latencies) send(t *testing.T, rx *webhook.Receiver, perSecond int, span time.Duration) {
	t.Helper()
	l.began = make(map[string]time.Time)
	var senders sync.WaitGroup
	defer senders.Wait()
	slots := make(chan struct{}, 16)
	start := time.Now()
	for i := 0; time.Since(start) < span; i++ {
		time.Sleep(time.Until(start.Add(time.Duration(i) * time.Second / time.Duration(perSecond))))
		slots <- struct{}{}
		senders.Go(func() {
			id := fmt.Sprintf("e%d", i)
			body := webhooktest.Event{Kind: webhook.TransactionPaid, ID: id, ResourceID: fmt.Sprintf("tx%d", i/3)}.Body()
			l.begin(id)
			got := rx.Receive(t.Context(), webhook.Delivery{Header: webhooktest.Sign(webhooktest.Secret(), time.Now(), body), Body: body})
			assert.Equal(t, 200, got.Status)
			<-slots
		})
	}
}

func (l *latencies) begin(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.began[id] = time.Now()
	l.most = max(l.most, len(l.began))
}

func (l *latencies) end(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if began, ok := l.began[id]; ok {
		l.took = append(l.took, time.Since(began))
		delete(l.began, id)
	}
}

func (l *latencies) waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.began)
}

func (l *latencies) percentiles() (p50, p99 time.Duration) {
	slices.Sort(l.took)
	return l.took[len(l.took)/2], l.took[len(l.took)*99/100]
}
