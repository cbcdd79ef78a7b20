package gateway_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
)

func sentinels() map[string]error {
	return map[string]error{
		"validation": gateway.ErrValidation, "unauthorized": gateway.ErrUnauthorized, "forbidden": gateway.ErrForbidden,
		"not found": gateway.ErrNotFound, "duplicate": gateway.ErrDuplicate, "conflict": gateway.ErrConflict, "retired": gateway.ErrRetired,
		"not sent": gateway.ErrNotSent, "rate limited": gateway.ErrRateLimited, "server": gateway.ErrServer, "unknown": gateway.ErrOutcomeUnknown,
	}
}

// kinds returns the names of the sentinels that err matches.
func kinds(err error) []string {
	var out []string
	for _, name := range []string{
		"validation", "unauthorized", "forbidden", "not found", "duplicate", "conflict", "retired", "rate limited", "server", "unknown", "not sent",
	} {
		if errors.Is(err, sentinels()[name]) {
			out = append(out, name)
		}
	}
	return out
}

// TestGoldenErrors decodes every error body in testdata with its status.
func TestGoldenErrors(t *testing.T) {
	t.Parallel()
	want := map[string]struct {
		code  string
		title string
		kinds []string
		says  string
	}{
		"validation.400.json":  {"required", "Validation Error", []string{"validation"}, "buyer.address.city is required"},
		"validation.422.json":  {"too_big", "Validation Error", []string{"validation"}, "limit must be at most 100"},
		"body.live.422.json":   {"VALIDATION_ERROR", "Validation Error", []string{"validation"}, "body must be an object, not an array"},
		"coded_title.422.json": {"PAYMENT_BLOCKED", "PAYMENT_BLOCKED", []string{"validation"}, "The payment was blocked"},
		"pix_automatic_disabled.403.json": {
			"PIX_AUTOMATIC_DISABLED", "", []string{"forbidden"}, "403 Forbidden (PIX_AUTOMATIC_DISABLED): Pix Automatico is not enabled",
		},
		"validation_errors.422.json": {"", "Validation Error", []string{"validation"}, "email must be an e-mail address"},
		"unauthorized.401.json":      {"UNAUTHORIZED", "Unauthorized", []string{"unauthorized"}, "missing or invalid"},
		"forbidden.403.json":         {"FORBIDDEN", "Forbidden", []string{"forbidden"}, "not enabled"},
		"forbidden.live.403.json":    {"FORBIDDEN", "", []string{"forbidden"}, "403 Forbidden (FORBIDDEN): Subscriptions are not enabled"},
		"not_found.404.json":         {"NOT_FOUND", "Not Found", []string{"not found"}, "no transaction"},
		"duplicate.409.json":         {"DUPLICATE_EXTERNAL_REF", "Conflict", []string{"duplicate", "conflict"}, "already exists"},
		"duplicate.live.409.json":    {"DUPLICATE_EXTERNAL_REF", "", []string{"duplicate", "conflict"}, "already exists"},
		"conflict.409.json":          {"NOT_REFUNDABLE", "Conflict", []string{"conflict"}, "can't be refunded"},
		"gone.410.json":              {"LEGACY_TOKENIZATION_RETIRED", "Gone", []string{"retired"}, "retired"},
		"checkout_link.422.json":     {"INVALID_CHECKOUT_LINK", "", []string{"validation"}, "never both"},
		"rate_limited.429.json":      {"RATE_LIMITED", "Too Many Requests", []string{"rate limited"}, "429 Too Many Requests"},
		"server.500.json":            {"INTERNAL", "Internal Server Error", []string{"unknown"}, "500 Internal Server Error"},
		"failed.200.json":            {"", "", []string{"unknown"}, "The issuer is not available"},
		"bad_gateway.502.html":       {"", "", []string{"unknown"}, "502 Bad Gateway"},
	}
	entries, err := os.ReadDir("testdata/errors")
	require.NoError(t, err)
	for _, entry := range entries {
		tc, known := want[entry.Name()]
		require.True(t, known, "add testdata/errors/%s to this test", entry.Name())
		body := string(golden(t, "errors/"+entry.Name()))
		parts := strings.Split(strings.TrimSuffix(entry.Name(), path.Ext(entry.Name())), ".")
		status, err := strconv.Atoi(parts[len(parts)-1])
		require.NoError(t, err)
		s := play(reply(status, body, "X-Request-Id", "r-5", "Set-Cookie", "session=1", "Server", "edge"))
		_, err = clientOf(t, s).Transactions.Refund(t.Context(), orderID, gateway.RefundParams{Full: true}, gateway.MaxAttempts(1))
		var e *gateway.Error
		require.ErrorAs(t, err, &e, entry.Name())
		assert.Equal(t, "transactions.refund", e.Op)
		assert.Equal(t, status, e.StatusCode, entry.Name())
		assert.Equal(t, tc.code, e.Code, entry.Name())
		assert.Equal(t, tc.title, e.Title, entry.Name())
		assert.Equal(t, tc.kinds, kinds(err), entry.Name())
		assert.Equal(t, "r-5", e.RequestID, entry.Name())
		assert.Equal(t, "edge", e.Header.Get("Server"))
		assert.Empty(t, e.Header.Get("Set-Cookie"), "not an allowed header")
		assert.Contains(t, err.Error(), tc.says, entry.Name())
		assert.NotContains(t, err.Error(), "\n")
		assert.Equal(t, body, string(e.Body), entry.Name())
	}
}

