package legacy

import (
	"cmp"
	stdjson "encoding/json"
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

	// Raw is the JSON as received, with what this version has no field for. It is
	// not printed.
	Raw stdjson.RawMessage `json:"-"`
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
}

type integrationData struct {
	PixWebhookURL string `json:"pixWebhookUrl"`
}

// UnmarshalJSON reads both variants.
func (i *Integration) UnmarshalJSON(b []byte) error {
	var w integrationWire
	if err := wire.Decode(b, &w); err != nil {
		return err
	}
	*i = Integration{ID: w.ID, WebhookURL: w.WebhookURL, PixWebhookURL: w.PixWebhookURL, Message: w.Message}
	if w.Data != nil {
		i.PixWebhookURL = cmp.Or(w.Data.PixWebhookURL, w.PixWebhookURL)
	}
	if w.Status.Kind() == '"' {
		return json.Unmarshal(w.Status, &i.Status)
	}
	i.StatusCode, _ = strconv.Atoi(string(w.Status)) // 0 if it is missing, null or not an integer
	return nil
}

// MarshalJSON writes the variant that was read: the second one if there is
// a StatusCode.
func (i Integration) MarshalJSON() ([]byte, error) {
	w := integrationWire{ID: i.ID, WebhookURL: i.WebhookURL, Message: i.Message}
	if i.StatusCode == 0 {
		w.PixWebhookURL = i.PixWebhookURL
		w.Status, _ = json.Marshal(i.Status) // a string always encodes
		return wire.Marshal(&w)
	}
	w.Status = strconv.AppendInt(nil, int64(i.StatusCode), 10)
	w.Data = &integrationData{PixWebhookURL: i.PixWebhookURL}
	return wire.Marshal(&w)
}
