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
	"github.com/gateway-go/gateway/internal/wire"
)

// attemptOutcome says how an attempt ended, for the retry policy.
type attemptOutcome uint8

const (
	none        attemptOutcome = iota // the attempt has not ended
	responded                         // the gateway itself accepted or rejected the request
	unsent                            // nothing was sent, and the next attempt may succeed: dial, name lookup
	rateLimited                       // 429: the gateway did nothing
	unknown                           // the request may have been applied: reset, timeout, truncated body, 5xx, a response of a proxy
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

// rejects lists the statuses with which the gateway rejects a request: those of
// the interface document, and 412 for an outdated If-Match. Everything else comes
// from something between the client and the gateway, which may have applied the
// request: a redirect, a proxy that gave up, a limit on sizes.
func rejects(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound,
		http.StatusConflict, http.StatusGone, http.StatusPreconditionFailed, http.StatusUnprocessableEntity,
		http.StatusTooManyRequests:
		return true
	default:
		return false
	}
}

// outcomeOfResponse classifies a response. A rejection is definite only if the
// gateway itself sent it, in one of its own formats.
func outcomeOfResponse(method string, status int, body []byte) attemptOutcome {
	switch {
	case status >= 200 && status <= 299:
		return responded
	case !rejects(status), method != http.MethodHead && !wire.FromGateway(body): // a response to HEAD has no body
		return unknown
	case status == http.StatusTooManyRequests:
		return rateLimited
	case status == http.StatusConflict && inProgress(body):
		return unknown
	default:
		return responded
	}
}

func inProgress(body []byte) bool {
	p := wire.DecodeProblem(body)
	return p.InProgress()
}

// Rejection reports whether the problem inside a response with success=false is a
// rejection by the gateway: its own status is one, or it has a code that does not
// report a failure.
func Rejection(p *wire.Problem) bool {
	switch {
	case p.Status == http.StatusConflict:
		return !p.InProgress()
	case p.Status != 0:
		return rejects(p.Status)
	default:
		return p.Code != "" && !p.Failure()
	}
}

// outcomeOfError classifies an attempt without a complete response. What the
// connection trace shows takes precedence over the error, which is misleading if
// a proxy rejects a CONNECT, or if net/http, or a RoundTripper that retries by
// itself, fails to dial when it replays a request that was sent before.
func (c *call) outcomeOfError(timed context.Context, err error) attemptOutcome {
	got := c.connections.got.Load()
	switch {
	case errors.Is(err, errTooLong):
		return responded
	case got == 1 && isClientCertificate(err):
		return permanent
	case got > 0 && (replayable(c.req.Header) || c.foreign):
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

// isClientCertificate reports whether the peer rejected the client's certificate.
// Under TLS 1.3 its alert arrives after the handshake and after the request was
// written, but the peer did not read the request.
func isClientCertificate(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	if !ok || op.Op != "remote error" {
		return false
	}
	alert := op.Err.Error()
	return strings.Contains(alert, "certificate") || strings.HasSuffix(alert, "access denied")
}

// withoutURL removes the URL, whose query may contain personal data, from an
// error.
func withoutURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}
