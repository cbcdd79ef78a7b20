package mockserver_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
)

// hang is a receiver that never responds.
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// A receiver of one account that hangs delays no call of another account.
func TestAHangingReceiverDelaysNoOtherAccount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gw := mockserver.Run(t)
		const busy = "sk_test_busy"
		other := plane{t: t, gw: gw, key: "sk_test_other"}
		_, err := gw.Account(busy).Webhooks.AddEndpoint(mockserver.Endpoint{Handler: http.HandlerFunc(hang)})
		require.NoError(t, err)
		_, err = gw.Account(other.key).Webhooks.AddEndpoint(mockserver.Endpoint{
			Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
		})
		require.NoError(t, err)
		for range 100 {
			_, err := gw.Account(busy).Webhooks.SendSample("transaction.paid")
			require.NoError(t, err)
		}
		began := time.Now()
		require.NoError(t, gw.Account(other.key).Wait(t.Context()))
		for _, call := range []string{"wait", "sample", "hold", "sample", "{id}/redeliver", "release", "wait?status=delivered"} {
			body := ""
			if call == "sample" {
				body = `{"kind":"transaction.paid"}`
			}
			if list := gw.Account(other.key).Webhooks.Deliveries(); len(list) > 0 {
				call = strings.ReplaceAll(call, "{id}", list[0].ID)
			}
			status, v := other.call(http.MethodPost, "/deliveries/"+call, body)
			require.Equal(t, http.StatusOK, status, "%s: %v", call, v)
		}
		assert.Len(t, do[[]any](other, http.MethodGet, "/deliveries?status=delivered", ""), 2)
		assert.Zero(t, time.Since(began))
	})
}

// A call that waits for a receiver that hangs gives up.
func TestWaitingForAHangingReceiverEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gw := mockserver.Run(t)
		p := plane{t: t, gw: gw}
		_, err := gw.Webhooks.AddEndpoint(mockserver.Endpoint{Handler: http.HandlerFunc(hang)})
		require.NoError(t, err)
		_, err = gw.Account(gw.Key()).Webhooks.SendSample("transaction.paid")
		require.NoError(t, err)
		began := time.Now()
		status, v := p.call(http.MethodPost, "/deliveries/wait?timeout=300ms", "")
		assert.Equal(t, http.StatusConflict, status)
		assert.Equal(t, "STILL_DELIVERING", v["code"])
		assert.Contains(t, v["detail"], "after 300ms")
		assert.Equal(t, 300*time.Millisecond, time.Since(began))
		for _, timeout := range []string{"soon", "-1s", "2h"} {
			status, v = p.call(http.MethodPost, "/deliveries/wait?timeout="+timeout, "")
			assert.Equal(t, http.StatusBadRequest, status, timeout)
			assert.Contains(t, v["detail"], "timeout must be", timeout)
		}

		began = time.Now()
		snapshot, err := gw.Snapshot()
		require.NoError(t, err)
		assert.Equal(t, 5*time.Second, time.Since(began))
		require.NoError(t, gw.Restore(snapshot))
		_, err = gw.Seed(strings.NewReader(`{"customers":[{"name":"Ana","email":"ana@example.com"}]}`))
		require.NoError(t, err)
		assert.Less(t, time.Since(began), 20*time.Second)
		list := gw.Webhooks.Deliveries()
		require.Len(t, list, 1)
		assert.Equal(t, mockserver.DeliveryPending, list[0].State, "it is neither lost nor done")
		require.NoError(t, gw.Wait(t.Context()))
		assert.Len(t, gw.Webhooks.Deliveries()[0].Attempts, 1)
	})
}

// A request that waits in a fault is not executed after the state that it was sent to:
// it would be in the next test's.
func TestRequestsInAFaultEndWithTheirState(t *testing.T) {
	t.Parallel()
	waiting := map[string]mockserver.Fault{
		"latency":          mockserver.Latency(time.Hour),
		"status":           mockserver.Status(503).Latency(time.Hour),
		"lose response":    mockserver.LoseResponse().Latency(time.Hour),
		"reset before":     mockserver.ResetBefore().Latency(time.Hour),
		"hang":             mockserver.HangUntilTimeout(),
		"truncate applied": mockserver.Truncate().Latency(time.Hour),
	}
	ends := map[string]func(t *testing.T, gw *mockserver.Server, snapshot []byte){
		"reset": func(t *testing.T, gw *mockserver.Server, _ []byte) {
			t.Helper()
			do[any](plane{t: t, gw: gw}, http.MethodPost, "/reset", "")
		},
		"restore": func(t *testing.T, gw *mockserver.Server, snapshot []byte) {
			t.Helper()
			require.NoError(t, gw.Restore(snapshot))
		},
		"close": func(t *testing.T, gw *mockserver.Server, _ []byte) {
			t.Helper()
			require.NoError(t, gw.Close())
		},
	}
	for name, fault := range waiting {
		for how, end := range ends {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					gw := mockserver.Run(t)
					snapshot, err := gw.Snapshot()
					require.NoError(t, err)
					require.NoError(t, gw.Faults.Add(fault))
					clients := map[string]*gateway.Client{
						"it":    gw.Client(gateway.WithMaxAttempts(1), gateway.WithAttemptTimeout(2*time.Hour)),
						"other": gw.Account("sk_test_other").Client(gateway.WithMaxAttempts(1), gateway.WithAttemptTimeout(2*time.Hour)),
					}
					ended := make(chan string, len(clients))
					for account, client := range clients {
						go func() {
							_, err := client.Transactions.Create(t.Context(), order("o-1"))
							assert.ErrorIs(t, err, gateway.ErrOutcomeUnknown)
							ended <- account
						}()
					}
					synctest.Wait()
					began := time.Now()
					end(t, gw, snapshot)
					synctest.Wait()
					assert.Zero(t, time.Since(began))
					assert.Len(t, ended, map[bool]int{true: 1, false: 2}[how == "reset"], "a reset ends those of its account")
					response := plane{t: t, gw: gw}.raw(http.MethodGet, "/metrics", "") //nolint:bodyclose // closed by its Cleanup
					metrics, err := io.ReadAll(response.Body)
					require.NoError(t, err)
					assert.Contains(t, string(metrics), `mockgateway_records{kind="transaction"} 0`, "not executed")
					require.NoError(t, gw.Close()) // ends the other account's
					synctest.Wait()
					assert.Len(t, ended, 2)
				})
			})
		}
	}
}
