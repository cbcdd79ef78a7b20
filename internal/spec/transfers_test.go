package spec_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/gateway-go/gateway/internal/spec"
)

const transferBase = `{
	"pix_key_type": "EMAIL",
	"pix_key_value": "maria@example.com",
	"amount": 1500,
	"description": "Prize",
	"external_ref": "payout-1",
	"notify_url": "https://shop.example/webhooks",
	"origin": "backoffice"
}`

func TestTransfer(t *testing.T) {
	t.Parallel()
	checkValues(t, spec.Transfer, spec.Variant{}, transferBase, []values{
		{field: "pix_key_type", allowed: []string{`"EMAIL"`}, rejected: notA("string", absent(), null(),
			rejection{`""`, spec.CodeInvalidEnum}, rejection{`"email"`, spec.CodeInvalidEnum})},
		{field: "pix_key_value", allowed: []string{`"a@b"`}, rejected: []rejection{
			absent(), null(), {`7`, spec.CodeInvalidType}, {`""`, spec.CodeTooSmall},
		}},
		{field: "amount", allowed: []string{`1`, `1e2`, `100000001`, `9007199254740991`}, rejected: notA("integer", absent(), null(),
			rejection{`0`, spec.CodeTooSmall}, rejection{`-1`, spec.CodeTooSmall},
			rejection{`9007199254740992`, spec.CodeTooBig}, rejection{`9223372036854775807`, spec.CodeTooBig},
			rejection{`9223372036854775808`, spec.CodeInvalidType}, rejection{`"1500"`, spec.CodeInvalidType})},
		{field: "description", allowed: []string{missing, `""`, text(140)}, rejected: notA("string", null(),
			rejection{text(141), spec.CodeTooBig})},
		{field: "external_ref", allowed: []string{missing, `""`, text(100)}, rejected: notA("string", null(),
			rejection{text(101), spec.CodeTooBig})},
		{field: "origin", allowed: []string{missing, `""`, text(50)}, rejected: notA("string", null(),
			rejection{text(51), spec.CodeTooBig})},
		{field: "notify_url", allowed: []string{missing, `null`, httpsURL(2048)}, rejected: []rejection{
			{`7`, spec.CodeInvalidType},
			{httpsURL(2049), spec.CodeTooBig},
			{`"http://shop.example/"`, spec.CodeInvalid},
			{`"http://localhost/"`, spec.CodeInvalid},
			{`""`, spec.CodeInvalid},
		}},
	})
}

func TestTransferKeyLength(t *testing.T) {
	t.Parallel()
	local := func(n int) string { return `"` + strings.Repeat("a", n-len("@example.com")) + `@example.com"` }
	checkValues(t, spec.Transfer, spec.Variant{}, transferBase, []values{
		{field: "pix_key_value", allowed: []string{local(77)}, rejected: []rejection{{local(78), spec.CodeTooBig}}},
	})
}

func TestTransferLiveMinimum(t *testing.T) {
	t.Parallel()
	checkValues(t, spec.Transfer, spec.Variant{Dialect: spec.LiveDialect}, transferBase, []values{
		{field: "amount", allowed: []string{`1000`}, rejected: []rejection{{`999`, spec.CodeTooSmall}}},
	})
}

func TestTransferLoopbackNotifyURL(t *testing.T) {
	t.Parallel()
	checkValues(t, spec.Transfer, spec.Variant{LoopbackHTTP: true}, transferBase, []values{
		{field: "notify_url", allowed: []string{`"http://127.0.0.1:8080/hook"`, `"http://[::1]/"`, `"http://localhost/"`}, rejected: []rejection{
			{`"http://shop.example/"`, spec.CodeInvalid},
			{`"http://localhost.shop.example/"`, spec.CodeInvalid},
		}},
	})
}

