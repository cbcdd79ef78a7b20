package gatewayprobe

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gateway-go/gateway/internal/profile"
)

// dialectExperiments test the rows in which the two dialects differ.
func dialectExperiments() map[string]experiment {
	return map[string]experiment{
		"list-envelope": {does: "lists transactions and checks where the page, total and cursors are", dialect: true, run: func(t *trial) string {
			r := t.setup(t.get(transactions + "?limit=1"))
			inner, _ := r.at("data").(object)
			outer, _ := r.value.(object)
			return either(r, has(inner, "data", "total", "next_cursor", "prev_cursor"), has(outer, "total", "next_cursor", "prev_cursor"))
		}},
		"transaction-states": {does: "sets a transaction to the states of the live dialect", dialect: true, run: func(t *trial) string {
			path, _ := t.make(t.charge())
			reading := ""
			for status := range strings.FieldsSeq("authorized in_protest partially_paid processing processed med pre_chargedback waiting_payment") {
				r := t.put(path, object{"status": status})
				now := accepted(r, "status", live)
				t.want(reading == "" || reading == now, "%s returns %s, unlike the states before it", status, r.summary())
				reading = now
			}
			return reading
		}},
		"challenge-state": {does: "creates a card transaction that needs 3-D Secure", dialect: true, run: func(t *trial) string {
			r := t.charged(t.post(transactions, t.card("3ds")), "3ds")
			t.want(r.text("data.next_action.type") == "three_ds_challenge", "status %s without a next_action", r.text("data.status"))
			return either(r, r.text("data.status") == "pending", r.text("data.status") == "three_ds_required")
		}},
		"repeated-transfer": {does: "creates two transfers with one external_ref", dialect: true, run: func(t *trial) string {
			body := t.payout()
			first := t.setup(t.transfer(body))
			r := t.transfer(body)
			same := r.text("data.id") == t.id(first)
			t.want(!r.ok() || same, "a second transfer is created (%d)", r.status)
			return either(r, r.status == http.StatusConflict, r.status == http.StatusOK && same)
		}},
		"validation-status": {does: "creates a transaction with an amount of 0", dialect: true, run: func(t *trial) string {
			r := t.post(transactions, t.charge("amount", 0))
			return either(r, r.status == http.StatusBadRequest, r.status == http.StatusUnprocessableEntity)
		}},
		"plain-errors": {does: "reads an unknown subscription and repeats a transaction's external_ref", dialect: true, run: func(t *trial) string {
			body := t.charge()
			t.make(body)
			duplicate := t.post(transactions, body)
			t.want(duplicate.status == http.StatusConflict, "a repeated external_ref: %s", duplicate.summary())
			missing := t.get(subscriptions + "/" + unknownID)
			t.want(missing.status == http.StatusNotFound, "an unknown subscription: %s", missing.summary())
			t.want(missing.plain() == duplicate.plain(), "the 404 of subscriptions and the 409 of transactions have bodies of different forms")
			return either(missing, missing.problem() && duplicate.problem(), missing.plain())
		}},
		"transfer-minimum": {does: "creates transfers of 1 and of 999 cents", dialect: true, run: func(t *trial) string {
			one := accepted(t.transfer(t.payout("amount", 1)), "amount", document)
			return t.same(one, accepted(t.transfer(t.payout("amount", 999)), "amount", document), "999 cents")
		}},
		"voucher-address": {does: "creates a voucher without the buyer's address", dialect: true, run: func(t *trial) string {
			return accepted(t.post(transactions, t.voucher("buyer.address", absent{})), "buyer.address", live)
		}},
		"bare-transaction": {does: "creates transactions without products and without buyer", run: func(t *trial) string {
			products := t.post(transactions, t.charge("products", absent{}))
			buyer := t.post(transactions, t.charge("buyer", absent{}))
			switch {
			case products.ok() && buyer.ok():
				return profile.Lenient
			case products.invalid() && products.names("products") && buyer.invalid() && buyer.names("buyer"):
				return assumed
			}
			return "without products: " + products.summary() + ", without buyer: " + buyer.summary()
		}},
		"colombian-vouchers": {does: "creates a voucher in Colombian pesos", dialect: true, run: func(t *trial) string {
			_, r := t.make(t.voucher("currency", "COP"))
			begin, end := r.time("data.created_at"), r.time("data.voucher.expiration_date")
			if begin.IsZero() || end.IsZero() {
				t.cannotTell("created_at and voucher.expiration_date are not both timestamps")
			}
			const soon = time.Hour
			return either(r, end.Sub(begin) > soon, end.Sub(begin) <= soon)
		}},
		"transaction-metadata": {does: "creates a transaction with metadata and reads it", dialect: true, run: func(t *trial) string {
			path, _ := t.make(t.charge("metadata", `{"probe":"1"}`))
			r := t.setup(t.get(path))
			in, _ := r.at("data.metadata").(object)
			return either(r, r.text("data.metadata") == `{"probe":"1"}`, len(in) == 1 && in["probe"] == "1")
		}},
		"transfer-amount": {does: "creates a transfer and checks its amount", dialect: true, run: func(t *trial) string {
			r := t.setup(t.transfer(t.payout("amount", 1200)))
			return either(r, r.int("data.amount") == 1200, r.text("data.amount") == "1200")
		}},
		"listed-transaction": {does: "compares a transaction in the list with the same one read", dialect: true, run: func(t *trial) string {
			read, listed := t.listed()
			for name := range read {
				if _, there := listed[name]; !there {
					return either(response{}, false, has(listed, "payment", "attempts_count"))
				}
			}
			return document
		}},
		"method-optional": {does: "creates a transaction without method and without installments", dialect: true, run: func(t *trial) string {
			r := t.post(transactions, t.charge("method", absent{}))
			_, plain := t.make(t.charge())
			none, _ := plain.find("data.installments")
			return either(r, r.invalid() && r.names("method") && none == 1.0, r.ok() && r.text("data.method") == "pix" && none == nil)
		}},
		"buyer-id-alone": {does: "creates a transaction with buyer.id, name and e-mail", dialect: true, run: func(t *trial) string {
			r := t.post(transactions, t.charge("buyer", object{"id": t.customer(), "name": "Another Buyer", "email": t.email()}))
			if r.ok() {
				t.want(r.text("data.buyer.name") == "Probe Buyer", "name and e-mail replace those of the customer")
			}
			return either(r, r.ok(), r.invalid() && (r.names("buyer.name") || r.names("buyer.email"))) // row validation-status is about its status
		}},
		"pix-document": {does: "creates a Pix transaction without the buyer's document", dialect: true, run: func(t *trial) string {
			return accepted(t.post(transactions, t.charge("buyer.document", absent{})), "buyer.document", document)
		}},
		"idempotency-header": {does: "sends one transaction twice with an Idempotency-Key", dialect: true, run: func(t *trial) string {
			body, key := t.charge("external_ref", absent{}), t.ref()
			first := t.setup(t.post(transactions, body, "Idempotency-Key", key))
			second := t.post(transactions, body, "Idempotency-Key", key)
			replayed := second.status == first.status && t.id(first) == second.text("data.id")
			if !replayed {
				return either(second, second.ok(), false)
			}
			t.want(second.header.Get("Idempotent-Replayed") == "true", "a replay without the header Idempotent-Replayed")
			other := t.post(transactions, t.charge("amount", 2000), "Idempotency-Key", key)
			t.want(other.status == http.StatusConflict, "the key with another body: %s", other.summary())
			return live
		}},
		"listed-fee": {does: "checks the fee of a listed transaction", dialect: true, run: func(t *trial) string {
			read, listed := t.listed()
			item := response{value: listed}
			fee, found := item.find("payment.fee")
			object, _ := fee.(object)
			want, _ := read["fee"].(map[string]any)
			return either(item, !found && equal(listed["fee"], want), found && (fee == nil || has(object, "estimated_fee", "net_amount")))
		}},
		"delivery-errors": {does: "sets the delivery of an unpaid transaction, and refunds it", dialect: true, run: func(t *trial) string {
			path, _ := t.make(t.charge())
			refund := t.put(path+"/refund", object{})
			t.want(refund.status == http.StatusConflict && refund.problem(), "the refund of an unpaid transaction: %s", refund.summary())
			r := t.put(path+"/delivery", object{"tracking_code": "probe"})
			t.want(r.status == http.StatusConflict && r.problem(), "the delivery of an unpaid transaction: %s", r.summary())
			return either(r, contentType(r) == "application/problem+json", contentType(r) == "application/json")
		}},
		"null-members": {does: "sends null for a transfer's origin and a subscription's metadata", dialect: true, run: func(t *trial) string {
			origin := accepted(t.transfer(t.payout("origin", nil)), "origin", live)
			return t.same(origin, accepted(t.subscribe(t.plan("metadata", nil)), "metadata", live), "metadata")
		}},
		"customer-formats": {does: "creates customers in Germany, with an invalid ip_address, and with an empty document number", dialect: true, run: func(t *trial) string {
			address := object{"street": "Unter den Linden 1", "city": "Berlin", "zipCode": "10117", "country": "DE"}
			reading := accepted(t.post(customers, t.person("address", address)), "address.country", live)
			reading = t.same(reading, accepted(t.post(customers, t.person("ip_address", "unknown")), "ip_address", live), "ip_address")
			empty := t.person("document", object{"type": "CPF", "number": ""})
			return t.same(reading, accepted(t.post(customers, empty), "document.number", live), "document.number")
		}},
		"cancellation-reason": {does: "cancels a subscription with a custom reason", dialect: true, run: func(t *trial) string {
			id := t.id(t.setup(t.subscribe(t.plan())))
			return accepted(t.post(subscriptions+"/"+id+"/cancel", object{"reason": "gatewayprobe"}), "reason", document)
		}},
		"malformed-id": {does: "reads a transaction whose id is malformed", dialect: true, run: func(t *trial) string {
			r := t.get(transactions + "/probe")
			return either(r, r.status == http.StatusNotFound, r.invalid() && r.names("id")) // row validation-status is about its status
		}},
		"link-product-limits": {does: "creates checkout links whose product is free, or has no external_id", dialect: true, run: func(t *trial) string {
			product := func(members ...any) response { return t.post(links, object{"products": []any{t.item(members...)}}) }
			free := accepted(product("price", 0), "products[0].price", document)
			return t.same(free, accepted(product("external_id", absent{}), "products[0].external_id", document), "external_id")
		}},
		"base-price": {does: "creates a transaction and looks for its base_price", dialect: true, run: func(t *trial) string {
			path, made := t.make(t.charge())
			r := t.setup(t.get(path))
			base, found := r.find("data.base_price")
			_, created := made.find("data.base_price")
			t.want(found == created, "base_price is only in one of create and read")
			return either(r, !found && r.int("data.amount") == 1000, base == 1000.0)
		}},
		"informations": {does: "creates a transaction with informations and reads it", dialect: true, run: func(t *trial) string {
			info := object{"key": "gatewayprobe", "value": "1"}
			path, made := t.make(t.charge("informations", []any{info}))
			shown := func(r response) bool {
				list, _ := r.at("data.informations").([]any)
				return slices.ContainsFunc(list, func(e any) bool { return equal(e, info) })
			}
			read := t.setup(t.get(path))
			t.want(shown(made) == shown(read), "the informations are only in one of create and read")
			return either(read, !shown(read), shown(read))
		}},
		"customer-read": {does: "creates a customer with a document and an address, and reads it", dialect: true, run: func(t *trial) string {
			address := object{"street": "Rua das Flores", "city": "São Paulo", "zipCode": "01001000", "country": "BR"}
			id := t.customer("document", object{"type": "CPF", "number": "52998224725"}, "address", address)
			r := t.setup(t.get(customers + "/" + id))
			plain := r.text("data.document.number") == "52998224725" && r.text("data.address.zipCode") == "01001000"
			renamed := r.text("data.document.document_number") == "52998224725" && r.text("data.address.zip_code") == "01001000"
			return either(r, plain, renamed)
		}},
		"repeated-subscription": {does: "repeats an idempotency_key with another amount", dialect: true, run: func(t *trial) string {
			body := t.plan("idempotency_key", t.ref())
			first := t.setup(t.subscribe(body))
			body["amount"] = 2000
			r := t.subscribe(body)
			same := r.text("data.id") == t.id(first)
			t.want(!r.ok() || same, "a second subscription is created (%d)", r.status)
			t.want(!r.ok() || r.status == http.StatusOK, "the first subscription is returned with %d", r.status)
			return either(r, r.status == http.StatusConflict, r.ok() && same)
		}},
		"pix-automatic-members": {does: "creates a Pix Automatico with a member that does not exist", dialect: true, run: func(t *trial) string {
			return accepted(t.subscribe(t.plan("gatewayprobe", true)), "gatewayprobe", document)
		}},
		"pix-authorization": {does: "creates a Pix Automatico and checks its authorization", dialect: true, run: func(t *trial) string {
			r := t.setup(t.subscribe(t.plan()))
			ask, _ := r.at("data.authorization").(object)
			status := r.text("data.metadata.provider_recurring.mandate_status")
			t.want((status != "") == has(ask, "expires_at"), "authorization has the keys %s, mandate_status is %q", names(ask), status)
			return either(r, has(ask, "status", "qr_code", "expiration_date"), has(ask, "qr_code", "expires_at", "payment_link_url"))
		}},
		"body-not-object": {does: "sends an array as the body of a transaction", dialect: true, run: func(t *trial) string {
			r := t.post(transactions, raw(`[]`))
			return either(r, r.status == http.StatusBadRequest, r.status == http.StatusUnprocessableEntity)
		}},
		"customer-phone": {does: "creates a customer with letters in the phone", dialect: true, run: func(t *trial) string {
			t.accepts(t.post(customers, t.person()), "a phone of 11 digits")
			return accepted(t.post(customers, t.person("phone", "ask reception")), "phone", document)
		}},
		"hosted-routes": {does: "opens a checkout session by POST", dialect: true, run: func(t *trial) string {
			r := t.post(t.link(object{"amount": 1000})+"/session", object{})
			return either(r, r.status == http.StatusNotFound, r.status == http.StatusCreated && r.text("data.session_token") != "")
		}},
	}
}

// same ends an experiment if a second case has a different reading from the
// first.
func (t *trial) same(reading, second, what string) string {
	t.want(reading == second, "%s, but %s: %s", reading, what, second)
	return reading
}

// listed creates a transaction and returns it as read by id and as listed.
func (t *trial) listed() (read, listed object) {
	path, _ := t.make(t.charge())
	whole := t.setup(t.get(path))
	for _, e := range t.setup(t.get(transactions + "?limit=5")).list() {
		item, _ := e.(object)
		if item["id"] == t.id(whole) {
			read, _ = whole.at("data").(object)
			return read, item
		}
	}
	t.cannotTell("the new transaction is not among the first five of the list")
	return nil, nil
}

func has(in object, names ...string) bool {
	for _, name := range names {
		if _, there := in[name]; !there {
			return false
		}
	}
	return true
}

func equal(a any, b object) bool {
	in, ok := a.(object)
	return ok && maps.Equal(in, b)
}

func contentType(r response) string {
	name, _, _ := strings.Cut(r.header.Get("Content-Type"), ";")
	return strings.TrimSpace(name)
}
