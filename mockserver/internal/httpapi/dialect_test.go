package httpapi_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/docs"
	"github.com/gateway-go/gateway/internal/golden"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
)

// TestDialect checks the rows of "The two dialects" in docs/assumptions.md in both
// dialects, each for every resource that it affects. Whole responses are in the
// golden files, those of the live dialect in *.live.response.json.
func TestDialect(t *testing.T) {
	t.Parallel()
	points := []struct {
		id    string
		check func(m *mock, dialect string)
	}{
		{"list-envelope", dialectOfCursorLists},
		{"transaction-states", dialectOfStates},
		{"challenge-state", dialectOfChallenges},
		{"repeated-transfer", dialectOfRepeatedTransfers},
		{"validation-status", dialectOfValidation},
		{"plain-errors", dialectOfErrorBodies},
		{"transfer-minimum", dialectOfTheLeastTransfer},
		{"voucher-address", dialectOfVoucherAddresses},
		{"bare-transaction", dialectOfBareTransactions},
		{"transaction-metadata", dialectOfMetadata},
		{"transfer-amount", dialectOfTransferAmounts},
		{"listed-transaction", dialectOfListItems},
		{"method-optional", dialectOfDefaults},
		{"buyer-id-alone", dialectOfBuyerIDs},
		{"pix-document", dialectOfPixDocuments},
		{"idempotency-header", dialectOfIdempotencyKeys},
		{"listed-fee", dialectOfListedFees},
		{"delivery-errors", dialectOfRefundAndDeliveryErrors},
		{"null-members", dialectOfNulls},
		{"customer-formats", dialectOfCustomers},
		{"cancellation-reason", dialectOfCancelReasons},
		{"malformed-id", dialectOfMalformedIDs},
		{"link-product-limits", dialectOfLinkProducts},
		{"base-price", dialectOfSettledAmounts},
		{"informations", dialectOfInformations},
		{"customer-read", dialectOfCustomerReads},
		{"repeated-subscription", dialectOfReusedSubscriptionKeys},
		{"pix-automatic-members", dialectOfUnknownMembers},
		{"pix-authorization", dialectOfAuthorizations},
		{"api-version", dialectOfEventVersions},
		{"absent-phone", dialectOfAbsentPhones},
		{"sandbox-pays", dialectOfSandboxSettlement},
		{"body-not-object", dialectOfBodies},
		{"partial-refund-event", dialectOfPartialRefunds},
		{"colombian-vouchers", dialectOfColombianVouchers},
	}
	var tested, documented []string
	for _, p := range points {
		tested = append(tested, p.id)
		for dialect, change := range dialects {
			t.Run(p.id+" "+dialect, func(t *testing.T) {
				t.Parallel()
				p.check(newMock(t, change), dialect)
			})
		}
	}
	for _, a := range docs.Assumptions() {
		if a.Section == "The two dialects" {
			documented = append(documented, a.ID)
		}
	}
	assert.Equal(t, documented, tested)
}

// in returns the expected value for the dialect.
func in[T any](dialect string, document, live T) T {
	if dialect == "live" {
		return live
	}
	return document
}

func (m *mock) get(path string) response {
	m.t.Helper()
	a := m.call(http.MethodGet, path, "")
	require.Equal(m.t, http.StatusOK, a.Status, string(a.Body))
	return a
}

// plain checks for an {error, message, status} body.
func (a response) plain(status int, code string) response {
	a.t.Helper()
	require.Equal(a.t, status, a.Status, string(a.Body))
	assert.Equal(a.t, "application/json", a.Header.Get("Content-Type"))
	assert.ElementsMatch(a.t, []string{"error", "message", "status"}, a.keysOfBody())
	assert.Equal(a.t, code, a.text("error"))
	assert.NotEmpty(a.t, a.text("message"))
	assert.InDelta(a.t, status, a.at("status"), 0)
	return a
}

