package spec_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/spec"
)

func TestLegacyIntegration(t *testing.T) {
	t.Parallel()
	rejectedURLs := []rejection{
		null(),
		{`7`, spec.CodeInvalidType},
		{`""`, spec.CodeInvalid},
		{`"/webhooks"`, spec.CodeInvalid},
		{`"ftp://shop.example/"`, spec.CodeInvalid},
	}
	both := `{"webhookUrl": "https://shop.example/all", "pixWebhookUrl": "https://shop.example/pix"}`
	checkValues(t, spec.LegacyIntegration, spec.Variant{}, both, []values{
		{field: "webhookUrl", allowed: []string{missing, `"http://shop.example/"`}, rejected: rejectedURLs[1:]},
		{field: "pixWebhookUrl", allowed: []string{missing, `"http://shop.example/"`}, rejected: rejectedURLs},
	})
	alone := `{"pixWebhookUrl": "https://shop.example/pix"}`
	checkValues(t, spec.LegacyIntegration, spec.Variant{}, alone, []values{
		{field: "pixWebhookUrl", allowed: []string{missing}, rejected: append(rejectedURLs, rejection{`"http://shop.example/"`, spec.CodeInvalid})},
	})
}

const legacyPaymentBase = `{
	"type": "PIX",
	"payer": {
		"fullName": "Maria Silva",
		"document": "52998224725",
		"contact": {"mail": "maria@example.com", "phone": "11987654321"},
		"address": {"zipCode": "01001000", "street": "Rua das Flores", "number": "10", "city": "São Paulo", "state": "SP",
			"country": "BR", "neighboor": "Centro", "neighborhood": "Centro"}
	},
	"transaction": {"value": 1500, "description": "Order 1", "expirationTime": 86400, "dueDate": "2027-01-05", "externalId": "order-1"},
	"splits": [
		{"pixKey": "52998224725", "pixKeyType": "DOCUMENT", "document": "52998224725", "percent": 12.5, "amount": 100, "externalId": "s-1"}
	]
}`

func TestLegacyPayment(t *testing.T) {
	t.Parallel()
	members := []values{
		enum("type", spec.LegacyPaymentTypes),
		{field: "type", rejected: []rejection{absent(), null()}},
		{field: "payer", allowed: []string{`{}`}, rejected: notA("object", absent(), null())},
		{field: "payer.contact", allowed: []string{missing, `{}`}, rejected: notA("object", null())},
		{field: "payer.address", allowed: []string{missing, `{}`}, rejected: notA("object", null())},
		{field: "transaction", rejected: notA("object", absent(), null())},
		{field: "transaction.value", allowed: []string{`1`, `9007199254740991`}, rejected: notA("integer", absent(), null(),
			rejection{`0`, spec.CodeTooSmall}, rejection{`9007199254740992`, spec.CodeTooBig})},
		{field: "transaction.expirationTime", allowed: []string{missing, `1`, `2147483647`}, rejected: notA("integer", null(),
			rejection{`0`, spec.CodeTooSmall}, rejection{`2147483648`, spec.CodeTooBig})},
		{field: "splits", allowed: []string{missing, `[]`, list(1000, `{}`)}, rejected: notA("array", null())},
		{field: "splits", reported: "splits[0]", rejected: []rejection{{`["x"]`, spec.CodeInvalidType}, {`[null]`, spec.CodeInvalidType}}},
		enum("splits[0].pixKeyType", spec.LegacySplitKeyTypes),
		{field: "splits[0].percent", allowed: []string{missing, `0`, `0.01`, `100`}, rejected: []rejection{
			null(), {`"10"`, spec.CodeInvalidType}, {`-0.01`, spec.CodeTooSmall}, {`100.01`, spec.CodeTooBig}, {`1e999`, spec.CodeTooBig},
		}},
		{field: "splits[0].amount", allowed: []string{missing, `0`, `9007199254740991`}, rejected: notA("integer", null(),
			rejection{`-1`, spec.CodeTooSmall}, rejection{`9007199254740992`, spec.CodeTooBig})},
	}
	for _, path := range slices.Concat(
		[]string{"payer.fullName", "payer.document", "payer.contact.mail", "payer.contact.phone"},
		[]string{"payer.address.zipCode", "payer.address.street", "payer.address.number", "payer.address.city", "payer.address.state"},
		[]string{"payer.address.country", "payer.address.neighboor", "payer.address.neighborhood"},
		[]string{"transaction.description", "transaction.dueDate", "transaction.externalId"},
		[]string{"splits[0].pixKey", "splits[0].document", "splits[0].externalId"},
	) {
		members = append(members, values{field: path, allowed: []string{missing, `""`, text(500)}, rejected: notA("string", null())})
	}
	checkValues(t, spec.LegacyPayment, spec.Variant{}, legacyPaymentBase, members)
}

func TestLegacyTokenAcceptsEverythingButCardData(t *testing.T) {
	t.Parallel()
	for body, field := range map[string]string{
		`{}`: "",
		`{"token": "pgct_1", "anything": [1, null, {"deep": "x"}]}`: "",
		`{"card": {"holder": "MARIA SILVA"}}`:                       "card",
		`{"holder": {"cvv": "123"}}`:                                "holder.cvv",
		`{"a": [{"b": "4111 1111 1111 1111"}]}`:                     "a[0].b",
	} {
		found, err := spec.Check([]byte(body), spec.LegacyToken, spec.Variant{})
		require.NoError(t, err)
		if field == "" {
			assert.Empty(t, found, body)
			continue
		}
		require.Len(t, found, 1, body)
		assert.Equal(t, field, found[0].Field)
		assert.NotContains(t, found[0].Message, "4111")
	}
	_, err := spec.Check([]byte(`[]`), spec.LegacyToken, spec.Variant{})
	assert.Error(t, err, "a body that is not an object")
}
