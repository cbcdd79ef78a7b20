package mockserver_test

import (
	"crypto/rand"
	"html"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
)

const consoleAt = "/__mock/console"

// browser reads pages and submits their forms, like a browser without
// JavaScript.
type browser struct {
	t  *testing.T
	gw *mockserver.Server
}

// shown is a displayed page.
type shown struct {
	path   string
	status int
	header http.Header
	body   string
}

// ask sends a request as a browser would.
func (b browser) ask(method, path string, form url.Values, header ...string) shown {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, "http://localhost"+path, strings.NewReader(form.Encode()))
	require.NoError(b.t, err)
	r.Header.Set("Accept", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8")
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(header); i += 2 {
		if r.Header.Set(header[i], header[i+1]); header[i] == "Host" {
			r.Host = header[i+1]
		}
	}
	resp, err := b.gw.Transport().RoundTrip(r)
	require.NoError(b.t, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(b.t, err)
	return shown{path, resp.StatusCode, resp.Header, string(text)}
}

func (b browser) get(path string) shown {
	b.t.Helper()
	p := b.ask(http.MethodGet, path, nil)
	require.Equal(b.t, http.StatusOK, p.status, "%s: %s", path, p.body)
	return p
}

// send sends a request of a program, which a page then lists.
func (b browser) send(method, path, body string) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, "http://localhost"+path, strings.NewReader(body))
	require.NoError(b.t, err)
	r.Header.Set("Authorization", "Bearer "+b.gw.Key())
	r.Header.Set("Content-Type", "application/json")
	resp, err := b.gw.Transport().RoundTrip(r)
	require.NoError(b.t, err)
	require.NoError(b.t, resp.Body.Close())
}

var (
	postForm = regexp.MustCompile(`(?s)<form[^>]* method="post" action="([^"]*)".*?</form>`)
	input    = regexp.MustCompile(`<(?:input|textarea)[^>]* name="([^"]*)"(?:[^>]* value="([^"]*)")?`)
	choice   = regexp.MustCompile(`(?s)<select name="([^"]*)">.*?<option value="([^"]*)" selected>`)
	link     = regexp.MustCompile(`href="(/[^"#]*)"`)
)

// text is the page with its entities decoded.
func (p shown) text() string { return html.UnescapeString(p.body) }

// form has the fields that a button submits.
type form struct {
	action string
	fields url.Values
}

func (p shown) forms() (list []form) {
	for _, found := range postForm.FindAllStringSubmatch(p.body, -1) {
		f := form{html.UnescapeString(found[1]), url.Values{}}
		for _, in := range append(input.FindAllStringSubmatch(found[0], -1), choice.FindAllStringSubmatch(found[0], -1)...) {
			f.fields.Add(html.UnescapeString(in[1]), html.UnescapeString(in[2]))
		}
		list = append(list, f)
	}
	return list
}

// form returns the form of a button.
func (p shown) form(t *testing.T, label string) form {
	t.Helper()
	for _, f := range p.forms() {
		if f.fields.Get("label") == label {
			return f
		}
	}
	require.Failf(t, "no such button", "%q on %s", label, p.path)
	return form{}
}

// click submits a form and returns the next page.
func (b browser) click(f form, fields ...string) shown {
	b.t.Helper()
	for i := 0; i < len(fields); i += 2 {
		f.fields.Set(fields[i], fields[i+1])
	}
	p := b.ask(http.MethodPost, f.action, f.fields)
	if p.status == http.StatusSeeOther {
		return b.get(p.header.Get("Location"))
	}
	return p
}

