package deliver

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"runtime"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/truncate"
	"github.com/gateway-go/gateway/mockserver/internal/faults"
	"github.com/gateway-go/gateway/mockserver/internal/memory"
	"github.com/gateway-go/gateway/webhook"
)

const (
	maxResponse = 64 << 10 // bytes of a response that are read
	maxRecorded = 512      // bytes of it that are recorded
)

// staleBy is the age of a stale signature, well beyond the tolerance.
const staleBy = 2 * webhook.Tolerance

// prepared is an attempt with copies of all data that the lock guards.
type prepared struct {
	number  int
	at      time.Time
	message *message
	url     string
	handler http.Handler
	path    string
	secret  gateway.Secret
	headers webhook.HeaderNames
	fault   faults.Kind // of the signature; "" for none
	err     error
}

// prepare collects the data of an attempt. It is called with the lock held.
func (s *Sender) prepare(j *job) prepared {
	d := j.d
	r := prepared{
		number:  len(d.Attempts) + 1,
		at:      s.cfg.Clock.Now(),
		message: d.message,
		url:     d.URL,
	}
	if len(d.Attempts) == 0 && (d.Fault == faults.CorruptSignature || d.Fault == faults.StaleTimestamp) {
		r.fault = d.Fault
	}
	if !d.Registered {
		return r
	}
	e, err := s.endpoint("", d.Endpoint)
	if err != nil {
		r.err = errors.New("the endpoint was removed")
		return r
	}
	r.url, r.handler, r.path, r.secret, r.headers = e.URL, e.Handler, e.Path, e.Secret, s.headers(*e)
	if r.handler == nil && r.url == "" {
		r.err = errors.New("the endpoint was a handler in another process")
	}
	return r
}

// attempt makes one request. It is called without the lock.
func (s *Sender) attempt(ctx context.Context, r prepared) Attempt {
	began := s.cfg.Wall()
	a := Attempt{Number: r.number, At: r.at, Wall: began, Signed: !r.secret.IsZero(), Fault: string(r.fault)}
	err := r.err
	if err == nil {
		a.Status, a.Response, err = s.send(ctx, r, began)
	}
	if err != nil {
		a.Error = explain(err, s.cfg.Timeout)
	} else if !a.OK() {
		a.Error = fmt.Sprintf("the response has status %d", a.Status)
	}
	a.Duration = s.cfg.Wall().Sub(began)
	return a
}

func (s *Sender) send(ctx context.Context, r prepared, now time.Time) (status int, response string, err error) {
	body, err := r.message.bytes()
	if err != nil {
		return 0, "", fmt.Errorf("rendering the body: %w", err)
	}
	client, address := s.network, r.url
	if r.handler != nil {
		client, address = inMemory(r.handler), "http://handler.mock.invalid"+cmp.Or(r.path, "/")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "mockgateway-webhooks")
	r.sign(req.Header, now, body)
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse))
	if err != nil {
		err = fmt.Errorf("the response was cut off: %w", err)
	}
	return resp.StatusCode, truncate.Text(string(text), maxRecorded), err
}

// sign adds the signature headers, if there is a secret.
func (r prepared) sign(h http.Header, now time.Time, body []byte) {
	if r.secret.IsZero() {
		return
	}
	if r.fault == faults.StaleTimestamp {
		now = now.Add(-staleBy)
	}
	timestamp, signature := webhook.Sign(r.secret, now, body)
	if r.fault == faults.CorruptSignature {
		signature = corrupt(signature)
	}
	h.Set(r.headers.Timestamp, timestamp)
	h.Set(r.headers.Signature, signature)
}

// corrupt changes the last digit of a signature.
func corrupt(signature string) string {
	last := byte('0')
	if signature[len(signature)-1] == last {
		last = '1'
	}
	return signature[:len(signature)-1] + string(last)
}

// explain describes why there was no response. It is one line, unless a handler panicked.
func explain(err error, limit time.Duration) string {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	switch {
	case errors.Is(err, memory.ErrPanic):
		return err.Error() // with the stack, since the handler belongs to the test
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("no response within %s", limit)
	case errors.Is(err, context.Canceled):
		return "the gateway was closed"
	case errors.Is(err, io.EOF):
		return "the connection was closed without a response"
	}
	return err.Error()
}

// router passes requests for an in-memory host to its handler, and sends all others
// over the network.
type router struct {
	sender  *Sender
	network *http.Transport
}

func (r *router) RoundTrip(req *http.Request) (*http.Response, error) {
	host := strings.ToLower(req.URL.Host)
	r.sender.mu.Lock()
	h := r.sender.hosts[host]
	if h == nil {
		h = r.sender.hosts[anyHost]
	}
	r.sender.mu.Unlock()
	if h != nil {
		return (&memory.Transport{Handler: receiver{h, req.URL.Scheme == "https"}}).RoundTrip(req)
	}
	if err := checkName(req.URL.Hostname()); err != nil {
		_ = req.Body.Close()
		return nil, err
	}
	return r.network.RoundTrip(req)
}

// CloseIdleConnections is called through http.Client.
func (r *router) CloseIdleConnections() { r.network.CloseIdleConnections() }

func inMemory(h http.Handler) *http.Client {
	return &http.Client{
		Transport:     &memory.Transport{Handler: receiver{Handler: h}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// receiver runs an in-memory handler under [deliverTo], so that [Inside] detects it.
type receiver struct {
	http.Handler

	https bool
}

func (r receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if r.https { // as in a server
		req.TLS = &tls.ConnectionState{}
	}
	deliverTo(r.Handler, w, req)
}

// deliverTo is the stack frame that marks an in-memory handler.
//
//go:noinline
func deliverTo(h http.Handler, w http.ResponseWriter, req *http.Request) { h.ServeHTTP(w, req) }

// Inside reports whether it is called from within an in-memory handler during a
// delivery. Such a handler must not wait for deliveries, because its own is among
// them. A context can't carry this information: the exported methods that wait take
// none.
func Inside() bool {
	marker := reflect.ValueOf(deliverTo).Pointer()
	callers := make([]uintptr, 64)
	for skip := 1; ; skip += len(callers) {
		n := runtime.Callers(skip, callers)
		for _, pc := range callers[:n] {
			if f := runtime.FuncForPC(pc - 1); f != nil && f.Entry() == marker {
				return true
			}
		}
		if n < len(callers) {
			return false
		}
	}
}
