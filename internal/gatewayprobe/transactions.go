package gatewayprobe

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gateway-go/gateway/internal/profile"
)

// transactionExperiments test the rows of "Transactions".
func transactionExperiments() map[string]experiment {
	return map[string]experiment{
		"amount-minimum": {does: "creates a transaction of 1 cent", check: func(t *trial) {
			t.accepts(t.post(transactions, t.charge("amount", 1)), "1 cent")
		}},
		"no-cross-rules": {does: "creates transactions with inconsistent members", check: func(t *trial) {
			t.accepts(t.post(transactions, t.charge("amount", 1234)), "products that don't sum to the amount")
			t.accepts(t.post(transactions, t.charge("currency", "USD")), "Pix in USD")
			t.accepts(t.post(transactions, t.charge("interest_rate", 1.5)), "interest_rate with Pix")
			t.accepts(t.post(transactions, t.charge("buyer.document.number", "11111111111")), "a document with wrong check digits")
		}},
		"buyer-required": {does: "creates transactions whose buyer has no name, or no e-mail", check: func(t *trial) {
			for _, name := range []string{"name", "email"} {
				t.rejects(t.post(transactions, t.charge("buyer."+name, absent{})), "buyer."+name, "a buyer without "+name)
			}
		}},
		"buyer-unknown": {does: "creates transactions for unknown buyers", check: func(t *trial) {
			for _, id := range []any{unknownID, 2147483647} {
				t.status(t.post(transactions, t.charge("buyer", object{"id": id})), http.StatusNotFound, "an unknown buyer.id")
			}
		}},
		"empty-reference": {does: "creates two transactions with the external_ref \"\", and a transfer with a transaction's", check: func(t *trial) {
			for range 2 {
				r := t.accepts(t.post(transactions, t.charge("external_ref", "")), "an empty external_ref")
				t.want(r.null("data.external_ref"), "an empty external_ref is returned as %v", r.at("data.external_ref"))
			}
			_, r := t.make(t.charge())
			t.status(t.transfer(t.payout("external_ref", r.text("data.external_ref"))), http.StatusCreated, "a transfer with the external_ref of a transaction")
		}},
		"voucher-country": {does: "creates a voucher whose address has no country", check: func(t *trial) {
			r := t.accepts(t.post(transactions, t.voucher("buyer.address.country", absent{})), "an address without country")
			t.want(r.text("data.buyer.address.country") == "BR", "the country is %v", r.at("data.buyer.address.country"))
		}},
		"voucher-currency": {does: "creates a voucher in MXN", check: func(t *trial) {
			r := t.accepts(t.post(transactions, t.voucher("currency", "MXN")), "a voucher in MXN")
			t.want(r.null("data.voucher.barcode") && r.null("data.voucher.digitable_line"), "it has a barcode or a digitable line")
		}},
		"voucher-fields": {does: "creates a voucher and checks its keys", check: func(t *trial) {
			_, r := t.make(t.voucher())
			in, _ := r.at("data.voucher").(object)
			known := []string{"barcode", "digitable_line", "url", "expiration_date", "instructions", "receipt_url"}
			for name := range in {
				t.want(slices.Contains(known, name), "a voucher has %s too", name)
			}
			t.want(has(in, known...), "a voucher has %d keys", len(in))
		}},
		"boleto-form": {does: "creates a voucher and checks its digitable line", check: func(t *trial) {
			_, r := t.make(t.voucher())
			line := r.text("data.voucher.digitable_line")
			t.want(len(line) == 47 && strings.Trim(line, "0123456789") == "", "it is written %s", shape(line))
			due := r.time("data.voucher.expiration_date").In(time.FixedZone("", -3*3600)).Format(time.DateOnly)
			t.want(slices.Contains(dueDays(line[33:37]), due), "its due day is not that of the expiration_date in UTC-3")
		}},
		"waiting-payment": {does: "creates a Pix and a voucher, and checks their state", check: func(t *trial) {
			_, pix := t.make(t.charge())
			_, voucher := t.make(t.voucher())
			for name, r := range map[string]response{"Pix": pix, "voucher": voucher} {
				t.want(r.text("data.status") == "pending", "a new %s is %s", name, r.text("data.status"))
			}
		}},
		"pix-life": {does: "checks the expirations of a Pix charge, a voucher and a 3-D Secure challenge", check: func(t *trial) {
			_, pix := t.make(t.charge())
			t.lasts(pix, "data.created_at", "data.pix.expiration_date", 24*time.Hour, "a Pix charge")
			_, voucher := t.make(t.voucher())
			t.lasts(voucher, "data.created_at", "data.voucher.expiration_date", 72*time.Hour, "a voucher")
			card := t.charged(t.post(transactions, t.card("3ds")), "3ds")
			t.lasts(card, "data.created_at", "data.next_action.expires_at", 15*time.Minute, "a challenge")
		}},
		"transaction-filters": {does: "finds one transaction by each filter of the list", check: transactionFilters},
		"live-list-item": {does: "checks a listed transaction, if the gateway reads listed-transaction as the live dialect", check: func(t *trial) {
			read, listed := t.listed()
			item := response{value: listed}
			if _, found := item.find("payment"); !found {
				t.cannotTell("the list items do not have the form of the live dialect, see listed-transaction")
			}
			t.want(item.at("payment.base_price") == 1000.0, "base_price of 1000 is %v", item.at("payment.base_price"))
			t.want(item.at("payment.amount") == read["amount"], "the amount of a list item is not that of a read")
			t.want(item.text("payment.country") == "BR", "country of a buyer without address is %v", item.at("payment.country"))
			t.want(item.int("attempts_count") == 1, "attempts_count is %v", item.at("attempts_count"))
		}},
		"live-metadata": {does: "creates transactions with three forms of metadata, if the gateway reads transaction-metadata as the live dialect", check: func(t *trial) {
			for text, want := range map[string]object{
				`{"a":"b"}`: {"a": "b"}, "a=1&b=2": {"a": "1", "b": "2"}, "order 7": {"metadata": "order 7"},
			} {
				_, r := t.make(t.charge("metadata", text))
				if r.text("data.metadata") == text {
					t.cannotTell("metadata is returned as it was sent, see transaction-metadata")
				}
				t.want(equal(r.at("data.metadata"), want), "%s is returned in another form", text)
			}
		}},
		"buyer-overrides": {does: "creates a transaction with buyer.id and a different phone, and reads the customer", check: func(t *trial) {
			id := t.customer()
			_, r := t.make(t.charge("buyer", object{"id": id, "phone": "21912345678"}))
			t.want(r.text("data.buyer.phone") == "21912345678", "the transaction does not have the phone that was sent with it")
			t.want(t.setup(t.get(customers+"/"+id)).text("data.phone") == "11987654321", "the customer's phone changed too")
		}},
		"transaction-fee": {does: "creates and pays a transaction, and checks its fee", check: func(t *trial) {
			path, _ := t.make(t.charge("amount", 10000))
			t.set(path, "paid")
			r := t.setup(t.get(path))
			net := r.int("data.fee.net_amount")
			t.want(net >= 0, "fee.net_amount is %v", r.at("data.fee.net_amount"))
			t.want(net == 10000, profile.Fee, 10000-net)
		}},
		"settled-share": {does: "creates and pays a transaction, and records amount, base_price and paid_amount in create, read, list and webhook", check: settledShare},
		"fee-kept": {does: "pays and refunds a transaction, and compares the balance before and after", check: func(t *trial) {
			before := t.balance()
			path, _ := t.make(t.charge("amount", 10000))
			t.set(path, "paid")
			fee := 10000 - t.setup(t.get(path)).int("data.fee.net_amount")
			if fee == 0 {
				t.cannotTell("this gateway charges no fee, see transaction-fee")
			}
			t.setup(t.put(path+"/refund", object{}))
			lost := before - t.balance()
			t.want(lost == fee, "a payment with a fee of %d, refunded, changes the balance by %d", fee, -lost)
		}},
		"refund-voucher": {does: "refunds a part of a paid voucher, then all of it", check: func(t *trial) {
			path, _ := t.make(t.voucher())
			t.set(path, "paid")
			t.status(t.put(path+"/refund", object{"amount": 1}), http.StatusConflict, "a part")
			t.accepts(t.put(path+"/refund", object{}), "all of it")
		}},
		"updated-at": {does: "pays a transaction, refunds two parts of it, and reads updated_at after each change", check: func(t *trial) {
			path, _ := t.make(t.charge())
			was := t.setup(t.get(path)).time("data.updated_at")
			moves := func(what string) {
				now := t.setup(t.get(path)).time("data.updated_at")
				t.want(now.After(was), "updated_at is %v after %s, and was %v before", now.UTC(), what, was.UTC())
				was = now
			}
			t.set(path, "paid")
			moves("the payment")
			for _, nth := range []string{"first", "second"} {
				t.setup(t.put(path+"/refund", object{"amount": 1}))
				moves("the " + nth + " refund of a part")
			}
		}},
		"books-listed": {does: "pays two transactions, refunds two parts of one, and lists both by their ids after each change", check: booksListed},
		"lagging-reads": {does: "creates and pays a transaction, and reads and lists it after each step at once", check: func(t *trial) {
			path, made := t.make(t.charge())
			id := t.id(made)
			listed := func() bool {
				return strings.Contains(string(t.setup(t.get(transactions+"?limit=100")).body), id)
			}
			t.status(t.get(path), http.StatusOK, "a read after the create")
			t.want(listed(), "the list does not have a transaction that was just created")
			t.set(path, "paid")
			t.want(t.setup(t.get(path)).text("data.status") == "paid", "a read after the payment does not show it")
		}},
		"refund-reason": {does: "refunds a paid transaction with a reason, and reads it", check: func(t *trial) {
			path, _ := t.make(t.charge())
			t.set(path, "paid")
			t.setup(t.put(path+"/refund", object{"reason": "gatewayprobe"}))
			list, _ := t.setup(t.get(path)).at("data.informations").([]any)
			t.want(slices.ContainsFunc(list, func(e any) bool {
				in, _ := e.(object)
				return in["key"] == "refund_reason" && in["value"] == "gatewayprobe"
			}), "informations has no refund_reason")
		}},
		"sandbox-status": {does: "sets states of a transaction of 1000 cents", check: func(t *trial) {
			path, _ := t.make(t.charge())
			t.set(path, "paid")
			first := t.setup(t.get(path))
			t.accepts(t.put(path, object{"status": "paid"}), "the current state")
			again := t.setup(t.get(path))
			t.want(again.text("data.paid_at") == first.text("data.paid_at"), "setting the current state changes paid_at")
			t.set(path, "partially_refunded")
			half := t.setup(t.get(path)).int("data.refunded_amount")
			t.want(half == 500, "partially_refunded refunds %d of 1000", half)
		}},
		"etag": {does: "reads a transaction before and after it is paid", check: func(t *trial) {
			path, _ := t.make(t.charge())
			before := t.setup(t.get(path)).header.Get("Etag")
			t.want(before != "", "a transaction has no ETag")
			t.want(t.setup(t.get(path)).header.Get("Etag") == before, "two reads without a change between them have different ETags")
			t.set(path, "paid")
			t.want(t.setup(t.get(path)).header.Get("Etag") != before, "the ETag is the same after a transition")
		}},
	}
}

