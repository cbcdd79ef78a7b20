package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jarcoal/httpmock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
)

// TestNewRejectsInvalidConfigurations: New returns an error that says how to fix the
// configuration, and no client.
func TestNewRejectsInvalidConfigurations(t *testing.T) {
	t.Parallel()
	ok := gateway.BearerToken("sk_test_1")
	for name, tc := range map[string]struct {
		url  string
		cred gateway.Credential
		opts []gateway.Option
		says string
	}{
		"no url":                     {"", ok, nil, "base URL is empty"},
		"no scheme":                  {"api.example.com", ok, nil, "https://"},
		"no host":                    {"https://", ok, nil, "host"},
		"another scheme":             {"ftp://api.example.com", ok, nil, "https://"},
		"not a url":                  {"https://api\x7f.example.com", ok, nil, "can't be parsed"},
		"plain http":                 {"http://api.example.com", ok, nil, "WithInsecureHTTP"},
		"http to a lookalike":        {"http://localhost.example.com", ok, nil, "plain http"},
		"password in the url":        {"https://user:hunter2@api.example.com", ok, nil, "Credential"},
		"query in the url":           {"https://api.example.com?key=hunter2", ok, nil, "query"},
		"fragment in the url":        {"https://api.example.com#x", ok, nil, "fragment"},
		"version in the url":         {"https://api.example.com/v2/", ok, nil, "must not end in /v2"},
		"version after a prefix":     {"https://api.example.com/pay/v1", ok, nil, "must not end in /v1"},
		"no credential":              {baseURL, gateway.Credential{}, nil, "BearerToken"},
		"empty key":                  {baseURL, gateway.BearerToken(""), nil, "GATEWAY_API_KEY"},
		"public key":                 {baseURL, gateway.BearerToken("pk_test_1"), nil, "use the secret key (sk_…)"},
		"public key, apiKey":         {baseURL, gateway.APIKey("pk_live_1"), nil, "public key"},
		"public key, basic":          {baseURL, gateway.BasicToken("pk_live_1"), nil, "public key"},
		"line break in the key":      {baseURL, gateway.BearerToken("sk_test_1\n"), nil, "line breaks"},
		"space in the key":           {baseURL, gateway.APIKey(" sk_test_1"), nil, "spaces"},
		"quotes around the key":      {baseURL, gateway.APIKey(`"sk_test_x"`), nil, "a quotation mark"},
		"one quote":                  {baseURL, gateway.BearerToken(`sk_test_x'`), nil, "a quotation mark"},
		"quotes and a line break":    {baseURL, gateway.BasicToken("\"sk_test_x\"\n"), nil, "a quotation mark"},
		"a line break and quotes":    {baseURL, gateway.BasicToken("\n\"sk_test_x\""), nil, "line breaks and quotes"},
		"accent in the key":          {baseURL, gateway.APIKey("sk_tést"), nil, "not allowed in a header"},
		"scheme in the key":          {baseURL, gateway.BearerToken("Bearer sk_test_1"), nil, "pass the key alone"},
		"colon in the username":      {baseURL, gateway.BasicAuth("a:b", "x"), nil, "colon"},
		"live key for a sandbox":     {"https://sandbox.example.com", gateway.BearerToken("sk_live_1"), nil, "use the sandbox key (sk_test_…)"},
		"live key, other label":      {"https://api-Sandbox.example.com:8443/x", gateway.APIKey("sk_live_1"), nil, "sandbox"},
		"live key, basic":            {"https://api.sandbox.example.com", gateway.BasicToken("sk_live_1"), nil, "sandbox"},
		"no function":                {baseURL, gateway.CredentialFunc(nil), nil, "needs a function"},
		"nil option":                 {baseURL, ok, []gateway.Option{nil}, "nil Option"},
		"nil http client":            {baseURL, ok, []gateway.Option{gateway.WithHTTPClient(nil)}, "WithHTTPClient"},
		"nil logger":                 {baseURL, ok, []gateway.Option{gateway.WithLogger(nil)}, "WithLogger"},
		"no attempts":                {baseURL, ok, []gateway.Option{gateway.WithMaxAttempts(0)}, "at least 1"},
		"zero timeout":               {baseURL, ok, []gateway.Option{gateway.WithAttemptTimeout(0)}, "above 0"},
		"minimum wait above maximum": {baseURL, ok, []gateway.Option{gateway.WithBackoff(2, 1)}, "WithBackoff"},
		"line break in the agent":    {baseURL, ok, []gateway.Option{gateway.WithUserAgent("a\r\nb")}, "WithUserAgent"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, err := gateway.New(tc.url, tc.cred, tc.opts...)
			require.Error(t, err)
			assert.Nil(t, client)
			assert.Contains(t, err.Error(), tc.says)
			assert.True(t, strings.HasPrefix(err.Error(), "gateway: "), err)
			for _, secret := range []string{"hunter2", "sk_test_1", "sk_live_1", "pk_test_1"} {
				assert.NotContains(t, err.Error(), secret)
			}
		})
	}
}

