package transport_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/internal/transport"
)

// FuzzRetryAfter checks that the wait is never negative.
func FuzzRetryAfter(f *testing.F) {
	for _, s := range []string{
		"", "0", "1", "1.5", "-1", "1e300", "NaN", "+Inf", "-Inf", "0x1p4", " 7 ", "Fri, 31 Dec 1999 23:59:59 GMT", "Friday, 31-Dec-99 23:59:59 GMT",
		"Fri Dec 31 23:59:59 1999", "soon", "1,2", "1_000",
	} {
		f.Add(s)
	}
	now := time.Date(1999, 12, 31, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, header string) {
		wait, ok := transport.RetryAfter(header, now)
		assert.GreaterOrEqual(t, wait, time.Duration(0))
		if !ok {
			assert.Zero(t, wait)
		}
	})
}

type noCredential struct{}

func (noCredential) Authorize(context.Context, http.Header) error { return nil }

// TestCallsLeakNoGoroutines makes calls that succeed, fail, time out or are
// canceled, over real connections.
func TestCallsLeakNoGoroutines(t *testing.T) { //nolint:paralleltest // counts the goroutines of the process
	block := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/hang":
			select {
			case <-block:
			case <-r.Context().Done():
			}
		case "/cut":
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("{"))
		case "/503":
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	pool := &http.Transport{MaxIdleConnsPerHost: 4}
	engine := &transport.Engine{
		HTTP: transport.WrapClient(&http.Client{Transport: pool}), FirstWait: time.Millisecond, LongestWait: time.Millisecond,
		Jitter: func() float64 { return 1 },
	}
	before := runtime.NumGoroutine()
	timeouts := map[string]time.Duration{"/ok": time.Minute, "/hang": 20 * time.Millisecond, "/cut": time.Minute, "/503": time.Minute, "/given-up": time.Minute}
	for range 3 {
		for path, timeout := range timeouts {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			u, err := url.Parse(server.URL + path)
			require.NoError(t, err)
			if path == "/given-up" {
				cancel()
			}
			res := engine.Do(ctx, &transport.Request{
				Operation: transport.Operation{Name: "x", Method: http.MethodPost, Path: path}, URL: u,
				Body: []byte(`{}`), Credential: noCredential{}, MaxAttempts: 2, AttemptTimeout: timeout,
			})
			assert.Equal(t, path == "/ok", res.Err == nil && res.Status == http.StatusOK, "%s: %v", path, res.Err)
			cancel()
		}
	}
	close(block)
	pool.CloseIdleConnections()
	server.Close()
	assert.Eventually(t, func() bool { return runtime.NumGoroutine() <= before }, time.Minute, 5*time.Millisecond)
}

// TestCookiesOfTheCallersJar checks that the jar's cookies are sent with every
// attempt, do not leak into other calls, and that cookies of a response reach
// the jar.
func TestCookiesOfTheCallersJar(t *testing.T) {
	t.Parallel()
	var cookies []string
	seen := roundTrip(func(r *http.Request) (*http.Response, error) {
		cookies = append(cookies, r.Header.Get("Cookie"))
		header := http.Header{"Set-Cookie": {"lb=8"}}
		return &http.Response{StatusCode: http.StatusServiceUnavailable, Header: header, Body: http.NoBody, Request: r}, nil
	})
	var set []string
	for _, jar := range []http.CookieJar{jar{&set}, jar{&set}, nil, nil} {
		engine := &transport.Engine{
			HTTP: transport.WrapClient(&http.Client{Transport: seen, Jar: jar}), FirstWait: 1, LongestWait: 1, Jitter: func() float64 { return 0 },
		}
		engine.Do(t.Context(), request(spec.Safe, nil, nil))
	}
	assert.Equal(t, []string{"lb=7", "lb=7", "lb=7", "lb=7", "", "", "", ""}, cookies)
	assert.Equal(t, []string{"lb=8", "lb=8", "lb=8", "lb=8"}, set)
}

// request returns a call with at most two attempts.
func request(class spec.Class, header http.Header, body []byte) *transport.Request {
	return &transport.Request{
		Operation: transport.Operation{Method: http.MethodPost}, URL: &url.URL{Scheme: "https", Host: "api.example.com", Path: "/x"}, Class: class,
		Header: header, Body: body, Credential: noCredential{}, MaxAttempts: 2, AttemptTimeout: time.Minute,
	}
}

