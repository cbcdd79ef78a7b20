package hosted_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/mockserver"
)

// hostile breaks any page that does not escape it, in text and in attributes.
const hostile = `"'><script>alert(1)</script><img src=x onerror=alert(1)>{{.}}` + "`"

func TestTextIsEscaped(t *testing.T) {
	t.Parallel()
	quoted := strings.ReplaceAll(hostile, `"`, `\"`)
	s := newShop(t, `{"title":"`+quoted+`","description":"`+quoted+`","success_url":"javascript:alert(1)","cancel_url":"javascript://x/%0aalert(1)",
		"products":[{"name":"`+quoted+`","description":"`+quoted+`","price":3990}]}`)
	b := s.visits()
	checkEscaped(t, b)
	form := b.order("email", "wrong", "method", hostile, "outcome", hostile, "installments", hostile)
	for _, name := range []string{
		"name", "phone", "birth_date", "document", "document_type", "street", "number", "complement", "neighborhood", "city", "state", "zip", "country",
	} {
		form.Set(name, hostile)
	}
	checkEscaped(t, b.send(form))
	assert.Equal(t, http.StatusUnprocessableEntity, b.status)
	b.pay("name", hostile)
	checkEscaped(t, b)
	checkEscaped(t, b.press("pay"))
	assert.Equal(t, "paid", b.state())
	b.do(http.MethodGet, "/pay/"+url.PathEscape(hostile), nil)
	checkEscaped(t, b)
	b.do(http.MethodGet, "/pay/"+s.slug+"?lang="+url.QueryEscape(hostile)+"&notice="+url.QueryEscape(hostile), nil)
	checkEscaped(t, b)
}

func checkEscaped(t *testing.T, b *buyer) {
	t.Helper()
	assert.NotContains(t, b.page, "<script>alert")
	assert.NotContains(t, b.page, "<img")
	assert.NotContains(t, b.page, "javascript:")
	bare := regexp.MustCompile(`"[^"]*"`).ReplaceAllString(b.page, `""`)
	for _, tag := range regexp.MustCompile(`<[a-z][^>]*>`).FindAllString(bare, -1) {
		assert.NotRegexp(t, `\s(on\w+|style)=`, tag)
	}
}

// The headers of every page and file.
func TestHeaders(t *testing.T) {
	t.Parallel()
	s := newShop(t, mugs)
	b := s.visits()
	for _, target := range []string{"/pay/" + s.slug, "/pay/" + s.slug + "/status", "/pay/nothing", "/pay/assets/checkout.js", "/pay/assets/no"} {
		b.do(http.MethodGet, target, nil)
		assert.Equal(t, "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "+
			"base-uri 'none'; frame-ancestors 'none'", b.resp.Get("Content-Security-Policy"), target)
		assert.Equal(t, "no-referrer", b.resp.Get("Referrer-Policy"), target)
		assert.Equal(t, "nosniff", b.resp.Get("X-Content-Type-Options"), target)
	}
	b.open("")
	assert.Equal(t, "no-store", b.resp.Get("Cache-Control"))
	b = s.buyer().open("")
	cookie := b.resp.Get("Set-Cookie")
	for _, part := range []string{"checkout_session=cst_", "Path=/pay/" + s.slug, "HttpOnly", "SameSite=Lax"} {
		assert.Contains(t, cookie, part)
	}
	assert.NotContains(t, cookie, "Secure")
	assert.Contains(t, s.buyer("X-Forwarded-Proto", "https").open("").resp.Get("Set-Cookie"), "Secure")
	assert.NotContains(t, b.page, regexp.MustCompile(`cst_\w+`).FindString(cookie), "only the cookie has the token")
}

func TestMethodsAndPaths(t *testing.T) {
	t.Parallel()
	s := newShop(t, mugs)
	b := s.visits()
	for target, want := range map[string]int{
		"/pay/" + s.slug: http.StatusMethodNotAllowed, "/pay/" + s.slug + "/status": http.StatusMethodNotAllowed,
		"/pay/assets/checkout.css": http.StatusMethodNotAllowed, "/pay/": http.StatusNotFound, "/pay/" + s.slug + "/more": http.StatusNotFound,
		"/pay/assets/../checkout.css": http.StatusNotFound,
	} {
		b.do(http.MethodDelete, target, nil)
		assert.Equal(t, want, b.status, target)
	}
}

// Only a browser with the session's cookie can pay, and no other page can make
// a visitor pay.
func TestACrossSiteFormIsRejected(t *testing.T) {
	t.Parallel()
	s := newShop(t, mugs)
	b := s.visits()
	form := b.order()
	for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"} {
		foreign := *b
		foreign.header = map[string]string{name: value}
		foreign.send(form)
		assert.Equal(t, http.StatusForbidden, foreign.status, name)
	}
	stranger := s.buyer()
	stranger.send(form)
	stranger.shows("nothing was sent")
	assert.Empty(t, stranger.error("name"))
	form.Set("form", "wrong")
	b.send(form).shows("nothing was sent")
	assert.Empty(t, s.transactions())
	b.open("").send(url.Values{"form": {strings.Repeat("x", 70<<10)}})
	assert.Equal(t, http.StatusRequestEntityTooLarge, b.status)
}

