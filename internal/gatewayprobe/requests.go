package gatewayprobe

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// requestExperiments test the rows of "Requests and responses".
func requestExperiments() map[string]experiment {
	return map[string]experiment{
		"request-id": {does: "sends an X-Request-Id with a valid and with an invalid request", check: func(t *trial) {
			id := t.uuid()
			r := t.setup(t.get(transactions+"?limit=1", "X-Request-Id", id))
			t.want(r.header.Get("X-Request-Id") == id, "the header is not echoed")
			t.want(r.text("requestId") == id, "requestId is not the value that was sent")
			own := t.setup(t.get(transactions + "?limit=1"))
			t.want(own.text("requestId") != "" && own.text("requestId") == own.header.Get("X-Request-Id"), "requestId and X-Request-Id differ")
			bad := t.get(transactions+"/"+unknownID, "X-Request-Id", id)
			_, inBody := bad.find("requestId")
			t.want(!inBody, "error bodies have a requestId")
			t.want(bad.header.Get("X-Request-Id") == id, "the header is not echoed with an error")
		}},
		"request-id-form": {does: "sends an X-Request-Id of 128 and of 129 characters, and one with a space", check: func(t *trial) {
			longest := strings.Repeat("p", 128)
			t.want(t.echo(longest) == longest, "128 characters are not echoed")
			for _, id := range []string{longest + "p", "two words"} {
				got := t.echo(id)
				t.want(got != id && got != "", "%d characters such as %.9q are echoed, or no id is generated", len(id), id)
			}
		}},
		"unknown-members": {does: "creates a transaction with members that don't exist", check: func(t *trial) {
			t.accepts(t.post(transactions, t.charge("gatewayprobe", true, "buyer.gatewayprobe", object{"a": 1})), "unknown members")
		}},
		"error-code": {does: "reads an unknown transaction", check: func(t *trial) {
			r := t.get(transactions + "/" + unknownID)
			t.status(r, http.StatusNotFound, "an unknown id")
			t.want(r.problem() && r.text("code") != "" || r.plain(), "the body has no code")
		}},
		"error-fields": {does: "creates a transaction in which four members break a rule", check: func(t *trial) {
			r := t.post(transactions, t.charge("amount", 0, "currency", "XXX", "products", []any{object{"price": "free"}}))
			codes := map[string]string{}
			list, _ := r.at("errors").([]any)
			for _, e := range list {
				codes[response{value: e}.text("field")] = response{value: e}.text("code")
			}
			for field, code := range map[string]string{
				"amount": "too_small", "currency": "invalid_enum_value", "products[0].name": "required", "products[0].price": "invalid_type",
			} {
				t.want(codes[field] == code, "%s is reported as %q, not as %s (%s)", field, codes[field], code, r.summary())
			}
		}},
		"error-instance": {does: "reads an unknown transaction and repeats a customer's externalRef", check: func(t *trial) {
			path := transactions + "/" + unknownID
			r := t.get(path)
			t.want(r.text("instance") == path, "instance of a 404 is %q", r.text("instance"))
			body := t.person("externalRef", t.ref())
			first := customers + "/" + t.id(t.setup(t.post(customers, body)))
			duplicate := t.post(customers, body)
			t.status(duplicate, http.StatusConflict, "a repeated externalRef")
			t.want(duplicate.text("instance") == first, "instance of a duplicate is %q", duplicate.text("instance"))
		}},
		"card-data": {does: "creates transactions with the published test number 4111 1111 1111 1111, and with a cvv", check: func(t *trial) {
			for field, value := range map[string]any{"note": "4111 1111 1111 1111", "card_number": "4111111111111111", "cvv": "123"} {
				r := t.post(transactions, t.charge(field, value))
				t.want(r.invalid(), "%s: %s", field, r.summary())
			}
		}},
		"card-data-exceptions": {does: "creates a transaction whose external_ref and SKU pass as card numbers", check: func(t *trial) {
			digits := luhn(fmt.Sprintf("4%014d", t.number()))
			t.accepts(t.post(transactions, t.charge("external_ref", digits)), "16 digits as external_ref")
			sku := []any{object{"name": "Probe", "price": 1000, "sku": digits}}
			t.accepts(t.post(transactions, t.charge("products", sku)), "16 digits as sku")
		}},
		"check-order": {does: "creates transactions with two errors each, and repeats the reference of a rejected one", check: func(t *trial) {
			body := t.charge()
			t.make(body)
			both := t.post(transactions, edit(t.charge("amount", 0), []any{"external_ref", body["external_ref"]}))
			t.want(both.invalid(), "an invalid body with a repeated reference: %s", both.summary())
			stranger := object{"id": unknownID}
			r := t.post(transactions, t.charge("external_ref", body["external_ref"], "buyer", stranger))
			t.status(r, http.StatusConflict, "a repeated reference with an unknown buyer")
			fresh := t.charge("buyer", stranger)
			t.status(t.post(transactions, fresh), http.StatusNotFound, "an unknown buyer")
			t.accepts(t.post(transactions, t.charge("external_ref", fresh["external_ref"])), "a reference of a rejected request")
		}},
		"timestamps": {does: "checks created_at, and lists from times with zones and fractions", check: func(t *trial) {
			_, r := t.make(t.charge())
			stamp := regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)
			t.want(stamp.MatchString(r.text("data.created_at")), "created_at is written %s", shape(r.text("data.created_at")))
			for _, from := range []string{"2020-01-01T00:00:00-03:00", "2020-01-01T00:00:00.123456Z"} {
				t.accepts(t.get(transactions+"?limit=1&dateFrom="+url.QueryEscape(from)), "dateFrom="+from)
			}
		}},
		"number-spelling": {does: "creates transactions with amounts written 1000.0 and 1e3", check: func(t *trial) {
			for _, spelling := range []string{"1000.0", "1e3"} {
				body := fmt.Sprintf(`{"external_ref":%q,"amount":%s,"method":"pix","buyer":{"name":"Probe Buyer","email":%q,`+
					`"document":{"type":"CPF","number":"52998224725"}},"products":[{"name":"Probe","price":1000}]}`, t.ref(), spelling, t.email())
				r := t.accepts(t.post(transactions, raw(body)), "an amount of "+spelling)
				t.want(r.charges(1000), "%s becomes %v", spelling, r.at("data.amount"))
			}
		}},
		"empty-texts": {does: "creates a transfer with an empty description and a transaction with an empty buyer.phone", check: func(t *trial) {
			r := t.accepts(t.transfer(t.payout("description", "")), "an empty description")
			t.want(r.null("data.description"), "an empty description is returned as %v", r.at("data.description"))
			r = t.accepts(t.post(transactions, t.charge("ip_address", nil, "buyer.phone", "")), "an empty buyer.phone")
			t.want(r.null("data.buyer.phone"), "an empty phone is returned as %v", r.at("data.buyer.phone"))
		}},
		"list-order": {does: "creates two transactions and lists them", check: func(t *trial) {
			_, first := t.make(t.charge())
			_, second := t.make(t.charge())
			ids := t.setup(t.get(transactions + "?limit=5")).ids()
			older, newer := slices.Index(ids, t.id(first)), slices.Index(ids, t.id(second))
			t.want(newer >= 0, "the newest transaction is not among the first five")
			t.want(older > newer || older < 0, "the older transaction is listed first")
		}},
		"list-cursors": {does: "lists two transactions of one buyer, page by page and back", check: listCursors},
		"list-limit": {does: "lists with limits of 100 and 101, and 21 transactions without one", check: func(t *trial) {
			t.accepts(t.get(transactions+"?limit=100"), "limit=100")
			t.rejects(t.get(transactions+"?limit=101"), "limit", "limit=101")
			page := t.setup(t.get(transactions))
			total, _ := page.member("total")
			if all, ok := total.(float64); ok {
				for missing := 21 - int(all); missing > 0; missing-- {
					t.make(t.charge())
				}
			}
			n := len(t.setup(t.get(transactions)).list())
			t.want(n == 20, "a page without limit has %d transactions", n)
			limit := t.setup(t.get(customers)).int("metadata.limit")
			t.want(limit == 10, "a page of customers without limit reports a limit of %d", limit)
		}},
		"list-parameters": {does: "lists with empty, wrong and repeated parameters", check: func(t *trial) {
			t.accepts(t.get(transactions+"?limit=1&status="), "an empty status")
			t.rejects(t.get(transactions+"?limit=1&status=gatewayprobe"), "status", "an unknown status")
			path, r := t.make(t.charge())
			query := "?limit=5&id=" + t.id(r)
			t.set(path, "paid")
			for _, both := range []string{"&status=paid&status=refused", "&status=paid,refused"} {
				ids := t.accepts(t.get(transactions+query+both), "two states").ids()
				t.want(slices.Contains(ids, t.id(r)), "%s does not find a paid transaction", both)
			}
		}},
		"list-prev": {does: "lists with direction=prev and no cursor", check: func(t *trial) {
			t.make(t.charge())
			first := t.setup(t.get(transactions + "?limit=2")).ids()
			ids := t.accepts(t.get(transactions+"?limit=2&direction=prev"), "direction=prev without a cursor").ids()
			t.want(slices.Equal(ids, first), "it does not return the first page")
		}},
		"malformed-json": {does: "sends malformed JSON, a byte order mark, and a duplicate name", check: func(t *trial) {
			for _, body := range []raw{`{"amount":`, "\ufeff{}", `{"amount":1,"amount":2}`} {
				r := t.post(transactions, body)
				t.want(r.status == http.StatusBadRequest && r.code() == "MALFORMED_JSON", "%s: %s", string(body), r.summary())
			}
		}},
		"head-options": {does: "sends HEAD and OPTIONS", check: func(t *trial) {
			t.status(t.call(http.MethodHead, transactions, nil), http.StatusOK, http.MethodHead)
			t.status(t.call(http.MethodOptions, transactions, nil), http.StatusMethodNotAllowed, http.MethodOptions)
		}},
		"notify-url": {does: "creates transactions with an https and an http notify_url on a reserved domain", check: func(t *trial) {
			t.accepts(t.post(transactions, t.charge("notify_url", "https://gatewayprobe.example/hook")), "https")
			t.rejects(t.post(transactions, t.charge("notify_url", "http://gatewayprobe.example/hook")), "notify_url", "http")
		}},
		"basic-password": {does: "sends the key as a Basic user with the passwords x and y", check: func(t *trial) {
			key := t.probe.cfg.Key.Reveal()
			t.status(t.login(basic(key, "x")), http.StatusOK, "the password x")
			t.status(t.login(basic(key, "y")), http.StatusUnauthorized, "the password y")
		}},
		"basic-token-x": {does: "sends the literal Basic credential token:x", check: func(t *trial) {
			t.status(t.login(basic("token", "x")), http.StatusUnauthorized, "token:x")
		}},
		"two-credentials": {does: "sends the key as Bearer and another as apiKey", check: func(t *trial) {
			r := t.conclusive(t.try(http.MethodGet, transactions+"?limit=1", nil, "apiKey", "sk_test_gatewayprobe"))
			t.status(r, http.StatusUnauthorized, "two credentials that differ")
		}},
		"v1-credential": {does: "reads the v1 balance with Bearer and with apiKey", check: func(t *trial) {
			t.setup(t.v1(http.MethodGet, "/v1/account/balance", nil))
			t.status(t.conclusive(t.try(http.MethodGet, "/v1/account/balance", nil)), http.StatusUnauthorized, "Bearer on v1")
		}},
		"environment": {does: "sends an invented production key", check: func(t *trial) {
			t.status(t.login("Bearer sk_live_gatewayprobe"), http.StatusUnauthorized, "a key that begins with sk_live_")
		}},
		"idempotency-key": {does: "sends Idempotency-Keys in unusual forms and with unusual bodies", check: idempotencyKeys},
	}
}

