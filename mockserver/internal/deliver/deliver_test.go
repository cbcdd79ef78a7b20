package deliver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver/internal/clock"
	"github.com/gateway-go/gateway/mockserver/internal/deliver"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/faults"
	"github.com/gateway-go/gateway/webhook"
)

var start = time.Date(2027, time.January, 4, 12, 0, 0, 0, time.UTC)

// system is a sender with its clock and faults.
type system struct {
	*deliver.Sender

	clock   *clock.Clock
	faults  faults.Set
	emitted int // number of events
}

func newSystem(t *testing.T) *system {
	t.Helper()
	sys := &system{}
	sys.clock = clock.New(clock.Config{
		Start:  start,
		Fire:   func(tm clock.Timer) error { sys.Fire(tm); return nil },
		Settle: func(ctx context.Context) error { return sys.Wait(ctx, "") },
		Refuse: func() error {
			if deliver.Inside() {
				return deliver.ErrInside
			}
			return nil
		},
	})
	sys.Sender = deliver.New(deliver.Config{
		Clock: sys.clock, Wall: time.Now, InjectFault: sys.faults.ForWebhook,
	})
	t.Cleanup(sys.Close)
	return sys
}

func (sys *system) advance(t *testing.T, d time.Duration) {
	t.Helper()
	require.NoError(t, sys.clock.Advance(t.Context(), d))
}

// emit posts one event of a paid Pix transaction.
func (sys *system) emit(account, kind, id string) {
	sys.post(account, kind, &engine.Transaction{ID: id, Method: "pix", Status: "paid"})
}

func (sys *system) post(account, kind string, t *engine.Transaction) {
	sys.emitted++
	sys.Post(account, []engine.Event{{
		ID: fmt.Sprintf("evt_%d", sys.emitted), At: sys.clock.Now(), Kind: kind, Transaction: t,
	}}, nil)
}

func (sys *system) wait(t *testing.T) {
	t.Helper()
	require.NoError(t, sys.Wait(t.Context(), ""))
}

func (sys *system) states() []deliver.State {
	var states []deliver.State
	for _, d := range sys.Deliveries("") {
		states = append(states, d.State)
	}
	return states
}

// receiver is a merchant's handler that records the webhooks that it receives.
type receiver struct {
	mu     sync.Mutex
	got    []string // event ids
	bodies [][]byte
	header []http.Header
	status func(event string) int
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	e, err := webhook.Parse(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, e.ID)
	r.bodies = append(r.bodies, body)
	r.header = append(r.header, req.Header)
	if r.status != nil {
		w.WriteHeader(r.status(e.ID))
	}
}

func (r *receiver) events() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.got...)
}

func (sys *system) endpoint(t *testing.T, e deliver.Endpoint) deliver.Endpoint {
	t.Helper()
	e, err := sys.AddEndpoint(e)
	require.NoError(t, err)
	return e
}

func TestFirstAttemptIsImmediate(t *testing.T) {
	t.Parallel()
	sys, shop := newSystem(t), &receiver{}
	sys.endpoint(t, deliver.Endpoint{Handler: shop})

	sys.emit("a", "transaction.paid", "tx_1")
	sys.wait(t)

	assert.Equal(t, []string{"evt_1"}, shop.events())
	assert.Equal(t, "application/json", shop.header[0].Get("Content-Type"))
	got := sys.Deliveries("a")[0]
	assert.Equal(t, deliver.Delivered, got.State)
	assert.Equal(t, "dlv_1", got.ID)
	assert.Equal(t, "evt_1", got.EventID)
	assert.Equal(t, "transaction.paid", got.Kind)
	assert.Equal(t, "tx_1", got.Resource)
	assert.Equal(t, start, got.Created)
	assert.Equal(t, shop.bodies[0], got.Body)
	require.Len(t, got.Attempts, 1)
	assert.Equal(t, http.StatusOK, got.Attempts[0].Status)
	assert.Equal(t, start, got.Attempts[0].At)
	assert.WithinDuration(t, time.Now(), got.Attempts[0].Wall, time.Minute)
}

func TestRetrySchedule(t *testing.T) {
	t.Parallel()
	sys := newSystem(t)
	shop := &receiver{status: func(string) int { return 500 }}
	sys.endpoint(t, deliver.Endpoint{Handler: shop})

	sys.emit("a", "transaction.paid", "tx_1")
	sys.advance(t, 24*time.Hour-time.Millisecond)
	assert.Len(t, shop.events(), 9)
	assert.Equal(t, start.Add(24*time.Hour), sys.Deliveries("")[0].Next)
	assert.Equal(t, []clock.Timer{{At: start.Add(24 * time.Hour), Account: "a", Kind: "webhook.attempt", ID: "dlv_1"}}, sys.clock.Timers())
	sys.advance(t, time.Millisecond)
	sys.advance(t, 1000*time.Hour)

	d := sys.Deliveries("")[0]
	assert.Equal(t, deliver.Failed, d.State)
	var at []time.Duration
	for i, a := range d.Attempts {
		at = append(at, a.At.Sub(start))
		assert.Equal(t, i+1, a.Number)
		assert.Equal(t, "the response has status 500", a.Error)
	}
	assert.Equal(t, []time.Duration{
		0, 5 * time.Second, 5 * time.Minute, 30 * time.Minute,
		2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
	}, at)
	assert.Empty(t, sys.clock.Timers())
	for _, body := range shop.bodies {
		assert.Equal(t, string(d.Body), string(body), "the same bytes each time")
	}
}