func booksListed(t *trial) {
	_, other := t.make(t.charge())
	path, made := t.make(t.charge())
	id := t.id(made)
	var was time.Time
	moves := func(what string) {
		r := t.accepts(t.get(transactions+"?limit=100&id="+id+","+t.id(other)), "a list by two ids")
		ids := r.ids()
		t.want(len(ids) == 2 && slices.Contains(ids, id) && slices.Contains(ids, t.id(other)), "a list by two ids has %d transactions", len(ids))
		now := r.listed(id).time("updated_at")
		t.want(now.After(was), "the list's updated_at is %v after %s, and was %v before", now.UTC(), what, was.UTC())
		t.want(now.Equal(t.setup(t.get(path)).time("data.updated_at")), "the list's updated_at after %s is not that of a read", what)
		was = now
	}
	moves("the create")
	t.set(path, "paid")
	moves("the payment")
	for _, nth := range []string{"first", "second"} {
		t.setup(t.put(path+"/refund", object{"amount": 1}))
		moves("the " + nth + " refund of a part")
	}
}

// dueDays returns the days that the four digits of a boleto's due day may mean: they
// count from 1997-10-07, and went from 9999 back to 1000 in 2025.
func dueDays(digits string) []string {
	n := 0
	for _, c := range digits {
		n = 10*n + int(c-'0')
	}
	base := time.Date(1997, time.October, 7, 0, 0, 0, 0, time.UTC)
	return []string{base.AddDate(0, 0, n).Format(time.DateOnly), base.AddDate(0, 0, n+9000).Format(time.DateOnly)}
}

