package rules_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/gateway-go/gateway/internal/rules"
)

const cardSubscription = `{
	"customer_id": "0190b5a2-7c1e-7d3a-9f4b-2a6c8e0d1f35", "amount": 4990, "token": "pgct_tok",
	"payment_method": "credit_card", "interval": "month", "interval_count": 1,
	"failure_policy": "retry_then_cancel", "retry_offsets_days": [3, 5, 7], "currency": "BRL",
	"metadata": {"plan": "gold"}, "informations": [{"key": "k", "value": "v"}], "idempotency_key": "sub-1",
	"products": [{"name": "Plan", "price": 4990, "quantity": 1, "tangible": false, "sku": "P1"}],
	"trial_end": "2027-02-01T00:00:00Z", "billing_day_of_month": 1, "comment": "c"
}`

const pixSubscription = `{"customer_id": "c", "amount": 4990, "payment_method": "pix_automatic", "interval": "month"}`

func TestSubscriptionEdges(t *testing.T) {
	t.Parallel()
	offset, info := "3", `{"key":"k","value":"v"}`
	product := `{"name":"n","price":1}`
	checkEdges(t, rules.Subscription, cardSubscription, []edge{
		{"customer_id", `"c"`, `""`, rules.CodeTooSmall},
		{"customer_id", `"c"`, missing, rules.CodeRequired},
		{"customer_id", `"c"`, `7`, rules.CodeInvalidType},
		{"amount", "1", "0", rules.CodeTooSmall},
		{"amount", "100000000", "100000001", rules.CodeTooBig},
		{"amount", "1", missing, rules.CodeRequired},
		{"amount", "1", "null", rules.CodeInvalidType},
		{"amount", "1", `"1"`, rules.CodeInvalidType},
		{"amount", "1", "1.5", rules.CodeInvalidType},
		{"token", `"pgct_1"`, missing, rules.CodeRequired},
		{"token", `"pgct_1"`, `"pgpm_1"`, rules.CodeInvalid},
		{"token", `"pgct_1"`, `"pgct_"`, rules.CodeTooSmall},
		{"token", `"pgct_1"`, `"4111 1111 1111 1111"`, rules.CodeInvalid},
		{"payment_method", missing, `"pix"`, rules.CodeInvalidEnum},
		{"payment_method", `"credit_card"`, "null", rules.CodeInvalidType},
		{"interval", `"day"`, `"year"`, rules.CodeInvalidEnum},
		{"interval", `"week"`, missing, rules.CodeRequired},
		{"interval", `"month"`, `"Month"`, rules.CodeInvalidEnum},
		{"interval_count", "1", "0", rules.CodeTooSmall},
		{"interval_count", "365", "366", rules.CodeTooBig},
		{"failure_policy", `"immediate_cancel"`, `"retry"`, rules.CodeInvalidEnum},
		{"failure_policy", missing, "null", rules.CodeInvalidType},
		{"retry_offsets_days", list(1, offset), "[]", rules.CodeTooSmall},
		{"retry_offsets_days", list(10, offset), list(11, offset), rules.CodeTooBig},
		{"retry_offsets_days[1]", "1", "0", rules.CodeTooSmall},
		{"retry_offsets_days[1]", "30", "31", rules.CodeTooBig},
		{"retry_offsets_days[1]", "30", `"30"`, rules.CodeInvalidType},
		{"currency", `"GLC"`, `"XXX"`, rules.CodeInvalidEnum},
		{"currency", `"NIO"`, `"brl"`, rules.CodeInvalidEnum},
		{"metadata", "{}", `"text"`, rules.CodeInvalidType},
		{"metadata", missing, "null", rules.CodeInvalidType},
		{"informations", list(50, info), list(51, info), rules.CodeTooBig},
		{"informations[0].key", `""`, missing, rules.CodeRequired},
		{"informations[0].value", `""`, "1", rules.CodeInvalidType},
		{"informations[0]", info, `"k=v"`, rules.CodeInvalidType},
		{"idempotency_key", text(1), text(0), rules.CodeTooSmall},
		{"idempotency_key", text(255), text(256), rules.CodeTooBig},
		{"products", "[]", "{}", rules.CodeInvalidType},
		{"products", list(100, product), list(101, product), rules.CodeTooBig},
		{"products[0].name", text(1), text(0), rules.CodeTooSmall},
		{"products[0].name", text(255), text(256), rules.CodeTooBig},
		{"products[0].price", "0", "-1", rules.CodeTooSmall},
		{"products[0].price", "100000000", "100000001", rules.CodeTooBig},
		{"products[0].quantity", "1", "0", rules.CodeTooSmall},
		{"products[0].quantity", "999999", "1000000", rules.CodeTooBig},
		{"products[0].sku", text(255), text(256), rules.CodeTooBig},
		{"trial_end", `"2027-02-01T00:00:00-03:00"`, `"2027-02-01T00:00:00"`, rules.CodeInvalid},
		{"trial_end", `"2027-02-01T00:00:00.250Z"`, `"2027-02-01"`, rules.CodeInvalid},
		{"billing_day_of_month", "1", "0", rules.CodeTooSmall},
		{"billing_day_of_month", "31", "32", rules.CodeTooBig},
		{"comment", text(140), text(141), rules.CodeTooBig},
	})
}

func TestSubscriptionByPixAutomatico(t *testing.T) {
	t.Parallel()
	checkEdges(t, rules.Subscription, pixSubscription, []edge{
		{"token", missing, `"pgct_tok"`, rules.CodeInvalid},
		{"token", missing, "null", rules.CodeInvalid},
		{"token", missing, "7", rules.CodeInvalid},
		{"interval", `"week"`, missing, rules.CodeRequired},
		{"customer_id", `"c"`, missing, rules.CodeRequired},
		{"amount", "1", missing, rules.CodeRequired},
	})
}

