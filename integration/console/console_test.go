package console_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
)

const pagesAt = "/__mock/console"

// xss is markup that must stay text wherever a merchant or buyer can enter it.
const xss = `"><script>window.hacked=1</script><img src=x onerror="window.hacked=1">`

// busyShop is a gateway with at least one resource, event and fault of every
// kind.
type busyShop struct {
	*mockserver.Server
	client *gateway.Client
	base   string

	pix, card, challenge, voucher, late, waiting string // transactions
	subscription, automatic                      string
	transfer, customer, link                     string

	rejected string // the number of a request that broke rules
}

func newShop(t *testing.T, text string, opts ...mockserver.Option) *busyShop {
	t.Helper()
	gw, base := serve(t, opts...)
	s := &busyShop{Server: gw, client: gw.Client(), base: base}
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Mock") == "" && r.ContentLength%7 == 0 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	t.Cleanup(receiver.Close)
	_, err := gw.Account(gw.Key()).Webhooks.AddEndpoint(mockserver.Endpoint{URL: receiver.URL + "/hooks", Secret: gateway.NewSecret("whsec_browser")})
	require.NoError(t, err)
	ctx := t.Context()
	buyer := gateway.BuyerParams{Name: "Ana " + text, Email: "ana@example.com", Document: &gateway.Document{Type: "CPF", Number: "52998224725"}}
	create := func(ref string, method gateway.Method, token gateway.CardToken) string {
		p := gateway.TransactionParams{
			ExternalRef: ref, Amount: 12_990, Method: method, Token: token, Buyer: buyer,
			Products: []gateway.Product{{Name: "Book " + text, Price: 12_990, Quantity: 1}}, Metadata: text,
		}
		p.Buyer.Address = &gateway.Address{Street: "Rua " + text, City: "São Paulo", ZipCode: "01310-100", State: "SP", Country: "BR"}
		tx, err := s.client.Transactions.Create(ctx, p)
		require.NoError(t, err)
		return tx.ID
	}
	s.pix = create("order-1 "+text, gateway.Pix, "")
	s.card = create("order-2", gateway.CreditCard, "pgct_paid_1")
	create("order-3", gateway.CreditCard, "pgct_3ds_1")
	s.voucher = create("order-4", gateway.Voucher, "")
	s.late = create("order-9", gateway.Voucher, "")
	require.NoError(t, gw.Transactions.Expire(s.late))
	customer, err := s.client.Customers.Create(ctx, gateway.CustomerParams{Name: "Bia " + text, Email: "bia@example.com", ExternalRef: "cus-1 " + text})
	require.NoError(t, err)
	s.customer = customer.ID
	subscription, err := s.client.Subscriptions.Create(ctx, gateway.SubscriptionParams{
		CustomerID: customer.ID, Amount: 4990, Interval: gateway.IntervalMonth, Token: "pgct_ok_subscription",
	})
	require.NoError(t, err)
	s.subscription = subscription.ID
	transfer, err := s.client.Transfers.Create(ctx, gateway.TransferParams{
		Amount: 2500, PixKeyType: gateway.PixKeyEmail, PixKeyValue: "maria@example.com", Description: "Rent " + text, ExternalRef: "payout-1 " + text,
	})
	require.NoError(t, err)
	s.transfer = transfer.ID
	link, err := s.client.CheckoutLinks.Create(ctx, gateway.CheckoutLinkParams{
		Title: "Shop " + text, Products: []gateway.CheckoutProduct{{Name: "Shirt " + text, Price: 7990, Description: text}},
	})
	require.NoError(t, err)
	s.link = link.Slug()
	s.rejected = s.reject(t)
	require.NoError(t, s.Transactions.Chargeback(create("order-5", gateway.CreditCard, "pgct_paid_5")))
	require.NoError(t, s.Clock.Advance(26*time.Hour))
	create("order-6", gateway.CreditCard, "pgct_paid_6")
	s.waiting = create("order-7 "+text, gateway.Pix, "")
	s.challenge = create("order-8", gateway.CreditCard, "pgct_3ds_8")
	automatic, err := s.client.Subscriptions.Create(ctx, gateway.SubscriptionParams{
		CustomerID: customer.ID, Amount: 4990, Interval: gateway.IntervalMonth, PaymentMethod: gateway.SubscriptionPixAutomatic,
	})
	require.NoError(t, err)
	s.automatic = automatic.ID
	require.NoError(t, gw.Account(gw.Key()).Faults.Add(mockserver.Status(503).RetryAfter(time.Second).On("transfers.create").Times(2)))
	return s
}

