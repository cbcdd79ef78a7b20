package console_test

import (
	"bytes"
	"encoding/json"
	"image/png"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/oned"
	"github.com/makiuchi-d/gozxing/qrcode"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
)

// seller is a merchant with a checkout link, and the path of its page.
type seller struct {
	t      *testing.T
	gw     *mockserver.Server
	client *gateway.Client
	base   string
	path   string
}

const mugs = `{"title":"Order 17","description":"Two mugs for the office","products":[
	{"external_id":"MUG-1","name":"Blue mug","description":"300 ml, dishwasher safe","price":3990,"quantity":2},
	{"external_id":"BOX","name":"Gift box","price":1250}],
	"success_url":"https://shop.example/thanks","cancel_url":"https://shop.example/cart"}`

// newSeller starts a gateway with a checkout link that has the given fields.
func newSeller(t *testing.T, link string, opts ...mockserver.Option) *seller {
	t.Helper()
	gw, base := serve(t, opts...)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/v2/checkout-links", strings.NewReader(link))
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+gw.Key())
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, resp.StatusCode)
	var body struct {
		Data gateway.CheckoutLink `json:"data"`
	}
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&body))
	require.NoError(t, resp.Body.Close())
	u, err := url.Parse(body.Data.URL)
	require.NoError(t, err)
	return &seller{t: t, gw: gw, client: gw.Client(), base: base, path: u.Path}
}

// visit is a buyer who opens the page.
func (s *seller) visit(d device) *page {
	s.t.Helper()
	p := open(s.t, s.base, d)
	p.visit(s.path)
	return p
}

// transactions lists the merchant's transactions, newest first.
func (s *seller) transactions() (list []gateway.Transaction) {
	s.t.Helper()
	for item, err := range s.client.Transactions.All(s.t.Context(), gateway.TransactionListParams{}) {
		require.NoError(s.t, err)
		list = append(list, *item)
	}
	return list
}

// fillForm fills in the buyer's form and chooses a method and a test card.
func (p *page) fillForm(method, outcome string) {
	p.t.Helper()
	p.fill("#name", "Ana Souza")
	p.fill("#email", "ana@example.com")
	p.do(chromedp.Click(chromedp.CSS("#method-" + method)))
	if outcome != "" {
		p.fill("#outcome", outcome)
	}
}

func (p *page) submitOrder() {
	p.t.Helper()
	p.submit(`button[value=submit]`)
}

// state returns the state that the page's main element has as its class.
func (p *page) state() string {
	p.t.Helper()
	return eval[string](p, "document.querySelector('main').className")
}

// read decodes the image in an element.
func (p *page) read(selector string, reader gozxing.Reader) string {
	p.t.Helper()
	p.do(chromedp.EmulateViewport(1280, 900, chromedp.EmulateScale(3))) // as sharp as a phone's screen
	shot, err := chromedp.Run(p.ctx, chromedp.Screenshot(chromedp.CSS(selector)))
	require.NoError(p.t, err)
	picture, err := png.Decode(bytes.NewReader(shot))
	require.NoError(p.t, err)
	bitmap, err := gozxing.NewBinaryBitmapFromImage(picture)
	require.NoError(p.t, err)
	result, err := reader.Decode(bitmap, map[gozxing.DecodeHintType]any{gozxing.DecodeHintType_TRY_HARDER: true})
	require.NoError(p.t, err)
	return result.GetText()
}

// Every page that a buyer sees while paying, in every language.
func TestCheckoutPages(t *testing.T) {
	t.Parallel()
	for _, language := range []string{"en", "pt-BR", "es"} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			s := newSeller(t, mugs)
			shot := func(p *page, state string) { p.look("checkout-"+state+"-"+language, language == "en") }
			p := s.visit(device{language: language})
			shot(p, "form")
			p.submitOrder()
			p.expectErrors() // the browser reports the 422
			assert.Equal(t, 2, p.count(".error"))
			shot(p, "errors")
			p.fillForm("pix", "")
			p.submitOrder()
			require.Equal(t, "pix", p.state())
			shot(p, "pix")
			p.submit(`button[value=cancel]`)
			shot(p, "canceled")
			p.do(chromedp.Click(chromedp.CSS("#method-voucher")))
			shot(p, "form-voucher")
			p.fill("#street", "Rua A")
			p.fill("#city", "São Paulo")
			p.fill("#zip", "01310-100")
			p.submitOrder()
			require.Equal(t, "voucher", p.state())
			shot(p, "voucher")
			p.submit(`button[value=expire]`)
			p.do(chromedp.Click(chromedp.CSS("#method-credit_card")))
			shot(p, "form-card")
			p.fill("#outcome", "refused_insufficient_funds")
			p.submitOrder()
			shot(p, "refused")
			p.fill("#outcome", "ok")
			p.submitOrder()
			require.Equal(t, "card", p.state())
			shot(p, "card")
			p.submit(`button[value=refuse]`)
			p.fill("#outcome", "3ds")
			p.submitOrder()
			require.Equal(t, "challenge", p.state())
			shot(p, "challenge")
			p.submit(`button[value=pass]`)
			require.Equal(t, "paid", p.state())
			shot(p, "paid")
			require.NoError(t, s.gw.Transactions.Chargeback(s.transactions()[0].ID))
			p.waitFor("document.querySelector('main').className == 'returned'") // without a click
			shot(p, "returned")
			require.NoError(t, s.gw.Checkout.Deactivate(s.path[len("/pay/"):]))
			p = open(t, s.base, device{language: language})
			p.visit(s.path)
			p.expectErrors() // the browser reports the 410
			shot(p, "gone")
			p.visit("/pay/nothing")
			p.expectErrors()
			shot(p, "missing")
		})
	}
}

