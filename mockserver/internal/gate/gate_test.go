package gate_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/mockserver/internal/gate"
)

func TestAllowedHostNames(t *testing.T) {
	t.Parallel()
	names := []string{"gateway.test", "gateway"}
	for _, host := range []string{
		"localhost", "localhost:4010", "LOCALHOST.", "shop.localhost:80", "127.0.0.1:4010", "127.0.0.9", "[::1]:4010", "[::1]", "::1",
		"10.0.0.5:4010", "[fd12::1]:80", "example.com", "api.example.com:443", "Gateway.test:4010", "gateway",
	} {
		assert.True(t, gate.Allowed(host, names), host)
	}
	for _, host := range []string{
		"", "evil.test", "evil.test:4010", "localhost.evil.test", "notlocalhost", "127.0.0.1.evil.test", "127.0.0.1.nip.io:4010",
		"example.com.evil.test", "notexample.com", "x.gateway.test", "0x7f.1", "2130706433", "[::1].evil.test",
	} {
		assert.False(t, gate.Allowed(host, names), host)
		assert.True(t, gate.Allowed(host, []string{"*"}), host)
	}
}

// dial serves a gate and opens a raw connection to it.
func dial(t *testing.T, g *gate.Gate) net.Conn {
	t.Helper()
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func status(t *testing.T, conn io.Reader) int {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode
}

// A client that stops in the middle of its body gets a response, and its
// connection is closed.
func TestStalledBodiesTimeOut(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]http.HandlerFunc{
		"read": func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.ReadAll(r.Body); err != nil {
				w.WriteHeader(http.StatusRequestTimeout)
			}
		},
		"not read": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusRequestTimeout) },
	} {
		for _, length := range []int{10, 100_000_000} {
			conn := dial(t, &gate.Gate{Next: next, BodyTimeout: 20 * time.Millisecond})
			_, err := fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\nhalf", length)
			require.NoError(t, err)
			assert.Equal(t, http.StatusRequestTimeout, status(t, conn), name)
			_, err = conn.Read(make([]byte, 1))
			require.ErrorIs(t, err, io.EOF, name)
		}
	}
}

// A handler may take longer than the body's deadline after it has read the
// body, and the connection is reused.
func TestDeadlineAppliesOnlyToTheBody(t *testing.T) {
	t.Parallel()
	next := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		select {
		case <-r.Context().Done():
			w.WriteHeader(http.StatusTeapot)
		case <-time.After(time.Hour):
		}
	}
	synctest.Test(t, func(t *testing.T) {
		conn := pipe(t, &gate.Gate{Next: http.HandlerFunc(next), BodyTimeout: time.Second})
		for range 2 {
			_, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nbody")
			require.NoError(t, err)
			assert.Equal(t, http.StatusOK, status(t, conn))
		}
	})
}

// pipe serves a gate on a connection in memory, whose deadlines follow the clock
// of a synctest bubble.
func pipe(t *testing.T, g *gate.Gate) net.Conn {
	t.Helper()
	client, server := net.Pipe()
	l := pipeListener{conns: make(chan net.Conn, 1)}
	l.conns <- server
	srv := &http.Server{Handler: g}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	t.Cleanup(func() {
		require.NoError(t, srv.Close())
		require.ErrorIs(t, <-served, http.ErrServerClosed)
		require.NoError(t, client.Close())
	})
	return client
}

// pipeListener accepts the connections in conns.
type pipeListener struct{ conns chan net.Conn }

func (l pipeListener) Accept() (net.Conn, error) {
	conn, open := <-l.conns
	if !open {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (l pipeListener) Close() error {
	close(l.conns)
	return nil
}

func (l pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

// A client that sends all of a long body before it reads gets the response.
func TestUnreadBodiesAreDrained(t *testing.T) {
	t.Parallel()
	next := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusRequestEntityTooLarge) }
	for name, next := range map[string]http.HandlerFunc{
		"not read": next,
		"limited": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
			next(w, r)
		},
	} {
		conn := dial(t, &gate.Gate{Next: next})
		_, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 6291456\r\n\r\n"+strings.Repeat("x", 6<<20))
		require.NoError(t, err, name)
		assert.Equal(t, http.StatusRequestEntityTooLarge, status(t, conn), name)
	}
}

// A client that waits for "100 Continue" is not told to send a body that no
// handler reads.
func TestUnreadBodiesAreNotRequested(t *testing.T) {
	t.Parallel()
	conn := dial(t, &gate.Gate{Next: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
	})})
	_, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n")
	require.NoError(t, err)
	assert.Equal(t, http.StatusRequestEntityTooLarge, status(t, conn))
}

func TestCheckedRequests(t *testing.T) {
	t.Parallel()
	g := &gate.Gate{
		Next:   http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
		Open:   func(r *http.Request) bool { return r.URL.Path == "/open" },
		Strict: func(r *http.Request) bool { return r.URL.Path == "/strict" },
	}
	for path, want := range map[string][2]int{"/": {200, 421}, "/open": {200, 200}, "/strict": {421, 421}} {
		for socket, want := range map[bool]int{false: want[0], true: want[1]} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://evil.test"+path, strings.NewReader("body"))
			if socket {
				r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, "127.0.0.1:80"))
			}
			w := httptest.NewRecorder()
			g.ServeHTTP(w, r)
			assert.Equal(t, want, w.Code, "%s socket: %t", path, socket)
		}
	}
}
