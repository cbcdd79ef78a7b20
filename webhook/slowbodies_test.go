package webhook_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/explore"
	"github.com/gateway-go/gateway/webhook"
)

// pipes is a network in memory, whose deadlines follow the clock of synctest.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.closed)
	return nil
}

func (*pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial(ctx context.Context) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// served runs a real server with the receiver inside a bubble of synctest.
func served(t *testing.T, rx *webhook.Receiver) (*pipes, *http.Client) {
	t.Helper()
	network := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	srv := &http.Server{Handler: rx} // without any timeouts: the worst case
	stopped := make(chan error)
	go func() { stopped <- srv.Serve(network) }()
	client := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return network.dial(ctx) },
	}}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		require.NoError(t, srv.Close())
		require.ErrorIs(t, <-stopped, http.ErrServerClosed)
		time.Sleep(time.Second) // until the server has given up its connections
	})
	return network, client
}

// slowSender sends the beginning of a request's body and then one byte every
// pause, or nothing if there is no pause.
type slowSender struct {
	header func() http.Header
	length int // of the body
	sent   int // sent immediately
	pause  time.Duration
	chunks bool
	again  bool // reconnects soon after it is disconnected
}

// run sends until ctx ends.
func (s slowSender) run(ctx context.Context, network *pipes) {
	for ctx.Err() == nil {
		if conn, err := network.dial(ctx); err == nil {
			s.send(ctx, conn)
			_ = conn.Close()
		}
		if !s.again {
			<-ctx.Done()
		}
		_, _ = slowReader{ctx, 10 * time.Millisecond}.Read(make([]byte, 1))
	}
}

func (s slowSender) send(ctx context.Context, conn net.Conn) {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://shop.invalid/", s.body(ctx))
	if err != nil {
		return
	}
	r.Header = s.header()
	if r.ContentLength = int64(s.length); s.chunks {
		r.ContentLength = -1
	}
	responded := make(chan struct{})
	go func() {
		defer close(responded)
		if res, err := http.ReadResponse(bufio.NewReader(conn), r); err == nil {
			_ = res.Body.Close()
		}
		_ = conn.Close() // ends the request
	}()
	_ = r.Write(conn)
	<-responded
}

func (s slowSender) body(ctx context.Context) io.Reader {
	return io.MultiReader(strings.NewReader(strings.Repeat(" ", s.sent)), slowReader{ctx, s.pause})
}

type slowReader struct {
	ctx   context.Context //nolint:containedctx // it ends the reader
	pause time.Duration
}

func (s slowReader) Read(p []byte) (int, error) {
	var next <-chan time.Time
	if s.pause > 0 {
		next = time.After(s.pause)
	}
	select {
	case <-next:
		p[0] = ' '
		return 1, nil
	case <-s.ctx.Done():
		return 0, errors.New("stopped")
	}
}

func noSignature() http.Header { return http.Header{"Content-Type": {"application/json"}} }

func signedBy(key gateway.Secret, age time.Duration) func() http.Header {
	return func() http.Header {
		h := noSignature()
		timestamp, signature := webhook.Sign(key, time.Now().Add(-age), nil)
		h.Set(webhook.DefaultTimestampHeader, timestamp)
		h.Set(webhook.DefaultSignatureHeader, signature)
		return h
	}
}

