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
	"github.com/gateway-go/gateway/internal/spec"
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

// Errors for endpoints that exceed a limit.
var (
	ErrLimit = fmt.Errorf("the gateway has reached its limit of %d endpoints: remove one or reset an account", maxEndpoints)
	ErrLong  = errors.New("the secret, events and header names of an endpoint must not exceed 16 KiB together")
)

// target is the destination of a delivery: a registered endpoint, or a URL from the
// resource or from the account's v1 integration.
type target struct {
	name     string // the id of an endpoint, or where the URL comes from
	endpoint bool   // it is a registered endpoint
	url      string
}

// Endpoint is a registered receiver of webhooks.
type Endpoint struct {
	ID      string
	Account string              // whose events it gets; "" for those of all accounts
	URL     string              // "" for a Handler
	Handler http.Handler        `json:"-"` // in memory; nil for a URL
	Path    string              // of the requests to Handler; "" is "/"
	Secret  gateway.Secret      // webhooks are unsigned if it is empty
	Headers webhook.HeaderNames // of the signature; "" for the sender's
	Events  []string            // kinds ("transaction.paid") or families ("transaction.*"); empty for all
	Paused  bool                // it gets no new events

	failures int // attempts in a row that have failed, if Config.PauseAfter counts them
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
	if err := CheckSecret(e.Secret); err != nil {
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

// ErrSecret means that a receiver can't use a signing secret.
var ErrSecret = errors.New("the secret can't sign webhooks")

// CheckSecret returns an error if a [webhook.Receiver] rejects the secret as its key. No
// secret is fine: the deliveries are not signed then.
func CheckSecret(secret gateway.Secret) error {
	if problem := spec.SigningKeyProblem(secret.Reveal()); problem != "" && !secret.IsZero() {
		return fmt.Errorf("%w: it %s", ErrSecret, problem)
	}
	return nil
}

// check validates the endpoint's URL, handler and path.
func (e *Endpoint) check() error {
	switch {
	case e.Handler == nil && e.Path != "":
		return errors.New("path requires a handler; without one, put the path in url")
	case e.Handler == nil:
		return CheckURL(e.URL)
	case e.URL != "":
		return errors.New("url and handler can't both be set; a handler takes a path")
	case e.Path == "":
		return nil
	}
	if _, err := url.ParseRequestURI(e.Path); err != nil || !strings.HasPrefix(e.Path, "/") || strings.HasPrefix(e.Path, "//") || strings.ContainsAny(e.Path, " #") {
		return fmt.Errorf("path must be a URL path such as /webhooks, not %q", e.Path)
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

// Rotate replaces the secret of an endpoint. It signs every later attempt, including
// those for earlier events.
func (s *Sender) Rotate(account, id string, secret gateway.Secret) error {
	if err := CheckSecret(secret); err != nil {
		return err
	}
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

// PauseEndpoint pauses or resumes an endpoint. Events that occur while it is paused
// are never sent to it; deliveries of earlier events continue.
func (s *Sender) PauseEndpoint(account, id string, paused bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, err := s.endpoint(account, id)
	if err != nil {
		return err
	}
	e.Paused, e.failures = paused, 0
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

// anyHost stands for the hosts that have no server of their own.
const anyHost = "*"

// Serve makes h the server of a host, so that deliveries to its URLs stay in memory.
// If h is nil, they go over the network again. The host "*" is every other one.
func (s *Sender) Serve(host string, h http.Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h == nil {
		delete(s.hosts, strings.ToLower(host))
		return
	}
	s.hosts[strings.ToLower(host)] = h
}

// targets returns the targets of an event in a fixed order. If both URLs of the v1
// integration are the same, it is one target.
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
	return append(list, integrationTargets(e, v1)...)
}

// integrationTargets returns the targets of a v1 integration, which has one URL for
// every family and one for Pix transactions and payouts.
func integrationTargets(e *engine.Event, v1 *engine.Integration) (list []target) {
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
