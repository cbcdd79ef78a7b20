package golden

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"sync"
)

// Exchange returns the same response to every request and records the requests. Its
// Respond method is a responder for a mock transport.
type Exchange struct {
	Status int
	Header http.Header // besides Content-Type, which defaults to JSON
	Body   []byte

	mu       sync.Mutex
	requests []Request
}

// Request is a request as it was sent.
type Request struct {
	Method string
	Path   string // escaped
	Query  url.Values
	Header http.Header
	Body   []byte
}

// Respond records the request and returns the response.
func (e *Exchange) Respond(r *http.Request) (*http.Response, error) {
	sent := Request{Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.Query(), Header: r.Header.Clone()}
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		sent.Body = body
	}
	e.mu.Lock()
	e.requests = append(e.requests, sent)
	e.mu.Unlock()
	header := http.Header{"Content-Type": {"application/json"}}
	for name, values := range e.Header {
		header[http.CanonicalHeaderKey(name)] = values
	}
	return &http.Response{
		StatusCode: e.Status, Header: header, Request: r,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: io.NopCloser(bytes.NewReader(e.Body)), ContentLength: int64(len(e.Body)),
	}, nil
}

// Requests returns the requests in order.
func (e *Exchange) Requests() []Request {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]Request(nil), e.requests...)
}

// Only returns the request, and fails the test unless there was exactly one.
func (e *Exchange) Only(tb TB) Request {
	tb.Helper()
	all := e.Requests()
	if len(all) != 1 {
		tb.Fatalf("golden: %d requests were sent instead of one", len(all))
	}
	return all[0]
}
