package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/gateway-go/gateway/mockserver"
)

// moneyMock starts a mock gateway and returns the flags and the environment that use it.
func moneyMock(t *testing.T) (args []string, environ map[string]string) {
	t.Helper()
	mock := mockserver.Run(t, mockserver.WithOpeningBalance(1e9))
	url, err := mock.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	key := filepath.Join(folder, "key")
	if err := os.WriteFile(key, []byte(mock.Key()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{
		"-url", url, "-key-file", key, "-journal", filepath.Join(folder, "journal"), "-audit", filepath.Join(folder, "audit"),
		"-allow", "payout", "-limit", "payout=50000/day",
	}, map[string]string{"GATEWAY_MCP_TOKEN": "a-token-of-a-test"}
}

func parseMoney(t *testing.T, environ map[string]string, args ...string) (*moneyFlags, error) {
	t.Helper()
	f := &moneyFlags{getenv: func(name string) string { return environ[name] }}
	return f, f.parse(args, io.Discard)
}

// payInvoice prepares and commits a payout.
func payInvoice(t *testing.T, session *mcp.ClientSession) (id, text string) {
	t.Helper()
	tool := func(name string, arguments map[string]any) (map[string]any, string) {
		r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
		if err != nil {
			t.Fatal(err)
		}
		structured, _ := r.StructuredContent.(map[string]any)
		return structured, r.Content[0].(*mcp.TextContent).Text
	}
	prepared, text := tool("prepare_payout", map[string]any{"for": "invoice 17", "pix_key_type": "EMAIL", "pix_key": "ana@example.com", "amount": 5000})
	id, _ = prepared["intent"].(string)
	if id == "" {
		t.Fatal(text)
	}
	_, text = tool("commit_intent", map[string]any{"intent": id})
	return id, text
}

type fakeTerminal struct {
	io.Reader
	bytes.Buffer
}

func (f *fakeTerminal) Read(b []byte) (int, error) { return f.Reader.Read(b) }
func (*fakeTerminal) Close() error                 { return nil }

func TestMoneyOverStandardIOWithAnApprovalInATerminal(t *testing.T) {
	t.Parallel()
	args, environ := moneyMock(t)
	f, err := parseMoney(t, environ, args...)
	if err != nil {
		t.Fatal(err)
	}
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- f.serve(t.Context(), toServer, fromServer, io.Discard) }()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "host"}, nil).Connect(t.Context(), &mcp.IOTransport{Reader: toClient, Writer: fromClient}, nil)
	if err != nil {
		t.Fatal(err)
	}
	id, text := payInvoice(t, session)
	if !strings.Contains(text, "not_approved") {
		t.Errorf("before the approval: %s", text)
	}
	command := []string{"-journal", f.journal, id}
	err = approve(command, func() (io.ReadWriteCloser, error) { return nil, errors.New("no terminal") })
	if err == nil || !strings.Contains(err.Error(), "in a terminal") {
		t.Errorf("without a terminal: %v", err)
	}
	for decision, want := range map[string]string{"y\n": "declined", "": "no decision"} {
		if err := approve(command, answering(decision, nil)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the decision %q: %v", decision, err)
		}
	}
	shown := new(fakeTerminal)
	if err := approve(command, answering("yes\n", shown)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(shown.String(), `Pay BRL 50.00 to the Pix key EMAIL ana@example.com for "invoice 17"?`) {
		t.Errorf("the terminal shows %s", shown.String())
	}
	if _, text = payInvoice(t, session); !strings.Contains(text, `"state":"done"`) {
		t.Errorf("after the approval: %s", text)
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	if err := errors.Join(fromClient.Close(), <-served); err != nil {
		t.Error(err)
	}
	if log, err := os.ReadFile(f.audit); err != nil || strings.Count(string(log), "\n") != 4 {
		t.Errorf("the audit log is %s, %v", log, err)
	}
}

func answering(line string, into *fakeTerminal) func() (io.ReadWriteCloser, error) {
	if into == nil {
		into = new(fakeTerminal)
	}
	into.Reader = strings.NewReader(line)
	return func() (io.ReadWriteCloser, error) { return into, nil }
}

// withToken adds a bearer token to each request.
type withToken string

func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(w))
	return http.DefaultTransport.RoundTrip(r)
}

// serveMoney serves the money plane over HTTP until the test ends.
func serveMoney(t *testing.T) (url, token string, connect func(token, version string) (*mcp.ClientSession, error)) {
	t.Helper()
	args, environ := moneyMock(t)
	f, err := parseMoney(t, environ, append(args, "-http", "127.0.0.1:0", "-approve", "client")...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	logs, log := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- f.serve(ctx, nil, io.Discard, log) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	line := make([]byte, 200)
	n, err := logs.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	_, url, _ = strings.Cut(strings.TrimSpace(string(line[:n])), "serving MCP at ")
	connect = func(token, version string) (*mcp.ClientSession, error) {
		client := mcp.NewClient(&mcp.Implementation{Name: "host"}, &mcp.ClientOptions{
			ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"confirm": true}}, nil
			},
		})
		return client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: withToken(token)}, DisableStandaloneSSE: true},
			&mcp.ClientSessionOptions{ProtocolVersion: version})
	}
	return url, environ["GATEWAY_MCP_TOKEN"], connect
}