func TestPixKeys(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		keyType string
		normal  string
		same    []string // other notations of the same key
		wrong   []string
	}{
		{
			"CPF", "52998224725",
			[]string{"52998224725", "529.982.247-25"},
			[]string{
				"52998224724", "52998224735", // one check digit off
				"529.982.247-250", "5299822472", "529982247250", "111.111.111-11", "00000000000",
				"529982247-25", "529 982 247 25", "5299822472a", "５2998224725",
			},
		},
		{"CPF", "12345604700", []string{"123.456.047-00"}, []string{"12345604710", "12345604701"}}, // a check digit of 10 is 0
		{"CPF", "02020222000", []string{"020.202.220-00"}, nil},                                    // both check digits are 10
		{"CPF", "00000000191", []string{"000.000.001-91"}, []string{"191"}},
		{
			"CNPJ", "11222333000181",
			[]string{"11222333000181", "11.222.333/0001-81"},
			[]string{"11222333000180", "11222333000191", "1122233300018", "00000000000000", "11.222.333.0001-81"},
		},
		{
			"CNPJ", "12ABC34501DE35", // the tax office's example of a number with letters
			[]string{"12ABC34501DE35", "12.ABC.345/01DE-35"},
			[]string{"12ABC34501DE36", "12abc34501de35", "12ABC34501DEA5", "12ABÇ34501DE3"},
		},
		{"CNPJ", "12111111222211", []string{"12.111.111/2222-11"}, []string{"?2ABC34501DE04", "12ABC34501DE3?"}},
		{
			"EMAIL", "maria@example.com",
			[]string{"maria@example.com", "Maria@Example.com"},
			[]string{"maria", "@example.com", "maria@", "<maria@example.com>", " maria@example.com", "maria\x7f@example.com"},
		},
		{
			"PHONE", "+5511987654321",
			[]string{"+5511987654321", "5511987654321", "11987654321"},
			[]string{
				"987654321", "01987654321", "10987654321", "11887654321", "+551198765432100", "+55 11 98765-4321",
				"(11) 98765-4321", "+", "", "+5598765432", "119876543210",
			},
		},
		{"PHONE", "+551133334444", []string{"1133334444", "551133334444", "+551133334444"}, []string{"1103334444"}},
		{"PHONE", "+5555987654321", []string{"55987654321", "5555987654321"}, nil}, // a mobile number in area code 55
		{"PHONE", "+12345678", []string{"+12345678"}, []string{"+1234567"}},
		{"PHONE", "+123456789012345", []string{"+123456789012345"}, nil},
		{"PHONE", "+555533334444", []string{"5533334444", "+555533334444"}, nil}, // area code 55
		{
			"PHONE", "+12025550123",
			[]string{"+12025550123"},
			[]string{"+02025550123", "+1202555", "+1234567890123456", "12025550123"},
		},
		{
			"EVP", "0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b",
			[]string{"0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b", "0190A1B2-C3D4-7E5F-8A6B-7C8D9E0F1A2B"},
			[]string{
				"0190a1b2c3d47e5f8a6b7c8d9e0f1a2b", "{0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b}",
				"urn:uuid:0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b", "0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2g",
			},
		},
	} {
		base := edit(t, transferBase, "pix_key_type", `"`+c.keyType+`"`)
		base = edit(t, base, "pix_key_value", `"`+c.normal+`"`)
		m := values{field: "pix_key_value"}
		for _, s := range c.same {
			normal, ok := spec.NormalPixKey(c.keyType, s)
			assert.True(t, ok, "%s %s", c.keyType, s)
			assert.Equal(t, c.normal, normal, "%s %s", c.keyType, s)
			m.allowed = append(m.allowed, `"`+s+`"`)
		}
		for _, s := range c.wrong {
			_, ok := spec.NormalPixKey(c.keyType, s)
			assert.False(t, ok, "%s %s", c.keyType, s)
			if s != "" {
				m.rejected = append(m.rejected, rejection{`"` + s + `"`, spec.CodeInvalid})
			}
		}
		checkValues(t, spec.Transfer, spec.Variant{}, base, []values{m})
	}
	_, ok := spec.NormalPixKey("RANDOM", "maria@example.com")
	assert.False(t, ok)
}

// FuzzNormalPixKey checks that a normal form is a valid key and its own normal
// form.
func FuzzNormalPixKey(f *testing.F) {
	for keyType := range spec.PixKeyTypes.All() {
		for _, s := range []string{"", "+", "529.982.247-25", "11.222.333/0001-81", "Maria@example.com", "5511987654321"} {
			f.Add(keyType, s)
		}
	}
	f.Fuzz(func(t *testing.T, keyType, s string) {
		normal, ok := spec.NormalPixKey(keyType, s)
		if !ok {
			return
		}
		again, ok := spec.NormalPixKey(keyType, normal)
		assert.True(t, ok)
		assert.Equal(t, normal, again)
	})
}

func TestTransferCancel(t *testing.T) {
	t.Parallel()
	checkValues(t, spec.TransferCancel, spec.Variant{}, `{}`, []values{
		{field: "reason", allowed: []string{missing, `""`, text(250)}, rejected: notA("string", null(),
			rejection{text(251), spec.CodeTooBig})},
	})
}

func TestTransferList(t *testing.T) {
	t.Parallel()
	status := values{field: "status", allowed: []string{""}, rejected: []rejection{
		{"canceled", spec.CodeInvalidEnum}, {"paid,error", spec.CodeInvalidEnum}, {",", spec.CodeInvalidEnum},
	}}
	for v := range spec.LiveTransferStatuses.All() {
		status.allowed = append(status.allowed, v)
	}
	checkQueryValues(t, spec.TransferList, []values{
		status,
		{field: "cursor", allowed: []string{"", "opaque"}},
		{field: "limit", allowed: []string{"", "1", "100"}, rejected: []rejection{
			{"0", spec.CodeTooSmall}, {"101", spec.CodeTooBig}, {"x", spec.CodeInvalidType},
		}},
		{field: "direction", allowed: []string{"next", "prev"}, rejected: []rejection{{"back", spec.CodeInvalidEnum}}},
	})
}
