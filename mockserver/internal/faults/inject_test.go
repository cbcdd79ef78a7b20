package faults_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/mockserver/internal/faults"
	"github.com/gateway-go/gateway/mockserver/internal/memory"
)

const created = `{"success":true,"data":{"id":"1","status":"pending","metadata":{"k":"v"},"list":[{"status":"paid"},"status"]}}`

// gateway is a handler that creates resources and counts them.
type gateway struct {
	created atomic.Int64
	stale   atomic.Bool
}

func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.stale.Store(faults.Stale(r.Context()))
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Request-Id", "req_1")
	if g.created.Load() > 0 {
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, `{"code":"DUPLICATE_EXTERNAL_REF"}`)
		return
	}
	g.created.Add(1)
	if c, ok := w.(faults.ChangeNoter); ok {
		c.NoteChange()
	}
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, created)
}

func injector(g *gateway) http.Handler {
	return &faults.Injector{
		Set:       &faults.Set{},
		Next:      g,
		Operation: func(*http.Request) string { return "transactions.create" },
		Account:   func(*http.Request) string { return "" },
	}
}

type result struct {
	status int
	header http.Header
	body   string
	err    error // of the request or of reading its body
}

func send(ctx context.Context, client *http.Client, url, fault string) result {
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v2/transactions", strings.NewReader(`{"amount":1}`))
	req.Header.Set("X-Request-Id", "req_caller")
	if fault != "" {
		req.Header.Set(faults.Header, fault)
	}
	resp, err := client.Do(req)
	if err != nil {
		return result{err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return result{resp.StatusCode, resp.Header, string(body), err}
}

// TestFaultsInMemoryAndOverASocket runs each fault with a plain client, in memory and
// over a real socket.
func TestFaultsInMemoryAndOverASocket(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		status  int
		body    string // contained
		err     error
		created int64
	}{
		"":                          {status: 201, body: created, created: 1},
		"status=503; retry-after=2": {status: 503, body: `"title":"Service Unavailable"`},
		"status=500; body=coded":    {status: 500, body: `{"error":"MOCK_FAULT","message":`},
		"status=422; body=titled; code=PAYMENT_BLOCKED": {status: 422, body: `"title":"PAYMENT_BLOCKED","status":422`},
		"status=409; body=coded; code=NO_FUNDS":         {status: 409, body: `{"error":"NO_FUNDS","message":`},
		"status=409; code=NO_FUNDS":                     {status: 409, body: `"code":"NO_FUNDS"`},
		"status=500; body=html":                         {status: 500, body: "<h1>500 Internal Server Error</h1>"},
		"status=500; body=empty":                        {status: 500},
		"status=500; applied":                           {status: 500, body: "MOCK_FAULT", created: 1},
		"reset-before":                                  {err: syscall.ECONNRESET},
		"lose-response":                                 {err: syscall.ECONNRESET, created: 1},
		"truncate":                                      {status: 201, body: created[:len(created)/2], err: io.ErrUnexpectedEOF, created: 1},
		"empty-body":                                    {status: 201, created: 1},
		"html-page":                                     {status: 502, body: "<!DOCTYPE html>"},
		"html-page; status=504; applied":                {status: 504, body: "<!DOCTYPE html>", created: 1},
		"bad-json":                                      {status: 201, body: created[:len(created)/2], created: 1},
		"unknown-enum":                                  {status: 201, body: `"list":[{"status":"mock_unknown_status"},"status"]`, created: 1},
		"extra-field":                                   {status: 201, body: `{"mock_extra_field":"a member that no client expects","success":true,"data":{"mock_extra_field"`, created: 1},
		"latency=1ms":                                   {status: 201, body: created, created: 1},
		"drop-webhook":                                  {status: 400, body: "into webhooks"},
		"explode":                                       {status: 400, body: `is unknown`},
		"status=503; latency=1ms; applied":              {status: 503, body: "MOCK_FAULT", created: 1},
	}
	for fault, want := range cases {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			socket := &gateway{}
			server := httptest.NewServer(injector(socket))
			t.Cleanup(server.Close)
			inMemory := &gateway{}
			client := &http.Client{Transport: &memory.Transport{Handler: injector(inMemory)}}

			for where, got := range map[string]result{
				"socket": send(t.Context(), server.Client(), server.URL, fault),
				"memory": send(t.Context(), client, "http://gateway.test", fault),
			} {
				require.ErrorIs(t, got.err, want.err, where)
				assert.Equal(t, want.status, got.status, where)
				if want.body == "" {
					assert.Empty(t, got.body, where)
				}
				assert.Contains(t, got.body, want.body, where)
			}
			assert.Equal(t, want.created, socket.created.Load())
			assert.Equal(t, want.created, inMemory.created.Load())
		})
	}
}

