package gatewayprobe

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/gateway-go/gateway/internal/profile"
)

// experiment tests one row of docs/assumptions.md.
type experiment struct {
	does    string // what it sends and checks
	dialect bool   // its readings are document and live rather than assumed
	webhook bool   // it needs a receiver

	// Exactly one of these is set. A check that returns has found that the row applies.
	run   func(*trial) (reading string)
	check func(*trial)
}

// Readings. Any other string describes the gateway's behavior.
const (
	assumed  = profile.Assumed
	document = profile.Document
	live     = profile.Live
)

// trial is one run of an experiment.
type trial struct {
	probe     *probe
	request   func(method, target string, body any, header http.Header) (response, Exchange)
	arrival   func(h *hook, limit time.Duration) error // waits for a delivery
	exchanges []Exchange
	undo      []func(context.Context)
}

func (p *probe) trial(ctx context.Context) *trial {
	return &trial{
		probe: p,
		request: func(method, target string, body any, header http.Header) (response, Exchange) {
			return p.send(ctx, method, target, body, header)
		},
		arrival: func(h *hook, limit time.Duration) error {
			timer := time.NewTimer(limit)
			defer timer.Stop()
			select {
			case <-h.arrived:
			case <-timer.C:
			case <-ctx.Done():
			}
			return context.Cause(ctx)
		},
	}
}

// tidy removes what an experiment created, as far as the interface allows, even if
// the run was stopped or has used up its requests.
func (t *trial) tidy(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	t.probe.tidying = true
	defer func() { t.probe.tidying = false }()
	for _, undo := range slices.Backward(t.undo) {
		undo(ctx)
	}
}

// cancel cancels a resource when the experiment is over.
func (t *trial) cancel(path string) {
	t.undo = append(t.undo, func(ctx context.Context) {
		t.probe.send(ctx, http.MethodPost, path+"/cancel", object{}, nil)
	})
}

// try sends a request and accepts any response. Header is pairs of name and
// value; an empty value omits the header.
func (t *trial) try(method, target string, body any, header ...string) response {
	h := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	r, x := t.request(method, target, body, h)
	t.exchanges = append(t.exchanges, x)
	return r
}

// call is try for a request with a valid credential, whose 401 is inconclusive.
func (t *trial) call(method, target string, body any, header ...string) response {
	return t.conclusive(t.try(method, target, body, header...), http.StatusUnauthorized)
}

// conclusive ends an experiment if a response is inconclusive: the gateway failed,
// limits the rate, does not allow the request, or returned one of more statuses.
func (t *trial) conclusive(r response, more ...int) response {
	switch {
	case errors.Is(r.err, errBudget):
		t.cannotTell("%v", errBudget)
	case r.err != nil:
		t.cannotTell("%s failed: %v", r.sent, r.err)
	case r.status >= 500, r.status == http.StatusTooManyRequests, r.status == http.StatusForbidden, slices.Contains(more, r.status):
		t.cannotTell("%s returned %s", r.sent, r.summary())
	}
	return r
}

func (t *trial) get(target string, header ...string) response {
	return t.call(http.MethodGet, target, nil, header...)
}

func (t *trial) post(target string, body any, header ...string) response {
	return t.call(http.MethodPost, target, body, header...)
}

func (t *trial) put(target string, body any, header ...string) response {
	return t.call(http.MethodPut, target, body, header...)
}

// cannotTell ends an experiment without a reading.
func (t *trial) cannotTell(format string, args ...any) {
	panic(decided{why: fmt.Sprintf(format, args...)})
}

// want ends an experiment unless the condition holds; the message describes
// the gateway's behavior.
func (t *trial) want(holds bool, format string, args ...any) {
	if !holds {
		panic(decided{reading: fmt.Sprintf(format, args...)})
	}
}

// setup ends an experiment unless a request that the rest of it needs succeeded.
func (t *trial) setup(r response) response {
	if !r.ok() {
		t.cannotTell("%s, which the experiment needs, returned %s", r.sent, r.summary())
	}
	return r
}

// accepts ends an experiment unless the request succeeded.
func (t *trial) accepts(r response, what string) response {
	t.want(r.ok(), "%s: %s", what, r.summary())
	return r
}

