package rules_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/rules"
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
	checkValues(t, rules.Transaction, rules.Variant{}, transactionBase, append([]values{
		{field: "external_ref", allowed: []string{missing, `null`, `""`, text(4000)}, refused: notA("string")},
		{field: "amount", allowed: []string{`1`, `99`, `100`, `100000000`, `1e8`, `5.0`}, refused: notA("integer", gone(), null(),
			refusal{`0`, rules.CodeTooSmall}, refusal{`-1`, rules.CodeTooSmall}, refusal{`100000001`, rules.CodeTooBig},
			refusal{`0.5`, rules.CodeInvalidType}, refusal{`1e99`, rules.CodeInvalidType})},
		{field: "currency", allowed: []string{missing}, refused: notA("string", null(), refusal{`"EUR"`, rules.CodeInvalidEnum})},
		enum("currency", rules.Currencies),
		{field: "method", allowed: []string{`"pix"`, `"voucher"`}, refused: []refusal{
			gone(), null(),
			{`7`, rules.CodeInvalidType},
			{`"PIX"`, rules.CodeInvalidEnum},
			{`"boleto"`, rules.CodeInvalidEnum},
			{`""`, rules.CodeInvalidEnum},
		}},
		{field: "installments", allowed: []string{missing, `null`, `1`, `12`}, refused: notA("integer",
			refusal{`0`, rules.CodeTooSmall}, refusal{`13`, rules.CodeTooBig})},
		{field: "interest_rate", allowed: []string{missing, `null`, `0`, `0.01`, `99.99`, `100`}, refused: []refusal{
			{`-0.01`, rules.CodeTooSmall}, {`100.01`, rules.CodeTooBig}, {`"1"`, rules.CodeInvalidType}, {`true`, rules.CodeInvalidType},
		}},
		{field: "notify_url", allowed: []string{missing, `null`, httpsURL(2048)}, refused: notA("string",
			refusal{httpsURL(2049), rules.CodeTooBig}, refusal{`""`, rules.CodeInvalid}, refusal{`"shop.example"`, rules.CodeInvalid},
			refusal{`"http://shop.example/"`, rules.CodeInvalid}, refusal{`"http://localhost/"`, rules.CodeInvalid},
			refusal{`"https://user:secret@shop.example/"`, rules.CodeInvalid}, refusal{`"https:///hook"`, rules.CodeInvalid},
			refusal{`"https://:443/hook"`, rules.CodeInvalid}, refusal{`"https://shop.example/a hook"`, rules.CodeInvalid})},
		{field: "metadata", allowed: []string{missing, `null`, `""`, text(4000)}, refused: notA("string")},
		{field: "traceable", allowed: []string{missing, `true`, `false`}, refused: notA("boolean", null())},
		{field: "ip_address", allowed: []string{missing, `null`, `"203.0.113.7"`, `"2001:db8::1"`, `"::ffff:1.2.3.4"`}, refused: notA("string",
			refusal{`""`, rules.CodeInvalid}, refusal{`"203.0.113.256"`, rules.CodeInvalid}, refusal{`"fe80::1%eth0"`, rules.CodeInvalid},
			refusal{`"203.0.113.7:80"`, rules.CodeInvalid})},
		{field: "products", refused: notA("array", gone(), null(), refusal{`[]`, rules.CodeTooSmall})},
		{field: "products", allowed: []string{list(1, product), list(100, product)}, refused: []refusal{{list(101, product), rules.CodeTooBig}}},
		{field: "buyer", refused: notA("object", gone(), null())[:4]},
	}, productValues("products[0]")...))
}

const product = `{"name":"x","price":0}`

// productValues are those of a product that stands at path.
func productValues(path string) []values {
	return []values{
		{field: path + ".name", allowed: []string{text(1), text(255)}, refused: notA("string", gone(), null(),
			refusal{`""`, rules.CodeTooSmall}, refusal{text(256), rules.CodeTooBig})},
		{field: path + ".price", allowed: []string{`0`, `100000000`}, refused: notA("integer", gone(), null(),
			refusal{`-1`, rules.CodeTooSmall}, refusal{`100000001`, rules.CodeTooBig})},
		{field: path + ".quantity", allowed: []string{missing, `1`, `999999`}, refused: notA("integer", null(),
			refusal{`0`, rules.CodeTooSmall}, refusal{`1000000`, rules.CodeTooBig})},
		{field: path + ".tangible", allowed: []string{missing, `true`, `false`}, refused: notA("boolean", null())},
		{field: path + ".sku", allowed: []string{missing, `null`, `""`, text(255)}, refused: notA("string",
			refusal{text(256), rules.CodeTooBig})},
	}
}

