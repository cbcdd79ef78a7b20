package transport

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// ending is how an attempt ended, as far as trying again goes.
type ending uint8

const (
	none     ending = iota // not yet
	answered               // with an answer that stands
	unsent                 // nothing was sent: dial, name lookup
	limited                // 429: the gateway says that it did nothing
	unsure                 // it may have been applied: reset, timeout, cut body, 5xx
	refused                // it can't succeed however often: certificate, credential
)

// retryable is the retry table.
func (e ending) retryable(c Class) bool {
	switch e {
	case unsent, limited:
		return true
	case unsure:
		return c != Unsafe
	case none, answered, refused:
		return false
	default:
		return false
	}
}

func endingOf(status int) ending {
	switch {
	case status == http.StatusTooManyRequests:
		return limited
	case status == http.StatusRequestTimeout, status >= 500 && status != http.StatusNotImplemented:
		return unsure
	default:
		return answered
	}
}

func endingOfError(err error) ending {
	var op *net.OpError
	var dns *net.DNSError
	switch {
	case errors.Is(err, errTooLong):
		return answered
	case isCertificate(err):
		return refused
	case errors.As(err, &dns), errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect"),
		strings.Contains(err.Error(), "TLS handshake timeout"): // a type that net/http keeps to itself
		return unsent
	default:
		return unsure
	}
}

// isCertificate reports whether the gateway's certificate was refused, or the
// other side speaks no TLS: no request was sent, and none will be.
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

// withoutURL takes the URL, whose query may name people, off an error.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