// list-envelope: where the page, the total and the cursors of a list are.
func dialectOfCursorLists(m *mock, dialect string) {
	t := m.t
	customer := m.person("Ana Souza")
	for i := range 2 {
		m.payout(fmt.Sprint(i))
		require.Equal(t, http.StatusCreated, m.subscribe(customer, fmt.Sprintf(`"token":"pgct_ok_%d"`, i)).Status)
	}
	body := in(dialect, []string{"success", "requestId", "data"},
		[]string{"success", "requestId", "data", "total", "next_cursor", "prev_cursor"})
	to := in(dialect, "data.", "") // where they are
	for _, path := range []string{"/v2/transactions", "/v2/transfers", "/v2/subscriptions"} {
		first := m.get(path + "?limit=1")
		assert.ElementsMatch(t, body, first.keysOfBody(), path)
		if dialect == "document" {
			assert.ElementsMatch(t, []string{"data", "total", "next_cursor", "prev_cursor"}, first.keys("data"), path)
		}
		assert.InDelta(t, 2, first.at(to+"total"), 0, path)
		assert.Nil(t, first.at(to+"prev_cursor"), path)
		second := m.get(path + "?limit=1&cursor=" + first.text(to+"next_cursor"))
		assert.NotEqual(t, first.text(to+"data.0.id"), second.text(to+"data.0.id"), path)
		assert.Nil(t, second.at(to+"next_cursor"), path)
		back := m.get(path + "?limit=1&direction=prev&cursor=" + second.text(to+"prev_cursor"))
		assert.Equal(t, first.text(to+"data.0.id"), back.text(to+"data.0.id"), path)
	}
	customers := m.get("/v2/customers") // by page number, in both
	assert.ElementsMatch(t, []string{"success", "requestId", "metadata", "data"}, customers.keysOfBody())
}

// transaction-states: the states of transactions.
func dialectOfStates(m *mock, dialect string) {
	t := m.t
	path := "/v2/transactions/" + m.create(charge())
	for status := range strings.FieldsSeq("paid expired canceled refused refunded partially_refunded chargedback captured pending") {
		a := m.call(http.MethodPut, path, `{"status":"`+status+`"}`)
		assert.Equal(t, status, a.at("data.transaction.status"))
	}
	for status := range strings.FieldsSeq("authorized three_ds_required in_protest partially_paid processing processed med pre_chargedback") {
		a := m.call(http.MethodPut, path, `{"status":"`+status+`"}`)
		if dialect == "document" {
			a.problem(http.StatusBadRequest, "VALIDATION_ERROR").field("status", "invalid_enum_value")
			continue
		}
		assert.Equal(t, status, a.at("data.transaction.status"))
		assert.Equal(t, status, m.get(path).at("data.status"))
		assert.Equal(t, status, m.get("/v2/transactions?status="+status).at("data.0.status"))
	}
}

// challenge-state: the state of a card that waits for 3-D Secure, also a subscription's.
func dialectOfChallenges(m *mock, dialect string) {
	t := m.t
	waiting := in(dialect, "pending", "three_ds_required")
	a := m.call(http.MethodPost, "/v2/transactions", card("token", `"pgct_3ds"`))
	assert.Equal(t, waiting, a.at("data.status"))
	assert.Equal(t, "three_ds_challenge", a.at("data.next_action.type"))
	assert.Regexp(t, "^cs_", a.at("data.next_action.client_secret"))
	assert.Equal(t, a.at("data"), m.get("/v2/transactions/"+a.text("data.id")).at("data"))

	s := m.subscribe(m.person("Ana Souza"), `"token":"pgct_3ds_2"`)
	read := m.get("/v2/subscriptions/" + s.text("data.id"))
	assert.Equal(t, waiting, read.at("data.transactions.0.status"))
	path := "/v2/transactions/" + read.text("data.transactions.0.id")
	assert.Equal(t, waiting, m.get(path).at("data.status"))
	m.move(read.text("data.transactions.0.id"), engine.PassChallenge)
	assert.Equal(t, "paid", m.get(path).at("data.status"))
}

// repeated-transfer: a transfer that repeats a reference.
func dialectOfRepeatedTransfers(m *mock, dialect string) {
	t := m.t
	id := m.payout("one")
	for _, amount := range []string{"4990", "5000"} { // the same body and another
		a := m.call(http.MethodPost, "/v2/transfers", golden.Edit(t, fmt.Sprintf(payoutTo, "one"), "amount", amount))
		if dialect == "live" {
			require.Equal(t, http.StatusOK, a.Status)
			assert.Equal(t, m.get("/v2/transfers/"+id).at("data"), a.at("data"), "the first transfer")
			continue
		}
		a.problem(http.StatusConflict, "DUPLICATE_EXTERNAL_REF")
		assert.Equal(t, "/v2/transfers/"+id, a.text("instance"))
	}
	assert.InDelta(t, 1, m.get("/v2/transfers").at(in(dialect, "data.total", "total")), 0)
}

