package transport_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/transport"
)

// FuzzRetryAfter: whatever the header says, the wait is no negative one.
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

// TestNoGoroutineIsLeft: calls that succeed, fail, time out and are given up,
// over real connections.
func TestNoGoroutineIsLeft(t *testing.T) { //nolint:paralleltest // it counts the goroutines of the process
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

// TestCookiesOfTheCallersJar go with each attempt, on no other call's headers.
func TestCookiesOfTheCallersJar(t *testing.T) {
	t.Parallel()
	var cookies []string
	seen := roundTrip(func(r *http.Request) (*http.Response, error) {
		cookies = append(cookies, r.Header.Get("Cookie"))
		return &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	})
	u := &url.URL{Scheme: "https", Host: "api.example.com", Path: "/x"}
	for _, jar := range []http.CookieJar{jar{}, nil} {
		engine := &transport.Engine{
			HTTP: transport.WrapClient(&http.Client{Transport: seen, Jar: jar}), FirstWait: 1, LongestWait: 1, Jitter: func() float64 { return 0 },
		}
		engine.Do(t.Context(), &transport.Request{
			Operation: transport.Operation{Method: http.MethodGet}, URL: u, Credential: noCredential{}, MaxAttempts: 2, AttemptTimeout: time.Minute,
		})
	}
	assert.Equal(t, []string{"lb=7", "lb=7", "", ""}, cookies)
}

// TestAResponseWithoutABody: a RoundTripper of the caller's may leave it out.
func TestAResponseWithoutABody(t *testing.T) {
	t.Parallel()
	bare := roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusNoContent, Header: http.Header{}}, nil
	})
	engine := &transport.Engine{HTTP: transport.WrapClient(&http.Client{Transport: bare})}
	res := engine.Do(t.Context(), &transport.Request{
		Operation: transport.Operation{Method: http.MethodDelete}, URL: &url.URL{Scheme: "https", Host: "api.example.com"},
		Credential: noCredential{}, MaxAttempts: 1, AttemptTimeout: time.Minute,
	})
	require.NoError(t, res.Err)
	assert.Equal(t, http.StatusNoContent, res.Status)
	assert.Empty(t, res.Body)
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type jar struct{}

func (jar) SetCookies(*url.URL, []*http.Cookie) {}
func (jar) Cookies(*url.URL) []*http.Cookie     { return []*http.Cookie{{Name: "lb", Value: "7"}} }

// TestASmallRequestIsOneWrite: headers and body leave together. net/http writes
// the headers on their own unless it knows the body's type.
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
