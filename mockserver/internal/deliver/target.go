package deliver

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/faults"
	"github.com/gateway-go/gateway/webhook"
)

// The names of the targets that are not registered endpoints.
const (
	notifyURL     = "notify_url"
	webhookURL    = "webhookUrl"
	pixWebhookURL = "pixWebhookUrl"
)

const (
	maxEndpoints    = 1000
	maxEndpointSize = 16 << 10
)

// The error for an endpoint that takes too much memory.
var (
	ErrLimit = fmt.Errorf("the gateway has %d endpoints, its limit: remove one or reset an account", maxEndpoints)
	ErrLong  = errors.New("the secret, events and header names of an endpoint must not exceed 16 KiB together")
)

// target is the destination of a delivery: a registered endpoint by its id, or
// an address from a record or the account's v1 integration.
type target struct {
	name     string // its display name
	endpoint bool   // name is the id of an endpoint
	url      string
}

// Endpoint is a registered receiver of webhooks.
type Endpoint struct {
	ID      string
	Account string              // whose events it gets; "" is every account's
	URL     string              // "" for a Handler
	Handler http.Handler        `json:"-"` // in memory; nil for a URL
	Path    string              // of the requests to Handler; "" is "/"
	Secret  gateway.Secret      // an empty one sends unsigned
	Headers webhook.HeaderNames // of the signature; "" is the sender's
	Events  []string            // kinds ("transaction.paid") or families ("transaction.*"); none is all
	Paused  bool                // it gets no event
}

// size is the endpoint's approximate memory without its URL.
func (e *Endpoint) size() int {
	size := len(e.Secret.Reveal()) + len(e.Headers.Timestamp) + len(e.Headers.Signature)
	for _, pattern := range e.Events {
		size += len(pattern) + 16
	}
	return size
}

func (e *Endpoint) wants(account, kind string) bool {
	if e.Paused || e.Account != "" && e.Account != account {
		return false
	}
	return len(e.Events) == 0 ||
		slices.ContainsFunc(e.Events, func(pattern string) bool { return faults.Glob(pattern, kind) })
}

// AddEndpoint registers an endpoint and returns it with its id. If the
// endpoint has an id, it replaces the existing one with that id.
func (s *Sender) AddEndpoint(e Endpoint) (Endpoint, error) {
	if err := e.check(); err != nil {
		return Endpoint{}, err
	}
	if err := CheckHeaders(s.headers(e)); err != nil {
		return Endpoint{}, err
	}
	if i := slices.Index(e.Events, ""); i >= 0 {
		return Endpoint{}, fmt.Errorf("events[%d] is empty; name a kind such as transaction.paid or transaction.*", i)
	}
	if e.size() > maxEndpointSize {
		return Endpoint{}, ErrLong
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.ID == "" && len(s.endpoints) >= maxEndpoints {
		return Endpoint{}, ErrLimit
	}
	if e.ID == "" {
		s.registered++
		e.ID = "ep_" + strconv.FormatUint(s.registered, 10)
	}
	s.endpoints = slices.DeleteFunc(s.endpoints, func(old *Endpoint) bool { return old.ID == e.ID })
	s.endpoints = append(s.endpoints, &e)
	return e, s.persistEndpoints()
}

// check returns the error of the endpoint's address, or nil.
func (e *Endpoint) check() error {
	switch {
	case e.Handler == nil && e.Path != "":
		return errors.New("path is for a handler; without one the url has it")
	case e.Handler == nil:
		return CheckURL(e.URL)
	case e.URL != "":
		return errors.New("url and handler can't both be set; a handler takes a path")
	case e.Path == "":
		return nil
	}
	if _, err := url.ParseRequestURI(e.Path); err != nil || !strings.HasPrefix(e.Path, "/") || strings.HasPrefix(e.Path, "//") || strings.ContainsAny(e.Path, " #") {
		return fmt.Errorf("path must be one of a URL, such as /webhooks, not %q", e.Path)
	}
	return nil
}

// RemoveEndpoint removes an endpoint of an account; "" is any account. Pending
// deliveries to it fail.
func (s *Sender) RemoveEndpoint(account, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.endpoint(account, id); err != nil {
		return err
	}
	s.endpoints = slices.DeleteFunc(s.endpoints, func(e *Endpoint) bool { return e.ID == id })
	return s.persistEndpoints()
}

// Rotate gives an endpoint another secret, with which every attempt from now
// on is signed, those of earlier events included.
func (s *Sender) Rotate(account, id string, secret gateway.Secret) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, err := s.endpoint(account, id)
	if err != nil {
		return err
	}
	if (&Endpoint{Secret: secret, Headers: e.Headers, Events: e.Events}).size() > maxEndpointSize {
		return ErrLong
	}
	e.Secret = secret
	return s.persistEndpoints()
}

// PauseEndpoint stops sending events to an endpoint, or starts again. Events that
// happen meanwhile are not sent later; earlier deliveries continue.
func (s *Sender) PauseEndpoint(account, id string, paused bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, err := s.endpoint(account, id)
	if err != nil {
		return err
	}
	e.Paused = paused
	return s.persistEndpoints()
}

func (s *Sender) endpoint(account, id string) (*Endpoint, error) {
	for _, e := range s.endpoints {
		if e.ID == id && (account == "" || e.Account == account) {
			return e, nil
		}
	}
	return nil, ErrUnknownEndpoint
}

// Endpoints lists the endpoints of an account in the order in which they were
// added; "" lists all.
func (s *Sender) Endpoints(account string) []Endpoint {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Endpoint
	for _, e := range s.endpoints {
		if account == "" || e.Account == account {
			list = append(list, *e)
		}
	}
	return list
}

// Serve lets a handler serve a host, so that deliveries to its URLs stay
// in memory. A nil handler ends that.
func (s *Sender) Serve(host string, h http.Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h == nil {
		delete(s.hosts, strings.ToLower(host))
		return
	}
	s.hosts[strings.ToLower(host)] = h
}

// targets returns every target of an event, in a fixed order, and no address of
// the v1 integration twice.
func (s *Sender) targets(account string, e *engine.Event, v1 *engine.Integration) []target {
	var list []target
	for _, ep := range s.endpoints {
		if ep.wants(account, e.Kind) {
			list = append(list, target{name: ep.ID, endpoint: true, url: ep.URL})
		}
	}
	switch {
	case e.Transaction != nil && e.Transaction.NotifyURL != "":
		list = append(list, target{name: notifyURL, url: e.Transaction.NotifyURL})
	case e.Transfer != nil && e.Transfer.NotifyURL != "":
		list = append(list, target{name: notifyURL, url: e.Transfer.NotifyURL})
	}
	return append(list, integrated(e, v1)...)
}

// integrated returns the targets of a v1 integration: one address for every
// family, one for Pix transactions and payouts.
func integrated(e *engine.Event, v1 *engine.Integration) (list []target) {
	if v1 == nil {
		return nil
	}
	if v1.WebhookURL != "" {
		list = append(list, target{name: webhookURL, url: v1.WebhookURL})
	}
	pix := e.Transfer != nil || e.Transaction != nil && e.Transaction.Method == "pix"
	if pix && v1.PixWebhookURL != "" && v1.PixWebhookURL != v1.WebhookURL {
		list = append(list, target{name: pixWebhookURL, url: v1.PixWebhookURL})
	}
	return list
}
