package otelgateway

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/gateway-go/gateway"
)

// Client attributes that the conventions do not define.
const (
	operationKey = attribute.Key("gateway.operation.name") // "transactions.create"
	outcomeKey   = attribute.Key("gateway.outcome")
	attemptsKey  = attribute.Key("gateway.attempts")
	codeKey      = attribute.Key("gateway.error.code")  // the gateway's: "DUPLICATE_EXTERNAL_REF"
	waitKey      = attribute.Key("gateway.retry.delay") // seconds
)

// The outcomes of a call.
const (
	success   = "success"
	recovered = "recovered" // a lost response was recovered
	existing  = "existing"  // the gateway returned the resource of an earlier call
	rejected  = "rejected"  // nothing was applied; error.type has the reason
	failed    = "failed"    // a read failed, or a write that was not applied
	notSent   = "not_sent"
	unknown   = "unknown" // a write may have been applied
)

// Observer returns the observer for [gateway.WithObserver]. A call is an internal span,
// named like its operation; every attempt is an HTTP client span within it.
func (t *Telemetry) Observer() gateway.Observer {
	return gateway.Observer{Call: t.call, Attempt: t.attempt}
}

// activity is the data shared by the calls of one operation, or by the
// attempts of one kind.
type activity struct {
	name    string // of the spans
	common  []attribute.KeyValue
	options []trace.SpanStartOption
	ends    cache[end, []metric.RecordOption]
}

// end is the outcome of a call or an attempt, without the attributes that only
// its span has.
type end struct {
	outcome string // of a call
	status  int    // of an attempt
	kind    string // the error.type, or ""
}

func newActivity(name string, kind trace.SpanKind, common ...attribute.KeyValue) *activity {
	return &activity{name: name, common: common, options: []trace.SpanStartOption{trace.WithSpanKind(kind), trace.WithAttributes(common...)}}
}

func (e end) attributes() []attribute.KeyValue {
	attributes := make([]attribute.KeyValue, 0, 5)
	if e.outcome != "" {
		attributes = append(attributes, outcomeKey.String(e.outcome))
	}
	if e.status != 0 {
		attributes = append(attributes, semconv.HTTPResponseStatusCode(e.status))
	}
	if e.kind != "" {
		attributes = append(attributes, semconv.ErrorTypeKey.String(e.kind))
	}
	return attributes
}

// measured returns the attributes of the metric.
func (a *activity) measured(e end) []metric.RecordOption {
	return a.ends.get(e, func(e end) []metric.RecordOption {
		return []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(append(e.attributes(), a.common...)...))}
	})
}

func newCall(operation string) *activity {
	return newActivity(operation, trace.SpanKindInternal, operationKey.String(operation))
}

func (t *Telemetry) call(ctx context.Context, op gateway.Operation) (context.Context, func(gateway.Response, error)) {
	began := time.Now()
	call := t.calls.get(op.Name, newCall)
	ctx, span := t.tracer.Start(ctx, call.name, call.options...)
	return ctx, func(res gateway.Response, err error) {
		how := outcomeOf(res, err)
		t.callDuration.Record(ctx, time.Since(began).Seconds(), call.measured(how)...)
		if span.IsRecording() {
			span.SetAttributes(append(how.attributes(), attemptsKey.Int(res.Attempts))...)
			if err != nil {
				fail(span, how.kind, err)
			}
		}
		span.End()
	}
}

// fail marks a call's span. An error's message may quote user input, so the span
// has only the code.
func fail(span trace.Span, kind string, err error) {
	span.SetStatus(codes.Error, kind)
	if e, ok := errors.AsType[*gateway.Error](err); ok && isCode(e.Code) {
		span.SetAttributes(codeKey.String(e.Code))
	}
}

