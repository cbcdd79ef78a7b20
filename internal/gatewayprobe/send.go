package gatewayprobe

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/internal/spec"
)

// probe is one run.
type probe struct {
	cfg      Config
	base     *url.URL
	client   *http.Client
	run      string // the prefix of this run's references
	requests int
	counter  int
	next     time.Time // when the next request may be sent
	tokens   map[string][]string
	identity *regexp.Regexp
	tidying  bool // cleanup ignores the request limit
}

const (
	maxBody       = 1 << 20
	maxRetryAfter = 30 * time.Second

	minRate = 0.01 // requests per second
	maxRate = 1000.0
)

func newProbe(cfg Config) (*probe, error) {
	base, err := checkTarget(cfg)
	if err != nil {
		return nil, err
	}
	known := experiments()
	for _, id := range cfg.Only {
		if _, found := known[id]; !found && reasons()[id] == "" {
			return nil, fmt.Errorf("docs/assumptions.md has no row %q, which Only lists", id)
		}
	}
	if cfg.MaxRequests < 0 || cfg.WebhookWait < 0 {
		return nil, errors.New("MaxRequests and WebhookWait must not be negative")
	}
	if (cfg.WebhookURL == "") != (cfg.Receiver == nil) {
		return nil, errors.New("WebhookURL and Receiver must be set together or not at all")
	}
	if cfg.Rate = cmp.Or(cfg.Rate, DefaultRate); !(cfg.Rate >= minRate && cfg.Rate <= maxRate) { // so that NaN is rejected too
		return nil, fmt.Errorf("the Rate must be from %v to %v requests per second", minRate, maxRate)
	}
	cfg.MaxRequests = cmp.Or(cfg.MaxRequests, DefaultMaxRequests)
	cfg.WebhookWait = cmp.Or(cfg.WebhookWait, DefaultWebhookWait)
	run, err := newRun()
	if err != nil {
		return nil, err
	}
	p := &probe{cfg: cfg, base: base, run: run, tokens: map[string][]string{}, identity: regexp.MustCompile(identity)}
	for kind, list := range cfg.CardTokens {
		p.tokens[kind] = append([]string(nil), list...)
	}
	client := http.Client{Timeout: 30 * time.Second}
	if cfg.HTTPClient != nil {
		client = *cfg.HTTPClient
	}
	// The key must not follow a redirect to another host.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	p.client = &client
	return p, nil
}

// checkTarget rejects a key and a host that may be those of production.
func checkTarget(cfg Config) (*url.URL, error) {
	key := cfg.Key.Reveal()
	base, err := url.Parse(cfg.BaseURL)
	switch {
	case err != nil || base.Host == "" || base.User != nil || base.RawQuery != "" || strings.Trim(base.Path, "/") != "":
		return nil, errors.New("BaseURL must be a URL without a path or query, such as https://sandbox.gateway.example")
	case base.Scheme != "https" && (base.Scheme != "http" || !spec.IsLoopback(base.Hostname())):
		return nil, errors.New("BaseURL must be https, or http to a loopback host")
	case key == "" || strings.ContainsAny(key, " \t\r\n\"'`"):
		return nil, errors.New("the Key must be an API key, without white space and quotes")
	case strings.HasPrefix(key, "sk_live_"):
		return nil, fmt.Errorf("%w: the key begins with sk_live_", ErrNotSandbox)
	case cfg.KnownSandbox:
	case !strings.HasPrefix(key, "sk_test_"):
		return nil, fmt.Errorf("%w: the key does not begin with sk_test_; set KnownSandbox if it belongs to a sandbox", ErrNotSandbox)
	case !sandboxHost(base.Hostname()):
		return nil, fmt.Errorf("%w: the host name %s does not identify a sandbox; set KnownSandbox if it is one", ErrNotSandbox, base.Hostname())
	}
	return &url.URL{Scheme: base.Scheme, Host: base.Host}, nil
}

// sandboxHost reports whether a host name identifies a sandbox:
// sandbox.gateway.example, api-sandbox.gateway.example.
func sandboxHost(host string) bool {
	if spec.IsLoopback(host) {
		return true
	}
	for part := range strings.FieldsFuncSeq(strings.ToLower(host), func(r rune) bool { return r == '.' || r == '-' }) {
		switch part {
		case "sandbox", "test", "testing", "staging", "homolog", "hml", "dev":
			return true
		}
	}
	return false
}

// object is a request body.
type object = map[string]any

// raw is a request body that is sent verbatim.
type raw string

// response is a response, or the error if there is none.
type response struct {
	status int
	header http.Header
	body   []byte
	value  any // the body as JSON; nil if it is not JSON
	err    error
	sent   string // method and path, for messages
}

// send sends a request within the limits of the run. It retries rate-limited
// requests.
func (p *probe) send(ctx context.Context, method, target string, body any, header http.Header) (response, Exchange) {
	x := Exchange{Method: method, Path: target}
	r := response{sent: method + " " + strings.SplitN(target, "?", 2)[0]}
	var text []byte
	switch b := body.(type) {
	case nil:
	case raw:
		text = []byte(b)
	default:
		if text, r.err = json.Marshal(b, json.Deterministic(true)); r.err != nil {
			return r, x
		}
	}
	x.request = text
	for attempt := 1; ; attempt++ {
		if r.err = p.wait(ctx); r.err != nil {
			break
		}
		if r.err = p.once(ctx, method, target, text, header, &r); r.err != nil {
			break
		}
		pause := retryAfter(r.header)
		if r.status != http.StatusTooManyRequests || attempt == 3 || pause > maxRetryAfter {
			break
		}
		p.next = time.Now().Add(pause)
	}
	x.Status, x.response, x.header = r.status, r.body, r.header
	if r.err != nil {
		x.Error = r.err.Error()
	}
	return r, x
}

// once sends one request.
func (p *probe) once(ctx context.Context, method, target string, body []byte, header http.Header, r *response) error {
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, p.base.String()+target, reader)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+p.cfg.Key.Reveal())
	req.Header.Set("User-Agent", "gatewayprobe")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, values := range header {
		req.Header[name] = values
		if values[0] == "" {
			delete(req.Header, name)
		}
	}
	res, err := p.client.Do(req)
	if err != nil {
		return plain(err)
	}
	defer func() { _ = res.Body.Close() }()
	r.status, r.header = res.StatusCode, res.Header
	if r.body, err = io.ReadAll(io.LimitReader(res.Body, maxBody)); err != nil {
		return plain(err)
	}
	r.value = nil
	_ = json.Unmarshal(r.body, &r.value, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	return nil
}

// plain removes the URL of a transport error.
func plain(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}

var errBudget = errors.New("the run has reached its request limit")

// wait returns when the next request may be sent.
func (p *probe) wait(ctx context.Context) error {
	if p.requests >= p.cfg.MaxRequests && !p.tidying {
		return errBudget
	}
	p.requests++
	now := time.Now()
	if p.next.Before(now) {
		p.next = now
	}
	pause := p.next.Sub(now)
	p.next = p.next.Add(time.Duration(float64(time.Second) / p.cfg.Rate))
	return sleep(ctx, pause)
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds < 1 {
		return 2 * time.Second
	}
	return time.Duration(min(seconds, 3600)) * time.Second
}
