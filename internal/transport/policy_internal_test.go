package transport

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/spec"
)

func TestOutcomesOfFailedAttempts(t *testing.T) {
	t.Parallel()
	unconnected := func(c *call) { c.connections.wanted.Store(true) }
	for name, tc := range map[string]struct {
		err     error
		prepare func(*call)
		want    attemptOutcome
	}{
		"a response that is too long":                 {errTooLong, nil, responded},
		"a reset":                                     {io.ErrUnexpectedEOF, nil, unknown},
		"an unknown authority":                        {x509.UnknownAuthorityError{}, nil, permanent},
		"an unverified certificate":                   {&tls.CertificateVerificationError{Err: io.EOF}, nil, permanent},
		"another host's certificate":                  {x509.HostnameError{Certificate: &x509.Certificate{}}, nil, permanent},
		"an expired certificate":                      {x509.CertificateInvalidError{}, nil, permanent},
		"a peer without TLS":                          {tls.RecordHeaderError{}, nil, permanent},
		"a failed name lookup":                        {&net.DNSError{}, nil, unsent},
		"a failed dial":                               {&net.OpError{Op: "dial", Err: io.EOF}, nil, unsent},
		"a failed dial to the proxy":                  {&net.OpError{Op: "proxyconnect", Err: io.EOF}, nil, unsent},
		"a failed read":                               {&net.OpError{Op: "read", Err: io.EOF}, nil, unknown},
		"a handshake that was cut off":                {io.EOF, unconnected, unsent},
		"a handshake that timed out":                  {os.ErrDeadlineExceeded, unconnected, unsent},
		"a handshake that was reset":                  {&net.OpError{Op: "read", Err: io.EOF}, unconnected, unsent},
		"an alert from the peer":                      {&net.OpError{Op: "remote error", Err: io.EOF}, unconnected, permanent},
		"a local alert":                               {&net.OpError{Op: "local error", Err: io.EOF}, unconnected, permanent},
		"a rejection by a proxy":                      {errors.New("Forbidden"), unconnected, permanent},
		"an error whose Timeout method returns false": {&net.AddrError{}, unconnected, permanent},
		"a replay of a sent request that finds no connection": {
			&net.OpError{Op: "dial", Err: io.EOF},
			func(c *call) {
				c.connections.got.Store(1)
				c.req.Header = http.Header{"Idempotency-Key": {"k"}}
			},
			unknown,
		},
		"a rejected client certificate, seen after the handshake": {
			&net.OpError{Op: "remote error", Err: errors.New("tls: certificate required")},
			func(c *call) { c.connections.got.Store(1) },
			permanent,
		},
		"another alert on a connection": {
			&net.OpError{Op: "remote error", Err: errors.New("tls: internal error")},
			func(c *call) { c.connections.got.Store(1) },
			unknown,
		},
		"a dial of net/http after an idle connection was closed": {
			&net.OpError{Op: "dial", Err: io.EOF},
			func(c *call) { c.connections.got.Store(1) },
			unsent,
		},
		"a dial of a RoundTripper that retries, after its first request": {
			&net.OpError{Op: "dial", Err: io.EOF},
			func(c *call) {
				c.connections.got.Store(1)
				c.foreign = true
			},
			unknown,
		},
	} {
		c := &call{req: &Request{}}
		if tc.prepare != nil {
			tc.prepare(c)
		}
		assert.Equal(t, tc.want, c.outcomeOfError(t.Context(), tc.err), name)
	}
}

func TestEachAttemptHasItsOwnConnectionTrace(t *testing.T) {
	t.Parallel()
	var s connections
	s.wanted.Store(true)
	assert.True(t, s.none())
	s.got.Store(1)
	assert.False(t, s.none())
	s.reset()
	assert.False(t, s.wanted.Load())
	assert.Zero(t, s.got.Load())
}

func TestRetryableOutcomes(t *testing.T) {
	t.Parallel()
	for outcome, want := range map[attemptOutcome][3]bool{ // safe, keyed, unsafe
		none: {}, responded: {}, permanent: {}, unsent: {true, true, true}, rateLimited: {true, true, true}, unknown: {true, true, false},
	} {
		for class, retry := range want {
			assert.Equal(t, retry, outcome.retryable(spec.Class(class)), "%d %d", outcome, class)
		}
	}
	for attempts, want := range map[int]bool{1: true, 2: true, 3: false} {
		c := &call{engine: &Engine{Jitter: func() float64 { return 0 }}, req: &Request{MaxAttempts: 3}, outcome: unsent}
		c.result.Attempts = attempts
		retry, err := c.checkRetry(t.Context(), nil, nil)
		require.NoError(t, err)
		assert.Equal(t, want, retry, "after %d attempts of 3", attempts)
	}
}

