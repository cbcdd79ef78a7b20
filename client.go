package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
	"sync"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/internal/transport"
	"github.com/gateway-go/gateway/internal/wire"
)

// Client calls the gateway. Create one with [New] and keep it: it holds the
// connection pool and is safe for concurrent use.
type Client struct {
	Transactions     *TransactionsService
	Customers        *CustomersService
	Transfers        *TransfersService
	Subscriptions    *SubscriptionsService
	CheckoutLinks    *CheckoutLinksService
	CheckoutSessions *CheckoutSessionsService

	settings   settings
	engine     *transport.Engine
	base       *url.URL    // without a slash at its end
	host       string      // with the port, as in base
	header     http.Header // sent with every request
	bodyHeader http.Header // header and the Content-Type, for requests with a body
	variant    spec.Variant
	said       *sync.Map // what was logged and is not logged again; shared by the copies
}

func (c *Client) initServices() {
	c.Transactions = &TransactionsService{c}
	c.Customers = &CustomersService{c}
	c.Transfers = &TransfersService{c}
	c.Subscriptions = &SubscriptionsService{c}
	c.CheckoutLinks = &CheckoutLinksService{c}
	c.CheckoutSessions = &CheckoutSessionsService{c}
}

// New returns a client for the gateway at baseURL, which may include a path
// prefix but not the version: the client adds /v2. baseURL must be https, except
// for loopback hosts; see [WithInsecureHTTP].
//
// A key belongs to one environment: New rejects a production key if the name of
// the host contains "sandbox".
func New(baseURL string, credential Credential, opts ...Option) (*Client, error) {
	base, err := parseBase(baseURL)
	if err != nil {
		return nil, err
	}
	c := &Client{base: base, host: base.Host, settings: defaultSettings(), said: new(sync.Map)}
	c.settings.credential = credential
	if err := c.configure(opts); err != nil {
		return nil, err
	}
	return c, nil
}

// NewFromEnv returns a client configured by the environment variables
// GATEWAY_BASE_URL, GATEWAY_API_KEY and GATEWAY_AUTH, which is bearer (the
// default), apikey or basic.
func NewFromEnv(opts ...Option) (*Client, error) {
	baseURL, key := os.Getenv("GATEWAY_BASE_URL"), os.Getenv("GATEWAY_API_KEY")
	switch {
	case baseURL == "":
		return nil, errors.New("gateway: the environment variable GATEWAY_BASE_URL is not set")
	case key == "":
		return nil, errors.New("gateway: the environment variable GATEWAY_API_KEY is not set")
	}
	var credential Credential
	switch auth := os.Getenv("GATEWAY_AUTH"); strings.ToLower(auth) {
	case "", "bearer":
		credential = BearerToken(key)
	case "apikey":
		credential = APIKey(key)
	case "basic":
		credential = BasicToken(key)
	default:
		return nil, fmt.Errorf("gateway: GATEWAY_AUTH is %q: it must be bearer, apikey or basic", auth)
	}
	return New(baseURL, credential, opts...)
}

// With returns a copy of the client with opts applied. The copy shares the
// connection pool, unless opts contains [WithHTTPClient].
func (c *Client) With(opts ...Option) (*Client, error) {
	with := &Client{base: c.base, host: c.host, settings: c.settings, said: c.said}
	if err := with.configure(opts); err != nil {
		return nil, err
	}
	return with, nil
}

// CloseIdleConnections closes the client's idle connections. It does nothing
// for a client with [WithHTTPClient].
func (c *Client) CloseIdleConnections() {
	if c.settings.httpClient == nil {
		c.settings.own.CloseIdleConnections()
	}
}