func TestSuccessEndsTheSchedule(t *testing.T) {
	t.Parallel()
	sys := newSystem(t)
	responses := []int{503, 200}
	shop := &receiver{}
	shop.status = func(string) int { return responses[len(shop.got)-1] }
	sys.endpoint(t, deliver.Endpoint{Handler: shop})

	sys.emit("a", "transaction.paid", "tx_1")
	sys.advance(t, 100*time.Hour)

	assert.Len(t, shop.events(), 2)
	assert.Equal(t, []deliver.State{deliver.Delivered}, sys.states())
}

func TestOrderPerResource(t *testing.T) {
	t.Parallel()
	sys := newSystem(t)
	running, most := map[string]int{}, 0
	var mu sync.Mutex
	shop := &receiver{}
	sys.endpoint(t, deliver.Endpoint{Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		e, _ := webhook.Parse(body)
		mu.Lock()
		running[e.ResourceID]++
		most = max(most, running[e.ResourceID])
		shop.got = append(shop.got, e.ResourceID+" "+string(e.Kind))
		mu.Unlock()
		w.WriteHeader(http.StatusInternalServerError) // a failure does not delay the next event
		mu.Lock()
		running[e.ResourceID]--
		mu.Unlock()
	})})
	kinds := []string{"transaction.created", "transaction.pending", "transaction.paid", "transaction.refunded"}
	for _, kind := range kinds {
		for i := range 50 {
			sys.emit("a", kind, fmt.Sprint("tx_", i))
		}
	}
	sys.wait(t)

	assert.Equal(t, 1, most, "one at a time")
	order := map[string][]string{}
	for _, got := range shop.got {
		var id, kind string
		_, _ = fmt.Sscan(got, &id, &kind)
		order[id] = append(order[id], kind)
	}
	assert.Len(t, order, 50)
	for id, got := range order {
		assert.Equal(t, kinds, got, id)
	}
}

// A receiver that is slow to handle the events of one resource gets those of others
// in the meantime.
func TestSlowDeliveriesDoNotDelayOtherResources(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sys := newSystem(t)
		sys.endpoint(t, deliver.Endpoint{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(time.Second) })})
		began := time.Now()
		for i := range 65 {
			sys.emit("a", "transaction.paid", fmt.Sprint("tx_", i))
		}
		sys.wait(t)
		assert.Equal(t, 2*time.Second, time.Since(began), "64 at a time")
		sys.emit("a", "transaction.paid", "tx_1")
		sys.emit("a", "transaction.refunded", "tx_1")
		sys.wait(t)
		assert.Equal(t, 4*time.Second, time.Since(began), "deliveries about one resource are made one at a time")
	})
}

func TestAReceiverMayCallTheSender(t *testing.T) {
	t.Parallel()
	sys := newSystem(t)
	var wait, advance, inner error
	sys.endpoint(t, deliver.Endpoint{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		sys.Hold("b")
		_ = sys.Deliveries("")
		wait = sys.Wait(r.Context(), "")
		advance = sys.clock.Advance(r.Context(), time.Hour)
		done := make(chan struct{})
		go func(ctx context.Context) { // from another goroutine, the clock reports the advance that is running
			defer close(done)
			inner = sys.clock.Advance(ctx, time.Hour)
		}(r.Context())
		<-done
	})})

	sys.emit("a", "transaction.paid", "tx_1")
	sys.advance(t, time.Minute)

	require.ErrorIs(t, wait, deliver.ErrInside)
	require.ErrorIs(t, advance, deliver.ErrInside)
	require.ErrorIs(t, inner, clock.ErrAdvancing)
	assert.Equal(t, start.Add(time.Minute), sys.clock.Now())
}

func TestSignatures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sys, shop, open := newSystem(t), &receiver{}, &receiver{}
		signed := sys.endpoint(t, deliver.Endpoint{Handler: shop, Secret: gateway.NewSecret("whsec_first_0001")})
		sys.endpoint(t, deliver.Endpoint{Handler: open})

		sys.emit("a", "transaction.paid", "tx_1")
		sys.wait(t)
		require.NoError(t, sys.Rotate("", signed.ID, gateway.NewSecret("whsec_second_0001")))
		sys.emit("a", "transaction.paid", "tx_1")
		sys.wait(t)

		for i, secret := range []gateway.Secret{gateway.NewSecret("whsec_first_0001"), gateway.NewSecret("whsec_second_0001")} {
			require.NoError(t, webhook.Verify(shop.header[i], shop.bodies[i], secret))
			assert.Empty(t, open.header[i].Get(webhook.DefaultSignatureHeader))
			assert.Empty(t, open.header[i].Get(webhook.DefaultTimestampHeader))
		}
		require.ErrorIs(t, webhook.Verify(shop.header[1], shop.bodies[1], gateway.NewSecret("whsec_first_0001")), webhook.ErrInvalidSignature)
		assert.Equal(t, fmt.Sprint(time.Now().Unix()), shop.header[0].Get(webhook.DefaultTimestampHeader), "wall time")
		require.ErrorIs(t, sys.Rotate("", "ep_9", gateway.NewSecret("whsec_x_0001")), deliver.ErrUnknownEndpoint)
	})
}