// rejects ends an experiment unless the request was rejected and the rejection
// names a member.
func (t *trial) rejects(r response, field, what string) {
	if r.status == http.StatusNotFound || r.status == http.StatusMethodNotAllowed {
		t.cannotTell("%s returned %s", r.sent, r.summary())
	}
	t.want(r.invalid() && r.names(field), "%s: %s, although a rejection of %s was expected", what, r.summary(), field)
}

// status ends an experiment unless the response has the given status.
func (t *trial) status(r response, status int, what string) {
	t.want(r.status == status, "%s: %s, not %d", what, r.summary(), status)
}

// either returns the reading of the dialect that a response matches, or the
// response's summary if it matches neither or both.
func either(r response, inDocument, inLive bool) string {
	switch {
	case inDocument && !inLive:
		return document
	case inLive && !inDocument:
		return live
	}
	return r.summary()
}

// accepted returns by, the dialect that accepts the request, if the gateway accepted it,
// or the other dialect if it rejected the field.
func accepted(r response, field, by string) string {
	other := document
	if by == document {
		other = live
	}
	switch {
	case r.ok():
		return by
	case r.invalid() && r.names(field):
		return other
	}
	return r.summary()
}

// unknownID is a well-formed id that no resource has.
const unknownID = "00000000-0000-7000-8000-000000000000"

// ref returns a reference that was not used before.
func (t *trial) ref() string {
	t.probe.counter++
	return fmt.Sprintf("%s-%d", t.probe.run, t.probe.counter)
}

// email returns an address that was not used before.
func (t *trial) email() string { return t.ref() + "@example.com" }

// uuid returns a random id.
func (t *trial) uuid() string {
	id, err := uuid.NewRandom()
	if err != nil {
		t.cannotTell("%v", err)
	}
	return id.String()
}

// absent removes a member in [edit].
type absent struct{}

// edit sets members of a body by path: edit(body, "buyer.document", absent{}).
func edit(body object, members []any) object {
	for i := 0; i+1 < len(members); i += 2 {
		path, _ := members[i].(string)
		names := strings.Split(path, ".")
		in := body
		for _, name := range names[:len(names)-1] {
			inner, ok := in[name].(object)
			if !ok {
				inner = object{}
				in[name] = inner
			}
			in = inner
		}
		last := names[len(names)-1]
		if _, remove := members[i+1].(absent); remove {
			delete(in, last)
		} else {
			in[last] = members[i+1]
		}
	}
	return body
}

// charge returns the body of a Pix transaction that is valid in both dialects.
func (t *trial) charge(members ...any) object {
	return edit(object{
		"external_ref": t.ref(), "amount": 1000, "currency": "BRL", "method": "pix",
		"buyer": object{
			"name": "Probe Buyer", "email": t.email(), "document": object{"type": "CPF", "number": "52998224725"},
		},
		"products": []any{object{"name": "Probe", "price": 1000, "quantity": 1}},
	}, members)
}

// voucher is the body of a voucher.
func (t *trial) voucher(members ...any) object {
	return edit(t.charge("method", "voucher", "buyer.address", object{
		"street": "Rua das Flores", "number": "10", "city": "São Paulo", "state": "SP", "zipCode": "01001000", "country": "BR",
	}), members)
}

const transactions, transfers, customers, subscriptions, links = "/v2/transactions", "/v2/transfers", "/v2/customers", "/v2/subscriptions", "/v2/checkout-links"

// encoded returns the bytes that are sent for a body.
func (t *trial) encoded(body object) raw {
	text, err := json.Marshal(body, json.Deterministic(true))
	if err != nil {
		t.cannotTell("%v", err)
	}
	return raw(text)
}

// make creates a transaction and returns its path and the response.
func (t *trial) make(body object) (string, response) {
	r := t.setup(t.post(transactions, body))
	return transactions + "/" + t.id(r), r
}

// id returns the id of a created resource.
func (t *trial) id(r response) string {
	id := r.text("data.id")
	if id == "" || strings.ContainsAny(id, "/?#% ") {
		t.cannotTell("%s returned no usable id", r.sent)
	}
	return id
}

