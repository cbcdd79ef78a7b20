package gatewayprobe_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/gatewayprobe"
	"github.com/gateway-go/gateway/mockserver"
)

// roundTrip is a function as a transport.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// never is a client whose use fails the test.
func never(t *testing.T) *http.Client {
	t.Helper()
	return &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		t.Errorf("unexpected request: %s %s", r.Method, r.URL)
		return nil, errors.New("unexpected request")
	})}
}

func TestOnlyASandboxIsProbed(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		url, key string
		known    bool
	}{
		"a production key":                              {"https://sandbox.gateway.test", "sk_live_1", false},
		"a production key, declared a sandbox":          {"https://sandbox.gateway.test", "sk_live_1", true},
		"a key of unknown form":                         {"https://sandbox.gateway.test", "abc", false},
		"a host whose name does not identify a sandbox": {"https://api.gateway.example", "sk_test_1", false},
		"a host with the word inside another":           {"https://latest.gateway.example", "sk_test_1", false},
	} {
		_, err := gatewayprobe.Run(t.Context(), gatewayprobe.Config{
			BaseURL: row.url, Key: gateway.NewSecret(row.key), KnownSandbox: row.known, HTTPClient: never(t),
		})
		require.ErrorIs(t, err, gatewayprobe.ErrNotSandbox, name)
		assert.NotContains(t, err.Error(), row.key, name)
	}
}

func TestASandboxIsRecognized(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		url, key string
		known    bool
	}{
		"by its host":               {"https://sandbox.gateway.example", "sk_test_1", false},
		"by a part of its host":     {"https://api-sandbox.gateway.example", "sk_test_1", false},
		"by loopback":               {"http://127.0.0.1:4010", "sk_test_1", false},
		"by the user's declaration": {"https://api.gateway.example", "abc", true},
	} {
		sent := 0
		_, err := gatewayprobe.Run(t.Context(), gatewayprobe.Config{
			BaseURL: row.url, Key: gateway.NewSecret(row.key), KnownSandbox: row.known,
			HTTPClient: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
				sent++
				return nil, errors.New("no route to host")
			})},
		})
		require.ErrorContains(t, err, "the gateway can't be reached: no route to host", name)
		assert.Equal(t, 1, sent, name)
	}
}

func TestInvalidConfigsAreRejected(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*gatewayprobe.Config){
		"BaseURL must be a URL":              func(c *gatewayprobe.Config) { c.BaseURL = "sandbox" },
		"BaseURL must be a URL without":      func(c *gatewayprobe.Config) { c.BaseURL += "/v2?key=1" },
		"BaseURL must be https":              func(c *gatewayprobe.Config) { c.BaseURL = "http://sandbox.gateway.test" },
		"the Key must be":                    func(c *gatewayprobe.Config) { c.Key = gateway.NewSecret("sk_test_1\n") },
		`has no row "no-such-row"`:           func(c *gatewayprobe.Config) { c.Only = []string{"no-such-row"} },
		"the Rate must be from 0.01 to 1000": func(c *gatewayprobe.Config) { c.Rate = math.NaN() },
		"the Rate must be from 0.01":         func(c *gatewayprobe.Config) { c.Rate = 1e-12 },
		"must not be negative":               func(c *gatewayprobe.Config) { c.MaxRequests = -1 },
		"WebhookURL and Receiver":            func(c *gatewayprobe.Config) { c.WebhookURL = "https://probe.example" },
	} {
		cfg := gatewayprobe.Config{BaseURL: "https://sandbox.gateway.test", Key: gateway.NewSecret("sk_test_1"), HTTPClient: never(t)}
		change(&cfg)
		_, err := gatewayprobe.Run(t.Context(), cfg)
		require.ErrorContains(t, err, want)
	}
}

// The probe identifies the gateway before it creates anything there.
func TestNothingIsCreatedAtAGatewayThatIsNotASandbox(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t, mockserver.WithProduction())
	cfg := gatewayprobe.Config{
		BaseURL: mockserver.BaseURL, Key: gateway.NewSecret("token_of_an_operator"), KnownSandbox: true,
		HTTPClient: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			r.Header.Set("Authorization", "Bearer "+gw.Key()) // a proxy that adds its own key
			return gw.Transport().RoundTrip(r)
		})},
	}
	_, err := gatewayprobe.Run(t.Context(), cfg)
	require.ErrorIs(t, err, gatewayprobe.ErrNotSandbox)
	requests := gw.Requests.All()
	require.Len(t, requests, 1)
	assert.Equal(t, http.StatusForbidden, requests[0].Status)
}

func TestAWrongKeyIsReportedBeforeTheFirstRow(t *testing.T) {
	t.Parallel()
	_, err := gatewayprobe.Run(t.Context(), gatewayprobe.Config{
		BaseURL: mockserver.BaseURL, Key: gateway.NewSecret("pk_test_1"), KnownSandbox: true,
		HTTPClient: &http.Client{Transport: mockserver.Run(t).Transport()},
	})
	require.ErrorContains(t, err, "the gateway rejects the API key (401)")
}

func TestAReportContainsNoKeyDocumentOrCard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		text, err := json.Marshal(probe(t, gatewayprobe.Config{}, mockserver.WithDialect(mockserver.Live)))
		require.NoError(t, err)
		for _, secret := range []string{
			"sk_test_mock", "sk_test_gatewayprobe", "sk_live_gatewayprobe", "52998224725", "529.982.247-25", "11222333000181",
			"4111 1111", "41111111", "Probe Buyer", "@example.com", "11987654321", "cst_", "pgct_ok", "Rua das Flores",
		} {
			if at := strings.Index(string(text), secret); at >= 0 {
				t.Errorf("%s is in the report: %s", secret, text[max(0, at-200):at+40])
			}
		}
		assert.Contains(t, string(text), `\"external_ref\":\"probe-`, "the report has the exchanges")
	})
}