func TestNewAcceptsValidConfigurations(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		url  string
		cred gateway.Credential
		opts []gateway.Option
	}{
		"https":                              {"https://api.example.com/", gateway.BearerToken("sk_live_1"), nil},
		"localhost":                          {"http://localhost:4010", gateway.BearerToken("sk_test_1"), nil},
		"127.0.0.1":                          {"http://127.0.0.1:4010", gateway.BearerToken("sk_test_1"), nil},
		"::1":                                {"http://[::1]:4010", gateway.BearerToken("sk_test_1"), nil},
		"insecure":                           {"http://gateway.internal", gateway.APIKey("sk_test_1"), []gateway.Option{gateway.WithInsecureHTTP()}},
		"test key in sandbox":                {"https://sandbox.example.com", gateway.BasicToken("sk_test_1"), nil},
		"basic as in the interface document": {baseURL, gateway.BasicAuth("token", "x"), nil},
	} {
		client, err := gateway.New(tc.url, tc.cred, tc.opts...)
		require.NoError(t, err, name)
		assert.NotNil(t, client.Transactions)
	}
}

func TestNewFromEnv(t *testing.T) { //nolint:paralleltest // it sets the environment
	set := func(url, key, auth string) {
		t.Setenv("GATEWAY_BASE_URL", url)
		t.Setenv("GATEWAY_API_KEY", key)
		t.Setenv("GATEWAY_AUTH", auth)
	}
	for _, tc := range []struct{ url, key, auth, header, value, says string }{
		{baseURL, testKey, "", "Authorization", "Bearer " + testKey, ""},
		{baseURL, testKey, "bearer", "Authorization", "Bearer " + testKey, ""},
		{baseURL, testKey, "APIKEY", "apiKey", testKey, ""},
		{baseURL, testKey, "basic", "Authorization", "Basic c2tfdGVzdF93aXJlOng=", ""},
		{"", testKey, "", "", "", "GATEWAY_BASE_URL"},
		{baseURL, "", "", "", "", "GATEWAY_API_KEY"},
		{baseURL, testKey, "digest", "", "", "bearer, apikey or basic"},
	} {
		set(tc.url, tc.key, tc.auth)
		s := play(reply(200, transactionResponse(orderID, "", 1)))
		client, err := gateway.NewFromEnv(gateway.WithHTTPClient(&http.Client{Transport: s}))
		if tc.says != "" {
			require.ErrorContains(t, err, tc.says)
			continue
		}
		require.NoError(t, err)
		_, err = client.Transactions.Get(t.Context(), orderID)
		require.NoError(t, err)
		assert.Equal(t, tc.value, s.requests[0].Header.Get(tc.header))
	}
}

