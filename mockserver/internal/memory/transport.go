// Package memory connects an HTTP client and a handler in one process: no
// socket and no port, so it works inside a testing/synctest bubble.
package memory

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime/debug"
	"strconv"
	"sync"
	"syscall"
)

// RemoteAddr is the client's address that handlers see.
const RemoteAddr = "127.0.0.1:0"

// ErrPanic is wrapped in the client's error if the handler panicked. The panic's value
// and stack follow it.
var ErrPanic = errors.New("the handler panicked")

// Transport is an http.RoundTripper that calls a handler on its own goroutine. When
// the request's context ends, RoundTrip returns immediately and the handler's context is
// canceled. The response is returned once the handler has returned, so handlers must not
// stream forever.
type Transport struct {
	Handler http.Handler

	// Inline reports which requests the handler serves without waiting for
	// anything but their context. They run on the caller's goroutine, which
	// saves two context switches and the growth of a stack. Nil means none.
	Inline func(*http.Request) bool
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	r, err := serverRequest(req)
	if err == nil {
		err = context.Cause(req.Context())
	}
	if err != nil {
		closeBody(req)
		return nil, err
	}
	w := &responseWriter{header: make(http.Header), head: req.Method == http.MethodHead}
	if !t.inline(req) {
		return w.serveOnGoroutine(t.Handler, r, req)
	}
	w.serve(t.Handler, r)
	closeBody(req)
	if err := context.Cause(req.Context()); err != nil {
		return nil, err // the context ended first
	}
	return w.response(req)
}

// inline reports whether a request may run on the caller's goroutine. A body
// with GetBody is in memory: reading it never blocks.
func (t *Transport) inline(req *http.Request) bool {
	inMemory := req.Body == nil || req.Body == http.NoBody || req.GetBody != nil
	return inMemory && t.Inline != nil && t.Inline(req)
}

// serveOnGoroutine runs the handler on a separate goroutine.
func (w *responseWriter) serveOnGoroutine(h http.Handler, r, req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	r = r.WithContext(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer closeBody(req)
		defer cancel()
		w.serve(h, r)
	}()
	select {
	case <-done:
		return w.response(req)
	case <-req.Context().Done():
		cancel()
		return nil, context.Cause(req.Context())
	}
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}

// serverRequest converts a client's request into one like those that net/http
// passes to handlers.
func serverRequest(req *http.Request) (*http.Request, error) {
	uri := req.URL.RequestURI()
	u, err := url.ParseRequestURI(uri)
	if err != nil {
		return nil, fmt.Errorf("request address: %w", err)
	}
	r := req.WithContext(req.Context())
	r.Header = req.Header.Clone()
	r.URL, r.RequestURI, r.RemoteAddr = u, uri, RemoteAddr
	r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/1.1", 1, 1
	r.Response, r.GetBody = nil, nil
	if r.Method == "" {
		r.Method = http.MethodGet
	}
	if r.Host == "" {
		r.Host = req.URL.Host
	}
	if r.Body == nil {
		r.Body = http.NoBody
	}
	if r.Header == nil {
		r.Header = make(http.Header)
	}
	if r.Body != http.NoBody && r.ContentLength == 0 {
		r.ContentLength = -1 // for a client, 0 with a body means unknown
	}
	if user := req.URL.User; user != nil && r.Header.Get("Authorization") == "" {
		password, _ := user.Password()
		r.SetBasicAuth(user.Username(), password)
	}
	return r, nil
}

// Aborter is a response writer whose connection can be aborted with a given
// error. Everything written before is lost, as in a reset.
type Aborter interface{ Abort(err error) }

// Reset resets the connection of w, as if the server had died: an in-memory client
// gets an error that matches syscall.ECONNRESET, and a client on a socket gets a TCP
// reset. Reset does not return: it ends the handler.
func Reset(w http.ResponseWriter) { abort(w, "read", syscall.ECONNRESET) }

// Refuse is like Reset, for a server that is down: an in-memory client gets a dial
// error that matches syscall.ECONNREFUSED, and a client on a socket gets a reset.
func Refuse(w http.ResponseWriter) { abort(w, "dial", syscall.ECONNREFUSED) }

func abort(w http.ResponseWriter, op string, errno syscall.Errno) {
	call := op
	if op == "dial" {
		call = "connect"
	}
	Abort(w, &net.OpError{
		Op: op, Net: "tcp", Source: addr("client"), Addr: addr("gateway"), Err: os.NewSyscallError(call, errno),
	})
	panic(http.ErrAbortHandler)
}

