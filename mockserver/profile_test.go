package mockserver_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/gatewayprobe"
	"github.com/gateway-go/gateway/mockserver"
)

// The console shows a resource as this server returns it, also with a mixture of the
// two dialects.
func TestTheConsoleShowsAMixtureOfTheDialects(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t, mockserver.WithProfile([]byte(`{"readings":{"method-optional":"live"}}`)))
	tx, err := gw.Client().Transactions.Create(t.Context(), order("a"))
	require.NoError(t, err)
	b := browser{t, gw}
	page := b.get(consoleAt + "/transactions/" + tx.ID)
	for _, title := range []string{"this server", "document dialect", "live dialect", "mixed dialect"} {
		assert.Contains(t, page.body, title)
	}
	plain := browser{t, mockserver.Run(t)}.get("/")
	assert.NotContains(t, plain.body, "mixed dialect")
}

// Options after a profile change it.
func TestAnOptionAfterAProfileReplacesItsSetting(t *testing.T) {
	t.Parallel()
	live, err := json.Marshal(gatewayprobe.LiveProfile())
	require.NoError(t, err)
	gw := mockserver.Run(t, mockserver.WithProfile(live), mockserver.WithDialect(mockserver.Document))
	snapshot, err := gw.Snapshot()
	require.NoError(t, err)
	require.NoError(t, mockserver.Run(t).Restore(snapshot))
}