func TestTargets(t *testing.T) {
	t.Parallel()
	sys := newSystem(t)
	shop := &receiver{}
	sys.Serve("shop.example", shop)
	v1 := map[string]*engine.Integration{
		"a":    {WebhookURL: "https://shop.example/all", PixWebhookURL: "https://shop.example/pix"},
		"same": {WebhookURL: "https://shop.example/all", PixWebhookURL: "https://shop.example/all"},
		"pix":  {PixWebhookURL: "https://shop.example/pix"},
	}
	sys.endpoint(t, deliver.Endpoint{Account: "a", Handler: shop, Events: []string{"transaction.paid", "payout.*"}})

	post := func(account string, e engine.Event) []string {
		before := len(sys.Deliveries(account))
		e.ID = fmt.Sprint("evt_", account, e.Kind)
		sys.Post(account, []engine.Event{e}, v1[account])
		var names []string
		for _, d := range sys.Deliveries(account)[before:] {
			names = append(names, d.Endpoint)
		}
		return names
	}
	pix := &engine.Transaction{ID: "1", Method: "pix", NotifyURL: "https://shop.example/notify"}
	card := &engine.Transaction{ID: "2", Method: "credit_card"}
	payout := &engine.Transfer{ID: "3", NotifyURL: "https://shop.example/notify"}
	sub := &engine.Subscription{ID: "4"}

	assert.Equal(t, []string{"ep_1", "notify_url", "webhookUrl", "pixWebhookUrl"}, post("a", engine.Event{Kind: "transaction.paid", Transaction: pix}))
	assert.Equal(t, []string{"notify_url", "webhookUrl", "pixWebhookUrl"}, post("a", engine.Event{Kind: "transaction.created", Transaction: pix}))
	assert.Equal(t, []string{"webhookUrl"}, post("a", engine.Event{Kind: "transaction.created", Transaction: card}))
	assert.Equal(t, []string{"ep_1", "notify_url", "webhookUrl", "pixWebhookUrl"}, post("a", engine.Event{Kind: "payout.created", Transfer: payout}))
	assert.Equal(t, []string{"webhookUrl"}, post("a", engine.Event{Kind: "subscription.created", Subscription: sub}))
	assert.Equal(t, []string{"notify_url", "webhookUrl"}, post("same", engine.Event{Kind: "payout.created", Transfer: payout}), "one address gets each event once")
	assert.Equal(t, []string{"pixWebhookUrl"}, post("pix", engine.Event{Kind: "payout.created", Transfer: &engine.Transfer{ID: "5"}}))
	assert.Equal(t, []string{""}, post("pix", engine.Event{Kind: "transaction.created", Transaction: card}))
	assert.Equal(t, []string{""}, post("b", engine.Event{Kind: "transaction.created", Transaction: card}), "the log shows that it had no endpoint")
	sys.wait(t)

	assert.Equal(t, deliver.NoEndpoint, sys.Deliveries("b")[0].State)
	for _, d := range sys.Deliveries("a") {
		assert.Equal(t, deliver.Delivered, d.State)
		assert.False(t, d.Attempts[0].Signed)
		assert.Equal(t, map[string]string{
			"ep_1": "", "notify_url": "https://shop.example/notify",
			"webhookUrl": "https://shop.example/all", "pixWebhookUrl": "https://shop.example/pix",
		}[d.Endpoint], d.URL)
	}
}

func TestHoldAndReleaseInAnotherOrder(t *testing.T) {
	t.Parallel()
	sys, shop := newSystem(t), &receiver{}
	sys.endpoint(t, deliver.Endpoint{Handler: shop})
	sys.Hold("a")
	for i := range 4 {
		sys.emit("a", "transaction.paid", fmt.Sprint("tx_", i))
	}
	sys.emit("b", "transaction.paid", "tx_9")
	sys.wait(t)
	assert.Equal(t, []string{"evt_5"}, shop.events(), "another account is not held")
	assert.Equal(t, []deliver.State{deliver.Held, deliver.Held, deliver.Held, deliver.Held, deliver.Delivered}, sys.states())

	require.NoError(t, sys.Release("a", "dlv_4", "dlv_2"))
	sys.wait(t)
	assert.Equal(t, []string{"evt_5", "evt_4", "evt_2"}, shop.events())
	require.ErrorIs(t, sys.Release("a", "dlv_1", "dlv_2"), deliver.ErrNotHeld)
	require.ErrorIs(t, sys.Release("a", "dlv_1", "dlv_1"), deliver.ErrNotHeld)
	require.ErrorIs(t, sys.Release("a", "dlv_99"), deliver.ErrUnknownDelivery)
	require.ErrorIs(t, sys.Release("b", "dlv_1"), deliver.ErrUnknownDelivery)
	assert.Len(t, shop.events(), 3, "a rejected release releases nothing")

	sys.emit("a", "transaction.paid", "tx_5")
	require.NoError(t, sys.Redeliver("a", "dlv_6"), "a held delivery that is redelivered is released")
	require.NoError(t, sys.Release("a"))
	sys.emit("a", "transaction.paid", "tx_6")
	sys.wait(t)
	assert.ElementsMatch(t, []string{"evt_6", "evt_1", "evt_3", "evt_7"}, shop.events()[3:])
}

func TestHoldAllAccounts(t *testing.T) {
	t.Parallel()
	sys, shop := newSystem(t), &receiver{status: func(string) int { return 500 }}
	sys.endpoint(t, deliver.Endpoint{Handler: shop})
	sys.emit("a", "transaction.paid", "tx_1")
	sys.wait(t)
	sys.Hold("")
	sys.advance(t, 100*time.Hour)
	assert.Len(t, shop.events(), 1, "a retry is held too")
	assert.Zero(t, sys.Deliveries("")[0].Next, "until it is released")
	require.NoError(t, sys.Release(""))
	sys.advance(t, 0)
	assert.Len(t, shop.events(), 10, "the schedule continues where it was, and overdue attempts are made at once")
}

