package spec_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/spec"
)

const transactionBase = `{
	"external_ref": "order-1",
	"amount": 15990,
	"currency": "BRL",
	"method": "pix",
	"installments": 1,
	"interest_rate": 1.99,
	"buyer": {
		"name": "Maria Silva", "email": "maria@example.com", "phone": "11987654321", "birth_date": "1990-05-17",
		"document": {"type": "CPF", "number": "52998224725"},
		"address": {"street": "Rua das Flores", "city": "São Paulo", "state": "SP", "zipCode": "01001000"}
	},
	"products": [{"name": "Camiseta", "price": 4995, "quantity": 2, "tangible": true, "sku": "TS-1"}],
	"notify_url": "https://shop.example/webhooks",
	"metadata": "campaign=summer",
	"traceable": true,
	"ip_address": "203.0.113.7"
}`

func TestTransaction(t *testing.T) {
	t.Parallel()
	checkValues(t, spec.Transaction, spec.Variant{}, transactionBase, append([]values{
		{field: "external_ref", allowed: []string{missing, `null`, `""`, text(4000)}, rejected: notA("string")},
		{field: "amount", allowed: []string{`1`, `99`, `100`, `100000000`, `1e8`, `5.0`}, rejected: notA("integer", absent(), null(),
			rejection{`0`, spec.CodeTooSmall}, rejection{`-1`, spec.CodeTooSmall}, rejection{`100000001`, spec.CodeTooBig},
			rejection{`0.5`, spec.CodeInvalidType}, rejection{`1e99`, spec.CodeInvalidType})},
		{field: "currency", allowed: []string{missing}, rejected: notA("string", null(), rejection{`"EUR"`, spec.CodeInvalidEnum})},
		enum("currency", spec.Currencies),
		{field: "method", allowed: []string{`"pix"`, `"voucher"`}, rejected: []rejection{
			absent(), null(),
			{`7`, spec.CodeInvalidType},
			{`"PIX"`, spec.CodeInvalidEnum},
			{`"boleto"`, spec.CodeInvalidEnum},
			{`""`, spec.CodeInvalidEnum},
		}},
		{field: "installments", allowed: []string{missing, `null`, `1`, `12`}, rejected: notA("integer",
			rejection{`0`, spec.CodeTooSmall}, rejection{`13`, spec.CodeTooBig})},
		{field: "interest_rate", allowed: []string{missing, `null`, `0`, `0.01`, `99.99`, `100`}, rejected: []rejection{
			{`-0.01`, spec.CodeTooSmall}, {`100.01`, spec.CodeTooBig}, {`"1"`, spec.CodeInvalidType}, {`true`, spec.CodeInvalidType},
		}},
		{field: "notify_url", allowed: []string{missing, `null`, httpsURL(2048)}, rejected: notA("string",
			rejection{httpsURL(2049), spec.CodeTooBig}, rejection{`""`, spec.CodeInvalid}, rejection{`"shop.example"`, spec.CodeInvalid},
			rejection{`"http://shop.example/"`, spec.CodeInvalid}, rejection{`"http://localhost/"`, spec.CodeInvalid},
			rejection{`"https://user:secret@shop.example/"`, spec.CodeInvalid}, rejection{`"https:///hook"`, spec.CodeInvalid},
			rejection{`"https://:443/hook"`, spec.CodeInvalid}, rejection{`"https://shop.example/a hook"`, spec.CodeInvalid})},
		{field: "metadata", allowed: []string{missing, `null`, `""`, text(4000)}, rejected: notA("string")},
		{field: "traceable", allowed: []string{missing, `true`, `false`}, rejected: notA("boolean", null())},
		{field: "ip_address", allowed: []string{missing, `null`, `"203.0.113.7"`, `"2001:db8::1"`, `"::ffff:1.2.3.4"`}, rejected: notA("string",
			rejection{`""`, spec.CodeInvalid}, rejection{`"203.0.113.256"`, spec.CodeInvalid}, rejection{`"fe80::1%eth0"`, spec.CodeInvalid},
			rejection{`"203.0.113.7:80"`, spec.CodeInvalid})},
		{field: "products", rejected: notA("array", absent(), null(), rejection{`[]`, spec.CodeTooSmall})},
		{field: "products", allowed: []string{list(1, product), list(100, product)}, rejected: []rejection{{list(101, product), spec.CodeTooBig}}},
		{field: "buyer", rejected: notA("object", absent(), null())[:4]},
	}, productValues("products[0]")...))
}