func TestValidationFields(t *testing.T) {
	t.Parallel()
	s := play(reply(400, string(golden(t, "errors/validation.400.json"))))
	_, err := clientOf(t, s).Transactions.Create(t.Context(), pixOrder())
	var e *gateway.Error
	require.ErrorAs(t, err, &e)
	assert.Equal(t, []gateway.FieldError{
		{Field: "amount", Message: "must be at least 1", Code: "too_small"},
		{Field: "buyer.address.city", Message: "is required", Code: "required"},
		{Field: "products[0].name", Message: "must have at least 1 character", Code: "too_small"},
	}, e.Fields)
	assert.Equal(t, "/v2/transactions", e.Instance)
	assert.Contains(t, e.Type, "validation-error")
}

// TestMalformedErrorBodies: the decoder extracts whatever code and message it
// can find.
func TestMalformedErrorBodies(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]gateway.Error{
		``:                                     {},
		`   `:                                  {},
		`null`:                                 {Detail: "null"},
		`[]`:                                   {Detail: "[]"},
		`plain words`:                          {Detail: "plain words"},
		"two\n\tlines":                         {Detail: "two lines"},
		"\x00\x01\x02":                         {},
		`{}`:                                   {},
		`{`:                                    {},
		`{"title":"Cut`:                        {},
		`{"title":"A","detail":"cut o`:         {Title: "A"},
		`{"error":"not a code","message":"m"}`: {Title: "not a code", Detail: "m"},
		`{"error":"A_CODE","message":"m","code":"B"}`:                                                {Code: "B", Detail: "m"},
		`{"code":"B","error":"A_CODE"}`:                                                              {Code: "B", Title: "A_CODE"},
		`{"error":{"code":"A","message":"m"}}`:                                                       {Code: "A", Detail: "m"},
		`{"message":"m","detail":"d"}`:                                                               {Detail: "d"},
		`{"title":null,"detail":7,"code":true}`:                                                      {Detail: "7", Code: "true"},
		`{"errors":["a","b"]}`:                                                                       {Fields: []gateway.FieldError{{Message: "a"}, {Message: "b"}}},
		`{"errors":{"amount":["is required"],"x":"bad"}}`:                                            {Fields: []gateway.FieldError{{Field: "amount", Message: "is required"}, {Field: "x", Message: "bad"}}},
		`{"errors":[{"path":"a","message":"m","code":"too_big"},7]}`:                                 {Code: "too_big", Fields: []gateway.FieldError{{Field: "a", Message: "m", Code: "too_big"}, {Message: "7"}}},
		`{"errors":[{"field":"a","message":"m"},{"field":"b","mess`:                                  {Fields: []gateway.FieldError{{Field: "a", Message: "m"}, {Field: "b"}}},
		`{"title":"PAYMENT_BLOCKED","detail":"d","errors":[{"field":"a","message":"m","code":"c"}]}`: {Title: "PAYMENT_BLOCKED", Code: "PAYMENT_BLOCKED", Detail: "d", Fields: []gateway.FieldError{{Field: "a", Message: "m", Code: "c"}}},
		`{"title":"DOCUMENT_REQUIRED","code":"B"}`:                                                   {Title: "DOCUMENT_REQUIRED", Code: "B"},
		`{"title":"Validation Error"}`:                                                               {Title: "Validation Error"},
		`{"errors":null,"title":"T"}`:                                                                {Title: "T"},
		`{"errors":"text","title":"T"}`:                                                              {Title: "T"},
		`{"title":"A","title":"B"}`:                                                                  {Title: "B"},
		"{\"title\":\"caf\xe9\"}":                                                                    {Title: "caf�"},
		`<html><head><title>503  Service Unavailable</title></html>`:                                 {Detail: "503 Service Unavailable"},
		`<html><body>no title</body></html>`:                                                         {},
	} {
		s := play(reply(422, body))
		_, err := clientOf(t, s).Transactions.Get(t.Context(), orderID, gateway.MaxAttempts(1))
		var e *gateway.Error
		require.ErrorAs(t, err, &e, body)
		const foreign = "the response does not have the format of the gateway (application/json), so it may come from a proxy"
		said, unavailable := strings.CutPrefix(e.Detail, foreign)
		if unavailable {
			require.ErrorIs(t, err, gateway.ErrServer, body)
		} else {
			require.ErrorIs(t, err, gateway.ErrValidation, body)
		}
		got := gateway.Error{Title: e.Title, Detail: strings.TrimPrefix(said, ": "), Code: e.Code, Fields: e.Fields}
		assert.Equal(t, want, got, "%q", body)
	}
}