// TestAuthenticationModes: each credential sets its header and no other, for
// the client and for one call.
func TestAuthenticationModes(t *testing.T) {
	t.Parallel()
	basic := "Basic c2tfdGVzdF93aXJlOng="
	for name, tc := range map[string]struct {
		cred                  gateway.Credential
		authorization, apiKey string
	}{
		"bearer":      {gateway.BearerToken(testKey), "Bearer " + testKey, ""},
		"apiKey":      {gateway.APIKey(testKey), "", testKey},
		"basic token": {gateway.BasicToken(testKey), basic, ""},
		"basic auth":  {gateway.BasicAuth(testKey, "x"), basic, ""},
		"function": {gateway.CredentialFunc(func(context.Context) (gateway.Credential, error) {
			return gateway.APIKey(testKey), nil
		}), "", testKey},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mock := httpmock.NewMockTransport()
			mock.RegisterResponder("GET", baseURL+"/v2/transactions/"+orderID, func(r *http.Request) (*http.Response, error) {
				assert.Equal(t, tc.authorization, r.Header.Get("Authorization"))
				assert.Equal(t, tc.apiKey, r.Header.Get("Apikey"))
				return reply(200, transactionResponse(orderID, "", 1))(r)
			})
			client, err := gateway.New(baseURL, tc.cred, gateway.WithHTTPClient(&http.Client{Transport: mock}))
			require.NoError(t, err)
			_, err = client.Transactions.Get(t.Context(), orderID)
			require.NoError(t, err)

			other, err := gateway.New(baseURL, gateway.BearerToken("sk_test_other"), gateway.WithHTTPClient(&http.Client{Transport: mock}))
			require.NoError(t, err)
			_, err = other.Transactions.Get(t.Context(), orderID, gateway.UseCredential(tc.cred))
			require.NoError(t, err)
			with, err := other.With(gateway.WithCredential(tc.cred))
			require.NoError(t, err)
			_, err = with.Transactions.Get(t.Context(), orderID)
			require.NoError(t, err)
			assert.Equal(t, 3, mock.GetTotalCallCount())
		})
	}
}

// TestRotatingCredential: the credential that the function returns is checked
// like any other, and if the function fails, the call fails before anything is
// sent.
func TestRotatingCredential(t *testing.T) {
	t.Parallel()
	broken := errors.New("the vault is sealed")
	for name, tc := range map[string]struct {
		cred gateway.Credential
		err  error
		says string
	}{
		"error of the function": {gateway.Credential{}, broken, "the vault is sealed"},
		"empty":                 {gateway.Credential{}, nil, "credential is empty"},
		"public":                {gateway.BearerToken("pk_test_1"), nil, "public key"},
	} {
		s := play()
		_, err := clientOf(t, s).Transactions.Create(t.Context(), pixOrder(), gateway.UseCredential(
			gateway.CredentialFunc(func(context.Context) (gateway.Credential, error) { return tc.cred, tc.err })))
		require.ErrorContains(t, err, tc.says, name)
		require.NotErrorIs(t, err, gateway.ErrOutcomeUnknown, name)
		assert.Empty(t, s.at, name)
		if tc.err != nil {
			require.ErrorIs(t, err, tc.err)
		}
	}
	live := gateway.CredentialFunc(func(context.Context) (gateway.Credential, error) { return gateway.APIKey("sk_live_1"), nil })
	client, err := gateway.New("https://sandbox.example.com", live, gateway.WithHTTPClient(&http.Client{Transport: play()}))
	require.NoError(t, err)
	_, err = client.Transactions.Get(t.Context(), orderID)
	require.ErrorContains(t, err, "sandbox")
}

// TestErrorMessagesAreRedacted: error messages are printed on one line, without
// keys, tokens, document numbers or card numbers.
func TestErrorMessagesAreRedacted(t *testing.T) {
	t.Parallel()
	e := &gateway.Error{
		Op: "transactions.create", StatusCode: 422, Title: "Validation\nError",
		Detail: "key sk_live_abcDEF-123, token pgct_tok_9, document 529.982.247-25, also 52998224725, card 4111 1111 1111 1111, " +
			"order 01945f2c-1c00-7e6a-8d21-5b9c3a7f4e10, at most 100000000",
		Reference: "12345678901234", RequestID: "r-1", Attempts: 2, RetryAfter: time.Second,
		Fields: []gateway.FieldError{{Field: "buyer.document.number", Message: "52998224725 is not right"}},
	}
	assert.Equal(t, "gateway: transactions.create: 422 Validation Error: key sk_live_…, token pgct_…, document ***, also ***, card ***, "+
		"order 01945f2c-1c00-7e6a-8d21-5b9c3a7f4e10, at most 100000000: buyer.document.number *** is not right "+
		"[2 attempts, retry after 1s, reference 12345678901234, request id r-1]", e.Error())
	assert.NotContains(t, e.LogValue().String(), "52998224725")
	outcome := &gateway.OutcomeError{Op: "transactions.create", Reference: "r", ResourceID: "tx-1", Err: e}
	assert.NotContains(t, outcome.Error(), "52998224725")
	assert.True(t, strings.HasPrefix(outcome.Error(), "gateway: transactions.create: the outcome is unknown, the response names the resource tx-1: 422"))
}

