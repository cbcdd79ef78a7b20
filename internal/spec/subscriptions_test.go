package spec_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/spec"
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
	checkEdges(t, spec.Subscription, cardSubscription, []edge{
		{"customer_id", `"c"`, `""`, spec.CodeTooSmall},
		{"customer_id", `"c"`, missing, spec.CodeRequired},
		{"customer_id", `"c"`, `7`, spec.CodeInvalidType},
		{"amount", "1", "0", spec.CodeTooSmall},
		{"amount", "100000000", "100000001", spec.CodeTooBig},
		{"amount", "1", missing, spec.CodeRequired},
		{"amount", "1", "null", spec.CodeInvalidType},
		{"amount", "1", `"1"`, spec.CodeInvalidType},
		{"amount", "1", "1.5", spec.CodeInvalidType},
		{"token", `"pgct_1"`, missing, spec.CodeRequired},
		{"token", `"pgct_1"`, `"pgpm_1"`, spec.CodeInvalid},
		{"token", `"pgct_1"`, `"pgct_"`, spec.CodeTooSmall},
		{"token", `"pgct_1"`, `"4111 1111 1111 1111"`, spec.CodeInvalid},
		{"payment_method", missing, `"pix"`, spec.CodeInvalidEnum},
		{"payment_method", `"credit_card"`, "null", spec.CodeInvalidType},
		{"interval", `"day"`, `"year"`, spec.CodeInvalidEnum},
		{"interval", `"week"`, missing, spec.CodeRequired},
		{"interval", `"month"`, `"Month"`, spec.CodeInvalidEnum},
		{"interval_count", "1", "0", spec.CodeTooSmall},
		{"interval_count", "365", "366", spec.CodeTooBig},
		{"failure_policy", `"immediate_cancel"`, `"retry"`, spec.CodeInvalidEnum},
		{"failure_policy", missing, "null", spec.CodeInvalidType},
		{"retry_offsets_days", list(1, offset), "[]", spec.CodeTooSmall},
		{"retry_offsets_days", list(10, offset), list(11, offset), spec.CodeTooBig},
		{"retry_offsets_days[1]", "1", "0", spec.CodeTooSmall},
		{"retry_offsets_days[1]", "30", "31", spec.CodeTooBig},
		{"retry_offsets_days[1]", "30", `"30"`, spec.CodeInvalidType},
		{"currency", `"GLC"`, `"XXX"`, spec.CodeInvalidEnum},
		{"currency", `"NIO"`, `"brl"`, spec.CodeInvalidEnum},
		{"metadata", "{}", `"text"`, spec.CodeInvalidType},
		{"metadata", missing, "null", spec.CodeInvalidType},
		{"informations", list(50, info), list(51, info), spec.CodeTooBig},
		{"informations[0].key", `""`, missing, spec.CodeRequired},
		{"informations[0].value", `""`, "1", spec.CodeInvalidType},
		{"informations[0]", info, `"k=v"`, spec.CodeInvalidType},
		{"idempotency_key", text(1), text(0), spec.CodeTooSmall},
		{"idempotency_key", text(255), text(256), spec.CodeTooBig},
		{"products", "[]", "{}", spec.CodeInvalidType},
		{"products", list(100, product), list(101, product), spec.CodeTooBig},
		{"products[0].name", text(1), text(0), spec.CodeTooSmall},
		{"products[0].name", text(255), text(256), spec.CodeTooBig},
		{"products[0].price", "0", "-1", spec.CodeTooSmall},
		{"products[0].price", "100000000", "100000001", spec.CodeTooBig},
		{"products[0].quantity", "1", "0", spec.CodeTooSmall},
		{"products[0].quantity", "999999", "1000000", spec.CodeTooBig},
		{"products[0].sku", text(255), text(256), spec.CodeTooBig},
		{"trial_end", `"2027-02-01T00:00:00-03:00"`, `"2027-02-01T00:00:00"`, spec.CodeInvalid},
		{"trial_end", `"2027-02-01T00:00:00.250Z"`, `"2027-02-01"`, spec.CodeInvalid},
		{"billing_day_of_month", "1", "0", spec.CodeTooSmall},
		{"billing_day_of_month", "31", "32", spec.CodeTooBig},
		{"comment", text(140), text(141), spec.CodeTooBig},
	})
}

