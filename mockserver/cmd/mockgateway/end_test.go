package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A signal ends the gateway in much less than the 5 seconds that net/http waits for
// a connection without a request, whatever its clients and receivers do. A busy machine can
// delay a process for longer, but not in every try.
func TestASignalEndsTheGatewayPromptly(t *testing.T) {
	t.Parallel()
	const tries, limit = 5, 4 * time.Second
	byDefault := []string{"-drain", defaultDrain.String()} // other tests, and the other cases, have an hour
	type situation struct {
		args   []string
		signal os.Signal
		begin  func(t *testing.T, g *process)
	}
	for name, s := range map[string]situation{
		"nothing":                    {nil, syscall.SIGTERM, func(*testing.T, *process) {}},
		"SIGHUP":                     {nil, syscall.SIGHUP, func(*testing.T, *process) {}},
		"a connection without use":   {nil, syscall.SIGTERM, unusedConnection},
		"half a header":              {nil, syscall.SIGTERM, halfAHeader},
		"a stream of events":         {nil, syscall.SIGTERM, stream},
		"a request in a fault":       {nil, syscall.SIGTERM, inAFault},
		"half a body":                {byDefault, syscall.SIGTERM, halfABody},
		"a receiver that hangs":      {byDefault, syscall.SIGTERM, hangingReceiver},
		"an advance behind it":       {slices.Concat(byDefault, []string{"-clock", "manual"}), syscall.SIGTERM, advanceBehindAHangingReceiver},
		"a long wait for deliveries": {byDefault, syscall.SIGHUP, waitForAHangingReceiver},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var took time.Duration
			for range tries {
				g := start(t, s.args...)
				s.begin(t, g)
				began := time.Now()
				require.NoError(t, g.cmd.Process.Signal(s.signal))
				select {
				case <-g.done:
				case <-time.After(time.Minute):
					t.Fatalf("it runs a minute after %v", s.signal)
				}
				took = time.Since(began)
				assert.Zero(t, g.cmd.ProcessState.ExitCode(), g.errs.String())
				assert.NoFileExists(t, g.portFile)
				if took < limit {
					return
				}
			}
			t.Errorf("it took %v in %d tries", took, tries)
		})
	}
	assert.Less(t, defaultDrain, time.Second)
}

func dial(t *testing.T, g *process, text string) net.Conn {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(g.base, "http://"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	_, err = io.WriteString(c, text)
	require.NoError(t, err)
	// The gateway has accepted the connection if it has responded on a later one.
	_, _, err = g.call(http.MethodGet, "/__mock/health", "")
	require.NoError(t, err)
	return c
}

func unusedConnection(t *testing.T, g *process) {
	t.Helper()
	dial(t, g, "")
}

func halfAHeader(t *testing.T, g *process) {
	t.Helper()
	dial(t, g, "POST /v2/transactions HTT")
}

// halfABody waits until the handler reads the body.
func halfABody(t *testing.T, g *process) {
	t.Helper()
	c := dial(t, g, "POST /v2/transactions HTTP/1.1\r\nHost: localhost\r\nApikey: sk_test_mock\r\n"+
		"Content-Type: application/json\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n")
	line, err := bufio.NewReader(c).ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, "100 Continue")
	_, err = io.WriteString(c, `{"amount":`)
	require.NoError(t, err)
}

func stream(t *testing.T, g *process) {
	t.Helper()
	c := dial(t, g, "GET /__mock/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
	line, err := bufio.NewReader(c).ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, "200 OK")
}

// inAFault waits until the fault has taken the request.
func inAFault(t *testing.T, g *process) {
	t.Helper()
	g.must("POST", "/__mock/faults", `{"fault":"latency=1h","on":"transactions.create"}`)
	inBackground(t, g, "/v2/transactions", pix("order-1"))
	for {
		list := g.must("GET", "/__mock/faults", "")["data"].([]any)
		if fired, _ := list[0].(map[string]any)["fired"].(float64); fired > 0 {
			return
		}
	}
}

// inBackground makes a call whose response never comes.
func inBackground(t *testing.T, g *process, path, body string) {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _, err := g.call(http.MethodPost, path, body)
		assert.Error(t, err, "the call was executed")
	}()
	t.Cleanup(func() {
		g.kill()
		<-ended
	})
}

// hangingReceiver waits until a receiver has got a webhook, to which it never responds.
func hangingReceiver(t *testing.T, g *process) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	got := make(chan struct{}, 100)
	hook := newServer(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // so that the server notices the end of the connection
		got <- struct{}{}
		select {
		case <-r.Context().Done():
		case <-ctx.Done():
		}
	})
	t.Cleanup(end) // before the server is closed
	g.must("POST", "/__mock/endpoints", fmt.Sprintf(`{"url":%q,"events":["transaction.created"]}`, hook))
	g.must("POST", "/v2/transactions", pix("order-1"))
	<-got
}

func advanceBehindAHangingReceiver(t *testing.T, g *process) {
	t.Helper()
	hangingReceiver(t, g)
	inBackground(t, g, "/__mock/clock/advance", `{"by":"1d"}`)
	g.must("GET", "/__mock/clock", "")
}

func waitForAHangingReceiver(t *testing.T, g *process) {
	t.Helper()
	hangingReceiver(t, g)
	inBackground(t, g, "/__mock/deliveries/wait?timeout=1h", "")
	g.must("GET", "/__mock/clock", "")
}

// A request that waits in a fault when the gateway ends is not executed.
func TestASignalAbortsRequestsInAFault(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	g := start(t, "-data", data)
	inAFault(t, g)
	require.NoError(t, g.cmd.Process.Signal(syscall.SIGTERM))
	<-g.done
	g = start(t, "-data", data)
	list := g.must("GET", "/v2/transactions", "")["data"].(map[string]any)
	assert.Empty(t, list["data"])
}
