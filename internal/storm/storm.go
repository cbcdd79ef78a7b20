// Package storm load-tests inboxes under faults: a merchant's processes, behind a
// load balancer, are killed and restarted while a mock gateway sends them events
// and an attacker sends forged ones. Only tests import it.
package storm

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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/webhooktest"
)

// Number returns the number in an environment variable, or fallback if the
// variable is not set.
func Number(t *testing.T, variable string, fallback int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return fallback
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, variable)
	return n
}

// Storm is a load test of a fleet, with faults.
type Storm struct {
	Fleet      *Fleet
	Deliveries int // the approximate number of events that the gateway sends

	// Faults follow the deliveries and not the clock: a slow machine has as many as a
	// fast one.
	KillEach int // a process is killed after this many deliveries
	Forge    int // forgeries for every delivery

	Drained func() bool // whether the inbox is empty; called until it is

	http *http.Client

	mu         sync.Mutex
	sent       map[string]bool // the events that the gateway sent
	acked      map[string]int  // how often each was acknowledged
	deliveries int
	statuses   map[int]int // how often each status was returned; 502 means that processes were killed
	forged     int
	accepted   int // forgeries that were acknowledged
	took       time.Duration
	due        chan struct{} // has an element for each forgery that is due
}

// Run makes the mock gateway send events while processes are killed and forged
// events arrive, then waits until the inbox is empty and stops the fleet.
func (s *Storm) Run(t *testing.T) {
	t.Helper()
	s.http = &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	s.sent, s.acked, s.statuses = make(map[string]bool), make(map[string]int), make(map[int]int)
	s.due = make(chan struct{}, 64)
	gw := newGateway(t, s)
	began := time.Now()
	ctx, stopFaults := context.WithCancel(t.Context())
	var faults sync.WaitGroup
	faults.Go(func() { s.sendForgeries(ctx) })
	sell(t, gw, s.Deliveries)
	require.NoError(t, gw.Wait(t.Context()))
	require.NoError(t, gw.Clock.Advance(10*time.Minute)) // for delayed deliveries and the first redeliveries
	require.NoError(t, gw.Wait(t.Context()))
	stopFaults()
	faults.Wait()
	// The rest of the redelivery schedule takes a day. With faults, the virtual clock
	// could reach its end before the fleet has acknowledged every event.
	for range 12 {
		require.NoError(t, gw.Clock.Advance(8*time.Hour))
	}
	require.NoError(t, gw.Wait(t.Context()))
	drained := assert.Eventually(t, s.Drained, 15*time.Minute, 50*time.Millisecond, "the inbox still has events")
	s.took = time.Since(began)
	s.Fleet.Stop()
	if !drained {
		t.FailNow()
	}
}

// Check compares the sent events with the merchant's effects, counted by event.
// It also prints the store's remaining events and the number of those that took
// more than one attempt.
func (s *Storm) Check(t *testing.T, effects map[string]int, left webhook.Counts, repeated int) {
	t.Helper()
	var lost, double, foreign int
	for id := range s.sent {
		if effects[id] == 0 {
			lost++
		}
	}
	for id, n := range effects {
		if n > 1 {
			double++
		}
		if !s.sent[id] {
			foreign++
		}
	}
	fmt.Printf("%s: %d events, responses %v, %d forgeries, %d kills, done in %v (%.0f events/s): %d effects, %d lost, %d double, "+
		"%d forged; %d events took more than one attempt; left: %+v\n",
		t.Name(), len(s.sent), s.statuses, s.forged, s.Fleet.Kills(), s.took.Round(time.Millisecond), float64(len(s.sent))/s.took.Seconds(),
		len(effects), lost, double, foreign, repeated, left)
	assert.Zero(t, lost, "events without an effect")
	assert.Zero(t, double, "events with two effects")
	assert.Zero(t, foreign, "effects of events that the gateway did not send")
	assert.Len(t, s.acked, len(s.sent), "some events were never acknowledged")
	assert.Zero(t, s.accepted, "forgeries were acknowledged")
	assert.Equal(t, webhook.Counts{}, left)
	// Without faults, the test would prove nothing.
	assert.Positive(t, repeated)
	assert.Positive(t, s.forged)
	assert.Positive(t, s.statuses[http.StatusUnauthorized])
	assert.Positive(t, s.Fleet.Kills())
}

func newGateway(t *testing.T, receiver http.Handler) *mockserver.Server {
	t.Helper()
	gw, err := mockserver.New(mockserver.WithSeed(1), mockserver.WithWebhookSecret(webhooktest.Secret()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = gw.Close() })
	gw.Webhooks.Send(receiver)
	require.NoError(t, gw.Faults.Add(
		mockserver.DuplicateWebhook().Probability(0.15),
		mockserver.DelayWebhook(time.Minute).Probability(0.1),
		mockserver.CorruptSignature().Probability(0.05),
		mockserver.StaleTimestamp().Probability(0.02),
	))
	return gw
}

// sell creates transactions until about n events were sent: created, pending,
// paid and refunded.
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

// ServeHTTP forwards a delivery to a process, like a load balancer, and counts the
// events and responses.
func (s *Storm) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "unreadable", http.StatusBadRequest)
		return
	}
	status := s.forward(r.Context(), r.Header, body)
	e, err := webhook.Parse(body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.statuses[status]++
	if err == nil {
		s.sent[e.ID] = true
		if status == http.StatusOK {
			s.acked[e.ID]++
		}
	}
	s.addFaults()
	w.WriteHeader(status)
}

// addFaults adds the faults of a delivery. The caller holds mu.
func (s *Storm) addFaults() {
	s.deliveries++
	if s.deliveries%s.KillEach == 0 {
		s.Fleet.Kill()
	}
	for range s.Forge {
		select {
		case s.due <- struct{}{}:
		default: // the attacker has enough to do
		}
	}
}

func (s *Storm) forward(ctx context.Context, header http.Header, body []byte) (status int) {
	for range 3 { // tries another process if one is killed
		addr, err := s.Fleet.Addr(ctx)
		if err != nil {
			break
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/webhooks", bytes.NewReader(body))
		if err != nil {
			break
		}
		req.Header = header.Clone()
		resp, err := s.http.Do(req)
		if err != nil {
			continue
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	return http.StatusBadGateway
}

// sendForgeries sends the forgeries that are due until ctx ends: unsigned, signed
// with a guessed key, signed for another body, or too old. Half of them have the
// ids of real events.
func (s *Storm) sendForgeries(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.due:
		}
		id := "forged-" + webhooktest.NewID()
		if real := s.someEvent(); real != "" && rand.IntN(2) == 0 {
			id = real
		}
		body := webhooktest.Event{Kind: webhook.TransactionPaid, ID: id}.Body()
		header := [...]http.Header{
			{"Content-Type": {"application/json"}},
			webhooktest.Sign(gateway.NewSecret("a guess"), time.Now(), body),
			webhooktest.Sign(webhooktest.Secret(), time.Now().Add(-webhook.Tolerance-time.Minute), body),
			webhooktest.Sign(webhooktest.Secret(), time.Now(), []byte(`{"id":"another body"}`)),
		}[rand.IntN(4)]
		status := s.forward(ctx, header, body)
		s.mu.Lock()
		s.forged++
		if status/100 == 2 {
			s.accepted++
		}
		s.mu.Unlock()
	}
}

func (s *Storm) someEvent() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.sent {
		return id
	}
	return ""
}