func TestRedeliver(t *testing.T) {
	t.Parallel()
	sys := newSystem(t)
	status := 500
	shop := &receiver{status: func(string) int { return status }}
	sys.endpoint(t, deliver.Endpoint{Account: "a", Handler: shop})
	sys.emit("a", "transaction.paid", "tx_1")
	sys.emit("b", "transaction.paid", "tx_1")
	sys.wait(t)

	require.NoError(t, sys.Redeliver("a", "dlv_1"))
	sys.wait(t)
	assert.Equal(t, deliver.Pending, sys.Deliveries("a")[0].State)
	assert.Equal(t, start.Add(5*time.Second), sys.Deliveries("a")[0].Next, "the schedule is unchanged")
	status = 200
	require.NoError(t, sys.Redeliver("a", "dlv_1"))
	sys.wait(t)
	assert.Equal(t, deliver.Delivered, sys.Deliveries("a")[0].State)
	status = 500
	require.NoError(t, sys.Redeliver("a", "dlv_1"))
	sys.advance(t, 100*time.Hour)
	d, err := sys.Delivery("a", "dlv_1")
	require.NoError(t, err)
	assert.Equal(t, deliver.Delivered, d.State, "a failed redelivery does not undo a delivery")
	assert.Len(t, d.Attempts, 4)
	for _, body := range shop.bodies {
		assert.Equal(t, string(d.Body), string(body))
	}

	require.ErrorIs(t, sys.Redeliver("b", "dlv_1"), deliver.ErrUnknownDelivery)
	require.ErrorIs(t, sys.Redeliver("b", "dlv_2"), deliver.ErrNoTarget)
}

// A delivery without scheduled attempts is failed, not pending, after a redelivery that
// fails.
func TestFailedRedeliveryWithoutScheduledAttempts(t *testing.T) {
	t.Parallel()
	sys := newSystem(t)
	shop := &receiver{status: func(string) int { return 500 }}
	sys.endpoint(t, deliver.Endpoint{Handler: shop})
	sys.emit("a", "transaction.paid", "tx_1")
	sys.advance(t, 24*time.Hour)
	_, err := sys.faults.Add(faults.Fault{Kind: faults.DropWebhook, Times: 1})
	require.NoError(t, err)
	sys.emit("a", "transaction.paid", "tx_2")
	require.Equal(t, []deliver.State{deliver.Failed, deliver.Dropped}, sys.states())

	for _, id := range []string{"dlv_1", "dlv_1", "dlv_2", "dlv_2"} {
		require.NoError(t, sys.Redeliver("a", id))
	}
	sys.wait(t)
	assert.Len(t, shop.events(), 14)
	assert.Equal(t, []deliver.State{deliver.Failed, deliver.Failed}, sys.states())
	assert.Empty(t, sys.clock.Timers())
}

func TestWebhookFaults(t *testing.T) {
	t.Parallel()
	sys := newSystem(t)
	shop := &receiver{}
	shop.status = func(string) int {
		if webhook.Verify(shop.header[len(shop.header)-1], shop.bodies[len(shop.bodies)-1], gateway.NewSecret("whsec_s_0001")) != nil {
			return http.StatusUnauthorized
		}
		return http.StatusOK
	}
	sys.endpoint(t, deliver.Endpoint{Handler: shop, Secret: gateway.NewSecret("whsec_s_0001")})
	for i, kind := range []faults.Kind{faults.DropWebhook, faults.DuplicateWebhook, faults.CorruptSignature, faults.StaleTimestamp, faults.DelayWebhook} {
		_, err := sys.faults.Add(faults.Fault{Kind: kind, Times: 1, Delay: time.Hour})
		require.NoError(t, err)
		sys.emit("a", "transaction.paid", fmt.Sprint("tx_", i))
		sys.wait(t)
	}
	assert.Equal(t, []string{"evt_2", "evt_2", "evt_3", "evt_4"}, shop.events())
	assert.Equal(t, shop.bodies[0], shop.bodies[1])
	assert.Equal(t, []deliver.State{deliver.Dropped, deliver.Delivered, deliver.Pending, deliver.Pending, deliver.Pending}, sys.states())
	require.ErrorIs(t, webhook.Verify(shop.header[2], shop.bodies[2], gateway.NewSecret("whsec_s_0001")), webhook.ErrInvalidSignature)
	require.ErrorIs(t, webhook.Verify(shop.header[3], shop.bodies[3], gateway.NewSecret("whsec_s_0001")), webhook.ErrStaleTimestamp)
	stamp, err := strconv.ParseInt(shop.header[2].Get(webhook.DefaultTimestampHeader), 10, 64)
	require.NoError(t, err)
	_, right := webhook.Sign(gateway.NewSecret("whsec_s_0001"), time.Unix(stamp, 0), shop.bodies[2])
	wrong := shop.header[2].Get(webhook.DefaultSignatureHeader)
	assert.Equal(t, right[:len(right)-1], wrong[:len(wrong)-1], "all but the last digit")
	assert.Regexp(t, "^sha256=[0-9a-f]{64}$", wrong)
	log := sys.Deliveries("")
	assert.Equal(t, "corrupt-signature", log[2].Attempts[0].Fault)
	assert.Equal(t, "stale-timestamp", log[3].Attempts[0].Fault)

	sys.advance(t, 59*time.Minute)
	assert.Equal(t, []string{"evt_2", "evt_2", "evt_3", "evt_4", "evt_3", "evt_4"}, shop.events(), "the second attempts have valid signatures")
	sys.advance(t, time.Minute)
	assert.Equal(t, []deliver.State{deliver.Dropped, deliver.Delivered, deliver.Delivered, deliver.Delivered, deliver.Delivered}, sys.states())
	require.NoError(t, sys.Redeliver("a", "dlv_1"), "a dropped delivery can be redelivered")
	sys.wait(t)
	assert.Equal(t, deliver.Delivered, sys.states()[0])
}

