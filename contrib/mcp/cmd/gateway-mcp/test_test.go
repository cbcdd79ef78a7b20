package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// start runs a command and returns the beginning of its standard error, up to a line with
// the given text. The test ends the command.
func start(t *testing.T, until string, stdin io.Reader, stdout io.Writer, args ...string) string {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	read, write := io.Pipe()
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, args, stdin, stdout, write)
		_ = write.Close()
	}()
	t.Cleanup(func() {
		stop()
		assert.Zero(t, <-done)
	})
	lines := bufio.NewReader(read)
	for {
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		if strings.Contains(line, until) {
			go func() { _, _ = io.Copy(io.Discard, lines) }()
			return strings.TrimSpace(line)
		}
	}
}

func call(t *testing.T, transport mcp.Transport, version string) {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	require.NoError(t, err)
	r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "mock_status", Arguments: map[string]any{}})
	require.NoError(t, err)
	require.False(t, r.IsError)
	out, _ := r.StructuredContent.(map[string]any)
	assert.Contains(t, out["base_url"], "http://127.0.0.1:")
	require.NoError(t, session.Close())
}

func TestTheTestPlaneOverStandardIO(t *testing.T) {
	t.Parallel()
	fromHost, toServer := io.Pipe()
	fromServer, toHost := io.Pipe()
	log := filepath.Join(t.TempDir(), "audit")
	start(t, "the mock gateway is at", fromHost, toHost, "test", "-dialect", "live", "-audit", log)
	call(t, &mcp.IOTransport{Reader: fromServer, Writer: toServer}, "2025-11-25")
	line, err := os.ReadFile(log)
	require.NoError(t, err)
	assert.Regexp(t, `^\{"at":"[^"]+","principal":"local","client":"host 1","tool":"mock_status","arguments":"[0-9a-f]{16}"\}\n$`, string(line))
	info, err := os.Stat(log)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

// A log that can't be written is reported once, and stops nothing.
func TestAnAuditLogThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit")
	var stderr bytes.Buffer
	w, closeLog, err := openAudit(path, &stderr)
	require.NoError(t, err)
	_, err = w.Write([]byte("1\n"))
	require.NoError(t, err)
	require.NoError(t, closeLog())
	for range 2 {
		_, err = w.Write([]byte("2\n"))
		require.Error(t, err)
	}
	assert.Equal(t, 1, strings.Count(stderr.String(), "calls are no longer logged"))
}

// A mock in another process, and MCP over HTTP.
func TestTheTestPlaneOverHTTP(t *testing.T) {
	t.Parallel()
	const at = "the mock gateway is at "
	none, keep := io.Pipe() // standard input that stays open
	t.Cleanup(func() { _ = keep.Close() })
	line := start(t, at, none, io.Discard, "test")
	_, mock, _ := strings.Cut(line, at)
	line = start(t, "serving MCP", strings.NewReader(""), io.Discard, "test", "-mock", mock, "-http", "127.0.0.1:0")
	_, endpoint, _ := strings.Cut(line, "serving MCP at ")
	for _, version := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
		call(t, &mcp.StreamableClientTransport{Endpoint: endpoint, DisableStandaloneSSE: true}, version)
	}
	// A web page can't call the tools, neither from its origin nor by DNS rebinding.
	for name, value := range map[string]string{"Origin": "https://evil.example", "Host": "evil.example"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint, strings.NewReader("{}"))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set(name, value)
		if name == "Host" {
			r.Host = value
		}
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, http.StatusForbidden, resp.StatusCode, name)
	}
}

func TestTheBearerTokenOfHTTP(t *testing.T) {
	t.Setenv("GATEWAY_MCP_TOKEN", "token-1")
	line := start(t, "serving MCP", strings.NewReader(""), io.Discard, "test", "-http", "127.0.0.1:0")
	_, endpoint, _ := strings.Cut(line, "serving MCP at ")
	for _, row := range []struct {
		header string
		want   int
	}{{"", http.StatusUnauthorized}, {"Bearer token-2", http.StatusUnauthorized}, {"Bearer token-1", http.StatusOK}} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint, strings.NewReader(
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if row.header != "" {
			r.Header.Set("Authorization", row.header)
		}
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, row.want, resp.StatusCode, row.header)
	}
}

func TestWrongFlagsOfTest(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		args string
		code int
		want string
	}{
		{"test -http 0.0.0.0:8080", 2, "-http must be a loopback address"},
		{"test -addr :8080", 2, "-addr must be a loopback address"},
		{"test -dialect klingon", 2, "-dialect must be document or live"},
		{"test -clock fast", 2, "-clock must be manual or realtime"},
		{"test -exam-budget -1s", 2, "-exam-budget must not be negative"},
		{"test -mock http://127.0.0.1:1 -clock manual", 2, "-clock has no effect with -mock"},
		{"test extra", 2, `unexpected argument "extra"`},
		{"test -unknown", 2, "-unknown"},
		{"test -mock https://api.gateway.example", 1, "must run on this machine"},
		{"test -mock http://127.0.0.1:1", 1, "not reachable"},
		{"test -seed-file nothing.json", 1, "nothing.json"},
		{"test -audit nothing/audit", 1, "-audit: open nothing/audit"},
		{"test -h", 0, "GATEWAY_MCP_TOKEN"},
		{"", 2, "usage: gateway-mcp COMMAND"},
	} {
		var stderr bytes.Buffer
		assert.Equal(t, row.code, run(t.Context(), strings.Fields(row.args), strings.NewReader(""), io.Discard, &stderr), row.args)
		assert.Contains(t, stderr.String(), row.want, row.args)
	}
}