func TestTheWaitDoublesUpToTheMaximum(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		first, longest time.Duration
		attempts       int
		want           time.Duration
	}{
		{time.Second, time.Minute, 1, time.Second},
		{time.Second, time.Minute, 2, 2 * time.Second},
		{time.Second, time.Minute, 6, 32 * time.Second},
		{time.Second, time.Minute, 7, time.Minute},
		{1, time.Minute, 1, 1},
		{1, time.Minute, 32, 1 << 31},
		{1, time.Minute, 33, time.Minute},
		{1 << 62, time.Minute, 2, time.Minute}, // overflows to a negative wait
		{1 << 62, time.Minute, 3, time.Minute}, // overflows to zero
		{0, time.Minute, 1, time.Minute},
	} {
		c := &call{engine: &Engine{FirstWait: tc.first, LongestWait: tc.longest, Jitter: func() float64 { return 1 }}}
		c.result.Attempts = tc.attempts
		assert.Equal(t, tc.want, c.exponential(), "%+v", tc)
	}
}

func TestTheLogLevelShowsWhetherAnAttemptFailed(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		outcome attemptOutcome
		retry   bool
		status  int
		want    string
	}{
		{responded, false, 200, "level=DEBUG msg=\"gateway: request\" op=x method=\"\" path=\"\" attempt=0 status=200\n"},
		{responded, false, 1, "level=DEBUG msg=\"gateway: request\" op=x method=\"\" path=\"\" attempt=0 status=1\n"},
		{permanent, false, 0, "level=ERROR msg=\"gateway: request failed\" op=x method=\"\" path=\"\" attempt=0\n"},
		{unknown, true, 0, "level=WARN msg=\"gateway: request failed, retrying\" op=x method=\"\" path=\"\" attempt=0 wait=1s\n"},
	} {
		var out bytes.Buffer
		without := func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == "duration" {
				return slog.Attr{}
			}
			return a
		}
		c := &call{
			engine:  &Engine{Logger: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: without}))},
			req:     &Request{Operation: Operation{Name: "x"}},
			outcome: tc.outcome, wait: time.Second,
		}
		c.result.Status = tc.status
		c.log(t.Context(), tc.retry)
		assert.Equal(t, tc.want, out.String())
	}
}

func TestAnObserverSeesTheEndOfAnAttemptOnce(t *testing.T) {
	t.Parallel()
	seen := 0
	c := &call{ended: func(AttemptResult) { seen++ }}
	c.observed(false)
	c.observed(false)
	assert.Equal(t, 1, seen)
}

func TestNoVerbPrintsTheSecretsOfARedactedError(t *testing.T) {
	t.Parallel()
	var s Secrets
	s.learn(http.Header{
		"Authorization": {"Bearer secret1"}, "Apikey": {"secret2"}, "X-Checkout-Session-Token": {"secret3"}, "Proxy-Authorization": {"secret4"},
	})
	for i := 1; i <= 4; i++ {
		err := s.HideErr(fmt.Errorf("secret%d: %w", i, io.EOF))
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
			assert.Equal(t, "[redacted]: EOF", fmt.Sprintf(verb, err), verb)
		}
		require.ErrorIs(t, err, io.EOF)
	}
	assert.Equal(t, io.EOF, withoutURL(&url.Error{Op: "Get", URL: "https://x/secret", Err: io.EOF}))
	assert.Equal(t, io.EOF, withoutURL(io.EOF))
}

func TestARequestThatNetHTTPRejectsIsNotRetried(t *testing.T) {
	t.Parallel()
	c := &call{engine: &Engine{}, req: &Request{MaxAttempts: 3}}
	retry, err := c.checkRetry(t.Context(), nil, io.EOF)
	require.NoError(t, err)
	assert.False(t, retry)
	res := c.finish(t.Context(), io.ErrUnexpectedEOF)
	assert.Equal(t, io.EOF, res.Err)
	assert.True(t, res.Permanent)
	assert.False(t, res.Final)

	c = &call{engine: &Engine{}, req: &Request{MaxAttempts: 3}, outcome: unsent}
	assert.Equal(t, io.EOF, c.finish(t.Context(), io.EOF).Err, "the context had ended before the attempt")
	c.result.Err, c.result.Status = nil, 200
	assert.NoError(t, c.finish(t.Context(), io.EOF).Err, "there is a response")
}

