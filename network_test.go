package gateway_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	files "github.com/gateway-go/gateway/internal/golden"
	"github.com/gateway-go/gateway/mockserver"
)

// Fake networks for the tests: play returns one response after another, script
// also checks the requests, and losing drops responses of a mock gateway.

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func clientOf(t *testing.T, transport http.RoundTripper, opts ...gateway.Option) *gateway.Client {
	t.Helper()
	opts = append([]gateway.Option{gateway.WithHTTPClient(&http.Client{Transport: transport})}, opts...)
	client, err := gateway.New(baseURL, gateway.BearerToken(testKey), opts...)
	require.NoError(t, err)
	return client
}

// clientFor returns a client whose requests to route, such as "GET
// /v2/customers", get the response. Any other request fails.
func clientFor(t *testing.T, route string, response *files.Exchange, opts ...gateway.Option) *gateway.Client {
	t.Helper()
	return clientOf(t, roundTrip(func(r *http.Request) (*http.Response, error) {
		if sent := r.Method + " " + r.URL.Path; sent != route {
			return nil, errors.New("unexpected request: " + sent)
		}
		return response.Respond(r)
	}), opts...)
}

// clientOver returns a client that doesn't wait before retries and passes every
// request to respond.
func clientOver(t *testing.T, respond roundTrip, opts ...gateway.Option) *gateway.Client {
	t.Helper()
	return clientOf(t, respond, append([]gateway.Option{gateway.WithBackoff(time.Microsecond, time.Microsecond)}, opts...)...)
}

// fakeTransport responds to a client's attempts one by one, and records their times
// and contents.
type fakeTransport struct {
	mu       sync.Mutex
	steps    []roundTrip
	start    time.Time
	at       []time.Duration
	bodies   []string
	requests []*http.Request
}

func play(steps ...roundTrip) *fakeTransport { return &fakeTransport{steps: steps, start: time.Now()} }

func (s *fakeTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	body := ""
	if r.Body != nil {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		body = string(b)
	}
	s.mu.Lock()
	n := len(s.at)
	s.at = append(s.at, time.Since(s.start))
	s.bodies = append(s.bodies, body)
	s.requests = append(s.requests, r)
	s.mu.Unlock()
	if n >= len(s.steps) {
		return nil, fmt.Errorf("attempt %d was not expected", n+1)
	}
	return s.steps[n](r)
}

func reply(status int, body string, headers ...string) roundTrip {
	return func(r *http.Request) (*http.Response, error) {
		h := http.Header{"Content-Type": {"application/json"}}
		for i := 0; i < len(headers); i += 2 {
			h.Set(headers[i], headers[i+1])
		}
		return &http.Response{
			StatusCode: status, Header: h, Request: r, ContentLength: int64(len(body)),
			Body: io.NopCloser(strings.NewReader(body)),
		}, nil
	}
}

func fail(err error) roundTrip {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

// script is the sequence of requests that a client must make, with the response
// to each.
type script []step

type step struct {
	request string // "GET /path?query"
	respond roundTrip
}

func respond(request string, status int, body string) step {
	return step{request, reply(status, body)}
}

// lose is a step whose request may have been applied, but whose response is lost.
func lose(request string) step { return step{request, fail(syscall.ECONNRESET)} }

// client returns a client that must make exactly the requests of the script.
func (s script) client(t *testing.T) *gateway.Client {
	t.Helper()
	network := play()
	for _, step := range s {
		network.steps = append(network.steps, func(r *http.Request) (*http.Response, error) {
			assert.Equal(t, step.request, r.Method+" "+r.URL.RequestURI())
			return step.respond(r)
		})
	}
	t.Cleanup(func() { assert.Len(t, network.at, len(s), "each step must be requested once") })
	return clientOver(t, network.RoundTrip)
}

// losing is an option for a client of gw. The gateway applies every write, but if
// lost returns true for the number of the write, from 1, its response is lost.
func losing(gw *mockserver.Server, lost func(write int64) bool) gateway.Option {
	var writes atomic.Int64
	return gateway.WithHTTPClient(&http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		response, err := gw.Transport().RoundTrip(r)
		if err != nil || r.Method == http.MethodGet || !lost(writes.Add(1)) {
			return response, err
		}
		_ = response.Body.Close()
		return nil, syscall.ECONNRESET
	})})
}