// validation-status: the status of a request that breaks a rule, for every operation.
func dialectOfValidation(m *mock, dialect string) {
	t := m.t
	always := []string{ // 422 in both
		"checkout_links.create", "checkout_links.create by amount", "legacy.configure_integration", "legacy.create_pix_payment",
	}
	write := in(dialect, http.StatusBadRequest, http.StatusUnprocessableEntity)
	for _, w := range writes(t) {
		status := write
		if slices.Contains(always, w.name) {
			status = http.StatusUnprocessableEntity
		}
		p := w.prepare(t, dialect)
		a := p.send(golden.Edit(t, p.body, "cvv", `"123"`))
		assert.Equal(t, status, a.Status, "%s: %s", w.name, a.Body)
		if w.plain {
			a.plain(status, "VALIDATION_ERROR")
		} else {
			assert.Equal(t, "Validation Error", a.problem(status, "VALIDATION_ERROR").at("title"), w.name)
		}
	}
	for _, target := range []string{
		"/v2/transactions?limit=0", "/v2/transfers?limit=0", "/v2/subscriptions?limit=0", "/v2/customers?limit=0", "/v2/checkout/ab",
	} {
		a := m.call(http.MethodGet, target, "").problem(http.StatusUnprocessableEntity, "VALIDATION_ERROR")
		assert.Equal(t, "Validation Error", a.at("title"), target)
	}

	// Rules about stored resources fail as validation errors too.
	ana := m.person("Ana Souza")
	m.call(http.MethodPost, "/v2/transactions", card("token", `"pgct_used"`)).
		problem(write, "TOKEN_ALREADY_USED").field("token", "invalid_string")
	m.subscribe(ana, `"token":"pgct_expired"`).problem(write, "TOKEN_EXPIRED").field("token", "invalid_string")
	late := m.subscribe(ana, `"token":"pgct_ok","trial_end":"2027-01-04T12:00:00Z"`).problem(write, "VALIDATION_ERROR")
	late.field("trial_end", "invalid_string")
	assert.Equal(t, "trial_end must be after the gateway's current time, 2027-01-04T12:00:00Z.", late.at("detail"))
	m.call(http.MethodPut, "/v2/transactions/"+m.create(card("token", `"pgct_paid"`))+"/refund", `{"amount":1001}`).
		problem(write, "VALIDATION_ERROR").field("amount", "too_big")
}