func TestSubscriptionTakesEveryBillingCurrency(t *testing.T) {
	t.Parallel()
	n := 0
	for currency := range rules.BillingCurrencies.All() {
		n++
		assert.Empty(t, check(t, edit(t, cardSubscription, "currency", `"`+currency+`"`), rules.Subscription), currency)
	}
	assert.Equal(t, 43, n)
}

func TestSubscriptionRefusalNeverRepeatsTheToken(t *testing.T) {
	t.Parallel()
	for _, token := range []string{"4111111111111111", "secret-but-not-a-token", "pgpm_secret"} {
		found := check(t, edit(t, cardSubscription, "token", `"`+token+`"`), rules.Subscription)
		for _, v := range found {
			assert.NotContains(t, v.Message, token)
		}
		assert.Len(t, found, 1)
	}
}

func TestSubscriptionUpdate(t *testing.T) {
	t.Parallel()
	base := `{"metadata": {"plan": "gold"}, "failure_policy": "immediate_cancel", "retry_offsets_days": [1]}`
	checkEdges(t, rules.SubscriptionUpdate, base, []edge{
		{"metadata", "null", `"text"`, rules.CodeInvalidType},
		{"metadata", "{}", "[]", rules.CodeInvalidType},
		{"failure_policy", `"retry_then_cancel"`, "null", rules.CodeInvalidType},
		{"failure_policy", missing, `"never"`, rules.CodeInvalidEnum},
		{"retry_offsets_days", list(10, "30"), list(11, "30"), rules.CodeTooBig},
		{"retry_offsets_days", missing, "[]", rules.CodeTooSmall},
		{"retry_offsets_days[0]", "30", "31", rules.CodeTooBig},
		{"retry_offsets_days[0]", "1", "0", rules.CodeTooSmall},
	})
	assert.Empty(t, check(t, "{}", rules.SubscriptionUpdate))
	assert.Empty(t, check(t, `{"made_up": 1}`, rules.SubscriptionUpdate), "unknown members are ignored")
}

func TestSubscriptionUpdateNamesWhatCannotChange(t *testing.T) {
	t.Parallel()
	for _, member := range []string{
		"customer_id", "amount", "token", "payment_method", "interval", "interval_count", "currency", "informations",
		"idempotency_key", "products", "trial_end", "billing_day_of_month", "comment", "status", "id", "customerId",
		"trialEnd", "cancelAtPeriodEnd", "customerEmail", "failurePolicy", "retryOffsetsDays",
		"paymentMethod", "billingModel", "billingDayOfMonth", "intervalCount", "currentPeriodStart", "currentPeriodEnd",
		"canceledAt", "cancellationReason", "cardLast4", "recurringAuthorization", "authorization", "transactions",
		"createdAt", "updatedAt",
	} {
		found := check(t, `{"metadata": null, "`+member+`": null}`, rules.SubscriptionUpdate)
		if assert.Len(t, found, 1, member) {
			assert.Equal(t, member, found[0].Field)
			assert.Equal(t, rules.CodeInvalid, found[0].Code)
		}
	}
}

func TestSubscriptionCancel(t *testing.T) {
	t.Parallel()
	checkEdges(t, rules.SubscriptionCancel, `{"reason": "moved"}`, []edge{
		{"reason", missing, "7", rules.CodeInvalidType},
		{"reason", text(1000), "null", rules.CodeInvalidType},
	})
}

func TestSubscriptionList(t *testing.T) {
	t.Parallel()
	for _, e := range []struct{ name, allowed, refused, code string }{
		{"limit", "1", "0", rules.CodeTooSmall},
		{"limit", "100", "101", rules.CodeTooBig},
		{"limit", "20", "many", rules.CodeInvalidType},
		{"direction", "prev", "back", rules.CodeInvalidEnum},
		{"status", "cancel_scheduled", "cancelled", rules.CodeInvalidEnum},
		{"status", "", "paid", rules.CodeInvalidEnum},
		{"created_after", "2027-01-01", "yesterday", rules.CodeInvalid},
		{"created_before", "2027-01-01T00:00:00Z", "2027-13-01", rules.CodeInvalid},
	} {
		assert.Empty(t, rules.CheckQuery(url.Values{e.name: {e.allowed}}, rules.SubscriptionList, rules.Variant{}), e.name)
		found := rules.CheckQuery(url.Values{e.name: {e.refused}}, rules.SubscriptionList, rules.Variant{})
		if assert.Len(t, found, 1, "%s=%s", e.name, e.refused) {
			assert.Equal(t, e.name, found[0].Field)
			assert.Equal(t, e.code, found[0].Code)
		}
	}
	for status := range rules.SubscriptionStatuses.All() {
		query := url.Values{"status": {status}, "customer_email": {"ana@example.com"}, "cursor": {"abc"}}
		assert.Empty(t, rules.CheckQuery(query, rules.SubscriptionList, rules.Variant{}), status)
	}
}

func TestSubscriptionRefusesCardData(t *testing.T) {
	t.Parallel()
	for _, member := range []string{
		`"card_number": "x"`, `"metadata": {"n": "4111-1111-1111-1111"}`, `"informations": [{"key": "card", "value": "4111111111111111"}]`,
	} {
		body := strings.Replace(pixSubscription, "{", "{"+member+",", 1)
		assert.Len(t, check(t, body, rules.Subscription), 1, member)
	}
}
