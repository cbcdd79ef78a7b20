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

// The tests' networks: play returns one response after another, script also
// checks the requests, and losing drops responses of a mock gateway.

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func clientOf(t *testing.T, transport http.RoundTripper, opts ...gateway.Option) *gateway.Client {
	t.Helper()
	opts = append([]gateway.Option{gateway.WithHTTPClient(&http.Client{Transport: transport})}, opts...)
	client, err := gateway.New(baseURL, gateway.BearerToken(testKey), opts...)
	require.NoError(t, err)
	return client
}

// clientFor returns a client whose calls of route, such as "GET /v2/customers",
// get one response. Any other request fails.
func clientFor(t *testing.T, route string, response *files.Exchange, opts ...gateway.Option) *gateway.Client {
	t.Helper()
	return clientOf(t, roundTrip(func(r *http.Request) (*http.Response, error) {
		if asked := r.Method + " " + r.URL.Path; asked != route {
			return nil, errors.New("unexpected request: " + asked)
		}
		return response.Respond(r)
	}), opts...)
}

// clientOver returns a client that doesn't wait and passes every request to
// respond.
func clientOver(t *testing.T, respond roundTrip, opts ...gateway.Option) *gateway.Client {
	t.Helper()
	return clientOf(t, respond, append([]gateway.Option{gateway.WithBackoff(time.Microsecond, time.Microsecond)}, opts...)...)
}

// stage responds to a client's attempts one by one, and records their times
// and contents.
type stage struct {
	mu       sync.Mutex
	steps    []roundTrip
	start    time.Time
	at       []time.Duration
	bodies   []string
	requests []*http.Request
}

func play(steps ...roundTrip) *stage { return &stage{steps: steps, start: time.Now()} }

func (s *stage) RoundTrip(r *http.Request) (*http.Response, error) {
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
	asked   string // "GET /path?query"
	respond roundTrip
}

func respond(asked string, status int, body string) step { return step{asked, reply(status, body)} }

// lose is a step that may have been applied and whose response is lost.
func lose(asked string) step { return step{asked, fail(syscall.ECONNRESET)} }

// client returns a client whose requests must be those of the script.
func (s script) client(t *testing.T) *gateway.Client {
	t.Helper()
	network := play()
	for _, step := range s {
		network.steps = append(network.steps, func(r *http.Request) (*http.Response, error) {
			assert.Equal(t, step.asked, r.Method+" "+r.URL.RequestURI())
			return step.respond(r)
		})
	}
	t.Cleanup(func() { assert.Len(t, network.at, len(s), "each step must be requested once") })
	return clientOver(t, network.RoundTrip)
}

// losing is an option for a client of gw: the gateway applies every write, and
// the network loses the responses to those whose number, from 1, lost selects.
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
