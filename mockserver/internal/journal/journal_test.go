package journal_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/mockserver/internal/journal"
	"github.com/gateway-go/gateway/mockserver/internal/memory"
)

var start = time.Date(2027, time.January, 4, 12, 0, 0, 0, time.UTC)

func newJournal(size int) *journal.Journal {
	return journal.New(journal.Config{
		Size: size,
		Now:  func() time.Time { return start },
		Operation: func(r *http.Request) string {
			return map[string]string{"POST /v2/transactions": "transactions.create", "GET /v2/transfers": "transfers.list"}[r.Method+" "+r.URL.Path]
		},
		Account: func(r *http.Request) string { return r.Header.Get("Apikey") },
	})
}

type exchange struct {
	method, path string
	header       map[string]string
	body         string
	status       int
	response     string
}

// do sends one exchange through the journal.
func do(t *testing.T, j *journal.Journal, x exchange) {
	t.Helper()
	h := j.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("X-Checkout-Session-Token", "session-token-1")
		if x.status != 0 {
			w.WriteHeader(x.status)
		}
		_, _ = io.WriteString(w, x.response)
	}))
	if x.method == "" {
		x.method, x.path = http.MethodPost, "/v2/transactions"
	}
	r := httptest.NewRequest(x.method, x.path, strings.NewReader(x.body))
	for name, value := range x.header {
		r.Header.Set(name, value)
	}
	h.ServeHTTP(httptest.NewRecorder(), r)
}

func TestEntries(t *testing.T) {
	t.Parallel()
	j := newJournal(0)
	do(t, j, exchange{
		method: "POST", path: "/v2/transactions?a=b",
		header: map[string]string{"apiKey": "sk_test_mine", "X-Request-Id": "req_1"},
		body:   `{"amount":1,"metadata":"x"}`, status: 201, response: `{"data":{"id":"1"}}`,
	})
	e := j.Entries("sk_test_mine")[0]
	assert.Equal(t, uint64(1), e.ID)
	assert.Equal(t, start, e.At)
	assert.Equal(t, "transactions.create", e.Operation)
	assert.Equal(t, "POST", e.Method)
	assert.Equal(t, "/v2/transactions", e.Path)
	assert.Equal(t, "a=b", e.Query)
	assert.Equal(t, "req_1", e.Header.Get("X-Request-Id"))
	assert.JSONEq(t, `{"amount":1,"metadata":"x"}`, e.Body)
	assert.Equal(t, 201, e.Status)
	assert.JSONEq(t, `{"data":{"id":"1"}}`, e.Response)
	assert.False(t, e.Broken)
	assert.Empty(t, j.Entries("sk_test_other"))
}

// The values of these members are always hidden.
func TestSecretMembers(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"token", "session_token", "client_secret", "secret", "password", "apiKey", "api_key", "document", "documentNumber",
		"document_number", "pix_key", "pix_key_value", "pixKey", "card_number", "cvv",
	} {
		j := newJournal(0)
		do(t, j, exchange{body: `{"` + name + `":"hide me"}`, response: `{"list":[{"` + name + `":7}]}`})
		e := j.Entries("")[0]
		assert.JSONEq(t, `{"`+name+`":"***"}`, e.Body)
		assert.JSONEq(t, `{"list":[{"`+name+`":"***"}]}`, e.Response)
	}
	for _, name := range []string{"documentNumber", "document_number", "search", "token", "apiKey", "api_key"} {
		j := newJournal(0)
		do(t, j, exchange{method: "GET", path: "/v2/x?" + name + "=me"})
		assert.Equal(t, name+"=***", j.Entries("")[0].Query)
	}
	for _, name := range []string{"Authorization", "Proxy-Authorization", "apiKey", "X-Checkout-Session-Token", "Cookie", "Set-Cookie"} {
		j := newJournal(0)
		do(t, j, exchange{header: map[string]string{name: "me"}})
		assert.Equal(t, "***", j.Entries("")[0].Header.Get(name), name)
	}
}

