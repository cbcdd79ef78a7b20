// Package inpage is the mock gateway inside a web page or a program in JavaScript, without a
// socket: what mockserver/cmd/mockgateway-wasm exports. It is a package of its own so that
// its tests run on every platform.
package inpage

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"

	"github.com/gateway-go/gateway/mockserver"
)

// Gateway is a gateway that is called through [Gateway.Fetch] and delivers its webhooks to
// a [Receiver].
type Gateway struct {
	server  *mockserver.Server
	webhook string // the URL that gets all events

	mu       sync.Mutex
	receiver Receiver
}

// Receiver responds to a webhook. An error means that there is no response.
type Receiver func(ctx context.Context, r *http.Request, body []byte) (status int, header http.Header, response []byte, err error)

// New returns a gateway. options is a JSON object with flags of mockgateway in camel case.
func New(options string) (*Gateway, error) {
	o, err := parse(options)
	if err != nil {
		return nil, err
	}
	list, err := o.server()
	if err != nil {
		return nil, err
	}
	// Nothing listens, so no web page can reach the gateway under a host name of its own.
	server, err := mockserver.New(append(list, mockserver.WithAllowedHosts("*"))...)
	if err != nil {
		return nil, err
	}
	g := &Gateway{server: server, webhook: o.Webhook}
	server.Webhooks.ServeHost("*", http.HandlerFunc(g.deliver))
	return g, nil
}

// Key returns an API key of the default account.
func (g *Gateway) Key() string { return g.server.Key() }

// Secret returns the secret that signs the webhooks.
func (g *Gateway) Secret() string { return g.server.Secret().Reveal() }

// Fetch makes a request. The host of its URL does not matter. follow says whether
// redirects are followed.
func (g *Gateway) Fetch(r *http.Request, follow bool) (*http.Response, error) {
	// The caller runs in the same process: it isn't a page of another origin.
	for _, name := range []string{"Origin", "Sec-Fetch-Site"} {
		r.Header.Del(name)
	}
	client := &http.Client{Transport: g.server.Transport()}
	if !follow {
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	resp, err := client.Do(r) //nolint:gosec // in memory, wherever it goes
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	return resp, err
}

// Receive delivers every event to r, and what is sent to a notify_url or to an endpoint
// with a URL. If r is nil, deliveries fail from then on, as if nothing listened.
func (g *Gateway) Receive(r Receiver) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.receiver = r
	return g.register()
}

// register adds or removes the endpoint of all events. It is called with the lock held.
func (g *Gateway) register() error {
	hooks := g.server.Webhooks
	list := hooks.Endpoints()
	at := slices.IndexFunc(list, func(e mockserver.Endpoint) bool { return e.URL == g.webhook })
	switch {
	case g.receiver == nil && at >= 0:
		return hooks.RemoveEndpoint(list[at].ID)
	case g.receiver != nil && at < 0:
		_, err := hooks.AddEndpoint(mockserver.Endpoint{URL: g.webhook, Secret: g.server.Secret()})
		return err
	}
	return nil
}

// maxResponse is how much of a receiver's response is passed on.
const maxResponse = 64 << 10

func (g *Gateway) deliver(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	receiver := g.receiver
	g.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if receiver == nil || err != nil {
		panic(http.ErrAbortHandler) // as if nothing listened
	}
	status, header, response, err := receiver(r.Context(), r, body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	for name, values := range header {
		w.Header()[http.CanonicalHeaderKey(name)] = values
	}
	w.Header().Del("Content-Length") // of a body that may be cut here
	w.WriteHeader(status)
	_, _ = w.Write(response[:min(len(response), maxResponse)])
}

// Snapshot returns the state as a file of JSON; see [mockserver.Server.Snapshot].
func (g *Gateway) Snapshot() ([]byte, error) { return g.server.Snapshot() }

// Restore restores a file of Snapshot, also one of another process; see
// [mockserver.Server.Restore]. The receiver stays.
func (g *Gateway) Restore(file []byte) error {
	if err := g.server.Restore(file); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.register()
}

// Close ends the gateway, with all requests and deliveries that are running.
func (g *Gateway) Close() error { return g.server.Close() }
