package webhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/webhook"
)

var secret = gateway.NewSecret("whsec_of_this_test")

var quiet = slog.New(slog.DiscardHandler)

// ownAccount is the account of most receivers.
var ownAccount = gateway.Account{Name: "shop"}

// signedConfig is a minimal configuration that verifies signatures.
func signedConfig() webhook.Config {
	return webhook.Config{Keys: []webhook.SigningKey{{Key: secret}}, Logger: quiet, Account: ownAccount.Name}
}

// atOnce is a backoff of zero.
func atOnce(int) time.Duration { return 0 }

// gauge counts what runs at the same time.
type gauge struct {
	mu        sync.Mutex
	now, most int
}

func (g *gauge) add(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now += n
	g.most = max(g.most, g.now)
}

func (g *gauge) maximum() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.most
}

func receiver(t *testing.T, cfg webhook.Config) *webhook.Receiver {
	t.Helper()
	rx, err := webhook.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := rx.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
	})
	return rx
}

func txBody(event string, kind webhook.Kind, tx, status string) string {
	return fmt.Sprintf(`{"id":%q,"event":"transaction","api_version":"2","data":{"id":%q,"event_type":%q,"status":%q,"amount":1990}}`,
		event, tx, kind, status)
}

func paid(event, tx string) string { return txBody(event, webhook.TransactionPaid, tx, "paid") }

func request(body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/webhooks/gateway", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	return r
}

func signed(body string) *http.Request {
	r := request(body)
	sign(r, secret, time.Now(), body)
	return r
}

func sign(r *http.Request, key gateway.Secret, at time.Time, body string) {
	timestamp, signature := webhook.Sign(key, at, []byte(body))
	r.Header.Set(webhook.DefaultTimestampHeader, timestamp)
	r.Header.Set(webhook.DefaultSignatureHeader, signature)
}

func serve(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// response formats the status and the body for comparisons.
func response(h http.Handler, r *http.Request) string {
	w := serve(h, r)
	return fmt.Sprintf("%d %s", w.Code, w.Body)
}

const (
	received  = `200 {"received":true}`
	failedNow = `500 {"error":"handler_failed"}`
)

// effects counts the effects of handlers, by event and resource.
type effects struct {
	mu   sync.Mutex
	list []string
}

func (f *effects) add(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, fmt.Sprintf(format, args...))
}

func (f *effects) all() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string{}, f.list...)
}

// nothingLeft checks that no event is waiting, running, dead or unhandled.
func nothingLeft(t *testing.T, rx *webhook.Receiver) {
	t.Helper()
	counts, err := rx.Counts(t.Context())
	require.NoError(t, err)
	assert.Equal(t, webhook.Counts{}, counts)
}

// fakeAPI responds to GET /v2/{resources}/{id} from a map.
type fakeAPI struct {
	mu        sync.Mutex
	resources map[string]map[string]any // by path
	status    int                       // the status of every response, if not 0
	calls     int
	gate      chan struct{} // blocks every response until closed, if not nil
}

func (f *fakeAPI) set(path string, members map[string]any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.resources == nil {
		f.resources = make(map[string]map[string]any)
	}
	f.resources["/v2/"+path] = members
}

func (f *fakeAPI) setTransaction(id, status string, more ...any) {
	now := time.Now().UTC().Format(time.RFC3339)
	tx := map[string]any{"id": id, "status": status, "amount": 1990, "method": "pix", "created_at": now, "updated_at": now}
	for i := 0; i+1 < len(more); i += 2 {
		tx[more[i].(string)] = more[i+1]
	}
	f.set("transactions/"+id, tx)
}

func (f *fakeAPI) fail(status int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status = status
}

func (f *fakeAPI) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

func (f *fakeAPI) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	f.calls++
	status, found, gate := f.status, f.resources[r.URL.Path], f.gate
	f.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	body := map[string]any{"success": true, "requestId": "r", "data": found}
	switch {
	case status != 0:
		body = map[string]any{"title": "down", "status": status}
	case found == nil:
		status, body = http.StatusNotFound, map[string]any{"title": "Not Found", "status": 404}
	default:
		status = http.StatusOK
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(string(raw))), ContentLength: int64(len(raw)), ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

func (f *fakeAPI) client(t *testing.T) *gateway.Client {
	t.Helper()
	c, err := newClient(f)
	require.NoError(t, err)
	return c
}

func newClient(api http.RoundTripper) (*gateway.Client, error) {
	return gateway.New("https://gateway.invalid", gateway.BearerToken("sk_test_x"),
		gateway.WithHTTPClient(&http.Client{Transport: api}))
}
