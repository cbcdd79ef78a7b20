package webhook

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/gate"
)

// ReadBack limits the API calls for unsigned deliveries, since anyone who
// knows the receiver's URL can cause them. The same limits apply separately to
// signed deliveries, a few kinds of which need a call (see [Config.API]), so a
// flood of unsigned deliveries doesn't delay them. A zero field means its
// default.
type ReadBack struct {
	Concurrent int           // concurrent calls; default 8
	PerSecond  int           // sustained rate, with bursts of twice as many; default 50
	Timeout    time.Duration // of one call; default 5 s, short enough for the sender to get its response
}

// api reads resources with the merchant's client.
type api struct {
	client *gateway.Client
	key    *keyWatch
}

// gatePatience is how long a delivery waits at the gate of its account, if package merchant has
// one. The sender repeats it.
const gatePatience = time.Second

// read makes only one attempt, because the sender of the delivery retries.
func (a api) read(ctx context.Context, family Family, id string) (*resource, error) {
	r, err := a.get(gate.Background(ctx, gatePatience), family, id)
	a.key.saw(ctx, err)
	switch {
	case errors.Is(err, gateway.ErrNotFound), errors.Is(err, gateway.ErrValidation):
		return nil, errUnknownResource // the sender chose the id: a malformed one is treated as unknown
	case err != nil:
		return nil, err
	case r.head().id != id:
		// With an API that matches ids leniently, one resource could have many
		// ids, and one event many identities.
		return nil, errUnknownResource
	default:
		return r, nil
	}
}

func (a api) get(ctx context.Context, family Family, id string) (r *resource, err error) {
	r = &resource{}
	switch family {
	case FamilyTransaction:
		r.transaction, err = a.client.Transactions.Get(ctx, id, gateway.MaxAttempts(1))
	case FamilySubscription:
		r.subscription, err = a.client.Subscriptions.Get(ctx, id, gateway.MaxAttempts(1))
	default:
		r.transfer, err = a.client.Transfers.Get(ctx, id, gateway.MaxAttempts(1))
	}
	return r, err
}

// reader reads resources for deliveries: at most one concurrent call per
// resource, with limits for all concurrent calls and for calls per second.
type reader struct {
	api     api
	timeout time.Duration
	slots   chan struct{}
	bucket  bucket

	mu      sync.Mutex
	flights map[string]*flight
}

// flight is one call that several deliveries wait for.
type flight struct {
	done     chan struct{}
	resource *resource
	err      error
}

var (
	errUnknownResource = errors.New("webhook: the API has no such resource")
	errReadLimit       = errors.New("webhook: too many deliveries have to be confirmed")
)

func newReader(source api, limits ReadBack) *reader {
	rate := float64(positive(limits.PerSecond, 50))
	return &reader{
		api:     source,
		timeout: positive(limits.Timeout, 5*time.Second),
		slots:   make(chan struct{}, positive(limits.Concurrent, 8)),
		bucket:  bucket{perSecond: rate, size: 2 * rate},
		flights: make(map[string]*flight),
	}
}

// read returns the resource. If joined is true, the call was already running
// and may have seen an older state.
func (r *reader) read(ctx context.Context, family Family, id string) (res *resource, joined bool, err error) {
	key := resourceKey(family, id)
	r.mu.Lock()
	f := r.flights[key]
	joined = f != nil
	if !joined {
		if !r.bucket.take(time.Now()) {
			r.mu.Unlock()
			return nil, false, errReadLimit
		}
		f = &flight{done: make(chan struct{})}
		r.flights[key] = f
		go r.fly(context.WithoutCancel(ctx), f, key, family, id)
	}
	r.mu.Unlock()

	select {
	case <-f.done:
		return f.resource, joined, f.err
	case <-ctx.Done():
		return nil, joined, ctx.Err()
	}
}

func (r *reader) fly(ctx context.Context, f *flight, key string, family Family, id string) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil { // in the client's transport
			f.resource, f.err = nil, fmt.Errorf("webhook: the read of a resource panicked: %v", p)
		}
		if f.resource == nil && f.err == nil {
			f.err = errors.New("webhook: the read of a resource ended without a result")
		}
		r.mu.Lock()
		delete(r.flights, key)
		r.mu.Unlock()
		close(f.done)
	}()
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
		f.resource, f.err = r.api.read(ctx, family, id)
	case <-ctx.Done():
		f.err = errReadLimit
	}
}

func resourceKey(family Family, id string) string { return string(family) + "/" + id }

// bucket is a token bucket. It is guarded by its owner's lock.
type bucket struct {
	perSecond, size float64
	tokens          float64
	last            time.Time
}

func (b *bucket) take(now time.Time) bool {
	if b.last.IsZero() {
		b.tokens = b.size
	} else {
		b.tokens = min(b.size, b.tokens+now.Sub(b.last).Seconds()*b.perSecond)
	}
	b.last = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
