package gateway

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gateway-go/gateway/internal/transport"
)

// Option configures a client in [New] or [Client.With]. The names of client
// options start with With.
type Option func(*settings) error

// settings are what options change. A client keeps them for With.
type settings struct {
	httpClient     *http.Client // the caller's, or nil
	own            *http.Client // with its own pool; nil if the caller has set one
	logger         *slog.Logger
	keyRejected    *atomic.Bool // whether the last response rejected the credential; shared by the copies that have it
	credential     Credential
	userAgent      string
	account        string // the name; "" if not set
	insecure       bool
	autoReference  bool
	maxAttempts    int
	attemptTimeout time.Duration
	firstWait      time.Duration
	longestWait    time.Duration
	jitter         func() float64

	idempotencyKeys bool // the gateway supports the Idempotency-Key header
	observer        Observer
	gates           []Gate
}

func defaultSettings() settings {
	return settings{
		userAgent:      "gateway-go",
		autoReference:  true,
		maxAttempts:    3,
		attemptTimeout: 30 * time.Second,
		firstWait:      500 * time.Millisecond,
		longestWait:    8 * time.Second,
		jitter:         rand.Float64,
		keyRejected:    new(atomic.Bool),
	}
}

// WithHTTPClient sends requests with a copy of client, which has the same
// transport, timeout and cookie jar but does not follow redirects. Idle
// connections of client are never closed.
func WithHTTPClient(client *http.Client) Option {
	return func(s *settings) error {
		if client == nil {
			return errors.New("gateway: WithHTTPClient needs a client")
		}
		s.httpClient = client
		return nil
	}
}

// WithLogger logs every attempt: operation, method, path template, status,
// attempt, wait, duration and request id. Retries are logged
// as warnings, failed calls as errors, and everything else at debug level. It also
// logs, once each, what was left out of a response (see [Response.Unread]) and, as an
// error, that the gateway rejects the key. By default nothing is logged.
func WithLogger(logger *slog.Logger) Option {
	return func(s *settings) error {
		if logger == nil {
			return errors.New("gateway: WithLogger needs a logger")
		}
		s.logger = logger
		return nil
	}
}

// WithCredential replaces the credential, for [Client.With].
func WithCredential(credential Credential) Option {
	return func(s *settings) error {
		s.credential, s.keyRejected = credential, new(atomic.Bool)
		return credential.err
	}
}

// WithUserAgent puts the name of your application, such as "shop/1.4", in front
// of the client's name in the User-Agent header.
func WithUserAgent(name string) Option {
	return func(s *settings) error {
		if name == "" || !validHeaderValue(name) {
			return errors.New("gateway: WithUserAgent needs a printable name")
		}
		s.userAgent = name + " gateway-go"
		return nil
	}
}

// WithInsecureHTTP allows plain http to a host other than the local machine. The
// key is then sent unencrypted.
func WithInsecureHTTP() Option {
	return func(s *settings) error {
		s.insecure = true
		return nil
	}
}

// WithAutoReference sets whether the client generates a reference for a
// transaction, a transfer or a subscription that is created without one. It
// generates one per call, which makes the call safe to retry. The default is
// true. If it is false, and without [WithIdempotencyKeys], such creates are not
// retried when they may have been applied.
func WithAutoReference(on bool) Option {
	return func(s *settings) error {
		s.autoReference = on
		return nil
	}
}

// WithIdempotencyKeys is for gateways that support the Idempotency-Key header,
// that is, that apply requests with the same key once and replay the first
// response. Make sure that yours does: if it ignores the header, a retry after a
// lost response refunds twice.
//
// With this option the client sends a key with every POST and PUT on v2 that has no
// reference (a refund, a cancellation, a checkout link, a POST of [Client.Do]):
// yours from [IdempotencyKey], or a generated one. It retries the write with the
// same key. If the outcome stays unknown, [OutcomeError.IdempotencyKey] has the
// key. No gateway is known to support keys for PATCH, for DELETE or on v1: such a
// write is retried only if it was not applied, as without the option.
func WithIdempotencyKeys() Option {
	return func(s *settings) error {
		s.idempotencyKeys = true
		return nil
	}
}

// WithMaxAttempts sets how many requests a call may make; default 3.
func WithMaxAttempts(n int) Option {
	return func(s *settings) error {
		s.maxAttempts = n
		return checkAttempts(n)
	}
}

// WithAttemptTimeout sets how long one request, including its whole response,
// may take; default 30 seconds. The call as a whole is limited by its context.
func WithAttemptTimeout(d time.Duration) Option {
	return func(s *settings) error {
		s.attemptTimeout = d
		return checkTimeout(d)
	}
}