// reject sends a request that breaks rules and returns its number.
func (s *busyShop) reject(t *testing.T) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.base+"/v2/transactions",
		strings.NewReader(`{"amount":-1,"method":"cash","buyer":{"email":"no-address"},"products":[{"name":"","price":0}]}`))
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+s.Key())
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusBadRequest, resp.StatusCode)
	return strconv.Itoa(len(s.Requests.All()))
}

// Every page is readable on a phone, on a desktop, in light and dark mode, and
// with a screen reader.
func TestPages(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	paths := s.paths()
	names := slices.Sorted(maps.Keys(paths))
	const windows = 2
	for part := range windows {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			p := open(t, s.base, device{})
			for i, name := range names {
				if i%windows != part {
					continue
				}
				p.visit(paths[name])
				assert.NotEmpty(t, p.text("h1"), name)
				p.look(name, true)
			}
		})
	}
}

// A console on a phone: a menu, no amount that is cut, and the current state in view.
func TestPhone(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	for _, d := range []device{{width: 320}, {width: 390, noScript: true}} {
		p := open(t, s.base, d)
		p.visit(pagesAt + "/transactions")
		assert.Less(t, eval[float64](p, "document.querySelector('main').getBoundingClientRect().top"), 160.0, "the header leaves room")
		assert.False(t, eval[bool](p, "document.querySelector('#pages a').checkVisibility()"))
		p.do(chromedp.Click(chromedp.CSS(".menu")))
		p.waitFor("document.querySelector('#pages a').checkVisibility()")
		p.fits()
		p.shot(fmt.Sprintf("menu-%d", d.width))
		p.submit("#pages a[href$='/transfers']")
		assert.Contains(t, p.text("h1"), "Transfers")
		p.visit(pagesAt + "/transactions")
		assert.Positive(t, p.count("td.c-money"))
		assert.Zero(t, eval[int](p, `[...document.querySelectorAll("td")].filter((c) => c.checkVisibility() &&
			(c.scrollWidth > c.clientWidth || c.getBoundingClientRect().right > innerWidth)).length`), "no cell is cut")
		p.visit(pagesAt + "/transactions/" + s.card)
		p.fits()
		if !d.noScript {
			assert.True(t, eval[bool](p, `(() => { const at = document.querySelector(".diagram .current rect").getBoundingClientRect();
				return at.left >= 0 && at.right <= innerWidth; })()`), "the current state is in view")
		}
	}
}

// A copy button says that it has copied, also to a screen reader.
func TestCopiedIsAnnounced(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	p := open(t, s.base, device{})
	p.visit(pagesAt + "/transactions/" + s.waiting)
	p.do(chromedp.Click(chromedp.CSS("[data-copy=resource-id]")))
	p.waitFor("document.querySelector('#said[role=status]').textContent === 'Copied'")
	q := open(t, s.base, device{noScript: true})
	q.visit(pagesAt + "/transactions/" + s.waiting)
	assert.Zero(t, q.count("[data-copy]:not([hidden])"), "a button that does nothing is not shown")
}

