package gateway_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
)

const oddKey = "K3y-of-another_shape.42"

func textsOf(t *testing.T, err error) string {
	t.Helper()
	var e *gateway.Error
	require.ErrorAs(t, err, &e)
	return fmt.Sprintf("%v|%+v|%#v|%s|%v|%v|%s|%+v", err, *e, e.Fields, e.Body, e.Header, e.LogValue(), e.RequestID, e.Err)
}

// A gateway, or a proxy, that repeats what it was sent must not put a key into
// the logs of the caller.
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
			client, err := gateway.New("https://api.test", credential, gateway.WithHTTPClient(&http.Client{Transport: roundTripFunc(echo)}))
			require.NoError(t, err)
			_, err = client.Transactions.Get(t.Context(), "1", gateway.ResponseInto(&response))
			require.ErrorIs(t, err, gateway.ErrUnauthorized)
			texts := textsOf(t, err) + response.RequestID
			for _, secret := range []string{oddKey, pair, strings.TrimRight(pair, "="), oddKey[:12], base64.StdEncoding.EncodeToString([]byte(oddKey))} {
				assert.NotContains(t, texts, secret)
			}
			assert.Contains(t, texts, "no such key [redacted]")
		})
	}
}

func TestAnErrorOfTheTransportShowsNoURLQueryOrCredential(t *testing.T) {
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
			transport := roundTripFunc(func(r *http.Request) (*http.Response, error) { return nil, fail(r) })
			client, err := gateway.New("https://api.test", gateway.BearerToken(oddKey),
				gateway.WithHTTPClient(&http.Client{Transport: transport}), gateway.WithMaxAttempts(1))
			require.NoError(t, err)
			_, err = client.Transactions.List(t.Context(), gateway.TransactionListParams{Email: "maria@example.com"})
			require.ErrorIs(t, err, cause)
			texts := textsOf(t, err)
			for _, secret := range []string{oddKey, "maria", "email=", "/v2/transactions?", "52998224725", "hunter22"} {
				assert.NotContains(t, texts, secret)
			}
			assert.Contains(t, texts, "the cause")
		})
	}
}