func TestBrowsersGetTheConsoleAndProgramsTheInterface(t *testing.T) {
	t.Parallel()
	b := browser{t, mockserver.Run(t)}
	for _, path := range []string{"/", "/__mock", "/__mock/", consoleAt, consoleAt + "/"} {
		p := b.get(path)
		assert.Contains(t, p.body, "Virtual clock", path)
		assert.Equal(t, "text/html; charset=utf-8", p.header.Get("Content-Type"))
	}
	for _, accept := range []string{"*/*", "application/json"} {
		p := b.ask(http.MethodGet, "/", nil, "Accept", accept)
		assert.Equal(t, http.StatusNotFound, p.status)
		assert.Contains(t, p.body, "UNKNOWN_PATH")
	}
	p := b.ask(http.MethodGet, "/v2/transactions", nil)
	assert.Contains(t, p.body, "UNAUTHORIZED", "a browser that asks for the interface gets it")
	assert.Equal(t, http.StatusNotFound, b.ask(http.MethodGet, consoleAt+"/nothing", nil).status)
	assert.Equal(t, http.StatusMethodNotAllowed, b.ask(http.MethodPost, consoleAt+"/transactions", url.Values{}).status)
}

func TestTheConsoleCanBeSwitchedOff(t *testing.T) {
	t.Parallel()
	b := browser{t, mockserver.Run(t, mockserver.WithConsole(false))}
	for _, path := range []string{"/", "/__mock/", consoleAt, consoleAt + "/style.css"} {
		assert.Equal(t, http.StatusNotFound, b.ask(http.MethodGet, path, nil).status, path)
	}
}

// A form is accepted only if a page of this console created it, in the same
// browser.
func TestAForgedFormDoesNothing(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	b := browser{t, gw}
	for name, c := range map[string]struct {
		header []string
		change func(url.Values)
		status int
	}{
		"another origin":    {[]string{"Origin", "http://evil.test"}, nil, http.StatusForbidden},
		"another site":      {[]string{"Sec-Fetch-Site", "cross-site"}, nil, http.StatusForbidden},
		"a name of its own": {[]string{"Host", "evil.test"}, nil, http.StatusMisdirectedRequest},
		"no token":          {nil, func(v url.Values) { v.Del("token") }, http.StatusForbidden},
		"a token made up":   {nil, func(v url.Values) { v.Set("token", "a.b") }, http.StatusForbidden},
		"a token cut":       {nil, func(v url.Values) { v.Set("token", v.Get("token")[:20]) }, http.StatusForbidden},
		"another's token": {nil, func(v url.Values) {
			v.Set("token", (browser{t, mockserver.Run(t)}).get("/").form(t, "+1 day").fields.Get("token"))
		}, http.StatusForbidden},
		"no call":            {nil, func(v url.Values) { v.Del("call") }, http.StatusBadRequest},
		"an unknown call":    {nil, func(v url.Values) { v.Set("call", "POST /__mock/nothing") }, http.StatusNotFound},
		"a page as its call": {nil, func(v url.Values) { v.Set("call", "POST /__mock/console/do") }, http.StatusNotFound},
	} {
		f := b.get("/").form(t, "+1 day")
		if c.change != nil {
			c.change(f.fields)
		}
		before := gw.Clock.Now()
		assert.Equal(t, c.status, b.ask(http.MethodPost, f.action, f.fields, c.header...).status, name)
		assert.Equal(t, before, gw.Clock.Now(), name)
	}
	assert.Equal(t, http.StatusMethodNotAllowed, b.ask(http.MethodGet, consoleAt+"/do", nil).status)
}

func TestAFormActsOnce(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	b := browser{t, gw}
	f := b.get("/").form(t, "+1 day")
	before := gw.Clock.Now()
	assert.Contains(t, b.click(f).text(), "+1 day: done.")
	assert.Contains(t, b.click(f).body, "it was not executed again")
	assert.Equal(t, 24*time.Hour, gw.Clock.Now().Sub(before))

	f = b.get("/").form(t, "Advance")
	failed := b.click(f, "t.to", "2000-01-01T00:00")
	assert.Equal(t, http.StatusBadRequest, failed.status)
	assert.Contains(t, failed.body, "the clock can&#39;t go backwards")
	assert.Contains(t, b.click(f, "t.to", "2027-03-01T00:00").body, "Advance: done.", "a form that failed can be corrected")
}

