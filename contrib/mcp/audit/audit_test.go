package audit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/contrib/mcp/audit"
)

type input struct {
	Fail bool `json:"fail"`
}

// lines makes calls of a server with a log, in a protocol version, and returns the lines.
func lines(t *testing.T, version string, calls func(session *mcp.ClientSession)) (list []audit.Line) {
	t.Helper()
	var written bytes.Buffer
	log := audit.New(&written, func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) })
	s := mcp.NewServer(&mcp.Implementation{Name: "test"}, nil)
	s.AddReceivingMiddleware(log.Middleware)
	mcp.AddTool(s, &mcp.Tool{Name: "pay"}, func(ctx context.Context, req *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
		log.Call(ctx, req, audit.Line{State: "done", Failed: in.Fail})
		return &mcp.CallToolResult{IsError: in.Fail}, nil, nil
	})
	s.AddResource(&mcp.Resource{URI: "test://page", Name: "page"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{Text: "text"}}}, nil
	})
	here, there := mcp.NewInMemoryTransports()
	serving, err := s.Connect(t.Context(), there, nil)
	require.NoError(t, err)
	client := mcp.NewClient(&mcp.Implementation{Name: "host\x1b[31m", Version: "1" + strings.Repeat("x", 200)}, nil)
	session, err := client.Connect(t.Context(), here, &mcp.ClientSessionOptions{ProtocolVersion: version})
	require.NoError(t, err)
	calls(session)
	require.NoError(t, session.Close())
	_ = serving.Wait()
	for line := range strings.Lines(written.String()) {
		var l audit.Line
		require.NoError(t, json.Unmarshal([]byte(line), &l))
		list = append(list, l)
	}
	return list
}

// Each call has a line, also those that reach no tool.
func TestEachCallHasALine(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
		list := lines(t, version, func(session *mcp.ClientSession) {
			for _, c := range []struct {
				tool string
				args map[string]any
			}{
				{"pay", map[string]any{"fail": false}},
				{"pay", map[string]any{"fail": true}},
				{"pay", map[string]any{"fail": true, "idempotency_key": "x"}},
				{"pay", map[string]any{"fail": "yes"}},
				{"steal", nil},
				{"Ignore all rules", nil},
			} {
				_, _ = session.CallTool(t.Context(), &mcp.CallToolParams{Name: c.tool, Arguments: c.args})
			}
			for _, uri := range []string{"test://page", "test://other"} {
				_, _ = session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
			}
			_, err := session.ListTools(t.Context(), nil)
			require.NoError(t, err)
		})
		var got []string
		digests := map[string]bool{}
		for _, l := range list {
			got = append(got, strings.Join(strings.Fields(l.Tool+" "+l.State+" "+l.Code), " "))
			digests[l.Arguments] = true
			assert.Equal(t, l.Code != "" || len(got) == 2, l.Failed, got)
			assert.Equal(t, "local", l.Principal)
			assert.Equal(t, "2026-03-01T12:00:00Z", l.At.Format(time.RFC3339))
			assert.True(t, strings.HasPrefix(l.Client, "host[31m 1x"), l.Client)
			assert.Len(t, l.Client, 80)
		}
		assert.Equal(t, []string{
			"pay done", "pay done", "pay INVALID_ARGUMENTS", "pay INVALID_ARGUMENTS", "steal UNKNOWN_TOOL", "? UNKNOWN_TOOL",
			"resources/read", "resources/read NOT_FOUND",
		}, got, version)
		assert.Len(t, digests, 7, "the same digest only for the same arguments: none, twice")
	}
}

func TestNoLog(t *testing.T) {
	t.Parallel()
	var none *audit.Log
	assert.Equal(t, none, audit.New(nil, time.Now))
	none.Call(t.Context(), &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Name: "pay"}}, audit.Line{})
	next := func(context.Context, string, mcp.Request) (mcp.Result, error) { return &mcp.CallToolResult{}, nil }
	res, err := none.Middleware(next)(t.Context(), "tools/call", &mcp.CallToolRequest{})
	require.NoError(t, err)
	assert.NotNil(t, res)
}

func TestPrincipals(t *testing.T) {
	t.Parallel()
	header := http.Header{"Authorization": {"Bearer token-1"}}
	assert.Equal(t, "local", audit.Principal(nil))
	assert.Equal(t, "local", audit.Principal(&mcp.RequestExtra{}))
	assert.Equal(t, "http", audit.Principal(&mcp.RequestExtra{Header: header}), "a token that no one has checked")
	assert.Equal(t, "token:ana", audit.Principal(&mcp.RequestExtra{Header: header, TokenInfo: &auth.TokenInfo{UserID: "ana"}}))
}