const product = `{"name":"x","price":0}`

// productValues are the values of the product at path.
func productValues(path string) []values {
	return []values{
		{field: path + ".name", allowed: []string{text(1), text(255)}, rejected: notA("string", absent(), null(),
			rejection{`""`, spec.CodeTooSmall}, rejection{text(256), spec.CodeTooBig})},
		{field: path + ".price", allowed: []string{`0`, `100000000`}, rejected: notA("integer", absent(), null(),
			rejection{`-1`, spec.CodeTooSmall}, rejection{`100000001`, spec.CodeTooBig})},
		{field: path + ".quantity", allowed: []string{missing, `1`, `999999`}, rejected: notA("integer", null(),
			rejection{`0`, spec.CodeTooSmall}, rejection{`1000000`, spec.CodeTooBig})},
		{field: path + ".tangible", allowed: []string{missing, `true`, `false`}, rejected: notA("boolean", null())},
		{field: path + ".sku", allowed: []string{missing, `null`, `""`, text(255)}, rejected: notA("string",
			rejection{text(256), spec.CodeTooBig})},
	}
}

func TestProducts(t *testing.T) {
	t.Parallel()
	body := edit(t, transactionBase, "products", `[{"name":"a","price":1},7,null,{"name":"","price":-1}]`)
	found := check(t, body, spec.Transaction)
	require.Len(t, found, 4)
	assert.Equal(t, "products[1]", found[0].Field)
	assert.Equal(t, "products[2]", found[1].Field)
	assert.Equal(t, "products[3].name", found[2].Field)
	assert.Equal(t, "products[3].price", found[3].Field)
}

func TestBuyer(t *testing.T) {
	t.Parallel()
	checkValues(t, spec.Transaction, spec.Variant{}, transactionBase, append([]values{
		{field: "buyer.name", allowed: []string{text(1)}, rejected: notA("string", absent(), null(), rejection{`""`, spec.CodeTooSmall})},
		{field: "buyer.email", allowed: []string{`"a@b"`, `"a.b+c@x-y.example"`, `"mar\u00eda@example.com"`, `"o'neil@example.com"`}, rejected: notA("string", absent(), null(),
			rejection{`""`, spec.CodeInvalid}, rejection{`"maria"`, spec.CodeInvalid}, rejection{`"@example.com"`, spec.CodeInvalid},
			rejection{`"a@"`, spec.CodeInvalid}, rejection{`"a..b@example.com"`, spec.CodeInvalid},
			rejection{`"Maria <a@b>"`, spec.CodeInvalid}, rejection{`"a@b,c@d"`, spec.CodeInvalid})},
		{field: "buyer.phone", allowed: []string{missing, `null`, `""`}, rejected: notA("string")},
		{field: "buyer.birth_date", allowed: []string{missing, `null`, `""`}, rejected: notA("string")},
		{field: "buyer.document", allowed: []string{missing, `null`}, rejected: notA("object")},
		{field: "buyer.document.type", rejected: notA("string", absent(), null())},
		enum("buyer.document.type", spec.DocumentTypes),
		{field: "buyer.document.number", allowed: []string{`"1"`}, rejected: notA("string", absent(), null(), rejection{`""`, spec.CodeTooSmall})},
		{field: "buyer.address", allowed: []string{missing, `null`}, rejected: notA("object")},
	}, addressValues("buyer.address")...))
}