// A form redirects only to pages of the console, whatever target it requests.
func TestAFormRedirectsWithinTheConsoleOnly(t *testing.T) {
	t.Parallel()
	b := browser{t, mockserver.Run(t)}
	for _, back := range []string{"https://evil.test/", "//evil.test/", `/\evil.test/`, "/v2/transactions", "/__mock/consolex", "javascript:alert(1)", "%zz", ""} {
		f := b.get("/").form(t, "+1 hour")
		f.fields.Set("back", back)
		p := b.ask(http.MethodPost, f.action, f.fields)
		to, err := url.Parse(p.header.Get("Location"))
		require.NoError(t, err)
		assert.Equal(t, consoleAt, to.Path, back)
		assert.Empty(t, to.Host, back)
	}
}

func TestPagesLoadAndRunNothingElse(t *testing.T) {
	t.Parallel()
	b := browser{t, mockserver.Run(t)}
	for _, path := range []string{"/", consoleAt + "/style.css", consoleAt + "/script.js", consoleAt + "/faults"} {
		h := b.get(path).header
		for _, part := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"} {
			assert.Contains(t, h.Get("Content-Security-Policy"), part, path)
		}
		assert.NotContains(t, h.Get("Content-Security-Policy"), "unsafe", path)
		assert.Equal(t, "nosniff", h.Get("X-Content-Type-Options"), path)
	}
}

// consoleShop is a gateway with resources in many states; it returns what the
// pages must not show.
func consoleShop(t *testing.T, opts ...mockserver.Option) (gw *mockserver.Server, secrets []string) {
	t.Helper()
	gw = mockserver.Run(t, append([]mockserver.Option{mockserver.WithSeed(3)}, opts...)...)
	client := gw.Client()
	ctx := t.Context()
	const cpf = "11144477735"
	create := func(method gateway.Method, token gateway.CardToken) string {
		tx, err := client.Transactions.Create(ctx, gateway.TransactionParams{
			Amount: 12_990, Method: method, Token: token, Products: []gateway.Product{{Name: "Book", Price: 12_990, Quantity: 1}},
			Buyer: gateway.BuyerParams{
				Name: "Ana", Email: "ana@example.com", Document: &gateway.Document{Type: "CPF", Number: cpf},
				Address: &gateway.Address{Street: "Rua", City: "São Paulo", State: "SP", ZipCode: "01310-100", Country: "BR"},
			},
		})
		require.NoError(t, err)
		return tx.ID
	}
	for _, token := range []gateway.CardToken{"pgct_ok_secret1", "pgct_paid_secret2", "pgct_3ds_secret3", "pgct_refused_secret4"} {
		create(gateway.CreditCard, token)
	}
	create(gateway.Voucher, "")
	require.NoError(t, gw.Transactions.Expire(create(gateway.Voucher, "")))
	create(gateway.Pix, "")
	customer, err := client.Customers.Create(ctx, gateway.CustomerParams{Name: "Bia", Email: "bia@example.com", Document: &gateway.Document{Type: "CPF", Number: cpf}})
	require.NoError(t, err)
	for _, p := range []gateway.SubscriptionParams{
		{Token: "pgct_ok_secret5"}, {PaymentMethod: gateway.SubscriptionPixAutomatic}, {PaymentMethod: gateway.SubscriptionPixAutomatic},
	} {
		p.CustomerID, p.Amount, p.Interval = customer.ID, 4990, gateway.IntervalMonth
		s, err := client.Subscriptions.Create(ctx, p)
		require.NoError(t, err)
		if p.Token == "" && len(secrets) == 0 {
			require.NoError(t, gw.Subscriptions.Authorize(s.ID))
			secrets = append(secrets, cpf)
		}
	}
	const pixKey = "till-7@example.com"
	for step := range 3 {
		tr, err := client.Transfers.Create(ctx, gateway.TransferParams{Amount: 2500, PixKeyType: gateway.PixKeyEmail, PixKeyValue: pixKey})
		require.NoError(t, err)
		if step == 1 {
			require.NoError(t, gw.Transfers.Process(tr.ID))
		}
		if step == 2 {
			require.NoError(t, gw.Transfers.Analyse(tr.ID))
		}
	}
	const signing = "whsec_never_shown"
	_, err = gw.Account(gw.Key()).Webhooks.AddEndpoint(mockserver.Endpoint{
		Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), Secret: gateway.NewSecret(signing),
	})
	require.NoError(t, err)
	paused, err := gw.Account(gw.Key()).Webhooks.AddEndpoint(mockserver.Endpoint{URL: "http://127.0.0.1:1/paused"})
	require.NoError(t, err)
	require.NoError(t, gw.Account(gw.Key()).Webhooks.PauseEndpoint(paused.ID))
	gw.Account(gw.Key()).Webhooks.Hold()
	create(gateway.Pix, "")
	consoleLinks(t, gw)
	require.NoError(t, gw.Account(gw.Key()).Faults.Add(mockserver.Status(503).On("transfers.create").Times(1)))
	return gw, append(secrets, pixKey, signing, "secret1", "secret2", "secret3", "secret4", "secret5")
}