func TestFailingReceivers(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"panics":   {func(http.ResponseWriter, *http.Request) { panic("boom") }, "boom"},
		"closes":   {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "closed without a response"},
		"hangs":    {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "no response within 10s"},
		"redirect": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }, "status 302"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				sys := newSystem(t)
				calls := 0
				sys.endpoint(t, deliver.Endpoint{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					calls++
					tc.handler(w, r)
				})})
				began := time.Now()
				sys.emit("a", "transaction.paid", "tx_1")
				sys.wait(t)

				d := sys.Deliveries("")[0]
				a := d.Attempts[0]
				assert.Contains(t, a.Error, tc.want)
				assert.False(t, a.OK())
				assert.Equal(t, deliver.Pending, d.State)
				assert.Equal(t, start.Add(5*time.Second), d.Next, "it is retried")
				assert.Equal(t, 1, calls, "no redirect is followed")
				if name == "hangs" {
					assert.Equal(t, deliver.DefaultTimeout, time.Since(began))
					assert.Equal(t, deliver.DefaultTimeout, a.Duration)
				}
				sys.Close()
			})
		})
	}
}

func TestSuccessStatuses(t *testing.T) {
	t.Parallel()
	for status, ok := range map[int]bool{0: false, 199: false, 200: true, 204: true, 299: true, 300: false, 410: false} {
		assert.Equal(t, ok, deliver.Attempt{Status: status}.OK(), status)
	}
}

func TestWaitReturnsWhenItsContextIsCanceled(t *testing.T) {
	t.Parallel()
	sys := newSystem(t)
	called := make(chan struct{})
	sys.endpoint(t, deliver.Endpoint{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(called)
		<-r.Context().Done()
	})})
	sys.emit("a", "transaction.paid", "tx_1")
	<-called
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, sys.Wait(ctx, ""), context.Canceled)
}

func TestCloseCancelsRunningDeliveries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sys := newSystem(t)
		sys.endpoint(t, deliver.Endpoint{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
		})})
		for i := range 200 {
			sys.emit("a", "transaction.paid", fmt.Sprint("tx_", i))
		}
		synctest.Wait()
		began := time.Now()
		sys.Close()
		assert.Zero(t, time.Since(began))
		attempts := 0
		for _, d := range sys.Deliveries("") {
			attempts += len(d.Attempts)
		}
		assert.Equal(t, 64, attempts, "only those that were running")
		require.NoError(t, sys.Wait(t.Context(), ""), "Wait does not wait for attempts that will never be made")
		sys.emit("a", "transaction.paid", "tx_1")
		require.NoError(t, sys.Wait(t.Context(), ""))
		list := sys.Deliveries("")
		assert.Empty(t, list[len(list)-1].Attempts, "no new attempt is started")
		sys.Close()
	})
}

func TestTheLogDropsOnlyFinishedDeliveries(t *testing.T) {
	t.Parallel()
	c := clock.New(clock.Config{Start: start, Fire: func(clock.Timer) error { return nil }})
	s := deliver.New(deliver.Config{Clock: c, Wall: time.Now, Log: 10})
	t.Cleanup(s.Close)
	_, err := s.AddEndpoint(deliver.Endpoint{Account: "a", Handler: &receiver{}})
	require.NoError(t, err)
	sys := &system{Sender: s, clock: c}
	_, err = s.AddEndpoint(deliver.Endpoint{Account: "b", Handler: &receiver{status: func(string) int { return 500 }}})
	require.NoError(t, err)
	s.Hold("a")
	for i := range 5 {
		sys.emit("a", "transaction.paid", fmt.Sprint("tx_", i))
		sys.emit("b", "transaction.paid", fmt.Sprint("tx_", i))
	}
	sys.wait(t)
	for range 100 {
		sys.emit("nobody", "transaction.paid", "tx_9")
	}
	assert.Len(t, s.Deliveries("a"), 5)
	assert.Len(t, s.Deliveries("b"), 5, "deliveries that wait for their next attempt stay")
	assert.Less(t, len(s.Deliveries("nobody")), 20)
	assert.GreaterOrEqual(t, len(s.Deliveries("nobody")), 10, "pending deliveries don't count")
	_, err = s.Delivery("", "dlv_110")
	require.NoError(t, err, "the latest")
	_, err = s.Delivery("", "dlv_11")
	require.ErrorIs(t, err, deliver.ErrUnknownDelivery)
}

func TestEndpoints(t *testing.T) {
	t.Parallel()
	sys := newSystem(t)
	for _, e := range []deliver.Endpoint{
		{},
		{URL: "shop.example"},
		{URL: "ftp://shop.example"},
		{URL: "http://"},
		{URL: "http://shop.test:0/"},
		{URL: "http://shop.test:65536/"},
		{URL: "://"},
		{URL: "https://shop.example", Events: []string{""}},
		{URL: "https://shop.example/" + strings.Repeat("x", 2049-21)},
	} {
		_, err := sys.AddEndpoint(e)
		require.Error(t, err, e.URL)
	}
	require.NoError(t, deliver.CheckURL("https://shop.example/"+strings.Repeat("x", 2048-21)))
	a := sys.endpoint(t, deliver.Endpoint{Account: "a", URL: "https://shop.example/hook"})
	all := sys.endpoint(t, deliver.Endpoint{Handler: &receiver{}})
	assert.Equal(t, "ep_1", a.ID)
	assert.Equal(t, []deliver.Endpoint{a}, sys.Endpoints("a"))
	assert.Len(t, sys.Endpoints(""), 2)
	require.ErrorIs(t, sys.RemoveEndpoint("a", all.ID), deliver.ErrUnknownEndpoint)

	sys.Hold("a")
	sys.emit("a", "transaction.paid", "tx_1")
	require.NoError(t, sys.RemoveEndpoint("a", a.ID))
	require.NoError(t, sys.Release("a"))
	sys.wait(t)
	assert.Equal(t, "the endpoint was removed", sys.Deliveries("a")[0].Attempts[0].Error)
}