func TestBuyerID(t *testing.T) {
	t.Parallel()
	const base = `{"amount":1,"method":"pix","products":[{"name":"x","price":0}],"buyer":{"id":"01945f2c-1c00-7a10-b3f4-6d2e8c9a0b1f"}}`
	checkValues(t, spec.Transaction, spec.Variant{}, base, []values{
		{field: "buyer.id", allowed: []string{`4711`, `"4711"`}, rejected: []rejection{
			{`true`, spec.CodeInvalidType},
			{`{}`, spec.CodeInvalidType},
			{`[]`, spec.CodeInvalidType},
			{`""`, spec.CodeTooSmall},
			{`4711.0`, spec.CodeInvalidType},
			{`1e3`, spec.CodeInvalidType},
			{`4.5`, spec.CodeInvalidType},
		}},
		{field: "buyer.name", allowed: []string{missing, `null`, `"Maria"`}},
		{field: "buyer.email", allowed: []string{missing, `null`, `"a@b"`}, rejected: []rejection{{`"a"`, spec.CodeInvalid}}},
	})
	for _, noID := range []string{missing, `null`} {
		found := check(t, edit(t, base, "buyer.id", noID), spec.Transaction)
		require.Len(t, found, 2, "without an id both are required")
		assert.Equal(t, spec.Violation{Field: "buyer.name", Message: "is required", Code: spec.CodeRequired}, found[0])
		assert.Equal(t, spec.Violation{Field: "buyer.email", Message: "is required", Code: spec.CodeRequired}, found[1])
	}
}

// The live gateway requires the document of a buyer who pays by Pix.
func TestLivePixDocument(t *testing.T) {
	t.Parallel()
	const base = `{"amount":1,"method":"pix","products":[{"name":"x","price":0}],
		"buyer":{"name":"x","email":"a@b","document":{"type":"CPF","number":"1"}}}`
	documents := values{field: "buyer.document", rejected: []rejection{absent(), null()}}
	checkValues(t, spec.Transaction, spec.Variant{Dialect: spec.LiveDialect}, base, []values{documents})
	checkValues(t, spec.Transaction, spec.Variant{Dialect: spec.LiveDialect}, edit(t, base, "method", missing), []values{documents})
	documents = values{field: "buyer.document", allowed: []string{missing, `null`}}
	checkValues(t, spec.Transaction, spec.Variant{Dialect: spec.LiveDialect}, edit(t, base, "method", `"voucher"`), []values{documents})
	checkValues(t, spec.Transaction, spec.Variant{}, base, []values{documents})
}

func TestLiveBuyerID(t *testing.T) {
	t.Parallel()
	const base = `{"amount":1,"products":[{"name":"x","price":0}],"buyer":{"id":4711}}`
	checkValues(t, spec.Transaction, spec.Variant{Dialect: spec.LiveDialect}, base, []values{
		{field: "buyer.name", allowed: []string{missing, `null`}, rejected: []rejection{{`"Maria"`, spec.CodeInvalid}, {`""`, spec.CodeInvalid}, {`7`, spec.CodeInvalid}}},
		{field: "buyer.email", allowed: []string{missing, `null`}, rejected: []rejection{{`"a@b"`, spec.CodeInvalid}, {`"a"`, spec.CodeInvalid}}},
		{field: "method", allowed: []string{missing, `"voucher"`}, rejected: []rejection{null()}},
	})
}

func TestCard(t *testing.T) {
	t.Parallel()
	base := edit(t, edit(t, transactionBase, "method", `"credit_card"`), "token", `"pgct_ok"`)
	checkValues(t, spec.Transaction, spec.Variant{}, base, []values{
		{field: "token", allowed: []string{`"pgct_ok"`, `"pgpm_ok"`, `"pgct_"`}, rejected: notA("string", absent(), null(),
			rejection{`""`, spec.CodeInvalid}, rejection{`"tok_1"`, spec.CodeInvalid}, rejection{`"PGCT_ok"`, spec.CodeInvalid},
			rejection{`"4111111111111111"`, spec.CodeInvalid}, rejection{`"4111 1111 1111 1111"`, spec.CodeInvalid})[1:]},
	})
	found := check(t, edit(t, base, "token", `"4111111111111111"`), spec.Transaction)
	require.Len(t, found, 1)
	assert.Contains(t, found[0].Message, "client-side payment element")
	assert.NotContains(t, found[0].Message, "4111")

	pix := []values{{field: "token", allowed: []string{missing, `"pgct_ok"`}, rejected: []rejection{{`"tok_1"`, spec.CodeInvalid}, null()}}}
	checkValues(t, spec.Transaction, spec.Variant{}, transactionBase, pix)
}