// consoleLinks makes checkout links with a session in every state that a button
// acts on, and a v1 payment.
func consoleLinks(t *testing.T, gw *mockserver.Server) {
	t.Helper()
	client, ctx := gw.Client(), t.Context()
	for range 2 {
		l, err := client.CheckoutLinks.Create(ctx, gateway.CheckoutLinkParams{Amount: 100, Title: "Shirt"})
		require.NoError(t, err)
		s, err := client.CheckoutSessions.Open(ctx, l.Slug())
		require.NoError(t, err)
		_, err = client.CheckoutSessions.Update(ctx, l.Slug(), s.SessionToken, gateway.CheckoutSessionParams{
			PaymentMethod: gateway.Pix, Buyer: gateway.CheckoutBuyer{Name: "Ana", Email: "ana@example.com"},
		})
		require.NoError(t, err)
	}
	p := plane{t: t, gw: gw, key: gw.Key()}
	do[object](p, http.MethodPost, "/snapshots", "")
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/pix/v1/payment",
		strings.NewReader(`{"type":"PIX","payer":{"fullName":"Ana","document":"11144477735"},"transaction":{"value":500}}`))
	require.NoError(t, err)
	r.Header.Set("Apikey", gw.Key())
	r.Header.Set("Content-Type", "application/json")
	resp, err := gw.Transport().RoundTrip(r)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Less(t, resp.StatusCode, 300)
}

// visit reads every page that is reachable from the first one, but only one of
// the many pages about calls.
func (b browser) visit() map[string]shown {
	pages := map[string]shown{}
	waiting := []string{"/", consoleAt + "/reference/transactions_create"}
	for len(waiting) > 0 {
		path := waiting[0]
		waiting = waiting[1:]
		if _, seen := pages[path]; seen || !strings.HasPrefix(path, consoleAt) && path != "/" ||
			strings.Contains(path, "/find") || strings.Contains(path, "/reference/") && len(pages) > 1 {
			continue
		}
		pages[path] = b.get(path)
		for _, found := range link.FindAllStringSubmatch(pages[path].body, -1) {
			waiting = append(waiting, html.UnescapeString(found[1]))
		}
	}
	return pages
}

// resources lists the pages of single resources.
func (b browser) resources() (list []string) {
	for _, kind := range [...]string{"transactions", "subscriptions", "transfers", "links"} {
		for _, found := range link.FindAllStringSubmatch(b.get(consoleAt+"/"+kind+"?limit=100").body, -1) {
			if strings.HasPrefix(found[1], consoleAt+"/"+kind+"/") && !slices.Contains(list, found[1]) {
				list = append(list, found[1])
			}
		}
	}
	return list
}

