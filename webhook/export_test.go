package webhook

import (
	"time"

	"github.com/gateway-go/gateway"
)

// SignText gives the signature of Sign with any text for the timestamp.
func SignText(key gateway.Secret, timestamp string, body []byte) string {
	var text [signatureSize]byte
	mac(&text, key, timestamp, body)
	return string(text[:])
}

// Verdict judges an event of a kind by a resource.
func Verdict(k Kind, state any, now time.Time) string {
	var r resource
	switch s := state.(type) {
	case *gateway.Transaction:
		r.transaction = s
	case *gateway.Transfer:
		r.transfer = s
	case *gateway.Subscription:
		r.subscription = s
	}
	c := confirm(&Event{Kind: k, Family: k.Family(), ResourceID: "x"}, &r, now)
	return [...]string{confirmed: "confirmed", behind: "behind", refuted: "refuted"}[c.verdict]
}
