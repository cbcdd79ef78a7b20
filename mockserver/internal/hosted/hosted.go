// Package hosted is the checkout page behind data.url of a checkout link, on
// which a buyer pays: plain HTML forms that work without JavaScript.
//
// The page has no rules of its own. It fills in a session and starts its payment
// with the calls of package httpapi. A bank's actions are transitions of package
// engine, so webhooks, limits and timers are those of any other payment. It
// never asks for a card number: a buyer chooses the outcome of a test card.
package hosted

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/httpapi"
	"github.com/gateway-go/gateway/mockserver/internal/respond"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// Config configures Pages. All fields but Dialect and Console are required.
type Config struct {
	Store *store.Store
	Now   func() time.Time // the virtual clock
	// ServeAs serves a request of the interface for the account of a key.
	ServeAs func(key string, w http.ResponseWriter, r *http.Request)
	Dialect spec.Dialect
	// Console returns the path of the console's pages about the account of a key. It is
	// nil if there is no console.
	Console func(key string) string
}

// Pages serves the checkout pages of every account. It is safe for concurrent
// use.
type Pages struct {
	cfg    Config
	origin *http.CrossOriginProtection
}

// New returns the pages.
func New(cfg Config) *Pages {
	return &Pages{cfg: cfg, origin: http.NewCrossOriginProtection()}
}

// Operations lists the page requests that have a name in the journal and that
// faults can target.
func Operations() []spec.Operation {
	return []spec.Operation{
		{Name: "checkout_links.page", Method: http.MethodGet, Path: httpapi.PagePath + "{slug}"},
		{Name: "checkout_links.submit", Method: http.MethodPost, Path: httpapi.PagePath + "{slug}"},
	}
}

// Serves reports whether a request is for a page or one of its files.
func Serves(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, httpapi.PagePath) }

// Quiet reports whether a request is left out of the journal: those for the
// page's files, and the page's polls for changes every second.
func Quiet(r *http.Request) bool {
	_, rest, found := strings.Cut(strings.TrimPrefix(r.URL.Path, httpapi.PagePath), "/")
	return Serves(r) && found && rest != ""
}

// Operation returns the name of a request to a page, "" if it has none.
func Operation(r *http.Request) string {
	if Serves(r) && !Quiet(r) {
		for _, op := range Operations() {
			if op.Method == r.Method || op.Method == http.MethodGet && r.Method == http.MethodHead {
				return op.Name
			}
		}
	}
	return ""
}

// Account returns the key of the account whose page a request is for, "" if
// there is none.
func (p *Pages) Account(r *http.Request) string {
	slug, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, httpapi.PagePath), "/")
	return p.owner(slug)
}

// ServeHTTP implements http.Handler.
func (p *Pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	slug, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, httpapi.PagePath), "/")
	v := &visit{pages: p, w: w, r: r, words: choose(r)}
	switch {
	case slug == "assets":
		v.asset(rest)
	case !v.find(slug) || rest != "" && rest != "status":
		v.render(http.StatusNotFound, &page{State: "missing"})
	case rest == "status" && v.allows(http.MethodGet):
		v.status()
	case rest == "" && r.Method == http.MethodPost:
		v.submit()
	case rest == "" && v.allows(http.MethodGet, http.MethodPost):
		v.show()
	}
}

// allows rejects every method but the given ones.
func (v *visit) allows(methods ...string) bool {
	if slices.Contains(methods, v.r.Method) || v.r.Method == http.MethodHead && slices.Contains(methods, http.MethodGet) {
		return true
	}
	v.w.Header().Set("Allow", respond.Allow(methods))
	v.render(http.StatusMethodNotAllowed, &page{State: "failed"})
	return false
}

// secure sets the security headers of a page: no inline script or style, no
// other host, no framing, and no referrer for the merchant's site.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "+
		"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cache-Control", "no-store")
}

// The cookies of the page. The session cookie is Lax, not Strict, so that a buyer
// who returns from the merchant's site finds the same payment.
const (
	sessionCookie  = "checkout_session"
	languageCookie = "checkout_language"
)

// remember stores a session's token in the buyer's browser, for this link's
// page only.
func (v *visit) remember(token string) {
	const week = 7 * 24 * 60 * 60 // longer than any payment stays pending
	age := week
	if token == "" {
		age = -1
	}
	v.cookie(&http.Cookie{Name: sessionCookie, Value: token, Path: httpapi.PagePath + v.link.Slug, MaxAge: age})
}

func (v *visit) cookie(c *http.Cookie) {
	c.HttpOnly, c.SameSite = true, http.SameSiteLaxMode
	c.Secure = v.r.TLS != nil || v.r.Header.Get("X-Forwarded-Proto") == "https"
	http.SetCookie(v.w, c)
}

// formToken returns the CSRF token of a page's forms. It is derived from the
// session's token, which only the session cookie has.
func formToken(session string) string {
	sum := sha256.Sum256([]byte("checkout form " + session))
	return hex.EncodeToString(sum[:16])
}

func sameToken(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