// TestRequestsThatNetHTTPMayReplay checks which requests have a GetBody. net/http
// replays such a request if it was not written, or, with an Idempotency-Key, even
// if it was. With a key it also replays a request without a Body.
func TestRequestsThatNetHTTPMayReplay(t *testing.T) {
	t.Parallel()
	key := http.Header{"Idempotency-Key": {"k"}}
	for name, tc := range map[string]struct {
		req     *transport.Request
		body    bool
		getBody bool
	}{
		"no body":                       {request(spec.Safe, nil, nil), false, false},
		"a keyed write":                 {request(spec.Keyed, nil, []byte("{}")), true, true},
		"a keyed write with a key":      {request(spec.Keyed, key, []byte("{}")), true, true},
		"an unsafe write":               {request(spec.Unsafe, nil, []byte("{}")), true, true},
		"an unsafe write with a key":    {request(spec.Unsafe, key, []byte("{}")), true, false},
		"an unsafe write without a key": {request(spec.Unsafe, http.Header{"Accept": {"*/*"}}, []byte("{}")), true, true},

		"an unsafe write without a body":           {request(spec.Unsafe, nil, nil), false, false},
		"a keyed write with a key, without a body": {request(spec.Keyed, key, nil), false, false},
		"an unsafe write with a key, without a body": {
			request(spec.Unsafe, key, nil), true, false,
		},
	} {
		base := roundTrip(func(r *http.Request) (*http.Response, error) {
			assert.Equal(t, tc.body, r.Body != nil, name)
			assert.Equal(t, tc.getBody, r.GetBody != nil, name)
			assert.EqualValues(t, len(tc.req.Body), r.ContentLength, name)
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody}, nil
		})
		res := (&transport.Engine{HTTP: transport.WrapClient(&http.Client{Transport: base})}).Do(t.Context(), tc.req)
		require.NoError(t, res.Err)
	}
}

// TestAConnectionOfAnEarlierAttemptIsForgotten makes a call whose first attempt
// is rate limited and whose second can't connect, so nothing was applied.
func TestAConnectionOfAnEarlierAttemptIsForgotten(t *testing.T) {
	t.Parallel()
	base := roundTrip(func(r *http.Request) (*http.Response, error) {
		trace := httptrace.ContextClientTrace(r.Context())
		trace.GetConn("api.example.com:443")
		if attempts, _ := strconv.Atoi(r.Header.Get("Attempt")); attempts == 1 {
			trace.GotConn(httptrace.GotConnInfo{})
			return &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"0"}}, Body: io.NopCloser(strings.NewReader(`{"status":429}`))}, nil
		}
		return nil, &net.OpError{Op: "dial", Err: io.EOF}
	})
	req := request(spec.Keyed, http.Header{"Idempotency-Key": {"k"}}, []byte("{}"))
	req.Credential = &attemptNumber{}
	res := (&transport.Engine{HTTP: transport.WrapClient(&http.Client{Transport: base})}).Do(t.Context(), req)
	require.Error(t, res.Err)
	assert.Equal(t, 2, res.Attempts)
	assert.False(t, res.MayHaveApplied)
}

// attemptNumber is a credential that numbers the attempts.
type attemptNumber struct{ n int }

func (a *attemptNumber) Authorize(_ context.Context, h http.Header) error {
	a.n++
	h.Set("Attempt", strconv.Itoa(a.n))
	return nil
}

func TestAMissingCredentialIsAPermanentError(t *testing.T) {
	t.Parallel()
	base := roundTrip(func(*http.Request) (*http.Response, error) { panic("nothing is sent") })
	req := request(spec.Safe, nil, nil)
	req.Credential = noToken{}
	res := (&transport.Engine{HTTP: transport.WrapClient(&http.Client{Transport: base})}).Do(t.Context(), req)
	require.ErrorIs(t, res.Err, errNoToken)
	assert.Equal(t, 1, res.Attempts)
	assert.True(t, res.Permanent)
	assert.False(t, res.MayHaveApplied)
}

var errNoToken = errors.New("no token")

type noToken struct{}

func (noToken) Authorize(context.Context, http.Header) error { return errNoToken }

// The caller's RoundTripper may leave Body nil.
func TestAResponseWithoutABody(t *testing.T) {
	t.Parallel()
	bare := roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusNoContent, Header: http.Header{}}, nil
	})
	engine := &transport.Engine{HTTP: transport.WrapClient(&http.Client{Transport: bare})}
	res := engine.Do(t.Context(), request(spec.Unsafe, nil, nil))
	require.NoError(t, res.Err)
	assert.Equal(t, http.StatusNoContent, res.Status)
	assert.Empty(t, res.Body)
}