func TestAnEndedContextDoesNotChangeAFinalOutcome(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for outcome, want := range map[attemptOutcome]error{
		none: context.Canceled, unsent: context.Canceled, rateLimited: context.Canceled, unknown: context.Canceled, responded: nil, permanent: nil,
	} {
		c := &call{engine: &Engine{}, req: &Request{}, outcome: outcome}
		require.NoError(t, c.finish(t.Context(), nil).Ended, outcome)
		assert.Equal(t, want, c.finish(ctx, nil).Ended, outcome)
	}
}

func TestResponsesHaveAMaximumLength(t *testing.T) {
	t.Parallel()
	for size, want := range map[int64]error{maxBody: nil, maxBody + 1: errTooLong} {
		_, err := readAll(io.LimitReader(zeros{}, size), -1)
		assert.Equal(t, want, err, size)
	}
}

type zeros struct{}

func (zeros) Read(into []byte) (int, error) { return len(into), nil }

func TestCredentialsOfAtLeastFourCharactersAreHidden(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "the gateway rejects [redacted]", hide("the gateway rejects 1234", "1234"))
	assert.Equal(t, "the gateway rejects 123", hide("the gateway rejects 123", "123"))
}

func TestOnlyBasicCredentialsAreDecodedFromBase64(t *testing.T) {
	t.Parallel()
	const text, pair = "user word is unknown", "dXNlciB3b3JkOnBhc3N3b3Jk" // "user word:password"
	assert.Equal(t, "[redacted] is unknown", hide(text, "Basic "+pair))
	assert.Equal(t, text, hide(text, "Bearer "+pair))
}

func TestAnErrorWithoutSecretsIsReturnedUnchanged(t *testing.T) {
	t.Parallel()
	var s Secrets
	assert.Same(t, errTooLong, s.HideErr(errTooLong))
}

func TestAURLInAnErrorKeepsOnlyItsHost(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Get https://api.example/v2/x?cpf=1":  "Get https://api.example/…",
		"Get \"https://api.example/v2\": EOF": "Get \"https://api.example/…\": EOF",
		"proxy http://user:word@proxy":        "proxy http://proxy",
		"open file:///etc/passwd":             "open file:///…",
		"http://@proxy and http://?cpf=1":     "http://proxy and http:///…",
		"a scheme https:// and no host a/b":   "a scheme https:// and no host a/b",
	} {
		assert.Equal(t, want, withoutURLs(text))
	}
}

func TestTheErrorOfAnEndedContextHasItsCause(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.EqualError(t, ended(ctx), "context canceled")
	ctx, stop := context.WithCancelCause(t.Context())
	stop(errors.New("shutdown"))
	require.EqualError(t, ended(ctx), "context canceled: shutdown")
}

func TestARejectionWithATruncatedBodyIsStillARejection(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]attemptOutcome{
		0: unknown, 199: unknown, 200: unknown, 299: unknown, 300: unknown, 404: responded, 429: rateLimited, 503: unknown,
	} {
		c := &call{req: &Request{}}
		c.result.Status, c.result.Body = status, []byte(`{"title":"Not fou`)
		c.fail(t.Context(), t.Context(), io.ErrUnexpectedEOF)
		assert.Equal(t, want, c.outcome, status)
		assert.Equal(t, status == 0 || status >= 200 && status <= 299, c.result.Err != nil, status)
	}
	c := &call{req: &Request{}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c.fail(ctx, ctx, io.EOF)
	assert.Equal(t, context.Canceled, c.result.Err, "the caller's context takes precedence over the attempt's timeout")
}

// Every 2xx is a response, whatever its body; the caller decodes it.
func TestEvery2xxIsAResponse(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]attemptOutcome{199: unknown, 200: responded, 299: responded, 300: unknown} {
		assert.Equal(t, want, outcomeOfResponse(http.MethodPost, status, []byte("<html>")), status)
	}
	// A response to HEAD has no body, so its status is the gateway's.
	assert.Equal(t, responded, outcomeOfResponse(http.MethodHead, http.StatusNotFound, nil))
	assert.Equal(t, rateLimited, outcomeOfResponse(http.MethodHead, http.StatusTooManyRequests, nil))
	assert.Equal(t, unknown, outcomeOfResponse(http.MethodGet, http.StatusNotFound, nil))
}

func TestAClientWithoutATransportUsesTheDefault(t *testing.T) {
	t.Parallel()
	assert.Equal(t, attempts{http.DefaultTransport}, WrapClient(&http.Client{}).Transport)
	require.EqualError(t, errTooLong, "the response is longer than 67108864 bytes")
}