// Redirects are not followed: another host must not get the key.
func TestARedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	hosts := map[string]int{}
	_, err := gatewayprobe.Run(t.Context(), gatewayprobe.Config{
		BaseURL: "https://sandbox.gateway.test", Key: gateway.NewSecret("sk_test_1"),
		HTTPClient: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			hosts[r.URL.Host]++
			return &http.Response{
				StatusCode: http.StatusTemporaryRedirect, Body: http.NoBody, Request: r,
				Header: http.Header{"Location": {"https://evil.example/"}},
			}, nil
		})},
	})
	require.ErrorIs(t, err, gatewayprobe.ErrNotSandbox)
	assert.Equal(t, map[string]int{"sandbox.gateway.test": 1}, hosts)
}

func TestTheRateAndTheNumberOfRequestsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		report := probe(t, gatewayprobe.Config{Rate: 2, MaxRequests: 11, Only: []string{"list-envelope", "transaction-states", "validation-status", "transaction-metadata", "transfer-amount"}})
		assert.Equal(t, 11, report.Requests)
		assert.GreaterOrEqual(t, time.Since(begin), 5*time.Second)
		last := report.Results[len(report.Results)-1]
		assert.Equal(t, gatewayprobe.CannotTell, last.Verdict)
		assert.Equal(t, "the run has reached its request limit", last.Why)
	})
}

func TestTheProbeWaitsForTheRateLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin, limited := time.Now(), 0
		report := probeWith(t, gatewayprobe.Config{Only: []string{"validation-status"}}, func(next http.RoundTripper) http.RoundTripper {
			return mutated{next: next, n: new(int), change: func(x *exchange) {
				if limited++; limited <= 2 {
					x.status = http.StatusTooManyRequests
					x.header.Set("Retry-After", "7")
				}
			}}
		}, nil)
		assert.Equal(t, gatewayprobe.Agrees, report.Results[0].Verdict)
		assert.GreaterOrEqual(t, time.Since(begin), 14*time.Second)
	})
}

// A gateway that is down, returns 403 or limits the rate is not reported as
// differing.
func TestFailuresAreNotReadings(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]int{
		"an outage": http.StatusServiceUnavailable, "a feature that is off": http.StatusForbidden, "a rate limit": http.StatusTooManyRequests,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				report := probeWith(t, gatewayprobe.Config{}, func(next http.RoundTripper) http.RoundTripper {
					return mutated{next: next, n: new(int), change: func(x *exchange) { x.respond(status, map[string]any{}) }}
				}, nil)
				for _, result := range report.Results {
					assert.Equal(t, gatewayprobe.CannotTell, result.Verdict, "%s: %s", result.ID, result.Summary())
				}
			})
		})
	}
}

func TestTransfersAndSubscriptionsAreCancelledEvenIfARunIsStopped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gw := mockserver.Run(t, mockserver.WithStart(time.Now()), mockserver.WithRealtime(1))
		ctx, stop := context.WithCancel(t.Context())
		report, err := gatewayprobe.Run(ctx, gatewayprobe.Config{
			BaseURL: mockserver.BaseURL, Key: gateway.NewSecret(gw.Key()), Only: []string{"transfer-amount", "null-members", "transfer-balance"},
			HTTPClient: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				res, err := gw.Transport().RoundTrip(r)
				if gw.Requests.Count("POST /v2/subscriptions") == 1 {
					stop() // in the middle of null-members
				}
				return res, err
			})},
		})
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, "stopped at null-members")
		require.Len(t, report.Results, 1)
		client := gw.Client()
		for transfer, err := range client.Transfers.All(t.Context(), gateway.TransferListParams{}) {
			require.NoError(t, err)
			assert.Equal(t, gateway.TransferCancelled, transfer.Status)
		}
		for subscription, err := range client.Subscriptions.All(t.Context(), gateway.SubscriptionListParams{}) {
			require.NoError(t, err)
			assert.Equal(t, gateway.SubscriptionCanceled, subscription.Status)
		}
		assert.Equal(t, 2, gw.Requests.Count("POST /v2/transfers"))
	})
}

func TestWithoutAReceiverWebhookRowsAreInconclusive(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	report, err := gatewayprobe.Run(t.Context(), gatewayprobe.Config{
		BaseURL: mockserver.BaseURL, Key: gateway.NewSecret(gw.Key()), Only: []string{"event-id"},
		HTTPClient: &http.Client{Transport: gw.Transport()},
	})
	require.NoError(t, err)
	assert.Equal(t, gatewayprobe.CannotTell, report.Results[0].Verdict)
	assert.Contains(t, report.Results[0].Why, "receiver")
}

// A gateway must not be able to send control characters to the terminal.
func TestAReadingContainsNoControlCharacters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		report := probeWith(t, gatewayprobe.Config{Only: []string{"amount-minimum"}}, func(next http.RoundTripper) http.RoundTripper {
			return mutated{next: next, n: new(int), change: func(x *exchange) {
				field := "\x1b]0;owned\a" + strings.Repeat("é", 1000)
				x.respond(http.StatusBadRequest, map[string]any{"code": "\x1b[2J", "errors": []any{map[string]any{"field": field}}})
			}}
		}, nil)
		text := report.Results[0].Summary()
		assert.Contains(t, text, "400 ?[2J (?]0;owned?é")
		assert.NotContains(t, text, "\x1b")
		assert.Less(t, len(text), 400)
		assert.True(t, utf8.ValidString(text))
	})
}
