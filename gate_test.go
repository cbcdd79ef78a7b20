package gateway_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
)

// door is a gate that admits the first attempts, and notes the outcome of each.
type door struct {
	admits int  // further ones get errClosed
	last   bool // no attempt may follow
	asked  []gateway.Attempt
	left   []gateway.AttemptResult
}

var errClosed = errors.New("the gate is closed")

func (d *door) Enter(_ context.Context, a gateway.Attempt) (func(gateway.AttemptResult) bool, error) {
	d.asked = append(d.asked, a)
	if len(d.asked) > d.admits {
		return nil, errClosed
	}
	return func(r gateway.AttemptResult) bool {
		d.left = append(d.left, r)
		return !d.last
	}, nil
}

// Each attempt asks the gate. If the first one is refused, the call was not sent, and it does
// not wait.
func TestAClosedGateSendsNothing(t *testing.T) {
	t.Parallel()
	safe, keyed, unsafe := classCalls(t)
	for _, c := range []classCall{safe, keyed, unsafe} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d, began := new(door), time.Now()
				client := clientOf(t, roundTrip(func(*http.Request) (*http.Response, error) {
					assert.Fail(t, "a request was sent")
					return nil, errReset
				}), gateway.WithGate(d))
				err := c.call(t.Context(), client)
				require.ErrorIs(t, err, gateway.ErrNotSent)
				require.ErrorIs(t, err, errClosed)
				require.NotErrorIs(t, err, gateway.ErrOutcomeUnknown)
				e, ok := errors.AsType[*gateway.Error](err)
				require.True(t, ok)
				assert.Zero(t, e.Attempts)
				assert.Equal(t, errClosed, e.Err, "not as net/http wraps it")
				assert.Len(t, d.asked, 1)
				assert.Equal(t, 1, d.asked[0].Number)
				assert.Equal(t, "api.gateway.example", d.asked[0].Host)
				assert.Empty(t, d.left)
				assert.Zero(t, time.Since(began))
			})
		})
	}
}

// unnoted is a gate that wants no outcomes.
type unnoted struct{}

func (unnoted) Enter(context.Context, gateway.Attempt) (func(gateway.AttemptResult) bool, error) {
	return nil, nil //nolint:nilnil // the gate is told nothing
}

func TestAGateMayWantNoOutcomes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := clientOf(t, play(reply(503, ""), reply(200, `{"success":true,"data":{"id":"tx-1","status":"paid"}}`)), gateway.WithGate(unnoted{}))
		got, err := client.Transactions.Get(t.Context(), "tx-1")
		require.NoError(t, err)
		assert.Equal(t, "tx-1", got.ID)
	})
}

// A repeat that the gate refuses leaves the outcome of the earlier call unknown.
func TestAClosedGateBeforeARepeat(t *testing.T) {
	t.Parallel()
	p := pixOrder()
	p.ExternalRef = "order-1"
	client := clientOver(t, hang, gateway.WithGate(new(door)))
	_, err := client.Transactions.Create(t.Context(), p, gateway.FirstSent(time.Now().Add(-time.Minute)))
	require.ErrorIs(t, err, gateway.ErrOutcomeUnknown)
	require.ErrorIs(t, err, errClosed)
	require.NotErrorIs(t, err, gateway.ErrNotSent)
}

// If a later attempt is refused, the call has the outcome of those that were made.
func TestAGateThatClosesBetweenAttempts(t *testing.T) {
	t.Parallel()
	safe, keyed, unsafe := classCalls(t)
	limited := reply(http.StatusTooManyRequests, `{"error":"limit","message":"slow down","status":429}`, "Retry-After", "7")
	for name, tc := range map[string]struct {
		call  classCall
		first roundTrip
		want  error
	}{
		"a read, 503":              {safe, reply(http.StatusServiceUnavailable, `{}`), gateway.ErrServer},
		"a read, reset":            {safe, fail(errReset), gateway.ErrServer},
		"a create, 503":            {keyed, reply(http.StatusServiceUnavailable, `{}`), gateway.ErrOutcomeUnknown},
		"a create, reset":          {keyed, fail(errReset), gateway.ErrOutcomeUnknown},
		"a create, limited":        {keyed, limited, gateway.ErrRateLimited},
		"a refund, limited":        {unsafe, limited, gateway.ErrRateLimited},
		"a refund, no connection":  {unsafe, fail(errDial), gateway.ErrNotSent},
		"a create, no connection":  {keyed, fail(errDial), gateway.ErrNotSent},
		"a create, name not known": {keyed, fail(errDNS), gateway.ErrNotSent},
	} {
		for how, d := range map[string]*door{"refused": {admits: 1}, "told before the wait": {admits: 9, last: true}} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					sent, began := 0, time.Now()
					client := clientOf(t, roundTrip(func(r *http.Request) (*http.Response, error) {
						sent++
						return tc.first(r)
					}), gateway.WithGate(d))
					err := tc.call.call(t.Context(), client)
					require.ErrorIs(t, err, tc.want)
					require.NotErrorIs(t, err, errClosed)
					e, ok := errors.AsType[*gateway.Error](err)
					require.True(t, ok)
					assert.Equal(t, 1, e.Attempts)
					assert.Equal(t, 1, sent)
					require.Len(t, d.left, 1)
					assert.Equal(t, e.StatusCode, d.left[0].StatusCode)
					assert.Equal(t, e.RetryAfter, d.left[0].RetryAfter)
					if d.last {
						assert.Zero(t, time.Since(began), "the client does not sleep before it gives up")
					}
				})
			})
		}
	}
}

// Gates add up, and those that have admitted an attempt which is not made are told.
func TestSeveralGates(t *testing.T) {
	t.Parallel()
	safe, _, _ := classCalls(t)
	first, second := &door{admits: 9}, &door{admits: 1}
	client := clientOver(t, reply(http.StatusServiceUnavailable, `{}`), gateway.WithGate(first))
	client, err := client.With(gateway.WithGate(second))
	require.NoError(t, err)
	require.ErrorIs(t, safe.call(t.Context(), client), gateway.ErrServer)
	assert.Len(t, first.asked, 2)
	assert.Equal(t, []int{503, 0}, []int{first.left[0].StatusCode, first.left[1].StatusCode})
	assert.Len(t, second.left, 1)

	_, err = client.With(gateway.WithGate(nil))
	require.ErrorContains(t, err, "WithGate needs a gate")
}

// A transport that panics leaves the gate.
func TestAPanicLeavesTheGate(t *testing.T) {
	t.Parallel()
	d := &door{admits: 1}
	client := clientOver(t, func(*http.Request) (*http.Response, error) { panic("a bug in a transport") }, gateway.WithGate(d))
	assert.Panics(t, func() { _, _ = client.Transactions.Get(t.Context(), orderID) })
	assert.Equal(t, []gateway.AttemptResult{{}}, d.left)
}