func TestVoucher(t *testing.T) {
	t.Parallel()
	base := edit(t, transactionBase, "method", `"voucher"`)
	checkValues(t, spec.Transaction, spec.Variant{}, base, []values{
		{field: "buyer", rejected: notA("object", absent(), null())},
		{field: "buyer.address", rejected: []rejection{absent(), {`null`, spec.CodeRequired}}},
		{field: "buyer.address.zipCode", allowed: []string{`"01001000"`}, rejected: []rejection{
			absent(), {`""`, spec.CodeRequired}, {`"  "`, spec.CodeRequired},
		}},
		{field: "buyer.address.country", allowed: []string{missing}},
	})
	buyerFirst := `{"buyer":{"name":"x","email":"a@b"},"amount":1,"method":"voucher","products":[` + product + `]}`
	found := check(t, buyerFirst, spec.Transaction)
	require.Len(t, found, 1)
	assert.Equal(t, spec.Violation{Field: "buyer.address", Message: "is required for a voucher", Code: spec.CodeRequired}, found[0])
	checkValues(t, spec.Transaction, spec.Variant{Dialect: spec.LiveDialect}, base, []values{
		{field: "buyer.address", allowed: []string{missing, `null`}},
		{field: "buyer.address.zipCode", allowed: []string{missing}},
	})
}

func TestLenientTransaction(t *testing.T) {
	t.Parallel()
	checkValues(t, spec.Transaction, spec.Variant{Lenient: true}, transactionBase, []values{
		{field: "buyer", allowed: []string{missing}, rejected: []rejection{null()}},
		{field: "products", allowed: []string{missing}, rejected: []rejection{null(), {`[]`, spec.CodeTooSmall}}},
		{field: "amount", rejected: []rejection{absent()}},
	})
}

func TestTransactionLoopbackNotifyURL(t *testing.T) {
	t.Parallel()
	checkValues(t, spec.Transaction, spec.Variant{LoopbackHTTP: true}, transactionBase, []values{
		{field: "notify_url", allowed: []string{`"http://127.0.0.1:9000/x"`, `"http://localhost"`, `"http://[::1]:9000/"`}, rejected: []rejection{
			{`"http://192.168.0.1/"`, spec.CodeInvalid}, {`"http://127.0.0.1.example/"`, spec.CodeInvalid}, {`"ftp://localhost/"`, spec.CodeInvalid},
		}},
	})
}

func TestTransactionLocalNotifyURL(t *testing.T) {
	t.Parallel()
	checkValues(t, spec.Transaction, spec.Variant{LocalHTTP: true}, transactionBase, []values{
		{field: "notify_url", allowed: []string{
			`"http://shop:8080/hooks"`, `"http://host.docker.internal:9000/"`, `"http://192.168.0.1/"`, `"http://10.1.2.3:3000/"`, `"http://[fd12::1]/"`,
			`"http://shop.localhost/"`, `"http://localhost:3000/"`, `"http://shop.test/"`, `"https://shop.example/"`,
		}, rejected: []rejection{
			{`"http://shop.example/"`, spec.CodeInvalid},
			{`"http://8.8.8.8/"`, spec.CodeInvalid},
			{`"http://134744072/"`, spec.CodeInvalid},
			{`"http://169.254.169.254/"`, spec.CodeInvalid},
			{`"http://internal.evil.com/"`, spec.CodeInvalid},
			{`"http://[2001:db8::1]/"`, spec.CodeInvalid},
			{`"http://shop:0/"`, spec.CodeInvalid},
			{`"https://shop:65536/"`, spec.CodeInvalid},
			{`"ftp://shop/"`, spec.CodeInvalid},
		}},
	})
}