func TestMoneyOverHTTP(t *testing.T) {
	t.Parallel()
	_, token, connect := serveMoney(t)
	if session, err := connect("a-wrong-token-of-a-test", ""); err == nil {
		t.Error("a wrong token is accepted")
		_ = session.Close()
	}
	// A client of an older version can't be asked over HTTP without a session: fail closed.
	for _, version := range []string{"2025-06-18", "2025-11-25"} {
		session, err := connect(token, version)
		if err != nil {
			t.Fatal(err)
		}
		if _, text := payInvoice(t, session); !strings.Contains(text, `"sentinel":"not_approved"`) || !strings.Contains(text, `"state":"prepared"`) {
			t.Errorf("%s: %s", version, text)
		}
		_ = session.Close()
	}
	session, err := connect(token, "2026-07-28")
	if err != nil {
		t.Fatal(err)
	}
	if _, text := payInvoice(t, session); !strings.Contains(text, `"state":"done"`) {
		t.Errorf("over HTTP: %s", text)
	}
	_ = session.Close()
}

// Without the token no request reaches a tool, whatever else it has.
func TestMoneyOverHTTPWithoutTheToken(t *testing.T) {
	t.Parallel()
	url, token, _ := serveMoney(t)
	for name, c := range map[string]struct {
		method string
		header map[string]string
		want   int
	}{
		"no token":               {http.MethodPost, nil, http.StatusUnauthorized},
		"no token, a GET":        {http.MethodGet, nil, http.StatusUnauthorized},
		"an empty token":         {http.MethodPost, map[string]string{"Authorization": "Bearer "}, http.StatusUnauthorized},
		"the beginning of it":    {http.MethodPost, map[string]string{"Authorization": "Bearer " + token[:8]}, http.StatusUnauthorized},
		"as a basic password":    {http.MethodPost, map[string]string{"Authorization": "Basic " + token}, http.StatusUnauthorized},
		"in another header":      {http.MethodPost, map[string]string{"X-Api-Key": token}, http.StatusUnauthorized},
		"a page of another site": {http.MethodPost, map[string]string{"Authorization": "Bearer " + token, "Origin": "https://evil.example"}, http.StatusForbidden},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, url+"?token="+token, strings.NewReader(
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"balance","arguments":{}}}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		for header, value := range c.header {
			r.Header.Set(header, value)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != c.want || strings.Contains(string(body), "balance") || strings.Contains(string(body), token) {
			t.Errorf("%s: %d %s", name, resp.StatusCode, body)
		}
	}
}

func TestWrongFlagsOfMoney(t *testing.T) {
	t.Parallel()
	base := []string{"-url", "https://gateway.example", "-journal", "journal"}
	for want, args := range map[string][]string{
		"-url or GATEWAY_BASE_URL":    {"-journal", "journal"},
		"-journal is required":        {"-url", "https://gateway.example"},
		"needs a limit":               append(base, "-allow", "payout"),
		"must be payout, refund":      append(base, "-allow", "cards"),
		"-approve must be":            append(base, "-approve", "phone"),
		"must not be negative":        append(base, "-approve-client-below", "-1"),
		"no effect with -approve=cl":  append(base, "-approve", "client", "-approve-client-below", "5"),
		"reachable from other":        append(base, "-http", ":80"),
		"must be HOST:PORT":           append(base, "-http", "80"),
		"bearer token":                append(base, "-http", "127.0.0.1:0"),
		"must be set together":        append(base, "-http", "127.0.0.1:0", "-tls-cert", "x"),
		"unexpected argument":         append(base, "x"),
		"CENTS/day or CENTS/each":     append(base, "-limit", "payout=5/week"),
		"has no effect without -http": append(base, "-tls-cert", "x", "-tls-key", "y"),
	} {
		if _, err := parseMoney(t, nil, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: the error is %v, want %q", args, err, want)
		}
	}
	f, err := parseMoney(t, nil, base...)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.serve(t.Context(), nil, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "key is missing") {
		t.Errorf("without a key: %v", err)
	}
}

func TestAProfileWithoutUniqueReferencesStopsTheServer(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "profile.json")
	for reading, wrong := range map[string]bool{"assumed": false, "they may repeat": true} {
		if err := os.WriteFile(path, []byte(`{"name":"x","readings":{"empty-reference":"`+reading+`"}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		f := moneyFlags{profile: path}
		if err := f.checkProfile(); (err != nil) != wrong {
			t.Errorf("%q: %v", reading, err)
		}
	}
}