func (c *Client) configure(opts []Option) error {
	s := &c.settings
	for _, option := range opts {
		if option == nil {
			return errors.New("gateway: nil Option")
		}
		if err := option(s); err != nil {
			return err
		}
	}
	loopback := isLoopback(c.host)
	if c.base.Scheme == "http" && !loopback && !s.insecure {
		return fmt.Errorf("gateway: plain http would send the key to %s unencrypted: use https, or WithInsecureHTTP if that is acceptable", c.host)
	}
	if err := s.credential.check(c.host); err != nil {
		return err
	}
	if s.httpClient == nil && s.own == nil {
		s.own = newPool()
	}
	client := s.httpClient
	if client == nil {
		client = s.own
	}
	c.engine = &transport.Engine{
		HTTP: transport.WrapClient(client), Logger: s.logger,
		FirstWait: s.firstWait, LongestWait: s.longestWait, Jitter: s.jitter, Observe: s.observeAttempts(), Gate: s.gate(),
	}
	c.header = http.Header{
		"Accept":     {"application/json, application/problem+json"},
		"User-Agent": {s.userAgent},
	}
	c.bodyHeader = c.header.Clone()
	c.bodyHeader.Set("Content-Type", "application/json")
	c.variant = spec.Variant{
		Dialect:      spec.ClientDialect,
		LoopbackHTTP: loopback,
		LocalHTTP:    c.base.Scheme == "http" && spec.IsLocal(c.base.Hostname()),
	}
	c.initServices()
	return nil
}

func parseBase(baseURL string) (*url.URL, error) {
	u, err := url.Parse(baseURL)
	switch {
	case baseURL == "":
		return nil, errors.New("gateway: the base URL is empty: pass the address of the gateway")
	case err != nil:
		return nil, errors.New("gateway: the base URL can't be parsed") // the parser's message may contain a password
	case u.Scheme != "https" && u.Scheme != "http", u.Host == "", u.Opaque != "":
		return nil, errors.New("gateway: the base URL must start with https:// and name a host")
	case u.User != nil:
		return nil, errors.New("gateway: the base URL must not contain a username or password: pass a Credential")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("gateway: the base URL must have neither a query nor a fragment")
	}
	base := &url.URL{
		Scheme: u.Scheme, Host: u.Host,
		Path: strings.TrimRight(u.Path, "/"), RawPath: strings.TrimRight(u.RawPath, "/"),
	}
	// Every call would get 404, which reads as "there is no such transaction".
	if version := path.Base(base.Path); version == "v1" || version == "v2" {
		return nil, fmt.Errorf("gateway: the base URL must not end in /%s: the client adds the version to every path", version)
	}
	return base, nil
}

// Do calls an endpoint that this package has no method for. The path must start
// with a slash and be escaped. in is the JSON body, or the query of a GET, and
// may be nil. The whole response, including the envelope, is decoded into out,
// which may be nil or a *[]byte. A 204 has no body and leaves out unchanged.
//
// GET, HEAD and OPTIONS are retried as reads, other methods only if nothing was
// applied; with [WithIdempotencyKeys], a POST or PUT on v2 is retried with its key.
// Do returns the same errors as the other methods; set the operation's name in
// them with [Named].
func (c *Client) Do(ctx context.Context, method, path string, in, out any, opts ...RequestOption) error {
	op := spec.Operation{Name: "do", Method: method, Path: "-", Class: spec.Unsafe}
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		op.Class = spec.Safe
	}
	if isRead(method) && !wire.Finite(in) {
		return misuse(&op, errors.New("query: the value contains itself or is nested too deeply"))
	}
	r, err := c.newRequest(&op, opts)
	if err != nil {
		return err
	}
	ctx = r.begin(ctx)
	err = r.do(ctx, path, in, out)
	r.end(err)
	return err
}

// do performs the call of [Client.Do].
func (r *request) do(ctx context.Context, path string, in, out any) error {
	if err := r.encode(in); err != nil {
		return err
	}
	var err error
	if r.url, err = r.client.rawURL(path, r.query); err != nil {
		return misuse(r.op, err)
	}
	res, err := r.send(ctx)
	if err != nil {
		return err
	}
	if wire.Failed(res.Body) {
		return r.undecodable(res, wire.ErrFailed)
	}
	r.fillResponse(res, "")
	if out == nil || res.Status == http.StatusNoContent || res.Status == http.StatusResetContent {
		return nil
	}
	if raw, ok := out.(*[]byte); ok {
		*raw = res.Body
		return nil
	}
	if err := wire.DecodeAny(res.Body, out); err != nil {
		return r.undecodable(res, err)
	}
	return nil
}