// TestSentinelsAreConstants: no package can reassign the values that errors.Is
// compares with.
func TestSentinelsAreConstants(t *testing.T) {
	t.Parallel()
	const err = gateway.ErrNotFound
	assert.EqualError(t, err, "gateway: there is no such resource")
}

func TestWithSharesOnlyTheConnectionPool(t *testing.T) {
	t.Parallel()
	s := play(reply(200, transactionResponse(orderID, "", 1)), reply(200, transactionResponse(orderID, "", 1)))
	client := clientOf(t, s)
	other, err := client.With(gateway.WithUserAgent("shop/1.4"))
	require.NoError(t, err)
	_, err = other.Transactions.Get(t.Context(), orderID)
	require.NoError(t, err)
	_, err = client.Transactions.Get(t.Context(), orderID)
	require.NoError(t, err)
	assert.Equal(t, "shop/1.4 gateway-go", s.requests[0].Header.Get("User-Agent"))
	assert.Equal(t, "gateway-go", s.requests[1].Header.Get("User-Agent"))
	_, err = client.With(gateway.WithCredential(gateway.BearerToken("pk_1")))
	require.Error(t, err)
}

// TestTheCallersHTTPClientIsNotChanged: New copies the client and never closes its
// pool.
func TestTheCallersHTTPClientIsNotChanged(t *testing.T) {
	t.Parallel()
	pool := &closingTransport{RoundTripper: play(fail(errReset))}
	mine := &http.Client{Transport: pool}
	client, err := gateway.New(baseURL, gateway.BearerToken(testKey), gateway.WithHTTPClient(mine))
	require.NoError(t, err)
	_, err = client.Transactions.Get(t.Context(), orderID, gateway.MaxAttempts(1))
	require.Error(t, err)
	client.CloseIdleConnections()
	assert.False(t, pool.closed)
	assert.Same(t, pool, mine.Transport)
	assert.Nil(t, mine.CheckRedirect)
}

type closingTransport struct {
	http.RoundTripper

	closed bool
}

func (c *closingTransport) CloseIdleConnections() { c.closed = true }

// TestRedirectsAreNotFollowed: a redirect would forward the apiKey header.
func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	for _, status := range []int{301, 302, 303, 307, 308} {
		s := play(reply(status, "", "Location", "https://evil.example/v2/transactions"))
		_, err := clientOf(t, s).Transactions.Create(t.Context(), pixOrder(), gateway.MaxAttempts(1))
		var e *gateway.Error
		require.ErrorAs(t, err, &e)
		require.ErrorIs(t, err, gateway.ErrOutcomeUnknown, "what redirects may have passed the request on")
		assert.Equal(t, status, e.StatusCode)
		assert.Len(t, s.at, 1)
	}
}

func TestBaseURLKeepsItsPath(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"https://api.example.com/":              "/v2/transactions/a%20b",
		"https://api.example.com/gw/":           "/gw/v2/transactions/a%20b",
		"https://api.example.com/a%2Fb/c":       "/a%2Fb/c/v2/transactions/a%20b",
		"https://api.example.com:8443/gw//":     "/gw/v2/transactions/a%20b",
		"https://api.example.com/caf%C3%A9/gw/": "/caf%C3%A9/gw/v2/transactions/a%20b",
	} {
		s := play(reply(200, transactionResponse(orderID, "", 1)))
		client, err := gateway.New(base, gateway.BearerToken(testKey), gateway.WithHTTPClient(&http.Client{Transport: s}))
		require.NoError(t, err)
		_, err = client.Transactions.Get(t.Context(), "a b")
		require.NoError(t, err)
		assert.Equal(t, want, s.requests[0].URL.EscapedPath(), base)
	}
}

