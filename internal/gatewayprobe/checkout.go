package gatewayprobe

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"time"
)

const v1Payment = "/pix/v1/payment"

// checkoutExperiments test the rows of "Checkout, tokens and v1".
func checkoutExperiments() map[string]experiment {
	return map[string]experiment{
		"link-products": {does: "creates checkout links whose product has no name, no price, or too long a name", check: func(t *trial) {
			for _, name := range []string{"name", "price"} {
				r := t.post(links, object{"products": []any{t.item(name, absent{})}})
				t.rejects(r, "products[0]."+name, "a product without "+name)
			}
			r := t.post(links, object{"products": []any{t.item("name", fmt.Sprintf("%0256d", 1))}})
			t.rejects(r, "products[0].name", "a name of 256 characters")
		}},
		"session-partial": {does: "updates a checkout session with a partial buyer, and a partial document", check: func(t *trial) {
			path := t.link(object{"amount": 1000})
			token := t.session(path)
			patch := func(body object) response {
				return t.call(http.MethodPatch, path+"/session", body, "X-Checkout-Session-Token", token)
			}
			t.accepts(patch(object{"buyer": object{"name": "Probe Buyer"}}), "a buyer with a name only")
			t.rejects(patch(object{"buyer": object{"document": object{"type": "CPF"}}}), "buyer.document.number", "a document without number")
		}},
		"session-life": {does: "opens a checkout session and updates it with a wrong token", check: func(t *trial) {
			path := t.link(object{"amount": 1000})
			r := t.setup(t.get(path))
			date, err := http.ParseTime(r.header.Get("Date"))
			wrong := t.conclusive(t.try(http.MethodPatch, path+"/session", object{"payment_method": "pix"}, "X-Checkout-Session-Token", "cst_gatewayprobe"))
			t.status(wrong, http.StatusUnauthorized, "a wrong session token")
			patched := t.setup(t.call(http.MethodPatch, path+"/session", object{"payment_method": "pix"}, "X-Checkout-Session-Token", r.text("data.session_token")))
			begin := patched.time("data.updated_at")
			if begin.IsZero() && err == nil {
				begin = date
			}
			if begin.IsZero() || r.time("data.expires_at").IsZero() {
				t.cannotTell("the session has no timestamps")
			}
			life := r.time("data.expires_at").Sub(begin)
			t.want((life-30*time.Minute).Abs() <= time.Minute, "a session expires after %v", life.Round(time.Second))
		}},
		"session-resume": {does: "reads a link with no token, with its token and with a wrong one", check: func(t *trial) {
			path := t.link(object{"amount": 1000})
			token := t.session(path)
			again := t.accepts(t.get(path, "X-Checkout-Session-Token", token), "a live token")
			t.want(again.at("data.resumed") == true && again.text("data.session_token") == token, "a live token does not resume its session")
			other := t.accepts(t.get(path, "X-Checkout-Session-Token", "cst_gatewayprobe"), "a wrong token")
			t.want(other.at("data.resumed") == false && other.text("data.session_token") != token, "a wrong token does not open a new session")
		}},
		"link-members": {does: "creates a checkout link with the members that the document shows only in responses", check: func(t *trial) {
			r := t.setup(t.get(t.link(object{
				"amount": 1000, "description": "gatewayprobe", "max_uses": 3, "success_url": "https://gatewayprobe.example/ok",
				"payment_methods": []any{"pix"}, "metadata": object{"probe": "1"},
			})))
			t.want(r.text("data.link.description") == "gatewayprobe", "description is ignored")
			t.want(r.int("data.link.max_uses") == 3, "max_uses is %v", r.at("data.link.max_uses"))
			t.want(r.text("data.link.success_url") == "https://gatewayprobe.example/ok", "success_url is ignored")
			t.want(fmt.Sprint(r.at("data.link.payment_methods")) == "[pix]", "payment_methods is %v", r.at("data.link.payment_methods"))
			t.rejects(t.post(links, object{"amount": 1000, "max_uses": 0}), "max_uses", "max_uses of 0")
			bare := t.setup(t.get(t.link(object{"amount": 1000})))
			all, _ := bare.at("data.link.payment_methods").([]any)
			t.want(len(all) == 3, "without payment_methods a link offers %v", all)
		}},
		"link-currency": {does: "creates a checkout link with products in two currencies, and one product in two", check: func(t *trial) {
			two := []any{t.item("currency", "BRL"), t.item("currency", "USD")}
			t.want(t.post(links, object{"products": two}).invalid(), "products in two currencies are accepted")
			item := t.item("currency", "BRL")
			t.link(object{"products": []any{item}})
			item["currency"] = "USD"
			r := t.post(links, object{"products": []any{item}})
			t.want(r.invalid(), "an external_id in another currency: %s", r.summary())
		}},
		"link-catalogue": {does: "sends a product again under another name, and reads the earlier link", check: func(t *trial) {
			item := t.item("description", "gatewayprobe")
			path := t.link(object{"products": []any{item}})
			delete(item, "description")
			item["name"] = "Probe again"
			t.link(object{"products": []any{item}})
			r := t.setup(t.get(path))
			t.want(r.text("data.items.0.name") == "Probe again", "the earlier link still has the product's former name")
			t.want(r.null("data.items.0.description"), "a member that is omitted keeps its value")
		}},
		"link-total": {does: "creates a checkout link whose products sum to more than a transaction's maximum", check: func(t *trial) {
			r := t.setup(t.get(t.link(object{"products": []any{t.item("price", 100_000_000, "quantity", 2)}})))
			t.want(r.int("data.link.amount") == 200_000_000, "its amount is %v", r.at("data.link.amount"))
		}},
		"hosted-pay": {does: "pays a checkout session by POST, if the gateway has that route", check: func(t *trial) {
			path := t.link(object{"amount": 1000})
			r := t.hosted(path, object{"payment_method": "pix"})
			t.rejects(r, "session_token", "a payment without session_token")
			body := t.visit(path)
			first := t.accepts(t.post(path+"/pay", body), "a payment")
			body["amount"] = 1000
			again := t.accepts(t.post(path+"/pay", body), "the same idempotency_key with another body")
			t.want(first.text(hostedID) != "" && first.text(hostedID) == again.text(hostedID), "the same idempotency_key creates a second payment")
			body["idempotency_key"], body["session_token"], body["amount"] = t.ref(), t.session(path), 999
			t.want(t.post(path+"/pay", body).invalid(), "an amount other than the link's is accepted")
		}},
		"link-exhausted": {does: "begins two payments of a link with max_uses 1 and pays one, if the gateway has the route", check: func(t *trial) {
			path := t.link(object{"amount": 1000, "max_uses": 1})
			third := t.visit(path)
			var paths []string
			for range 2 {
				r := t.setup(t.hosted(path, t.visit(path)))
				paths = append(paths, transactions+"/"+r.text(hostedID))
			}
			t.set(paths[0], "paid")
			status := t.setup(t.get(paths[1])).text("data.status")
			t.want(status == "canceled", "the other session's transaction is %s", status)
			t.want(!t.hosted(path, third).ok(), "the link can be paid again")
		}},
		"payment-token-body": {does: "reads a card token", check: func(t *trial) {
			token := t.token("ok")
			r := t.get("/v2/payment_token/" + token)
			if !r.ok() {
				t.cannotTell("the gateway rejected the card token (%s); pass one with -card-token ok=…", r.summary())
			}
			in, _ := r.at("data").(object)
			t.want(has(in, "token", "brand", "last4", "exp_month", "exp_year"), "it has the keys %s", names(in))
		}},
		"v1-payment": {does: "creates a v1 payment and reads it as a transaction", check: func(t *trial) {
			r := t.v1(http.MethodPost, v1Payment, t.payment())
			t.status(r, http.StatusCreated, "a v1 payment")
			life := r.time("expirationDate").Sub(r.time("generateTime"))
			t.want((life-24*time.Hour).Abs() <= time.Minute, "it expires after %v", life.Round(time.Second))
			png, err := base64.StdEncoding.DecodeString(r.text("pixQrCode"))
			t.want(err == nil && bytes.HasPrefix(png, []byte("\x89PNG")), "pixQrCode is not a base64 PNG")
			same := t.get(transactions + "/" + r.text("transactionId"))
			t.want(same.ok() && same.text("data.method") == "pix", "it is not a v2 transaction with the same id: %s", same.summary())
		}},
		"v1-reference": {does: "creates two v1 payments with one externalId", check: func(t *trial) {
			body := t.payment()
			for range 2 {
				t.accepts(t.v1(http.MethodPost, v1Payment, body), "an externalId that repeats")
			}
		}},
		"v1-value": {does: "creates v1 payments of 1000 and of 10.5", check: func(t *trial) {
			r := t.accepts(t.v1(http.MethodPost, v1Payment, t.payment()), "a value of 1000")
			same := t.setup(t.get(transactions + "/" + r.text("transactionId")))
			t.want(same.charges(1000), "a value of 1000 is an amount of %v", same.at("data.amount"))
			t.rejects(t.v1(http.MethodPost, v1Payment, t.payment("transaction.value", 10.5)), "transaction.value", "a value of 10.5")
		}},
		"v1-required": {does: "creates v1 payments, each without one of four members", check: func(t *trial) {
			for _, name := range []string{"type", "payer", "transaction", "transaction.value"} {
				t.rejects(t.v1(http.MethodPost, v1Payment, t.payment(name, absent{})), name, "without "+name)
			}
			bare := t.payment("payer", object{})
			t.accepts(t.v1(http.MethodPost, v1Payment, bare), "an empty payer")
		}},
		"v1-limits": {does: "creates v1 payments with numbers beyond their limits", check: func(t *trial) {
			for _, seconds := range []int64{0, 2147483648} {
				r := t.v1(http.MethodPost, v1Payment, t.payment("transaction.expirationTime", seconds))
				t.rejects(r, "transaction.expirationTime", fmt.Sprintf("an expirationTime of %d", seconds))
			}
			for name, value := range map[string]any{"percent": 101, "amount": -1} {
				r := t.v1(http.MethodPost, v1Payment, t.payment("splits", []any{object{"pixKey": "probe@example.com", name: value}}))
				t.rejects(r, "splits[0]."+name, fmt.Sprintf("a split's %s of %v", name, value))
			}
		}},
		"v1-split-keys": {does: "creates v1 payments with splits to each type of key", check: func(t *trial) {
			for _, kind := range []string{"DOCUMENT", "EMAIL", "PHONE", "RANDOM"} {
				split := object{"pixKey": "probe@example.com", "pixKeyType": kind, "percent": 1}
				t.accepts(t.v1(http.MethodPost, v1Payment, t.payment("splits", []any{split})), "a split to "+kind)
			}
		}},
	}
}

// hostedID is the path of the transaction's id in the payment of a checkout
// session.
const hostedID = "data.transaction.id"

// visit returns the body that pays a new session of a link by Pix.
func (t *trial) visit(path string) object {
	return object{
		"session_token": t.session(path), "payment_method": "pix", "idempotency_key": t.ref(),
		"buyer": object{"name": "Probe Buyer", "email": t.email()},
	}
}

// hosted pays a session of a link, as the checkout page does.
func (t *trial) hosted(path string, body object) response {
	r := t.post(path+"/pay", body)
	if r.status == http.StatusNotFound {
		t.cannotTell("the gateway does not have this route, see hosted-routes")
	}
	return r
}

// session opens a checkout session of a link and returns its token.
func (t *trial) session(path string) string {
	token := t.setup(t.get(path)).text("data.session_token")
	if token == "" {
		t.cannotTell("the session has no token")
	}
	return token
}
