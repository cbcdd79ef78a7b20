package webhooks_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/sqlstore"
	"github.com/gateway-go/gateway/webhook/webhooktest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const processes = 8

// deliveries is how many events the mock sends: few where every change is
// checked, DELIVERIES of them otherwise.
func deliveries(t *testing.T, few int) int {
	t.Helper()
	text := os.Getenv("DELIVERIES")
	if text == "" {
		return few
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, "DELIVERIES")
	return n
}

// Eight processes share one database and one merchant's table. The mock sends
// them events; some twice, some late, some with a wrong signature or a stale
// one; somebody forges more; and the processes are killed, also by their own
// handlers between claim and completion. Every event must be in the table
// exactly once, and nothing else.
//
//nolint:paralleltest // one database after the other: the machine may be small
func TestReceivers(t *testing.T) {
	few := map[string]int{"PostgreSQL": 4000, "SQLite": 1500}
	for _, d := range databases(t) {
		t.Run(d.name, func(t *testing.T) {
			storm(t, d, deliveries(t, few[d.name]))
		})
	}
}

func storm(t *testing.T, d database, n int) {
	t.Helper()
	dsn := d.dsn(t)
	db, err := sql.Open(d.driver, dsn)
	require.NoError(t, err)
	defer func() { _ = db.Close() }()
	store := newStore(t, db, d)
	name, _ := business(t, db)
	f := startFleet(t, processes, processSpec{
		Driver: d.driver, DSN: dsn, Dialect: d.dialect, Events: store.Table(), Business: name, Suicide: 0.004,
	})

	ways := newBalancer(f)
	gw := newMock(t, ways)
	began := time.Now()
	ctx, calm := context.WithCancel(t.Context())
	var trouble sync.WaitGroup
	trouble.Go(func() { f.killNowAndThen(ctx, 400*time.Millisecond) })
	trouble.Go(func() { ways.forgeNowAndThen(ctx, 2*time.Millisecond) })

	sell(t, gw, n)
	require.NoError(t, gw.Wait(t.Context()))
	for range 12 { // the gateway's own schedule, as far as it goes
		require.NoError(t, gw.Clock.Advance(8*time.Hour))
	}
	require.NoError(t, gw.Wait(t.Context()))
	sent := time.Since(began)
	calm()
	trouble.Wait()
	drained(t, store)
	took := time.Since(began)
	f.stop()

	ways.report(t, f, took, sent)
	check(t, db, store, name, ways)
}

func newMock(t *testing.T, ways http.Handler) *mockserver.Server {
	t.Helper()
	gw, err := mockserver.New(mockserver.WithSeed(1), mockserver.WithWebhookSecret(webhooktest.Secret()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = gw.Close() })
	gw.Webhooks.Send(ways)
	require.NoError(t, gw.Faults.Add(
		mockserver.DuplicateWebhook().Probability(0.15),
		mockserver.DelayWebhook(time.Minute).Probability(0.1),
		mockserver.CorruptSignature().Probability(0.05),
		mockserver.StaleTimestamp().Probability(0.02),
	))
	return gw
}

// sell makes transactions until about n events are sent: created, pending and
// paid, and two refunds for some.
func sell(t *testing.T, gw *mockserver.Server, n int) {
	t.Helper()
	client := gw.Client()
	var next atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for next.Add(4) <= int64(n) {
				tx, err := client.Transactions.Create(t.Context(), gateway.TransactionParams{
					Amount: 1990, Method: gateway.Pix, Buyer: gateway.BuyerParams{Name: "Ana", Email: "ana@example.com"},
					Products: []gateway.Product{{Name: "Mug", Price: 1990}},
				})
				if !assert.NoError(t, err) || !assert.NoError(t, gw.Transactions.Pay(tx.ID)) {
					return
				}
				_, err = client.Transactions.Refund(t.Context(), tx.ID, gateway.RefundParams{Amount: 500})
				assert.NoError(t, err)
			}
		})
	}
	all.Wait()
}

// drained waits until the inbox is empty.
func drained(t *testing.T, store *sqlstore.Store) {
	t.Helper()
	require.Eventually(t, func() bool {
		n, err := store.Counts(t.Context())
		require.NoError(t, err)
		return n.Waiting == 0 && n.Claimed == 0
	}, 10*time.Minute, 20*time.Millisecond, "events are left in the inbox")
}

// balancer stands before the processes, as a load balancer does, and counts.
type balancer struct {
	fleet *fleet
	http  *http.Client

	mu       sync.Mutex
	sent     map[string]bool // event ids that the mock sent
	acked    map[string]int  // and how often each was answered with 200
	answers  map[int]int     // by status; 502 is a process that died or is not there
	forged   int
	believed int // forgeries that were answered with 2xx
}

func newBalancer(f *fleet) *balancer {
	return &balancer{
		fleet: f, sent: map[string]bool{}, acked: map[string]int{}, answers: map[int]int{},
		http: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 16}},
	}
}

