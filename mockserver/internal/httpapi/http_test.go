package httpapi_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/spec"
)

func TestUnknownPaths(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	for _, path := range []string{
		"/", "/v2", "/v2/", "/v3/transactions", "/v2/transactions/", "/v2//transactions", "/v2/Transactions",
		"/v2/transactions/1/", "/v2/transactions/1/refunds", "/v2/transactions/1/refund/", "/v2/../v2/transactions",
		"/v2/transactions/..", "/v2/./transactions",
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.URL.Path, r.URL.RawPath = path, path
		if path == "/v2/transactions/.." {
			r.Header.Set("Apikey", key)
		}
		a := m.serve(r)
		require.Equal(t, http.StatusNotFound, a.Status, path)
		assert.Empty(t, a.Header.Get("Location"), path)
		assert.Equal(t, "Not Found", a.at("title"))
	}
}

// Every path accepts only its own methods, and HEAD where it accepts GET; Allow lists
// them.
func TestWrongMethods(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	allowed := map[string][]string{}
	for _, op := range m.api.Operations() {
		allowed[op.Path] = append(allowed[op.Path], op.Method)
	}
	assert.Len(t, allowed["/v2/transactions/{id}"], 2)
	for path, methods := range allowed {
		if slices.Contains(methods, http.MethodGet) {
			methods = append(methods, http.MethodHead)
			at := pathParameter.ReplaceAllString(path, "1")
			assert.Equal(t, m.call(http.MethodGet, at, "").Status, m.call(http.MethodHead, at, "").Status, path)
		}
		slices.Sort(methods)
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "get"} {
			if slices.Contains(methods, method) || method == spec.HostedCheckout.Open.Method && path == spec.HostedCheckout.Open.Path {
				continue // the latter is the live dialect's: 404, see TestHostedRoutesAreLive
			}
			a := m.call(method, pathParameter.ReplaceAllString(path, "1"), "").problem(405, "METHOD_NOT_ALLOWED")
			assert.Equal(t, strings.Join(methods, ", "), a.Header.Get("Allow"), method+" "+path)
		}
	}
}

func TestEveryOperationIsServedAndTested(t *testing.T) {
	t.Parallel()
	served, tested := map[string]bool{}, map[string]bool{}
	for _, op := range newMock(t).api.Operations() {
		served[op.Method+" "+op.Path] = true
	}
	for _, w := range writes(t) {
		tested[w.name] = true
	}
	for op := range spec.Operations() {
		assert.True(t, served[op.Method+" "+op.Path], "%s has no route: add it to the routes of its resource in this package", op.Name)
		if op.Method != http.MethodGet {
			assert.True(t, tested[op.Name], "%s is not tested: add it to writes_test.go, and its limits to limits_test.go", op.Name)
		}
	}
}

// The checks of a read come in the same order as those of a write: path,
// method, credentials, query, stored state.
func TestEveryRead(t *testing.T) {
	t.Parallel()
	for dialect, change := range dialects {
		m := newMock(t, change)
		for op := range spec.Operations() {
			if op.Method != http.MethodGet {
				continue
			}
			path := pathParameter.ReplaceAllString(op.Path, unknownID) + "?limit=0"
			m.call(op.Method, strings.Replace(path, "?", "/more/still?", 1), "", "Authorization", "").problem(404, "UNKNOWN_PATH")
			m.call(http.MethodDelete, path, "", "Authorization", "").problem(405, "METHOD_NOT_ALLOWED")
			for _, header := range [][]string{
				{"Authorization", ""},
				{"Authorization", "", "apiKey", "sk_live_mock"},
				{"Authorization", "", "apiKey", "pk_test_mock"},
				{"Authorization", "Bearer sk_test_other", "apiKey", key},
			} {
				a := m.call(op.Method, path, "", header...).problem(401, "UNAUTHORIZED")
				assert.Equal(t, "Unauthorized", a.at("title"), op.Name)
			}
			status := m.call(op.Method, path, "", "Authorization", "", "apiKey", key).Status
			want := http.StatusNotFound
			switch named := pathParameter.FindString(op.Path); {
			case strings.HasSuffix(op.Name, ".list"): // only a list reads a limit
				want = http.StatusUnprocessableEntity
			case named == "", named == "{public_token}": // any token is a card's
				want = http.StatusOK
			}
			assert.Equal(t, want, status, "%s %s", dialect, op.Name)
		}
	}
}

// pathParameter finds the parameter of an operation's path.
var pathParameter = regexp.MustCompile(`\{\w+\}`)

func TestContentTypes(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	for _, row := range []struct {
		contentType string
		ok          bool
	}{
		{"application/json", true},
		{"application/json; charset=utf-8", true},
		{"Application/JSON", true},
		{"", false},
		{"text/plain", false},
		{"application/x-www-form-urlencoded", false},
		{"application/jsonp", false},
		{";", false},
	} {
		a := m.call(http.MethodPost, "/v2/transactions", charge(), "Content-Type", row.contentType)
		if row.ok {
			assert.Equal(t, http.StatusCreated, a.Status, row.contentType)
			continue
		}
		a.problem(415, "UNSUPPORTED_MEDIA_TYPE")
	}
}

