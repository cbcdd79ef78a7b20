package hosted_test

import (
	"html"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver"
)

// shop is a merchant with a checkout link.
type shop struct {
	t      *testing.T
	gw     *mockserver.Server
	client *gateway.Client
	slug   string
}

// newShop makes a link with the members of a JSON object.
func newShop(t *testing.T, link string, opts ...mockserver.Option) *shop {
	t.Helper()
	gw := mockserver.Run(t, append([]mockserver.Option{mockserver.WithSeed(1)}, opts...)...)
	s := &shop{t: t, gw: gw, client: gw.Client()}
	s.slug = path.Base(s.link(link))
	return s
}

const mugs = `{"title":"Order 17","products":[{"external_id":"MUG-1","name":"Mug","price":3990,"quantity":2}]}`

// link creates a checkout link and returns its URL.
func (s *shop) link(body string) string {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, mockserver.BaseURL+"/v2/checkout-links", strings.NewReader(body))
	require.NoError(s.t, err)
	r.Header.Set("Authorization", "Bearer "+s.gw.Key())
	r.Header.Set("Content-Type", "application/json")
	resp, err := s.gw.Transport().RoundTrip(r)
	require.NoError(s.t, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	require.NoError(s.t, resp.Body.Close())
	require.Equal(s.t, http.StatusCreated, resp.StatusCode, string(text))
	return regexp.MustCompile(`"url":"([^"]+)"`).FindStringSubmatch(string(text))[1]
}

// transactions lists what the merchant has, the newest first.
func (s *shop) transactions() (list []gateway.Transaction) {
	s.t.Helper()
	for item, err := range s.client.Transactions.All(s.t.Context(), gateway.TransactionListParams{}) {
		require.NoError(s.t, err)
		list = append(list, *item)
	}
	return list
}

// only returns the one transaction.
func (s *shop) only() gateway.Transaction {
	s.t.Helper()
	list := s.transactions()
	require.Len(s.t, list, 1)
	return list[0]
}

// buyer is a browser without JavaScript.
type buyer struct {
	shop   *shop
	http   *http.Client
	header map[string]string

	status int
	page   string
	resp   http.Header
	at     string // the path it ended at
}

func (s *shop) buyer(header ...string) *buyer {
	s.t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(s.t, err)
	b := &buyer{shop: s, http: &http.Client{Transport: s.gw.Transport(), Jar: jar}, header: map[string]string{}}
	for i := 0; i+1 < len(header); i += 2 {
		b.header[header[i]] = header[i+1]
	}
	return b
}

// visits returns a buyer who has opened the link.
func (s *shop) visits(header ...string) *buyer {
	s.t.Helper()
	b := s.buyer(header...)
	b.open("")
	require.Equal(s.t, http.StatusOK, b.status, b.page)
	return b
}