func TestRefund(t *testing.T) {
	t.Parallel()
	checkValues(t, spec.Refund, spec.Variant{}, `{"amount":5000,"reason":"returned"}`, []values{
		{field: "amount", allowed: []string{missing, `1`, `100000001`}, rejected: notA("integer", null(),
			rejection{`0`, spec.CodeTooSmall}, rejection{`-1`, spec.CodeTooSmall})},
		{field: "reason", allowed: []string{missing, `""`, text(500)}, rejected: notA("string", null(), rejection{text(501), spec.CodeTooBig})},
	})
}

func TestDelivery(t *testing.T) {
	t.Parallel()
	checkValues(t, spec.Delivery, spec.Variant{}, `{"tracking_code":"BR1"}`, []values{
		{field: "tracking_code", allowed: []string{text(1), text(255)}, rejected: notA("string", absent(), null(),
			rejection{`""`, spec.CodeTooSmall}, rejection{text(256), spec.CodeTooBig})},
		{field: "delivery_status", allowed: []string{missing}, rejected: []rejection{null()}},
		enum("delivery_status", spec.DeliveryStatuses),
		{field: "tracking_url", allowed: []string{missing, `null`, httpsURL(255), `"http://track.example/1"`}, rejected: notA("string",
			rejection{httpsURL(256), spec.CodeTooBig}, rejection{`"ftp://track.example/"`, spec.CodeInvalid}, rejection{`""`, spec.CodeInvalid})},
		{field: "tracking_company", allowed: []string{missing, `null`, text(1), text(64)}, rejected: notA("string",
			rejection{`""`, spec.CodeTooSmall}, rejection{text(65), spec.CodeTooBig})},
	})
}

func TestSandboxStatus(t *testing.T) {
	t.Parallel()
	status := []values{{field: "status", rejected: notA("string", absent(), null())}}
	checkValues(t, spec.SandboxStatus, spec.Variant{}, `{"status":"paid"}`, append(status, enum("status", spec.TransactionStatuses)))
	checkValues(t, spec.SandboxStatus, spec.Variant{Dialect: spec.LiveDialect}, `{"status":"paid"}`, append(status, enum("status", spec.LiveTransactionStatuses)))
	checkValues(t, spec.LiveSandboxStatus, spec.Variant{}, `{"status":"paid"}`, append(status, enum("status", spec.LiveTransactionStatuses)))
}

func TestTransactionList(t *testing.T) {
	t.Parallel()
	invalidEnum := []rejection{{"nothing", spec.CodeInvalidEnum}, {"pix,nothing", spec.CodeInvalidEnum}, {",", spec.CodeInvalidEnum}}
	checkQueryValues(t, spec.TransactionList, []values{
		{field: "limit", allowed: []string{"", "1", "100"}, rejected: []rejection{
			{"0", spec.CodeTooSmall}, {"101", spec.CodeTooBig}, {"ten", spec.CodeInvalidType}, {"1.5", spec.CodeInvalidType},
		}},
		{field: "direction", allowed: []string{"", "next", "prev"}, rejected: []rejection{{"up", spec.CodeInvalidEnum}}},
		{field: "paymentMethods", allowed: []string{"", "pix", "pix,voucher,credit_card"}, rejected: invalidEnum},
		{field: "currency", allowed: []string{"BRL", "BRL,USD"}, rejected: invalidEnum},
		{field: "status", allowed: []string{"paid", "paid,captured,med"}, rejected: invalidEnum},
		{field: "deliveryStatus", allowed: []string{"waiting,delivered"}, rejected: invalidEnum},
		{field: "installments", allowed: []string{"", "1", "1,12"}, rejected: []rejection{
			{"x", spec.CodeInvalidType},
			{"1,", spec.CodeInvalidType},
			{"1.5", spec.CodeInvalidType},
			{"0", spec.CodeTooSmall},
			{"1,13", spec.CodeTooBig},
		}},
		{field: "traceable", allowed: []string{"true", "false"}, rejected: []rejection{{"yes", spec.CodeInvalidType}, {"1", spec.CodeInvalidType}}},
		{field: "dateFrom", allowed: []string{"", "2027-01-04", "2027-01-04T12:00:00Z", "2027-01-04T12:00:00.5-03:00"}, rejected: []rejection{
			{"yesterday", spec.CodeInvalid}, {"2027-13-01", spec.CodeInvalid}, {"2027-01-04T12:00:00", spec.CodeInvalid},
		}},
		{field: "dateTo", allowed: []string{"2027-01-04"}, rejected: []rejection{{"04/01/2027", spec.CodeInvalid}}},
	})
	repeated := url.Values{"status": {"paid", "nothing"}}
	assert.Len(t, spec.CheckQuery(repeated, spec.TransactionList, spec.Variant{}), 1, "a repeated parameter is one list")
	assert.Len(t, spec.CheckQuery(url.Values{"name": {"4111111111111111"}}, spec.TransactionList, spec.Variant{}), 1, "no card number in a URL")
}

