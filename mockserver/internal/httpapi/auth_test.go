package httpapi_test

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/mockserver/internal/httpapi"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

func basic(credential string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(credential))
}

func TestAuthentication(t *testing.T) {
	t.Parallel()
	tokenX := func(hc *httpapi.Config, _ *store.Config) { hc.BasicTokenX = "sk_test_x" }
	for _, row := range []struct {
		name   string
		status int // of a read of the list
		header []string
		change []option
	}{
		{"bearer", 200, []string{"Authorization", "Bearer sk_test_1"}, nil},
		{"bearer in any case", 200, []string{"Authorization", "bearer sk_test_1"}, nil},
		{"apiKey", 200, []string{"apiKey", "sk_test_1"}, nil},
		{"apiKey in any case", 200, []string{"APIKEY", "sk_test_1"}, nil},
		{"basic", 200, []string{"Authorization", basic("sk_test_1:x")}, nil},
		{"basic, other password", 401, []string{"Authorization", basic("sk_test_1:y")}, nil},
		{"basic, no password", 401, []string{"Authorization", basic("sk_test_1")}, nil},
		{"basic, no username", 401, []string{"Authorization", basic(":x")}, nil},
		{"basic, no base64", 401, []string{"Authorization", "Basic sk_test_1:x"}, nil},
		{"basic, base64 and more", 401, []string{"Authorization", basic("sk_test_1:x") + "!"}, nil},
		{"basic token:x", 401, []string{"Authorization", basic("token:x")}, nil},
		{"basic token:x, mapped", 200, []string{"Authorization", basic("token:x")}, []option{tokenX}},
		{"bearer token, mapped only for basic", 401, []string{"Authorization", "Bearer token"}, []option{tokenX}},
		{"none", 401, nil, nil},
		{"empty apiKey", 401, []string{"apiKey", ""}, nil},
		{"bearer without a key", 401, []string{"Authorization", "Bearer "}, nil},
		{"bare key", 401, []string{"Authorization", "sk_test_1"}, nil},
		{"other scheme", 401, []string{"Authorization", "Digest sk_test_1"}, nil},
		{"the same twice", 200, []string{"Authorization", "Bearer sk_test_1", "apiKey", "sk_test_1"}, nil},
		{"two that differ", 401, []string{"Authorization", "Bearer sk_test_1", "apiKey", "sk_test_2"}, nil},
		{"a malformed one beside a valid one", 401, []string{"Authorization", "Digest x", "apiKey", "sk_test_1"}, nil},
		{"production key", 401, []string{"apiKey", "sk_live_1"}, nil},
		{"sandbox key in production", 401, []string{"apiKey", "sk_test_1"}, []option{production}},
		{"production key in production", 200, []string{"apiKey", "sk_live_1"}, []option{production}},
		{"public key", 401, []string{"apiKey", "pk_test_1"}, nil},
		{"no known kind of key", 401, []string{"apiKey", "secret"}, nil},
		{"a prefix only", 401, []string{"apiKey", "sk_test_"}, nil},
		{"a key of 256 characters", 200, []string{"apiKey", "sk_test_" + strings.Repeat("k", 248)}, nil},
		{"a key too long", 401, []string{"apiKey", "sk_test_" + strings.Repeat("k", 249)}, nil},
		{"revoked", 401, []string{"apiKey", "sk_test_revoked_1"}, nil},
		{"forbidden", 403, []string{"apiKey", "sk_test_forbidden_1"}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			m := newMock(t, row.change...)
			r := httptest.NewRequest(http.MethodGet, "/v2/transactions", nil)
			for i := 0; i+1 < len(row.header); i += 2 {
				r.Header.Add(row.header[i], row.header[i+1])
			}
			a := m.serve(r)
			switch row.status {
			case http.StatusOK:
				assert.Equal(t, row.status, a.Status, string(a.Body))
			case http.StatusForbidden:
				a.problem(row.status, "FORBIDDEN")
				assert.Equal(t, "Forbidden", a.at("title"))
			default:
				a.problem(row.status, "UNAUTHORIZED")
				assert.Equal(t, "Unauthorized", a.at("title"))
				assert.NotContains(t, string(a.Body), "sk_test_1", "a key is never repeated")
			}
		})
	}
}

func TestTwoAuthorizationHeaders(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodGet, "/v2/transactions", nil)
	r.Header.Add("Authorization", "Bearer sk_test_1")
	r.Header.Add("Authorization", "Bearer sk_test_2")
	newMock(t).serve(r).problem(401, "UNAUTHORIZED")
}

// Any key opens its own empty account, and the three ways of sending it open
// the same one.
func TestKeysOpenAccounts(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	m.create(charge())
	assert.InDelta(t, 1, m.call(http.MethodGet, "/v2/transactions", "").at("data.total"), 0)
	assert.InDelta(t, 1, m.call(http.MethodGet, "/v2/transactions", "", "Authorization", basic(key+":x")).at("data.total"), 0)
	assert.InDelta(t, 1, m.call(http.MethodGet, "/v2/transactions", "", "Authorization", "", "apiKey", key).at("data.total"), 0)
	assert.InDelta(t, 0, m.call(http.MethodGet, "/v2/transactions", "", "Authorization", "Bearer sk_test_new").at("data.total"), 0)
}

// Only the user token stands for the key that it is mapped to.
func TestTokenXOpensItsAccount(t *testing.T) {
	t.Parallel()
	m := newMock(t, func(hc *httpapi.Config, _ *store.Config) { hc.BasicTokenX = key })
	m.create(charge())
	for user, total := range map[string]float64{"token": 1, key: 1, "sk_test_other": 0} {
		assert.InDelta(t, total, m.call(http.MethodGet, "/v2/transactions", "", "Authorization", basic(user+":x")).at("data.total"), 0, user)
	}
}

func TestRateLimitedKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMock(t)
		read := func() response {
			return m.call(http.MethodGet, "/v2/transactions", "", "Authorization", "Bearer sk_test_limited_1")
		}
		for range 5 {
			require.Equal(t, http.StatusOK, read().Status)
		}
		a := read().problem(429, "RATE_LIMITED")
		assert.Equal(t, "1", a.Header.Get("Retry-After"))
		time.Sleep(time.Second - time.Millisecond)
		assert.Equal(t, http.StatusTooManyRequests, read().Status, "a rejected request does not count")
		time.Sleep(time.Millisecond)
		for range 5 {
			assert.Equal(t, http.StatusOK, read().Status)
		}
		assert.Equal(t, http.StatusTooManyRequests, read().Status)
	})
}

// A client that makes up keys can neither fill the memory nor reset the limit
// of another key.
func TestRateLimitedKeysAreForgotten(t *testing.T) {
	t.Parallel()
	var l httpapi.Limiter
	now := time.Now()
	for n := range 10_000 {
		now = now.Add(time.Millisecond)
		assert.True(t, l.Allow(strconv.Itoa(n), now))
		if n >= 500 { // so that no keys are forgotten in its seconds
			assert.Equal(t, (n-500)%1000 < 5, l.Allow("busy", now), n)
		}
	}
	assert.LessOrEqual(t, l.Keys(), 2000)
}

// Authentication comes before the body.
func TestUnauthorizedBeforeInvalid(t *testing.T) {
	t.Parallel()
	newMock(t).call(http.MethodPost, "/v2/transactions", "{", "Authorization", "").problem(401, "UNAUTHORIZED")
}
