package httpapi

import (
	"encoding/base64"
	"net/http"
	"strings"
	"sync"
	"time"
)

// apiKeyHeader is apiKey in net/http's canonical form; header names are case-insensitive.
const apiKeyHeader = "Apikey"

// maxKey is the maximum length of an account's key.
const maxKey = 256

// authenticate returns the key of a request's account. Any secret key of the
// server's environment opens its own account, unless it replaces another one.
func (a *API) authenticate(r *http.Request, legacy bool) (string, *problem) {
	key, p := a.identify(r, legacy)
	switch {
	case p != nil:
		return "", p
	case a.cfg.Keys.Revoked(key):
		return "", unauthorized("The API key has been revoked.")
	default:
		return a.cfg.Keys.Account(key), nil
	}
}

// identify returns the key of a request.
func (a *API) identify(r *http.Request, legacy bool) (string, *problem) {
	keys, ok := a.credentials(r.Header)
	switch {
	case len(keys) == 0 && ok:
		return "", unauthorized("Credentials are missing: send Authorization: Bearer <API key>, or the apiKey header.")
	case !ok:
		return "", unauthorized("The Authorization header is neither Bearer <API key> nor Basic base64(<API key>:x).")
	case legacy && r.Header.Get(apiKeyHeader) == "":
		return "", unauthorized("v1 accepts the API key in the apiKey header only.")
	}
	for _, key := range keys[1:] {
		if key != keys[0] {
			return "", unauthorized("The request has two different credentials: send only one.")
		}
	}
	return keys[0], a.admit(keys[0])
}

// credentials returns every key in a request, and whether all of its
// Authorization headers are well formed.
func (a *API) credentials(h http.Header) (keys []string, ok bool) {
	for _, v := range h.Values("Authorization") {
		scheme, text, _ := strings.Cut(v, " ")
		text = strings.TrimSpace(text)
		switch {
		case strings.EqualFold(scheme, "Bearer") && text != "":
			keys = append(keys, text)
		case strings.EqualFold(scheme, "Basic"):
			b, err := base64.StdEncoding.DecodeString(text)
			key, found := strings.CutSuffix(string(b), ":x")
			if err != nil || !found || key == "" {
				return nil, false
			}
			if key == "token" && a.cfg.BasicTokenX != "" {
				key = a.cfg.BasicTokenX
			}
			keys = append(keys, key)
		default:
			return nil, false
		}
	}
	for _, v := range h.Values(apiKeyHeader) {
		if v != "" {
			keys = append(keys, v)
		}
	}
	return keys, true
}

// admit checks whether a key is valid on this server. A test key requests a
// rejection with the text after its prefix, such as sk_test_revoked.
func (a *API) admit(key string) *problem {
	own, other, where := "sk_test_", "sk_live_", "production"
	if a.cfg.Production {
		own, other, where = other, own, "sandbox"
	}
	name, ok := strings.CutPrefix(key, own)
	switch {
	case strings.HasPrefix(key, other):
		return unauthorized("This key is for the " + where + " environment.")
	case strings.HasPrefix(key, "pk_"):
		return unauthorized("This is a public key, which is for browsers only: send the secret key.")
	case !ok || name == "" || len(key) > maxKey:
		return unauthorized("The API key is unknown: this environment's keys begin with " + own + ".")
	case strings.HasPrefix(name, "revoked"):
		return unauthorized("The API key has been revoked.")
	case strings.HasPrefix(name, "forbidden"):
		return &problem{status: http.StatusForbidden, code: "FORBIDDEN", detail: "The API key does not have access to this resource."}
	case strings.HasPrefix(name, "limited") && !a.limiter.allow(key, time.Now()):
		return &problem{
			status: http.StatusTooManyRequests, code: "RATE_LIMITED",
			detail: "More than 5 requests were sent in one second: wait before you retry.",
			header: [2]string{"Retry-After", "1"},
		}
	}
	return nil
}

func unauthorized(detail string) *problem {
	return &problem{
		status: http.StatusUnauthorized, code: "UNAUTHORIZED", detail: detail,
		header: [2]string{"WWW-Authenticate", "Bearer"},
	}
}

// limiter lets each key make limit requests in any second of wall time.
type limiter struct {
	mu    sync.Mutex
	last  map[string][]time.Time // the latest accepted requests
	swept time.Time              // when keys were last dropped
}

const (
	limit      = 5
	maxLimited = 1000 // remembered keys; exceeded only by keys used within the last second
)

func (l *limiter) allow(key string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	times := l.last[key]
	if len(times) == limit && now.Sub(times[0]) < time.Second {
		return false
	}
	if l.last == nil || len(l.last) >= maxLimited && now.Sub(l.swept) >= time.Second {
		l.forget(now)
	}
	l.last[key] = append(times[max(0, len(times)-limit+1):], now)
	return true
}

// forget drops the keys whose latest request no longer counts. It visits
// every key, so it runs at most once a second.
func (l *limiter) forget(now time.Time) {
	busy := map[string][]time.Time{}
	for key, times := range l.last {
		if now.Sub(times[len(times)-1]) < time.Second {
			busy[key] = times
		}
	}
	l.last, l.swept = busy, now
}
