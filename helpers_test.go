package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	files "github.com/gateway-go/gateway/internal/golden"
)

// golden returns the contents of a file in testdata.
func golden(t *testing.T, name string) []byte {
	t.Helper()
	return files.Read(t, name)
}

// goldenBody returns a golden request as it must be sent: the same fields in the
// same order, without white space.
func goldenBody(t *testing.T, name string) string {
	t.Helper()
	return files.Body(t, name)
}

// goldenData returns the data of a golden response, without the envelope.
func goldenData(t *testing.T, name string) []byte {
	t.Helper()
	return files.Data(t, golden(t, name))
}

// goldenItems returns the items of a golden list, in either shape.
func goldenItems(t *testing.T, name string) []json.RawMessage {
	t.Helper()
	data := goldenData(t, name)
	var object struct {
		Data []json.RawMessage `json:"data"`
	}
	if json.Unmarshal(data, &object) == nil {
		return object.Data
	}
	var items []json.RawMessage
	require.NoError(t, json.Unmarshal(data, &items))
	return items
}

// assertKeepsFields checks that v, decoded from text, encodes to every field and
// value of text. Absent, null and "" mean the same in a response.
func assertKeepsFields(t *testing.T, text []byte, v any) {
	t.Helper()
	encoded, err := jsonv2.Marshal(v, jsonv2.Deterministic(true))
	require.NoError(t, err)
	files.Keeps(t, text, encoded)
}

const (
	baseURL = "https://api.gateway.example"
	testKey = "sk_test_wire"
)

// responseOf returns the golden response of an operation with a status.
func responseOf(t *testing.T, status int, file string) *files.Exchange {
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

// failures returns the error responses of the interface, with every kind of body.
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
		{404, "<html><body>not here</body></html>", gateway.ErrServer, ""}, // of a proxy
		{403, `{"title":"Forbidd`, gateway.ErrForbidden, ""},
	}
}

type failure struct {
	status int
	body   string
	kind   error
	code   string
}

// checkFailures makes a call fail with each of the failures and checks the error.
// If the gateway may have applied a write anyway, its outcome is unknown.
func checkFailures(t *testing.T, op, route string, write bool, call func(context.Context, *gateway.Client) error) {
	t.Helper()
	for _, f := range failures() {
		t.Run(fmt.Sprintf("%s %d %.12s", op, f.status, f.body), func(t *testing.T) {
			t.Parallel()
			response := &files.Exchange{Status: f.status, Body: []byte(f.body), Header: http.Header{"X-Request-Id": {"req-7"}}}
			if strings.HasPrefix(f.body, "<") {
				response.Header["Content-Type"] = []string{"text/html"}
			}
			client := clientFor(t, route, response, gateway.WithMaxAttempts(1))
			err := call(t.Context(), client)
			kind := f.kind
			if write && f.kind == gateway.ErrServer { //nolint:errorlint // not wrapped
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
			assert.NotContains(t, err.Error(), "nginx", "HTML pages are not printed")
			response.Only(t)
		})
	}
	for _, f := range files.Failures(t) {
		t.Run(op+" "+f.Name, func(t *testing.T) {
			t.Parallel()
			err := call(t.Context(), clientFor(t, route, &f.Exchange, gateway.WithMaxAttempts(1)))
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

// serviceCall is one operation of a service, with params that match its golden
// request.
type serviceCall struct {
	op       string
	method   string
	path     string
	request  string // file under testdata; "" for no body
	response string // file under testdata
	status   int
	class    string   // "safe", "keyed" or "unsafe"
	unset    []string // fields that the response leaves empty; see files.Filled
	run      func(context.Context, *gateway.Client, ...gateway.RequestOption) (any, error)
}

func testServiceCalls(t *testing.T, calls []serviceCall) {
	t.Helper()
	for _, c := range calls {
		t.Run(c.response, func(t *testing.T) {
			t.Parallel()
			c.testRequest(t)
			c.testResponse(t)
			c.testUnreadableResponse(t)
			checkFailures(t, c.op, c.method+" "+c.path, c.class != "safe", func(ctx context.Context, client *gateway.Client) error {
				_, err := c.run(ctx, client)
				return err
			})
		})
	}
}

func (c serviceCall) testRequest(t *testing.T) {
	t.Helper()
	e := responseOf(t, c.status, c.response)
	_, err := c.run(t.Context(), clientOver(t, e.Respond))
	require.NoError(t, err)
	sent := e.Only(t)
	assert.Equal(t, c.method, sent.Method)
	assert.Equal(t, c.path, sent.Path)
	assert.Empty(t, sent.Query)
	assertSent(t, sent, c.request)
}

// testResponse checks that the golden response fills every field, that no field of it
// is lost when it, or a response that also has unknown fields, is decoded and encoded,
// and that Raw has the unknown ones.
func (c serviceCall) testResponse(t *testing.T) {
	t.Helper()
	body := golden(t, c.response)
	for _, response := range [][]byte{body, files.Scramble(t, body)} {
		e := &files.Exchange{Status: c.status, Body: response}
		got, err := c.run(t.Context(), clientOver(t, e.Respond))
		require.NoError(t, err)
		files.Filled(t, got, c.unset...)
		for _, marshal := range []func(any) ([]byte, error){json.Marshal, marshalV2} {
			encoded, err := marshal(got)
			require.NoError(t, err)
			files.Keeps(t, files.Data(t, body), encoded)
		}
		if raw, ok := files.Raw(got); ok {
			assert.JSONEq(t, string(files.Data(t, response)), string(raw))
		}
	}
}

func marshalV2(v any) ([]byte, error) { return jsonv2.Marshal(v) }

// testUnreadableResponse checks that a write whose 2xx response can't be read
// is never reported as failed.
func (c serviceCall) testUnreadableResponse(t *testing.T) {
	t.Helper()
	for _, body := range []string{
		"", "null", "<html>ok</html>", `{"success":true,"data":{"id":"r-1","status":"paid","am`, `{"success":true}`,
		`{"success":true,"data":{}}`, `{"success":true,"data":[]}`,
	} {
		e := &files.Exchange{Status: c.status, Body: []byte(body)}
		_, err := c.run(t.Context(), clientOver(t, e.Respond), gateway.MaxAttempts(1))
		require.Error(t, err, body)
		assert.Equal(t, c.class != "safe", errors.Is(err, gateway.ErrOutcomeUnknown), body)
		if outcome, ok := errors.AsType[*gateway.OutcomeError](err); ok && strings.Contains(body, "r-1") {
			assert.Equal(t, "r-1", outcome.ResourceID)
			assert.Equal(t, "paid", outcome.ResourceStatus)
		}
	}
}

// requireNotSent checks that a call is rejected because of one field, before
// anything is sent.
func requireNotSent(t *testing.T, op, field string, run func(*gateway.Client) error) {
	t.Helper()
	e := &files.Exchange{Status: http.StatusOK, Body: []byte(`{"data":{}}`)}
	err := run(clientOver(t, e.Respond))
	require.ErrorIs(t, err, gateway.ErrValidation)
	invalid, ok := errors.AsType[*gateway.ValidationError](err)
	require.True(t, ok, "%v", err)
	assert.Equal(t, op, invalid.Op)
	if assert.Len(t, invalid.Fields, 1, "%v", err) {
		assert.Equal(t, field, invalid.Fields[0].Field)
	}
	assert.Empty(t, e.Requests(), "the request must not be sent")
}