// The mock signs only with secrets that the project's receiver accepts as keys.
func TestSecretsOfEndpoints(t *testing.T) {
	t.Parallel()
	sys := newSystem(t)
	ep := sys.endpoint(t, deliver.Endpoint{Account: "a", Handler: &receiver{}})
	for _, secret := range []string{"", "whsec_1", "whsec_test_1", " whsec_test_1", "12345678", `"whsec_test_1"`, "‘whsec_test_1’", "whsec_test_1\n"} {
		_, err := webhook.New(webhook.Config{Keys: []webhook.SigningKey{{Key: gateway.NewSecret(secret)}}})
		accepted := err == nil || secret == "" // an unsigned endpoint
		_, added := sys.AddEndpoint(deliver.Endpoint{Account: "a", Handler: &receiver{}, Secret: gateway.NewSecret(secret)})
		assert.Equal(t, accepted, added == nil, "%q: %v, %v", secret, err, added)
		rotated := sys.Rotate("a", ep.ID, gateway.NewSecret(secret))
		assert.Equal(t, accepted, rotated == nil, secret)
		read := deliver.Registry{Endpoints: []deliver.SavedEndpoint{{ID: "ep_1", URL: "https://shop.test/", Secret: secret}}}.Check()
		assert.Equal(t, accepted, read == nil, "from a file: %q: %v", secret, read)
		if !accepted {
			require.ErrorIs(t, rotated, deliver.ErrSecret)
			assert.NotContains(t, rotated.Error(), strings.TrimSpace(secret))
		}
	}
}

func TestReset(t *testing.T) {
	t.Parallel()
	sys := newSystem(t)
	shop := &receiver{status: func(string) int { return 500 }}
	sys.endpoint(t, deliver.Endpoint{Handler: shop})
	sys.endpoint(t, deliver.Endpoint{Account: "a", Handler: shop})
	sys.emit("a", "transaction.paid", "tx_1")
	sys.emit("b", "transaction.paid", "tx_1")
	sys.wait(t)
	sys.Hold("a")
	require.NoError(t, sys.Reset("a"))

	assert.Empty(t, sys.Deliveries("a"))
	assert.Len(t, sys.Deliveries("b"), 1)
	assert.Len(t, sys.Endpoints(""), 1, "the endpoint for all accounts stays")
	sys.advance(t, 5*time.Second)
	assert.Len(t, shop.events(), 4, "only b's delivery is tried again")
	sys.emit("a", "transaction.paid", "tx_1")
	sys.wait(t)
	assert.Len(t, shop.events(), 5, "the hold has ended")

	sys.Hold("")
	sys.emit("a", "transaction.paid", "tx_2")
	sys.emit("b", "transaction.paid", "tx_2")
	require.NoError(t, sys.Reset("a"))
	require.NoError(t, sys.Release(""))
	sys.wait(t)
	assert.Len(t, shop.events(), 6, "the account's deliveries are gone from the hold on all accounts")
}

func TestSaveAndLoad(t *testing.T) {
	t.Parallel()
	sys := newSystem(t)
	shop := &receiver{status: func(id string) int { return map[bool]int{true: 500, false: 200}[id == "evt_1"] }}
	sys.endpoint(t, deliver.Endpoint{Handler: shop, Secret: gateway.NewSecret("whsec_s_0001"), Events: []string{"transaction.*"}})
	sys.emit("a", "transaction.paid", "tx_1")
	sys.emit("b", "transaction.paid", "tx_2")
	sys.wait(t)
	sys.Hold("b")
	sys.emit("b", "transaction.paid", "tx_3")
	saved, err := sys.Save()
	require.NoError(t, err)
	state := sys.clock.State()

	run := func() []deliver.Delivery {
		require.NoError(t, sys.Release("b"))
		sys.emit("b", "transaction.paid", "tx_4")
		sys.advance(t, 30*time.Hour)
		list := sys.Deliveries("")
		for i := range list {
			for j := range list[i].Attempts {
				list[i].Attempts[j].Wall, list[i].Attempts[j].Duration = time.Time{}, 0
			}
		}
		return list
	}
	first := run()
	sys.Load(saved)
	require.NoError(t, sys.clock.Restore(state))
	sys.emitted = 3
	second := run()

	assert.Equal(t, first, second)
	assert.Len(t, second, 4)
}

// Loading every saved version of a delivery sets a timer for each; only the last one
// applies.
func TestOnlyTheLatestTimerOfADeliveryCounts(t *testing.T) {
	t.Parallel()
	sys, shop := newSystem(t), &receiver{status: func(string) int { return 500 }}
	ep := sys.endpoint(t, deliver.Endpoint{Handler: shop})
	saved := deliver.SavedDelivery{
		Delivery: deliver.Delivery{
			ID: "dlv_7", Endpoint: ep.ID, Body: []byte(`{"id":"evt_x"}`), State: deliver.Pending, Next: start.Add(5 * time.Second),
		},
		Registered: true, First: start, Tries: 1,
	}
	sys.LoadDelivery(saved)
	saved.Body, saved.Next, saved.Tries = nil, start.Add(5*time.Minute), 2
	saved.Attempts = []deliver.Attempt{{Number: 1, Status: 503}, {Number: 2, Status: 500}}
	sys.LoadDelivery(saved)
	timers := sys.clock.Timers()
	require.Len(t, timers, 2)
	assert.False(t, sys.StillApplies(timers[0]))
	assert.True(t, sys.StillApplies(timers[1]))
	sys.advance(t, 5*time.Minute-time.Millisecond)
	assert.Empty(t, shop.events())
	sys.advance(t, time.Millisecond)
	assert.Equal(t, []string{"evt_x"}, shop.events())
	assert.False(t, sys.StillApplies(timers[1]), "its attempt has been made")
	d, err := sys.Delivery("", "dlv_7")
	require.NoError(t, err)
	assert.Equal(t, 3, d.Attempts[2].Number)
	assert.Equal(t, start.Add(30*time.Minute), d.Next, "the schedule continues")
	sys.emit("a", "transaction.paid", "tx_1")
	sys.wait(t)
	_, err = sys.Delivery("", "dlv_8")
	require.NoError(t, err, "the number of a loaded delivery is not reused")
}

