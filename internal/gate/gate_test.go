package gate_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/gate"
)

const (
	get      = "transactions.get"
	create   = "transactions.create"
	transfer = "transfers.create"
)

// world is a gateway behind a gate, in virtual time.
type world struct {
	*testing.T

	gate *gate.Gate
	log  bytes.Buffer

	mu   sync.Mutex
	down map[string]gateway.AttemptResult // by the name of the request; "" for all
	took time.Duration
	sent map[string][]time.Duration // when requests were sent, since the start
	at   time.Time
}

func run(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, down: make(map[string]gateway.AttemptResult), sent: make(map[string][]time.Duration), at: time.Now(), took: 50 * time.Millisecond}
		w.gate = gate.New("shop", slog.New(slog.NewTextHandler(&w.log, nil)))
		test(w)
	})
}

// fails makes requests fail; without a name all of them.
func (w *world) fails(status int, names ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range append(names, "")[:max(1, len(names))] {
		w.down[name] = gateway.AttemptResult{StatusCode: status}
	}
}

func (w *world) works() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.down)
}

func (w *world) count(name string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.sent[name])
}

// send makes an attempt. It returns the gate's error, or one if the gateway fails.
func (w *world) send(ctx context.Context, name string) error {
	leave, err := w.gate.Enter(ctx, gateway.Attempt{Operation: gateway.Operation{Name: name}, Number: 1})
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.sent[name] = append(w.sent[name], time.Since(w.at))
	r, down := w.down[name]
	if !down {
		r, down = w.down[""]
	}
	took := w.took
	w.mu.Unlock()
	if !down {
		r = gateway.AttemptResult{StatusCode: 200}
	}
	time.Sleep(took)
	leave(r)
	if down {
		return fmt.Errorf("the gateway fails: %d", r.StatusCode)
	}
	return nil
}

func background(t *world) context.Context { return gate.Background(t.Context(), 0) }

// patient is background work that waits.
func patient(t *world) context.Context { return gate.Background(t.Context(), 24*time.Hour) }

func refused(t *world, err error) {
	t.Helper()
	_, ok := errors.AsType[*gate.ClosedError](err)
	assert.True(t, ok, "%v", err)
}

// During an outage each kind probes after pauses that double from a second to 5 minutes, half of
// which is jitter.
func TestAnOutageCostsFewProbes(t *testing.T) {
	t.Parallel()
	for name, result := range map[string]gateway.AttemptResult{
		"503":         {StatusCode: 503},
		"401":         {StatusCode: 401},
		"408":         {StatusCode: 408},
		"a redirect":  {StatusCode: 302},
		"429":         {StatusCode: 429},
		"no response": {Err: errors.New("connection refused")},
		"a cut body":  {StatusCode: 200, Err: errors.New("unexpected EOF")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, func(w *world) {
				w.down[""] = result
				for range 3600 * 10 {
					for range 5 {
						_ = w.send(background(w), get)
						w.took = 0
					}
					time.Sleep(100 * time.Millisecond)
				}
				sent := w.sent[get]
				assert.InDelta(t, 23, len(sent), 4, "in an hour")
				for i, at := range sent[1:] {
					pause := min(time.Second<<i, 5*time.Minute)
					assert.GreaterOrEqual(t, at-sent[i], pause/2)
					assert.LessOrEqual(t, at-sent[i], pause+200*time.Millisecond)
				}
				assert.Equal(t, gate.State{Closed: true, Since: w.at.Add(50 * time.Millisecond), Status: result.StatusCode}, w.gate.State())
				assert.Equal(t, 1, strings.Count(w.log.String(), "\n"), "logged once")
				w.works()
				time.Sleep(5 * time.Minute)
				require.NoError(t, w.send(background(w), get))
				assert.False(t, w.gate.State().Closed)
				assert.Equal(t, 2, strings.Count(w.log.String(), "\n"), "logged once more")
			})
		})
	}
}

// An error about one record says that the gateway is there.
func TestErrorsAboutOneRecordOpenTheGate(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 403, 404, 409, 410, 412, 422, 200, 201, 204} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			run(t, func(w *world) {
				w.fails(503)
				require.Error(w, w.send(background(w), get))
				assert.True(w, w.gate.State().Closed)
				time.Sleep(time.Second)
				w.fails(status)
				require.Error(w, w.send(background(w), get))
				assert.False(w, w.gate.State().Closed)
			})
		})
	}
}