// An empty console says what to do, and a button does it.
func TestAnEmptyConsole(t *testing.T) {
	t.Parallel()
	for _, dialect := range []mockserver.Dialect{mockserver.Document, mockserver.Live} {
		gw, base := serve(t, mockserver.WithDialect(dialect))
		p := open(t, base, device{})
		p.visit("/")
		p.look("home-empty", dialect == mockserver.Document)
		p.submit("main section form.act button")
		require.Contains(t, p.text("main .note"), "Create a test payment: done.")
		p.submit("main .note a")
		assert.Contains(t, p.text(".headline"), "BRL 129.90 to be paid")
		for page, button := range map[string]string{"transfers": "Create a test transfer", "customers": "Create a test customer", "links": "Create a test link"} {
			p.visit(pagesAt + "/" + page)
			assert.Equal(t, button, p.text("main form.act button"))
			p.submit("main form.act button")
			require.Contains(t, p.text("main .note"), button+": done.", dialect)
			p.submit("main .note a")
			assert.Contains(t, eval[string](p, "location.pathname"), pagesAt+"/"+page+"/")
		}
		assert.Len(t, gw.Requests.All(), 4)
	}
}

// Filters are in words, and dates have date fields.
func TestFilters(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	p := open(t, s.base, device{})
	p.visit(pagesAt + "/transactions")
	assert.Equal(t, 2, p.count(".filters input[type=date]"))
	p.fill("input[name=dateFrom]", s.Clock.Now().Format(time.DateOnly))
	p.fill("select[name=status]", "pending")
	p.submit(".filters button")
	assert.Equal(t, s.Clock.Now().Format(time.DateOnly), eval[string](p, "document.querySelector('input[name=dateFrom]').value"))
	assert.Equal(t, 2, p.count("tbody tr"), "order-7 and order-8")
	assert.Equal(t, "right", eval[string](p, "getComputedStyle(document.querySelector('td.c-money')).textAlign"))
	assert.Equal(t, "right", eval[string](p, "getComputedStyle(document.querySelector('th.c-money')).textAlign"))
}

// paths are the console's pages by name.
func (s *busyShop) paths() map[string]string {
	list := map[string]string{"home": "/"}
	for name, path := range map[string]string{
		"transactions": "transactions", "transactions-none": "transactions?status=refunded", "transactions-wrong": "transactions?dateFrom=no",
		"transaction-pix": "transactions/" + s.pix, "transaction-card": "transactions/" + s.card,
		"transaction-3ds": "transactions/" + s.challenge, "transaction-voucher": "transactions/" + s.voucher, "transaction-late": "transactions/" + s.late,
		"subscription-automatic": "subscriptions/" + s.automatic, "doctor": "doctor",
		"subscriptions": "subscriptions", "subscription": "subscriptions/" + s.subscription,
		"transfers": "transfers", "transfer": "transfers/" + s.transfer, "customers": "customers", "customer": "customers/" + s.customer,
		"links": "links", "link": "links/" + s.link, "webhooks": "webhooks", "webhook": "webhooks/dlv_1",
		"requests": "requests", "request": "requests/1", "request-rejected": "requests/" + s.rejected, "requests-near": "requests?match=transaction.create",
		"faults": "faults", "snapshots": "snapshots", "accounts": "accounts", "assumptions": "assumptions", "reference": "reference",
		"operation": "reference/transactions_create", "operation-control": "reference/postClockAdvance",
	} {
		list[name] = pagesAt + "/" + path
	}
	return list
}

// Every button works in a browser, with and without JavaScript.
func TestButtons(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]device{"with JavaScript": {}, "without": {noScript: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, "")
			kept, err := s.Snapshot()
			require.NoError(t, err)
			p := open(t, s.base, d)
			// Tests of the module press each button in each state; here each is pressed once.
			pressed := map[string]bool{}
			for _, path := range s.resources() {
				p.visit(path)
				calls := eval[[]string](p, "[...document.querySelectorAll('main form.act [name=call]')].map((call) => call.value)")
				for i, call := range calls {
					if pressed[call] {
						continue
					}
					pressed[call] = true
					require.NoError(t, s.Restore(kept))
					p.visit(path)
					label := p.press(i)
					assert.Contains(t, p.text("main .note"), label+": done.", path)
				}
			}
			assert.Greater(t, len(pressed), 15)
		})
	}
}