func TestThePixPageCanBeScannedAndShowsThePayment(t *testing.T) {
	t.Parallel()
	s := newSeller(t, mugs)
	p := s.visit(device{width: 360})
	p.fillForm("pix", "")
	p.submitOrder()
	tx, err := s.client.Transactions.Get(t.Context(), s.transactions()[0].ID)
	require.NoError(t, err)
	assert.Equal(t, tx.Pix.QRCode, p.read(".qr", qrcode.NewQRCodeReader()))
	assert.Equal(t, tx.Pix.QRCode, eval[string](p, "document.querySelector('#code').value"))
	assert.Equal(t, "24:00:00", p.text("[data-left]"))
	p.do(chromedp.Click(chromedp.CSS("[data-copy]")))
	p.waitForText("Copied")
	require.NoError(t, s.gw.Clock.Advance(90*60e9))
	p.waitFor("document.querySelector('[data-left]').textContent == '22:30:00'")
	require.NoError(t, s.gw.Transactions.Pay(tx.ID))
	p.waitForText("Your payment has arrived")
	assert.Equal(t, "https://shop.example/thanks", eval[string](p, "document.querySelector('a.button.primary').href"))
}

func TestAVoucherIsScanned(t *testing.T) {
	t.Parallel()
	s := newSeller(t, mugs)
	p := s.visit(device{})
	p.fillForm("voucher", "")
	p.fill("#street", "Rua A")
	p.fill("#city", "São Paulo")
	p.fill("#zip", "01310100")
	p.submitOrder()
	tx, err := s.client.Transactions.Get(t.Context(), s.transactions()[0].ID)
	require.NoError(t, err)
	assert.Equal(t, tx.Voucher.Barcode, p.read(".bars", oned.NewITFReader()))
	assert.Equal(t, tx.Voucher.DigitableLine, strings.NewReplacer(" ", "", ".", "").Replace(eval[string](p, "document.querySelector('#code').value")))
	assert.Equal(t, 1, p.count("[data-print]:not([hidden])"))
	p.submit(`button[value=pay]`)
	assert.Equal(t, "paid", p.state())
}

func TestThreeDSecureInABrowser(t *testing.T) {
	t.Parallel()
	s := newSeller(t, mugs, mockserver.WithDialect(mockserver.Live))
	p := s.visit(device{width: 360})
	p.fillForm("credit_card", "3ds")
	p.submitOrder()
	p.submit(`button[value=fail]`)
	assert.Contains(t, p.text("main"), "3-D Secure failed")
	p.do(chromedp.Click(chromedp.CSS("#method-credit_card")))
	p.fill("#outcome", "3ds")
	p.submitOrder()
	p.submit(`button[value=pass]`)
	assert.Equal(t, "paid", p.state())
	assert.Len(t, s.transactions(), 2)
}

// A double click and a form submitted in a second tab make one payment.
func TestADoubleClickAndASecondTab(t *testing.T) {
	t.Parallel()
	for _, noScript := range []bool{false, true} {
		s := newSeller(t, mugs)
		p := s.visit(device{noScript: noScript})
		other := p.tab(device{noScript: noScript})
		other.visit(s.path)
		p.fillForm("credit_card", "paid")
		other.fillForm("credit_card", "paid")
		p.do(chromedp.DoubleClick(chromedp.CSS(`button[value=submit]`)))
		p.waitForText("Your payment has arrived")
		if noScript {
			other.submitOrder()
		}
		other.waitForText("Your payment has arrived") // with JavaScript the page updates itself
		assert.Len(t, s.transactions(), 1)
	}
}