// A page shows a buyer's data and payment to that buyer only.
func TestABuyerSeesOnlyTheirOwnPayment(t *testing.T) {
	t.Parallel()
	s := newShop(t, mugs)
	ana := s.visits().pay("name", "Ana Secret", "email", "secret@example.com")
	id := s.only().ID
	stranger := s.buyer()
	for _, rest := range []string{"", "/status", "?notice=late", "?payment=" + id} {
		stranger.open(rest)
		for _, secret := range []string{"Secret", "secret@", id} {
			assert.NotContains(t, stranger.page, secret, rest)
		}
	}
	form := stranger.open("").form("do", "pay", "payment", id)
	stranger.send(form)
	assert.Equal(t, "pix", ana.open("").state(), "another buyer's button does not affect it")
}

func TestReturnAddressesAreWebPages(t *testing.T) {
	t.Parallel()
	for success, linked := range map[string]bool{
		"https://shop.example/thanks?a=1": true, "http://127.0.0.1:8080/": true, "shop://thanks": false, "//evil.example": false,
		"javascript:alert(1)": false, "data:text/html,x": false, "/pay/x": false, "": false,
	} {
		s := newShop(t, `{"amount":4990,"success_url":"`+success+`","cancel_url":"`+success+`"}`)
		b := s.visits()
		assert.Equal(t, linked, strings.Contains(b.page, "go back to the shop"), success)
		b.pay("method", "credit_card")
		require.Equal(t, "paid", b.state())
		assert.Equal(t, linked, strings.Contains(b.page, "Back to the shop"), success)
		assert.Equal(t, "/pay/"+s.slug, b.at, "no redirect leaves the page")
	}
}

// The journal has an entry for each of the buyer's requests, without personal
// data.
func TestTheJournalShowsNoBuyer(t *testing.T) {
	t.Parallel()
	s := newShop(t, mugs)
	b := s.visits()
	b.pay("name", "Ana Secret", "document", "52998224725")
	b.open("/status")
	var seen []string
	assert.Empty(t, s.gw.Account("sk_test_other").Requests.All())
	for _, r := range s.gw.Account(s.gw.Key()).Requests.All() { // those of the link's account
		seen = append(seen, r.Operation)
		for _, text := range []string{r.Body, r.Response, r.Query, r.Path, strings.Join(r.Header["Cookie"], ""), strings.Join(r.ResponseHeader["Set-Cookie"], "")} {
			for _, secret := range []string{"Secret", "52998224725", "cst_"} {
				assert.NotContains(t, text, secret)
			}
		}
	}
	assert.Equal(t, []string{"checkout_links.create", "checkout_links.page", "checkout_links.submit", "checkout_links.page"}, seen)
}

// Faults apply to the page as to any request.
func TestFaultsOnThePage(t *testing.T) {
	t.Parallel()
	s := newShop(t, mugs)
	b := s.visits()
	form := b.order()
	require.NoError(t, s.gw.Account(s.gw.Key()).Faults.Add(mockserver.LoseResponse().On("checkout_links.submit").Times(1)))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, mockserver.BaseURL+"/pay/"+s.slug, strings.NewReader(form.Encode()))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := b.http.Do(r)
	if err == nil {
		_ = resp.Body.Close()
	}
	require.Error(t, err, "the response is lost")
	b.send(form)
	assert.Equal(t, "pix", b.state(), "the buyer who tries again finds the payment")
	assert.Len(t, s.transactions(), 1)
}

// A page neither opens an account nor counts towards its merchant's rate limit.
func TestThePageDoesNotUseUpTheMerchantsRateLimit(t *testing.T) {
	t.Parallel()
	s := newShop(t, mugs)
	limited := s.gw.Account("sk_test_limited_1").Client()
	link, err := limited.CheckoutLinks.Create(t.Context(), amountLink())
	require.NoError(t, err)
	s.slug = link.Slug()
	for range 10 {
		b := s.visits()
		assert.Equal(t, "form", b.state())
	}
	_, err = limited.Customers.List(t.Context(), customers())
	require.NoError(t, err)
}

func TestAFullGateway(t *testing.T) {
	t.Parallel()
	s := newShop(t, mugs, mockserver.WithMemoryLimit(40<<10))
	var b *buyer
	for range 200 {
		b = s.buyer().open("")
		if b.status != http.StatusOK {
			break
		}
	}
	assert.Equal(t, http.StatusInsufficientStorage, b.status)
	b.shows("Nothing was charged")
	b.shows("-memory")
}
