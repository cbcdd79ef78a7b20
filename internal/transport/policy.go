package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/gateway-go/gateway/internal/spec"
)

// attemptOutcome says how an attempt ended, for the retry policy.
type attemptOutcome uint8

const (
	none        attemptOutcome = iota // the attempt has not ended
	responded                         // there is a final response
	unsent                            // nothing was sent, and the next attempt may succeed: dial, name lookup
	rateLimited                       // 429: the gateway did nothing
	unknown                           // the request may have been applied: reset, timeout, truncated body, 5xx
	permanent                         // nothing was sent, and the next attempt would fail too: certificate, proxy, credential
)

// retryable reports whether an operation of class c is retried after e.
func (e attemptOutcome) retryable(c spec.Class) bool {
	switch e {
	case unsent, rateLimited:
		return true
	case unknown:
		return c != spec.Unsafe
	case none, responded, permanent:
		return false
	default:
		return false
	}
}

func outcomeOfStatus(status int) attemptOutcome {
	switch {
	case status == http.StatusTooManyRequests:
		return rateLimited
	case status == http.StatusRequestTimeout, status >= 500:
		return unknown
	default:
		return responded
	}
}

// outcomeOfError classifies an attempt without a complete response. What the
// connection trace shows takes precedence over the error, which is misleading if
// a proxy rejects a CONNECT, or if net/http fails to dial when it replays a
// request that was sent before.
func (c *call) outcomeOfError(timed context.Context, err error) attemptOutcome {
	switch {
	case errors.Is(err, errTooLong):
		return responded
	case c.connections.got.Load() > 0 && replayable(c.req.Header):
		return unknown
	case isCertificate(err):
		return permanent
	case isUnsent(err), c.connections.none() && (timed.Err() != nil || transient(err)):
		return unsent
	case c.connections.none():
		return permanent
	default:
		return unknown
	}
}

// connections records what net/http reports about an attempt's connections. The
// caller's own RoundTripper may report nothing.
type connections struct {
	wanted atomic.Bool
	got    atomic.Int32
}

func (s *connections) want(string)                  { s.wanted.Store(true) }
func (s *connections) take(_ httptrace.GotConnInfo) { s.got.Add(1) }

// none reports that the attempt requested a connection and never got one.
func (s *connections) none() bool { return s.wanted.Load() && s.got.Load() == 0 }

func (s *connections) reset() {
	s.wanted.Store(false)
	s.got.Store(0)
}

// replayed reports whether net/http may have sent the attempt's request twice.
// The first may have been applied, whatever the response to the second is.
func (c *call) replayed() bool { return c.connections.got.Load() > 1 && replayable(c.req.Header) }

// replayable reports whether net/http may replay a write with these headers on
// its own.
func replayable(h http.Header) bool {
	return h["Idempotency-Key"] != nil || h["X-Idempotency-Key"] != nil
}

func isUnsent(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return errors.As(err, &dns) || errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect") ||
		strings.Contains(err.Error(), "TLS handshake timeout") // an unexported type of net/http
}

// transient reports whether a handshake that failed with err may succeed later,
// because it timed out or was cut off. TLS alerts and rejections by a proxy are
// permanent.
func transient(err error) bool {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Op != "remote error" && op.Op != "local error" // alerts
	}
	var timeout interface{ Timeout() bool }
	return errors.Is(err, io.EOF) || errors.As(err, &timeout) && timeout.Timeout()
}

// isCertificate reports whether the gateway's certificate was rejected or the peer
// does not speak TLS. In both cases no request was sent, and retrying won't help.
func isCertificate(err error) bool {
	var (
		verification *tls.CertificateVerificationError
		authority    x509.UnknownAuthorityError
		hostname     x509.HostnameError
		invalid      x509.CertificateInvalidError
		record       tls.RecordHeaderError
	)
	return errors.As(err, &verification) || errors.As(err, &authority) || errors.As(err, &hostname) ||
		errors.As(err, &invalid) || errors.As(err, &record)
}

// withoutURL removes the URL, whose query may contain personal data, from an
// error.
func withoutURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}
