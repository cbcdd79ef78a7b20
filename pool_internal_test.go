package gateway

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An HTTP/2 connection that dies in silence, as after the failover of a load
// balancer, is found by a ping and replaced. Without pings, every attempt would use
// it and time out.
func TestADeadConnectionIsReplaced(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, 2, r.ProtoMajor)
		_, _ = io.WriteString(w, `{"success":true,"data":{"id":"x","status":"paid"}}`)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	proxy := newDeadProxy(t, server.Listener.Addr().String())

	pool := newPool()
	transport, ok := pool.Transport.(*http.Transport)
	require.True(t, ok)
	require.Less(t, transport.IdleConnTimeout, time.Minute, "common load balancers close idle connections after 60 s")
	require.Positive(t, transport.HTTP2.SendPingTimeout)
	require.Positive(t, transport.HTTP2.PingTimeout)
	trusted, ok := server.Client().Transport.(*http.Transport)
	require.True(t, ok)
	transport.TLSClientConfig = trusted.TLSClientConfig.Clone()
	transport.HTTP2.SendPingTimeout, transport.HTTP2.PingTimeout = 50*time.Millisecond, 50*time.Millisecond
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, proxy.Addr().String())
	}
	client, err := New(server.URL, BearerToken("sk_test_key"), WithHTTPClient(pool), WithAttemptTimeout(10*time.Minute))
	require.NoError(t, err)
	t.Cleanup(transport.CloseIdleConnections)
	_, err = client.Transactions.Get(t.Context(), "x")
	require.NoError(t, err)
	proxy.kill()
	var response Response
	_, err = client.Transactions.Get(t.Context(), "x", ResponseInto(&response))
	require.NoError(t, err)
	assert.Equal(t, 2, response.Attempts)
}

// deadProxy forwards connections to a server, until they are killed: then they
// stay open and carry nothing.
type deadProxy struct {
	net.Listener

	generation atomic.Int32
}

func newDeadProxy(t *testing.T, to string) *deadProxy {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &deadProxy{Listener: listener}
	done := make(chan struct{})
	t.Cleanup(func() {
		_ = listener.Close()
		<-done
	})
	go func() {
		defer close(done)
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			out, err := (&net.Dialer{}).Dial("tcp", to)
			if err != nil {
				_ = in.Close()
				continue
			}
			born := p.generation.Load()
			go p.forward(in, out, born)
			go p.forward(out, in, born)
		}
	}()
	return p
}

// kill silences every connection that is open now.
func (p *deadProxy) kill() { p.generation.Add(1) }

func (p *deadProxy) forward(from, to net.Conn, born int32) {
	defer func() { _, _ = from.Close(), to.Close() }()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		if p.generation.Load() != born {
			continue
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}