// A restart restores the endpoints that accounts have registered, but neither
// in-memory endpoints nor those that are registered at startup.
func TestSavedEndpoints(t *testing.T) {
	t.Parallel()
	var (
		last deliver.Registry
		full error
	)
	c := clock.New(clock.Config{Start: start, Fire: func(clock.Timer) error { return nil }})
	s := deliver.New(deliver.Config{Clock: c, Wall: time.Now, Persist: func(k deliver.Changed) error {
		last = *k.Registry
		return full
	}})
	t.Cleanup(s.Close)
	for _, e := range []deliver.Endpoint{
		{URL: "https://shop.test/start"},
		{Account: "a", URL: "https://shop.test/hook", Secret: gateway.NewSecret("whsec_s_0001"), Events: []string{"payout.*"}},
		{Account: "a", Handler: &receiver{}},
	} {
		_, err := s.AddEndpoint(e)
		require.NoError(t, err)
	}
	want := deliver.SavedEndpoint{ID: "ep_2", Account: "a", URL: "https://shop.test/hook", Secret: "whsec_s_0001", Events: []string{"payout.*"}}
	assert.Equal(t, deliver.Registry{Registered: 3, Endpoints: []deliver.SavedEndpoint{want}}, last)

	full = errors.New("disk full")
	_, err := s.AddEndpoint(deliver.Endpoint{Account: "a", URL: "https://shop.test/late"})
	require.ErrorIs(t, err, full)
	require.ErrorIs(t, s.Rotate("a", "ep_2", gateway.NewSecret("whsec_new_0001")), full)
	require.ErrorIs(t, s.RemoveEndpoint("a", "ep_2"), full)
	last = deliver.Registry{Registered: 3, Endpoints: []deliver.SavedEndpoint{want}}

	again := newSystem(t)
	again.endpoint(t, deliver.Endpoint{URL: "https://shop.test/start"})
	again.LoadEndpoints(last)
	assert.Len(t, again.Endpoints(""), 2)
	assert.Equal(t, []deliver.Endpoint{{
		ID: "ep_2", Account: "a", URL: "https://shop.test/hook", Secret: gateway.NewSecret("whsec_s_0001"), Events: []string{"payout.*"},
	}}, again.Endpoints("a"))
	assert.Equal(t, "ep_4", again.endpoint(t, deliver.Endpoint{URL: "https://shop.test/next"}).ID)
}

// A hold ends with its process: held deliveries are due after a restart.
func TestHeldDeliveriesAreDueAfterARestart(t *testing.T) {
	t.Parallel()
	shop := &receiver{status: func(string) int { return 500 }}
	s := deliver.New(deliver.Config{
		Clock: clock.New(clock.Config{Start: start, Fire: func(clock.Timer) error { return nil }}), Wall: time.Now, Paused: true,
	})
	t.Cleanup(s.Close)
	ep, err := s.AddEndpoint(deliver.Endpoint{Handler: shop})
	require.NoError(t, err)
	held := deliver.SavedDelivery{
		Delivery:   deliver.Delivery{ID: "dlv_1", Endpoint: ep.ID, Body: []byte(`{"id":"evt_x"}`), State: deliver.Held},
		Registered: true, First: start,
	}
	s.LoadDelivery(held)
	later := held
	later.ID, later.State, later.Next = "dlv_2", deliver.Pending, start.Add(time.Hour)
	s.LoadDelivery(later)
	require.NoError(t, s.Wait(t.Context(), ""))
	assert.Empty(t, shop.events(), "nothing is sent before Resume")
	s.Resume()
	require.NoError(t, s.Wait(t.Context(), ""))
	assert.Equal(t, []string{"evt_x"}, shop.events(), "the delivery that is due later waits")
	d, err := s.Delivery("", "dlv_1")
	require.NoError(t, err)
	assert.Equal(t, start.Add(5*time.Second), d.Next, "that was the first scheduled attempt")

	held.State = deliver.Pending
	s.Load(deliver.Saved{Endpoints: []deliver.SavedEndpoint{{ID: ep.ID}}, Deliveries: []deliver.SavedDelivery{held}})
	require.NoError(t, s.Wait(t.Context(), ""))
	assert.Len(t, shop.events(), 2, "Load does not pause the sender again")
	d, err = s.Delivery("", "dlv_1")
	require.NoError(t, err)
	assert.Equal(t, start.Add(5*time.Second), d.Next, "that was the first scheduled attempt, too")
}

func TestSaveKeepsTheWholeDelivery(t *testing.T) {
	t.Parallel()
	saved := deliver.SavedDelivery{
		Delivery: deliver.Delivery{
			ID: "dlv_3", Account: "a", EventID: "evt_3", Kind: "payout.failed", Resource: "po_1",
			Endpoint: "notify_url", URL: "https://shop.test/hook", Body: []byte(`{"id":"evt_3"}`), Created: start,
			State: deliver.Pending, Next: start.Add(time.Hour),
			Attempts: []deliver.Attempt{{Number: 1, At: start, Status: 500, Signed: true}},
		},
		First: start, Tries: 1, Fault: faults.DuplicateWebhook,
	}
	sys := newSystem(t)
	sys.LoadDelivery(saved)
	all, err := sys.Save()
	require.NoError(t, err)
	assert.Equal(t, []deliver.SavedDelivery{saved}, all.Deliveries)
	assert.Equal(t, uint64(3), all.Made)
}