// login lists transactions with another credential.
func (t *trial) login(authorization string) response {
	return t.conclusive(t.try(http.MethodGet, transactions+"?limit=1", nil, "Authorization", authorization))
}

func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// echo returns the request id of a response to a request with one.
func (t *trial) echo(id string) string {
	return t.get(transactions+"?limit=1", "X-Request-Id", id).header.Get("X-Request-Id")
}

// number returns a number that is unlikely to have been used before.
func (t *trial) number() int64 {
	n := int64(0)
	for _, c := range t.uuid() {
		n = (n*31 + int64(c)) % 100_000_000_000_000
	}
	return n
}

// luhn appends the check digit of a card number.
func luhn(digits string) string {
	sum := 0
	for i := range digits {
		d := int(digits[len(digits)-1-i] - '0')
		if i%2 == 0 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return digits + string(rune('0'+(10-sum%10)%10))
}

// shape returns a string with 0 for every digit.
func shape(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return '0'
		}
		return r
	}, text)
}

func listCursors(t *trial) {
	mail := t.email()
	_, first := t.make(t.charge("buyer.email", mail))
	_, second := t.make(t.charge("buyer.email", mail))
	query := transactions + "?email=" + url.QueryEscape(mail)
	all := t.get(query + "&limit=2")
	if !slices.Equal(all.ids(), []string{t.id(second), t.id(first)}) {
		t.cannotTell("the filter email does not find the two transactions of a buyer, newest first: %s", all.summary())
	}
	t.cursors(all, false, false, "the last page, which is full,")
	one := t.setup(t.get(query + "&limit=1"))
	_, next := t.cursors(one, false, true, "the first page")
	two := t.setup(t.get(query + "&limit=1&cursor=" + url.QueryEscape(next)))
	t.want(slices.Equal(two.ids(), []string{t.id(first)}), "the second page does not have exactly the older transaction")
	prev, _ := t.cursors(two, true, false, "the last page")
	back := t.setup(t.get(query + "&limit=1&direction=prev&cursor=" + url.QueryEscape(prev)))
	t.want(slices.Equal(back.ids(), one.ids()), "direction=prev from the second page does not return the first page")
}