// Two tabs pay at the same time.
func TestTwoTabsAtOnce(t *testing.T) {
	t.Parallel()
	s := newSeller(t, mugs)
	p := s.visit(device{noScript: true})
	other := p.tab(device{noScript: true})
	other.visit(s.path)
	p.fillForm("credit_card", "paid")
	other.fillForm("credit_card", "paid")
	send := "document.querySelector('button[value=submit]').click(), true"
	eval[bool](p, send)
	eval[bool](other, send)
	p.waitForText("Your payment has arrived")
	other.waitForText("Your payment has arrived")
	assert.Len(t, s.transactions(), 1)
}

// Everything works without JavaScript. A page that waits for a payment reloads
// itself every five seconds.
func TestWithoutScript(t *testing.T) {
	t.Parallel()
	s := newSeller(t, mugs)
	p := s.visit(device{noScript: true, width: 360})
	assert.False(t, eval[bool](p, "document.querySelector('.only-voucher').checkVisibility()"), "CSS alone hides the voucher's fields")
	p.submitOrder()
	p.expectErrors()
	assert.Equal(t, 2, p.count(".error"))
	p.fillForm("pix", "")
	p.submitOrder()
	p.fits()
	p.shot("checkout-no-script")
	assert.Zero(t, p.count("[data-copy]:not([hidden])"), "buttons that need script are not shown")
	require.NoError(t, s.gw.Transactions.Pay(s.transactions()[0].ID))
	p.waitForText("Your payment has arrived")
	p.submit(`button[value=again]`)
	assert.Equal(t, "form", p.state())
}

func TestExpiredAndDeactivatedWhileTheBuyerTypes(t *testing.T) {
	t.Parallel()
	s := newSeller(t, mugs)
	p := s.visit(device{})
	p.fillForm("pix", "")
	require.NoError(t, s.gw.Clock.Advance(31*60e9))
	p.submitOrder()
	p.expectErrors() // the 410
	p.waitForText("Your session had expired")
	assert.Equal(t, "Ana Souza", eval[string](p, "document.querySelector('#name').value"), "nothing has to be typed again")
	p.submitOrder()
	require.Equal(t, "pix", p.state())
	require.NoError(t, s.gw.Clock.Advance(24*3600e9))
	p.waitForText("The payment expired")
	require.NoError(t, s.gw.Checkout.Deactivate(s.path[len("/pay/"):]))
	p.waitForText("taken it off sale")
	p.expectErrors()
}

// A merchant and a buyer both try to inject markup.
func TestHostileInput(t *testing.T) {
	t.Parallel()
	const hostile = `"'><script>window.broken=1</script><img src=x onerror=window.broken=1>{{.}}`
	quoted := strings.ReplaceAll(hostile, `"`, `\"`)
	s := newSeller(t, `{"title":"`+quoted+`","description":"`+quoted+`","success_url":"javascript:window.broken=1","cancel_url":"javascript:window.broken=1",
		"products":[{"name":"`+quoted+strings.Repeat("W", 100)+`","description":"`+strings.Repeat("W", 500)+`","price":100000000,"image_url":"https://elsewhere.example/pixel.png"}]}`)
	p := s.visit(device{width: 360})
	broken := func() bool { return eval[bool](p, "Boolean(window.broken)") }
	p.look("checkout-hostile", true)
	assert.False(t, broken())
	for _, field := range []string{"name", "phone", "document", "street", "city"} {
		p.fill("#"+field, hostile)
	}
	p.submitOrder()
	p.expectErrors()
	assert.False(t, broken())
	p.fill("#email", "ana@example.com")
	p.submitOrder()
	require.Equal(t, "pix", p.state())
	p.submit(`button[value=pay]`)
	p.fits()
	assert.False(t, broken())
	assert.Zero(t, p.count("a[href^=javascript]"))
}

// The page works with the keyboard alone, and focus moves to where the buyer
// must act.
func TestTheKeyboardAloneIsEnough(t *testing.T) {
	t.Parallel()
	s := newSeller(t, `{"amount":4990,"payment_methods":["pix"]}`)
	p := s.visit(device{})
	p.do(chromedp.Focus(chromedp.CSS("#name")), chromedp.KeyEvent("\r"))
	p.waitFor("document.querySelectorAll('.error').length == 2")
	p.expectErrors()
	p.waitFor("document.activeElement.hasAttribute('data-focus')") // the list of errors
	assert.Equal(t, "name-error", eval[string](p, "document.querySelector('#name').getAttribute('aria-describedby')"))
	p.do(chromedp.Focus(chromedp.CSS("#name")), chromedp.KeyEvent("Ana Souza\tana@example.com\r"))
	p.waitFor("document.querySelector('main').className == 'pix'")
	assert.Equal(t, "Pay with Pix – Checkout", eval[string](p, "document.title"))
}