// disputes is a gateway of the live dialect with a paid Pix and a disputed one.
func disputes(t *testing.T) *mockserver.Server {
	t.Helper()
	gw := mockserver.Run(t, mockserver.WithDialect(mockserver.Live))
	for i := range 2 {
		params := order("")
		params.Buyer.Document = &gateway.Document{Type: gateway.CPF, Number: "11144477735"}
		tx, err := gw.Client().Transactions.Create(t.Context(), params)
		require.NoError(t, err)
		require.NoError(t, gw.Transactions.Pay(tx.ID))
		if i > 0 {
			require.NoError(t, gw.Transactions.OpenDispute(tx.ID))
		}
	}
	return gw
}

// The console and the control plane have the same features.
func TestTheConsoleDoesWhatTheControlPlaneDoes(t *testing.T) {
	t.Parallel()
	gw, _ := consoleShop(t)
	buttons := map[string]string{}
	for _, gw := range []*mockserver.Server{gw, mockserver.Run(t), disputes(t)} { // deliveries of the first are held
		for path, p := range (browser{t, gw}).visit() {
			if strings.HasPrefix(path, consoleAt+"/reference/") {
				continue // every call has a page
			}
			for _, f := range p.forms() {
				buttons[f.fields.Get("call")] = path
			}
		}
	}
	calls := map[string]bool{}
	for _, call := range controlCalls() {
		if !strings.HasPrefix(call, "GET ") && call != "POST /__mock/requests/wait" { // the page lists those that come
			calls[call] = true
		}
	}
	for call := range calls {
		assert.Contains(t, buttons, call, "no page has a button for it")
	}
	for call, path := range buttons {
		if strings.Contains(call, "/__mock/") {
			assert.True(t, calls[call], "%s on %s is not a call of the control plane", call, path)
		}
	}
	assert.Contains(t, slices.Collect(maps.Keys(buttons)), "PUT /v2/transactions/{id}/refund")
}

// Every button works in every state: the control plane accepts each call that a
// resource's page offers.
func TestEveryButtonOfAResourceWorks(t *testing.T) {
	t.Parallel()
	gw, _ := consoleShop(t)
	b := browser{t, gw}
	kept, err := gw.Snapshot()
	require.NoError(t, err)
	tried := map[string]bool{}
	for _, path := range b.resources() {
		for i := range b.get(path).forms() {
			require.NoError(t, gw.Restore(kept))
			f := b.get(path).forms()[i]
			label := f.fields.Get("label")
			if label == "Refund" && f.fields.Has("n.amount") {
				f.fields.Set("n.amount", "1")
			}
			assert.Contains(t, b.click(f).text(), label+": done.", "%s on %s", label, path)
			tried[f.fields.Get("call")] = true
		}
	}
	assert.GreaterOrEqual(t, len(tried), 23)
}

func TestPagesShowNoSecret(t *testing.T) {
	t.Parallel()
	gw, secrets := consoleShop(t)
	b := browser{t, gw}
	_, err := gw.Account("sk_test_another_shop").Webhooks.AddEndpoint(mockserver.Endpoint{URL: "http://127.0.0.1:1/"})
	require.NoError(t, err)
	status, _ := plane{t: t, gw: gw, key: "sk_test_another_shop"}.call(http.MethodGet, "/endpoints", "") // opens the account
	require.Equal(t, http.StatusOK, status)
	secrets = append(secrets, "another_shop", "4111111111111111", "39053344705", "390.533.447-05", "hunter2x", "12ABC34501DE35")
	for _, request := range [][3]string{
		{http.MethodPost, "/v2/transactions", `{"card":{"number":"4111111111111111"},"amount":100}`},
		{http.MethodPost, "/v2/transactions", `{"card":{"number":4111111111111111},"notify_url":"https://user:hunter2x@shop.test/hook"}`},
		{http.MethodPost, "/v2/customers", `{"name":"Ana, CPF 390.533.447-05","metadata":"{\"cnpj\":\"12ABC34501DE35\"}"}`},
		{http.MethodGet, "/v2/customers?document_number=39053344705&q=4111111111111111", ""},
		{http.MethodGet, "/v2/customers/39053344705", ""},
		{http.MethodGet, "/v2/transactions/4111111111111111", ""},
	} {
		b.send(request[0], request[1], request[2])
	}
	for path, p := range b.visit() {
		text := p.text()
		for _, secret := range secrets {
			if at := strings.Index(text, secret); at >= 0 {
				assert.Fail(t, "a page shows a secret", "%s: …%s…", path, text[max(0, at-200):min(len(text), at+100)])
			}
			assert.NotContains(t, path, secret)
		}
	}
}

