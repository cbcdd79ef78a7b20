package otelgateway

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/gateway-go/gateway/webhook"
)

// Webhook attributes that the conventions do not define.
const (
	accountKey        = attribute.Key("gateway.account")         // the account's name; also of the gauges and the outbox
	webhookOutcomeKey = attribute.Key("gateway.webhook.outcome") // a webhook.Outcome
	runAttemptKey     = attribute.Key("gateway.webhook.attempt") // of the handler
	keyIDKey          = attribute.Key("gateway.webhook.key_id")
	resourceKey       = attribute.Key("gateway.resource") // family and id
)

// Instrument returns c with the hooks that record spans and metrics, for
// [webhook.New]. The Begin and Observe hooks of c are still called. A Trace
// hook of c is kept, and must return a traceparent for runs to be linked to
// deliveries.
//
// A delivery is a consumer span within the span of its request, if there is one. In
// Sync mode the handler runs within it. In Inbox mode every run of a handler
// is a consumer span with a link to the span of the delivery that brought the
// event, which may belong to another process.
func (t *Telemetry) Instrument(c webhook.Config) webhook.Config {
	begin, observe := c.Begin, c.Observe
	c.Begin = func(ctx context.Context, claim *webhook.Claim) context.Context {
		if begin != nil {
			ctx = begin(ctx, claim)
		}
		return t.begin(ctx, claim)
	}
	c.Observe = func(ctx context.Context, o webhook.Observation) {
		t.observe(ctx, o)
		if observe != nil {
			observe(ctx, o)
		}
	}
	if c.Trace == nil {
		c.Trace = traceparent
	}
	return c
}

const traceparentHeader = "traceparent"

// traceparent is the part of a delivery's context that is stored. Baggage,
// which may name people, and vendor state are not stored.
func traceparent(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpanContext(ctx, trace.SpanContextFromContext(ctx).WithTraceState(trace.TraceState{})), carrier)
	return carrier[traceparentHeader]
}

// links returns the link to the delivery that brought an event.
func links(parent string) trace.SpanStartOption {
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{traceparentHeader: parent})
	if delivery := trace.SpanContextFromContext(ctx); delivery.IsValid() {
		return trace.WithLinks(trace.Link{SpanContext: delivery})
	}
	return trace.WithLinks()
}

type spanKey struct{}

// running is the span of a delivery or a run until it is observed.
type running struct {
	trace.Span

	observed atomic.Bool
}

func (t *Telemetry) begin(ctx context.Context, c *webhook.Claim) context.Context {
	var span trace.Span
	if c == nil {
		ctx, span = t.tracer.Start(ctx, receive, trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(operation(receive)...))
	} else {
		kind := t.kind(c.Kind)
		ctx, span = t.tracer.Start(ctx, process+" "+kind, trace.WithSpanKind(trace.SpanKindConsumer),
			trace.WithAttributes(append(operation(process), semconv.MessagingDestinationName(kind))...), links(c.Trace))
	}
	return context.WithValue(ctx, spanKey{}, &running{Span: span})
}

const (
	receive = "receive"
	process = "process"
	system  = "gateway"
	other   = "_OTHER"
)

func operation(name string) []attribute.KeyValue {
	return append(make([]attribute.KeyValue, 0, 10), semconv.MessagingSystemKey.String(system),
		semconv.MessagingOperationName(name), semconv.MessagingOperationTypeKey.String(name))
}

// kind returns the name of a kind for metrics and span names, where cardinality must
// stay low.
func (t *Telemetry) kind(k webhook.Kind) string {
	if t.kinds[k] {
		return string(k)
	}
	return other
}

func (t *Telemetry) observe(ctx context.Context, o webhook.Observation) {
	name := receive
	if o.FromWorker || o.Attempt > 0 {
		name = process
	}
	attributes := append(operation(name), webhookOutcomeKey.String(string(o.Outcome)))
	if o.Account != "" {
		attributes = append(attributes, accountKey.String(o.Account))
	}
	if o.Kind != "" {
		attributes = append(attributes, semconv.MessagingDestinationName(t.kind(o.Kind)))
	}
	kind := errorOf(o)
	if kind != "" {
		attributes = append(attributes, semconv.ErrorTypeKey.String(kind))
	}
	if name == receive {
		t.receiveDuration.Inst().Record(ctx, o.Duration.Seconds(), metric.WithAttributes(attributes...))
	} else {
		t.processDuration.Inst().Record(ctx, o.Duration.Seconds(), metric.WithAttributes(attributes...))
	}
	span := t.observed(ctx, o)
	defer span.End()
	if !span.IsRecording() {
		return
	}
	if o.Kind != "" {
		span.SetName(name + " " + t.kind(o.Kind))
	}
	span.SetAttributes(spanDetails(attributes, o)...)
	if isFailure(o.Outcome) {
		span.SetStatus(codes.Error, kind)
	}
}

// observed returns the span of an observation. A hung handler is reported when
// it hangs and again when it returns; the second report is a child span of the
// first.
func (t *Telemetry) observed(ctx context.Context, o webhook.Observation) trace.Span {
	if r, ok := ctx.Value(spanKey{}).(*running); ok && !r.observed.Swap(true) {
		return r.Span
	}
	_, span := t.tracer.Start(ctx, process, trace.WithSpanKind(trace.SpanKindConsumer), trace.WithTimestamp(time.Now().Add(-o.Duration)))
	return span
}

// spanDetails adds the attributes that only spans have.
func spanDetails(attributes []attribute.KeyValue, o webhook.Observation) []attribute.KeyValue {
	if o.EventID != "" {
		attributes = append(attributes, semconv.MessagingMessageID(o.EventID), resourceKey.String(o.Resource))
	}
	if o.KeyID != "" {
		attributes = append(attributes, keyIDKey.String(o.KeyID))
	}
	if o.Attempt > 0 {
		attributes = append(attributes, runAttemptKey.Int(o.Attempt))
	}
	return attributes
}

// errorOf returns the error.type of an observation: the reason for a rejection, or else
// the outcome. The text of a handler's error may name people.
func errorOf(o webhook.Observation) string {
	switch o.Outcome {
	case webhook.OutcomeHandled, webhook.OutcomeStored, webhook.OutcomeDuplicate, webhook.OutcomeStale, webhook.OutcomeUnhandled, webhook.OutcomeIgnored:
		return ""
	case webhook.OutcomeRefused:
		if why, ok := errors.AsType[webhook.DeliveryError](o.Err); ok {
			return string(why)
		}
		return string(webhook.ErrInvalidJSON) // the same as in the response
	default:
		return string(o.Outcome)
	}
}

// isFailure reports whether an outcome is an error of the receiver, its store
// or its handlers. An error of the sender is not.
func isFailure(o webhook.Outcome) bool {
	switch o {
	case webhook.OutcomeFailed, webhook.OutcomeDead, webhook.OutcomeConflict, webhook.OutcomeLost, webhook.OutcomeStoreError,
		webhook.OutcomeHung, webhook.OutcomePanicked:
		return true
	default:
		return false
	}
}