// WithBackoff sets the wait before the second attempt, default 500 ms, and the
// longest wait, default 8 s. Waits double, and are shortened by a random
// amount of up to half. A Retry-After header takes precedence.
func WithBackoff(first, longest time.Duration) Option {
	return func(s *settings) error {
		if first <= 0 || longest < first {
			return errors.New("gateway: WithBackoff needs 0 < first <= longest")
		}
		s.firstWait, s.longestWait = first, longest
		return nil
	}
}

func checkAttempts(n int) error {
	if n < 1 {
		return fmt.Errorf("gateway: the number of attempts is %d: it must be at least 1", n)
	}
	return nil
}

func checkTimeout(d time.Duration) error {
	if d <= 0 {
		return fmt.Errorf("gateway: the attempt timeout is %s: it must be above 0", d)
	}
	return nil
}

// RequestOption configures one call. The names of call options do not start
// with With.
type RequestOption func(*callOptions) error

type callOptions struct {
	response       *Response
	maxAttempts    int
	attemptTimeout time.Duration
	header         http.Header
	query          url.Values
	body           []bodyField
	credential     *Credential
	operation      transport.Operation
	idempotencyKey string
	firstSent      time.Time     // of an earlier call that this one repeats; zero for none
	earlier        *OutcomeError // of the earlier call; nil if only its time is known
}

type bodyField struct {
	name string
	json []byte
}

// ResponseInto stores in r everything about the response except the resource:
// status, request id, headers, number of attempts and the reference that was
// sent.
func ResponseInto(r *Response) RequestOption {
	return func(o *callOptions) error {
		if r == nil {
			return errors.New("gateway: ResponseInto needs a Response")
		}
		o.response = r
		return nil
	}
}

// MaxAttempts sets how many requests this call may make: 1 for no retries.
func MaxAttempts(n int) RequestOption {
	return func(o *callOptions) error {
		o.maxAttempts = n
		return checkAttempts(n)
	}
}

// AttemptTimeout sets how long each request of this call and its response may
// take.
func AttemptTimeout(d time.Duration) RequestOption {
	return func(o *callOptions) error {
		o.attemptTimeout = d
		return checkTimeout(d)
	}
}

const (
	idempotencyKeyHeader = "Idempotency-Key"
	maxIdempotencyKey    = 255
)

// IdempotencyKey sends key, 1 to 255 characters, in the Idempotency-Key header.
// A client with [WithIdempotencyKeys] retries a POST or PUT on v2 with it. Store the key
// with the order before the call, so that another process can repeat the call.
// Reusing a key with another body returns [ErrDuplicate].
//
// Without that option the header is sent, but the client does not rely on it,
// because the interface document has no such header. Creates, except those of
// checkout links, have an ExternalRef or IdempotencyKey in their params instead.
func IdempotencyKey(key string) RequestOption {
	return func(o *callOptions) error {
		if key == "" || len(key) > maxIdempotencyKey || !validHeaderValue(key) {
			return fmt.Errorf("IdempotencyKey: the key must have 1 to %d printable characters", maxIdempotencyKey)
		}
		o.idempotencyKey = key
		return nil
	}
}

// RepeatOf marks this call as a repeat of the one that returned err, which must
// match [ErrOutcomeUnknown]. The call must be the same, with the same params. Its
// reference and its [IdempotencyKey] are those of the earlier call, even if the
// client generated them; with another one, or after an error of another method or
// of a client with another [Account], the call is rejected. So is a repeat that might be applied twice, because the
// call has neither a reference nor a key that the client relies on: a refund, for
// example, without [WithIdempotencyKeys].
//
// The earlier call counts as an attempt of this one. If a create is rejected,
// not only as a duplicate, the client looks for the resource by its reference
// and returns it, with [Response.Recovered] set. Subscriptions can't be looked
// up: for a repeated create the gateway returns the first one. Every failure is
// [ErrOutcomeUnknown], because the earlier call may have been applied, with two
// exceptions that are [ErrDuplicate]: the reference belongs to a resource that
// differs from the requested one, or the idempotency key belongs to another
// request. A create whose params are invalid, for example because a card's token
// was not stored, is not sent: the client only looks for the resource.
//
// A create that the gateway would reject stays unknown, however often it is
// repeated. Once the reference is certain to be absent (see
// webhook.ReconcilerConfig.Absent), repeat it without RepeatOf: a rejection is
// definite then.
//
// In another process, which has no err, use [FirstSent].
func RepeatOf(err error) RequestOption {
	return func(o *callOptions) error {
		earlier, ok := errors.AsType[*OutcomeError](err)
		if !ok || earlier.Sent.IsZero() {
			return errors.New("gateway: RepeatOf needs the error of the earlier call, which must match ErrOutcomeUnknown")
		}
		o.earlier, o.firstSent = earlier, earlier.Sent
		return nil
	}
}

