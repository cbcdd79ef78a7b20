package mockserver_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/mockserver/internal/admin"
)

// hanging registers a receiver of webhooks that hangs until the test ends, and creates a
// transaction of which it is told.
func hanging(t *testing.T, gw *mockserver.Server, key string) (id string) {
	t.Helper()
	until := make(chan struct{})
	called := make(chan struct{}, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		select {
		case called <- struct{}{}:
		default:
		}
		<-until
	}))
	t.Cleanup(receiver.Close)
	t.Cleanup(func() { close(until) })
	p := plane{t: t, gw: gw, key: key}
	do[object](p, http.MethodPost, "/endpoints", `{"url":"`+receiver.URL+`"}`)
	tx, err := gw.Account(key).Client().Transactions.Create(t.Context(), order("hanging"))
	require.NoError(t, err)
	<-called
	return tx.ID
}

// wholeServer lists the calls of the control plane that docs/mockgateway.md describes as
// those of the whole server. Every other call acts on the account of its key alone.
var wholeServer = []string{ //nolint:gochecknoglobals // never changes
	"POST /__mock/clock/advance", "POST /__mock/down", "POST /__mock/up",
	"PUT /__mock/snapshot", "POST /__mock/snapshots", "POST /__mock/snapshots/{id}/restore", "DELETE /__mock/snapshots/{id}",
}

// Whatever a call of the control plane does for one account, another account loses no
// write that was acknowledged meanwhile, keeps its endpoints, faults, deliveries and
// journal, and its slow receivers delay no one.
func TestAControlOfOneAccountLeavesTheOthersAlone(t *testing.T) {
	t.Parallel()
	const mine, other = "sk_test_mine", "sk_test_other"
	gw := mockserver.Run(t)
	theirs := plane{t: t, gw: gw, key: other}
	kept := hanging(t, gw, other)
	do[object](theirs, http.MethodPost, "/faults", `{"fault":"status=503","on":"customers.list"}`)
	do[object](theirs, http.MethodPost, "/seed", `{"customers":[{"as":"ana","name":"Their Ana","email":"ana@shop.test"}]}`)
	do[object](theirs, http.MethodPost, "/deliveries/hold", "")

	client := gw.Account(other).Client()
	var acknowledged []string
	write := func() {
		for range 5 {
			tx, err := client.Transactions.Create(t.Context(), order(fmt.Sprintf("other-%d", len(acknowledged))))
			if assert.NoError(t, err) {
				acknowledged = append(acknowledged, tx.ID)
			}
		}
	}

	p := plane{t: t, gw: gw, key: mine}
	for _, shape := range admin.Shapes() {
		name := shape.Method + " " + shape.Path
		if shape.Method == http.MethodGet || slices.Contains(wholeServer, name) {
			continue
		}
		path := strings.TrimPrefix(shape.Path, "/__mock")
		body := isolationBodies[path]
		switch {
		case strings.HasPrefix(path, "/endpoints/"):
			v := do[object](p, http.MethodPost, "/endpoints", `{"url":"http://127.0.0.1:1/"}`)
			path = strings.Replace(path, "{id}", fmt.Sprint(v["id"]), 1)
		case strings.HasPrefix(path, "/faults/"):
			v := do[object](p, http.MethodPost, "/faults", `{"fault":"status=503","on":"customers.list"}`)
			path = strings.Replace(path, "{id}", fmt.Sprint(v["id"]), 1)
		case strings.HasSuffix(path, "/wait"):
			path += "?timeout=1ms"
		}
		path = strings.Replace(path, "{id}", kept, 1) // of the other account: it must not be found
		var writer sync.WaitGroup
		writer.Go(write)
		began := time.Now()
		status, v := p.call(shape.Method, path, body)
		assert.Less(t, time.Since(began), 3*time.Second, "%s waits for another account's receiver", name)
		writer.Wait()
		if strings.Contains(path, kept) {
			assert.Contains(t, []int{http.StatusNotFound, http.StatusBadRequest}, status, "%s: %v", name, v)
		} else {
			assert.Contains(t, []int{http.StatusOK, http.StatusConflict}, status, "%s: %v", name, v)
		}
	}
	for _, id := range append(acknowledged, kept) {
		tx, err := client.Transactions.Get(t.Context(), id)
		require.NoError(t, err, "an acknowledged write is lost")
		assert.Equal(t, gateway.TransactionPending, tx.Status)
	}
	assert.Len(t, do[[]any](theirs, http.MethodGet, "/endpoints", ""), 1)
	assert.Len(t, do[[]any](theirs, http.MethodGet, "/faults", ""), 1)
	assert.Len(t, do[[]any](theirs, http.MethodGet, "/deliveries?kind=transaction.created&status=held", ""), len(acknowledged))
	assert.Len(t, do[object](theirs, http.MethodGet, "/seed", ""), 1)
}