// TestLongErrorBodiesAreBounded: megabytes of a response must not end up in an
// error, its message or a log.
func TestLongErrorBodiesAreBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1<<20)
	fields := strings.TrimSuffix(strings.Repeat(`{"field":"a","message":"`+strings.Repeat("y", 2000)+`"},`, 500), ",")
	s := play(reply(422, fmt.Sprintf(`{"title":%q,"detail":%q,"errors":[%s]}`, long, long, fields), "X-Request-Id", long))
	_, err := clientOf(t, s).Transactions.Get(t.Context(), orderID)
	var e *gateway.Error
	require.ErrorAs(t, err, &e)
	assert.Len(t, e.Title, 1024)
	assert.Len(t, e.Fields, 200)
	assert.Len(t, e.Body, 4096)
	assert.Len(t, e.RequestID, 128)
	assert.Less(t, len(err.Error()), 32<<10)
	assert.Contains(t, err.Error(), "and 180 more")

	accents := "x" + strings.Repeat("ã", 1<<20) // each limit falls into a character
	s = play(reply(422, fmt.Sprintf(`{"title":%q}`, accents), "X-Request-Id", accents))
	_, err = clientOf(t, s).Transactions.Get(t.Context(), orderID)
	require.ErrorAs(t, err, &e)
	assert.Equal(t, accents[:1023], e.Title)
	assert.Equal(t, accents[:127], e.RequestID)
}

// TestSuccessFalse: a response with success=false is an error whatever its HTTP
// status, and its body determines the kind of the error.
func TestSuccessFalse(t *testing.T) {
	t.Parallel()
	for body, want := range map[string][]string{
		`{"success":false}`: {"unknown"},
		`{"success":false,"data":{"id":"x"},"error":"no"}`:               {"unknown"},
		`{"success":false,"data":{"id":"x"},"error":"NOPE"}`:             {"server"},
		`{"success":false,"status":409,"code":"DUPLICATE_EXTERNAL_REF"}`: {"duplicate", "conflict"},
		`{"success":false,"status":422,"message":"no"}`:                  {"validation"},
		`{"success":false,"error":{"code":"X"},"statusCode":404}`:        {"not found"},
	} {
		client := clientOf(t, play(reply(200, body), reply(200, body), reply(200, body)))
		_, create := client.Transactions.Create(t.Context(), pixOrder())
		_, list := client.Transactions.List(t.Context(), gateway.TransactionListParams{})
		do := client.Do(t.Context(), http.MethodPost, "/v2/x", nil, nil)
		assert.Equal(t, want, kinds(create), body)
		require.Error(t, list, body)
		require.Error(t, do, body)
		assert.Equal(t, slices.Contains(want, "unknown"), slices.Contains(kinds(do), "unknown"), body)
	}
}

func TestErrorsWithoutAResponse(t *testing.T) {
	t.Parallel()
	s := play(fail(errDial))
	_, err := clientOf(t, s).Transactions.Get(t.Context(), orderID, gateway.MaxAttempts(1))
	assert.Equal(t, "gateway: transactions.get: dial tcp: connection refused", err.Error())
	assert.Equal(t, []string{"not sent"}, kinds(err))
}