// TestPathElements: an id that would change the endpoint is never sent.
func TestPathElements(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"", " ", ".", "..", "a/b", "/", "../refund", `a\b`, "a\x00b", "a\nb", "\xff"} {
		s := play()
		client := clientOf(t, s)
		_, get := client.Transactions.Get(t.Context(), id)
		_, refund := client.Transactions.Refund(t.Context(), id, gateway.RefundParams{Full: true})
		for _, err := range []error{get, refund} {
			var invalid *gateway.ValidationError
			require.ErrorAs(t, err, &invalid, "%q", id)
			assert.Equal(t, "id", invalid.Fields[0].Field)
			assert.Contains(t, err.Error(), "pass the id")
		}
		assert.Empty(t, s.at, "%q", id)
	}
	for id, path := range map[string]string{
		"%2e%2e": "/v2/transactions/%252e%252e", "a?b#c": "/v2/transactions/a%3Fb%23c", "...": "/v2/transactions/...",
		"ção": "/v2/transactions/%C3%A7%C3%A3o", "a;b=c": "/v2/transactions/a%3Bb=c", "%2F": "/v2/transactions/%252F",
	} {
		s := play(reply(200, transactionResponse("x", "", 1)))
		_, err := clientOf(t, s).Transactions.Get(t.Context(), id)
		require.NoError(t, err)
		assert.Equal(t, path, s.requests[0].URL.EscapedPath())
	}
}

func TestCallOptions(t *testing.T) {
	t.Parallel()
	s := play(reply(201, transactionResponse(orderID, "order-1001", 15990)))
	_, err := clientOf(t, s).Transactions.Create(t.Context(), pixOrder(),
		gateway.IdempotencyKey("k-1"), gateway.Header("x-request-id", "r-7"), gateway.Query("trace", "a b"),
		gateway.BodyField("campaign", map[string]int{"b": 2, "a": 1}))
	require.NoError(t, err)
	r := s.requests[0]
	assert.Equal(t, "k-1", r.Header.Get("Idempotency-Key"))
	assert.Equal(t, "r-7", r.Header.Get("X-Request-Id"))
	assert.Equal(t, "trace=a+b", r.URL.RawQuery)
	assert.True(t, strings.HasPrefix(s.bodies[0], `{"campaign":{"a":1,"b":2},"external_ref":"order-1001",`), s.bodies[0])
}

func TestInvalidCallOptionsAreRejected(t *testing.T) {
	t.Parallel()
	for name, option := range map[string]gateway.RequestOption{
		"nil":                    nil,
		"nil response":           gateway.ResponseInto(nil),
		"no attempts":            gateway.MaxAttempts(0),
		"negative timeout":       gateway.AttemptTimeout(-1),
		"credential as a header": gateway.Header("authorization", "Bearer x"),
		"apiKey as a header":     gateway.Header("APIKEY", "x"),
		"content length":         gateway.Header("Content-Length", "1"),
		"line break in a header": gateway.Header("X-A", "a\r\nX-B: c"),
		"space in a header name": gateway.Header("X A", "a"),
		"no header name":         gateway.Header("", "a"),
		"no query name":          gateway.Query("", "a"),
		"no field name":          gateway.BodyField("", 1),
		"field does not marshal": gateway.BodyField("x", func() {}),
		"duplicate field":        gateway.BodyField("amount", 1),
		"card data":              gateway.BodyField("card_number", "4111111111111111"),
		"public key":             gateway.UseCredential(gateway.BearerToken("pk_1")),
		"no credential":          gateway.UseCredential(gateway.Credential{}),
	} {
		s := play()
		_, err := clientOf(t, s).Transactions.Create(t.Context(), pixOrder(), option)
		require.Error(t, err, name)
		assert.NotContains(t, err.Error(), "4111", name)
		assert.Empty(t, s.at, name)
	}
	sandbox, err := gateway.New("https://sandbox.example.com", gateway.BearerToken(testKey), gateway.WithHTTPClient(&http.Client{Transport: play()}))
	require.NoError(t, err)
	_, err = sandbox.Transactions.Get(t.Context(), orderID, gateway.UseCredential(gateway.APIKey("sk_live_1")))
	require.ErrorContains(t, err, "sandbox host")
	s := play()
	_, err = clientOf(t, s).Transactions.Get(t.Context(), orderID, gateway.BodyField("x", 1))
	require.ErrorContains(t, err, "no body")
	assert.Empty(t, s.at)
	// An endpoint without a method of its own is checked for card data too.
	err = clientOf(t, s).Do(t.Context(), http.MethodPost, "/v2/others", map[string]any{"a": 1}, nil, gateway.BodyField("card_number", "4111111111111111"))
	require.ErrorIs(t, err, gateway.ErrValidation)
	assert.NotContains(t, err.Error(), "4111")
	assert.Empty(t, s.at)
}