// TestNothingSecretIsShown searches the journal's entries for the secrets of several
// exchanges.
func TestNothingSecretIsShown(t *testing.T) {
	t.Parallel()
	basic := base64.StdEncoding.EncodeToString([]byte("sk_test_basickey:x"))
	cases := map[string]struct {
		exchange

		secrets []string
	}{
		"bearer":                     {exchange{header: map[string]string{"Authorization": "Bearer sk_test_abc123"}}, []string{"abc123"}},
		"apiKey":                     {exchange{header: map[string]string{"apiKey": "plainkey99"}, body: `{"description":"my key is plainkey99"}`}, []string{"plainkey99"}},
		"basic":                      {exchange{header: map[string]string{"Authorization": "Basic " + basic}, response: `{"detail":"basickey"}`}, []string{basic, "sk_test_basickey"}},
		"cookie":                     {exchange{header: map[string]string{"Cookie": "sid=abcdef; b=2"}}, []string{"abcdef"}},
		"one is a prefix of another": {exchange{body: `{"secret":"secret1","password":"secret1-tail99","note":"secret1-tail99"}`}, []string{"tail99"}},
		"authorization without a scheme": {
			exchange{header: map[string]string{"Authorization": "sk_test_naked123"}}, []string{"naked123"},
		},
		"key in a path":       {exchange{method: "GET", path: "/v2/transactions/sk_live_oops12"}, []string{"oops12"}},
		"key in a body":       {exchange{body: `{"external_ref":"sk_test_oops12"}`}, []string{"oops12"}},
		"session token":       {exchange{header: map[string]string{"X-Checkout-Session-Token": "cst_777777"}, response: `{"data":{"session_token":"cst_777777","note":"cst_777777"}}`}, []string{"cst_777777", "session-token-1"}},
		"card token":          {exchange{body: `{"token":"pgct_secret1"}`, response: `{"detail":"the token pgct_secret1 is used"}`}, []string{"secret1"}},
		"document":            {exchange{body: `{"buyer":{"document":{"type":"CPF","number":"123.456.789-09"}}}`, response: `{"detail":"no customer 12345678909 or 123.456.789-09"}`}, []string{"123.456.789-09", "12345678909"}},
		"document as number":  {exchange{body: `{"document":{"number":12345678909}}`}, []string{"12345678909"}},
		"document as string":  {exchange{body: `{"payer":{"document":"12345678909"},"splits":[{"document":"98765432100"}]}`}, []string{"12345678909", "98765432100"}},
		"number after a list": {exchange{body: `{"document":{"seen":[1],"number":"12345678909"}}`}, []string{"12345678909"}},
		"documents in a list": {
			exchange{method: "GET", path: "/v2/customers", response: `{"data":[{"document":{"number":"11122233344"}},{"document":{"number":"55566677788"}}]}`},
			[]string{"11122233344", "55566677788"},
		},
		"document in a query": {exchange{method: "GET", path: "/v2/customers?document_number=123.456.789-09&page=1"}, []string{"123.456.789-09", "123.456.789-09"}},
		"search":              {exchange{method: "GET", path: "/v2/customers?search=123%2E456%2E789-09"}, []string{"456", "%2E456"}},
		"pix key":             {exchange{body: `{"pix_key_type":"CPF","pix_key_value":"12345678909"}`, response: `{"data":{"pix_key":"12345678909"}}`}, []string{"12345678909"}},
		"card number":         {exchange{body: `{"card_number":"4111111111111111","cvv":"123","x":["5500 0000 0000 0004"]}`}, []string{"4111111111111111", `"123"`, "5500 0000 0000 0004"}},
		"card object":         {exchange{body: `{"credit_card":{"number":"1","holder":"ANA B","list":[{"x":"deep1"}]},"cvv2":"987","expiry":"12/29"}`}, []string{"ANA B", "deep1", "987", "12/29"}},
		"card in a query":     {exchange{method: "GET", path: "/v2/x?q=4111%201111+1111-1111&q=4111111111111111&4111111111111111=1&cvv=987"}, []string{"4111", "987"}},
		"card in a path":      {exchange{method: "GET", path: "/v2/x/411111111111%31111/4111111111111111", response: `{"instance":"/v2/x/4111111111111111"}`}, []string{"1111"}},
		"card in a header":    {exchange{header: map[string]string{"X-Note": "card 4111 1111 1111 1111"}}, []string{"4111"}},
		"card as a name":      {exchange{body: `{"4111111111111111":1,"a":{"4111-1111-1111-1111":[]}}`}, []string{"4111"}},
		"card in a sentence":  {exchange{body: `{"phone":"4111111111111111","note":"paid with 4111 1111 1111 1111."}`}, []string{"4111"}},
		"card in broken JSON": {exchange{body: `{"number":"4111111111111111"`}, []string{"4111"}},
		"broken JSON":         {exchange{body: `{"document":{"number":"12345678909"`}, []string{"12345678909"}},
		"form":                {exchange{body: `document=12345678909`}, []string{"12345678909"}},
		"duplicate members":   {exchange{body: `{"document":{"number":"1","number":"12345678909"}}`}, []string{"12345678909"}},
		"escaped member":      {exchange{body: `{"d\u006fcument":{"number":"12345678909"}}`}, []string{"12345678909"}},
		"escaped value":       {exchange{body: `{"document":{"number":"1234567890\u0039"},"note":"1234567890\u0039"}`}, []string{"12345678909", `1234567890\u0039`}},
		"html":                {exchange{response: `<p>12345678909</p>`}, []string{"12345678909"}},
		"long body":           {exchange{body: `{"x":"` + strings.Repeat("y", 1<<17) + `","document":"12345678909"}`}, []string{"12345678909"}},
		"truncated body":      {exchange{body: `{"document":"12345678909","x":"` + strings.Repeat("y", 1<<17) + `"}`}, []string{"12345678909"}},
		"secret of a webhook": {exchange{body: `{"url":"https://x.test","secret":"whsec_123456"}`}, []string{"whsec_123456"}},
		"card of digits":      {exchange{body: `{"card":{"number":"4111111111111111"},"payment":{"card":{"number":4111111111111111}}}`}, []string{"4111"}},
		"card number alone":   {exchange{body: `{"card":{"number":4111111111111111}}`}, []string{"4111"}},
		"number of a card":    {exchange{body: `{"card":{"number":"order-7"},"tarjeta":[{"number":41}]}`}, []string{"order-7", "41}"}},
		"card after a noun":   {exchange{method: "GET", path: "/v2/transactions/4111111111111111", response: `{"instance":"/v2/transactions/4111111111111111"}`}, []string{"4111"}},
		"card in metadata":    {exchange{body: `{"metadata":"{\"card\":{\"number\":\"4111111111111111\"},\"cpf\":\"12345678909\"}"}`}, []string{"4111", "12345678909"}},
		"CPF in text":         {exchange{body: `{"description":"for 123.456.789-09 or 12345678909"}`, response: `{"detail":"CPF 529.982.247-25"}`}, []string{"789", "982"}},
		"CPF in a path":       {exchange{method: "GET", path: "/v2/customers/52998224725?q=52998224725&note=CPF+529.982.247-25"}, []string{"52998224725", "982"}},
		"CNPJ with letters":   {exchange{body: `{"description":"12.ABC.345/01DE-35 and 12ABC34501DE35"}`}, []string{"ABC"}},
		"RFC and CURP":        {exchange{body: `{"note":"GODE561231GR8 GODE561231HDFRRN04"}`}, []string{"GODE"}},
		"e-mail and phone":    {exchange{body: `{"email":"ana@mail.test","note":"ask ana@mail.test, +55 11 98765-4321 or (11) 98765-4321"}`}, []string{"ana@", "98765"}},
		"password in a URL":   {exchange{body: `{"notify_url":"https://user:hunter2x@shop.test/hook"}`}, []string{"hunter2x"}},
		"token twice":         {exchange{body: `{"a":"pgpm_again12 pgpm_again12"}`}, []string{"again12"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJournal(0)
			do(t, j, tc.exchange)
			entry := j.Entries("")[0]
			entry.Duration = 0 // its digits are those of a clock, and may be any
			shown := fmt.Sprintf("%+v", entry)
			for _, secret := range tc.secrets {
				assert.NotContains(t, shown, secret)
			}
		})
	}
}