// Attempts of the state before a Load are canceled, and leave no trace in the new
// state. Those that were queued are never made.
func TestLoadAbortsAttempts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sys, shop := newSystem(t), hanging{}
		sys.endpoint(t, deliver.Endpoint{Handler: &shop})
		for range 3 {
			sys.emit("a", "transaction.paid", "tx_1")
		}
		synctest.Wait()
		saved, err := sys.Save()
		require.NoError(t, err)
		sys.Load(deliver.Saved{Endpoints: saved.Endpoints})
		require.NoError(t, sys.Wait(t.Context(), ""), "nothing is being delivered")
		synctest.Wait()
		assert.Equal(t, [2]int32{1, 1}, shop.counts(), "called and canceled")
		assert.Empty(t, sys.Deliveries(""))

		sys.Load(saved)
		synctest.Wait()
		assert.Equal(t, int32(2), shop.called.Load(), "the attempt that was running is made again")
	})
}

// hanging is a receiver that never responds.
type hanging struct{ called, canceled atomic.Int32 }

func (h *hanging) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	h.called.Add(1)
	<-r.Context().Done()
	h.canceled.Add(1)
}

func (h *hanging) counts() [2]int32 { return [2]int32{h.called.Load(), h.canceled.Load()} }

// A webhook of the time before a reset does not reach the receivers of the next test.
func TestResetAbortsTheAccountsAttempts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sys := newSystem(t)
		var shop hanging
		sys.Serve("shop.test", &shop)
		for _, account := range []string{"a", "a", "b"} {
			sys.post(account, "transaction.paid", &engine.Transaction{ID: "tx_" + account, NotifyURL: "https://shop.test/"})
		}
		synctest.Wait()
		require.NoError(t, sys.Reset("a"))
		require.NoError(t, sys.Wait(t.Context(), "a"))
		synctest.Wait()
		assert.Equal(t, [2]int32{2, 1}, shop.counts(), "a's second webhook was queued, b's is still running")
		assert.Len(t, sys.Deliveries(""), 1)

		sys.post("a", "transaction.paid", &engine.Transaction{ID: "tx_a", NotifyURL: "https://shop.test/"})
		synctest.Wait()
		assert.Equal(t, [2]int32{3, 1}, shop.counts(), "the account goes on")
	})
}

// An account neither waits for the deliveries of others nor is delayed by them,
// whatever they do: hang, in any number, or be released one after the other.
func TestAccountsDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sys, shop := newSystem(t), &receiver{}
		sys.endpoint(t, deliver.Endpoint{Account: "busy", Handler: &hanging{}})
		sys.endpoint(t, deliver.Endpoint{Account: "a", Handler: shop})
		sys.Hold("busy")
		sys.emit("busy", "transaction.paid", "tx_0")
		require.NoError(t, sys.Release("busy", "dlv_1"))
		require.NoError(t, sys.Release("busy"))
		for i := range 200 {
			sys.emit("busy", "transaction.paid", fmt.Sprint("tx_", i))
		}
		synctest.Wait()
		began := time.Now()
		require.NoError(t, sys.Wait(t.Context(), "idle"))
		sys.emit("a", "transaction.paid", "tx_a")
		require.NoError(t, sys.Wait(t.Context(), "a"))
		sample, err := sys.SendSample("a", webhook.TransactionPaid)
		require.NoError(t, err)
		require.NoError(t, sys.WaitForEvent(t.Context(), sample))
		id := sys.Deliveries("a")[0].ID
		require.NoError(t, sys.Redeliver("a", id))
		require.NoError(t, sys.WaitFor(t.Context(), id))
		assert.Len(t, shop.events(), 3)
		assert.Zero(t, time.Since(began))
	})
}

// Wait covers the webhooks that a receiver causes, but not those of a stream that
// never ends.
func TestWaitIsBounded(t *testing.T) {
	t.Parallel()
	sys := newSystem(t)
	limit, caused := 20, 0
	sys.endpoint(t, deliver.Endpoint{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if caused++; caused < limit {
			sys.emit("a", "transaction.paid", "tx_1")
		}
	})})
	sys.emit("a", "transaction.paid", "tx_1")
	require.NoError(t, sys.Wait(t.Context(), "a"))
	assert.Equal(t, 20, caused)

	limit = math.MaxInt
	sys.emit("a", "transaction.paid", "tx_1")
	require.NoError(t, sys.Wait(t.Context(), "a"))
}

func TestLoadSendsDueDeliveries(t *testing.T) {
	t.Parallel()
	sys, shop := newSystem(t), &receiver{}
	ep := sys.endpoint(t, deliver.Endpoint{Handler: shop})
	sys.Load(deliver.Saved{
		Made:      1,
		Endpoints: []deliver.SavedEndpoint{{ID: ep.ID}, {ID: "ep_elsewhere"}},
		Deliveries: []deliver.SavedDelivery{
			{Delivery: deliver.Delivery{ID: "dlv_1", Endpoint: ep.ID, Body: []byte(`{"id":"evt_x"}`), State: deliver.Pending}, Registered: true},
			{Delivery: deliver.Delivery{ID: "dlv_2", Endpoint: "ep_elsewhere", Body: []byte(`{"id":"evt_y"}`), State: deliver.Pending}, Registered: true},
		},
	})
	sys.wait(t)
	assert.Equal(t, []string{"evt_x"}, shop.events())
	assert.Contains(t, sys.Deliveries("")[1].Attempts[0].Error, "another process")
}