func TestAVoucherShowsItsBarCode(t *testing.T) {
	t.Parallel()
	gw, _ := consoleShop(t)
	vouchers, err := gw.Client().Transactions.List(t.Context(), gateway.TransactionListParams{Methods: []gateway.Method{gateway.Voucher}})
	require.NoError(t, err)
	tx, err := gw.Client().Transactions.Get(t.Context(), vouchers.Items[0].ID)
	require.NoError(t, err)
	page := (browser{t, gw}).get("/__mock/console/transactions/" + tx.ID).body
	assert.Contains(t, page, `<img class="bars" src="data:image/svg`)
	assert.Contains(t, page, tx.Voucher.DigitableLine)
}

// In the live dialect a transaction may have no number of installments; 0 would look like a
// mistake.
func TestAPageShowsOnlyInstallmentsThatExist(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t, mockserver.WithDialect(mockserver.Live))
	page := func(params gateway.TransactionParams) string {
		params.Buyer.Document = &gateway.Document{Type: gateway.CPF, Number: "52998224725"}
		tx, err := gw.Client().Transactions.Create(t.Context(), params)
		require.NoError(t, err)
		return (browser{t, gw}).get(consoleAt + "/transactions/" + tx.ID).text()
	}
	assert.NotContains(t, page(order("by-pix")), "Installments")
	card := order("by-card")
	card.Method, card.Token, card.Installments = gateway.CreditCard, "pgct_ok_installments", 3
	assert.Contains(t, page(card), "<dt>Installments</dt><dd>3</dd>")
}

// Accounts are isolated from each other: a page shows only one account.
func TestAPageShowsOneAccount(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	mine, err := gw.Account("sk_test_another").Client().Transactions.Create(t.Context(), gateway.TransactionParams{
		Amount: 100, Method: gateway.Pix, Buyer: gateway.BuyerParams{Name: "Ana", Email: "ana@example.com"},
		Products: []gateway.Product{{Name: "Book", Price: 100, Quantity: 1}},
	})
	require.NoError(t, err)
	b := browser{t, gw}
	assert.Equal(t, http.StatusNotFound, b.ask(http.MethodGet, consoleAt+"/transactions/"+mine.ID, nil).status)
	assert.NotContains(t, b.get(consoleAt+"/transactions").body, mine.ID)
	at := regexp.MustCompile(consoleAt + `/~acct_[0-9a-f]+`).FindString(b.get(consoleAt + "/accounts").body)
	require.NotEmpty(t, at)
	assert.Contains(t, b.get(at+"/transactions").body, mine.ID)
	p := b.click(b.get(at+"/transactions/"+mine.ID).form(t, "Pay"))
	assert.Contains(t, p.body, "Pay: done.")
	assert.True(t, strings.HasPrefix(p.path, at), p.path)

	assert.Contains(t, b.get(consoleAt).text(), "This account is empty.")
	_, err = gw.Client().Transactions.Create(t.Context(), order("mine"))
	require.NoError(t, err)
	assert.NotContains(t, b.get(consoleAt).text(), "This account is empty.")
	assert.Contains(t, b.get(consoleAt).text(), "1 other account has activity")
	assert.NotContains(t, b.get(consoleAt+"/transactions").text(), "other account has activity")
}

