package mockserver_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
)

// kept returns the state that a restart must restore: a whole snapshot except
// timers that no longer have an effect.
func kept(t *testing.T, gw *mockserver.Server) string {
	t.Helper()
	b, err := gw.Snapshot()
	require.NoError(t, err)
	var file struct {
		State struct {
			Store    object `json:"Store"`
			Webhooks object `json:"Webhooks"`
		} `json:"state"`
	}
	require.NoError(t, json.Unmarshal(b, &file))
	b, err = json.MarshalIndent(file.State, "", " ")
	require.NoError(t, err)
	return string(b) + fmt.Sprintf("%+v", gw.Clock.Timers())
}

// The complete state is the same after a restart, both from the log and from a
// compacted file: every member of every resource, and the body of every
// webhook.
func TestARestartBringsBackEveryMember(t *testing.T) {
	t.Parallel()
	hook := &flaky{seen: map[string]bool{}}
	receiver := httptest.NewServer(hook)
	t.Cleanup(receiver.Close)
	path := filepath.Join(t.TempDir(), "data")
	seed := mockserver.WithSeed(5)
	busyDays(t, mockserver.Run(t, mockserver.WithDataFile(path), seed), receiver.URL)
	gw := mockserver.Run(t, mockserver.WithDataFile(path), seed)
	_, err := gw.Seed(strings.NewReader(`{"links":[{"as":"mug","title":"Mug","currency":"BRL","amount":4990}]}`))
	require.NoError(t, err)
	want := kept(t, gw)

	gw = reopen(t, gw, path, seed)
	assert.Equal(t, want, kept(t, gw), "of the log")
	snap, err := gw.Snapshot()
	require.NoError(t, err)
	require.NoError(t, gw.Restore(snap), "which compacts the file")
	gw = reopen(t, gw, path, seed)
	assert.Equal(t, want, kept(t, gw), "of a compacted file")
	require.NoError(t, gw.Clock.Advance(40*24*time.Hour))
	assertConsistent(t, gw, "40 days later")
}

func sizeOf(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info.Size()
}

// A file that outgrows its snapshot is compacted while requests continue. No
// resource, webhook or timer is lost or duplicated.
func TestAFileIsCompactedWhileItIsUsed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	gw := reopen(t, nil, path, mockserver.WithAutoPay(time.Minute))
	made := map[string]string{} // ids by account and reference
	var mu sync.Mutex
	var work sync.WaitGroup
	for account := range 4 {
		work.Go(func() {
			key := fmt.Sprintf("sk_test_%d", account%3)
			client := gw.Account(key).Client()
			for i := range 120 {
				params := large(4000)
				params.ExternalRef = fmt.Sprintf("%d-%d", account, i)
				tx, err := client.Transactions.Create(t.Context(), params)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				made[key+" "+params.ExternalRef] = tx.ID
				mu.Unlock()
			}
		})
	}
	for range 20 { // timers fire in the meantime
		require.NoError(t, gw.Clock.Advance(10*time.Second))
	}
	work.Wait()
	require.NoError(t, gw.Clock.Advance(2*time.Minute))
	for compacted, amount := false, 0; !compacted; amount++ { // each change supersedes a version
		require.Less(t, amount, 900, "the file only grew")
		for name, id := range made {
			before := sizeOf(t, path)
			client := gw.Account(name[:len("sk_test_0")]).Client()
			_, err := client.Transactions.Refund(t.Context(), id, gateway.RefundParams{Amount: 1})
			require.NoError(t, err)
			compacted = compacted || sizeOf(t, path) < before
		}
	}
	want := kept(t, gw)
	gw = reopen(t, gw, path, mockserver.WithAutoPay(time.Minute))
	assert.Equal(t, want, kept(t, gw))
	for _, key := range []string{"sk_test_0", "sk_test_1", "sk_test_2"} {
		all, err := gateway.Collect(gw.Account(key).Client().Transactions.All(t.Context(), gateway.TransactionListParams{}), 0)
		require.NoError(t, err)
		for _, tx := range all {
			assert.Equal(t, made[key+" "+tx.ExternalRef], tx.ID)
			assert.Equal(t, gateway.TransactionPartiallyRefunded, tx.Status)
			delete(made, key+" "+tx.ExternalRef)
		}
	}
	assert.Empty(t, made, "what was acknowledged and is not there")
}
