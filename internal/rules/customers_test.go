package rules_test

import (
	"slices"
	"testing"

	"github.com/gateway-go/gateway/internal/rules"
)

const customerBase = `{
	"name": "Maria Silva",
	"email": "maria@example.com",
	"phone": "11987654321",
	"document": {"type": "CPF", "number": "52998224725"},
	"externalRef": "customer-1",
	"address": {"street": "Rua das Flores", "number": "10", "complement": null, "neighborhood": "Centro",
		"city": "São Paulo", "state": "SP", "zipCode": "01001000", "country": "BR"},
	"ip_address": "203.0.113.7"
}`

func TestCustomer(t *testing.T) {
	t.Parallel()
	checkValues(t, rules.Customer, rules.Variant{}, customerBase, slices.Concat([]values{
		{field: "name", allowed: []string{`"M"`}, refused: notA("string", gone(), null(),
			refusal{`""`, rules.CodeTooSmall})},
		{field: "email", allowed: []string{`"a@b"`, `"josé@example.com"`}, refused: notA("string", gone(), null(),
			refusal{`""`, rules.CodeInvalid}, refusal{`"maria"`, rules.CodeInvalid},
			refusal{`"Maria <maria@example.com>"`, rules.CodeInvalid})},
		{field: "phone", allowed: []string{missing, `null`, `""`, `"+54 11 5555-0000"`}, refused: notA("string")},
		{field: "document", allowed: []string{missing, `null`}, refused: notA("object")},
		{field: "document.number", allowed: []string{`"1"`}, refused: notA("string", gone(), null(),
			refusal{`""`, rules.CodeTooSmall})},
		{field: "document.type", refused: []refusal{gone(), null()}},
		enum("document.type", rules.CustomerDocumentTypes),
		{field: "externalRef", allowed: []string{missing, `null`, `""`}, refused: notA("string")},
		{field: "external_ref", allowed: []string{`7`}}, // no member of this body
		{field: "ip_address", allowed: []string{missing, `null`, `"2001:db8::1"`}, refused: notA("string",
			refusal{`""`, rules.CodeInvalid}, refusal{`"203.0.113"`, rules.CodeInvalid}, refusal{`"fe80::1%eth0"`, rules.CodeInvalid})},
		{field: "address", allowed: []string{missing, `null`}, refused: notA("object")},
	}, addressValues("address")))
}

// addressValues are those of an address that stands at path.
func addressValues(path string) []values {
	return []values{
		{field: path + ".street", allowed: []string{text(1)}, refused: notA("string", gone(), null(),
			refusal{`""`, rules.CodeTooSmall})},
		{field: path + ".city", allowed: []string{text(1)}, refused: notA("string", gone(), null(),
			refusal{`""`, rules.CodeTooSmall})},
		{field: path + ".complement", allowed: []string{missing, `null`, `""`}, refused: notA("string")},
		{field: path + ".number", allowed: []string{missing, `""`}, refused: notA("string", null())},
		{field: path + ".neighborhood", allowed: []string{missing, `""`}, refused: notA("string", null())},
		{field: path + ".zipCode", allowed: []string{missing, `""`}, refused: notA("string", null())},
		{field: path + ".state", allowed: []string{missing, `"SP"`, `"s1p"`}, refused: []refusal{
			{`"S"`, rules.CodeTooSmall}, {`"SPAU"`, rules.CodeTooBig}, {`"S-"`, rules.CodeInvalid}, {`"Sã"`, rules.CodeInvalid}, null(),
		}},
		{field: path + ".country", allowed: []string{missing}, refused: []refusal{null()}},
		enum(path+".country", rules.Countries),
	}
}

func TestCustomerLivePhone(t *testing.T) {
	t.Parallel()
	checkValues(t, rules.Customer, rules.Variant{Live: true}, customerBase, []values{
		{field: "phone", allowed: []string{missing, `null`, `"11987654321"`}, refused: []refusal{
			{`"1198765432"`, rules.CodeInvalid},
			{`"119876543210"`, rules.CodeInvalid},
			{`"+1198765432"`, rules.CodeInvalid},
			{`""`, rules.CodeInvalid},
		}},
	})
}

func TestCustomerList(t *testing.T) {
	t.Parallel()
	members := []values{
		{field: "page", allowed: []string{"", "1", "1000000"}, refused: []refusal{
			{"0", rules.CodeTooSmall},
			{"-1", rules.CodeTooSmall},
			{"1000001", rules.CodeTooBig},
			{"one", rules.CodeInvalidType},
			{"1.5", rules.CodeInvalidType},
			{"1.0", rules.CodeInvalidType},
			{"1e1", rules.CodeInvalidType},
			{"0x1p4", rules.CodeInvalidType},
		}},
		{field: "limit", allowed: []string{"1", "100"}, refused: []refusal{
			{"0", rules.CodeTooSmall}, {"101", rules.CodeTooBig}, {"many", rules.CodeInvalidType},
		}},
	}
	for _, filter := range []string{"search", "document_number", "email", "phone", "external_ref", "status", "ip_address"} {
		members = append(members, values{field: filter, allowed: []string{"", "no such value", "4111111111111112"}})
	}
	checkQueryValues(t, rules.CustomerList, members)
	checkQueryValues(t, rules.CustomerList, []values{
		{field: "external_ref", allowed: []string{"4111111111111111"}},
		{field: "search", refused: []refusal{{"4111111111111111", rules.CodeInvalid}}},
	})
}