// TestErrorsContainNoURLs: a query may contain personal data.
func TestErrorsContainNoURLs(t *testing.T) {
	t.Parallel()
	s := play(fail(fmt.Errorf("proxy: %w", errReset)))
	_, err := clientOf(t, s).Transactions.List(t.Context(), gateway.TransactionListParams{Email: "maria@example.com"}, gateway.MaxAttempts(1))
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "maria")
	assert.NotContains(t, err.Error(), "https://")
}

const oddKey = "K3y-of-another_shape.42"

// printed returns everything that a caller might print about err.
func printed(t *testing.T, err error) string {
	t.Helper()
	var e *gateway.Error
	require.ErrorAs(t, err, &e)
	return fmt.Sprintf("%v|%+v|%#v|%s|%v|%v|%s|%+v", err, *e, e.Fields, e.Body, e.Header, e.LogValue(), e.RequestID, e.Err)
}

// A gateway or a proxy that echoes a request must not put a key into the
// caller's logs.
func TestAnErrorNeverRepeatsTheCredential(t *testing.T) {
	t.Parallel()
	pair := base64.StdEncoding.EncodeToString([]byte(oddKey + ":x"))
	for name, credential := range map[string]gateway.Credential{
		"bearer": gateway.BearerToken(oddKey), "apiKey": gateway.APIKey(oddKey), "basic": gateway.BasicToken(oddKey),
		"password": gateway.BasicAuth("someone", oddKey),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			echo := func(r *http.Request) (*http.Response, error) {
				sent := r.Header.Get("Authorization") + r.Header.Get("Apikey")
				body := fmt.Sprintf(`{"title":%q,"detail":"no such key %s %s","instance":%q,"code":%q,"requestId":%q,"errors":[{"field":%q,"message":%q}],"pad":"%s"}`,
					sent, oddKey, pair, sent, oddKey, sent, oddKey, sent, strings.Repeat(oddKey+" ", 1000))
				return reply(401, body, "X-Request-Id", sent, "Server", sent)(r)
			}
			var response gateway.Response
			client, err := gateway.New("https://api.test", credential, gateway.WithHTTPClient(&http.Client{Transport: roundTrip(echo)}))
			require.NoError(t, err)
			_, err = client.Transactions.Get(t.Context(), "1", gateway.ResponseInto(&response))
			require.ErrorIs(t, err, gateway.ErrUnauthorized)
			texts := printed(t, err) + response.RequestID
			for _, secret := range []string{oddKey, pair, strings.TrimRight(pair, "="), oddKey[:12], base64.StdEncoding.EncodeToString([]byte(oddKey))} {
				assert.NotContains(t, texts, secret)
			}
			assert.Contains(t, texts, "no such key [redacted]")
		})
	}
}

func TestTransportErrorsShowNoURLQueryOrCredential(t *testing.T) {
	t.Parallel()
	cause := errors.New("the cause")
	for name, fail := range map[string]func(*http.Request) error{
		"url.Error": func(r *http.Request) error { return &url.Error{Op: "Get", URL: r.URL.String(), Err: cause} },
		"a wrapped url.Error": func(r *http.Request) error {
			return fmt.Errorf("odd: %w", &url.Error{Op: "Get", URL: r.URL.String(), Err: cause})
		},
		"url.Errors in another": func(r *http.Request) error {
			inner := &url.Error{Op: "Get", URL: r.URL.String(), Err: cause}
			return &url.Error{Op: "Get", URL: r.URL.String(), Err: inner}
		},
		"go-retryablehttp": func(r *http.Request) error {
			return fmt.Errorf("%s %s giving up after 5 attempt(s): %w", r.Method, r.URL, cause)
		},
		"the credential": func(r *http.Request) error { return fmt.Errorf("refused %s: %w", r.Header.Get("Authorization"), cause) },
		"user and path": func(*http.Request) error {
			return fmt.Errorf("proxy http://me:hunter22@proxy.test/p/52998224725: %w", cause)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			transport := roundTrip(func(r *http.Request) (*http.Response, error) { return nil, fail(r) })
			client, err := gateway.New("https://api.test", gateway.BearerToken(oddKey),
				gateway.WithHTTPClient(&http.Client{Transport: transport}), gateway.WithMaxAttempts(1))
			require.NoError(t, err)
			_, err = client.Transactions.List(t.Context(), gateway.TransactionListParams{Email: "maria@example.com"})
			require.ErrorIs(t, err, cause)
			texts := printed(t, err)
			for _, secret := range []string{oddKey, "maria", "email=", "/v2/transactions?", "52998224725", "hunter22"} {
				assert.NotContains(t, texts, secret)
			}
			assert.Contains(t, texts, "the cause")
		})
	}
}