// Abort resets the connection of w: an in-memory client gets err, and a client on a socket
// gets a TCP reset.
func Abort(w http.ResponseWriter, err error) {
	for inner := w; inner != nil; {
		if a, ok := inner.(Aborter); ok {
			a.Abort(err)
			return
		}
		u, ok := inner.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			break
		}
		inner = u.Unwrap()
	}
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		if secure, ok := conn.(*tls.Conn); ok {
			conn = secure.NetConn()
		}
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = conn.Close()
	}
}

type addr string

func (addr) Network() string { return "memory" }

func (a addr) String() string { return string(a) }

// responseWriter is the response writer of one request.
type responseWriter struct {
	header http.Header
	sent   http.Header // the header when the status was written
	status int
	body   *bytes.Buffer // nil before the first byte
	head   bool          // the method is HEAD: no body is sent
	failed error         // the client's error instead of a response
	cut    bool          // the body is truncated
}

// serve runs the handler and treats a panic as a server does: it closes the
// connection.
func (w *responseWriter) serve(h http.Handler, r *http.Request) {
	defer func() {
		switch p := recover(); {
		case p == nil || w.failed != nil:
		case p == http.ErrAbortHandler: //nolint:errorlint // net/http compares the panic's value in the same way
			w.abandon()
		default:
			w.failed = fmt.Errorf("%w: %v\n%s", ErrPanic, p, debug.Stack())
		}
	}()
	h.ServeHTTP(w, r)
}

// abandon simulates a connection that is closed before the response or in its body.
func (w *responseWriter) abandon() {
	if w.status == 0 {
		w.failed = io.EOF
		return
	}
	w.cut = true
}

func (w *responseWriter) Abort(err error) { w.failed = err }

// Header implements http.ResponseWriter. Changes after the status was written
// are not sent.
func (w *responseWriter) Header() http.Header {
	if w.header == nil {
		w.header = w.sent.Clone()
	}
	return w.header
}

func (w *responseWriter) WriteHeader(status int) {
	if w.status != 0 || status < http.StatusOK {
		return
	}
	w.status, w.sent, w.header = status, w.header, nil
}

func (w *responseWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if !bodyAllowed(w.status) {
		return 0, http.ErrBodyNotAllowed
	}
	if w.head {
		return len(b), nil
	}
	if w.body == nil {
		w.body = newBuffer()
	}
	return w.body.Write(b)
}

// Flush implements http.Flusher. It writes only the status.
func (w *responseWriter) Flush() { w.WriteHeader(http.StatusOK) }

func bodyAllowed(status int) bool {
	return status != http.StatusNoContent && status != http.StatusNotModified
}

// response returns the client's response. It is called when the handler has
// returned.
func (w *responseWriter) response(req *http.Request) (*http.Response, error) {
	if w.failed != nil {
		return nil, w.failed
	}
	w.WriteHeader(http.StatusOK)
	var length int64
	if w.body != nil {
		length = int64(w.body.Len())
	}
	if declared, err := strconv.ParseInt(w.sent.Get("Content-Length"), 10, 64); err == nil {
		w.cut = w.cut || (length < declared && !w.head)
		length = declared
	} else if w.cut {
		length = -1
	}
	return &http.Response{
		Status:        strconv.Itoa(w.status) + " " + http.StatusText(w.status),
		StatusCode:    w.status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        w.sent,
		Body:          &body{buf: w.body, cut: w.cut},
		ContentLength: length,
		Request:       req,
	}, nil
}

// body is a response's body. Its memory is reused once it is closed.
type body struct {
	mu  sync.Mutex    // Close may be called during a Read
	buf *bytes.Buffer // nil if the body is empty
	cut bool          // the connection broke before the end of the body

	closed bool
}

func (b *body) Read(to []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return 0, http.ErrBodyReadAfterClose
	case b.buf != nil && b.buf.Len() > 0:
		return b.buf.Read(to)
	case b.cut:
		return 0, io.ErrUnexpectedEOF
	default:
		return 0, io.EOF
	}
}

func (b *body) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.buf != nil && b.buf.Cap() <= maxBuffer {
		b.buf.Reset()
		buffers.Put(b.buf)
	}
	b.buf, b.closed = nil, true
	return nil
}

// buffers holds response buffers for reuse, up to maxBuffer long.
var buffers sync.Pool

const maxBuffer = 64 << 10

func newBuffer() *bytes.Buffer {
	if buf, ok := buffers.Get().(*bytes.Buffer); ok {
		return buf
	}
	return new(bytes.Buffer)
}

var _ interface {
	http.ResponseWriter
	http.Flusher
	Aborter
} = (*responseWriter)(nil)