// resources are the pages of single resources.
func (s *busyShop) resources() []string {
	var list []string
	for _, path := range []string{
		"transactions/" + s.pix, "transactions/" + s.card, "transactions/" + s.challenge, "transactions/" + s.voucher,
		"transactions/" + s.late, "subscriptions/" + s.subscription, "subscriptions/" + s.automatic, "transfers/" + s.transfer, "links/" + s.link,
	} {
		list = append(list, pagesAt+"/"+path)
	}
	return list
}

// press fills in what a form requires, presses its button and returns its label.
func (p *page) press(i int) string {
	p.t.Helper()
	form := fmt.Sprintf("document.querySelectorAll('main form.act')[%d]", i)
	label := eval[string](p, form+".querySelector('button').innerText")
	eval[bool](p, form+".querySelectorAll('input[required]:not([value])').forEach(f => f.value = '1'), true")
	eval[bool](p, form+".querySelectorAll('input[required][value=\"\"]').forEach(f => f.value = '1'), true")
	eval[bool](p, form+".querySelector('button').id = 'pressed', true")
	p.submit("#pressed")
	return label
}

// A change made in one window shows in another without a reload.
func TestAChangeShowsInAnotherWindow(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	here, there, home := open(t, s.base, device{}), open(t, s.base, device{}), open(t, s.base, device{})
	here.visit(pagesAt + "/transactions/" + s.waiting)
	there.visit(pagesAt + "/transactions/" + s.waiting)
	home.visit("/")
	for _, p := range []*page{there, home} {
		p.waitFor("document.querySelector('#live').innerText === 'Live'")
	}
	require.Equal(t, "pending", there.text("h1 .state"))
	eval[bool](there, "window.notReloaded = true")
	here.submit("main form.act button") // Pay
	there.waitFor("document.querySelector('h1 .state').innerText === 'paid'")
	there.waitForText("transaction.paid")
	home.waitFor("document.querySelector('#stream').innerText.includes('pending → paid, by control transactions/pay')")
	assert.True(t, eval[bool](there, "window.notReloaded === true"))
	home.shot("home-live")

	require.NoError(t, s.Clock.Advance(24*time.Hour))
	now := s.Clock.Now().Format("2006-01-02 15:04:05")
	there.waitFor("document.querySelector('header .now').innerText.includes(" + quote(now) + ")")
	home.waitForText(now)
}

// An update does not replace a form that is being filled in.
func TestAFormBeingFilledInIsNotReplaced(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	p := open(t, s.base, device{})
	p.visit(pagesAt + "/faults")
	p.waitFor("document.querySelector('#live').innerText === 'Live'")
	p.do(chromedp.SendKeys(chromedp.CSS("input[name='s.fault']:not([type=hidden])"), "status=500"))
	require.NoError(t, s.Clock.Advance(time.Hour))
	p.waitFor("document.querySelector('#live').innerText.startsWith('Paused')")
	assert.Equal(t, "status=500", eval[string](p, "document.querySelector('input[name=\"s.fault\"]:not([type=hidden])').value"))
	p.submit("main section:last-of-type form.act button")
	assert.Contains(t, p.text("main .note"), "Add fault: done.")
	assert.Contains(t, p.text("main"), "status=500")
}

// Everything that a merchant or a buyer enters is shown as text: none of it
// runs.
func TestMarkupIsText(t *testing.T) {
	t.Parallel()
	s := newShop(t, xss)
	require.NoError(t, s.Account(s.Key()).Webhooks.Drop("transaction.paid"))
	p := open(t, s.base, device{})
	for name, path := range s.paths() {
		if slices.Contains([]string{"accounts", "assumptions", "doctor", "operation", "operation-control", "reference", "snapshots"}, name) {
			continue // they show nothing that anyone has entered
		}
		p.visit(path)
		assert.False(t, eval[bool](p, "window.hacked === 1 || document.querySelector('main script, main img[onerror]') !== null"), name)
	}
	p.visit("/")
	p.waitFor("document.querySelector('#live').innerText === 'Live'")
	require.NoError(t, s.Transactions.Pay(s.waiting))
	p.waitFor("document.querySelector('#stream').innerText.includes('pending → paid')")
	assert.False(t, eval[bool](p, "window.hacked === 1"))
	p.visit(pagesAt + "/find?q=" + url.QueryEscape(xss))
	assert.Contains(t, p.text("main"), xss)
	assert.False(t, eval[bool](p, "window.hacked === 1"))
	p.expectErrors() // the page is a 404
}