// Retry-After is kept by all kinds, and a caller's probe may extend it.
func TestTheGateWaitsAsLongAsTheGatewayAsks(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		w.down[""] = gateway.AttemptResult{StatusCode: 429, RetryAfter: 40 * time.Second}
		require.Error(w, w.send(background(w), get))
		for range 4000 {
			refused(w, w.send(background(w), get))
			refused(w, w.send(background(w), create))
			if time.Since(w.at) > 40*time.Second {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		w.works()
		time.Sleep(10 * time.Second)
		require.NoError(w, w.send(background(w), create), "after a quarter more at the latest")
	})
}

// One request of a thousand fails: nothing else waits for it.
func TestOneFailureAmongManySuccessesPausesNothing(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		var group sync.WaitGroup
		for i := range 20_000 {
			name := get
			if i%1000 == 500 {
				w.fails(502, "unlucky")
				name = "unlucky"
			}
			group.Go(func() {
				at := time.Now()
				if err := w.send(patient(w), name); name == get {
					assert.NoError(w, err)
				}
				if i > 100 { // then it is known that the gateway works
					assert.Equal(w, w.took, time.Since(at))
				}
			})
			time.Sleep(5 * time.Millisecond)
		}
		group.Wait()
		assert.Equal(w, 20_000-20, w.count(get))
		assert.Equal(w, 20, w.count("unlucky"))
		assert.Empty(w, w.log.String())
	})
}

// A single failure of a quiet account pauses the background for the first pause at most, and no
// caller. What was in flight goes on, and its success opens the gate.
func TestOneFailureOfAQuietAccountPausesForASecond(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		w.fails(502)
		require.Error(w, w.send(background(w), get))
		w.works()
		refused(w, w.send(background(w), get))
		at := time.Now()
		require.NoError(w, w.send(w.Context(), create), "a caller probes at once")
		assert.Equal(w, w.took, time.Since(at))
		require.NoError(w, w.send(background(w), get), "its success opens the gate")

		w.fails(502)
		require.Error(w, w.send(background(w), get))
		w.works()
		at = time.Now()
		require.NoError(w, w.send(patient(w), get))
		assert.LessOrEqual(w, time.Since(at), time.Second+w.took)

		slow := make(chan error)
		w.took = time.Second / 2
		go func() { slow <- w.send(background(w), create) }()
		synctest.Wait()
		w.fails(502)
		w.took = 0
		require.Error(w, w.send(background(w), get))
		refused(w, w.send(background(w), get))
		require.NoError(w, <-slow)
		assert.False(w, w.gate.State().Closed)
		assert.Empty(w, w.log.String())
	})
}

// What began before the gate closed says nothing new when it fails.
func TestOldFailuresDoNotMakeThePauseLonger(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		for range 100 {
			require.NoError(w, w.send(background(w), get))
		}
		w.fails(503)
		var group sync.WaitGroup
		for range 50 {
			group.Go(func() { assert.Error(w, w.send(background(w), get)) })
		}
		group.Wait()
		w.works()
		time.Sleep(time.Second)
		require.NoError(w, w.send(background(w), get))
	})
}

// One endpoint fails for good: it alone is paused, and charges go on.
func TestAnEndpointThatAlwaysFailsPausesNothingElse(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		w.fails(503, transfer)
		var delayed time.Duration
		var group sync.WaitGroup
		for range 8 { // a backlog of payouts
			group.Go(func() {
				for time.Since(w.at) < time.Hour {
					_ = w.send(patient(w), transfer)
				}
			})
		}
		for range 3000 {
			time.Sleep(time.Second)
			at := time.Now()
			require.NoError(w, w.send(patient(w), create))
			delayed = max(delayed, time.Since(at)-w.took)
		}
		assert.LessOrEqual(w, delayed, time.Second)
		assert.LessOrEqual(w, w.count(transfer), 30)
		group.Wait()
	})
}

