package otelgateway_test

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/gateway-go/gateway"
	otelgateway "github.com/gateway-go/gateway/contrib/otel"
)

// BenchmarkCall measures the overhead of telemetry on a call with one attempt,
// and the cost of the same number of spans, attributes and measurements in the
// OpenTelemetry SDK alone. The three variants alternate within a run, so that
// they share the same conditions.
func BenchmarkCall(b *testing.B) {
	for name, sampler := range map[string]sdktrace.Sampler{"sampled": sdktrace.AlwaysSample(), "unsampled": sdktrace.NeverSample()} {
		b.Run(name, func(b *testing.B) {
			traces := sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler), sdktrace.WithBatcher(tracetest.NewNoopExporter()))
			meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
			telemetry, err := otelgateway.New(otelgateway.Config{TracerProvider: traces, MeterProvider: meters})
			require.NoError(b, err)
			plain := instant(b)
			observed, err := plain.With(gateway.WithObserver(telemetry.Observer()))
			require.NoError(b, err)
			contestants := [...]func(context.Context){get(b, plain), get(b, observed), bareSDK(b, traces, meters)}
			var took [len(contestants)][]time.Duration
			for b.Loop() {
				for i, call := range contestants {
					took[i] = append(took[i], batch(b.Context(), call))
				}
			}
			without, with := fast(took[0]), fast(took[1])
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(without, "ns/call")
			b.ReportMetric(with-without, "ns/added")
			b.ReportMetric(fast(took[2]), "ns/sdk-alone")
		})
	}
}

const calls = 20

// batch makes few calls, so that most batches finish without being preempted.
func batch(ctx context.Context, call func(context.Context)) time.Duration {
	began := time.Now()
	for range calls {
		call(ctx)
	}
	return time.Since(began)
}

// fast returns the nanoseconds per call in the fastest tenth of the batches, those
// that were not preempted.
func fast(batches []time.Duration) float64 {
	slices.Sort(batches)
	return float64(batches[len(batches)/10]) / calls
}

func get(b *testing.B, client *gateway.Client) func(context.Context) {
	b.Helper()
	return func(ctx context.Context) {
		if _, err := client.Transactions.Get(ctx, "0198f0a0-0000-7000-8000-000000000000"); err != nil {
			b.Fatal(err)
		}
	}
}

// bareSDK records the spans and measurements of a call without calling the
// gateway.
func bareSDK(b *testing.B, traces trace.TracerProvider, meters metric.MeterProvider) func(context.Context) {
	b.Helper()
	tracer := traces.Tracer("bare")
	histogram, err := meters.Meter("bare").Float64Histogram("bare")
	require.NoError(b, err)
	attributes := func(n int) []attribute.KeyValue {
		return []attribute.KeyValue{
			attribute.String("a", "1"), attribute.String("b", "2"), attribute.String("c", "3"), attribute.String("d", "4"), attribute.String("e", "5"),
		}[:n]
	}
	set := metric.WithAttributeSet(attribute.NewSet(attributes(5)...))
	outer, inner := trace.WithAttributes(attributes(1)...), trace.WithAttributes(attributes(4)...)
	return func(ctx context.Context) {
		ctx, call := tracer.Start(ctx, "call", outer)
		_, attempt := tracer.Start(ctx, "attempt", trace.WithSpanKind(trace.SpanKindClient), inner)
		histogram.Record(ctx, 0.1, set)
		attempt.SetAttributes(attributes(2)...)
		attempt.End()
		histogram.Record(ctx, 0.1, set)
		call.SetAttributes(attributes(2)...)
		call.End()
	}
}

// instant returns a client whose gateway responds without a network.
func instant(b *testing.B) *gateway.Client {
	b.Helper()
	const body = `{"success":true,"data":{"id":"0198f0a0-0000-7000-8000-000000000000","status":"paid","amount":1990,"currency":"BRL"}}`
	client, err := gateway.New("https://api.gateway.example", gateway.BearerToken("sk_test_bench"), gateway.WithHTTPClient(&http.Client{
		Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			return &http.Response{
				StatusCode: http.StatusOK, Header: http.Header{"X-Request-Id": {"req-1"}}, Request: r,
				ContentLength: int64(len(body)), Body: io.NopCloser(strings.NewReader(body)),
			}, nil
		}),
	}))
	require.NoError(b, err)
	return client
}
