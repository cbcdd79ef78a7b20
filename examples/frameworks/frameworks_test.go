package frameworks_test

import (
	"context"
	"encoding/base64"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
	"github.com/gofiber/fiber/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/examples/frameworks"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/webhooktest"
)

// mounts returns, for each framework, a function that mounts the receiver in it
// and returns the result as an http.Handler.
func mounts() map[string]func(*webhook.Receiver) http.Handler {
	return map[string]func(*webhook.Receiver) http.Handler{
		"net/http": frameworks.NetHTTP,
		"chi":      frameworks.Chi,
		"gin":      frameworks.Gin,
		"echo":     frameworks.Echo,
		"fiber":    func(rx *webhook.Receiver) http.Handler { return overFiber{app: frameworks.Fiber(rx)} },
		"lambda":   func(rx *webhook.Receiver) http.Handler { return overLambda{call: frameworks.Lambda(rx)} },
		"lambda in base64": func(rx *webhook.Receiver) http.Handler {
			return overLambda{call: frameworks.Lambda(rx), base64: true}
		},
	}
}

// One event is delivered, delivered again, and forged.
func TestDeliveries(t *testing.T) {
	t.Parallel()
	for name, mount := range mounts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shop := &shop{}
			handler := mount(receiver(t, shop))
			event := webhooktest.Event{Kind: webhook.TransactionPaid, ID: webhooktest.NewID(), ResourceID: webhooktest.NewID()}
			once := []webhooktest.Effect{{EventID: event.ID, Kind: event.Kind, Resource: event.ResourceID}}
			forged := webhooktest.Event{Kind: webhook.TransactionPaid}.Body()

			for _, step := range []struct {
				what     string
				request  *http.Request
				status   int
				response string
			}{
				{"a forged body", webhooktest.Tampered(webhooktest.Secret(), event.Body(), forged), 401, `{"error":"invalid_signature"}`},
				{"no signature", webhooktest.Unsigned(forged), 401, `{"error":"missing_signature"}`},
				{"a recording", webhooktest.Stale(webhooktest.Secret(), forged), 401, `{"error":"stale_timestamp"}`},
				{"the event", webhooktest.Signed(webhooktest.Secret(), event.Body()), 200, `{"received":true}`},
				{"a duplicate", webhooktest.Signed(webhooktest.Secret(), event.Body()), 200, `{"received":true}`},
			} {
				status, response := send(t, handler, step.request)
				assert.Equal(t, step.status, status, step.what)
				assert.JSONEq(t, step.response, response, step.what)
				if step.status != http.StatusOK {
					assert.Empty(t, shop.Effects(), step.what)
					continue
				}
				assert.Equal(t, once, shop.Effects(), step.what)
			}
		})
	}
}

// If the shop fails, the gateway redelivers.
func TestFailure(t *testing.T) {
	t.Parallel()
	for name, mount := range mounts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shop := &shop{}
			handler := mount(receiver(t, shop))
			delivery := webhooktest.Signed(webhooktest.Secret(), webhooktest.Event{Kind: webhook.TransactionPaid}.Body())
			shop.FailNext(webhook.RetryAfter(time.Second))

			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, webhooktest.Again(delivery))
			assert.Equal(t, http.StatusServiceUnavailable, recorder.Code)
			assert.Equal(t, "1", recorder.Header().Get("Retry-After"))
			assert.Equal(t, "application/json", recorder.Header().Get("Content-Type"))
			assert.Empty(t, shop.Effects())
		})
	}
}

// The tests of package webhooktest pass in every framework.
func TestWebhooktestSuite(t *testing.T) {
	t.Parallel()
	for name, mount := range mounts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shop := &shop{}
			webhooktest.Run(t, webhooktest.Target{
				Handler:  mount(receiver(t, shop)),
				Secret:   webhooktest.Secret(),
				Effects:  shop.Effects,
				FailNext: shop.FailNext,
				Path:     frameworks.Path,
			})
		})
	}
}

// A body marked as base64 that doesn't decode is rejected.
func TestLambdaBrokenBase64(t *testing.T) {
	t.Parallel()
	call := frameworks.Lambda(receiver(t, &shop{}))
	response, err := call(t.Context(), events.APIGatewayV2HTTPRequest{RawPath: frameworks.Path, Body: "%%", IsBase64Encoded: true})
	require.NoError(t, err)
	assert.Equal(t, http.StatusBadRequest, response.StatusCode)
}

func receiver(t *testing.T, shop frameworks.Shop) *webhook.Receiver {
	t.Helper()
	rx, err := frameworks.NewReceiver(webhooktest.Secret(), shop)
	require.NoError(t, err)
	return rx
}

func send(t *testing.T, h http.Handler, r *http.Request) (status int, body string) {
	t.Helper()
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, r)
	return recorder.Code, recorder.Body.String()
}

// shop records the events that it receives.
type shop struct {
	mu      sync.Mutex
	effects []webhooktest.Effect
	failure error
}

func (s *shop) Paid(_ context.Context, e *webhook.TransactionEvent) error     { return s.note(e) }
func (s *shop) Refunded(_ context.Context, e *webhook.TransactionEvent) error { return s.note(e) }

func (s *shop) note(e *webhook.TransactionEvent) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.failure; err != nil {
		s.failure = nil
		return err
	}
	s.effects = append(s.effects, webhooktest.Effect{EventID: e.ID, Kind: e.Kind, Resource: e.ResourceID})
	return nil
}

func (s *shop) Effects() []webhooktest.Effect {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]webhooktest.Effect(nil), s.effects...)
}

func (s *shop) FailNext(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = err
}

// overFiber sends the requests of net/http through a fiber app, without a
// socket.
type overFiber struct{ app *fiber.App }

func (f overFiber) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	response, err := f.app.Test(r, fiber.TestConfig{}) // no time limit
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer func() { _ = response.Body.Close() }() // it is in memory
	maps.Copy(w.Header(), response.Header)
	w.WriteHeader(response.StatusCode)
	_, _ = io.Copy(w, response.Body)
}

// overLambda turns requests into the events that an API Gateway sends.
type overLambda struct {
	call   frameworks.LambdaFunction
	base64 bool
}

func (l overLambda) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost { // the API has a route for POST only
		http.NotFound(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	event := events.APIGatewayV2HTTPRequest{RawPath: r.URL.Path, Headers: map[string]string{}, Body: string(body)}
	if l.base64 || !utf8.Valid(body) {
		event.IsBase64Encoded, event.Body = true, base64.StdEncoding.EncodeToString(body)
	}
	for name, values := range r.Header {
		event.Headers[strings.ToLower(name)] = strings.Join(values, ",")
	}
	response, err := l.call(r.Context(), event)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	for name, value := range response.Headers {
		w.Header().Set(name, value)
	}
	w.WriteHeader(response.StatusCode)
	_, _ = io.WriteString(w, response.Body)
}
