package mockserver_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
)

// story does things whose outcome depends on all that a snapshot keeps, and
// tells what it saw.
func story(t *testing.T, gw *mockserver.Server) []string {
	t.Helper()
	client := gw.Client()
	var seen []string
	var response gateway.Response
	made, err := client.Transactions.Create(t.Context(), order("later"), gateway.ResponseInto(&response))
	require.NoError(t, err)
	seen = append(seen, made.ID, made.Buyer.ID, response.RequestID)
	require.NoError(t, gw.Clock.Advance(48*time.Hour))
	for tx, err := range client.Transactions.All(t.Context(), gateway.TransactionListParams{}) {
		require.NoError(t, err)
		seen = append(seen, tx.ID, string(tx.Status), tx.UpdatedAt.String())
	}
	for _, timer := range gw.Clock.Timers() {
		seen = append(seen, timer.Kind, timer.ID, timer.At.String())
	}
	for _, d := range gw.Webhooks.Deliveries() {
		seen = append(seen, d.EventID, d.Kind, d.State, string(d.Body))
	}
	return seen
}

func TestSnapshot(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t, mockserver.WithSeed(3))
	hook := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	gw.Webhooks.Send(hook) // every delivery is tried again later
	for _, ref := range []string{"a", "b", "c"} {
		_, err := gw.Client().Transactions.Create(t.Context(), order(ref))
		require.NoError(t, err)
	}
	require.NoError(t, gw.Clock.Advance(time.Hour))
	saved, err := gw.Snapshot()
	require.NoError(t, err)
	first := story(t, gw)

	require.NoError(t, gw.Restore(saved))
	assert.Equal(t, first, story(t, gw), "the same again")
	again, err := gw.Snapshot()
	require.NoError(t, err)
	assert.NotEqual(t, saved, again)

	other := mockserver.Run(t, mockserver.WithSeed(99))
	other.Webhooks.Send(hook)
	require.NoError(t, other.Restore(saved))
	copied, err := other.Snapshot()
	require.NoError(t, err)
	assert.JSONEq(t, string(saved), string(copied), "what is restored is what was saved")
}

func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t, mockserver.WithSeed(3))
	_, err := gw.Client().Transactions.Create(t.Context(), order("a"))
	require.NoError(t, err)
	saved, err := gw.Snapshot()
	require.NoError(t, err)
	live := mockserver.Run(t, mockserver.WithDialect(mockserver.Live))
	production := mockserver.Run(t, mockserver.WithEnvironment(mockserver.Production))
	require.ErrorIs(t, live.Restore(saved), mockserver.ErrSnapshot)
	require.ErrorIs(t, production.Restore(saved), mockserver.ErrSnapshot)
	for _, damaged := range []string{
		"", "{}", string(saved[:len(saved)/2]), strings.Replace(string(saved), `"Version":2`, `"Version":1`, 1),
		strings.Replace(string(saved), `"IDs":"`, `"IDs":"AAAA`, 1),
	} {
		err := gw.Restore([]byte(damaged))
		require.ErrorIs(t, err, mockserver.ErrSnapshot, damaged)
		now, err := gw.Snapshot()
		require.NoError(t, err)
		assert.Equal(t, string(saved), string(now), "a refused restore changes nothing")
	}
}

func TestRestoreGoesBackInTime(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	start := gw.Clock.Now()
	saved, err := gw.Snapshot()
	require.NoError(t, err)
	require.NoError(t, gw.Clock.Advance(time.Hour))
	made, err := gw.Client().Transactions.Create(t.Context(), order("a"))
	require.NoError(t, err)
	require.NoError(t, gw.Restore(saved))
	assert.Equal(t, start, gw.Clock.Now())
	assert.Empty(t, gw.Clock.Timers())
	_, err = gw.Client().Transactions.Get(t.Context(), made.ID)
	require.ErrorIs(t, err, gateway.ErrNotFound)
}