// All kinds fail: while payouts fill the queue, charges find out that the gateway is back.
func TestEachKindProbes(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		w.fails(503)
		for range 8 {
			go func() {
				for w.Context().Err() == nil && time.Since(w.at) < 2*time.Minute {
					_ = w.send(patient(w), transfer)
				}
			}()
		}
		time.Sleep(time.Minute)
		require.Error(w, w.send(patient(w), create))
		w.works()
		w.fails(503, transfer)
		at := time.Now()
		require.NoError(w, w.send(patient(w), create))
		assert.LessOrEqual(w, time.Since(at), time.Second+w.took)
		time.Sleep(2 * time.Minute)
		w.works()
		synctest.Wait()
	})
}

// Callers probe once a second, and another one waits for that at most as long.
func TestCallersProbeOnceASecond(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		w.fails(503)
		require.Error(w, w.send(background(w), get))
		time.Sleep(100 * time.Millisecond)
		var group sync.WaitGroup
		for range 100 { // for 10 s, 20 callers a second
			for range 2 {
				group.Go(func() {
					at := time.Now()
					if w.send(w.Context(), create) == nil {
						assert.Fail(w, "the gateway works")
					}
					assert.LessOrEqual(w, time.Since(at), time.Second+w.took)
				})
			}
			time.Sleep(100 * time.Millisecond)
		}
		group.Wait()
		assert.InDelta(w, 11, w.count(create), 1)
		assert.LessOrEqual(w, w.count(get), 1)

		w.works()
		at := time.Now()
		require.NoError(w, w.send(w.Context(), create))
		assert.LessOrEqual(w, time.Since(at), time.Second+w.took)
		at = time.Now()
		require.NoError(w, w.send(background(w), get), "the probes of callers made no pause longer")
		assert.Equal(w, w.took, time.Since(at))
	})
}

// When the gate opens, what waits begins at a rate that grows with each success.
func TestWhatWaitsDoesNotBeginAllAtOnce(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		w.fails(503)
		require.Error(w, w.send(background(w), get))
		var flying, most atomic.Int64
		var group sync.WaitGroup
		var ended []time.Duration
		for range 50 {
			group.Go(func() {
				leave, err := w.gate.Enter(patient(w), gateway.Attempt{Operation: gateway.Operation{Name: get}})
				if err != nil {
					assert.Fail(w, err.Error())
					return
				}
				w.mu.Lock()
				w.sent["begun"] = append(w.sent["begun"], time.Since(w.at))
				first := len(w.sent["begun"]) <= 4
				w.mu.Unlock()
				n := flying.Add(1)
				if first {
					most.Store(max(most.Load(), n))
				}
				time.Sleep(50 * time.Millisecond)
				flying.Add(-1)
				leave(gateway.AttemptResult{StatusCode: 200})
				w.mu.Lock()
				defer w.mu.Unlock()
				ended = append(ended, time.Since(w.at))
			})
		}
		group.Wait()
		assert.LessOrEqual(w, most.Load(), int64(3))
		begun := w.sent["begun"]
		assert.GreaterOrEqual(w, begun[1], begun[0]+50*time.Millisecond, "the probe is alone")
		assert.LessOrEqual(w, ended[49]-begun[0], time.Second)
	})
}

// A gateway that hangs gets few requests before the first timeout, and one every 5 s of each
// kind afterwards. A hanging probe does not hide that it works again.
func TestAGatewayThatHangs(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		w.down[""] = gateway.AttemptResult{Err: context.DeadlineExceeded}
		w.took = 30 * time.Second
		ctx, cancel := context.WithCancel(patient(w))
		var group sync.WaitGroup
		for range 50 {
			group.Go(func() { _ = w.send(ctx, get) })
			group.Go(func() { _ = w.send(ctx, create) })
		}
		time.Sleep(20*time.Second - 1)
		assert.LessOrEqual(w, w.count(get)+w.count(create), 8)
		w.works()
		w.mu.Lock()
		w.took = 10 * time.Millisecond
		w.mu.Unlock()
		time.Sleep(16 * time.Second)
		assert.Equal(w, 100, w.count(get)+w.count(create))
		cancel()
		group.Wait()
	})
}

