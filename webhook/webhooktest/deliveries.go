package webhooktest

import (
	"net/http"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/webhook"
)

// Secret is a signing key for tests.
const Secret = gateway.Secret("whsec_test_of_webhooktest")

// Sign returns the headers of a signed delivery of body.
func Sign(key gateway.Secret, at time.Time, body []byte) http.Header {
	timestamp, signature := webhook.Sign(key, at, body)
	return http.Header{
		"Content-Type":                 {"application/json"},
		webhook.DefaultTimestampHeader: {timestamp},
		webhook.DefaultSignatureHeader: {signature},
	}
}