func (b *buyer) do(method, target string, form url.Values) {
	b.shop.t.Helper()
	r, err := http.NewRequestWithContext(b.shop.t.Context(), method, mockserver.BaseURL+target, strings.NewReader(form.Encode()))
	require.NoError(b.shop.t, err)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, value := range b.header {
		r.Header.Set(name, value)
	}
	resp, err := b.http.Do(r)
	require.NoError(b.shop.t, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(b.shop.t, err)
	require.NoError(b.shop.t, resp.Body.Close())
	b.status, b.page, b.resp, b.at = resp.StatusCode, string(text), resp.Header, resp.Request.URL.Path
}

// open loads the page and follows redirects.
func (b *buyer) open(rest string) *buyer {
	b.shop.t.Helper()
	b.do(http.MethodGet, "/pay/"+b.shop.slug+rest, nil)
	return b
}

// form returns what the page's forms would send: hidden members, and those that
// the buyer types.
func (b *buyer) form(members ...string) url.Values {
	form := url.Values{}
	for _, input := range regexp.MustCompile(`<input type="hidden" name="(\w+)" value="([^"]*)">`).FindAllStringSubmatch(b.page, -1) {
		form.Set(input[1], html.UnescapeString(input[2]))
	}
	for i := 0; i+1 < len(members); i += 2 {
		form.Set(members[i], members[i+1])
	}
	return form
}

// send submits a form of the page and follows the redirect.
func (b *buyer) send(form url.Values) *buyer {
	b.shop.t.Helper()
	b.do(http.MethodPost, "/pay/"+b.shop.slug, form)
	return b
}

// press presses a button.
func (b *buyer) press(do string) *buyer {
	b.shop.t.Helper()
	return b.send(b.form("do", do))
}

// order is Ana's complete form; members replace hers.
func (b *buyer) order(members ...string) url.Values {
	return b.form(append([]string{
		"do", "submit", "name", "Ana Souza", "email", "ana@example.com", "method", "pix", "document_type", "CPF", "country", "BR", "outcome", "paid", "installments", "1",
	}, members...)...)
}

// pay submits an order and expects the payment page.
func (b *buyer) pay(members ...string) *buyer {
	b.shop.t.Helper()
	b.send(b.order(members...))
	require.Equal(b.shop.t, http.StatusOK, b.status, b.page)
	return b
}

// state returns the class of the page's main element.
func (b *buyer) state() string {
	found := regexp.MustCompile(`<main class="(\w+)">`).FindStringSubmatch(b.page)
	if found == nil {
		return ""
	}
	return found[1]
}

func (b *buyer) shows(text string) {
	b.shop.t.Helper()
	assert.Contains(b.shop.t, html.UnescapeString(b.page), text)
}

// error returns the page's message below a field.
func (b *buyer) error(field string) string {
	found := regexp.MustCompile(`id="` + field + `-error">([^<]*)<`).FindStringSubmatch(b.page)
	if found == nil {
		return ""
	}
	return html.UnescapeString(found[1])
}

// address returns the address that a voucher needs.
func address() []string {
	return []string{"street", "Rua A", "number", "1", "city", "São Paulo", "state", "SP", "zip", "01310100"}
}

// events collects the kinds of webhooks.
func (s *shop) events() func() []string {
	var mu sync.Mutex
	var kinds []string
	s.gw.Webhooks.Send(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		kinds = append(kinds, regexp.MustCompile(`"event_type":"([^"]+)"`).FindStringSubmatch(string(body))[1])
		mu.Unlock()
		w.WriteHeader(http.StatusOK)
	}))
	return func() []string {
		s.t.Helper()
		require.NoError(s.t, s.gw.Wait(s.t.Context()))
		mu.Lock()
		defer mu.Unlock()
		return kinds
	}
}