// ServeHTTP passes a delivery on to some process.
func (b *balancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "unreadable", http.StatusBadRequest)
		return
	}
	status, answer := b.forward(r.Context(), r.Header, body)
	b.note(body, status)
	w.WriteHeader(status)
	_, _ = w.Write(answer)
}

func (b *balancer) note(body []byte, status int) {
	e, err := webhook.Parse(body)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answers[status]++
	if err != nil {
		return
	}
	b.sent[e.ID] = true
	if status == http.StatusOK {
		b.acked[e.ID]++
	}
}

func (b *balancer) forward(ctx context.Context, header http.Header, body []byte) (int, []byte) {
	for range 3 { // another process, where one is not there
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+b.fleet.addr()+"/webhooks", bytes.NewReader(body))
		if err != nil {
			break
		}
		req.Header = header.Clone()
		res, err := b.http.Do(req)
		if err != nil {
			continue
		}
		answer, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err == nil {
			return res.StatusCode, answer
		}
	}
	return http.StatusBadGateway, nil
}

// forgeNowAndThen sends what the gateway never sent, until ctx ends: unsigned,
// signed by a guess, signed for another body, too old, and with ids of real
// events.
func (b *balancer) forgeNowAndThen(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		id := "forged-" + webhooktest.NewID()
		body := webhooktest.Event{Kind: webhook.TransactionPaid, ID: id}.Body()
		if real := b.someEvent(); real != "" && rand.IntN(2) == 0 {
			body = webhooktest.Event{Kind: webhook.TransactionPaid, ID: real}.Body()
		}
		header := [...]http.Header{
			{"Content-Type": {"application/json"}},
			webhooktest.Sign(gateway.NewSecret("a guess"), time.Now(), body),
			webhooktest.Sign(webhooktest.Secret(), time.Now().Add(-webhook.Tolerance-time.Minute), body),
			webhooktest.Sign(webhooktest.Secret(), time.Now(), []byte(`{"id":"another body"}`)),
		}[rand.IntN(4)]
		status, _ := b.forward(ctx, header, body)
		b.mu.Lock()
		b.forged++
		if status/100 == 2 {
			b.believed++
		}
		b.mu.Unlock()
	}
}

func (b *balancer) someEvent() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id := range b.sent {
		return id
	}
	return ""
}

func (b *balancer) report(t *testing.T, f *fleet, took, sent time.Duration) {
	t.Helper()
	total := 0
	for _, n := range b.answers {
		total += n
	}
	again := 0
	for _, n := range b.acked {
		again += n - 1
	}
	fmt.Printf("%s: %d events, %d deliveries, answers %v, %d acknowledged again, %d forgeries, %d kills, sent in %v, done in %v (%.0f events/s)\n",
		t.Name(), len(b.sent), total, b.answers, again, b.forged, f.kills, sent.Round(time.Millisecond), took.Round(time.Millisecond),
		float64(len(b.sent))/took.Seconds())
}

// check compares what was sent with the merchant's table.
func check(t *testing.T, db *sql.DB, store *sqlstore.Store, name string, b *balancer) {
	t.Helper()
	effects := effectsOf(t, db, name)
	var missing, double, strange int
	for id := range b.sent {
		switch n := effects[id]; {
		case n == 0:
			missing++
		case n > 1:
			double++
		}
	}
	for id := range effects {
		if !b.sent[id] {
			strange++
		}
	}
	var takenOver int
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+store.Table()+" WHERE attempts > 1").Scan(&takenOver))
	counts, err := store.Counts(t.Context())
	require.NoError(t, err)
	fmt.Printf("%s: %d effects: %d missing, %d double, %d of nobody's; %d events taken over from a dead process; left: %+v\n",
		t.Name(), len(effects), missing, double, strange, takenOver, counts)

	assert.Zero(t, missing, "events without an effect")
	assert.Zero(t, double, "events with two effects")
	assert.Zero(t, strange, "effects of what nobody sent")
	assert.Len(t, effects, len(b.sent))
	assert.Len(t, b.acked, len(b.sent), "events that were never acknowledged")
	assert.Zero(t, b.believed, "forgeries that were believed")
	assert.Equal(t, webhook.Counts{}, counts)
	// The trouble must have been there.
	assert.Positive(t, takenOver)
	assert.Positive(t, b.forged)
	assert.Positive(t, b.answers[http.StatusUnauthorized])
}

func effectsOf(t *testing.T, db *sql.DB, name string) map[string]int {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT event_id, COUNT(*) FROM "+name+" GROUP BY event_id")
	require.NoError(t, err)
	defer func() { _ = rows.Close() }()
	effects := make(map[string]int)
	for rows.Next() {
		var id string
		var n int
		require.NoError(t, rows.Scan(&id, &n))
		effects[id] = n
	}
	require.NoError(t, rows.Err())
	return effects
}