// What happens after a page has read its data and before its script listens is in
// its stream of events.
func TestAPagesEventStreamBeginsWhereItsDataEnds(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	address, err := gw.Listen("127.0.0.1:0")
	require.NoError(t, err)
	p := (browser{t, gw}).get(consoleAt)
	_, err = gw.Client().Transactions.Create(t.Context(), order("order-1"))
	require.NoError(t, err)
	events := regexp.MustCompile(` data-events="([^"]*)"`).FindStringSubmatch(p.body)
	require.Len(t, events, 2)
	f := stream(t, address+html.UnescapeString(events[1]))
	_, err = gw.Client().Transactions.Create(t.Context(), order("order-2"))
	require.NoError(t, err)
	_, kind, data, ok := f.next()
	require.True(t, ok, "the stream ended without an event")
	assert.Equal(t, "transition", kind)
	assert.Equal(t, "order-1", data["transition"].(map[string]any)["reference"])
}

// Markup in a merchant's or a buyer's input is escaped.
func TestPagesEscapeWhatPeopleWrite(t *testing.T) {
	t.Parallel()
	const markup = `"><script>alert(1)</script>'`
	gw := mockserver.Run(t)
	_, err := gw.Client().Transactions.Create(t.Context(), gateway.TransactionParams{
		ExternalRef: markup, Amount: 100, Method: gateway.Pix, Metadata: markup, Buyer: gateway.BuyerParams{Name: markup, Email: "ana@example.com"},
		Products: []gateway.Product{{Name: markup, Price: 100, Quantity: 1}},
	})
	require.NoError(t, err)
	b := browser{t, gw}
	for path, p := range b.visit() {
		assert.NotContains(t, p.body, "<script>alert", path)
	}
	p := b.ask(http.MethodGet, consoleAt+"/find?q="+url.QueryEscape(markup+"x"), nil)
	assert.NotContains(t, p.body, "<script>alert")
}

// The console's pages take no memory until one is requested.
func TestTheConsoleIsBuiltOnFirstUse(t *testing.T) { //nolint:paralleltest // counts allocations
	with := testing.AllocsPerRun(20, func() { newAndClose(t) })
	without := testing.AllocsPerRun(20, func() { newAndClose(t, mockserver.WithConsole(false)) })
	assert.LessOrEqual(t, with-without, 60.0)
}

func newAndClose(t *testing.T, opts ...mockserver.Option) {
	t.Helper()
	gw, err := mockserver.New(opts...)
	require.NoError(t, err)
	require.NoError(t, gw.Close())
}

// Viewing pages changes neither the resources nor the clock, nor the ids that a
// seed gives to later resources.
func TestViewingPagesChangesNothing(t *testing.T) {
	t.Parallel()
	gw, _ := consoleShop(t)
	before, err := gw.Snapshot()
	require.NoError(t, err)
	requests := len(gw.Requests.All())
	(browser{t, gw}).visit()
	after, err := gw.Snapshot()
	require.NoError(t, err)
	assert.Equal(t, string(before), string(after))
	assert.Len(t, gw.Requests.All(), requests)
}

// Each payment is counted once in its day, and a snapshot keeps the counts.
func TestTheConsoleCountsTheMoneyOfEachDay(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	client := gw.Client()
	pay := func() *gateway.Transaction {
		tx, err := client.Transactions.Create(t.Context(), gateway.TransactionParams{
			Amount: 1000, Method: gateway.CreditCard, Token: gateway.CardToken("pgct_paid_" + rand.Text()),
			Buyer: gateway.BuyerParams{Name: "Ana", Email: "ana@example.com"}, Products: []gateway.Product{{Name: "Book", Price: 1000, Quantity: 1}},
		})
		require.NoError(t, err)
		return tx
	}
	pay()
	tx := pay()
	require.NoError(t, gw.Clock.Advance(24*time.Hour))
	_, err := client.Transactions.Refund(t.Context(), tx.ID, gateway.RefundParams{Amount: 300})
	require.NoError(t, err)
	kept, err := gw.Snapshot()
	require.NoError(t, err)
	pay()
	require.NoError(t, gw.Restore(kept))
	body := (browser{t, gw}).get("/").text()
	assert.Contains(t, body, "2027-01-04: in BRL 20.00, out BRL 0.00")
	assert.Contains(t, body, "2027-01-05: in BRL 0.00, out BRL 3.00")
	assert.Contains(t, body, "BRL 17.00")
}