// FirstSent marks this call as a repeat, like [RepeatOf], of one whose error is
// lost: its process died before it read the response. at is when the earlier call
// was first sent, by this machine's clock: the time that you stored with its
// reference before the call, or [OutcomeError.Sent].
//
// The params must have the reference of the earlier call, or the call its
// [IdempotencyKey]. A transaction, transfer or subscription without a reference is
// rejected, and so is a customer with neither.
func FirstSent(at time.Time) RequestOption {
	return func(o *callOptions) error {
		if at.IsZero() {
			return errors.New("gateway: FirstSent needs the time of the earlier call")
		}
		o.firstSent = at
		return nil
	}
}

// Header sends a header in addition to those of the client. For credentials use
// [UseCredential].
func Header(name, value string) RequestOption {
	return func(o *callOptions) error {
		canonical := http.CanonicalHeaderKey(name)
		switch canonical {
		case "Authorization", apiKeyHeader:
			return errors.New("gateway: send credentials with UseCredential, not with Header")
		case "Content-Length", "Content-Type", "Host", "Transfer-Encoding", "Connection", "Accept-Encoding":
			return fmt.Errorf("gateway: the header %s can't be changed: the client sets it", canonical)
		case idempotencyKeyHeader:
			return IdempotencyKey(value)(o)
		}
		if !validHeaderName(name) || !validHeaderValue(value) {
			return fmt.Errorf("gateway: header %q: the name or the value contains characters that are not allowed in a header", name)
		}
		if o.header == nil {
			o.header = http.Header{}
		}
		o.header.Add(canonical, value)
		return nil
	}
}

// Query adds a query parameter for which the params have no field.
func Query(name, value string) RequestOption {
	return func(o *callOptions) error {
		if name == "" {
			return errors.New("gateway: Query needs a name")
		}
		if o.query == nil {
			o.query = url.Values{}
		}
		o.query.Add(name, value)
		return nil
	}
}

// BodyField adds a top-level field to the request body, for fields that the
// params don't have. v is any value that encodes to JSON.
func BodyField(name string, v any) RequestOption {
	return func(o *callOptions) error {
		if name == "" {
			return errors.New("gateway: BodyField needs a name")
		}
		value, err := encodeRequest(v)
		if err != nil {
			return fmt.Errorf("gateway: BodyField %q: %w", name, err)
		}
		o.body = append(o.body, bodyField{name, value})
		return nil
	}
}

// UseCredential makes this call with another credential.
func UseCredential(credential Credential) RequestOption {
	return func(o *callOptions) error {
		o.credential = &credential
		return credential.err
	}
}

// Named sets the name of a [Client.Do] call in errors, logs and spans: an
// operation, such as "reports.get", and a path template, such as
// "/v2/reports/{id}".
func Named(operation, pathTemplate string) RequestOption {
	return func(o *callOptions) error {
		o.operation.Name, o.operation.Path = operation, pathTemplate
		return nil
	}
}

func applyOptions(o *callOptions, opts []RequestOption) error {
	for _, option := range opts {
		if option == nil {
			return errors.New("gateway: nil RequestOption")
		}
		if err := option(o); err != nil {
			return err
		}
	}
	return nil
}

func validHeaderName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`()<>@,;:\"/[]?={}`, c) >= 0 {
			return false
		}
	}
	return s != ""
}

func validHeaderValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// newPool returns an HTTP client with its own connection pool. Its dial timeout
// is shorter than the attempt timeout, which distinguishes a dead host from a
// lost response.
func newPool() *http.Client {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Client{Transport: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          100,
		MaxIdleConnsPerHost:   100,
		IdleConnTimeout:       idleTimeout,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
		HTTP2:                 &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
	}}
}

// How connections are kept alive. An idle one is closed before common load
// balancers close it, after 60 s. An HTTP/2 connection over which nothing was
// received for pingAfter is pinged, and replaced if there is no response: without
// a ping a dead connection would be used by every attempt.
const (
	idleTimeout = 50 * time.Second
	pingAfter   = 10 * time.Second
	pingTimeout = 5 * time.Second
)