// isCode reports whether s is one of the gateway's machine-readable codes rather than
// text from a proxy.
func isCode(s string) bool {
	for _, c := range s {
		if (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

func outcomeOf(res gateway.Response, err error) end {
	switch {
	case err != nil:
		outcome, kind := classify(err)
		return end{outcome: outcome, kind: kind}
	case res.Recovered:
		return end{outcome: recovered}
	case res.Existing:
		return end{outcome: existing}
	default:
		return end{outcome: success}
	}
}

// classify returns the outcome and the error.type of a failed call. Every
// error of the client matches one of these sentinels.
func classify(err error) (outcome, kind string) {
	for _, class := range [...]struct {
		err           error
		outcome, kind string
	}{
		{gateway.ErrOutcomeUnknown, unknown, "outcome_unknown"},
		{gateway.ErrNotSent, notSent, "not_sent"},
		{gateway.ErrValidation, rejected, "validation"},
		{gateway.ErrDuplicate, rejected, "duplicate"}, // before ErrConflict, which it also is
		{gateway.ErrConflict, rejected, "conflict"},
		{gateway.ErrNotFound, rejected, "not_found"},
		{gateway.ErrUnauthorized, rejected, "unauthorized"},
		{gateway.ErrForbidden, rejected, "forbidden"},
		{gateway.ErrRetired, rejected, "retired"},
		{gateway.ErrRateLimited, rejected, "rate_limited"},
		{gateway.ErrServer, failed, "server"},
	} {
		if errors.Is(err, class.err) {
			return class.outcome, class.kind
		}
	}
	return failed, other
}

func newAttempt(a gateway.Attempt) *activity {
	address, port := server(a)
	name, common := a.Method, []attribute.KeyValue{
		semconv.HTTPRequestMethodKey.String(a.Method), semconv.ServerAddress(address), semconv.ServerPort(port),
	}
	if strings.HasPrefix(a.Path, "/") { // a call to Client.Do that is not Named has no template
		name, common = name+" "+a.Path, append(common, semconv.URLTemplate(a.Path))
	}
	return newActivity(name, trace.SpanKindClient, common...)
}

func (t *Telemetry) attempt(ctx context.Context, a gateway.Attempt) (context.Context, func(gateway.AttemptResult)) {
	began := time.Now()
	alike := a
	alike.Number = 0
	attempt := t.attempts.get(alike, newAttempt)
	ctx, span := t.tracer.Start(ctx, attempt.name, attempt.options...)
	return ctx, func(res gateway.AttemptResult) {
		how := end{status: res.StatusCode, kind: attemptError(res)}
		t.requestDuration.Inst().Record(ctx, time.Since(began).Seconds(), attempt.measured(how)...)
		if res.Retry {
			t.retries.Add(ctx, 1, metric.WithAttributes(operationKey.String(a.Name), semconv.ErrorTypeKey.String(how.kind)))
		}
		if span.IsRecording() {
			span.SetAttributes(attemptDetails(how.attributes(), a, res)...)
			if how.kind != "" {
				span.SetStatus(codes.Error, how.kind)
			}
		}
		span.End()
	}
}

// attemptDetails adds the attributes that only spans have.
func attemptDetails(attributes []attribute.KeyValue, a gateway.Attempt, res gateway.AttemptResult) []attribute.KeyValue {
	if a.Number > 1 {
		attributes = append(attributes, semconv.HTTPRequestResendCount(a.Number-1))
	}
	if res.RequestID != "" {
		attributes = append(attributes, semconv.HTTPResponseHeader("x-request-id", res.RequestID))
	}
	if res.Retry {
		attributes = append(attributes, waitKey.Float64(res.Wait.Seconds()))
	}
	return attributes
}

// server returns the gateway's address and port.
func server(a gateway.Attempt) (address string, port int) {
	u := url.URL{Host: a.Host}
	port, err := strconv.Atoi(u.Port())
	switch {
	case err == nil:
	case a.Scheme == "http":
		port = 80
	default:
		port = 443
	}
	return u.Hostname(), port
}

// attemptError returns the error.type of an attempt: the status of an error
// response, or why there is no response. "" means no error.
func attemptError(res gateway.AttemptResult) string {
	switch {
	case res.StatusCode >= http.StatusBadRequest:
		return strconv.Itoa(res.StatusCode)
	case res.Err == nil:
		return ""
	default:
		return networkError(res.Err)
	}
}

func networkError(err error) string {
	var timeout interface{ Timeout() bool }
	op, isOp := errors.AsType[*net.OpError](err)
	_, isDNS := errors.AsType[*net.DNSError](err)
	switch {
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	case isDNS:
		return "dns"
	case isOp && (op.Op == "dial" || op.Op == "read" || op.Op == "write"):
		return "network_" + op.Op
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "truncated_response"
	default:
		return other
	}
}