// A RoundTripper that returns neither a response nor an error may have sent the
// request.
func TestARoundTripperThatReturnsNothing(t *testing.T) {
	t.Parallel()
	nothing := roundTrip(func(*http.Request) (*http.Response, error) { return nil, nil }) //nolint:nilnil // violates the contract of RoundTrip
	engine := &transport.Engine{HTTP: transport.WrapClient(&http.Client{Transport: nothing})}
	res := engine.Do(t.Context(), request(spec.Unsafe, nil, nil))
	require.EqualError(t, res.Err, "the RoundTripper returned neither a response nor an error")
	assert.True(t, res.MayHaveApplied)
}

// TestEveryBodyIsClosed covers a complete response and a truncated one.
func TestEveryBodyIsClosed(t *testing.T) {
	t.Parallel()
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF} {
		body := &brokenBody{end: end}
		base := roundTrip(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: body}, nil
		})
		res := (&transport.Engine{HTTP: transport.WrapClient(&http.Client{Transport: base})}).Do(t.Context(), request(spec.Unsafe, nil, nil))
		assert.True(t, body.closed, end)
		assert.Equal(t, `{"id":`, string(res.Body), "the received part is kept")
	}
}

// The Content-Length of a HEAD response is that of the body a GET would return.
func TestAHEADResponseIsNotTruncated(t *testing.T) {
	t.Parallel()
	base := roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, ContentLength: 100, Body: http.NoBody}, nil
	})
	for method, want := range map[string]error{http.MethodHead: nil, http.MethodGet: io.ErrUnexpectedEOF} {
		req := request(spec.Safe, nil, nil)
		req.Method, req.MaxAttempts = method, 1
		res := (&transport.Engine{HTTP: transport.WrapClient(&http.Client{Transport: base})}).Do(t.Context(), req)
		assert.Equal(t, want, res.Err, method)
	}
}

type brokenBody struct {
	end    error
	closed bool
}

func (b *brokenBody) Read(into []byte) (int, error) { return copy(into, `{"id":`), b.end }

func (b *brokenBody) Close() error {
	b.closed = true
	return nil
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type jar struct{ set *[]string }

func (j jar) SetCookies(_ *url.URL, cookies []*http.Cookie) {
	for _, c := range cookies {
		*j.set = append(*j.set, c.String())
	}
}

func (jar) Cookies(*url.URL) []*http.Cookie { return []*http.Cookie{{Name: "lb", Value: "7"}} }

// net/http writes the headers separately unless it recognizes the body's type.
func TestASmallRequestIsOneWrite(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	var writes atomic.Int64
	pool := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return &countedConn{Conn: conn, writes: &writes}, err
	}}
	t.Cleanup(pool.CloseIdleConnections)
	engine := &transport.Engine{HTTP: transport.WrapClient(&http.Client{Transport: pool})}
	u, err := url.Parse(server.URL)
	require.NoError(t, err)
	for range 3 {
		res := engine.Do(t.Context(), &transport.Request{
			Operation: transport.Operation{Method: http.MethodPost}, URL: u,
			Body: []byte(`{"amount":4990}`), Credential: noCredential{}, MaxAttempts: 1, AttemptTimeout: time.Minute,
		})
		require.NoError(t, res.Err)
	}
	assert.EqualValues(t, 3, writes.Load())
}

type countedConn struct {
	net.Conn
	writes *atomic.Int64
}

func (c *countedConn) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

func TestRetryAfterIsBounded(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"30": 30 * time.Second, "1.5": 1500 * time.Millisecond, "86400": 24 * time.Hour, "999999999": 24 * time.Hour, "1e300": 24 * time.Hour,
		strconv.FormatInt(now.Add(time.Minute).Unix(), 10):         time.Minute,
		strconv.FormatInt(now.Add(time.Minute).UnixMilli(), 10):    time.Minute,
		strconv.FormatInt(now.Add(-time.Minute).Unix(), 10):        0,
		now.Add(time.Minute).Format(http.TimeFormat):               time.Minute,
		now.Add(365 * 24 * time.Hour).Format(http.TimeFormat):      24 * time.Hour,
		strconv.FormatInt(now.Add(10*365*24*time.Hour).Unix(), 10): 24 * time.Hour,
		"1000000000": 0, "1000000000000": 0, // in 2001
		"-1": 0,
	} {
		wait, ok := transport.RetryAfter(header, now)
		assert.Equal(t, want, wait, header)
		assert.Equal(t, header != "-1", ok, header)
	}
}
