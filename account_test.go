package gateway_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
)

func newAccountClient(t *testing.T, baseURL string, opts ...gateway.Option) *gateway.Client {
	t.Helper()
	client, err := gateway.New(baseURL, gateway.BearerToken("sk_test_1"), append([]gateway.Option{gateway.WithInsecureHTTP()}, opts...)...)
	require.NoError(t, err)
	return client
}

func TestAccountName(t *testing.T) {
	t.Parallel()
	for name, says := range map[string]string{
		"shop":                  "",
		"Shop_BR-2.sandbox":     "",
		strings.Repeat("a", 64): "",
		strings.Repeat("a", 65): "the name has 65 bytes: it must have 1 to 64",
		"":                      "the name has 0 bytes",
		"shop br":               `contains ' '`,
		"shop\n":                `contains '\n'`,
		"shop\x00":              `contains '\x00'`,
		"loja-são":              `contains 'ã'`,
		"a/b":                   `contains '/'`,
		"\xff":                  "contains",
	} {
		client, err := gateway.New(baseURL, gateway.BearerToken("sk_test_1"), gateway.WithAccount(name))
		if says != "" {
			require.ErrorContains(t, err, "gateway: WithAccount: ")
			require.ErrorContains(t, err, says)
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, name, client.Account().Name)
	}
}

// TestAccountStays: a client made by With, also one with another credential,
// belongs to the same account.
func TestAccountStays(t *testing.T) {
	t.Parallel()
	client := newAccountClient(t, baseURL, gateway.WithAccount("shop"))
	rotated, err := client.With(gateway.WithCredential(gateway.APIKey("sk_test_2")), gateway.WithMaxAttempts(1))
	require.NoError(t, err)
	assert.Equal(t, client.Account(), rotated.Account())
	other, err := client.With(gateway.WithAccount("other"))
	require.NoError(t, err)
	assert.Equal(t, "other", other.Account().Name)
	assert.Equal(t, "shop", client.Account().Name)
	assert.Empty(t, newAccountClient(t, baseURL).Account().Name)
}

// TestFingerprint: it is the same for different spellings of a base URL, and
// differs between base URLs. Stored fingerprints must stay valid, so one value is
// fixed here.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	fingerprint := func(url string) string { return newAccountClient(t, url).Account().Fingerprint }
	assert.Equal(t, "137b9e5e4e13211c", fingerprint("https://api.example.com"))
	for _, same := range [][]string{
		{"https://api.example.com", "https://api.example.com/", "HTTPS://API.example.com:443", "https://api.example.com//"},
		{"http://127.0.0.1", "http://127.0.0.1:80/"},
		{"http://[::1]", "http://[::1]:80"},
	} {
		for _, url := range same {
			assert.Equal(t, fingerprint(same[0]), fingerprint(url), url)
		}
	}
	seen := map[string]string{}
	for _, url := range []string{
		"https://api.example.com", "http://api.example.com", "https://sandbox.example.com", "https://api.example.com:8443",
		"https://api.example.com/pay", "https://api.example.com/Pay", "http://[::1]", "http://[::1]:81",
	} {
		f := fingerprint(url)
		assert.Empty(t, seen[f], url)
		seen[f] = url
	}
}
