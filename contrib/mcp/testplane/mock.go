package testplane

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
)

// mock calls a mock gateway over HTTP, also one of this process: the merchant's program
// needs its address anyway, and both ways behave the same.
type mock struct {
	base   string
	key    gateway.Secret
	client *http.Client
}

// callTime is how long a call may take; an advance of the clock waits up to 30 seconds
// for webhooks.
const callTime = 60 * time.Second

// maxResponse is the maximum length of a response, in bytes.
const maxResponse = 16 << 20

// testKey begins the keys of a sandbox.
const testKey = "sk_test_"

func newMock(base string, key gateway.Secret) (*mock, error) {
	if !strings.HasPrefix(key.Reveal(), testKey) {
		return nil, errors.New("the API key must begin with " + testKey + ": the test plane never holds a real key")
	}
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the mock's URL must be http://HOST:PORT, without a path")
	}
	if !Loopback(u.Hostname()) {
		return nil, errors.New("the mock must run on this machine: its URL must name localhost or a loopback address")
	}
	return &mock{base: u.Scheme + "://" + u.Host, key: key, client: &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: 8, IdleConnTimeout: 30 * time.Second},
		// A redirect could lead the key to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Loopback reports whether a host name is this machine's.
func Loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// reply is a response of the mock.
type reply struct {
	status    int
	body      []byte
	requestID string
}

// errBroken means that the connection ended before a whole response.
var errBroken = errors.New("the connection ended before a response")

// send makes one call. The error matches errBroken if the outcome is unknown.
func (m *mock) send(ctx context.Context, method, path string, body any) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return reply{}, err
		}
		content = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, m.base+path, content)
	if err != nil {
		return reply{}, fmt.Errorf("the path is not one of a URL: %w", err)
	}
	r.GetBody = nil // never sent twice by the transport: a repeat is the caller's decision
	r.Header.Set("Authorization", "Bearer "+m.key.Reveal())
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := m.client.Do(r)
	if err != nil {
		var dial *net.OpError
		if errors.As(err, &dial) && dial.Op == "dial" {
			return reply{}, fmt.Errorf("the mock gateway is not reachable at %s: start it, or restart this server", m.base)
		}
		return reply{}, fmt.Errorf("%w: %s", errBroken, kindOf(err))
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse))
	if err != nil {
		return reply{status: resp.StatusCode}, fmt.Errorf("%w: %s", errBroken, kindOf(err))
	}
	return reply{status: resp.StatusCode, body: text, requestID: resp.Header.Get("X-Request-Id")}, nil
}

// kindOf names an error of a connection without addresses.
func kindOf(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "the call was canceled"
	case strings.Contains(err.Error(), "reset"):
		return "connection reset"
	}
	return "the response is incomplete"
}

// control makes a call of the control plane and decodes its data. The error is a
// *ToolError if the mock rejected the call.
func (m *mock) control(ctx context.Context, method, path string, body, data any) error {
	return m.controlWhole(ctx, method, path, body, &struct {
		Data any `json:"data"`
	}{data})
}

// controlWhole is control for a call whose response is not only data.
func (m *mock) controlWhole(ctx context.Context, method, path string, body, whole any) error {
	r, err := m.send(ctx, method, "/__mock/"+path, body)
	if err != nil {
		return err
	}
	if r.status != http.StatusOK {
		return failureOf(r)
	}
	if err := json.Unmarshal(r.body, whole); err != nil {
		return fmt.Errorf("the mock's response to %s /__mock/%s can't be read: is it a mock gateway of this version? %w", method, path, err)
	}
	return nil
}
