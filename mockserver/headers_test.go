package mockserver_test

import (
	"io"
	"net/http"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
)

// signedShop verifies every delivery with its operator's header names.
type signedShop struct {
	names webhook.HeaderNames

	mu   sync.Mutex
	errs []error
}

func (s *signedShop) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	v := webhook.Verifier{Keys: []webhook.SigningKey{{Key: gateway.NewSecret("whsec_mock")}}, Headers: s.names}
	err := v.Verify(r.Header, body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errs = append(s.errs, err)
}

func TestTheSignatureHeadersOfTheOperator(t *testing.T) {
	t.Parallel()
	server := webhook.HeaderNames{Timestamp: "X-Acme-Timestamp", Signature: "x-acme-signature"}
	for name, tc := range map[string]struct {
		server, endpoint, receiver webhook.HeaderNames
	}{
		"the default ones":                {},
		"the server's":                    {server: server, receiver: server},
		"the server's signature":          {server: webhook.HeaderNames{Signature: "X-Sig"}, receiver: webhook.HeaderNames{Signature: "X-Sig"}},
		"the endpoint's":                  {endpoint: server, receiver: server},
		"the endpoint's takes precedence": {server: webhook.HeaderNames{Timestamp: "X-A", Signature: "X-B"}, endpoint: server, receiver: server},
		"one of each": {
			server: server, endpoint: webhook.HeaderNames{Signature: "X-B"},
			receiver: webhook.HeaderNames{Timestamp: "X-Acme-Timestamp", Signature: "X-B"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "data")
			gw := reopen(t, nil, path, mockserver.WithSignatureHeaders(tc.server))
			_, err := gw.Account(gw.Key()).Webhooks.AddEndpoint(mockserver.Endpoint{
				URL: "https://shop.test/hook", Secret: gateway.NewSecret("whsec_mock"), Headers: tc.endpoint,
			})
			require.NoError(t, err)
			gw = reopen(t, gw, path, mockserver.WithSignatureHeaders(tc.server)) // endpoints keep their names
			assert.Equal(t, tc.endpoint, gw.Webhooks.Endpoints()[0].Headers)
			shop := &signedShop{names: tc.receiver}
			gw.Webhooks.ServeHost("shop.test", shop)
			_, err = gw.Client().Transactions.Create(t.Context(), order("order-1"))
			require.NoError(t, err)
			require.NoError(t, gw.Wait(t.Context()))
			assert.Equal(t, []error{nil, nil}, shop.errs)
		})
	}
}

func TestSignatureHeadersByCall(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	p := plane{t: t, gw: gw}
	ep := do[object](p, http.MethodPost, "/endpoints",
		`{"url":"https://shop.test/hook","secret":"whsec_mock","timestamp_header":"X-T","signature_header":"X-S"}`)
	assert.Equal(t, "X-T", ep["timestamp_header"])
	assert.Equal(t, "X-S", ep["signature_header"])
	assert.Equal(t, webhook.HeaderNames{Timestamp: "X-T", Signature: "X-S"}, gw.Webhooks.Endpoints()[0].Headers)
	for body, detail := range map[string]string{
		`"signature_header":"X S"`:                           "X S",
		`"timestamp_header":"X-A:"`:                          "X-A:",
		`"signature_header":"content-type"`:                  "content-type",
		`"timestamp_header":"X-S","signature_header":"x-s"`:  "can't both",
		`"timestamp_header":"x-gateway-signature"`:           "can't both",
		`"signature_header":"X-S\r\nX-Injected: everything"`: "header name",
	} {
		status, v := p.call(http.MethodPost, "/endpoints", `{"url":"https://shop.test/hook",`+body+`}`)
		assert.Equal(t, http.StatusBadRequest, status, body)
		assert.Contains(t, v["detail"], detail, body)
	}
	_, err := mockserver.New(mockserver.WithSignatureHeaders(webhook.HeaderNames{Signature: "Host"}))
	require.ErrorContains(t, err, "WithSignatureHeaders: the header Host can't carry a signature")
}
