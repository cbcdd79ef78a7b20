package memory_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/mockserver/internal/memory"
)

func clientOf(h http.HandlerFunc) *http.Client {
	return &http.Client{Transport: &memory.Transport{Handler: h}}
}

func request(t *testing.T, method, url, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	return req
}

func TestHandlerGetsAServerRequest(t *testing.T) {
	t.Parallel()
	var seen *http.Request
	var body []byte
	client := clientOf(func(w http.ResponseWriter, r *http.Request) {
		seen = r
		body, _ = io.ReadAll(r.Body)
		w.Header().Set("X-Request-Id", "req_1")
		w.WriteHeader(http.StatusCreated)
		w.Header().Set("X-Too-Late", "1")
		_, _ = io.WriteString(w, `{"ok":true}`)
	})
	req := request(t, http.MethodPost, "https://user:pass@gateway.test/v2/transactions?a=b%20c", "hello")

	resp, err := client.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	response, err := io.ReadAll(resp.Body)
	require.NoError(t, err)

	assert.Equal(t, "/v2/transactions?a=b%20c", seen.RequestURI)
	assert.Equal(t, "gateway.test", seen.Host)
	assert.Empty(t, seen.URL.Host)
	assert.Equal(t, int64(5), seen.ContentLength)
	name, password, _ := seen.BasicAuth()
	assert.Equal(t, "user/pass", name+"/"+password)
	assert.Equal(t, "hello", string(body))
	assert.Equal(t, http.StatusCreated, resp.StatusCode)
	assert.Equal(t, "201 Created", resp.Status)
	assert.JSONEq(t, `{"ok":true}`, string(response))
	assert.Equal(t, int64(len(response)), resp.ContentLength)
	assert.Equal(t, "req_1", resp.Header.Get("X-Request-Id"))
	assert.Empty(t, resp.Header.Get("X-Too-Late"))
	assert.Empty(t, req.RequestURI, "the caller's request is not modified")
}

// TestClosedBodiesDoNotShareMemory closes responses twice while others are being read:
// two responses must never share memory.
func TestClosedBodiesDoNotShareMemory(t *testing.T) {
	t.Parallel()
	client := clientOf(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat(r.URL.Path, 100))
	})
	var callers sync.WaitGroup
	for n := range 4 {
		callers.Go(func() {
			path := fmt.Sprint("/caller-", n)
			for range 200 {
				resp, err := client.Do(request(t, http.MethodGet, "http://gateway.test"+path, ""))
				if err != nil {
					t.Error(err)
					return
				}
				response, err := io.ReadAll(resp.Body)
				closed, again := resp.Body.Close(), resp.Body.Close()
				_, late := resp.Body.Read(make([]byte, 1))
				if err := errors.Join(err, closed, again); err != nil {
					t.Error(err)
				}
				assert.Equal(t, strings.Repeat(path, 100), string(response))
				assert.ErrorIs(t, late, http.ErrBodyReadAfterClose)
			}
		})
	}
	callers.Wait()
}

func TestResponsesWithoutABody(t *testing.T) {
	t.Parallel()
	client := clientOf(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			w.Header().Set("Content-Length", "7")
			_, _ = io.WriteString(w, "1234567")
			return
		}
		w.WriteHeader(http.StatusNoContent)
		_, err := io.WriteString(w, "x")
		assert.ErrorIs(t, err, http.ErrBodyNotAllowed)
	})
	for method, length := range map[string]int64{http.MethodHead: 7, http.MethodDelete: 0} {
		resp, err := client.Do(request(t, method, "http://gateway.test/", ""))
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.Empty(t, body)
		assert.Equal(t, length, resp.ContentLength)
	}
}

// TestBrokenConnections compares the errors of an in-memory client with those of a
// client on a socket.
func TestBrokenConnections(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		handler  http.HandlerFunc
		do, read error
	}{
		"reset": {
			handler: func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				memory.Reset(w)
			},
			do: syscall.ECONNRESET,
		},
		"closed before the response": {
			handler: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			do:      io.EOF,
		},
		"cut in the body": {
			handler: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "100")
				_, _ = io.WriteString(w, "half")
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			},
			read: io.ErrUnexpectedEOF,
		},
		"cut in a body of unknown length": {
			handler: func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, "half")
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			},
			read: io.ErrUnexpectedEOF,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewUnstartedServer(tc.handler)
			server.Start()
			t.Cleanup(server.Close)
			for where, client := range map[string]*http.Client{"memory": clientOf(tc.handler), "socket": server.Client()} {
				resp, err := client.Do(request(t, http.MethodPost, server.URL, "body"))
				if tc.do != nil {
					require.ErrorIs(t, err, tc.do, where)
					continue
				}
				require.NoError(t, err, where)
				got, err := io.ReadAll(resp.Body)
				require.ErrorIs(t, err, tc.read, where)
				assert.Equal(t, "half", string(got), where)
				require.NoError(t, resp.Body.Close())
			}
		})
	}
}