// The end of a caller's context says nothing about the gateway, unless it has waited for it.
func TestContextsThatEnd(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		attempt := gateway.Attempt{Operation: gateway.Operation{Name: get}}
		ends := func(wait time.Duration, end func(context.Context) (context.Context, context.CancelFunc)) {
			ctx, cancel := end(w.Context())
			defer cancel()
			leave, err := w.gate.Enter(ctx, attempt)
			require.NoError(w, err)
			time.Sleep(wait + time.Millisecond)
			cancel()
			leave(gateway.AttemptResult{Err: ctx.Err()})
		}
		deadline := func(d time.Duration) func(context.Context) (context.Context, context.CancelFunc) {
			return func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, d) }
		}
		ends(time.Minute, context.WithCancel)
		ends(200*time.Millisecond, deadline(200*time.Millisecond))
		assert.False(w, w.gate.State().Closed)
		ends(3*time.Second, deadline(3*time.Second))
		assert.True(w, w.gate.State().Closed)

		ctx, cancel := context.WithTimeout(patient(w), time.Millisecond)
		defer cancel()
		_, err := w.gate.Enter(ctx, attempt)
		require.ErrorIs(w, err, context.DeadlineExceeded)
	})
}

// A request that panics gives its place back.
func TestARequestThatPanics(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		for range 10 {
			leave, err := w.gate.Enter(background(w), gateway.Attempt{Operation: gateway.Operation{Name: get}})
			require.NoError(w, err)
			leave(gateway.AttemptResult{})
		}
		assert.False(w, w.gate.State().Closed)
		require.NoError(w, w.send(background(w), get))
	})
}

// A pass that is not used lets another request probe; the first request of one that is used is
// admitted, and the next ones while the gate is open.
func TestPasses(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		w.fails(503)
		require.Error(w, w.send(background(w), create))
		time.Sleep(time.Second)
		p, wait := w.gate.Reserve(create, false, w.at)
		require.Zero(w, wait)
		other, wait := w.gate.Reserve(create, false, w.at)
		assert.Nil(w, other)
		assert.Positive(w, wait)
		p.End()
		p, wait = w.gate.Reserve(create, false, w.at)
		require.Zero(w, wait, "the other one was not used")
		require.EqualError(w, w.send(p.In(background(w)), create), "the gateway fails: 503")
		refused(w, w.send(p.In(background(w)), create))
		p.End()

		time.Sleep(2 * time.Second)
		w.fails(503, "transactions.refund")
		w.mu.Lock()
		delete(w.down, "")
		w.mu.Unlock()
		p, wait = w.gate.Reserve("transactions.refund", false, w.at)
		require.Zero(w, wait)
		require.NoError(w, w.send(p.In(background(w)), get), "what the work begins with")
		require.Error(w, w.send(p.In(background(w)), "transactions.refund"))
		p.End()
		require.NoError(w, w.send(patient(w), get))
		require.Error(w, w.send(background(w), "transactions.refund"), "a probe when the gate opens")
		assert.Zero(w, w.gate.Room("transactions.refund"), "it is paused")
		assert.False(w, w.gate.State().Closed, "alone")
		assert.Positive(w, w.gate.Room(create))
	})
}

// Work that is stored while the gate is closed probes like a caller, before the pause ends.
func TestFreshWorkProbesOnceASecond(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		w.fails(503)
		for range 6 { // the next probe of this kind is some 16 s later
			require.Error(w, w.send(patient(w), create))
		}
		_, wait := w.gate.Reserve(create, true, w.at)
		assert.Greater(w, wait, 5*time.Second, "it was stored before")
		_, wait = w.gate.Reserve(create, false, time.Now())
		assert.Greater(w, wait, 5*time.Second, "it was tried")
		p, wait := w.gate.Reserve(create, true, time.Now())
		require.Zero(w, wait)
		_, wait = w.gate.Reserve(create, true, time.Now())
		assert.Equal(w, time.Second, wait)
		require.Error(w, w.send(p.In(w.Context()), create))
		p.End()
		w.works()
		time.Sleep(time.Second)
		p, wait = w.gate.Reserve(create, true, time.Now())
		require.Zero(w, wait)
		require.NoError(w, w.send(p.In(w.Context()), create))
		p.End()
		assert.False(w, w.gate.State().Closed)
	})
}

// What waits for a long time ends when the gate is stopped.
func TestStop(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		w.fails(503)
		require.Error(w, w.send(background(w), get))
		ended := make(chan error)
		go func() { ended <- w.send(patient(w), get) }()
		synctest.Wait()
		w.gate.Stop()
		refused(w, <-ended)
		assert.Zero(w, time.Since(w.at)-w.took)
	})
}
