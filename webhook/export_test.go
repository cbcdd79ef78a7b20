package webhook

import "github.com/gateway-go/gateway"

// SignText gives the signature of Sign with any text for the timestamp.
func SignText(key gateway.Secret, timestamp string, body []byte) string {
	var text [signatureSize]byte
	mac(&text, key, timestamp, body)
	return string(text[:])
}
