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
	one    []byte                  // the resource, to a create and a read
	list   func(n int) []byte      // page n, from 0
	pageOf func(*http.Request) int // of a list request; below 0 it is none

	pages [pages][]byte
}

// ready makes the pages of the list.
func (b *backend) ready() {
	for n := range b.pages {
		b.pages[n] = b.list(n)
	}
}

func (b *backend) answer(r *http.Request) (status int, body []byte) {
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
	status, body := m.answer(r)
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

// ServeHTTP is the same over a loopback connection.
func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	status, body := b.answer(r)
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

// recorder keeps the size of the last request body.
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

// queryPage reads a page number from a query parameter, counted from first;
// below 0 the request is not for a list.
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

// afterPage derives the page from the last id of the previous page, as made by
// itemID.
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

// The last eight digits of every id of a fixture number the item.
const itemDigits = "00000000"

// items writes the items of page n, made from a resource.
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
