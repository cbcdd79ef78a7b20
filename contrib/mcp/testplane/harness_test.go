package testplane_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/contrib/mcp/testplane"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
)

// versions are the protocol versions that hosts speak.
func versions() []string { return []string{"2025-06-18", "2025-11-25", "2026-07-28"} }

// agent calls the tools of a plane as a host does.
type agent struct {
	t       *testing.T
	session *mcp.ClientSession
	mock    *mockserver.Server
	seen    *[]string // every result
}

type setting func(*testplane.Config)

// serve returns an agent of a new plane with a mock gateway of its own.
func serve(t *testing.T, version string, settings ...setting) *agent {
	t.Helper()
	return serveMock(t, mockserver.Run(t), version, settings...)
}

func serveMock(t *testing.T, gw *mockserver.Server, version string, settings ...setting) *agent {
	t.Helper()
	base, err := gw.Listen("127.0.0.1:0")
	require.NoError(t, err)
	cfg := testplane.Config{URL: base, Key: gateway.NewSecret(gw.Key()), Secrets: t.TempDir(), Version: "test"}
	for _, set := range settings {
		set(&cfg)
	}
	p, err := testplane.New(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, p.Close()) })
	return &agent{t: t, session: connect(t, p.Server(), version), mock: gw, seen: new([]string)}
}

// connect returns a session of a client in memory.
func connect(t *testing.T, s *mcp.Server, version string) *mcp.ClientSession {
	t.Helper()
	here, there := mcp.NewInMemoryTransports()
	server, err := s.Connect(t.Context(), there, nil)
	require.NoError(t, err)
	client := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), here, &mcp.ClientSessionOptions{ProtocolVersion: version})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, session.Close())
		_ = server.Wait()
	})
	return session
}

type object = map[string]any

// try calls a tool and returns its structured result, and whether nothing was done.
func (a *agent) try(name string, args any) (object, bool) {
	a.t.Helper()
	r, err := a.session.CallTool(context.WithoutCancel(a.t.Context()), &mcp.CallToolParams{Name: name, Arguments: args})
	require.NoError(a.t, err)
	text, ok := r.Content[0].(*mcp.TextContent)
	require.True(a.t, ok)
	structured, err := json.Marshal(r.StructuredContent)
	require.NoError(a.t, err)
	*a.seen = append(*a.seen, name+" "+text.Text, name+" "+string(structured))
	if r.StructuredContent == nil { // the SDK has rejected the arguments
		return object{"text": text.Text}, r.IsError
	}
	assert.JSONEq(a.t, string(structured), text.Text, "the text has the same values")
	out, ok := r.StructuredContent.(object)
	require.True(a.t, ok)
	assert.Equal(a.t, r.IsError, out["error"] != nil, "isError if nothing was done: %s", text.Text)
	return out, r.IsError
}

func (a *agent) do(name string, args any) object {
	a.t.Helper()
	out, failed := a.try(name, args)
	require.False(a.t, failed, "%s: %v", name, out)
	return out
}

// fails returns the error of a call with which nothing was done.
func (a *agent) fails(name string, args any) object {
	a.t.Helper()
	out, failed := a.try(name, args)
	require.True(a.t, failed, "%s: %v", name, out)
	e, ok := out["error"].(object)
	require.True(a.t, ok, out)
	return e
}

// at returns a member of nested objects and lists.
func at(v any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := v.(object)
			v = m[step]
		case int:
			list, _ := v.([]any)
			if step < 0 {
				step += len(list)
			}
			if step < 0 || step >= len(list) {
				return nil
			}
			v = list[step]
		}
	}
	return v
}

func str(v any) string {
	s, _ := v.(string)
	return s
}

// pix is the body of a create.
func pix(ref string) object {
	return object{
		"external_ref": ref, "amount": 1990, "method": "pix",
		"buyer":    object{"name": "Ana", "email": "ana@example.com", "document": object{"type": "CPF", "number": "52998224725"}},
		"products": []any{object{"name": "Book", "price": 1990}},
	}
}

func create(body object) object {
	return object{"method": "POST", "path": "/v2/transactions", "body": body}
}

// receiver verifies webhooks with a secret that a test may change.
type receiver struct {
	*httptest.Server

	mu       sync.Mutex
	secret   string
	accepted []string // bodies
	header   http.Header
	body     string
}

func receive(t *testing.T, secret string) *receiver {
	t.Helper()
	r := &receiver{secret: secret}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.header, r.body = req.Header.Clone(), string(body)
	v := webhook.Verifier{Keys: []webhook.SigningKey{{Key: gateway.NewSecret(r.secret)}}}
	if err := v.Verify(req.Header, body); err != nil {
		http.Error(w, "bad signature", http.StatusUnauthorized)
		return
	}
	r.accepted = append(r.accepted, string(body))
}

func (r *receiver) use(secret string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secret = strings.TrimSpace(secret)
}

func (r *receiver) last() (headers object, body string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	headers = object{}
	for name, values := range r.header {
		headers[name] = strings.Join(values, ",")
	}
	return headers, r.body
}
