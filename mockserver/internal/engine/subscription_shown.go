package engine

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/internal/spec"
)

// AuthorizationURL returns where the payer of a Pix Automatico can authorize it.
func (s *Subscription) AuthorizationURL() string { return payPage + "authorizations/" + s.ID }

// provider is the member of the metadata in which the gateway reports the mandate.
const provider = "provider_recurring"

// ReportedMetadata returns the metadata of s as a JSON object, "" for none. In the
// live reading of pix-authorization, that of a Pix Automatico has the status of the mandate too.
func (s *Subscription) ReportedMetadata(dialect spec.Dialect) string {
	if s.Authorization == nil || !dialect.Live(spec.PixAuthorization) {
		return s.Metadata
	}
	members := map[string]jsontext.Value{}
	if s.Metadata != "" && json.Unmarshal([]byte(s.Metadata), &members) != nil {
		return s.Metadata // a string or a number: a snapshot's
	}
	members[provider] = jsontext.Value(`{"mandate_status":"` + s.Authorization.Status + `"}`)
	text, err := json.Marshal(members, json.Deterministic(true))
	if err != nil {
		return s.Metadata
	}
	return string(text)
}
