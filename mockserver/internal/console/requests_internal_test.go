package console

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/gateway-go/gateway/mockserver/internal/journal"
)

// The list of requests says why one was rejected, in every form of an error.
func TestCodeOf(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]journal.Entry{
		"VALIDATION_ERROR": {Status: 400, Response: `{"status":400,"code":"VALIDATION_ERROR"}`},
		"MOCK_FAULT":       {Status: 503, Response: `{"error":"MOCK_FAULT","status":503}`},
	} {
		assert.Equal(t, want, codeOf(e))
	}
	for _, none := range []journal.Entry{
		{Status: 201, Response: `{"data":{},"code":"X"}`}, {Status: 502, Response: "<html>"}, {Status: 500}, {},
	} {
		assert.Empty(t, codeOf(none))
	}
}