func TestAResetLooksLikeANetworkReset(t *testing.T) {
	t.Parallel()
	client := clientOf(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "written, then lost")
		memory.Reset(wrapped{w})
	})
	_, err := client.Do(request(t, http.MethodGet, "http://gateway.test/", "")) //nolint:bodyclose // no response

	var op *net.OpError
	require.ErrorAs(t, err, &op)
	assert.Equal(t, "read", op.Op)
}

type wrapped struct{ http.ResponseWriter }

func (w wrapped) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func TestAPanicIsReportedAsAnError(t *testing.T) {
	t.Parallel()
	client := clientOf(func(http.ResponseWriter, *http.Request) { panic("boom") })
	_, err := client.Do(request(t, http.MethodGet, "http://gateway.test/", "")) //nolint:bodyclose // no response

	require.ErrorIs(t, err, memory.ErrPanic)
	assert.ErrorContains(t, err, "boom")
}

func TestContextEndsTheRequestAndTheHandler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // fails if the handler's goroutine leaks
		ended := false
		client := clientOf(func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			ended = true
		})
		client.Timeout = 3 * time.Second
		began := time.Now()

		_, err := client.Do(request(t, http.MethodGet, "http://gateway.test/", "")) //nolint:bodyclose // no response

		var timeout net.Error
		require.ErrorAs(t, err, &timeout)
		assert.True(t, timeout.Timeout())
		assert.Equal(t, 3*time.Second, time.Since(began))
		synctest.Wait()
		assert.True(t, ended)
	})
}

func TestHandlerIsNotCalledAfterTheContextHasEnded(t *testing.T) {
	t.Parallel()
	client := clientOf(func(http.ResponseWriter, *http.Request) { t.Error("called") })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	body := &closer{Reader: strings.NewReader("x")}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://gateway.test/", body)
	require.NoError(t, err)

	_, err = client.Transport.RoundTrip(req) //nolint:bodyclose // no response

	require.ErrorIs(t, err, context.Canceled)
	assert.True(t, body.closed)
}

func TestRequestBodyIsClosed(t *testing.T) {
	t.Parallel()
	body := &closer{Reader: strings.NewReader("x")}
	req := request(t, http.MethodPost, "http://gateway.test/", "")
	req.Body = body
	client := clientOf(func(http.ResponseWriter, *http.Request) {})

	resp, err := client.Transport.RoundTrip(req)

	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.True(t, body.closed)
}

type closer struct {
	io.Reader

	closed bool
}

func (c *closer) Close() error {
	if c.closed {
		return errors.New("closed twice")
	}
	c.closed = true
	return nil
}

// onCaller sends a request through a transport that serves all paths but /slow inline,
// and reports whether the handler ran on the caller's goroutine.
func onCaller(t *testing.T, req *http.Request) (same bool) {
	t.Helper()
	const name = "memory_test.onCaller("
	transport := &memory.Transport{
		Inline: func(r *http.Request) bool { return r.URL.Path != "/slow" },
		Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			stack, _, _ := strings.Cut(string(debug.Stack()), "created by")
			same = strings.Contains(stack, name)
			_, _ = io.Copy(io.Discard, r.Body)
		}),
	}
	resp, err := transport.RoundTrip(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return same
}

func TestInlineHandlersRunOnTheCallersGoroutine(t *testing.T) {
	t.Parallel()
	piped := request(t, http.MethodPost, "http://gateway.test/quick", "body")
	piped.GetBody = nil // like a body that is streamed, which may block
	assert.False(t, onCaller(t, piped))
	assert.False(t, onCaller(t, request(t, http.MethodPost, "http://gateway.test/slow", "body")))
	assert.True(t, onCaller(t, request(t, http.MethodPost, "http://gateway.test/quick", "body")))
}

func TestInlineHandlersGetTheRequestsContext(t *testing.T) {
	t.Parallel()
	cause := errors.New("the caller canceled")
	ctx, cancel := context.WithCancelCause(t.Context())
	transport := &memory.Transport{
		Inline: func(*http.Request) bool { return true },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			cancel(cause)
			<-r.Context().Done()
			w.WriteHeader(http.StatusCreated) // too late
		}),
	}
	resp, err := transport.RoundTrip(request(t, http.MethodPost, "http://gateway.test/", "body").WithContext(ctx)) //nolint:bodyclose // there is none
	assert.Nil(t, resp)
	assert.ErrorIs(t, err, cause)
}

func BenchmarkRoundTrip(b *testing.B) {
	transport := &memory.Transport{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	})}
	b.ReportAllocs()
	for b.Loop() {
		req, _ := http.NewRequestWithContext(b.Context(), http.MethodPost, "http://gateway.test/v2/transactions", strings.NewReader("{}"))
		resp, err := transport.RoundTrip(req)
		if err != nil {
			b.Fatal(err)
		}
		_ = resp.Body.Close()
	}
}