func TestLoopbackGatewayAcceptsLoopbackWebhooks(t *testing.T) {
	t.Parallel()
	order := pixOrder()
	order.NotifyURL = "http://127.0.0.1:8080/hook"
	s := play(reply(201, transactionResponse(orderID, "order-1001", 15990)))
	_, err := clientOf(t, s).Transactions.Create(t.Context(), order)
	require.ErrorIs(t, err, gateway.ErrValidation)
	local, err := gateway.New("http://localhost:4010", gateway.BearerToken(testKey), gateway.WithHTTPClient(&http.Client{Transport: s}))
	require.NoError(t, err)
	_, err = local.Transactions.Create(t.Context(), order)
	require.NoError(t, err)
}

// TestLogs: each level logs the fields of its allow list and nothing else.
func TestLogs(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	log := slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s := play(reply(503, `{"detail":"secret detail"}`, "Retry-After", "0", "X-Request-Id", "r-1"), reply(201, transactionResponse(orderID, "order-1001", 15990)))
	_, err := clientOf(t, s, gateway.WithLogger(log)).Transactions.Create(t.Context(), pixOrder(), gateway.Query("q", "maria"))
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 2)
	allowed := map[string]bool{}
	for _, name := range []string{"time", "level", "msg", "op", "method", "path", "attempt", "duration", "status", "request_id", "wait"} {
		allowed[name] = true
	}
	for i, want := range []map[string]any{
		{"level": "WARN", "op": "transactions.create", "method": "POST", "path": "/v2/transactions", "attempt": 1.0, "status": 503.0, "request_id": "r-1", "wait": 0.0},
		{"level": "DEBUG", "attempt": 2.0, "status": 201.0},
	} {
		var line map[string]any
		require.NoError(t, json.Unmarshal([]byte(lines[i]), &line))
		for name, v := range want {
			assert.Equal(t, v, line[name], name)
		}
		for name := range line {
			assert.True(t, allowed[name], name)
		}
	}
	for _, word := range []string{"maria", "order-1001", orderID, testKey, "secret", "52998224725"} {
		assert.NotContains(t, out.String(), word)
	}
}

