package merchant_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/merchant"
)

// probes serves what an orchestrator asks.
func probes[TX any](mux *http.ServeMux, m *merchant.Merchant[TX]) {
	mux.HandleFunc("GET /livez", func(http.ResponseWriter, *http.Request) {}) // asks nothing: a restart repairs no database
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := m.Ready(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
}

// serve runs the shop until ctx ends, and then ends what is in progress.
func serve[TX any](ctx context.Context, server *http.Server, listener net.Listener, m *merchant.Merchant[TX]) error {
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ended, failed := make(chan error, 1), make(chan error, 1)
	go func() { ended <- m.Run(running) }()
	go func() { failed <- server.Serve(listener) }()
	var err error
	select {
	case err = <-failed:
	case err = <-ended: // the database is not set up
		ended <- nil
	case <-ctx.Done():
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	err = errors.Join(err, server.Shutdown(closing)) // first: Run stores the last deliveries
	stop()
	return errors.Join(err, <-ended)
}

// migrate is what a job runs before a rollout, as the role that owns the schema.
func migrate[TX any](ctx context.Context, owner database.Driver[TX], cfg merchant.Config) error {
	cfg.Location.Schema = database.Create
	_, err := merchant.Open(ctx, owner, cfg, merchant.Callbacks[TX]{}) // without Run it sends nothing and calls nothing
	return err
}

// get returns the status and the body of a page, 0 if nothing listens.
func get(ctx context.Context, url string) (status int, body string) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err.Error()
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	b, err := io.ReadAll(response.Body)
	return response.StatusCode, fmt.Sprint(string(b), err)
}

func TestAShopIsProbedAndEnds(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.open()
		mux := http.NewServeMux()
		probes(mux, w.m)
		listener, err := new(net.ListenConfig).Listen(w.Context(), "tcp", "127.0.0.1:0")
		require.NoError(w, err)
		url := "http://" + listener.Addr().String()
		ctx, cancel := context.WithCancel(w.Context())
		ended := make(chan error, 1)
		go func() { ended <- serve(ctx, &http.Server{Handler: mux, ReadHeaderTimeout: time.Second}, listener, w.m) }()
		w.eventually("the shop is ready", func() bool { status, _ := get(w.Context(), url+"/readyz"); return status == http.StatusOK })
		w.exec(`ALTER TABLE gateway_notes RENAME TO former`)
		status, body := get(w.Context(), url+"/readyz")
		assert.Equal(w, http.StatusServiceUnavailable, status)
		assert.Contains(w, body, "gateway_notes")
		status, _ = get(w.Context(), url+"/livez")
		assert.Equal(w, http.StatusOK, status, "a restart would not help")
		cancel()
		require.NoError(w, <-ended)
		require.Error(w, w.m.Ready(w.Context()))
		status, _ = get(w.Context(), url+"/livez")
		assert.Zero(w, status)
	})
}