func TestProducts(t *testing.T) {
	t.Parallel()
	body := edit(t, transactionBase, "products", `[{"name":"a","price":1},7,null,{"name":"","price":-1}]`)
	found := check(t, body, rules.Transaction)
	require.Len(t, found, 4)
	assert.Equal(t, "products[1]", found[0].Field)
	assert.Equal(t, "products[2]", found[1].Field)
	assert.Equal(t, "products[3].name", found[2].Field)
	assert.Equal(t, "products[3].price", found[3].Field)
}

func TestBuyer(t *testing.T) {
	t.Parallel()
	checkValues(t, rules.Transaction, rules.Variant{}, transactionBase, append([]values{
		{field: "buyer.name", allowed: []string{text(1)}, refused: notA("string", gone(), null(), refusal{`""`, rules.CodeTooSmall})},
		{field: "buyer.email", allowed: []string{`"a@b"`, `"a.b+c@x-y.example"`, `"mar\u00eda@example.com"`, `"o'neil@example.com"`}, refused: notA("string", gone(), null(),
			refusal{`""`, rules.CodeInvalid}, refusal{`"maria"`, rules.CodeInvalid}, refusal{`"@example.com"`, rules.CodeInvalid},
			refusal{`"a@"`, rules.CodeInvalid}, refusal{`"a..b@example.com"`, rules.CodeInvalid},
			refusal{`"Maria <a@b>"`, rules.CodeInvalid}, refusal{`"a@b,c@d"`, rules.CodeInvalid})},
		{field: "buyer.phone", allowed: []string{missing, `null`, `""`}, refused: notA("string")},
		{field: "buyer.birth_date", allowed: []string{missing, `null`, `""`}, refused: notA("string")},
		{field: "buyer.document", allowed: []string{missing, `null`}, refused: notA("object")},
		{field: "buyer.document.type", refused: notA("string", gone(), null())},
		enum("buyer.document.type", rules.DocumentTypes),
		{field: "buyer.document.number", allowed: []string{`"1"`}, refused: notA("string", gone(), null(), refusal{`""`, rules.CodeTooSmall})},
		{field: "buyer.address", allowed: []string{missing, `null`}, refused: notA("object")},
	}, addressValues("buyer.address")...))
}

func TestBuyerID(t *testing.T) {
	t.Parallel()
	const base = `{"amount":1,"method":"pix","products":[{"name":"x","price":0}],"buyer":{"id":"01945f2c-1c00-7a10-b3f4-6d2e8c9a0b1f"}}`
	checkValues(t, rules.Transaction, rules.Variant{}, base, []values{
		{field: "buyer.id", allowed: []string{`4711`, `"4711"`}, refused: []refusal{
			{`true`, rules.CodeInvalidType},
			{`{}`, rules.CodeInvalidType},
			{`[]`, rules.CodeInvalidType},
			{`""`, rules.CodeTooSmall},
			{`4711.0`, rules.CodeInvalidType},
			{`1e3`, rules.CodeInvalidType},
			{`4.5`, rules.CodeInvalidType},
		}},
		{field: "buyer.name", allowed: []string{missing, `null`, `"Maria"`}},
		{field: "buyer.email", allowed: []string{missing, `null`, `"a@b"`}, refused: []refusal{{`"a"`, rules.CodeInvalid}}},
	})
	for _, gone := range []string{missing, `null`} {
		found := check(t, edit(t, base, "buyer.id", gone), rules.Transaction)
		require.Len(t, found, 2, "without an id both are needed")
		assert.Equal(t, rules.Violation{Field: "buyer.name", Message: "is required", Code: rules.CodeRequired}, found[0])
		assert.Equal(t, rules.Violation{Field: "buyer.email", Message: "is required", Code: rules.CodeRequired}, found[1])
	}
}

// The live gateway wants to know who sends a Pix.
func TestLivePixDocument(t *testing.T) {
	t.Parallel()
	const base = `{"amount":1,"method":"pix","products":[{"name":"x","price":0}],
		"buyer":{"name":"x","email":"a@b","document":{"type":"CPF","number":"1"}}}`
	documents := values{field: "buyer.document", refused: []refusal{gone(), null()}}
	checkValues(t, rules.Transaction, rules.Variant{Live: true}, base, []values{documents})
	checkValues(t, rules.Transaction, rules.Variant{Live: true}, edit(t, base, "method", missing), []values{documents})
	documents = values{field: "buyer.document", allowed: []string{missing, `null`}}
	checkValues(t, rules.Transaction, rules.Variant{Live: true}, edit(t, base, "method", `"voucher"`), []values{documents})
	checkValues(t, rules.Transaction, rules.Variant{}, base, []values{documents})
}