// A request can be sent from the API reference, and the page names the rules
// that it breaks.
func TestTheReferenceSendsACall(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	p := open(t, s.base, device{})
	p.visit(pagesAt + "/reference/transactions_create?example=create_voucher")
	p.submit("main form.act button")
	assert.Contains(t, p.text("h1"), "201 Created")
	p.visit(pagesAt + "/requests")
	p.submit("tbody tr:first-child a")
	assert.Contains(t, p.text("h1"), "POST /v2/transactions")
	p.shot("request-sent")
}

// The search field opens the resource of an id, a reference or an e-mail
// address.
func TestFind(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	p := open(t, s.base, device{})
	for text, path := range map[string]string{
		s.card: "/transactions/" + s.card, "order-2": "/transactions/" + s.card, s.transfer: "/transfers/" + s.transfer,
		"ana@example.com": "/transactions?email=ana%40example.com", "bia@example.com": "/transactions?email=bia%40example.com", s.link: "/links/" + s.link,
	} {
		p.visit("/")
		p.fill("#q", text)
		p.submit("header form button")
		assert.Equal(t, pagesAt+path, eval[string](p, "location.pathname + location.search"), text)
	}
}

// Everything can be reached by keyboard, and the focus is visible.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	p := open(t, s.base, device{})
	p.visit(pagesAt + "/transactions/" + s.waiting)
	p.do(chromedp.KeyEvent("\t"))
	assert.Equal(t, "Skip to the content", eval[string](p, "document.activeElement.innerText"))
	p.do(chromedp.KeyEvent("\r"))
	for range 15 {
		p.do(chromedp.KeyEvent("\t"))
		if eval[string](p, "document.activeElement.innerText") == "Pay" {
			break
		}
	}
	require.Equal(t, "Pay", eval[string](p, "document.activeElement.innerText"))
	assert.Equal(t, "solid", eval[string](p, "getComputedStyle(document.activeElement).outlineStyle"))
	p.do(chromedp.KeyEvent("\r"))
	p.waitForText("Pay: done.")
}

// A snapshot can be saved as a file and loaded again.
func TestASnapshotIsLoadedFromAFile(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	kept, err := s.Snapshot()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "shop.json")
	require.NoError(t, os.WriteFile(file, kept, 0o600))
	require.NoError(t, s.Transactions.Pay(s.waiting))
	p := open(t, s.base, device{})
	p.visit(pagesAt + "/snapshots")
	p.do(chromedp.SetUploadFiles(chromedp.CSS("input[type=file]"), []string{file}))
	p.submit("form[enctype] button")
	assert.Contains(t, p.text("main .note"), "Load the snapshot: done.")
	p.visit(pagesAt + "/transactions/" + s.waiting)
	assert.Equal(t, "pending", p.text("h1 .state"))
}

// The doctor reports why a signature is rejected.
func TestDoctor(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	p := open(t, s.base, device{})
	p.visit(pagesAt + "/doctor")
	p.fill("textarea[name='h.headers']", "X-Gateway-Timestamp: 1798761600\nX-Gateway-Signature: sha256="+strings.Repeat("0", 64))
	p.fill("textarea[name='x.body']", "{}")
	p.fill("input[name='s.secret']", "whsec_typed_in")
	p.submit("main form.act button")
	assert.Contains(t, p.text("main"), "The signature is not valid")
	assert.NotContains(t, p.text("main"), "whsec_typed_in")
	p.accessible()
	p.shot("doctor-result")
}
