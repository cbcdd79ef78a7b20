package openapi

import (
	"reflect"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/deliver"
	"github.com/gateway-go/gateway/webhook"
)

// webhooks has one entry for each kind of event that a gateway sends.
func (d *document) webhooks() (object, error) {
	var out object
	kinds, dialect := webhook.DocumentedKinds(), spec.DocumentDialect
	if d.live {
		dialect = spec.LiveDialect
		// Sent by live gateways, but not documented.
		kinds = append(kinds, webhook.TransactionPartiallyRefunded, webhook.PayoutRejected)
	}
	for _, k := range kinds {
		body, err := deliver.Sample(k, dialect)
		if err != nil {
			return nil, err
		}
		out.set(string(k), obj("post", obj(
			"operationId", strings.ReplaceAll(string(k), ".", "_"),
			"tags", []string{string(k.Family()) + "s"},
			"summary", string(k),
			"description", d.sent(k)+" Deduplicate by the top-level id: it is the same on every redelivery, and so are the bytes.",
			"security", []object{},
			"parameters", signature(),
			"requestBody", obj("required", true, "content", obj("application/json", obj(
				"schema", d.event(k),
				"examples", obj("sample", obj("value", jsontext.Value(body))),
			))),
			"responses", obj("2XX", obj("description", "Received. Any other status, or no response in 10 seconds, causes a redelivery.")),
		)))
	}
	return out, nil
}

// sent says where an event is sent and which status the resource has then.
func (d *document) sent(k webhook.Kind) string {
	to, member := "the registered endpoints and the "+string(k.Family())+"'s notify_url", "data.status"
	switch k.Family() { //nolint:exhaustive // transactions are the usual case
	case webhook.FamilySubscription:
		to = "the registered endpoints"
	case webhook.FamilyTransfer:
		member = "data.object.status"
	}
	return "Sent to " + to + ". " + member + " is then " + d.status(k) + "."
}

// status names the statuses that an event can report. Some kinds have several:
// a card that is charged at once is created as paid or captured, for example.
func (d *document) status(k webhook.Kind) string {
	switch k { //nolint:exhaustive // the others have one
	case webhook.TransactionCreated:
		if d.live {
			return "pending, or for a card also paid, captured, refused or three_ds_required"
		}
		return "pending, or for a card also paid, captured or refused"
	case webhook.TransactionThreeDSRequired:
		if d.live {
			return "three_ds_required"
		}
	case webhook.TransactionPaid:
		return "paid, or for a card also captured"
	case webhook.TransactionRefunded:
		if !d.live { // live gateways have another kind for a part
			return "refunded or partially_refunded"
		}
	case webhook.SubscriptionCreated:
		return "active, trialing or incomplete"
	case webhook.SubscriptionUpdated:
		return "the one after the update"
	case webhook.SubscriptionPaymentFailed:
		return "past_due, canceled after the last attempt, or incomplete if the first charge failed"
	}
	return k.Status()
}

// signature lists the headers of a signed delivery.
func signature() []object {
	about := []struct{ name, text string }{
		{webhook.DefaultTimestampHeader, "When the delivery was signed, in Unix seconds. Verify the signature, then reject a timestamp more than 300 seconds from the current time."},
		{webhook.DefaultSignatureHeader, "sha256= and the lower-case hex HMAC-SHA256 of \"{timestamp}.{raw body}\" under the signing secret. Missing on deliveries to a notify_url."},
	}
	patterns := []string{"^[0-9]+$", "^sha256=[0-9a-f]{64}$"}
	var list []object
	for i, h := range about {
		list = append(list, obj("name", h.name, "in", "header", "required", false,
			"schema", &schema{Type: oneOrAll{"string"}, Pattern: patterns[i]}, "description", h.text))
	}
	return list
}

// event writes the schema of an event: its envelope, with the kind fixed, and
// the data of its family.
func (d *document) event(k webhook.Kind) *schema {
	data := d.view(reflect.TypeOf(deliver.Shape(k)), eventTwin(k), camel(string(k.Family()))+"EventData")
	out := text("object")
	out.Properties.set("id", &schema{Type: oneOrAll{"string"}, Description: "The id of the event."})
	kind := &schema{Properties: named[*schema]{{"event_type", &schema{Const: string(k)}}}}
	switch k.Family() {
	case webhook.FamilyTransfer:
		out.Properties.set("type", &schema{Type: oneOrAll{"string"}, Const: string(k)})
		out.Properties.set("api_version", text("string"))
		out.Properties.set("data", data)
	default:
		out.Properties.set("event", &schema{Type: oneOrAll{"string"}, Const: string(k.Family())})
		out.Properties.set("api_version", text("string"))
		out.Properties.set("data", &schema{AllOf: []*schema{data, kind}})
	}
	out.Required = names(out.Properties)
	name := camel(string(k)) + "Event"
	return d.component(name, name, out)
}

func eventTwin(k webhook.Kind) reflect.Type {
	switch k.Family() {
	case webhook.FamilyTransaction:
		return reflect.TypeFor[webhook.TransactionData]()
	case webhook.FamilySubscription:
		return reflect.TypeFor[webhook.SubscriptionData]()
	default:
		return reflect.TypeFor[TransferEventData]()
	}
}

// TransferEventData nests the data as the wire does: the receiver's type is
// flat. Its name is that of the component.
type TransferEventData struct {
	Object gateway.Transfer `json:"object"`
}
