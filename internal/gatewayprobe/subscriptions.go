package gatewayprobe

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gateway-go/gateway/pix"
)

// subscriptionExperiments test the rows of "Subscriptions". Most use Pix Automatico,
// which needs no card token.
func subscriptionExperiments() map[string]experiment {
	return map[string]experiment{
		"subscription-defaults": {does: "creates a subscription with required members only", check: func(t *trial) {
			r := t.setup(t.subscribe(t.plan()))
			t.want(r.int("data.intervalCount") == 1, "intervalCount is %v", r.at("data.intervalCount"))
			t.want(r.text("data.failurePolicy") == "retry_then_cancel", "failurePolicy is %v", r.at("data.failurePolicy"))
			t.want(fmt.Sprint(r.at("data.retryOffsetsDays")) == "[3 5 7]", "retryOffsetsDays is %v", r.at("data.retryOffsetsDays"))
			t.want(r.text("data.currency") == "BRL", "currency is %v", r.at("data.currency"))
			none := t.subscribe(t.plan("payment_method", absent{}))
			t.rejects(none, "token", "without payment_method and token")
		}},
		"subscription-products": {does: "creates subscriptions with products at and beyond a limit", check: func(t *trial) {
			name := strings.Repeat("p", 255)
			product := func(name string) object { return t.plan("products", []any{object{"name": name, "price": 1000}}) }
			t.accepts(t.subscribe(product(name)), "a name of 255 characters")
			t.rejects(t.subscribe(product(name+"p")), "products[0].name", "a name of 256 characters")
		}},
		"idempotency-body": {does: "repeats an idempotency_key with the same body", check: func(t *trial) {
			body := t.plan("idempotency_key", t.ref())
			first := t.setup(t.subscribe(body))
			again := t.accepts(t.subscribe(body), "the same body")
			t.want(t.id(again) == t.id(first), "the same body creates a second subscription")
		}},
		"subscription-required": {does: "creates subscriptions, each without one of four members", check: func(t *trial) {
			for _, name := range []string{"customer_id", "amount", "interval"} {
				t.rejects(t.subscribe(edit(t.plan(), []any{name, absent{}})), name, "without "+name)
			}
			t.rejects(t.subscribe(t.plan("payment_method", "credit_card")), "token", "a card subscription without token")
		}},
		"subscription-fixed": {does: "updates members of a subscription that can't change, that don't exist, and its metadata", check: func(t *trial) {
			path := subscriptions + "/" + t.id(t.setup(t.subscribe(t.plan("metadata", object{"a": "1", "b": "2"}))))
			patch := func(body object) response { return t.call(http.MethodPatch, path, body) }
			for name, value := range map[string]any{"amount": 2000, "billingDayOfMonth": 5} {
				t.rejects(patch(object{name: value}), name, "an update of "+name)
			}
			t.accepts(patch(object{"gatewayprobe": 1}), "an update of a member that does not exist")
			t.accepts(patch(object{"metadata": object{"c": "3"}}), "an update of metadata")
			in, _ := t.setup(t.get(path)).at("data.metadata").(object)
			delete(in, "provider_recurring") // the gateway's own, see pix-authorization
			t.want(equal(in, object{"c": "3"}), "metadata is merged, not replaced")
		}},
		"subscription-filters": {does: "finds one subscription by each filter of the list", check: func(t *trial) {
			mail := t.email()
			r := t.setup(t.subscribe(t.plan("customer_id", t.customer("email", mail))))
			id, created := t.id(r), r.text("data.createdAt")
			day := r.time("data.createdAt").UTC().Format(time.DateOnly)
			for _, query := range []string{
				"", "&created_after=" + url.QueryEscape(created), "&created_before=" + url.QueryEscape(created),
				"&created_after=" + day, "&created_before=" + day,
			} {
				target := subscriptions + "?customer_email=" + url.QueryEscape(strings.ToUpper(mail)) + query
				found := t.accepts(t.get(target), "the filters").ids()
				name, _, _ := strings.Cut(strings.TrimPrefix(query, "&"), "=")
				t.want(slices.Contains(found, id), "customer_email %s does not find it", name)
			}
		}},
		"pix-automatic-disabled": {does: "creates a Pix Automatico", check: func(t *trial) {
			r := t.try(http.MethodPost, subscriptions, t.plan())
			t.want(r.status != http.StatusForbidden, "a Pix Automatico: %s", r.summary())
			t.setup(t.conclusive(r, http.StatusUnauthorized))
			t.cancel(subscriptions + "/" + t.id(r))
		}},
		"authorisation-life": {does: "checks the expiration of a Pix Automatico's authorization", check: func(t *trial) {
			r := t.setup(t.subscribe(t.plan()))
			t.lasts(r, "data.createdAt", "data.recurringAuthorization.expiration_date", 24*time.Hour, "an authorization")
			t.want(r.text("data.recurringAuthorization.status") == "pending", "its status is %v", r.at("data.recurringAuthorization.status"))
		}},
		"authorisation-shape": {does: "checks the authorization of subscriptions by Pix Automatico and by card", check: func(t *trial) {
			r := t.setup(t.subscribe(t.plan()))
			in, _ := r.at("data.recurringAuthorization").(object)
			t.want(has(in, "status", "qr_code", "expiration_date") && len(in) == 3, "recurringAuthorization has the keys %s", names(in))
			ask, _ := r.at("data.authorization").(object)
			t.want(ask["qr_code"] == in["qr_code"], "authorization has another code")
			card := t.charged(t.subscribe(t.cardPlan("ok")), "ok")
			t.want(card.null("data.recurringAuthorization"), "recurringAuthorization of a card is not null")
			_, asked := card.find("data.authorization")
			t.want(!asked, "a card subscription has an authorization")
		}},
		"authorisation-journey": {does: "decodes the codes of a Pix Automatico with and without a trial", check: func(t *trial) {
			for _, trial := range []bool{false, true} {
				plan := t.plan()
				if trial {
					plan["trial_end"] = time.Now().AddDate(1, 0, 0).UTC().Format(time.RFC3339)
				}
				code, err := pix.Decode(t.setup(t.subscribe(plan)).text("data.authorization.qr_code"))
				if err != nil {
					t.cannotTell("the code can't be read: %v", err)
				}
				t.want(code.RecurrenceURL != "", "field 80 of the code has no recurrence")
				t.want((code.URL == "") == trial, "the code has a charge: %t, the subscription a trial: %t", code.URL != "", trial)
			}
		}},
		"billing-day": {does: "creates a card subscription with billing_day_of_month and checks its first period", check: func(t *trial) {
			r := t.charged(t.subscribe(t.cardPlan("ok", "billing_day_of_month", 15)), "ok")
			if r.text("data.status") != "active" {
				t.cannotTell("the subscription is %s, not active", r.text("data.status"))
			}
			zone := time.FixedZone("", -3*3600)
			begin, end := r.time("data.currentPeriodStart").In(zone), r.time("data.currentPeriodEnd").In(zone)
			next := time.Date(begin.Year(), begin.Month()+1, 15, 0, 0, 0, 0, zone)
			t.want(end.Format(time.DateOnly) == next.Format(time.DateOnly), "the first period ends on day %d, %d days after its start",
				end.Day(), int(end.Sub(begin).Hours()/24))
		}},
		"first-charge-refused": {does: "creates a card subscription whose first charge is refused", check: func(t *trial) {
			_, r := t.refused()
			t.want(r.text("data.status") == "incomplete", "the subscription is %s", r.text("data.status"))
		}},
		"trial-refused": {does: "creates trials, one whose card is refused and one whose card needs 3-D Secure", check: func(t *trial) {
			for _, outcome := range []string{"refused", "3ds"} {
				end := time.Now().AddDate(1, 0, 0).UTC().Format(time.RFC3339)
				r := t.charged(t.subscribe(t.cardPlan(outcome, "trial_end", end)), outcome)
				t.want(r.text("data.status") == "incomplete", "the trial is %s", r.text("data.status"))
			}
		}},
		"trial-check": {does: "creates a card trial and compares the balance before and after", check: func(t *trial) {
			before := t.balance()
			end := time.Now().AddDate(1, 0, 0).UTC().Format(time.RFC3339)
			r := t.charged(t.subscribe(t.cardPlan("ok", "trial_end", end)), "ok")
			t.want(r.text("data.status") == "trialing", "the subscription is %s", r.text("data.status"))
			after := t.balance()
			t.want(after == before, "the balance changes by %d", after-before)
		}},
		"charge-in-sandbox": {does: "sets the refused first charge of a subscription to paid", check: func(t *trial) {
			path, r := t.refused()
			t.set(transactions+"/"+r.text("data.transactions.0.id"), "paid")
			now := t.setup(t.get(path)).text("data.status")
			t.want(now == "active", "the subscription is %s", now)
		}},
		"cancel-challenge": {does: "cancels a subscription whose first charge needs 3-D Secure", check: func(t *trial) {
			id := t.id(t.charged(t.subscribe(t.cardPlan("3ds")), "3ds"))
			charge := t.setup(t.get(subscriptions + "/" + id)).text("data.transactions.0.id")
			if charge == "" {
				t.cannotTell("the subscription shows no transaction")
			}
			t.setup(t.post(subscriptions+"/"+id+"/cancel", object{}))
			status := t.setup(t.get(transactions + "/" + charge)).text("data.status")
			t.want(status == "canceled", "its transaction is %s", status)
		}},
	}
}

// refused creates a subscription whose first charge is refused, and reads it.
func (t *trial) refused() (path string, r response) {
	made := t.charged(t.subscribe(t.cardPlan("refused")), "refused")
	path = subscriptions + "/" + t.id(made)
	r = t.setup(t.get(path))
	if status := r.text("data.transactions.0.status"); status != "refused" {
		t.cannotTell("the first charge is not refused but %q; pass a token with -card-token refused=…", status)
	}
	return path, r
}
