package mockserver_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
)

// story makes calls whose results depend on everything in a snapshot, and
// returns the results.
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
	assert.JSONEq(t, string(saved), string(copied), "the restored state equals the saved one")
}

func TestRestoreRejectsDamagedSnapshots(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t, mockserver.WithSeed(3))
	_, err := gw.Client().Transactions.Create(t.Context(), order("a"))
	require.NoError(t, err)
	saved, err := gw.Snapshot()
	require.NoError(t, err)
	live := mockserver.Run(t, mockserver.WithDialect(mockserver.Live))
	production := mockserver.Run(t, mockserver.WithProduction())
	mixed := mockserver.Run(t, mockserver.WithProfile([]byte(`{"readings":{"repeated-transfer":"live"}}`)))
	require.ErrorIs(t, live.Restore(saved), mockserver.ErrSnapshot)
	require.ErrorContains(t, mixed.Restore(saved), `its dialect is "document", and this server's is "live in repeated-transfer"`)
	own, err := mixed.Snapshot()
	require.NoError(t, err)
	require.NoError(t, mixed.Restore(own))
	require.ErrorIs(t, gw.Restore(own), mockserver.ErrSnapshot)
	require.ErrorIs(t, production.Restore(saved), mockserver.ErrSnapshot)
	text := string(saved)
	for damaged, want := range map[string]string{
		"":                 "it is empty",
		"{}":               `it has no "format"`,
		"[1]":              `it has no "format"`,
		"shop":             "it is not JSON",
		text[:len(text)/2]: "it is truncated after",
		text[:len(text)-1]: "it is truncated after",
		text + "}":         "it is not JSON",
		replace(text, `"version":3`, `"version":2`):                           "it has version 2, and this release reads version 3",
		replace(text, `"IDs":"`, `"IDs":"AAAA`):                               "its checksum does not match",
		replace(text, `"Status":"pending"`, `"Status":"paid"`):                "its checksum does not match",
		replace(text, `"dialect":"document"`, `"dialect":"live"`):             `its dialect is "live"`,
		sealed(t, replace(text, `"Transactions":[`, `"Transactions":[null,`)): "it is damaged",
		sealed(t, replace(text, `"Records":{`, `"Records":3,"x":{`)):          "cannot unmarshal",
		sealed(t, replace(text, `"IDs":"`, `"IDs":"AAAA`)):                    "id source: damaged state",
	} {
		err := gw.Restore([]byte(damaged))
		require.ErrorIs(t, err, mockserver.ErrSnapshot, damaged)
		require.ErrorContains(t, err, want)
		now, err := gw.Snapshot()
		require.NoError(t, err)
		assert.Equal(t, text, string(now), "a rejected restore changes nothing")
	}
	require.NoError(t, gw.Restore([]byte("\uFEFF"+text)), "a byte order mark is skipped")
	require.ErrorContains(t, gw.Restore([]byte("\uFEFF")), "it is empty")
}

func replace(text, from, to string) string { return strings.Replace(text, from, to, 1) }

// sealed updates the checksum of an edited file.
func sealed(t *testing.T, file string) string {
	t.Helper()
	_, state, found := strings.Cut(file, `"state":`)
	require.True(t, found)
	sum := sha256.Sum256([]byte(strings.TrimSuffix(state, "}")))
	return regexp.MustCompile(`"sha256":"[0-9a-f]+"`).ReplaceAllLiteralString(file, `"sha256":"`+hex.EncodeToString(sum[:])+`"`)
}

// A snapshot restores the same server in another process from a file: state,
// clock, idempotency keys, timers and pending webhooks.
func TestASnapshotThroughAFileIsTheSameServer(t *testing.T) {
	t.Parallel()
	for _, dialect := range []mockserver.Dialect{mockserver.Document, mockserver.Live} {
		options := []mockserver.Option{mockserver.WithSeed(5), mockserver.WithDialect(dialect)}
		gw := mockserver.Run(t, options...)
		_, err := gw.Webhooks.AddEndpoint(mockserver.Endpoint{URL: "http://shop.test/hooks", Secret: gateway.NewSecret("whsec_test_1")})
		require.NoError(t, err)
		down := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
		gw.Webhooks.ServeHost("shop.test", down) // every delivery is tried again later
		client := gw.Client(gateway.WithIdempotencyKeys())
		_, err = client.Transactions.Create(t.Context(), order("a <b>&c"))
		require.NoError(t, err)
		_, err = client.Subscriptions.Create(t.Context(), subscriber(t, client))
		require.NoError(t, err)
		_, err = gw.Account("sk_test_other").Client().Transactions.Create(t.Context(), order("a"))
		require.NoError(t, err)
		require.NoError(t, gw.Clock.Advance(90*time.Minute))
		saved, err := gw.Snapshot()
		require.NoError(t, err)
		path := filepath.Join(t.TempDir(), "shop.json")
		var pretty bytes.Buffer // the file may be reformatted
		require.NoError(t, json.Indent(&pretty, saved, "", "  "))
		require.NoError(t, os.WriteFile(path, pretty.Bytes(), 0o600))

		other := mockserver.Run(t, options...)
		other.Webhooks.ServeHost("shop.test", down)
		file, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, other.Restore(file))
		copied, err := other.Snapshot()
		require.NoError(t, err)
		assert.Equal(t, string(saved), string(copied), "the same bytes")
		assert.Equal(t, gw.Clock.Timers(), other.Clock.Timers())
		require.NotEmpty(t, gw.Clock.Timers())
		assert.Equal(t, story(t, gw), story(t, other), "and the same behavior afterwards")
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