// TestSlowBodiesOfStrangers sends large genuine deliveries while strangers hold more
// connections than there is memory for. Without plausible signature headers they
// have no effect. With forged ones a delivery waits until their memory is taken
// back.
func TestSlowBodiesOfStrangers(t *testing.T) {
	t.Parallel()
	guessed := gateway.NewSecret("guessed")
	half := signedBy(guessed, 0)
	for name, attack := range map[string]struct {
		header func() http.Header
		delays bool
	}{
		"unsigned":         {noSignature, false},
		"a timestamp only": {func() http.Header { h := half(); h.Del(webhook.DefaultSignatureHeader); return h }, false},
		"a short signature": {func() http.Header {
			h := half()
			h.Set(webhook.DefaultSignatureHeader, "sha256=00")
			return h
		}, false},
		"an old timestamp": {signedBy(guessed, time.Hour), false},
		"forged":           {half, true},
	} {
		for size, flood := range map[string]struct {
			senders    int
			concurrent int // of the receiver
			sender     slowSender
		}{
			"64 and more of 1 MiB": {80, 64, slowSender{length: 1 << 20, sent: 1<<20 - 1}},
			"400 of 22 KiB":        {400, 2, slowSender{length: 22 << 10, sent: 22<<10 - 1}},
			"one byte at a time":   {10, 4, slowSender{length: 1 << 20, sent: 600 << 10, pause: 10 * time.Millisecond}},
			"chunked":              {10, 4, slowSender{length: 1 << 20, sent: 1<<20 - 1, chunks: true}},
			"15 times the memory":  {60, 4, slowSender{length: 1 << 20, sent: 20 << 10, again: true}},
			"again and again":      {12, 4, slowSender{length: 1 << 20, sent: 1<<20 - 1, again: true}},
		} {
			if testing.Short() && !explore.Sampled(len(name)+len(size)) {
				continue
			}
			t.Run(name+", "+size, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					client := (&fakeAPI{}).client(t)
					for _, trust := range []webhook.Trust{webhook.RequireSignature, webhook.SignatureOrReadBack} {
						cfg := signedConfig()
						cfg.MaxConcurrent, cfg.Trust, cfg.API = flood.concurrent, trust, client
						sender := flood.sender
						sender.header = attack.header
						delay := acceptDuring(t, receiver(t, cfg), sender, flood.senders)
						if attack.delays {
							assert.LessOrEqual(t, delay, 2200*time.Millisecond)
						} else {
							assert.Zero(t, delay)
						}
					}
				})
			})
		}
	}
}

// acceptDuring sends genuine deliveries during a flood, requires that all are
// accepted, and returns the longest time that one took.
func acceptDuring(t *testing.T, rx *webhook.Receiver, sender slowSender, senders int) (longest time.Duration) {
	t.Helper()
	network, client := served(t, rx)
	ctx, end := context.WithCancel(t.Context())
	var flood sync.WaitGroup
	for range senders {
		flood.Go(func() { sender.run(ctx, network) })
	}
	synctest.Wait()
	for i, size := range []int{1 << 10, 20 << 10, 100 << 10, 500 << 10, 900 << 10, 900 << 10} {
		began := time.Now()
		status, text := post(t, client, genuine(fmt.Sprintf("evt_%d", i), size))
		assert.Equal(t, http.StatusOK, status, "%d KiB: %s", size>>10, text)
		longest = max(longest, time.Since(began))
		if size <= 16<<10 {
			assert.Zero(t, longest, "a delivery of ordinary size never waits")
		}
		synctest.Wait()
	}
	end()
	flood.Wait()
	return longest
}

// genuine returns a signed body of the given size.
func genuine(event string, size int) string {
	body := paid(event, event) // a resource of its own, for which it need not wait
	return body + strings.Repeat(" ", size-len(body))
}

func post(t *testing.T, client *http.Client, body string) (status int, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://shop.invalid/", strings.NewReader(body))
	require.NoError(t, err)
	r.Header = noSignature()
	sign(r, secret, time.Now(), body)
	res, err := client.Do(r)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(raw)
}

// gatedReader sends the second part of a body when a gate opens.
type gatedReader struct {
	first, second io.Reader
	gate          chan struct{}
}

func (g *gatedReader) Read(p []byte) (int, error) {
	if n, err := g.first.Read(p); err == nil {
		return n, nil
	}
	<-g.gate
	return g.second.Read(p)
}

// TestLargeBodiesDoNotBlockEachOther has eight bodies that have arrived by a third
// when there is memory for four: the others follow.
func TestLargeBodiesDoNotBlockEachOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := signedConfig()
		cfg.MaxConcurrent = 4
		rx := receiver(t, cfg)
		_, client := served(t, rx)
		gate := make(chan struct{})
		statuses := make(chan int, 8)
		for i := range 8 {
			go func() {
				body := genuine(fmt.Sprintf("evt_%d", i), 900<<10)
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://shop.invalid/",
					&gatedReader{strings.NewReader(body[:300<<10]), strings.NewReader(body[300<<10:]), gate})
				if !assert.NoError(t, err) {
					return
				}
				r.ContentLength = int64(len(body))
				sign(r, secret, time.Now(), body)
				res, err := client.Do(r)
				if assert.NoError(t, err) {
					statuses <- res.StatusCode
					assert.NoError(t, res.Body.Close())
				}
			}()
		}
		synctest.Wait()
		began := time.Now()
		close(gate)
		for range 8 {
			assert.Equal(t, http.StatusOK, <-statuses)
		}
		assert.Zero(t, time.Since(began))
		for i := range 20 { // memory is released every time
			status, text := post(t, client, genuine(fmt.Sprintf("later_%d", i), 1<<20))
			assert.Equal(t, http.StatusOK, status, text)
		}
	})
}