// plain-errors: the body of 403, 404 and 409 on subscriptions and of 409 on transactions.
func dialectOfErrorBodies(m *mock, dialect string) {
	t := m.t
	check := in(dialect, response.problem, response.plain)
	const subscriptions, transactions = "/v2/subscriptions", "/v2/transactions"
	ana := m.person("Ana Souza", `"externalRef":"ana"`)
	s := m.subscribe(ana, `"token":"pgct_ok_1","idempotency_key":"key"`)
	path := subscriptions + "/" + s.text("data.id")
	forbidden := []string{"Authorization", "Bearer sk_test_forbidden_1"}

	for _, row := range []struct{ method, path, unknown string }{
		{http.MethodPost, subscriptions, ""},
		{http.MethodGet, subscriptions, ""},
		{http.MethodGet, path, subscriptions + "/" + unknownID},
		{http.MethodPatch, path, subscriptions + "/" + unknownID},
		{http.MethodPost, path + "/cancel", subscriptions + "/" + unknownID + "/cancel"},
	} {
		check(m.call(row.method, row.path, "{}", forbidden...), http.StatusForbidden, "FORBIDDEN")
		m.call(row.method, row.path, "{}", "Authorization", "").problem(http.StatusUnauthorized, "UNAUTHORIZED")
		if row.unknown != "" {
			check(m.call(row.method, row.unknown, "{}"), http.StatusNotFound, "NOT_FOUND")
		}
	}
	check(m.subscribe("nobody", `"token":"pgct_ok_2"`), http.StatusNotFound, "NOT_FOUND")
	if dialect == "document" { // repeated-subscription
		check(m.subscribe(ana, `"token":"pgct_ok_2","idempotency_key":"key"`), http.StatusConflict, "IDEMPOTENCY_KEY_REUSED")
	}
	require.Equal(t, http.StatusOK, m.call(http.MethodPost, path+"/cancel", "").Status)
	check(m.call(http.MethodPost, path+"/cancel", ""), http.StatusConflict, "INVALID_STATE")
	require.NoError(t, m.clock.Advance(t.Context(), 31*24*time.Hour))
	check(m.call(http.MethodPatch, path, `{"metadata":{}}`), http.StatusConflict, "INVALID_STATE")

	pending := transactions + "/" + m.create(charge("external_ref", `"one"`, "amount", "1"))
	a := check(m.call(http.MethodPost, transactions, charge("external_ref", `"one"`)), http.StatusConflict, "DUPLICATE_EXTERNAL_REF")
	const message = "A transaction with this external reference already exists"
	assert.Equal(t, message, a.text(in(dialect, "detail", "message")))
	check(m.call(http.MethodPut, pending, `{"status":"partially_refunded"}`), http.StatusConflict, "INVALID_STATE")

	// Everything else is a problem in both.
	m.call(http.MethodPut, pending+"/refund", "{}").problem(http.StatusConflict, "NOT_REFUNDABLE") // delivery-errors
	m.call(http.MethodPut, pending+"/delivery", `{"tracking_code":"1"}`).problem(http.StatusConflict, "DELIVERY_STATE")
	m.call(http.MethodGet, transactions+"/"+unknownID, "").problem(http.StatusNotFound, "NOT_FOUND")
	m.call(http.MethodGet, transactions, "", forbidden...).problem(http.StatusForbidden, "FORBIDDEN")
	m.call(http.MethodPost, "/v2/customers", `{"name":"Ana","email":"ana@example.com","externalRef":"ana"}`).
		problem(http.StatusConflict, "DUPLICATE_EXTERNAL_REF")
	m.call(http.MethodPost, "/v2/transfers/"+m.payout("one", engine.CancelTransfer)+"/cancel", "").
		problem(http.StatusConflict, "INVALID_STATE")
	m.call(http.MethodGet, subscriptions+"/1/2/3", "").problem(http.StatusNotFound, "UNKNOWN_PATH")
}

// transfer-minimum: the minimum amount of a transfer.
func dialectOfTheLeastTransfer(m *mock, dialect string) {
	send := func(amount int) response {
		return m.call(http.MethodPost, "/v2/transfers", golden.Edit(m.t, fmt.Sprintf(payoutTo, ""), "amount", fmt.Sprint(amount)))
	}
	least := in(dialect, 1, 1000)
	assert.Equal(m.t, http.StatusCreated, send(least).Status)
	send(least-1).problem(in(dialect, http.StatusBadRequest, http.StatusUnprocessableEntity), "VALIDATION_ERROR").
		field("amount", "too_small")
}

// voucher-address: the address of a voucher's buyer.
func dialectOfVoucherAddresses(m *mock, dialect string) {
	voucher := func(address string) response {
		buyer := `{"name":"Ana","email":"ana@example.com"` + address + `}`
		return m.call(http.MethodPost, "/v2/transactions", charge("method", `"voucher"`, "buyer", buyer))
	}
	for address, missing := range map[string]string{
		``:                "buyer.address",
		`,"address":null`: "buyer.address",
		`,"address":{"street":"Rua A","city":"Recife"}`:                              "buyer.address.zipCode",
		`,"address":{"street":"Rua A","city":"Recife","zipCode":""}`:                 "buyer.address.zipCode",
		`,"address":{"street":"Rua A","city":"Recife","zipCode":"1"}`:                "", // the country is BR
		`,"address":{"street":"Rua A","city":"Recife","zipCode":"1","country":"PY"}`: "",
	} {
		a := voucher(address)
		if dialect == "live" || missing == "" {
			assert.Equal(m.t, http.StatusCreated, a.Status, address)
			continue
		}
		a.problem(http.StatusBadRequest, "VALIDATION_ERROR").field(missing, "required")
	}
	// An address that is sent has a street and a city, in both.
	status := in(dialect, http.StatusBadRequest, http.StatusUnprocessableEntity)
	voucher(`,"address":{"city":"Recife","zipCode":"1"}`).problem(status, "VALIDATION_ERROR").field("buyer.address.street", "required")
	voucher(`,"address":{"street":"Rua A","zipCode":"1"}`).problem(status, "VALIDATION_ERROR").field("buyer.address.city", "required")
}

