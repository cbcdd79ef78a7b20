package otelgateway

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/operations"
)

// Outbox attributes that the conventions do not define.
const (
	outboxEventKey = attribute.Key("gateway.outbox.event") // an operations.Event
	outboxStateKey = attribute.Key("gateway.outbox.state") // an operations.State
)

// outboxBuckets are wider than buckets: after a lost response an outcome takes minutes
// (operations.Config.SettleAfter), and while the gateway is down it takes hours.
func outboxBuckets() metric.HistogramOption {
	return metric.WithExplicitBucketBoundaries(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 21600, 86400)
}

func (t *Telemetry) newOutboxInstruments() error {
	var failed [2]error
	t.outboxEvents, failed[0] = t.meter.Int64Counter("gateway.outbox.events", metric.WithUnit("{event}"),
		metric.WithDescription("What happened to the operations of the outbox."))
	t.outboxDuration, failed[1] = t.meter.Float64Histogram("gateway.outbox.operation.duration", outboxBuckets(), metric.WithUnit("s"),
		metric.WithDescription("Time from the insert of an operation to the commit of its handler."))
	return errors.Join(failed[:]...)
}

// OutboxObserver returns the function for the Observe field of [operations.Config] and of
// package merchant's Config. It counts the events of an outbox's operations, and measures
// how long each took from its insert to the commit of its handler. It makes no spans: the
// outbox's client does, with [Telemetry.Observer].
func (t *Telemetry) OutboxObserver() func(context.Context, operations.Observation) {
	return t.observeOutbox
}

// observeOutbox leaves out what identifies an operation or quotes someone: its id, key
// and resource, and the text of its error.
func (t *Telemetry) observeOutbox(ctx context.Context, o operations.Observation) {
	attributes := append(make([]attribute.KeyValue, 0, 4), operationKey.String(o.Kind), accountKey.String(o.Account), outboxEventKey.String(string(o.Event)))
	if kind := outboxError(o); kind != "" {
		attributes = append(attributes, semconv.ErrorTypeKey.String(kind))
	}
	set := metric.WithAttributeSet(attribute.NewSet(attributes...))
	t.outboxEvents.Add(ctx, 1, set)
	if o.Event == operations.EventDone || o.Event == operations.EventRejected {
		t.outboxDuration.Record(ctx, o.Age.Seconds(), set)
	}
}

// outboxError returns the error.type of an observation: that of the call to the gateway,
// or else the event. The text of a handler's error may name people.
func outboxError(o operations.Observation) string {
	switch o.Event {
	case operations.EventDone, operations.EventNotApplied, operations.EventSearching:
		return ""
	case operations.EventRejected, operations.EventRetry, operations.EventUnknown:
		if errors.Is(o.Err, operations.ErrAbandoned) {
			return "abandoned"
		}
		_, kind := classify(o.Err)
		return kind
	default:
		return string(o.Event)
	}
}

// Outbox is implemented by [operations.Outbox], whatever the type of its transactions.
type Outbox interface {
	Account() gateway.Account
	Counts(ctx context.Context) (map[operations.State]int64, error)
}

// WatchOutbox reports the operations of the outbox's account that are not finished
// whenever metrics are collected, until the registration is unregistered. It calls
// [operations.Outbox.Counts], which queries the database, so call it once for each
// account, in only one of the processes that share a database.
func (t *Telemetry) WatchOutbox(o Outbox) (metric.Registration, error) {
	unfinished, err := t.newOutboxGauge()
	if err != nil {
		return nil, err
	}
	return t.meter.RegisterCallback(func(ctx context.Context, observer metric.Observer) error {
		counts, err := o.Counts(ctx)
		if err == nil {
			observeOperations(observer, unfinished, o.Account().Name, counts)
		}
		return err
	}, unfinished)
}

func (t *Telemetry) newOutboxGauge() (metric.Int64ObservableGauge, error) {
	return t.meter.Int64ObservableGauge("gateway.outbox.operations", metric.WithUnit("{operation}"),
		metric.WithDescription("Operations in the outbox that are neither done nor canceled."))
}

// observeOperations reports the operations of an account, which has a name.
func observeOperations(o metric.Observer, unfinished metric.Int64ObservableGauge, account string, counts map[operations.State]int64) {
	for _, state := range [...]operations.State{
		operations.Waiting, operations.Working, operations.Sent, operations.Ambiguous, operations.Decided, operations.Dead,
	} { // also those without operations: an alert has to see the 0
		o.ObserveInt64(unfinished, counts[state], metric.WithAttributes(accountKey.String(account), outboxStateKey.String(string(state))))
	}
}