func TestABuyerPaysByPix(t *testing.T) {
	t.Parallel()
	s := newShop(t, mugs)
	events := s.events()
	b := s.visits()
	assert.Equal(t, "form", b.state())
	b.shows("Order 17")
	b.shows("2 × Mug")
	b.shows("R$\u00a079,80")
	b.pay("document_type", "CPF", "document", "52998224725")
	assert.Equal(t, "pix", b.state())
	tx := s.only()
	read, err := s.client.Transactions.Get(t.Context(), tx.ID)
	require.NoError(t, err)
	b.shows(read.Pix.QRCode)
	b.shows("24:00:00")
	assert.Contains(t, b.page, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0`)
	assert.Equal(t, "Ana Souza", read.Buyer.Name)
	assert.Equal(t, "52998224725", read.Buyer.Document.Number)
	assert.Equal(t, int64(7980), read.Amount)

	before := b.open("/status").page
	assert.Equal(t, before, b.open("/status").page, "nothing has happened")
	require.NoError(t, s.gw.Transactions.Pay(tx.ID))
	assert.NotEqual(t, before, b.open("/status").page, "the page's script gets the change")
	assert.Equal(t, "paid", b.open("").state())
	b.shows(tx.ID)
	assert.Equal(t, []string{"transaction.created", "transaction.pending", "transaction.paid"}, events())
}

func TestABuyerPaysByVoucher(t *testing.T) {
	t.Parallel()
	s := newShop(t, mugs)
	b := s.visits().send(s.visits().order()) // of another visit: nothing was paid
	assert.Empty(t, s.transactions())
	b.shows("nothing was sent")
	b.send(b.order("method", "voucher"))
	assert.Equal(t, http.StatusUnprocessableEntity, b.status)
	for _, field := range []string{"street", "city"} {
		assert.Equal(t, "Please fill this in.", b.error(field), field)
	}
	b.send(b.order(append(address(), "method", "voucher", "zip", "")...))
	assert.Equal(t, "Please fill this in.", b.error("zip"))
	assert.Contains(t, b.page, `value="Rua A"`, "what was typed is not lost")
	b.pay(append(address(), "method", "voucher")...)
	assert.Equal(t, "voucher", b.state())
	read, err := s.client.Transactions.Get(t.Context(), s.only().ID)
	require.NoError(t, err)
	line := read.Voucher.DigitableLine
	b.shows(line[:5] + "." + line[5:10] + " " + line[10:15] + "." + line[15:21] + " ")
	b.shows(" " + line[32:33] + " " + line[33:])
	b.press("pay")
	assert.Equal(t, "paid", b.state())
}

func TestACardHasTheOutcomeThatTheBuyerChose(t *testing.T) {
	t.Parallel()
	for outcome, want := range map[string]struct {
		state  string
		status gateway.TransactionStatus
		text   string
	}{
		"paid":                       {"paid", "paid", "•••• 4242"},
		"captured":                   {"paid", "captured", "•••• 4242"},
		"chargeback":                 {"paid", "paid", ""},
		"ok":                         {"card", "pending", "Waiting for the bank of card"},
		"3ds":                        {"challenge", "pending", "3-D Secure"},
		"refused":                    {"form", "refused", "declined by the issuer"},
		"refused_insufficient_funds": {"form", "refused", "insufficient funds"},
		"refused_expired_card":       {"form", "refused", "expired card"},
		"refused_do_not_honor":       {"form", "refused", "not authorized"},
		"refused_fraud":              {"form", "refused", "suspected fraud"},
	} {
		t.Run(outcome, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, mugs)
			b := s.visits().pay("method", "credit_card", "outcome", outcome, "installments", "3")
			assert.Equal(t, want.state, b.state())
			b.shows(want.text)
			assert.Equal(t, want.status, s.only().Status)
			read, err := s.client.Transactions.Get(t.Context(), s.only().ID)
			require.NoError(t, err)
			assert.Equal(t, 3, read.Installments)
		})
	}
	for _, outcome := range []string{"used", "expired", "made up", ""} {
		t.Run("token "+outcome, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, mugs)
			b := s.visits().send(s.visits().form())
			b.send(b.order("method", "credit_card", "outcome", outcome))
			assert.Equal(t, http.StatusUnprocessableEntity, b.status)
			assert.Contains(t, b.error("outcome"), "choose another test card")
			assert.Empty(t, s.transactions())
		})
	}
}

func TestThreeDSecure(t *testing.T) {
	t.Parallel()
	for _, dialect := range []mockserver.Dialect{mockserver.Document, mockserver.Live} {
		s := newShop(t, mugs, mockserver.WithDialect(dialect))
		b := s.visits().pay("method", "credit_card", "outcome", "3ds")
		b.shows(">15:00<")
		b.press("fail")
		assert.Equal(t, "form", b.state())
		b.shows("3-D Secure failed")
		b.pay("method", "credit_card", "outcome", "3ds").press("pass")
		assert.Equal(t, "paid", b.state())
		list := s.transactions()
		require.Len(t, list, 2)
		assert.Equal(t, gateway.TransactionPaid, list[0].Status)
		assert.Equal(t, gateway.TransactionRefused, list[1].Status)
		b.press("pass")
		b.shows("no longer possible")
	}
}

// A form that is sent again, by a double click or by another tab, is the same
// payment, whatever its state.
func TestADoubleClickPaysOnce(t *testing.T) {
	t.Parallel()
	for _, order := range [][]string{
		{"method", "pix"},
		{"method", "credit_card", "outcome", "paid"},
		{"method", "credit_card", "outcome", "refused"},
		{"method", "credit_card", "outcome", "3ds"},
	} {
		s := newShop(t, mugs)
		b := s.visits()
		form := b.order(order...)
		var clicks sync.WaitGroup
		for range 8 {
			clicks.Go(func() {
				tab := *b
				tab.send(form)
				assert.Equal(t, http.StatusOK, tab.status)
			})
		}
		clicks.Wait()
		b.send(form)
		assert.Len(t, s.transactions(), 1, "%s", order)
	}
}

// A form that is sent again after a restart is still the same payment.
func TestASnapshotKeepsTheAttempts(t *testing.T) {
	t.Parallel()
	s := newShop(t, mugs)
	b := s.visits()
	form := b.order("method", "credit_card", "outcome", "refused")
	b.send(form)
	snapshot, err := s.gw.Snapshot()
	require.NoError(t, err)
	require.NoError(t, s.gw.Restore(snapshot))
	b.send(form).shows("The payment was refused")
	assert.Len(t, s.transactions(), 1)
}

func TestASecondTabShowsTheSamePayment(t *testing.T) {
	t.Parallel()
	s := newShop(t, mugs)
	b := s.visits()
	tab := *b
	tab.open("")
	stale := tab.order("method", "credit_card", "outcome", "paid")
	b.pay("method", "pix")
	tab.send(stale)
	assert.Equal(t, "pix", tab.state())
	assert.Len(t, s.transactions(), 1)
	b.press("pay")
	tab.send(stale)
	assert.Equal(t, "paid", tab.state())
	assert.Equal(t, "paid", tab.open("").state(), "a returning buyer sees the receipt and no form")
	assert.Len(t, s.transactions(), 1)
	tab.press("again")
	assert.Equal(t, "form", tab.state())
	tab.pay("method", "credit_card", "outcome", "paid")
	assert.Len(t, s.transactions(), 2, "a second payment is requested")
}

// A button acts only on the payment that its page shows.
func TestAButtonOfAnEarlierPayment(t *testing.T) {
	t.Parallel()
	s := newShop(t, mugs)
	b := s.visits().pay("method", "pix")
	earlier := b.form("do", "pay")
	b.press("cancel")
	assert.Equal(t, "form", b.state())
	b.shows("was canceled")
	b.pay("method", "voucher", "street", "Rua A", "city", "São Paulo", "zip", "01310100")
	b.send(earlier)
	assert.Equal(t, "voucher", b.state())
	b.shows("no longer possible")
	for _, tx := range s.transactions() {
		assert.NotEqual(t, gateway.TransactionPaid, tx.Status)
	}
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	s := newShop(t, mugs)
	b := s.visits().pay("method", "pix")
	require.NoError(t, s.gw.Clock.Advance(24*time.Hour))
	assert.Equal(t, "form", b.open("").state())
	b.shows("The payment expired")
	b.pay("method", "pix").press("expire")
	assert.Equal(t, "form", b.state())

	b = s.visits()
	require.NoError(t, s.gw.Clock.Advance(30*time.Minute))
	b.send(b.order("name", "Bia"))
	assert.Equal(t, http.StatusGone, b.status)
	b.shows("Your session had expired")
	assert.Contains(t, b.page, `value="Bia"`)
	b.pay("name", "Bia")
	assert.Equal(t, "pix", b.state())

	b = s.visits()
	require.NoError(t, s.gw.Clock.Advance(30*time.Minute))
	b.open("").shows("Your session had expired")
}

func TestAClosedLink(t *testing.T) {
	t.Parallel()
	for reason, end := range map[string]func(*mockserver.Server, string) error{
		"has expired":             func(gw *mockserver.Server, slug string) error { return gw.Checkout.Expire(slug) },
		"taken it off sale":       func(gw *mockserver.Server, slug string) error { return gw.Checkout.Deactivate(slug) },
		"maximum number of times": func(gw *mockserver.Server, slug string) error { return gw.Checkout.Pay(slug) },
	} {
		s := newShop(t, `{"title":"Once","amount":4990,"max_uses":1}`)
		begun := s.visits().pay("method", "pix")
		late, typing := s.visits(), s.visits()
		before := late.open("/status").page
		late.open("")
		form := late.order()
		if strings.HasPrefix(reason, "max") {
			require.NoError(t, s.gw.Transactions.Pay(s.only().ID))
			assert.Equal(t, "paid", begun.open("").state())
		} else {
			require.NoError(t, end(s.gw, s.slug))
			assert.Equal(t, "pix", begun.open("").state(), "what has begun can be paid")
		}
		assert.NotEqual(t, before, typing.open("/status").page)
		late.send(form)
		assert.Equal(t, http.StatusGone, late.status)
		late.shows(reason)
		assert.Equal(t, "gone", s.buyer().open("").state())
		assert.Len(t, s.transactions(), 1)
	}
}

// Two buyers have a Pix each for an item that is sold once: the second can't
// pay, and is not shown as paid.
func TestTheLastItemIsSoldOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t, `{"title":"Once","amount":4990,"max_uses":1}`)
	first, second := s.visits().pay("method", "pix"), s.visits().pay("method", "pix")
	pay := second.form("do", "pay")
	first.press("pay")
	assert.Equal(t, "paid", first.state())
	second.send(pay)
	assert.Equal(t, "gone", second.state())
	second.shows("maximum number of times")
	assert.NotContains(t, first.page, `value="again"`)
}

// A sandbox can set any status of a paid transaction: the page shows it.
func TestAStatusSetAfterThePayment(t *testing.T) {
	t.Parallel()
	for status := range spec.LiveTransactionStatuses.All() {
		s := newShop(t, mugs, mockserver.WithDialect(mockserver.Live))
		b := s.visits().pay("method", "credit_card", "outcome", "paid")
		_, err := s.client.Transactions.SetSandboxStatus(t.Context(), s.only().ID, gateway.SandboxStatusParams{Status: gateway.TransactionStatus(status)})
		require.NoError(t, err)
		paid := slices.Contains([]string{"paid", "captured", "processed"}, status)
		assert.Equal(t, paid, b.open("").state() == "paid", status)
		assert.NotContains(t, b.page, "<h1></h1>", status)
		assert.NotContains(t, b.page, `value="submit"`, status)
	}
}

// The merchant changes a price while the buyer types: no buyer pays an amount that
// they have not seen.
func TestAPriceThatChanges(t *testing.T) {
	t.Parallel()
	s := newShop(t, mugs)
	b := s.visits()
	s.link(`{"products":[{"external_id":"MUG-1","name":"Mug","price":4990}]}`)
	b.send(b.order())
	assert.Equal(t, http.StatusUnprocessableEntity, b.status)
	b.shows("The order has changed")
	assert.Empty(t, s.transactions())
	b.pay()
	assert.Equal(t, int64(9980), s.only().Amount)
}

func TestErrorsAreShownBesideTheirFields(t *testing.T) {
	t.Parallel()
	s := newShop(t, mugs)
	b := s.visits()
	b.send(b.order("name", " ", "email", "ana", "document", "4242 4242 4242 4242", "street", "Rua A", "state", "S."))
	assert.Equal(t, http.StatusUnprocessableEntity, b.status)
	for field, text := range map[string]string{
		"name": "Please fill this in.", "email": "Enter a valid e-mail address.", "document": "Never type a card number here.",
		"city": "Please fill this in.", "state": "Letters and digits only.",
	} {
		assert.Equal(t, text, b.error(field), field)
		assert.Contains(t, b.page, `<a href="#`+field+`">`)
	}
	assert.Empty(t, s.transactions())
}

// A buyer sees all errors at once, also those that the second of the two calls finds.
func TestAllErrorsAtOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t, mugs)
	b := s.visits()
	b.send(b.order("name", "", "email", "", "method", "voucher"))
	assert.Equal(t, http.StatusUnprocessableEntity, b.status)
	for _, field := range []string{"name", "email", "street", "city", "zip"} {
		assert.Equal(t, "Please fill this in.", b.error(field), field)
		assert.Contains(t, b.page, `<a href="#`+field+`">`)
	}
}

// A buyer chooses documents and countries by name.
func TestDocumentsAndCountriesHaveNames(t *testing.T) {
	t.Parallel()
	s := newShop(t, mugs)
	for language, names := range map[string][2]string{
		"en": {"CPF – person (Brazil)", "Brazil"}, "pt-BR": {"CPF – pessoa (Brasil)", "Brasil"}, "es": {"CPF – persona (Brasil)", "Brasil"},
	} {
		b := s.visits("Accept-Language", language)
		b.shows(`<option value="CPF" selected>` + names[0] + `</option>`)
		b.shows(`<option value="BR" selected>` + names[1] + `</option>`)
		for _, set := range []spec.Set{spec.DocumentTypes, spec.Countries} {
			for value := range set.All() {
				assert.NotContains(t, b.page, `<option value="`+value+`"></option>`, language)
			}
		}
	}
}

// One click fills in a buyer with whom every method can be paid.
func TestFillInTestData(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"pix", "voucher", "credit_card"} {
		s := newShop(t, mugs)
		b := s.visits()
		b.shows(`<a href="?fill=yes">Fill in test data</a>`)
		b.open("?fill=yes")
		form := url.Values{}
		for _, found := range regexp.MustCompile(`<input id="(\w+)"[^>]* value="([^"]+)"`).FindAllStringSubmatch(b.page, -1) {
			form.Set(found[1], html.UnescapeString(found[2]))
		}
		assert.Equal(t, "Ana Souza", form.Get("name"))
		order := b.order("method", method, "document_type", "CPF", "country", "BR")
		maps.Copy(order, form)
		b.send(order)
		assert.Equal(t, gateway.Method(method), s.only().Method)
	}
}