// isolationBodies has the bodies of calls that need one.
var isolationBodies = map[string]string{ //nolint:gochecknoglobals // never changes
	"/seed":                         `{"customers":[{"as":"ana","name":"Ana","email":"ana@shop.test"}]}`,
	"/key/replace":                  `{"key":"sk_test_mine_2"}`,
	"/endpoints":                    `{"url":"http://127.0.0.1:1/"}`,
	"/endpoints/{id}/rotate":        `{"secret":"whsec_test_12345"}`,
	"/faults":                       `{"fault":"status=503","on":"customers.list"}`,
	"/deliveries/diagnose":          `{"body":"{}","headers":{"X-Gateway-Timestamp":"1","X-Gateway-Signature":"sha256=00"}}`,
	"/deliveries/sample":            `{"kind":"transaction.paid"}`,
	"/transactions/{id}/settle-for": `{"amount":1}`,
	"/legacy/payments/{id}/status":  `{"status":"PAID"}`,
}

// A seed file of one account is applied while another one writes, with a data file too.
func TestSeedingLosesNoWriteOfAnotherAccount(t *testing.T) {
	t.Parallel()
	for _, file := range []bool{false, true} {
		data := filepath.Join(t.TempDir(), "data")
		open := func() *mockserver.Server {
			var options []mockserver.Option
			if file {
				options = append(options, mockserver.WithDataFile(data))
			}
			gw, err := mockserver.New(options...)
			require.NoError(t, err)
			t.Cleanup(func() { _ = gw.Close() })
			return gw
		}
		gw := open()
		sample, err := os.ReadFile(sampleSeed)
		require.NoError(t, err)
		text := strings.Replace(string(sample), "{", `{"webhooks": true,`, 1)
		var seeding sync.WaitGroup
		var ids map[string]string
		seeding.Go(func() { ids, err = gw.Seed(strings.NewReader(text)) })
		client := gw.Account("sk_test_other").Client()
		written := map[string]bool{}
		for i := range 200 {
			tx, err := client.Transactions.Create(t.Context(), order(fmt.Sprintf("other-%d", i)))
			require.NoError(t, err)
			written[tx.ID] = true
		}
		seeding.Wait()
		require.NoError(t, err)
		timers, deliveries := gw.Clock.Timers(), gw.Webhooks.Deliveries()
		if file {
			require.NoError(t, gw.Close())
			gw = open()
			client = gw.Account("sk_test_other").Client()
			assert.ElementsMatch(t, timers, gw.Clock.Timers())
			assert.Len(t, gw.Webhooks.Deliveries(), len(deliveries))
		}
		list, err := client.Transactions.List(t.Context(), gateway.TransactionListParams{Limit: 1})
		require.NoError(t, err)
		assert.Equal(t, 200, list.Total)
		tx, err := gw.Client().Transactions.Get(t.Context(), ids["returned"])
		require.NoError(t, err)
		assert.EqualValues(t, 4990, tx.RefundedAmount)
		sub, err := gw.Client().Subscriptions.Get(t.Context(), ids["member"])
		require.NoError(t, err)
		assert.Len(t, sub.Transactions, 4)
		require.NoError(t, gw.Clock.Advance(32*24*time.Hour))
		sub, err = gw.Client().Subscriptions.Get(t.Context(), ids["member"])
		require.NoError(t, err)
		assert.Len(t, sub.Transactions, 5, "its renewal is charged once")
	}
}

// A seed file that takes its own account by surprise changes nothing, and one for an
// account with a slow receiver does not wait.
func TestSeedingDoesNotWaitForReceivers(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	hanging(t, gw, "sk_test_other")
	hanging(t, gw, gw.Key())
	began := time.Now()
	_, err := gw.Seed(strings.NewReader(`{"customers":[{"as":"ana","name":"Ana","email":"ana@shop.test"}]}`))
	require.NoError(t, err)
	assert.Less(t, time.Since(began), 3*time.Second)
}