// bare-transaction: transactions without products or buyer, which only the lenient mode accepts.
func dialectOfBareTransactions(m *mock, dialect string) {
	t := m.t
	status := in(dialect, http.StatusBadRequest, http.StatusUnprocessableEntity)
	slack := newMock(t, dialects[dialect], lenient)
	for _, member := range []string{"products", "buyer"} {
		body := charge(member, "")
		m.call(http.MethodPost, "/v2/transactions", body).problem(status, "VALIDATION_ERROR").field(member, "required")
		assert.Equal(t, http.StatusCreated, slack.call(http.MethodPost, "/v2/transactions", body).Status)
	}
	a := slack.call(http.MethodPost, "/v2/transactions", charge("buyer", "", "products", ""))
	require.Equal(t, http.StatusCreated, a.Status, string(a.Body))
	assert.Equal(t, []any{}, a.at("data.products"))
	assert.NotEmpty(t, a.text("data.buyer.id"))
	assert.Nil(t, a.at("data.buyer.email"))
}

// transaction-metadata: a transaction's metadata in responses.
func dialectOfMetadata(m *mock, dialect string) {
	for sent, object := range map[string]any{ // object is its value in the live dialect
		`order 7`:               map[string]any{"metadata": "order 7"},
		`{"a":"b","n":{"m":1}}`: map[string]any{"a": "b", "n": `{"m":1}`},
		`a=b&c=d=e`:             map[string]any{"a": "b", "c": "d=e"},
		`[1]`:                   map[string]any{"metadata": "[1]"},
		`null`:                  map[string]any{"metadata": "null"},
		`=a`:                    map[string]any{"metadata": "=a"},
	} {
		a := m.call(http.MethodPost, "/v2/transactions", charge("metadata", strconv.Quote(sent)))
		want := in[any](dialect, sent, object)
		assert.Equal(m.t, want, a.at("data.metadata"), sent)
		assert.Equal(m.t, want, m.get("/v2/transactions/"+a.text("data.id")).at("data.metadata"), sent)
		if dialect == "document" { // the live list has none: listed-transaction
			assert.Equal(m.t, want, m.get("/v2/transactions").at("data.data.0.metadata"), sent)
		}
	}
	for _, none := range []string{"", "null"} {
		assert.Nil(m.t, m.call(http.MethodPost, "/v2/transactions", charge("metadata", none)).at("data.metadata"))
	}
}

// transfer-amount: a transfer's amount in every response. In webhooks it is an integer in
// both: see internal/deliver.
func dialectOfTransferAmounts(m *mock, dialect string) {
	t := m.t
	want := in[any](dialect, 4990.0, "4990")
	made := m.call(http.MethodPost, "/v2/transfers", fmt.Sprintf(payoutTo, "one"))
	path := "/v2/transfers/" + made.text("data.id")
	assert.Equal(t, want, made.at("data.amount"), "create")
	assert.Equal(t, want, m.get(path).at("data.amount"), "read")
	assert.Equal(t, want, m.get("/v2/transfers").at(in(dialect, "data.data.0.amount", "data.0.amount")), "list")
	assert.Equal(t, want, m.call(http.MethodPost, path+"/cancel", "").at("data.amount"), "cancel")
	assert.InDelta(t, 50, made.at("data.fee"), 0, "the fee is an integer in both")
}

// listed-transaction: the items of the transaction list. Items of other lists are as a read
// returns them.
func dialectOfListItems(m *mock, dialect string) {
	t := m.t
	id := m.create(charge("external_ref", `"one"`))
	to := in(dialect, "data.data.0", "data.0")
	read, list := m.get("/v2/transactions/"+id), m.get("/v2/transactions")
	if dialect == "document" {
		assert.Equal(t, read.at("data"), list.at(to))
	} else {
		assert.ElementsMatch(t, []string{
			"id", "buyer", "payment", "status", "products", "paid_at", "created_at", "updated_at", "attempts_count",
		}, list.keys(to))
		assert.ElementsMatch(t, []string{"name", "email"}, list.keys(to+".buyer"))
		assert.ElementsMatch(t, []string{"title", "quantity", "unit_price"}, list.keys(to+".products.0"))
		for member, of := range map[string]string{
			"id": "id", "status": "status", "created_at": "created_at", "buyer.email": "buyer.email",
			"payment.method": "method", "payment.amount": "amount", "payment.currency": "currency",
			"payment.external_ref": "external_ref", "payment.pix.qrcode": "pix.qr_code",
			"products.0.title": "products.0.name", "products.0.unit_price": "products.0.price",
		} {
			assert.Equal(t, read.at("data."+of), list.at(to+"."+member), member)
		}
	}
	transfer := m.payout("one")
	assert.Equal(t, m.get("/v2/transfers/"+transfer).at("data"), m.get("/v2/transfers").at(to))
	s := m.subscribe(m.person("Ana Souza"), `"token":"pgct_ok"`)
	assert.Equal(t, s.at("data"), m.get("/v2/subscriptions").at(to))
}

