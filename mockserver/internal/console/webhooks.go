package console

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/gateway-go/gateway/mockserver/internal/admin"
	"github.com/gateway-go/gateway/mockserver/internal/deliver"
	"github.com/gateway-go/gateway/webhook"
)

type webhooksData struct {
	Endpoints  []endpointRow
	Add        action
	Holding    bool
	Controls   []action
	Filters    []field
	Deliveries []deliver.Delivery
	Release    map[string]action // by delivery, of those that are held
	Redeliver  formData
	Older      string
	Disturb    []action
}

// endpointRow is an endpoint without its secret.
type endpointRow struct {
	deliver.Endpoint

	Everybody bool // it was registered for every account, at the start
	Actions   []action
}

// Signed reports whether deliveries are signed.
func (e endpointRow) Signed() bool { return !e.Secret.IsZero() }

const deliveriesShown = 50

func (rq *request) webhooks() (*view, error) {
	q := rq.r.URL.Query()
	data := &webhooksData{Endpoints: rq.endpoints(), Holding: rq.core.Sender.Holding(rq.key), Release: map[string]action{}}
	states := []string{""}
	for _, s := range deliver.States() {
		states = append(states, string(s))
	}
	kinds := append([]string{""}, kindNames()...)
	data.Filters = []field{
		{Name: "kind", Label: "Kind", Type: "select", Options: kinds, Value: q.Get("kind")},
		{Name: "status", Label: "State", Type: "select", Options: states, Value: q.Get("status")},
		{Name: "resource_id", Label: "Resource", Type: "text", Value: q.Get("resource_id")},
	}
	before, err := strconv.ParseUint(q.Get("before"), 10, 64)
	if err != nil {
		before = ^uint64(0)
	}
	is := func(name, value string) bool { return q.Get(name) == "" || q.Get(name) == value }
	var more bool
	data.Deliveries, more = rq.core.Sender.Latest(rq.key, deliveriesShown, func(d *deliver.Delivery) bool {
		return numberOf(d.ID) < before && is("kind", d.Kind) && is("status", string(d.State)) && is("resource_id", d.Resource)
	})
	if more {
		q.Del("note")
		q.Set("before", strconv.FormatUint(numberOf(data.Deliveries[len(data.Deliveries)-1].ID), 10))
		data.Older = "?" + q.Encode()
	}
	for _, d := range data.Deliveries {
		if d.State == deliver.Held {
			data.Release[d.ID] = action{
				Call: "POST " + admin.Prefix + "/deliveries/release", Label: "Release",
				Fields: []field{{Name: asWords + "ids", Type: "hidden", Value: d.ID}},
			}
		}
	}
	data.actions()
	return &view{Title: "Webhooks", Section: "/webhooks", Template: "webhooks", Data: data}, nil
}

// numberOf returns the number in an id such as "dlv_12": later deliveries have
// greater ones.
func numberOf(id string) uint64 {
	_, text, _ := strings.Cut(id, "_")
	n, _ := strconv.ParseUint(text, 10, 64) // 0 of an id that has none
	return n
}

func kindNames() []string {
	var list []string
	for _, k := range webhook.DocumentedKinds() {
		list = append(list, string(k))
	}
	return list
}

func (data *webhooksData) actions() {
	plane := "POST " + admin.Prefix + "/"
	data.Add = action{Call: plane + "endpoints", Label: "Add endpoint", Fields: []field{
		{Name: asText + "url", Label: "URL", Type: "url", Placeholder: "http://127.0.0.1:9000/webhooks", Required: true},
		{Name: asText + "secret", Label: "Signing secret; empty for unsigned", Type: "text"},
		{Name: asWords + "events", Label: "Kinds; empty for all", Type: "text", Placeholder: "transaction.* payout.*"},
		{Name: asText + "timestamp_header", Label: "Timestamp header", Type: "text", Placeholder: "the server's"},
		{Name: asText + "signature_header", Label: "Signature header", Type: "text", Placeholder: "the server's"},
	}}
	if data.Holding {
		data.Controls = []action{{Call: plane + "deliveries/release", Label: "Release all", Hint: "Delivers the held webhooks and ends the hold."}}
	} else {
		data.Controls = []action{{Call: plane + "deliveries/hold", Label: "Hold", Hint: "Holds every delivery from now on."}}
	}
	data.Controls = append(data.Controls, action{Call: plane + "deliveries/wait", Label: "Wait until delivered", Hint: "Returns when nothing is being delivered."},
		action{Call: plane + "deliveries/sample", Label: "Send a sample", Hint: "Sends an event about a resource that does not exist.", Fields: []field{
			{Name: asText + "kind", Label: "Kind", Type: "select", Options: kindNames()},
		}})
	disturb := func(label, fault, hint string) action {
		return action{Call: plane + "faults", Label: label, Hint: hint, Fields: []field{
			{Name: asText + "fault", Type: "hidden", Value: fault}, {Name: asNumber + "times", Type: "hidden", Value: "1"},
		}}
	}
	data.Disturb = []action{
		disturb("Drop the next", "drop-webhook", "It is never sent."),
		disturb("Duplicate the next", "duplicate-webhook", "It is sent twice."),
		disturb("Delay the next by an hour", "delay-webhook=1h", "Others overtake it, on the virtual clock."),
		disturb("Corrupt the next signature", "corrupt-signature", "The first attempt fails verification."),
		disturb("Make the next timestamp stale", "stale-timestamp", "The first attempt is outside the tolerance."),
		{Call: "DELETE " + admin.Prefix + "/deliveries/faults", Label: "Remove these faults", Hint: "Webhooks are sent as usual again."},
	}
}