// Card data is found anywhere in a body, and nothing else is mistaken for it.
func TestCardData(t *testing.T) {
	t.Parallel()
	const card = `"4111111111111111"`
	for field, value := range map[string]string{
		"card_number": `"x"`, "cardNumber": `"x"`, "pan": `7`, "cvv": `"123"`, "cvc": `123`, "security_code": `"1"`, "card": `{}`,
		"buyer.card": `{"number":"1"}`, "buyer.name": card, "metadata": card, "description": card, "anything": `5555555555554444`,
		"products[0].name": `"4111-1111-1111-1111"`, "buyer.address.street": `"4111 1111 1111 1111"`, "deep": `{"er":[{"pan":"x"}]}`,
		"list": `[1,` + card + `]`, "escaped": `"\u0034111111111111111"`, "cvv2": `"123"`, "buyer.phone": card, "buyer.document.number": card,
		"note": `"paid with 4111111111111111"`,
	} {
		found := check(t, edit(t, transactionBase, field, value), spec.Transaction)
		if assert.Len(t, found, 1, "%s = %s", field, value) {
			assert.Equal(t, spec.CodeInvalid, found[0].Code)
			assert.True(t, strings.HasPrefix(found[0].Field, strings.SplitN(field, ".", 2)[0]), "%s: %s", field, found[0].Field)
			assert.NotContains(t, found[0].Message, "4111")
		}
	}
	for field, value := range map[string]string{
		"external_ref": card, "products[0].sku": card, "buyer.id": card,
		"cvv": `null`, "card": `"visa"`, "name": `"4111111111111112"`,
		"issuer": `"1111111111111117"`, "stamp": `1700000000000`, "short": `"411111111111"`, "long": `"41111111111111111111"`,
		"letters": `"4111x11111111111"`,
	} {
		assert.Empty(t, check(t, edit(t, transactionBase, field, value), spec.Transaction), "%s = %s", field, value)
	}
}

func TestCardDataUnderAnEscapedName(t *testing.T) {
	t.Parallel()
	for body, field := range map[string]string{
		`{"c\u0076v":"123"}`:         "cvv",
		`{"a":[{"\u0063ard":{}}]}`:   "a[0].card",
		`{"deep":{"p\u0061n":"x"}}`:  "deep.pan",
		`{"c\u0076v2":"123","a":{}}`: "cvv2",
		`{"c\u0076v9":"123","a":{}}`: "",
	} {
		found, err := spec.Check([]byte(body), func(*spec.Object) {}, spec.Variant{})
		require.NoError(t, err)
		if field == "" {
			assert.Empty(t, found)
			continue
		}
		assert.Equal(t, field, found[0].Field)
	}
}