// lasts checks the time between two timestamps, to within a minute.
func (t *trial) lasts(r response, from, to string, want time.Duration, what string) {
	begin, end := r.time(from), r.time(to)
	if begin.IsZero() || end.IsZero() {
		t.cannotTell("%s and %s are not both timestamps", from, to)
	}
	got := end.Sub(begin)
	t.want((got-want).Abs() <= time.Minute, "%s expires after %v, not %v", what, got.Round(time.Second), want)
}

// settledShare compares the amounts of one charge wherever the gateway reports them.
func settledShare(t *trial) {
	body := t.charge("amount", 10000)
	var h *hook
	if t.probe.cfg.Receiver != nil {
		body["notify_url"], h = t.hook()
	}
	path, made := t.make(body)
	t.set(path, "paid")
	read := t.setup(t.get(path))
	shown := []amounts{amountsIn("create", made, "data"), amountsIn("read", read, "data")}
	for _, e := range t.setup(t.get(transactions + "?limit=5")).list() {
		if item := (response{value: e}); item.text("id") == t.id(made) {
			shown = append(shown, amountsIn("list", item, "", "payment"))
		}
	}
	if h != nil {
		for _, d := range t.await(h, 3) {
			if d.event.text("data.event_type") == "transaction.paid" {
				shown = append(shown, amountsIn("webhook", d.event, "data"))
			}
		}
	}
	settled, consistent := shown[0].amount, true
	var all []string
	for i, a := range shown {
		paid := 10000.0
		if i == 0 { // nothing is paid yet
			paid = 0
		}
		consistent = consistent && a.amount == settled && among(a.base, nil, 10000.0) && among(a.paid, nil, paid) &&
			(a.amount == 10000.0 || a.base != nil || a.paid == 10000.0)
		all = append(all, a.String())
	}
	cents, _ := settled.(float64)
	t.want(consistent, "of 10000 cents: %s", strings.Join(all, "; "))
	t.want(cents == 10000, profile.Settled, int64(cents))
}