func TestHeadersOfFaults(t *testing.T) {
	t.Parallel()
	client := &http.Client{Transport: &memory.Transport{Handler: injector(&gateway{})}}

	got := send(t.Context(), client, "http://gateway.test", "status=503; retry-after=0.5")
	assert.Equal(t, "0.5", got.header.Get("Retry-After"))
	assert.Equal(t, "application/problem+json", got.header.Get("Content-Type"))
	assert.Equal(t, "req_caller", got.header.Get("X-Request-Id"))

	got = send(t.Context(), client, "http://gateway.test", "html-page")
	assert.Equal(t, "text/html; charset=utf-8", got.header.Get("Content-Type"))

	got = send(t.Context(), client, "http://gateway.test", "status=500; body=empty")
	assert.Equal(t, "0", got.header.Get("Content-Length"))

	got = send(t.Context(), client, "http://gateway.test", "empty-body")
	assert.Equal(t, "req_1", got.header.Get("X-Request-Id"))
	assert.Equal(t, "0", got.header.Get("Content-Length"))
}

// TestALostResponseIsNotLostAgain: a retry with the same header changes nothing, so it
// gets its response.
func TestALostResponseIsNotLostAgain(t *testing.T) {
	t.Parallel()
	g := &gateway{}
	client := &http.Client{Transport: &memory.Transport{Handler: injector(g)}}

	first := send(t.Context(), client, "http://gateway.test", "lose-response")
	second := send(t.Context(), client, "http://gateway.test", "lose-response")

	require.ErrorIs(t, first.err, syscall.ECONNRESET)
	require.NoError(t, second.err)
	assert.Equal(t, http.StatusConflict, second.status)
	assert.Equal(t, int64(1), g.created.Load())
}

func TestHangLastsUntilTheClientTimesOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, fault := range []string{"hang-until-timeout", "hang-until-timeout; applied"} {
			g := &gateway{}
			client := &http.Client{Transport: &memory.Transport{Handler: injector(g)}, Timeout: 30 * time.Second}
			began := time.Now()
			got := send(t.Context(), client, "http://gateway.test", fault)
			require.ErrorIs(t, got.err, context.DeadlineExceeded)
			assert.Equal(t, 30*time.Second, time.Since(began))
			assert.Equal(t, strings.Contains(fault, "applied"), g.created.Load() == 1)
		}
	})
}

func TestLatencyIsWallTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &gateway{}
		client := &http.Client{Transport: &memory.Transport{Handler: injector(g)}}
		began := time.Now()
		require.NoError(t, send(t.Context(), client, "http://gateway.test", "latency=800ms").err)
		assert.Equal(t, 800*time.Millisecond, time.Since(began))
		for _, fault := range []string{"empty-body; latency=800ms", "empty-body; applied; latency=800ms", "status=503; applied; latency=800ms"} {
			began = time.Now()
			require.NoError(t, send(t.Context(), client, "http://gateway.test", fault).err)
			assert.Equal(t, 800*time.Millisecond, time.Since(began), fault)
		}

		client.Timeout = time.Second
		g.created.Store(0)
		require.Error(t, send(t.Context(), client, "http://gateway.test", "latency=2s").err)
		synctest.Wait()
		assert.Zero(t, g.created.Load(), "the request of a client that has disconnected is not executed")
	})
}

func TestHangOverASocketEndsWhenTheClientDisconnects(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	h := injector(&gateway{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		cancel()
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)

	got := send(ctx, server.Client(), server.URL, "hang-until-timeout")

	require.ErrorIs(t, got.err, context.Canceled)
	<-ended
}

func TestSetFaultsHitTheirOperation(t *testing.T) {
	t.Parallel()
	g := &gateway{}
	in := &faults.Injector{
		Set:       &faults.Set{},
		Next:      g,
		Operation: func(*http.Request) string { return "transactions.create" },
		Account:   func(r *http.Request) string { return r.Header.Get("X-Request-Id") },
	}
	client := &http.Client{Transport: &memory.Transport{Handler: in}}
	_, err := in.Set.Add(faults.Fault{Kind: faults.Status, Status: 503, On: "transactions.create", Times: 1, Account: "req_caller"})
	require.NoError(t, err)
	_, err = in.Set.Add(faults.Fault{Kind: faults.StaleRead})
	require.NoError(t, err)

	assert.Equal(t, 503, send(t.Context(), client, "http://gateway.test", "").status)
	assert.Equal(t, 201, send(t.Context(), client, "http://gateway.test", "").status)
	assert.True(t, g.stale.Load())
}

// A body that is not JSON, such as an HTML page, is not changed.
func TestBodiesThatAreNotJSONAreNotCorrupted(t *testing.T) {
	t.Parallel()
	const page = `<p>{"status":"paid"}</p>`
	for _, fault := range []string{"extra-field", "unknown-enum"} {
		in := &faults.Injector{
			Set: &faults.Set{},
			Next: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, page)
			}),
			Operation: func(*http.Request) string { return "" },
			Account:   func(*http.Request) string { return "" },
		}
		client := &http.Client{Transport: &memory.Transport{Handler: in}}
		got := send(t.Context(), client, "http://gateway.test", fault)
		assert.Equal(t, page, got.body, fault)
		assert.Equal(t, http.StatusOK, got.status, fault)
	}
}

func TestExtraFieldsAreNotAddedToMetadata(t *testing.T) {
	t.Parallel()
	client := &http.Client{Transport: &memory.Transport{Handler: injector(&gateway{})}}
	got := send(t.Context(), client, "http://gateway.test", "extra-field")
	assert.Contains(t, got.body, `"metadata":{"k":"v"}`)
	assert.Equal(t, 3, strings.Count(got.body, faults.ExtraName))
}