func TestDo(t *testing.T) {
	t.Parallel()
	t.Run("reads the whole response", func(t *testing.T) {
		t.Parallel()
		s := play(reply(200, `{"balance":"1200","currency":"BRL"}`))
		var out struct {
			Balance  int64            `json:"balance"`
			Currency gateway.Currency `json:"currency"`
		}
		in := struct {
			From string `url:"from"`
		}{"2027-01-04"}
		var resp gateway.Response
		err := clientOf(t, s).Do(t.Context(), http.MethodGet, "/v1/account/balance", in, &out, gateway.ResponseInto(&resp), gateway.Query("x", "1"))
		require.NoError(t, err)
		assert.Equal(t, int64(1200), out.Balance, "a number sent as a string is decoded")
		assert.Equal(t, gateway.BRL, out.Currency)
		assert.Equal(t, "from=2027-01-04&x=1", s.requests[0].URL.RawQuery)
		assert.Empty(t, s.bodies[0])
		assert.Equal(t, 200, resp.StatusCode)
	})
	t.Run("sends and returns bytes", func(t *testing.T) {
		t.Parallel()
		s := play(reply(200, "not JSON"))
		var out []byte
		err := clientOf(t, s).Do(t.Context(), http.MethodPost, "/v2/reports/a%2Fb", map[string]int{"b": 1, "a": 2}, &out)
		require.NoError(t, err)
		assert.Equal(t, "not JSON", string(out))
		assert.Equal(t, `{"a":2,"b":1}`, s.bodies[0])
		assert.Equal(t, "/v2/reports/a%2Fb", s.requests[0].URL.EscapedPath())
	})
	t.Run("without a body or a result", func(t *testing.T) {
		t.Parallel()
		s := play(reply(204, ""))
		require.NoError(t, clientOf(t, s).Do(t.Context(), http.MethodDelete, "/v2/things/1", nil, nil))
		assert.Empty(t, s.requests[0].Header.Get("Content-Type"))
	})
	t.Run("errors contain the name of the operation", func(t *testing.T) {
		t.Parallel()
		s := play(reply(404, `{"title":"Not Found"}`))
		err := clientOf(t, s).Do(t.Context(), http.MethodGet, "/v2/things/1", nil, nil, gateway.Named("things.get", "/v2/things/{id}"))
		require.ErrorIs(t, err, gateway.ErrNotFound)
		assert.Equal(t, "gateway: things.get: 404 Not Found", err.Error())
	})
	t.Run("the name does not change the path of another method", func(t *testing.T) {
		t.Parallel()
		s := play(reply(404, `{"title":"Not Found"}`))
		_, err := clientOf(t, s).Transactions.Get(t.Context(), orderID, gateway.Named("orders.payment", "/orders/{id}"))
		require.EqualError(t, err, "gateway: orders.payment: 404 Not Found")
		assert.Equal(t, "/v2/transactions/"+orderID, s.requests[0].URL.Path)
	})
	t.Run("a write of the v1 surface has no idempotency key", func(t *testing.T) {
		t.Parallel()
		for path, attempts := range map[string]int{"/pix/v1/payment": 1, "/v2/things": 2} {
			s := play(fail(errReset), reply(200, `{}`))
			client, err := gateway.New("https://proxy.example/v1/gateway", gateway.BearerToken(testKey), gateway.WithIdempotencyKeys(),
				gateway.WithHTTPClient(&http.Client{Transport: s}))
			require.NoError(t, err)
			err = client.Do(t.Context(), http.MethodPost, path, struct{}{}, nil, gateway.Named("pay", "/pay"))
			assert.Equal(t, attempts == 1, errors.Is(err, gateway.ErrOutcomeUnknown), path)
			assert.Len(t, s.at, attempts, path)
		}
	})
	t.Run("a write is not repeated", func(t *testing.T) {
		t.Parallel()
		s := play(fail(errReset))
		require.ErrorIs(t, clientOf(t, s).Do(t.Context(), http.MethodPost, "/v2/things", struct{}{}, nil), gateway.ErrOutcomeUnknown)
		assert.Len(t, s.at, 1)
	})
	t.Run("a response that can't be read", func(t *testing.T) {
		t.Parallel()
		s := play(reply(200, `{"id":"t-1"`))
		var out map[string]any
		err := clientOf(t, s).Do(t.Context(), http.MethodPost, "/v2/things", struct{}{}, &out)
		var outcome *gateway.OutcomeError
		require.ErrorAs(t, err, &outcome)
		assert.Equal(t, "t-1", outcome.ResourceID)
	})
	for name, path := range map[string]string{
		"relative": "v2/things", "dots": "/v2/../v1", "escaped dots": "/v2/%2e%2e/v1", "query": "/v2/things?x=1", "fragment": "/v2#x", "escape": "/v2/%zz", "empty": "",
	} {
		t.Run("rejects "+name, func(t *testing.T) {
			t.Parallel()
			s := play()
			require.ErrorContains(t, clientOf(t, s).Do(t.Context(), http.MethodGet, path, nil, nil), "the path")
			assert.Empty(t, s.at)
		})
	}
}