func TestSubscriptionByPixAutomatico(t *testing.T) {
	t.Parallel()
	checkEdges(t, spec.Subscription, pixSubscription, []edge{
		{"token", missing, `"pgct_tok"`, spec.CodeInvalid},
		{"token", missing, "null", spec.CodeInvalid},
		{"token", missing, "7", spec.CodeInvalid},
		{"interval", `"week"`, missing, spec.CodeRequired},
		{"customer_id", `"c"`, missing, spec.CodeRequired},
		{"amount", "1", missing, spec.CodeRequired},
	})
}

func TestATokenIsCheckedForEveryPaymentMethod(t *testing.T) {
	t.Parallel()
	wrongMethod := edit(t, cardSubscription, "payment_method", `"cash"`)
	for token, want := range map[string][]string{
		`"pgct_tok"`: {"payment_method"}, missing: {"payment_method"}, `7`: {"payment_method", "token"}, `"tok_1234"`: {"payment_method", "token"},
	} {
		var got []string
		for _, v := range check(t, edit(t, wrongMethod, "token", token), spec.Subscription) {
			got = append(got, v.Field)
		}
		assert.Equal(t, want, got, token)
	}
	first := `{"token":"pgct_tok",` + strings.TrimPrefix(strings.TrimSpace(pixSubscription), "{")
	assert.Len(t, check(t, first, spec.Subscription), 1, "a token before payment_method")
}

func TestSubscriptionAcceptsEveryBillingCurrency(t *testing.T) {
	t.Parallel()
	n := 0
	for currency := range spec.BillingCurrencies.All() {
		n++
		assert.Empty(t, check(t, edit(t, cardSubscription, "currency", `"`+currency+`"`), spec.Subscription), currency)
	}
	assert.Equal(t, 43, n)
}

func TestSubscriptionErrorsNeverContainTheToken(t *testing.T) {
	t.Parallel()
	for _, token := range []string{"4111111111111111", "secret-but-not-a-token", "pgpm_secret"} {
		found := check(t, edit(t, cardSubscription, "token", `"`+token+`"`), spec.Subscription)
		for _, v := range found {
			assert.NotContains(t, v.Message, token)
		}
		assert.Len(t, found, 1)
	}
}

func TestSubscriptionUpdate(t *testing.T) {
	t.Parallel()
	base := `{"metadata": {"plan": "gold"}, "failure_policy": "immediate_cancel", "retry_offsets_days": [1]}`
	checkEdges(t, spec.SubscriptionUpdate, base, []edge{
		{"metadata", "null", `"text"`, spec.CodeInvalidType},
		{"metadata", "{}", "[]", spec.CodeInvalidType},
		{"failure_policy", `"retry_then_cancel"`, "null", spec.CodeInvalidType},
		{"failure_policy", missing, `"never"`, spec.CodeInvalidEnum},
		{"retry_offsets_days", list(10, "30"), list(11, "30"), spec.CodeTooBig},
		{"retry_offsets_days", missing, "[]", spec.CodeTooSmall},
		{"retry_offsets_days[0]", "30", "31", spec.CodeTooBig},
		{"retry_offsets_days[0]", "1", "0", spec.CodeTooSmall},
		{"retry_offsets_days[0]", "1.0", "1.5", spec.CodeInvalidType},
		{"retry_offsets_days[0]", "1e1", `"7"`, spec.CodeInvalidType},
	})
	assert.Empty(t, check(t, "{}", spec.SubscriptionUpdate))
	assert.Empty(t, check(t, `{"made_up": 1}`, spec.SubscriptionUpdate), "unknown members are ignored")
}

