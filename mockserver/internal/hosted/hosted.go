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

	"github.com/gateway-go/gateway/mockserver/internal/core"
	"github.com/gateway-go/gateway/mockserver/internal/httpapi"
	"github.com/gateway-go/gateway/mockserver/internal/respond"
)

// Pages serves the checkout pages of every account. It is safe for concurrent
// use.
type Pages struct {
	core   *core.Core
	origin *http.CrossOriginProtection
}

// New returns the pages.
func New(c *core.Core) *Pages {
	return &Pages{core: c, origin: http.NewCrossOriginProtection()}
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
