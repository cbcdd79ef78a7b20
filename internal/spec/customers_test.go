package spec_test

import (
	"slices"
	"testing"

	"github.com/gateway-go/gateway/internal/spec"
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
	checkValues(t, spec.Customer, spec.Variant{}, customerBase, slices.Concat([]values{
		{field: "name", allowed: []string{`"M"`}, rejected: notA("string", absent(), null(),
			rejection{`""`, spec.CodeTooSmall})},
		{field: "email", allowed: []string{`"a@b"`, `"josé@example.com"`}, rejected: notA("string", absent(), null(),
			rejection{`""`, spec.CodeInvalid}, rejection{`"maria"`, spec.CodeInvalid},
			rejection{`"Maria <maria@example.com>"`, spec.CodeInvalid})},
		{field: "phone", allowed: []string{missing, `null`, `""`, `"+54 11 5555-0000"`}, rejected: notA("string")},
		{field: "document", allowed: []string{missing, `null`}, rejected: notA("object")},
		{field: "document.number", allowed: []string{`"1"`}, rejected: notA("string", absent(), null(),
			rejection{`""`, spec.CodeTooSmall})},
		{field: "document.type", rejected: []rejection{absent(), null()}},
		enum("document.type", spec.CustomerDocumentTypes),
		{field: "externalRef", allowed: []string{missing, `null`, `""`}, rejected: notA("string")},
		{field: "external_ref", allowed: []string{`7`}}, // not a member of this body
		{field: "ip_address", allowed: []string{missing, `null`, `"2001:db8::1"`}, rejected: notA("string",
			rejection{`""`, spec.CodeInvalid}, rejection{`"203.0.113"`, spec.CodeInvalid}, rejection{`"fe80::1%eth0"`, spec.CodeInvalid})},
		{field: "address", allowed: []string{missing, `null`}, rejected: notA("object")},
	}, addressValues("address")))
}

// addressValues are the values of the address at path.
func addressValues(path string) []values {
	return []values{
		{field: path + ".street", allowed: []string{text(1)}, rejected: notA("string", absent(), null(),
			rejection{`""`, spec.CodeTooSmall})},
		{field: path + ".city", allowed: []string{text(1)}, rejected: notA("string", absent(), null(),
			rejection{`""`, spec.CodeTooSmall})},
		{field: path + ".complement", allowed: []string{missing, `null`, `""`}, rejected: notA("string")},
		{field: path + ".number", allowed: []string{missing, `""`}, rejected: notA("string", null())},
		{field: path + ".neighborhood", allowed: []string{missing, `""`}, rejected: notA("string", null())},
		{field: path + ".zipCode", allowed: []string{missing, `""`}, rejected: notA("string", null())},
		{field: path + ".state", allowed: []string{missing, `"SP"`, `"s1p"`}, rejected: []rejection{
			{`"S"`, spec.CodeTooSmall}, {`"SPAU"`, spec.CodeTooBig}, {`"S-"`, spec.CodeInvalid}, {`"S_"`, spec.CodeInvalid}, {`"Sã"`, spec.CodeInvalid}, null(),
		}},
		{field: path + ".country", allowed: []string{missing}, rejected: []rejection{null()}},
		enum(path+".country", spec.Countries),
	}
}

func TestCustomerLivePhone(t *testing.T) {
	t.Parallel()
	checkValues(t, spec.Customer, spec.Variant{Dialect: spec.LiveDialect}, customerBase, []values{
		{field: "phone", allowed: []string{missing, `null`, `"11987654321"`}, rejected: []rejection{
			{`"1198765432"`, spec.CodeInvalid},
			{`"119876543210"`, spec.CodeInvalid},
			{`"+1198765432"`, spec.CodeInvalid},
			{`"1198765432?"`, spec.CodeInvalid},
			{`""`, spec.CodeInvalid},
		}},
	})
}

func TestACustomersCountryIsTwoLettersInTheLiveDialect(t *testing.T) {
	t.Parallel()
	checkValues(t, spec.Customer, spec.Variant{Dialect: spec.LiveDialect}, customerBase, []values{
		{field: "address.country", allowed: []string{missing, `"US"`, `"br"`}, rejected: []rejection{
			{`"U"`, spec.CodeInvalid}, {`"USA"`, spec.CodeInvalid}, {`"U1"`, spec.CodeInvalid}, {`"12"`, spec.CodeInvalid}, {`"U-"`, spec.CodeInvalid},
		}},
	})
}

func TestCustomerList(t *testing.T) {
	t.Parallel()
	members := []values{
		{field: "page", allowed: []string{"", "1", "1000000"}, rejected: []rejection{
			{"0", spec.CodeTooSmall},
			{"-1", spec.CodeTooSmall},
			{"1000001", spec.CodeTooBig},
			{"one", spec.CodeInvalidType},
			{"1.5", spec.CodeInvalidType},
			{"1.0", spec.CodeInvalidType},
			{"1e1", spec.CodeInvalidType},
			{"0x1p4", spec.CodeInvalidType},
		}},
		{field: "limit", allowed: []string{"1", "100"}, rejected: []rejection{
			{"0", spec.CodeTooSmall}, {"101", spec.CodeTooBig}, {"many", spec.CodeInvalidType},
		}},
	}
	for _, filter := range []string{"search", "document_number", "email", "phone", "external_ref", "status", "ip_address"} {
		members = append(members, values{field: filter, allowed: []string{"", "no such value", "4111111111111112"}})
	}
	checkQueryValues(t, spec.CustomerList, members)
	checkQueryValues(t, spec.CustomerList, []values{
		{field: "external_ref", allowed: []string{"4111111111111111"}},
		{field: "search", rejected: []rejection{{"4111111111111111", spec.CodeInvalid}}},
	})
}