// method-optional: a missing method, and the installments of a response if none are sent.
func dialectOfDefaults(m *mock, dialect string) {
	t := m.t
	bare := m.call(http.MethodPost, "/v2/transactions", charge("method", ""))
	if dialect == "live" {
		assert.Equal(t, "pix", bare.at("data.method"))
	} else {
		bare.problem(http.StatusBadRequest, "VALIDATION_ERROR").field("method", "required")
	}
	want := in[any](dialect, 1.0, nil)
	for _, body := range []string{charge(), card(), card("installments", "null")} {
		made := m.call(http.MethodPost, "/v2/transactions", body)
		assert.Equal(t, want, made.at("data.installments"), body)
		assert.Equal(t, want, m.get("/v2/transactions/"+made.text("data.id")).at("data.installments"), body)
		assert.Equal(t, "BRL", made.at("data.currency"), "the same in both")
	}
	if dialect == "live" {
		assert.NotContains(t, m.get("/v2/transactions").keys("data.0.payment"), "installments")
	}
	assert.InDelta(t, 3, m.call(http.MethodPost, "/v2/transactions", card("installments", "3")).at("data.installments"), 0)
}

// buyer-id-alone: a name or an e-mail beside buyer.id.
func dialectOfBuyerIDs(m *mock, dialect string) {
	t := m.t
	id := m.person("Ana Souza")
	for members, refused := range map[string][]string{
		`"name":"Eve"`:                              {"buyer.name"},
		`"email":"eve@example.com"`:                 {"buyer.email"},
		`"name":"Eve","email":"eve@example.com"`:    {"buyer.name", "buyer.email"},
		`"name":null,"email":null`:                  nil, // no error
		`"phone":"11987654321","birth_date":"1990"`: nil, // not part of the rule
	} {
		a := m.call(http.MethodPost, "/v2/transactions", charge("buyer", fmt.Sprintf(`{"id":%q,%s}`, id, members)))
		if dialect == "live" && len(refused) > 0 {
			a.problem(http.StatusUnprocessableEntity, "VALIDATION_ERROR")
			require.Len(t, a.at("errors"), len(refused), members)
			for i, field := range refused {
				assert.Equal(t, field, a.at(fmt.Sprintf("errors.%d.field", i)))
			}
			continue
		}
		require.Equal(t, http.StatusCreated, a.Status, "%s: %s", members, a.Body)
		assert.Equal(t, "Ana Souza", a.at("data.buyer.name"), members)
		assert.Equal(t, "ana.souza@example.com", a.at("data.buyer.email"), members)
	}
}

// pix-document: the document of a Pix's buyer.
func dialectOfPixDocuments(m *mock, dialect string) {
	t := m.t
	const bare = `{"name":"Ana","email":"ana@example.com"}`
	known := fmt.Sprintf(`{"id":%q}`, m.person("Ana Souza"))
	for name, body := range map[string]string{
		"a customer": charge("buyer", known),
		"a card":     card("buyer", bare),
		"a voucher": charge("method", `"voucher"`,
			"buyer", strings.Replace(bare, "}", `,"address":{"street":"Rua A","city":"Recife","zipCode":"1"}}`, 1)),
		"a document": charge(),
	} {
		assert.Equal(t, http.StatusCreated, m.call(http.MethodPost, "/v2/transactions", body).Status, name)
	}
	bodies := []string{charge("buyer", bare)}
	if dialect == "live" {
		bodies = append(bodies, charge("buyer", bare, "method", "")) // method-optional: a Pix
	}
	for _, body := range bodies {
		a := m.call(http.MethodPost, "/v2/transactions", body)
		if dialect == "document" {
			assert.Equal(t, http.StatusCreated, a.Status)
			continue
		}
		a.problem(http.StatusUnprocessableEntity, "VALIDATION_ERROR").field("buyer.document", "required")
	}
}
