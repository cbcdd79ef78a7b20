package otelgateway_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/gateway-go/gateway"
	otelgateway "github.com/gateway-go/gateway/contrib/otel"
	"github.com/gateway-go/gateway/operations"
)

var _ otelgateway.Outbox = (*operations.Outbox[*sql.Tx])(nil)

// refund returns an observation of a refund whose key and resource name a buyer.
func refund(event operations.Event, err error) operations.Observation {
	return operations.Observation{
		Event: event, ID: 17, Account: account, Kind: "transactions.refund", Key: "return-of-" + email, Resource: "transactions/tx-of-" + email,
		Sends: 3, Age: 90 * time.Second, Err: err,
	}
}

const refunding = "gateway.account=shop-br gateway.operation.name=transactions.refund gateway.outbox.event="

func TestEveryEventOfTheOutboxIsCounted(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		event operations.Event
		err   error
		kind  string // the error.type
	}{
		{operations.EventDone, nil, ""},
		{operations.EventNotApplied, nil, ""},
		{operations.EventSearching, nil, ""},
		{operations.EventRejected, &operations.RejectedError{Kind: "duplicate"}, "duplicate"},
		{operations.EventRejected, &operations.RejectedError{Kind: "abandoned"}, "abandoned"},
		{operations.EventRetry, gateway.ErrUnauthorized, "unauthorized"},
		{operations.EventRetry, errors.New("the resource has changed"), "_OTHER"},
		{operations.EventUnknown, fmt.Errorf("%w: %w", gateway.ErrOutcomeUnknown, gateway.ErrServer), "outcome_unknown"},
		{operations.EventAmbiguous, errors.New("someone else refunded"), "ambiguous"},
		{operations.EventSendLimit, operations.ErrSendLimit, "send_limit"},
		{operations.EventHandlerFailed, gateway.ErrConflict, "handler_failed"}, // not an error of this operation's call
		{operations.EventDead, errors.New("no such order"), "dead"},
		{operations.EventUnhandled, nil, "unhandled"},
		{operations.EventLate, errors.New("lost"), "late"},
	} {
		t.Run(string(test.event)+" "+test.kind, func(t *testing.T) {
			t.Parallel()
			b := newBackend(t)
			b.OutboxObserver()(t.Context(), refund(test.event, test.err))
			b.OutboxObserver()(t.Context(), refund(test.event, test.err))
			attributes := refunding + string(test.event)
			if test.kind != "" {
				attributes = "error.type=" + test.kind + " " + attributes
			}
			want := []string{"gateway.outbox.events{" + attributes + "} 2"}
			if test.event == operations.EventDone || test.event == operations.EventRejected {
				want = append(want, "gateway.outbox.operation.duration{"+attributes+"} 2")
			}
			assert.Equal(t, want, b.metrics("gateway.outbox"))
		})
	}
}

func TestTheDurationOfAnOperationIsItsAgeInSeconds(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	b.OutboxObserver()(t.Context(), refund(operations.EventDone, nil))
	var data metricdata.ResourceMetrics
	require.NoError(t, b.reader.Collect(t.Context(), &data))
	for _, m := range data.ScopeMetrics[0].Metrics {
		if m.Name == "gateway.outbox.operation.duration" {
			histogram, ok := m.Data.(metricdata.Histogram[float64])
			require.True(t, ok)
			assert.Equal(t, "s", m.Unit)
			assert.InDelta(t, 90.0, histogram.DataPoints[0].Sum, 0)
			assert.Greater(t, histogram.DataPoints[0].Bounds[len(histogram.DataPoints[0].Bounds)-1], time.Hour.Seconds(), "an outcome may take hours")
			return
		}
	}
	assert.Fail(t, "there is no duration")
}

// The key and the resource of an operation are the merchant's, and an error may quote
// anyone.
func TestNoMetricOfTheOutboxIdentifiesAnOperation(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	for _, event := range []operations.Event{operations.EventRejected, operations.EventRetry, operations.EventUnknown, operations.EventAmbiguous, operations.EventDead} {
		b.OutboxObserver()(t.Context(), refund(event, fmt.Errorf("no order for %s, %s", buyer, email)))
	}
	lines := strings.Join(b.metrics(""), "\n")
	require.Contains(t, lines, refunding+"dead")
	for _, value := range []string{email, buyer, "return", "tx-of", "17"} {
		assert.NotContains(t, lines, value)
	}
	assert.Empty(t, b.all(), "the outbox's client makes the spans")
}

// counted is an outbox with these operations.
type counted struct {
	counts map[operations.State]int64
	err    error
}

func (counted) Account() gateway.Account { return gateway.Account{Name: account} }

func (c counted) Counts(context.Context) (map[operations.State]int64, error) { return c.counts, c.err }

// A state without operations is 0, not missing. Canceled operations are finished.
func TestOperationsThatAreNotFinishedAreWatched(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	stop, err := b.WatchOutbox(counted{counts: map[operations.State]int64{operations.Waiting: 12, operations.Ambiguous: 2, operations.Dead: 1, operations.Canceled: 40}})
	require.NoError(t, err)
	var want []string
	for _, state := range []string{"ambiguous} 2", "dead} 1", "decided} 0", "sent} 0", "waiting} 12", "working} 0"} {
		want = append(want, "gateway.outbox.operations{gateway.account=shop-br gateway.outbox.state="+state)
	}
	assert.Equal(t, want, b.metrics("gateway.outbox"))
	require.NoError(t, stop.Unregister())
	assert.Empty(t, b.metrics("gateway.outbox"))
}

func TestCountsThatCanNotBeReadAreNotZero(t *testing.T) {
	t.Parallel()
	b, down := newBackend(t), errors.New("the database is down")
	_, err := b.WatchOutbox(counted{err: down})
	require.NoError(t, err)
	var data metricdata.ResourceMetrics
	require.ErrorIs(t, b.reader.Collect(t.Context(), &data), down)
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			assert.NotEqual(t, "gateway.outbox.operations", m.Name)
		}
	}
}