func TestNonSecretValuesAreShown(t *testing.T) {
	t.Parallel()
	j := newJournal(0)
	body := `{"external_ref":"4111111111111111","amount":100000000,"buyer":{"name":"Ana","phone":"+5511987654321","document":{"type":"CPF","number":"***"}},"products":[{"name":"a","number":"12"}],"list":[[1],{}]}`
	do(t, j, exchange{
		method: "GET", path: "/v2/x?page=1&email=ana%40shop.test&document_number=1",
		header: map[string]string{"Authorization": "Bearer sk_test_abcdef"}, body: body,
	})
	e := j.Entries("")[0]
	assert.Equal(t, strings.Replace(body, "+5511987654321", "***", 1), e.Body, "a reference is shown whatever its digits are")
	assert.Equal(t, "document_number=***&email=***&page=1", e.Query)
	assert.Equal(t, "Bearer ***", e.Header.Get("Authorization"))
	assert.Empty(t, e.Response)
	assert.Equal(t, http.StatusOK, e.Status, "the default, since the handler sets none")
	do(t, j, exchange{body: "x=1", response: "<html>"})
	e = j.Entries("")[1]
	assert.Equal(t, "(3 bytes that are not JSON)", e.Body)
	assert.Equal(t, "(6 bytes that are not JSON)", e.Response)
	do(t, j, exchange{header: map[string]string{"Authorization": "Basic eDp5"}, body: `{"number":"5","token":null,"secret":true}`})
	e = j.Entries("")[2]
	assert.Equal(t, "Basic ***", e.Header.Get("Authorization"))
	assert.JSONEq(t, `{"number":"5","token":null,"secret":true}`, e.Body, "a number is hidden in documents only; null and true are not secret")
	do(t, j, exchange{method: "GET", path: "/v2/x?a=%zz"})
	assert.Equal(t, "(malformed)", j.Entries("")[3].Query)
	do(t, j, exchange{body: `"` + strings.Repeat("y", 1<<17) + `"`})
	assert.Equal(t, "(131074 bytes, too long to be shown)", j.Entries("")[4].Body)
}

