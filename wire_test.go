package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/jarcoal/httpmock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	files "github.com/gateway-go/gateway/internal/golden"
)

const (
	baseURL = "https://api.gateway.example"
	testKey = "sk_test_wire"
)

// answering returns a client to whose calls of route, such as
// "GET /v2/customers", one answer is given, and the record of what was sent.
// Any other request fails.
func answering(t *testing.T, route string, answer *files.Exchange, opts ...gateway.Option) *gateway.Client {
	t.Helper()
	method, path, _ := strings.Cut(route, " ")
	transport := httpmock.NewMockTransport()
	transport.RegisterResponder(method, baseURL+path, answer.Respond)
	opts = append([]gateway.Option{gateway.WithHTTPClient(&http.Client{Transport: transport})}, opts...)
	client, err := gateway.New(baseURL, gateway.BearerToken(testKey), opts...)
	require.NoError(t, err)
	return client
}

// answerOf returns the golden answer of an operation with a status.
func answerOf(t *testing.T, status int, file string) *files.Exchange {
	t.Helper()
	return &files.Exchange{Status: status, Body: golden(t, file)}
}

// assertSent checks a request's headers, and its body against a golden request;
// a file of "" means no body.
func assertSent(t *testing.T, sent files.Request, file string) {
	t.Helper()
	assert.Equal(t, "Bearer "+testKey, sent.Header.Get("Authorization"))
	assert.Contains(t, sent.Header.Get("Accept"), "application/json")
	assert.Contains(t, sent.Header.Get("User-Agent"), "gateway-go")
	assert.Empty(t, sent.Header.Values("Idempotency-Key"))
	if file == "" {
		assert.Empty(t, sent.Body)
		assert.Empty(t, sent.Header.Values("Content-Type"))
		return
	}
	assert.Equal(t, goldenBody(t, file), string(sent.Body))
	assert.Equal(t, []string{"application/json"}, sent.Header.Values("Content-Type"))
}

// failures are the refusals of the interface in each body that they are seen
// with.
func failures() []failure {
	problem := func(status int, title, code string) string {
		return fmt.Sprintf(`{"type":"https://errors.gateway.example/x","title":%q,"status":%d,"detail":"in words",`+
			`"instance":"/v2/x","code":%q}`, title, status, code)
	}
	const (
		invalid = `{"type":"https://errors.gateway.example/validation-error","title":"Validation Error","status":400,` +
			`"detail":"in words","instance":"/v2/x","errors":[{"field":"amount","message":"must be at least 1","code":"too_small"}]}`
		invalidToo = `{"title":"Validation Error","detail":"in words","validation_errors":[{"field":"amount","message":"is required"}]}`
	)
	return []failure{
		{400, invalid, gateway.ErrValidation, "too_small"},
		{401, problem(401, "Unauthorized", "UNAUTHORIZED"), gateway.ErrUnauthorized, "UNAUTHORIZED"},
		{403, problem(403, "Forbidden", "FORBIDDEN"), gateway.ErrForbidden, "FORBIDDEN"},
		{403, `{"error":"SUBSCRIPTIONS_DISABLED","message":"in words","status":403}`, gateway.ErrForbidden, "SUBSCRIPTIONS_DISABLED"},
		{404, problem(404, "Not Found", "NOT_FOUND"), gateway.ErrNotFound, "NOT_FOUND"},
		{409, problem(409, "Conflict", "CONFLICT"), gateway.ErrConflict, "CONFLICT"},
		{410, problem(410, "Gone", "GONE"), gateway.ErrRetired, "GONE"},
		{422, invalidToo, gateway.ErrValidation, ""},
		{422, `{"error":"VALIDATION_ERROR","message":"in words","status":422}`, gateway.ErrValidation, "VALIDATION_ERROR"},
		{429, problem(429, "Too Many Requests", "RATE_LIMITED"), gateway.ErrRateLimited, "RATE_LIMITED"},
		{500, `{"error":"INTERNAL_ERROR","message":"in words","status":500}`, gateway.ErrServer, "INTERNAL_ERROR"},
		{500, "", gateway.ErrServer, ""},
		{502, "<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>", gateway.ErrServer, ""},
		{404, "<html><body>not here</body></html>", gateway.ErrNotFound, ""},
		{403, `{"title":"Forbidd`, gateway.ErrForbidden, ""},
	}
}

type failure struct {
	status int
	body   string
	kind   error
	code   string
}

// checkFailures makes a call end in every failure and checks the error. A write
// that a failing gateway may have carried out has an unknown outcome.
func checkFailures(t *testing.T, op, route string, write bool, call func(context.Context, *gateway.Client) error) {
	t.Helper()
	for _, f := range failures() {
		t.Run(fmt.Sprintf("%s %d %.12s", op, f.status, f.body), func(t *testing.T) {
			t.Parallel()
			answer := &files.Exchange{Status: f.status, Body: []byte(f.body), Header: http.Header{"X-Request-Id": {"req-7"}}}
			if strings.HasPrefix(f.body, "<") {
				answer.Header["Content-Type"] = []string{"text/html"}
			}
			client := answering(t, route, answer, gateway.WithMaxAttempts(1))
			err := call(t.Context(), client)
			kind := f.kind
			if write && f.status >= 500 {
				kind = gateway.ErrOutcomeUnknown
			}
			require.ErrorIs(t, err, kind)

			var e *gateway.Error
			require.ErrorAs(t, err, &e)
			assert.Equal(t, op, e.Op)
			assert.Equal(t, f.status, e.StatusCode)
			assert.Equal(t, f.code, e.Code)
			assert.Equal(t, "req-7", e.RequestID)
			assert.Equal(t, 1, e.Attempts)
			assert.NotContains(t, err.Error(), testKey)
			assert.NotContains(t, err.Error(), "\n")
			assert.NotContains(t, err.Error(), "nginx", "a page is not an explanation")
			answer.Only(t)
		})
	}
	for _, f := range files.Failures(t) {
		t.Run(op+" "+f.Name, func(t *testing.T) {
			t.Parallel()
			err := call(t.Context(), answering(t, route, &f.Exchange, gateway.WithMaxAttempts(1)))
			var e *gateway.Error
			require.ErrorAs(t, err, &e)
			assert.Equal(t, op, e.Op)
			assert.Equal(t, f.Status, e.StatusCode)
			assert.Equal(t, f.Code, e.Code)
			assert.Equal(t, f.Detail, e.Detail)
			fields := []string{}
			for _, field := range e.Fields {
				fields = append(fields, field.Field)
			}
			assert.ElementsMatch(t, f.Fields, fields)
		})
	}
}
