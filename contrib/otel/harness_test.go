package otelgateway_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/gateway-go/gateway"
	otelgateway "github.com/gateway-go/gateway/contrib/otel"
	"github.com/gateway-go/gateway/mockserver"
)

// backend stores what a merchant's telemetry backend would receive.
type backend struct {
	*testing.T
	*otelgateway.Telemetry

	spans  *tracetest.InMemoryExporter
	starts *starts
	reader *metric.ManualReader
	tracer trace.Tracer // of the merchant's own spans
}

func newBackend(t *testing.T) *backend {
	t.Helper()
	b := &backend{T: t, spans: tracetest.NewInMemoryExporter(), starts: &starts{order: map[trace.SpanID]int{}}, reader: metric.NewManualReader()}
	traces := sdktrace.NewTracerProvider(sdktrace.WithSyncer(b.spans), sdktrace.WithSpanProcessor(b.starts))
	meters := metric.NewMeterProvider(metric.WithReader(b.reader))
	var err error
	b.Telemetry, err = otelgateway.New(otelgateway.Config{TracerProvider: traces, MeterProvider: meters})
	require.NoError(t, err)
	b.tracer = traces.Tracer("shop")
	return b
}

// starts numbers spans in the order in which they start.
type starts struct {
	sdktrace.SpanProcessor

	mu    sync.Mutex
	order map[trace.SpanID]int
}

func (s *starts) OnStart(_ context.Context, span sdktrace.ReadWriteSpan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order[span.SpanContext().SpanID()] = len(s.order)
}

func (s *starts) OnEnd(sdktrace.ReadOnlySpan) {}

func (s *starts) of(span tracetest.SpanStub) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.order[span.SpanContext.SpanID()]
}

// client returns a client of a mock gateway that doesn't wait between attempts.
// network is the transport between the two; nil means one without faults.
func (b *backend) client(gw *mockserver.Server, network func(http.RoundTripper) http.RoundTripper, opts ...gateway.Option) *gateway.Client {
	b.Helper()
	transport := gw.Transport()
	if network != nil {
		transport = network(transport)
	}
	client, err := gw.Client().With(append([]gateway.Option{
		gateway.WithHTTPClient(&http.Client{Transport: transport}),
		gateway.WithBackoff(time.Microsecond, time.Microsecond), gateway.WithObserver(b.Observer()),
	}, opts...)...)
	require.NoError(b, err)
	return client
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// first makes the first matching request fail.
func first(method string, fail func(next http.RoundTripper, r *http.Request) (*http.Response, error)) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		var once sync.Once
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			to := next.RoundTrip
			if r.Method == method {
				once.Do(func() { to = func(r *http.Request) (*http.Response, error) { return fail(next, r) } })
			}
			return to(r)
		})
	}
}

// all returns the ended spans in start order, one per line, each with its
// parent, status and attributes.
func (b *backend) all() []string {
	spans := b.spans.GetSpans()
	names := map[trace.SpanID]string{}
	for _, s := range spans {
		names[s.SpanContext.SpanID()] = s.Name
	}
	slices.SortFunc(spans, func(x, y tracetest.SpanStub) int { return cmp.Compare(b.starts.of(x), b.starts.of(y)) })
	lines := make([]string, 0, len(spans))
	for _, s := range spans {
		line := names[s.Parent.SpanID()] + " > " + s.Name + " (" + s.SpanKind.String() + ")"
		if s.Status.Code.String() != "Unset" {
			line += " " + s.Status.Code.String() + " " + s.Status.Description
		}
		if len(s.Links) > 0 { // there is at most one
			line += " linked to " + names[s.Links[0].SpanContext.SpanID()]
		}
		lines = append(lines, strings.TrimPrefix(line, " > ")+texts(s.Attributes))
	}
	return lines
}

// texts formats attributes, sorted by name.
func texts(list []attribute.KeyValue) string {
	words := make([]string, 0, len(list))
	for _, a := range list {
		words = append(words, fmt.Sprintf(" %s=%s", a.Key, a.Value.String()))
	}
	sort.Strings(words)
	return strings.Join(words, "")
}

// metrics returns how often each set of attributes was recorded, or the value of a
// counter or gauge: "name{attributes} n".
func (b *backend) metrics(prefix string) []string {
	b.Helper()
	var data metricdata.ResourceMetrics
	require.NoError(b, b.reader.Collect(context.Background(), &data))
	var lines []string
	add := func(name string, set attribute.Set, value any) {
		if strings.HasPrefix(name, prefix) {
			lines = append(lines, fmt.Sprintf("%s{%s} %v", name, strings.TrimSpace(texts(set.ToSlice())), value))
		}
	}
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch d := m.Data.(type) {
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					add(m.Name, p.Attributes, p.Count)
				}
			case metricdata.Sum[int64]:
				for _, p := range d.DataPoints {
					add(m.Name, p.Attributes, p.Value)
				}
			case metricdata.Gauge[int64]:
				for _, p := range d.DataPoints {
					add(m.Name, p.Attributes, p.Value)
				}
			case metricdata.Gauge[float64]:
				for _, p := range d.DataPoints {
					add(m.Name, p.Attributes, p.Value)
				}
			}
		}
	}
	sort.Strings(lines)
	return lines
}