func TestOldestEntriesAreDropped(t *testing.T) {
	t.Parallel()
	j := newJournal(3)
	for i := range 7 {
		do(t, j, exchange{method: "GET", path: fmt.Sprint("/", i), header: map[string]string{"apiKey": fmt.Sprint("key", i%2)}})
	}
	var paths []string
	for _, e := range j.Entries("") {
		paths = append(paths, e.Path)
	}
	assert.Equal(t, []string{"/4", "/5", "/6"}, paths)
	j.Clear("key1")
	assert.Len(t, j.Entries(""), 2)
	do(t, j, exchange{method: "GET", path: "/7"})
	do(t, j, exchange{method: "GET", path: "/8"})
	assert.Equal(t, uint64(9), j.Entries("")[2].ID)
	assert.Equal(t, "/6", j.Entries("")[0].Path)
	j.Clear("")
	assert.Empty(t, j.Entries(""))
	do(t, j, exchange{method: "GET", path: "/9"})
	assert.Len(t, j.Entries(""), 1)
}

// TestEntriesContainNothingOfOlderRequests fills a ring of size one with large
// requests and then with an empty one.
func TestEntriesContainNothingOfOlderRequests(t *testing.T) {
	t.Parallel()
	j := newJournal(1)
	large := exchange{
		method: "POST", path: "/v2/transactions?a=b", header: map[string]string{"apiKey": "sk_test_mine", "X-Request-Id": "req_1"},
		body: `{"amount":1}`, status: 500, response: `{"title":"x"}`,
	}
	faulty := j.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Faulty", "1")
		w.Header().Set("Retry-After", "7")
		if n, ok := w.(interface{ NoteFault(text string) }); ok {
			n.NoteFault("reset-before")
		}
		panic(http.ErrAbortHandler)
	}))
	for range 50 {
		do(t, j, large)
		assert.Panics(t, func() {
			faulty.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPut, "/faulty", strings.NewReader("1234567890")))
		})
	}
	j.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).
		ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/quiet", nil))
	e := j.Entries("")[0]
	e.Duration = 0
	assert.Equal(t, journal.Entry{
		ID: 101, At: start, Method: "GET", Path: "/quiet", Header: http.Header{}, Status: 200, ResponseHeader: http.Header{},
	}, e)
}

// TestListedEntriesDoNotChange overwrites the ring while its entries are listed.
func TestListedEntriesDoNotChange(t *testing.T) {
	t.Parallel()
	var overwrite func()
	j := journal.New(journal.Config{
		Size: 4,
		Now:  func() time.Time { return start },
		Operation: func(*http.Request) string {
			overwrite()
			return ""
		},
		Account: func(*http.Request) string { return "" },
	})
	record := func(path string) {
		text := `{"path":"` + path + `"}`
		do(t, j, exchange{method: "GET", path: path, body: text, response: text})
	}
	overwrite = func() {
		for range 20 {
			record("/later")
		}
	}
	for n := range 4 {
		record(fmt.Sprint("/", n))
	}
	entries := j.Entries("")
	require.Len(t, entries, 4)
	for n, e := range entries {
		assert.Equal(t, fmt.Sprint("/", n), e.Path)
		assert.JSONEq(t, fmt.Sprintf(`{"path":"/%d"}`, n), e.Body)
		assert.Equal(t, e.Body, e.Response)
	}
}

