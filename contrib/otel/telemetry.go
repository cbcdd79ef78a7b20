// Package otelgateway reports the calls of a [gateway.Client] and the deliveries and
// handlers of a [webhook.Receiver] to OpenTelemetry, as spans and metrics, and the
// operations of an [operations.Outbox] as metrics. Its directory is contrib/otel, a
// separate module.
//
//	telemetry, err := otelgateway.New(otelgateway.Config{})
//	client, err := gateway.New(baseURL, credential, gateway.WithObserver(telemetry.Observer()))
//	rx, err := webhook.New(telemetry.Instrument(webhook.Config{Keys: keys, Account: "shop", Store: store, Mode: webhook.Inbox}))
//	outbox, err := operations.New(database.Postgres(db), operations.Config{Client: client, Observe: telemetry.OutboxObserver()})
//
// Names and attributes follow version 1.43.0 of the semantic conventions where
// it defines one; the README lists them all. No attribute holds a key, a
// document, an e-mail address, a body, an error's text or a URL: spans and
// metrics contain the names of operations, path templates, outcomes and, in spans
// only, the ids of webhook events, their resources and requests.
package otelgateway

import (
	"errors"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/semconv/v1.43.0/httpconv"
	"go.opentelemetry.io/otel/semconv/v1.43.0/messagingconv"
	"go.opentelemetry.io/otel/trace"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/webhook"
)

// ScopeName is the name of the instrumentation scope of all spans and metrics.
const ScopeName = "github.com/gateway-go/gateway/contrib/otel"

// Config sets where spans and metrics are sent.
type Config struct {
	TracerProvider trace.TracerProvider // the global one if it is nil
	MeterProvider  metric.MeterProvider // the global one if it is nil
}

// Telemetry records the spans and metrics of any number of clients, receivers and
// outboxes. It is safe for concurrent use.
type Telemetry struct {
	tracer trace.Tracer
	meter  metric.Meter

	callDuration    metric.Float64Histogram
	retries         metric.Int64Counter
	requestDuration httpconv.ClientRequestDuration
	receiveDuration messagingconv.ClientOperationDuration
	processDuration messagingconv.ProcessDuration
	outboxEvents    metric.Int64Counter
	outboxDuration  metric.Float64Histogram

	calls    cache[string, *activity]          // by the operation's name
	attempts cache[gateway.Attempt, *activity] // without a Number

	kinds map[webhook.Kind]bool // those that this version knows; never changed
}

// New returns a Telemetry, or an error if the meter rejects an instrument.
func New(config Config) (*Telemetry, error) {
	if config.TracerProvider == nil {
		config.TracerProvider = otel.GetTracerProvider()
	}
	if config.MeterProvider == nil {
		config.MeterProvider = otel.GetMeterProvider()
	}
	t := &Telemetry{
		tracer: config.TracerProvider.Tracer(ScopeName, trace.WithSchemaURL(semconv.SchemaURL)),
		meter:  config.MeterProvider.Meter(ScopeName, metric.WithSchemaURL(semconv.SchemaURL)),
		kinds: map[webhook.Kind]bool{
			webhook.TransactionPartiallyRefunded: true, webhook.TransactionExpired: true, webhook.TransactionRefused: true,
			webhook.PayoutRejected: true,
		},
	}
	for _, kind := range webhook.DocumentedKinds() {
		t.kinds[kind] = true
	}
	return t, errors.Join(t.newClientInstruments(), t.newWebhookInstruments(), t.newOutboxInstruments())
}

// buckets are those that the conventions recommend for
// http.client.request.duration, and two more for attempts and handlers that
// time out after 30 s. The messaging conventions recommend none, and the SDK's
// defaults are for milliseconds.
func buckets() metric.HistogramOption {
	return metric.WithExplicitBucketBoundaries(0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 30, 60)
}

func (t *Telemetry) newClientInstruments() error {
	var failed [3]error
	t.callDuration, failed[0] = t.meter.Float64Histogram("gateway.client.call.duration", buckets(), metric.WithUnit("s"),
		metric.WithDescription("Duration of gateway client calls, including all attempts and waits."))
	t.retries, failed[1] = t.meter.Int64Counter("gateway.client.retries", metric.WithUnit("{attempt}"),
		metric.WithDescription("Attempts that were retried."))
	t.requestDuration, failed[2] = httpconv.NewClientRequestDuration(t.meter)
	return errors.Join(failed[:]...)
}

func (t *Telemetry) newWebhookInstruments() error {
	var failed [2]error
	t.receiveDuration, failed[0] = messagingconv.NewClientOperationDuration(t.meter, buckets())
	t.processDuration, failed[1] = messagingconv.NewProcessDuration(t.meter, buckets())
	return errors.Join(failed[:]...)
}
