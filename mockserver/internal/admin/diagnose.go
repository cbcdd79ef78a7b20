package admin

import (
	"cmp"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/webhook"
)

// DiagnoseBody is a delivery as its receiver got it. Its secret is used for this
// call alone: it is not stored, logged or returned.
type DiagnoseBody struct {
	Headers    map[string]string `json:"headers"`              // of the rejected request; repeated ones separated by commas
	Body       string            `json:"body,omitzero"`        // of that request
	BodyBase64 string            `json:"body_base64,omitzero"` // instead of body, for bytes that are not UTF-8
	Secret     string            `json:"secret,omitzero"`      // that the receiver verifies with; those of the account's endpoints if omitted
	ReceivedAt string            `json:"received_at,omitzero"` // wall time, such as "2027-02-01T00:00:00Z"; default now

	// The names that the receiver expects; the server's if they are not sent.
	TimestampHeader string `json:"timestamp_header,omitzero"`
	SignatureHeader string `json:"signature_header,omitzero"`
}

// maxOthers is how many of the latest deliveries a signature is compared with.
const maxOthers = 1000

// diagnose explains why a receiver rejects a signature.
func (p *Plane) diagnose(c *call, in DiagnoseBody) (any, error) {
	d, now, err := in.delivery()
	if err != nil {
		return nil, err
	}
	endpoints := p.endpointKeys(c.key)
	v := webhook.Verifier{
		Keys: endpoints,
		Headers: webhook.HeaderNames{
			Timestamp: cmp.Or(in.TimestampHeader, p.core.Headers.Timestamp),
			Signature: cmp.Or(in.SignatureHeader, p.core.Headers.Signature),
		},
		Now: func() time.Time { return now },
	}
	others := p.bodies(c.key)
	if in.Secret == "" {
		return v.Diagnose(d, others...), nil
	}
	v.Keys = []webhook.SigningKey{{ID: "secret", Key: gateway.NewSecret(in.Secret)}}
	given := v.Diagnose(d, others...)
	i := slices.IndexFunc(given.Findings, func(f webhook.Finding) bool { return f.Cause == "wrong_secret" })
	if i < 0 {
		return given, nil
	}
	v.Keys = endpoints
	if real := v.Diagnose(d, others...); real.KeyID != "" {
		f := given.Findings[i]
		f.Proven, f.Detail = true, "The signature was made with the secret of the endpoint "+real.KeyID+", not with the given one."
		real.Valid, real.Error, real.Findings = false, given.Error, append([]webhook.Finding{f}, real.Findings...)
		return real, nil
	}
	return given, nil
}

// delivery returns the delivery that the call describes, and when it was
// received.
func (in *DiagnoseBody) delivery() (d webhook.Delivery, received time.Time, err error) {
	d = webhook.Delivery{Header: http.Header{}, Body: []byte(in.Body)}
	for name, value := range in.Headers {
		name = http.CanonicalHeaderKey(strings.TrimSpace(name))
		d.Header[name] = append(d.Header[name], strings.TrimSpace(value))
	}
	if in.BodyBase64 != "" {
		if in.Body != "" {
			return d, received, invalid("only one of body and body_base64 can be sent")
		}
		if d.Body, err = base64.StdEncoding.DecodeString(in.BodyBase64); err != nil {
			return d, received, invalid("body_base64 is not base64")
		}
	}
	received = time.Now() // signatures use wall time, independent of the virtual clock
	if in.ReceivedAt != "" {
		if received, err = time.Parse(time.RFC3339, in.ReceivedAt); err != nil {
			return d, received, invalid(`received_at must be a timestamp such as "2027-02-01T00:00:00Z"`)
		}
	}
	return d, received, nil
}

// endpointKeys returns the secrets of the endpoints that get an account's events,
// under the endpoints' ids.
func (p *Plane) endpointKeys(account string) (keys []webhook.SigningKey) {
	for _, e := range p.core.Sender.Endpoints("") {
		if (e.Account == account || e.Account == "") && !e.Secret.IsZero() {
			keys = append(keys, webhook.SigningKey{ID: e.ID, Key: e.Secret})
		}
	}
	return keys
}

// bodies returns the bodies of the latest deliveries of an account, each once.
func (p *Plane) bodies(account string) (list [][]byte) {
	seen := map[string]bool{}
	deliveries := p.core.Sender.Deliveries(account)
	for _, d := range deliveries[max(0, len(deliveries)-maxOthers):] {
		if !seen[d.EventID] {
			seen[d.EventID] = true
			list = append(list, d.Body)
		}
	}
	return list
}
