package legacy

import (
	"cmp"
	stdjson "encoding/json"
	"maps"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/internal/wire"
)

// Integration is the response to POST /v1/business/integration, which has two
// variants in the contract. The first has ID, both URLs and Status; the second
// has PixWebhookURL, StatusCode and Message.
type Integration struct {
	ID            string
	WebhookURL    string
	PixWebhookURL string
	Status        string // "active"
	StatusCode    int    // 201: the second variant has it instead of Status
	Message       string // human-readable

	// Extra has the fields unknown to this version. Those of the second variant's
	// data object are in the object Extra["data"].
	Extra map[string]stdjson.RawMessage
}

// integrationWire covers both variants: status is a string in one and a number in
// the other, and pixWebhookUrl is at the top level or in data.
type integrationWire struct {
	ID            string           `json:"id,omitzero"`
	WebhookURL    string           `json:"webhookUrl,omitzero"`
	PixWebhookURL string           `json:"pixWebhookUrl,omitzero"`
	Status        jsontext.Value   `json:"status,omitzero"`
	Message       string           `json:"message,omitzero"`
	Data          *integrationData `json:"data,omitzero"`

	Extra map[string]stdjson.RawMessage `json:",embed"`
}

type integrationData struct {
	PixWebhookURL string `json:"pixWebhookUrl"`

	Extra map[string]stdjson.RawMessage `json:",embed"`
}

// UnmarshalJSON reads both variants.
func (i *Integration) UnmarshalJSON(b []byte) error {
	var w integrationWire
	if err := wire.Decode(b, &w); err != nil {
		return err
	}
	*i = Integration{ID: w.ID, WebhookURL: w.WebhookURL, PixWebhookURL: w.PixWebhookURL, Message: w.Message, Extra: w.Extra}
	if w.Data != nil {
		i.PixWebhookURL = cmp.Or(w.Data.PixWebhookURL, w.PixWebhookURL)
		i.keep("data", w.Data.Extra)
	}
	if w.Status.Kind() == '"' {
		return json.Unmarshal(w.Status, &i.Status)
	}
	i.StatusCode, _ = strconv.Atoi(string(w.Status)) // 0 if it is missing, null or not an integer
	return nil
}

// keep puts the unknown fields of a nested object into Extra.
func (i *Integration) keep(name string, fields map[string]stdjson.RawMessage) {
	if len(fields) == 0 {
		return
	}
	raw, err := json.Marshal(fields, json.Deterministic(true))
	if err != nil {
		return
	}
	if i.Extra == nil {
		i.Extra = make(map[string]stdjson.RawMessage, 1)
	}
	i.Extra[name] = raw
}

// MarshalJSON writes the variant that was read: the second one if there is
// a StatusCode.
func (i Integration) MarshalJSON() ([]byte, error) {
	w := integrationWire{ID: i.ID, WebhookURL: i.WebhookURL, Message: i.Message, Extra: maps.Clone(i.Extra)}
	if i.StatusCode == 0 {
		w.PixWebhookURL = i.PixWebhookURL
		w.Status, _ = json.Marshal(i.Status) // a string always encodes
		return wire.Marshal(&w)
	}
	w.Status = strconv.AppendInt(nil, int64(i.StatusCode), 10)
	w.Data = &integrationData{PixWebhookURL: i.PixWebhookURL}
	if raw, ok := w.Extra["data"]; ok {
		delete(w.Extra, "data")
		if err := json.Unmarshal(raw, &w.Data.Extra); err != nil {
			return nil, err
		}
	}
	return wire.Marshal(&w)
}
