package webhook_test

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/webhook"
)

// stuckAPI never responds to requests for resources that an attacker made up.
type stuckAPI struct{ *fakeAPI }

func (s stuckAPI) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.Contains(r.URL.Path, "guess") {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return s.fakeAPI.RoundTrip(r)
}

func TestAFloodOfUnsignedDeliveriesDoesNotAffectSignedOnes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := &fakeAPI{}
		client, err := newClient(stuckAPI{api})
		require.NoError(t, err)
		rx, got := shop(t, webhook.Config{
			Trust: webhook.SignatureOrReadBack, Keys: []webhook.SigningKey{{Key: secret}}, API: client,
		})
		var flood sync.WaitGroup
		for i := range 1000 {
			flood.Go(func() { serve(rx, request(paid("e", fmt.Sprintf("guess_%d", i)))) })
		}
		for i := range 10 { // all name the resource of the gateway's next event
			flood.Go(func() { serve(rx, request(paid(fmt.Sprintf("e%d", i), "guess_0"))) })
		}
		synctest.Wait()
		began := time.Now()
		var real sync.WaitGroup
		for i := range 50 {
			id := fmt.Sprintf("tx_%d", i)
			api.setTransaction(id, "refunded", "refunded_amount", 1990)
			real.Go(func() {
				assert.Equal(t, received, response(rx, signed(txBody("r_"+id, webhook.TransactionRefunded, id, "refunded"))), "a refund reads the API")
			})
		}
		real.Wait()
		for i := range 50 {
			assert.Equal(t, received, response(rx, signed(paid(fmt.Sprintf("p_%d", i), "guess_0"))), "a payment reads nothing")
		}
		assert.Zero(t, time.Since(began))
		assert.Len(t, got.all(), 100)
		flood.Wait()
	})
}

func TestAFloodOfSignedDeliveriesIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, err := newClient(stuckAPI{&fakeAPI{}})
		require.NoError(t, err)
		rx, _ := shop(t, webhook.Config{
			Trust: webhook.SignatureOrReadBack, Keys: []webhook.SigningKey{{Key: secret}}, API: client, MaxConcurrent: 3,
		})
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				id := fmt.Sprintf("guess_%d", i)
				serve(rx, signed(txBody("e_"+id, webhook.TransactionRefunded, id, "refunded")))
			})
		}
		all.Wait()
		assert.Equal(t, map[webhook.Outcome]uint64{webhook.OutcomeBusy: 7, webhook.OutcomeUnconfirmed: 3}, rx.Stats())
	})
}

// stalled is a body that stops after its first bytes.
type stalled struct {
	io.Reader

	release chan struct{}
}

func (s stalled) Read(p []byte) (int, error) {
	if n, err := s.Reader.Read(p); err == nil {
		return n, nil
	}
	<-s.release
	return 0, io.ErrUnexpectedEOF
}

// stalledRequest has forged signature headers.
func stalledRequest(sent int, announced int64, release chan struct{}) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", stalled{strings.NewReader(strings.Repeat(" ", sent)), release})
	sign(r, gateway.NewSecret("guessed"), time.Now(), "")
	r.ContentLength = announced
	return r
}

// TestBodiesThatCantBeInterruptedDoNotAffectOrdinaryDeliveries uses recorders,
// which have no deadlines.
func TestBodiesThatCantBeInterruptedDoNotAffectOrdinaryDeliveries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := signedConfig()
		const size = 128 << 10
		cfg.MaxConcurrent, cfg.MaxBody = 4, size // the bodies share four times as much memory
		rx := receiver(t, cfg)
		release := make(chan struct{})
		var senders sync.WaitGroup
		for i := range 200 {
			announced := []int64{size, -1}[i%2]
			senders.Go(func() { serve(rx, stalledRequest(size-1, announced, release)) })
		}
		time.Sleep(5 * time.Second) // half of ReadTimeout
		synctest.Wait()
		busy := rx.Stats()[webhook.OutcomeBusy]
		assert.GreaterOrEqual(t, busy, uint64(196), "the memory of four bodies")
		assert.Less(t, busy, uint64(200))
		began := time.Now()
		for i := range 50 {
			assert.Equal(t, received, response(rx, signed(paid(fmt.Sprintf("evt_%d", i), "tx_1"))))
		}
		assert.Zero(t, time.Since(began))
		w := serve(rx, signed(strings.Repeat(" ", size)))
		assert.Equal(t, http.StatusServiceUnavailable, w.Code, "a large body is rejected")
		assert.Equal(t, "close", w.Header().Get("Connection"))
		assert.Equal(t, "1", w.Header().Get("Retry-After"))
		assert.Equal(t, 5*time.Second, time.Since(began), "after it has waited")
		close(release)
		senders.Wait()
		for range 20 { // memory is released every time
			assert.Equal(t, http.StatusBadRequest, serve(rx, signed(strings.Repeat(" ", size))).Code)
		}
	})
}

func TestAnnouncedBodiesTakeNoMemoryBeforeTheyArrive(t *testing.T) { //nolint:paralleltest // it measures the heap
	rx := receiver(t, signedConfig())
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	release, idle := make(chan struct{}), make(chan struct{}, 1500)
	var senders sync.WaitGroup
	for range 1500 {
		senders.Go(func() {
			r := stalledRequest(0, 1<<20, release)
			r.Body = io.NopCloser(notifying{r.Body, idle})
			serve(rx, r)
		})
	}
	for range 1500 {
		<-idle
	}
	grown := heap() - before
	close(release)
	senders.Wait()
	assert.Less(t, grown, uint64(64<<20), "1500 announcements of 1 MiB")
}

// notifying signals when its body is being read.
type notifying struct {
	io.Reader

	read chan struct{}
}

func (n notifying) Read(p []byte) (int, error) {
	n.read <- struct{}{}
	return n.Reader.Read(p)
}

func TestABodyIsReadWhateverItsAnnouncedLength(t *testing.T) {
	t.Parallel()
	rx := receiver(t, signedConfig())
	for _, size := range []int{200, 4095, 4096, 4097, 8191, 16 << 10, 100_000, 1<<20 - 1, 1 << 20} {
		for _, announced := range []int64{int64(size), -1, 0, int64(size) - 1, 1 << 20} {
			body := paid(fmt.Sprintf("evt_%d_%d", size, announced), "tx_1")
			body += strings.Repeat(" ", size-len(body))
			r := signed(body)
			r.ContentLength = announced
			assert.Equal(t, received, response(rx, r), "%d bytes, announced %d", size, announced)
		}
	}
	cfg := signedConfig()
	cfg.MaxConcurrent, cfg.MaxBody = 1, 150_000
	small := receiver(t, cfg)
	for _, size := range []int{130_000, 149_999, 150_000} {
		body := paid(fmt.Sprintf("evt_%d", size), "tx_1")
		body += strings.Repeat(" ", size-len(body))
		assert.Equal(t, received, response(small, chunked(signed(body))), "one body always fits, here of %d bytes", size)
	}
	cfg.MaxBody = math.MaxInt64
	assert.Equal(t, http.StatusBadRequest, serve(receiver(t, cfg), signed(strings.Repeat(" ", 1<<21))).Code, "no limit")
	for _, announced := range []int64{-1, 0, 100} {
		r := signed(strings.Repeat(" ", 1<<20+1))
		r.ContentLength = announced
		assert.Equal(t, `413 {"error":"body_too_large"}`, response(rx, r))
	}
}
