package bench_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
)

// A list has listSize items, in pages of pageSize.
const (
	listSize = 10_000
	pageSize = 100
	pages    = listSize / pageSize
)

// backend responds to one contestant with prepared bytes, so that only the
// client's work is measured.
type backend struct {
	one    []byte                  // the response to a create and a read
	list   func(n int) []byte      // renders page n, from 0
	pageOf func(*http.Request) int // the page of a list request; negative for other requests

	pages [pages][]byte
}

// prepare renders the pages of the list.
func (b *backend) prepare() {
	for n := range b.pages {
		b.pages[n] = b.list(n)
	}
}

func (b *backend) respond(r *http.Request) (status int, body []byte) {
	if r.Method != http.MethodGet {
		return http.StatusCreated, b.one
	}
	if n := b.pageOf(r); n >= 0 {
		return http.StatusOK, b.pages[n]
	}
	return http.StatusOK, b.one
}

// memory is a transport without a network.
type memory struct{ *backend }

func (m memory) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return nil, err
		}
		if err := r.Body.Close(); err != nil {
			return nil, err
		}
	}
	status, body := m.respond(r)
	return &http.Response{
		Status:        strconv.Itoa(status) + " " + http.StatusText(status),
		StatusCode:    status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        http.Header{"Content-Type": {"application/json"}, "X-Request-Id": {"req_0001"}},
		Body:          io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)),
		Request:       r,
	}, nil
}

// ServeHTTP responds in the same way over a loopback connection.
func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	status, body := b.respond(r)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// network is how a contestant reaches its backend.
type network struct {
	transport http.RoundTripper
	base      string
}

func inMemory(b *backend) network { return network{memory{b}, "https://api.example.com"} }

func loopback(tb testing.TB, b *backend) network {
	tb.Helper()
	server := httptest.NewServer(b)
	transport := &http.Transport{MaxIdleConnsPerHost: 8}
	tb.Cleanup(func() {
		transport.CloseIdleConnections()
		server.Close()
	})
	return network{transport, server.URL}
}

// recorder records the size of the last request body.
type recorder struct {
	memory
	sent int
}

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	r.sent = 0
	if req.Body != nil {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		r.sent = len(body)
		req.Body = io.NopCloser(bytes.NewReader(body))
	}
	return r.memory.RoundTrip(req)
}

// queryPage returns a backend.pageOf that reads the page number from a query parameter.
// The number of the first page is first.
func queryPage(path, name string, first int) func(*http.Request) int {
	return func(r *http.Request) int {
		if r.URL.Path != path {
			return -1
		}
		n, err := strconv.Atoi(r.URL.Query().Get(name))
		if err != nil {
			return 0
		}
		return n - first
	}
}

// afterPage returns a backend.pageOf that derives the page from the last id of the
// previous page.
func afterPage(path, name string) func(*http.Request) int {
	return func(r *http.Request) int {
		if r.URL.Path != path {
			return -1
		}
		after := r.URL.Query().Get(name)
		if after == "" {
			return 0
		}
		n, err := strconv.Atoi(after[len(after)-8:])
		if err != nil {
			return -1
		}
		return (n + 1) / pageSize
	}
}

// itemDigits are the last digits of every fixture's id, which items replaces with the
// number of the item.
const itemDigits = "00000000"

// items returns the items of page n: copies of a resource with different ids.
func items(resource string, n int) string {
	var b strings.Builder
	for i := range pageSize {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strings.Replace(resource, itemDigits, number(n*pageSize+i), 1))
	}
	return b.String()
}

func number(n int) string {
	s := strconv.Itoa(n)
	return itemDigits[len(s):] + s
}

// compact removes the whitespace of a fixture.
func compact(s string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(s, "\n") {
		b.WriteString(strings.TrimSpace(line))
	}
	return b.String()
}
