package mockserver_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/mockserver"
)

// An advance behind a receiver that hangs stops the clock at the timeout, and continues
// with the next call.
func TestAnAdvanceBehindAHangingReceiverEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gw := mockserver.Run(t)
		_, err := gw.Webhooks.AddEndpoint(mockserver.Endpoint{Handler: http.HandlerFunc(hang)})
		require.NoError(t, err)
		for range 2 { // about one resource, so one after the other
			_, err := gw.Webhooks.SendSample("transaction.paid")
			require.NoError(t, err)
		}
		p, start := plane{t: t, gw: gw}, gw.Clock.Now()
		for path, want := range map[string]time.Duration{"?timeout=1s": time.Second, "": 30 * time.Second} {
			began := time.Now()
			status, problem := p.call(http.MethodPost, "/clock/advance"+path, `{"by":"2d"}`)
			require.Equal(t, http.StatusConflict, status, problem)
			assert.Equal(t, "STILL_DELIVERING", problem["code"])
			assert.Equal(t, want, time.Since(began), path)
		}
		status, _ := p.call(http.MethodPost, "/clock/advance?timeout=never", `{"by":"2d"}`)
		assert.Equal(t, http.StatusBadRequest, status)
		do[any](p, http.MethodPost, "/clock/advance?timeout=1h", `{"by":"2d"}`)
		assert.False(t, gw.Clock.Now().Before(start.Add(2*24*time.Hour)))
	})
}

// The timeout and the times of retries are settings.
func TestAttemptsAsConfigured(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for name, retries := range map[string][]time.Duration{"two": {time.Minute, 48 * time.Hour}, "none": {}} {
			gw := mockserver.Run(t, mockserver.WithWebhookTimeout(time.Second), mockserver.WithWebhookRetries(retries...))
			_, err := gw.Webhooks.AddEndpoint(mockserver.Endpoint{Handler: http.HandlerFunc(hang)})
			require.NoError(t, err)
			_, err = gw.Webhooks.SendSample("transaction.paid")
			require.NoError(t, err)
			start, began := gw.Clock.Now(), time.Now()
			snapshot, err := gw.Snapshot() // settings belong to the server
			require.NoError(t, err)
			require.NoError(t, gw.Restore(snapshot))
			require.NoError(t, gw.Clock.Advance(30*24*time.Hour))
			d := gw.Webhooks.Deliveries()[0]
			assert.Equal(t, mockserver.DeliveryFailed, d.State, name)
			require.Len(t, d.Attempts, 1+len(retries), name)
			for i, at := range retries {
				assert.Equal(t, at, d.Attempts[i+1].At.Sub(start), name)
			}
			assert.Equal(t, "no response within 1s", d.Attempts[0].Error)
			assert.Equal(t, time.Duration(1+len(retries))*time.Second, time.Since(began), name)
		}
	})
}

// An endpoint is paused after failures in a row, and a success resets their count.
func TestAnEndpointIsPausedAfterFailures(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t, mockserver.WithEndpointPause(3), mockserver.WithWebhookRetries())
	fails := true
	endpoint, err := gw.Webhooks.AddEndpoint(mockserver.Endpoint{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if fails {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})})
	require.NoError(t, err)
	send := func(failing bool) (paused bool) {
		fails = failing
		_, err := gw.Webhooks.SendSample("transaction.paid")
		require.NoError(t, err)
		require.NoError(t, gw.Wait(t.Context()))
		return gw.Webhooks.Endpoints()[0].Paused
	}
	for i, failing := range []bool{true, true, false, true, true} {
		assert.False(t, send(failing), i)
	}
	assert.True(t, send(true), "three in a row")
	sent := len(gw.Webhooks.Deliveries()[0].Attempts)
	require.Equal(t, 1, sent)
	send(false)
	list := gw.Webhooks.Deliveries()
	assert.Equal(t, mockserver.DeliveryNoEndpoint, list[len(list)-1].State, "nothing is sent to it")
	require.NoError(t, gw.Webhooks.ResumeEndpoint(endpoint.ID))
	assert.False(t, send(true), "it begins to count again")
	assert.False(t, send(true))
	assert.True(t, send(true))
}

// A receiver with a self-signed certificate gets webhooks only if its certificate is
// not checked.
func TestReceiversWithAnyCertificate(t *testing.T) {
	t.Parallel()
	srv := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(srv.Close)
	for _, accepted := range []bool{false, true} {
		opts := []mockserver.Option{mockserver.WithWebhookRetries()}
		if accepted {
			opts = append(opts, mockserver.WithAnyCertificate())
		}
		gw := mockserver.Run(t, opts...)
		_, err := gw.Webhooks.AddEndpoint(mockserver.Endpoint{URL: srv.URL})
		require.NoError(t, err)
		_, err = gw.Webhooks.SendSample("transaction.paid")
		require.NoError(t, err)
		require.NoError(t, gw.Wait(t.Context()))
		d := gw.Webhooks.Deliveries()[0]
		if accepted {
			assert.Equal(t, mockserver.DeliveryDelivered, d.State, d.Attempts)
		} else {
			assert.Contains(t, d.Attempts[0].Error, "certificate")
		}
		require.NoError(t, gw.Close())
	}
}