// cursors checks which cursors of a page are null, and that the total is 2.
func (t *trial) cursors(r response, hasPrev, hasNext bool, page string) (prev, next string) {
	total, _ := r.member("total")
	t.want(total == 2.0, "%s has a total of %v, not 2", page, total)
	p, foundPrev := r.member("prev_cursor")
	n, foundNext := r.member("next_cursor")
	t.want(foundPrev && (p != nil) == hasPrev, "prev_cursor of %s is null: %v", page, p == nil)
	t.want(foundNext && (n != nil) == hasNext, "next_cursor of %s is null: %v", page, n == nil)
	prev, _ = p.(string)
	next, _ = n.(string)
	return prev, next
}

func idempotencyKeys(t *trial) {
	body, key := t.charge("external_ref", absent{}), t.ref()
	first := t.setup(t.post(transactions, body, "Idempotency-Key", key))
	second := t.setup(t.post(transactions, body, "Idempotency-Key", key, "X-Request-Id", "probe-replay"))
	if t.id(first) != t.id(second) {
		t.cannotTell("the gateway ignores Idempotency-Key, see idempotency-header")
	}
	t.want(second.header.Get("X-Request-Id") == "probe-replay", "a replay does not have its own X-Request-Id")
	t.want(string(first.body) == string(second.body), "a replay has a different body than the first response")
	spaced := raw(" " + strings.ReplaceAll(string(t.encoded(body)), `,"`, `, "`))
	third := t.accepts(t.post(transactions, spaced, "Idempotency-Key", key), "the body with other white space")
	t.want(t.id(third) == t.id(first), "the body with other white space counts as a different one")
	other := t.put(transactions+"/"+t.id(first), object{"status": "paid"}, "Idempotency-Key", key)
	t.status(other, http.StatusConflict, "the key on another path")
	t.want(t.post(transactions, t.charge(), "Idempotency-Key", strings.Repeat("k", 256)).invalid(), "a key of 256 characters is accepted")
	t.want(t.post(transactions, t.charge(), "Idempotency-Key", "clé").invalid(), "a key beyond ASCII is accepted")
	unused := t.ref()
	t.want(t.post(transactions, t.charge("amount", 0), "Idempotency-Key", unused).invalid(), "an amount of 0 is accepted")
	t.accepts(t.post(transactions, t.charge(), "Idempotency-Key", unused), "a key whose first request was rejected")
}
