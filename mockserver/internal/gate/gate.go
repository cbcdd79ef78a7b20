// Package gate checks every request before the gateway handles it. It rejects
// requests from web pages that reach this machine under a host name of their own (DNS
// rebinding), and requests from clients that never finish sending their body.
package gate

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/gateway-go/gateway/mockserver/internal/respond"
)

// BodyTimeout is how long a request body may take to arrive.
const BodyTimeout = 30 * time.Second

// Gate is a handler that passes allowed requests on to Next.
type Gate struct {
	Next http.Handler
	// Hosts are the host names that are allowed besides those of this machine;
	// "*" allows any.
	Hosts []string
	// Open reports whether a request is allowed under any host name. If it is
	// nil, none is.
	Open func(*http.Request) bool
	// Strict reports whether a request is checked even if it did not arrive over
	// a socket. If it is nil, in-memory requests may use any host name.
	Strict func(*http.Request) bool
	// Rejected, if not nil, is called with each request whose host name is not
	// allowed.
	Rejected func(*http.Request)
	// BodyTimeout is how long a body may take; 0 means [BodyTimeout].
	BodyTimeout time.Duration
}

func (g *Gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	socket := r.Context().Value(http.LocalAddrContextKey) != nil
	if !socket && (g.Strict == nil || !g.Strict(r)) {
		g.Next.ServeHTTP(w, r)
		return
	}
	next := g.Next
	if !g.allows(r) {
		next = http.HandlerFunc(foreign)
		if g.Rejected != nil {
			g.Rejected(r)
		}
	}
	if !socket || r.Body == nil || r.Body == http.NoBody {
		next.ServeHTTP(w, r)
		return
	}
	g.timed(next, w, r)
}

func foreign(w http.ResponseWriter, r *http.Request) {
	respond.Write(w, http.StatusMisdirectedRequest, respond.ProblemJSON, respond.NewProblem(r, http.StatusMisdirectedRequest, "FOREIGN_HOST",
		"The mock gateway rejects the host name "+r.Host+" to protect against DNS rebinding. "+
			"Call it by IP address or as localhost, or allow the name with -allow-host (in Go, WithAllowedHosts)."))
}

func (g *Gate) allows(r *http.Request) bool {
	return Allowed(r.Host, g.Hosts) || g.Open != nil && g.Open(r)
}

// Allowed reports whether a Host header is one that no foreign web page can
// have: a name of this machine, an IP address, example.com, which package
// httptest uses, or one of names.
func Allowed(host string, names []string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	for _, own := range [...]string{"localhost", "example.com"} {
		if host == own || strings.HasSuffix(host, "."+own) {
			return true
		}
	}
	if _, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")); err == nil {
		return true // DNS rebinding needs a host name
	}
	return slices.ContainsFunc(names, func(name string) bool {
		return name == "*" || strings.EqualFold(name, host)
	})
}
