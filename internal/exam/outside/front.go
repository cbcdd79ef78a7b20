package outside

import (
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"strconv"
	"syscall"
)

// front is the gateway's address for the program. A failure of the round tripper
// is a failure of the connection.
type front struct{ next http.RoundTripper }

// ServeHTTP implements http.Handler.
func (f front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.URL.Scheme, r.URL.Host = "http", r.Host
	resp, err := f.next.RoundTrip(r)
	switch {
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.ECONNREFUSED):
		reset(w)
		return
	case err != nil:
		panic(http.ErrAbortHandler) // the connection ends without a response
	}
	defer func() { _ = resp.Body.Close() }()
	maps.Copy(w.Header(), resp.Header)
	if resp.ContentLength >= 0 {
		w.Header().Set("Content-Length", strconv.FormatInt(resp.ContentLength, 10))
	}
	w.WriteHeader(resp.StatusCode)
	if _, err := io.Copy(w, resp.Body); err != nil {
		_ = http.NewResponseController(w).Flush() // the half of the body that there is
		panic(http.ErrAbortHandler)
	}
}

// reset closes the connection with a reset instead of its regular end.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
