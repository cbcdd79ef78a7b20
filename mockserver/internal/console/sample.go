package console

import (
	"crypto/rand"
	"encoding/json"
	"regexp"
	"strings"
	"time"

	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// sampleOf returns the action that creates a resource to look at, in both dialects and as
// often as you like, nil if the section has none.
func sampleOf(section string) *action {
	create := func(label, call, body string) *action {
		return &action{Call: call, Label: label, Fields: []field{{Name: "body", Type: "hidden", Value: body}}}
	}
	switch section {
	case "transactions":
		return create("Create a test payment", "POST /v2/transactions", `{"amount":12990,"method":"pix","buyer":{"name":"Ana Souza",`+
			`"email":"ana@example.com","document":{"type":"CPF","number":"52998224725"}},"products":[{"name":"Blue mug","price":12990,"quantity":1}]}`)
	case "transfers":
		return create("Create a test transfer", "POST /v2/transfers", `{"amount":2500,"pix_key_type":"EMAIL","pix_key_value":"supplier@example.com"}`)
	case "customers":
		return create("Create a test customer", "POST /v2/customers", `{"name":"Bia Lima","email":"bia@example.com"}`)
	case "links":
		return create("Create a test link", "POST /v2/checkout-links", `{"title":"Blue mug","products":[{"external_id":"MUG-1","name":"Blue mug","price":3990}]}`)
	default:
		return nil
	}
}

// created returns the page of the resource in a response, "" if it has none.
func (rq *request) created(path string, response []byte) string {
	section, _, _ := strings.Cut(strings.TrimPrefix(path, "/v2/"), "/")
	section, _, _ = strings.Cut(section, "?")
	var body struct {
		Data struct {
			ID  any    `json:"id"`
			URL string `json:"url"`
		} `json:"data"`
	}
	if json.Unmarshal(response, &body) != nil {
		return ""
	}
	id, _ := body.Data.ID.(string)
	if section == "checkout-links" {
		section, id = "links", body.Data.URL[strings.LastIndex(body.Data.URL, "/")+1:]
	}
	switch section {
	case "transactions", "transfers", "customers", "subscriptions", "links":
		if id != "" {
			return rq.to(section, id)
		}
	}
	return ""
}

var (
	uniqueMember = regexp.MustCompile(`("(?:external_ref|externalRef|idempotency_key)": ")([^"]*)"`)
	tokenMember  = regexp.MustCompile(`("token": "pgct_[^"]*)"`)
	notifyMember = regexp.MustCompile(`(?m)^\s*"notify_url": "[^"]*",?\n`)
	hookMember   = regexp.MustCompile(`("(?:webhookUrl|pixWebhookUrl)": ")[^"]*"`)
	trialMember  = regexp.MustCompile(`("trial_end": ")[^"]*"`)
	customerID   = regexp.MustCompile(`("customer_id": ")[^"]*"`)
	lastComma    = regexp.MustCompile(`,(\s*[}\]])`)
)

// repeatable makes an indented example of the documentation one that succeeds here, again
// and again: what must be unique is new in each page, its customer exists, and no webhook
// goes to a host that is reserved for documentation.
func (rq *request) repeatable(example string) string {
	suffix := strings.ToLower(rand.Text()[:6])
	text := uniqueMember.ReplaceAllString(example, "${1}${2}-"+suffix+`"`)
	text = tokenMember.ReplaceAllString(text, "${1}_"+suffix+`"`)
	text = lastComma.ReplaceAllString(notifyMember.ReplaceAllString(text, ""), "$1")
	text = hookMember.ReplaceAllString(text, "${1}http://127.0.0.1:9000/webhooks\"")
	text = trialMember.ReplaceAllString(text, "${1}"+rq.core.Clock.Now().AddDate(0, 0, 14).UTC().Format(time.RFC3339)+`"`)
	if id := rq.latest("customers"); id != "" {
		text = customerID.ReplaceAllString(text, "${1}"+id+`"`)
	}
	return text
}

// latest returns the id of the account's latest resource of a kind, "" if there is none.
func (rq *request) latest(section string) (id string) {
	rq.core.Store.Account(rq.key).View(func(d *store.Data) {
		switch section {
		case "transactions":
			id = latestOf(&d.Transactions, func(r *engine.Transaction) string { return r.ID })
		case "subscriptions":
			id = latestOf(&d.Subscriptions, func(r *engine.Subscription) string { return r.ID })
		case "transfers":
			id = latestOf(&d.Transfers, func(r *engine.Transfer) string { return r.ID })
		case "customers":
			id = latestOf(&d.Customers, func(r *engine.Customer) string { return r.ID })
		case "checkout-links", "checkout":
			id = latestOf(&d.Links, func(r *engine.Link) string { return r.Slug })
		}
	})
	return id
}

func latestOf[R any](t *store.Table[R], id func(*R) string) string {
	page, err := t.Page(store.Query[R]{Limit: 1})
	if err != nil || len(page.Rows) == 0 {
		return ""
	}
	return id(page.Rows[0])
}