// TestTheRestOfTheBodyStaysReadable reads what the handler has not read, as middleware
// around the journal may.
func TestTheRestOfTheBodyStaysReadable(t *testing.T) {
	t.Parallel()
	j := newJournal(1)
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("left"))
	j.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(httptest.NewRecorder(), r)
	for range 3 {
		do(t, j, exchange{body: "another's"})
	}
	rest, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	assert.Equal(t, "left", string(rest))
}

func TestDurationIsWallTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := newJournal(0)
		h := j.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(time.Second) }))
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
		assert.Equal(t, time.Second, j.Entries("")[0].Duration)
	})
}

func TestBrokenConnectionsAreRecorded(t *testing.T) {
	t.Parallel()
	j := newJournal(0)
	h := j.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n, ok := w.(interface{ NoteFault(text string) }); ok {
			n.NoteFault("lose-response")
		}
		panic(http.ErrAbortHandler)
	}))
	assert.PanicsWithError(t, http.ErrAbortHandler.Error(), func() {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	})
	e := j.Entries("")[0]
	assert.True(t, e.Broken)
	assert.Zero(t, e.Status)
	assert.Equal(t, "lose-response", e.Fault)
}

func TestFindAndNearMisses(t *testing.T) {
	t.Parallel()
	j := newJournal(0)
	for _, path := range []string{"POST /v2/transactions", "POST /v2/transaction", "GET /v2/transfers", "PUT /v2/transactions/1/refund", "GET /v2/subscriptions"} {
		method, path, _ := strings.Cut(path, " ")
		do(t, j, exchange{method: method, path: path})
	}
	paths := func(entries []journal.Entry) (list []string) {
		for _, e := range entries {
			list = append(list, e.Method+" "+e.Path)
		}
		return list
	}
	assert.Len(t, j.Find("", ""), 5)
	assert.Equal(t, []string{"POST /v2/transactions"}, paths(j.Find("", "transactions.create")))
	assert.Equal(t, []string{"POST /v2/transactions"}, paths(j.Find("", "POST /v2/transactions")))
	assert.Equal(t, []string{"PUT /v2/transactions/1/refund"}, paths(j.Find("", "/v2/transactions/{id}/refund")))
	assert.Empty(t, j.Find("nobody", ""))

	assert.Equal(t, []string{"POST /v2/transaction"}, paths(j.NearMisses("", "POST /v2/transactions")))
	assert.Equal(t, []string{"PUT /v2/transactions/1/refund"}, paths(j.NearMisses("", "POST /v2/transactions/{id}/refund"))[:1])
	assert.Equal(t, []string{"POST /v2/transactions"}, paths(j.NearMisses("", "transaction.create")))
	assert.Equal(t, []string{"POST /v2/transaction", "POST /v2/transactions"}, paths(j.NearMisses("", "/v2/transactio")), "closest first")
	assert.Equal(t, "PUT /v2/transactions/1/refund", paths(j.NearMisses("", "/v2/transactions/*/refunds"))[0], "a path parameter is not a difference")
	require.Empty(t, j.NearMisses("", "GET /v1/account/balance"))
	for range 4 {
		do(t, j, exchange{method: "GET", path: "/a/b"})
	}
	assert.Len(t, j.NearMisses("", "/a/bcde"), 3, "at most three entries, at an edit distance of at most three")
	assert.Empty(t, j.NearMisses("", "/a/bcdef"))
}

// connection is the connection of a client.
type connection struct {
	*httptest.ResponseRecorder

	aborted func()
}

func (c connection) Abort(error) { c.aborted() }

func TestARequestIsRecordedBeforeItsConnectionIsReset(t *testing.T) {
	t.Parallel()
	j := newJournal(0)
	noticed := 0
	w := connection{httptest.NewRecorder(), func() {
		noticed++
		assert.Len(t, j.Entries("sk_test_mine"), 1)
	}}
	r := httptest.NewRequest(http.MethodPost, "/v2/transactions", nil)
	r.Header.Set("Apikey", "sk_test_mine")
	reset := j.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { memory.Reset(w) }))
	assert.PanicsWithValue(t, http.ErrAbortHandler, func() { reset.ServeHTTP(w, r) })
	assert.Equal(t, 1, noticed)
	assert.True(t, j.Entries("sk_test_mine")[0].Broken)
}
