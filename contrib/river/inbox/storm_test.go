package inbox_test

import (
	"bytes"
	"context"
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
	"github.com/gateway-go/gateway/webhook/webhooktest"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/contrib/river/inbox"
)

// Four processes share a database. The mock gateway sends them events, some twice,
// late, or with a wrong signature; somebody forges more; the processes are killed
// from outside and by their own handlers, between the effect and the commit. Each
// event must have exactly one effect, and nothing else may have one.
//
//	DELIVERIES=100000 ../../../integration/with-postgres go test -timeout 3h -run TestRiverStorm -v .
//
//nolint:paralleltest // the machine may be small
func TestRiverStorm(t *testing.T) {
	n := 1200
	if text := os.Getenv("DELIVERIES"); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		require.NoError(t, err, "DELIVERIES")
	}
	url := newDatabase(t)
	pool := newPool(t, url)
	in, err := inbox.New(inbox.Config{Pool: pool, Logger: quiet})
	require.NoError(t, err)
	require.NoError(t, in.Migrate(t.Context()))
	f := startFleet(t, 4, processSpec{URL: url, Suicide: 0.004, Fails: 0.02})
	ways := &balancer{
		fleet: f, sent: map[string]bool{}, acked: map[string]int{}, statuses: map[int]int{},
		http: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 16}},
	}
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

	began := time.Now()
	ctx, calm := context.WithCancel(t.Context())
	var trouble sync.WaitGroup
	trouble.Go(func() { f.killNowAndThen(ctx, 500*time.Millisecond) })
	trouble.Go(func() { ways.forgeNowAndThen(ctx, 5*time.Millisecond) })
	sell(t, gw, n)
	require.NoError(t, gw.Wait(t.Context()))
	for range 12 { // the gateway's own schedule, as far as it goes
		require.NoError(t, gw.Clock.Advance(8*time.Hour))
	}
	require.NoError(t, gw.Wait(t.Context()))
	calm()
	trouble.Wait()
	drained := assert.Eventually(t, func() bool {
		n, err := in.Counts(t.Context())
		require.NoError(t, err)
		return n.Waiting == 0 && n.Claimed == 0
	}, 10*time.Minute, 50*time.Millisecond, "events are left in the inbox")
	took := time.Since(began)
	f.stop()
	if drained {
		ways.check(t, pool, in, took)
	}
}

// sell makes transactions until about n events are sent.
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

// balancer stands before the processes, as a load balancer does, and counts.
type balancer struct {
	fleet *fleet
	http  *http.Client

	mu       sync.Mutex
	sent     map[string]bool // the mock's event ids
	acked    map[string]int  // how often each was acknowledged
	statuses map[int]int     // 502 is a process that died
	forged   int
	believed int // forgeries that were acknowledged
}

// ServeHTTP passes a delivery on to some process.
func (b *balancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "unreadable", http.StatusBadRequest)
		return
	}
	status := b.forward(r.Context(), r.Header, body)
	e, err := webhook.Parse(body)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.statuses[status]++
	if err == nil {
		b.sent[e.ID] = true
		if status == http.StatusOK {
			b.acked[e.ID]++
		}
	}
	w.WriteHeader(status)
}

func (b *balancer) forward(ctx context.Context, header http.Header, body []byte) (status int) {
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
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		return res.StatusCode
	}
	return http.StatusBadGateway
}

// forgeNowAndThen sends what the gateway never sent until ctx ends, also with the
// ids of real events.
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
		if real := b.someEvent(); real != "" && rand.IntN(2) == 0 {
			id = real
		}
		body := webhooktest.Event{Kind: webhook.TransactionPaid, ID: id}.Body()
		header := [...]http.Header{
			{"Content-Type": {"application/json"}},
			webhooktest.Sign(gateway.NewSecret("a guess"), time.Now(), body),
			webhooktest.Sign(webhooktest.Secret(), time.Now().Add(-webhook.Tolerance-time.Minute), body),
			webhooktest.Sign(webhooktest.Secret(), time.Now(), []byte(`{"id":"another body"}`)),
		}[rand.IntN(4)]
		status := b.forward(ctx, header, body)
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

// check compares what was sent with the merchant's table.
func (b *balancer) check(t *testing.T, pool interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}, in *inbox.Inbox, took time.Duration,
) {
	t.Helper()
	rows, err := pool.Query(t.Context(), `SELECT event_id, COUNT(*) FROM effects GROUP BY event_id`)
	require.NoError(t, err)
	effects := map[string]int{}
	var id string
	var n, lost, double, foreign, taken int
	_, err = pgx.ForEachRow(rows, []any{&id, &n}, func() error { effects[id] = n; return nil })
	require.NoError(t, err)
	for id := range b.sent {
		if effects[id] == 0 {
			lost++
		}
	}
	for id, n := range effects {
		if n > 1 {
			double++
		}
		if !b.sent[id] {
			foreign++
		}
	}
	rows, err = pool.Query(t.Context(), `SELECT COUNT(*) FROM `+in.Table()+` WHERE attempts > 1`)
	require.NoError(t, err)
	taken, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
	require.NoError(t, err)
	counts, err := in.Counts(t.Context())
	require.NoError(t, err)
	fmt.Printf("%s: %d events, responses %v, %d forgeries, %d kills, done in %v (%.0f events/s): "+
		"%d effects, %d lost, %d double, %d forged; %d events took more than one attempt; left: %+v\n",
		t.Name(), len(b.sent), b.statuses, b.forged, b.fleet.kills, took.Round(time.Millisecond), float64(len(b.sent))/took.Seconds(),
		len(effects), lost, double, foreign, taken, counts)
	assert.Zero(t, lost)
	assert.Zero(t, double)
	assert.Zero(t, foreign)
	assert.Zero(t, b.believed, "forgeries were acknowledged")
	assert.Len(t, b.acked, len(b.sent), "events were never acknowledged")
	assert.Equal(t, webhook.Counts{}, counts)
	// The trouble must have been there.
	assert.Positive(t, taken)
	assert.Positive(t, b.forged)
	assert.Positive(t, b.statuses[http.StatusUnauthorized])
	assert.Positive(t, b.fleet.kills)
}