func TestLiveBuyerID(t *testing.T) {
	t.Parallel()
	const base = `{"amount":1,"products":[{"name":"x","price":0}],"buyer":{"id":4711}}`
	checkValues(t, rules.Transaction, rules.Variant{Live: true}, base, []values{
		{field: "buyer.name", allowed: []string{missing, `null`}, refused: []refusal{{`"Maria"`, rules.CodeInvalid}, {`""`, rules.CodeInvalid}, {`7`, rules.CodeInvalid}}},
		{field: "buyer.email", allowed: []string{missing, `null`}, refused: []refusal{{`"a@b"`, rules.CodeInvalid}, {`"a"`, rules.CodeInvalid}}},
		{field: "method", allowed: []string{missing, `"voucher"`}, refused: []refusal{null()}},
	})
}

func TestCard(t *testing.T) {
	t.Parallel()
	base := edit(t, edit(t, transactionBase, "method", `"credit_card"`), "token", `"pgct_ok"`)
	checkValues(t, rules.Transaction, rules.Variant{}, base, []values{
		{field: "token", allowed: []string{`"pgct_ok"`, `"pgpm_ok"`, `"pgct_"`}, refused: notA("string", gone(), null(),
			refusal{`""`, rules.CodeInvalid}, refusal{`"tok_1"`, rules.CodeInvalid}, refusal{`"PGCT_ok"`, rules.CodeInvalid},
			refusal{`"4111111111111111"`, rules.CodeInvalid}, refusal{`"4111 1111 1111 1111"`, rules.CodeInvalid})[1:]},
	})
	found := check(t, edit(t, base, "token", `"4111111111111111"`), rules.Transaction)
	require.Len(t, found, 1)
	assert.Contains(t, found[0].Message, "client-side payment element")
	assert.NotContains(t, found[0].Message, "4111")

	pix := []values{{field: "token", allowed: []string{missing, `"pgct_ok"`}, refused: []refusal{{`"tok_1"`, rules.CodeInvalid}, null()}}}
	checkValues(t, rules.Transaction, rules.Variant{}, transactionBase, pix)
}

func TestVoucher(t *testing.T) {
	t.Parallel()
	base := edit(t, transactionBase, "method", `"voucher"`)
	checkValues(t, rules.Transaction, rules.Variant{}, base, []values{
		{field: "buyer", refused: notA("object", gone(), null())},
		{field: "buyer.address", refused: []refusal{gone(), {`null`, rules.CodeRequired}}},
		{field: "buyer.address.zipCode", allowed: []string{`"01001000"`}, refused: []refusal{
			gone(), {`""`, rules.CodeRequired}, {`"  "`, rules.CodeRequired},
		}},
		{field: "buyer.address.country", allowed: []string{missing}},
	})
	checkValues(t, rules.Transaction, rules.Variant{Live: true}, base, []values{
		{field: "buyer.address", allowed: []string{missing, `null`}},
		{field: "buyer.address.zipCode", allowed: []string{missing}},
	})
}

func TestLooseTransaction(t *testing.T) {
	t.Parallel()
	checkValues(t, rules.Transaction, rules.Variant{Loose: true}, transactionBase, []values{
		{field: "buyer", allowed: []string{missing}, refused: []refusal{null()}},
		{field: "products", allowed: []string{missing}, refused: []refusal{null(), {`[]`, rules.CodeTooSmall}}},
		{field: "amount", refused: []refusal{gone()}},
	})
}

func TestTransactionLoopbackNotifyURL(t *testing.T) {
	t.Parallel()
	checkValues(t, rules.Transaction, rules.Variant{LoopbackHTTP: true}, transactionBase, []values{
		{field: "notify_url", allowed: []string{`"http://127.0.0.1:9000/x"`, `"http://localhost"`, `"http://[::1]:9000/"`}, refused: []refusal{
			{`"http://192.168.0.1/"`, rules.CodeInvalid}, {`"http://127.0.0.1.example/"`, rules.CodeInvalid}, {`"ftp://localhost/"`, rules.CodeInvalid},
		}},
	})
}

func TestRefund(t *testing.T) {
	t.Parallel()
	checkValues(t, rules.Refund, rules.Variant{}, `{"amount":5000,"reason":"returned"}`, []values{
		{field: "amount", allowed: []string{missing, `1`, `100000001`}, refused: notA("integer", null(),
			refusal{`0`, rules.CodeTooSmall}, refusal{`-1`, rules.CodeTooSmall})},
		{field: "reason", allowed: []string{missing, `""`, text(500)}, refused: notA("string", null(), refusal{text(501), rules.CodeTooBig})},
	})
}