func (rq *request) endpoints() (list []endpointRow) {
	for _, e := range rq.core.Sender.Endpoints("") {
		if e.Account != rq.key && e.Account != "" {
			continue
		}
		r := endpointRow{Endpoint: e, Everybody: e.Account == ""}
		if !r.Everybody {
			r.Actions = []action{
				{Call: "POST " + admin.Prefix + "/endpoints/{id}/rotate", IDs: []string{e.ID}, Label: "Rotate the secret", Fields: []field{
					{Name: asText + "secret", Label: "New secret", Type: "text", Required: true},
				}},
				{Call: "POST " + admin.Prefix + "/endpoints/{id}/pause", IDs: []string{e.ID}, Label: "Pause"},
				{Call: "DELETE " + admin.Prefix + "/endpoints/{id}", IDs: []string{e.ID}, Label: "Remove", Danger: true},
			}
			if e.Paused {
				r.Actions[1].Call, r.Actions[1].Label = "POST "+admin.Prefix+"/endpoints/{id}/resume", "Resume"
			}
		}
		list = append(list, r)
	}
	return list
}

type deliveryData struct {
	deliver.Delivery

	Body    string
	Actions []action
	Link    string // to the resource
	To      string
}

func (rq *request) delivery() (*view, error) {
	d, err := rq.core.Sender.Delivery(rq.key, rq.args[0])
	if err != nil {
		return nil, notFound()
	}
	data := &deliveryData{
		Delivery: d, Body: indented(rq.core.Journal.Masked(d.Body)), To: cmp.Or(d.URL, d.Endpoint, "no endpoint"),
		Link: rq.base + "/find?" + query("q", d.Resource),
	}
	if d.State != deliver.NoEndpoint {
		data.Actions = []action{{
			Call: "POST " + admin.Prefix + "/deliveries/{id}/redeliver", IDs: []string{d.ID}, Label: "Redeliver",
			Hint: "Another attempt now, with the same id and body.",
		}}
	}
	return &view{Title: "Webhook " + d.ID, Section: "/webhooks", Template: "delivery", Data: data}, nil
}

// doctor diagnoses why a receiver rejects a signature.
func (*request) doctor() (*view, error) {
	return &view{Title: "Signature doctor", Section: "/doctor", Template: "doctor", Data: action{
		Call: "POST " + diagnosePath, Label: "Diagnose", Fields: []field{
			{
				Name: asHeaders + "headers", Label: "Headers of the rejected request, one per line", Type: "textarea", Required: true,
				Placeholder: webhook.DefaultTimestampHeader + ": 1798761600\n" + webhook.DefaultSignatureHeader + ": sha256=…",
			},
			{Name: asWritten + "body", Label: "Body, exactly as it was received", Type: "textarea"},
			{Name: asText + "secret", Label: "Secret; empty to try the endpoints' secrets", Type: "text"},
			{Name: asText + "received_at", Label: "Received at; empty for now", Type: "text", Placeholder: "2027-02-01T00:00:00Z"},
			{Name: asText + "timestamp_header", Label: "Timestamp header", Type: "text", Placeholder: "the server's"},
			{Name: asText + "signature_header", Label: "Signature header", Type: "text", Placeholder: "the server's"},
			{Name: "show", Type: "hidden", Value: "yes"},
		},
	}}, nil
}

const diagnosePath = admin.Prefix + "/deliveries/diagnose"