func TestSubscriptionUpdateNamesImmutableMembers(t *testing.T) {
	t.Parallel()
	for _, member := range []string{
		"customer_id", "amount", "token", "payment_method", "interval", "interval_count", "currency", "informations",
		"idempotency_key", "products", "trial_end", "billing_day_of_month", "comment", "status", "id", "customerId",
		"trialEnd", "cancelAtPeriodEnd", "customerEmail", "failurePolicy", "retryOffsetsDays",
		"paymentMethod", "billingModel", "billingDayOfMonth", "intervalCount", "currentPeriodStart", "currentPeriodEnd",
		"canceledAt", "cancellationReason", "cardLast4", "recurringAuthorization", "authorization", "transactions",
		"createdAt", "updatedAt",
	} {
		found := check(t, `{"metadata": null, "`+member+`": null}`, spec.SubscriptionUpdate)
		if assert.Len(t, found, 1, member) {
			assert.Equal(t, member, found[0].Field)
			assert.Equal(t, spec.CodeInvalid, found[0].Code)
		}
	}
}

func TestSubscriptionCancel(t *testing.T) {
	t.Parallel()
	checkEdges(t, spec.SubscriptionCancel, `{"reason": "moved"}`, []edge{
		{"reason", missing, "7", spec.CodeInvalidType},
		{"reason", text(1000), "null", spec.CodeInvalidType},
	})
}

func TestSubscriptionList(t *testing.T) {
	t.Parallel()
	for _, e := range []struct{ name, allowed, rejected, code string }{
		{"limit", "1", "0", spec.CodeTooSmall},
		{"limit", "100", "101", spec.CodeTooBig},
		{"limit", "20", "many", spec.CodeInvalidType},
		{"direction", "prev", "back", spec.CodeInvalidEnum},
		{"status", "cancel_scheduled", "cancelled", spec.CodeInvalidEnum},
		{"status", "", "paid", spec.CodeInvalidEnum},
		{"created_after", "2027-01-01", "yesterday", spec.CodeInvalid},
		{"created_before", "2027-01-01T00:00:00Z", "2027-13-01", spec.CodeInvalid},
	} {
		assert.Empty(t, spec.CheckQuery(url.Values{e.name: {e.allowed}}, spec.SubscriptionList, spec.Variant{}), e.name)
		found := spec.CheckQuery(url.Values{e.name: {e.rejected}}, spec.SubscriptionList, spec.Variant{})
		if assert.Len(t, found, 1, "%s=%s", e.name, e.rejected) {
			assert.Equal(t, e.name, found[0].Field)
			assert.Equal(t, e.code, found[0].Code)
		}
	}
	for status := range spec.SubscriptionStatuses.All() {
		query := url.Values{"status": {status}, "customer_email": {"ana@example.com"}, "cursor": {"abc"}}
		assert.Empty(t, spec.CheckQuery(query, spec.SubscriptionList, spec.Variant{}), status)
	}
}

func TestSubscriptionRejectsCardData(t *testing.T) {
	t.Parallel()
	for _, member := range []string{
		`"card_number": "x"`, `"metadata": {"n": "4111-1111-1111-1111"}`, `"informations": [{"key": "card", "value": "4111111111111111"}]`,
	} {
		body := strings.Replace(pixSubscription, "{", "{"+member+",", 1)
		assert.Len(t, check(t, body, spec.Subscription), 1, member)
	}
}

// Integers in an array may be written as 1.0 or 1e0 too.
func TestRetryOffsetsInAnyNotationAreDecoded(t *testing.T) {
	t.Parallel()
	d, err := spec.Parse([]byte(`{"retry_offsets_days":[1.0,3e0,5]}`))
	require.NoError(t, err)
	defer d.Release()
	require.Empty(t, d.Check(spec.SubscriptionUpdate, spec.Variant{}))
	var in struct {
		Days []int `json:"retry_offsets_days"`
	}
	require.NoError(t, d.Decode(&in))
	require.Equal(t, []int{1, 3, 5}, in.Days)
}