// charges reports whether a transaction is of an amount, which a gateway that reports
// what it settles as the amount has in base_price or paid_amount; see settled-share.
func (r response) charges(cents int64) bool {
	a := amountsIn("", r, "data")
	return among(float64(cents), a.amount, a.base, a.paid)
}

// amounts are the members in which an amount can be reported; nil is absent.
type amounts struct {
	where              string
	amount, base, paid any
}

// amountsIn reads the amounts of a transaction from the first of the paths that has
// an amount; a webhook's paid_amount may be a string.
func amountsIn(where string, r response, paths ...string) amounts {
	a := amounts{where: where}
	get := func(name string) any {
		for _, path := range paths {
			v, found := r.find(strings.TrimPrefix(path+"."+name, "."))
			if text, quoted := v.(string); quoted {
				if n, err := strconv.ParseFloat(text, 64); err == nil {
					v = n
				}
			}
			if found && v != nil {
				return v
			}
		}
		return nil
	}
	a.amount, a.base, a.paid = get("amount"), get("base_price"), get("paid_amount")
	return a
}

// String returns "read: amount 475, base_price 500, paid_amount absent".
func (a amounts) String() string {
	text := func(v any) string {
		if n, ok := v.(float64); ok {
			return strconv.FormatInt(int64(n), 10)
		}
		return "absent"
	}
	return a.where + ": amount " + text(a.amount) + ", base_price " + text(a.base) + ", paid_amount " + text(a.paid)
}

func among(v any, list ...any) bool { return slices.Contains(list, v) }

func transactionFilters(t *trial) {
	mail, name := t.email(), strings.ToUpper(t.ref())
	document := fmt.Sprintf("%011d", t.number()%100_000_000_000)
	_, r := t.make(t.charge("buyer.email", mail, "buyer.name", "Buyer "+name+" End", "buyer.phone", "11912345678",
		"buyer.document.number", document, "products", []any{object{"name": name, "price": 1000}}))
	id, day := t.id(r), r.time("data.created_at").UTC().Format(time.DateOnly)
	for _, row := range []struct {
		name, value string
		finds       bool
	}{
		{"id", id, true},
		{"name", strings.ToLower(name), true},
		{"email", strings.ToUpper(mail), true},
		{"email", mail[1:], false},
		{"documentNumber", document, true},
		{"documentNumber", document[1:], false},
		{"products", name, true},
		{"products", name[1:], false},
		{"phone", "11912345678", true},
		{"phone", "1191234567", false},
		{"dateFrom", r.text("data.created_at"), true},
		{"dateTo", r.text("data.created_at"), true},
		{"dateFrom", day, true},
		{"dateTo", day, true},
	} {
		query := transactions + "?limit=20&" + row.name + "=" + url.QueryEscape(row.value)
		if row.name != "id" {
			query += "&id=" + id // the account may have other transactions
		}
		found := slices.Contains(t.accepts(t.get(query), "the filter "+row.name).ids(), id)
		t.want(found == row.finds, "%s finds it with %s: %v", row.name, kindOf(row.value, r), found)
	}
}

// kindOf describes the value of a filter without showing it.
func kindOf(value string, r response) string {
	switch {
	case value == r.text("data.created_at"):
		return "its timestamp"
	case len(value) == len(time.DateOnly) && strings.Count(value, "-") == 2:
		return "its day"
	}
	return "the value or a part of it"
}