func TestDelivery(t *testing.T) {
	t.Parallel()
	checkValues(t, rules.Delivery, rules.Variant{}, `{"tracking_code":"BR1"}`, []values{
		{field: "tracking_code", allowed: []string{text(1), text(255)}, refused: notA("string", gone(), null(),
			refusal{`""`, rules.CodeTooSmall}, refusal{text(256), rules.CodeTooBig})},
		{field: "delivery_status", allowed: []string{missing}, refused: []refusal{null()}},
		enum("delivery_status", rules.DeliveryStatuses),
		{field: "tracking_url", allowed: []string{missing, `null`, httpsURL(255), `"http://track.example/1"`}, refused: notA("string",
			refusal{httpsURL(256), rules.CodeTooBig}, refusal{`"ftp://track.example/"`, rules.CodeInvalid}, refusal{`""`, rules.CodeInvalid})},
		{field: "tracking_company", allowed: []string{missing, `null`, text(1), text(64)}, refused: notA("string",
			refusal{`""`, rules.CodeTooSmall}, refusal{text(65), rules.CodeTooBig})},
	})
}

func TestSandboxStatus(t *testing.T) {
	t.Parallel()
	status := []values{{field: "status", refused: notA("string", gone(), null())}}
	checkValues(t, rules.SandboxStatus, rules.Variant{}, `{"status":"paid"}`, append(status, enum("status", rules.TransactionStatuses)))
	checkValues(t, rules.SandboxStatus, rules.Variant{Live: true}, `{"status":"paid"}`, append(status, enum("status", rules.LiveTransactionStatuses)))
	checkValues(t, rules.LiveSandboxStatus, rules.Variant{}, `{"status":"paid"}`, append(status, enum("status", rules.LiveTransactionStatuses)))
}

func TestTransactionList(t *testing.T) {
	t.Parallel()
	invalidEnum := []refusal{{"nothing", rules.CodeInvalidEnum}, {"pix,nothing", rules.CodeInvalidEnum}, {",", rules.CodeInvalidEnum}}
	checkQueryValues(t, rules.TransactionList, []values{
		{field: "limit", allowed: []string{"", "1", "100"}, refused: []refusal{
			{"0", rules.CodeTooSmall}, {"101", rules.CodeTooBig}, {"ten", rules.CodeInvalidType}, {"1.5", rules.CodeInvalidType},
		}},
		{field: "direction", allowed: []string{"", "next", "prev"}, refused: []refusal{{"up", rules.CodeInvalidEnum}}},
		{field: "paymentMethods", allowed: []string{"", "pix", "pix,voucher,credit_card"}, refused: invalidEnum},
		{field: "currency", allowed: []string{"BRL", "BRL,USD"}, refused: invalidEnum},
		{field: "status", allowed: []string{"paid", "paid,captured,med"}, refused: invalidEnum},
		{field: "deliveryStatus", allowed: []string{"waiting,delivered"}, refused: invalidEnum},
		{field: "installments", allowed: []string{"", "1", "1,12"}, refused: []refusal{
			{"x", rules.CodeInvalidType},
			{"1,", rules.CodeInvalidType},
			{"1.5", rules.CodeInvalidType},
			{"0", rules.CodeTooSmall},
			{"1,13", rules.CodeTooBig},
		}},
		{field: "traceable", allowed: []string{"true", "false"}, refused: []refusal{{"yes", rules.CodeInvalidType}, {"1", rules.CodeInvalidType}}},
		{field: "dateFrom", allowed: []string{"", "2027-01-04", "2027-01-04T12:00:00Z", "2027-01-04T12:00:00.5-03:00"}, refused: []refusal{
			{"yesterday", rules.CodeInvalid}, {"2027-13-01", rules.CodeInvalid}, {"2027-01-04T12:00:00", rules.CodeInvalid},
		}},
		{field: "dateTo", allowed: []string{"2027-01-04"}, refused: []refusal{{"04/01/2027", rules.CodeInvalid}}},
	})
	repeated := url.Values{"status": {"paid", "nothing"}}
	assert.Len(t, rules.CheckQuery(repeated, rules.TransactionList, rules.Variant{}), 1, "a repeated key is one list")
	assert.Len(t, rules.CheckQuery(url.Values{"name": {"4111111111111111"}}, rules.TransactionList, rules.Variant{}), 1, "no card number in a URL")
}

// TestCardData: card data is found wherever it stands, and nothing else is
// taken for it.
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
		found := check(t, edit(t, transactionBase, field, value), rules.Transaction)
		if assert.Len(t, found, 1, "%s = %s", field, value) {
			assert.Equal(t, rules.CodeInvalid, found[0].Code)
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
		assert.Empty(t, check(t, edit(t, transactionBase, field, value), rules.Transaction), "%s = %s", field, value)
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
		found, err := rules.Check([]byte(body), func(*rules.Object) {}, rules.Variant{})
		require.NoError(t, err)
		if field == "" {
			assert.Empty(t, found)
			continue
		}
		assert.Equal(t, field, found[0].Field)
	}
}
