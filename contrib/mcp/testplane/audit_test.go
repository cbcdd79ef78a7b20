package testplane_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/contrib/mcp/audit"
	"github.com/gateway-go/gateway/contrib/mcp/testplane"
)

// The log has each call with the arguments that can be nothing but a name, an id or a
// number, and why nothing was done.
func TestTheAuditLog(t *testing.T) {
	t.Parallel()
	for _, version := range versions() {
		var log bytes.Buffer
		a := serve(t, version, func(c *testplane.Config) { c.Audit = &log })
		tx := str(at(a.do("mock_call", create(pix("order-1"))), "response", "data", "id"))
		a.do("mock_act", object{"kind": "transactions", "id": tx, "action": "pay"})
		a.fails("mock_act", object{"kind": "transactions", "id": tx, "action": "expire"})
		a.fails("mock_call", object{"method": "GET", "path": "/v2/transactions/" + instruction})
		a.fails("story", object{"id": "52998224725"})
		a.fails("mock_endpoint", object{"url": "http://127.0.0.1:1/" + planted, "secret_env": "SECRET"})
		a.try("mock_call", object{"method": "GET", "path": "/v2/balance", "reference": "x"})
		_, err := a.session.ReadResource(t.Context(), readParams("gateway://docs/errors"))
		require.NoError(t, err)

		var lines []audit.Line
		for text := range strings.Lines(log.String()) {
			var l audit.Line
			require.NoError(t, json.Unmarshal([]byte(text), &l))
			assert.Equal(t, "local", l.Principal)
			assert.Equal(t, "host 1", l.Client)
			assert.Len(t, l.Arguments, 16)
			assert.Equal(t, l.Code != "", l.Failed)
			lines = append(lines, l)
		}
		require.Len(t, lines, 8, log.String())
		for n, want := range []struct {
			tool, code string
			named      map[string]any
		}{
			{"mock_call", "", object{"method": "POST", "path": "/v2/transactions"}},
			{"mock_act", "", object{"kind": "transactions", "id": tx, "action": "pay"}},
			{"mock_act", "INVALID_STATE", object{"kind": "transactions", "id": tx, "action": "expire"}},
			{"mock_call", audit.InvalidArguments, object{"method": "GET"}},
			{"story", "NOT_FOUND", nil},
			{"mock_endpoint", audit.InvalidArguments, nil},
			{"mock_call", audit.InvalidArguments, nil},
			{audit.Reading, "", nil},
		} {
			assert.Equal(t, want.tool, lines[n].Tool)
			assert.Equal(t, want.code, lines[n].Code)
			assert.Equal(t, want.named, lines[n].Named)
		}
	}
}