// pad returns a body of an exact length.
func pad(body string, length int) string {
	return body[:len(body)-1] + strings.Repeat(" ", length-len(body)) + "}"
}

func TestBodySize(t *testing.T) {
	t.Parallel()
	const mebibyte = 1 << 20
	m := newMock(t)
	assert.Equal(t, http.StatusCreated, m.call(http.MethodPost, "/v2/transactions", pad(charge(), mebibyte)).Status)
	long := pad(charge(), mebibyte+1)
	m.call(http.MethodPost, "/v2/transactions", long).problem(413, "BODY_TOO_LARGE")

	r := httptest.NewRequest(http.MethodPost, "/v2/transactions", strings.NewReader(long))
	r.ContentLength = -1 // chunked: its length is known only after it is read
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Apikey", key)
	m.serve(r).problem(413, "BODY_TOO_LARGE")
	assert.InDelta(t, 1, m.call(http.MethodGet, "/v2/transactions", "").at("data.total"), 0)
}

func TestMalformedBodies(t *testing.T) {
	t.Parallel()
	for _, m := range []*mock{newMock(t), newMock(t, live)} {
		for body, place := range map[string]string{
			"":                                "byte 0",
			"{":                               "byte 1",
			`{"amount":1,}`:                   "byte",
			`{"amount":1} {}`:                 "byte 12",
			`[`:                               "byte 1",
			`nul`:                             "byte",
			`"text`:                           "byte 5",
			`{"amount":1,"amount":2}`:         "amount",
			`{"buyer":{"id":1,"id":2}}`:       "buyer",
			`{"amount":01}`:                   "byte",
			"{\"external_ref\":\"\xff\"}":     "byte",
			`{"products":[{"name":"a" "b"}]}`: "products[0]",
			strings.Repeat("[", 20_000):       "byte",
		} {
			a := m.call(http.MethodPost, "/v2/transactions", body, "Content-Type", "application/json").problem(400, "MALFORMED_JSON")
			assert.Contains(t, a.text("detail"), place, body)
		}
	}
}

func TestATruncatedBody(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodPost, "/v2/transactions", iotest.ErrReader(io.ErrUnexpectedEOF))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Apikey", key)
	newMock(t).serve(r).problem(400, "MALFORMED_JSON")
}

func TestRequestID(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	for sent, echoed := range map[string]bool{
		"my-request.1":           true,
		strings.Repeat("r", 128): true,
		strings.Repeat("r", 129): false,
		"two words":              false,
		"ça":                     false,
		"":                       false,
	} {
		a := m.call(http.MethodGet, "/v2/transactions", "", "X-Request-Id", sent)
		id := a.Header.Get("X-Request-Id")
		assert.NotEmpty(t, id)
		assert.Equal(t, echoed, id == sent, sent)
		assert.Equal(t, id, a.text("requestId"))
		assert.Equal(t, true, a.at("success"))

		a = m.call(http.MethodGet, "/v2/transactions/1", "", "X-Request-Id", sent).problem(404, "NOT_FOUND")
		assert.Equal(t, echoed, a.Header.Get("X-Request-Id") == sent)
		assert.NotContains(t, string(a.Body), "requestId", "errors carry it in the header only")
		assert.NotContains(t, string(a.Body), "success")
	}
}

func TestCardDataIsRejected(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	for _, body := range []string{
		charge("card_number", `"1"`),
		charge("cvv", "123"),
		charge("card", `{"holder":"Ana"}`),
		charge("metadata", `"4111 1111 1111 1111"`),
		charge("buyer", `{"name":"4111-1111-1111-1111","email":"ana@example.com"}`),
		charge("buyer", `{"name":"Ana","email":"ana@example.com","deep":[{"pan":"x"}]}`),
		charge("token", `"4111111111111111"`),
	} {
		a := m.call(http.MethodPost, "/v2/transactions", body).problem(400, "VALIDATION_ERROR")
		assert.NotContains(t, string(a.Body), "4111", "it is not repeated")
		assert.Contains(t, string(a.Body), "card data")
	}
	assert.Equal(t, http.StatusCreated, m.call(http.MethodPost, "/v2/transactions", charge("external_ref", `"4111111111111111"`)).Status)
	assert.InDelta(t, 1, m.call(http.MethodGet, "/v2/transactions", "").at("data.total"), 0)
}

// A path may be written with percent escapes, and a UUID in upper case.
func TestOtherSpellingsOfAPath(t *testing.T) {
	t.Parallel()
	m := newMock(t, live, lenient)
	id := m.create(`{"external_ref":"o-1","amount":100,"method":"voucher","currency":"MXN"}`)
	for _, path := range []string{"/v2/%74ransactions/" + id, "/v2/transactions/" + strings.ToUpper(id), "/v2/transactions/%" + fmt.Sprintf("%x", id[0]) + id[1:]} {
		assert.Equal(t, id, m.call(http.MethodGet, path, "").text("data.id"), path)
	}
	m.call(http.MethodGet, "/v2%2Ftransactions", "").problem(404, "UNKNOWN_PATH")
}