// set sets the status of a transaction, as a sandbox allows.
func (t *trial) set(path, status string) {
	t.setup(t.put(path, object{"status": status}))
}

// card is the body of a card transaction, with a token for an outcome.
func (t *trial) card(outcome string, members ...any) object {
	return edit(t.charge("method", "credit_card", "token", t.token(outcome)), members)
}

// token returns a card token for an outcome.
func (t *trial) token(outcome string) string {
	if list := t.probe.tokens[outcome]; len(list) > 0 {
		t.probe.tokens[outcome] = list[1:]
		return list[0]
	}
	return "pgct_" + outcome + "_" + strings.ReplaceAll(t.ref(), "-", "_")
}

// charged is setup for a request with a card token.
func (t *trial) charged(r response, outcome string) response {
	if !r.ok() {
		t.cannotTell("%s with a card token returned %s; pass a token with -card-token %s=…", r.sent, r.summary(), outcome)
	}
	return r
}

// payout is the body of a transfer.
func (t *trial) payout(members ...any) object {
	return edit(object{"pix_key_type": "EMAIL", "pix_key_value": "probe@example.com", "amount": 1000, "external_ref": t.ref()}, members)
}

// transfer posts a transfer and cancels it at the end.
func (t *trial) transfer(body any) response {
	r := t.post(transfers, body)
	if id := r.text("data.id"); r.ok() && id != "" {
		t.cancel(transfers + "/" + id)
	}
	return r
}

// person is the body of a customer.
func (t *trial) person(members ...any) object {
	return edit(object{"name": "Probe Buyer", "email": t.email(), "phone": "11987654321"}, members)
}

// customer creates a customer and returns its id.
func (t *trial) customer(members ...any) string {
	return t.id(t.setup(t.post(customers, t.person(members...))))
}

// plan is the body of a Pix Automatico subscription, which needs no card.
func (t *trial) plan(members ...any) object {
	body := edit(object{"amount": 1000, "payment_method": "pix_automatic", "interval": "month"}, members)
	if _, has := body["customer_id"]; !has {
		body["customer_id"] = t.customer()
	}
	return body
}

// cardPlan is the body of a subscription by card.
func (t *trial) cardPlan(outcome string, members ...any) object {
	return edit(t.plan("payment_method", "credit_card", "token", t.token(outcome)), members)
}

// subscribe posts a subscription and cancels it at the end.
func (t *trial) subscribe(body any) response {
	r := t.post(subscriptions, body)
	if id := r.text("data.id"); r.ok() && id != "" {
		t.cancel(subscriptions + "/" + id)
	}
	return r
}

// item returns a product of a checkout link that is valid in both dialects.
func (t *trial) item(members ...any) object {
	return edit(object{"external_id": t.ref(), "name": "Probe", "price": 1000}, members)
}

// link creates a checkout link and returns the path of its slug.
func (t *trial) link(body object) string {
	r := t.setup(t.post(links, body))
	url := strings.TrimRight(r.text("data.url"), "/")
	slug := url[strings.LastIndex(url, "/")+1:]
	if slug == "" || strings.ContainsAny(slug, "?#% ") {
		t.cannotTell("the checkout link's url does not end in a slug")
	}
	return "/v2/checkout/" + slug
}

// v1 sends a request to a v1 endpoint. These need their own header and may not be
// enabled for the key.
func (t *trial) v1(method, target string, body any) response {
	r := t.try(method, target, body, "Authorization", "", "apiKey", t.probe.cfg.Key.Reveal())
	return t.conclusive(r, http.StatusUnauthorized, http.StatusNotFound)
}

// balance reads the account's balance.
func (t *trial) balance() int64 {
	r := t.setup(t.v1(http.MethodGet, "/v1/account/balance", nil))
	balance, ok := r.at("balance").(float64)
	if !ok {
		t.cannotTell("the balance is not a number")
	}
	return int64(balance)
}

// payment is the body of a v1 payment.
func (t *trial) payment(members ...any) object {
	return edit(object{
		"type":        "PIX",
		"payer":       object{"fullName": "Probe Buyer", "document": "52998224725", "contact": object{"mail": t.email()}},
		"transaction": object{"value": 1000, "externalId": t.ref()},
	}, members)
}
