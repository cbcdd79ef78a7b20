package hosted_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
)

func amountLink() gateway.CheckoutLinkParams { return gateway.CheckoutLinkParams{Amount: 4990} }
func customers() gateway.CustomerListParams  { return gateway.CustomerListParams{} }

func TestThePageIsInTheBuyersLanguage(t *testing.T) {
	t.Parallel()
	s := newShop(t, mugs)
	for accept, want := range map[string]string{
		"pt-BR,pt;q=0.9,en;q=0.8": "pt", "es-419,es;q=0.9": "es", "en-US": "en", "de,pt;q=0.4,es;q=0.7": "es", "": "en", "de": "en",
		"fr;q=x,pt": "pt", "PT": "pt", "pt;q=0, es;q=0.1": "es", ",;q=,": "en",
	} {
		b := s.visits("Accept-Language", accept)
		assert.Contains(t, b.page, `<html lang="`+want+`">`, accept)
		assert.Equal(t, want, b.resp.Get("Content-Language"))
	}
	b := s.visits("Accept-Language", "pt-BR")
	b.shows("Pagar R$\u00a079,80")
	b.send(b.order("name", ""))
	assert.Equal(t, "Preencha este campo.", b.error("name"))
	b.open("?lang=es").shows("Pagar R$\u00a079,80")
	b.pay().shows("Pague con Pix") // the language choice is kept
	b.press("cancel").shows("El pago fue cancelado")
}

// Every sentence exists in every language, with the same placeholders, and
// every sentence is used.
func TestEverySentenceInEveryLanguage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("words.json")
	require.NoError(t, err)
	var words map[string]map[string]string
	require.NoError(t, json.Unmarshal(text, &words))
	var code strings.Builder
	for _, name := range []string{"page.html", "view.go", "visit.go", "pay.go"} {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		code.Write(text)
	}
	for key, in := range words {
		require.Len(t, in, 3, key)
		for _, language := range []string{"en", "pt", "es"} {
			assert.NotEmpty(t, in[language], "%s %s", key, language)
			assert.Equal(t, strings.Count(in["en"], "{}"), strings.Count(in[language], "{}"), "%s %s", key, language)
		}
		family, _, dotted := strings.Cut(key, ".")
		said := strings.Contains(code.String(), `"`+key+`"`) || dotted && strings.Contains(code.String(), `"`+family+`.`) ||
			strings.HasSuffix(key, ".title")
		assert.True(t, said, "nothing says %s", key)
	}
	for _, said := range regexp.MustCompile(`Say "([\w.]+)"`).FindAllStringSubmatch(code.String(), -1) {
		assert.Contains(t, words, said[1])
	}
}

func TestMoneyIsInTheCurrencysForm(t *testing.T) {
	t.Parallel()
	for currency, want := range map[string]string{
		"BRL": "R$ 1.234.567,89", "USD": "US$ 1,234,567.89", "EUR": "€ 1.234.567,89", "CLP": "CLP$ 123.456.789", "JPY": "¥ 123,456,789",
		"KWD": "KWD 123,456.789", "CHF": "CHF 1,234,567.89", "MXN": "MX$ 1,234,567.89",
	} {
		s := newShop(t, `{"products":[{"name":"House","price":100000000},{"name":"Door","price":23456789}],"currency":"`+currency+`"}`)
		s.visits().shows(strings.ReplaceAll(want, " ", "\u00a0"))
	}
	s := newShop(t, `{"amount":7,"currency":"BRL"}`)
	s.visits().shows("R$\u00a00,07")
}

func TestALinkWithoutAPayableAmount(t *testing.T) {
	t.Parallel()
	s := newShop(t, `{"products":[{"name":"Gift","price":0}]}`)
	b := s.visits()
	b.shows("total of these products can't be charged")
	assert.NotContains(t, b.page, `value="submit"`)
}

// A voucher outside Brazil has no barcode.
func TestAVoucherWithoutBarcode(t *testing.T) {
	t.Parallel()
	s := newShop(t, `{"amount":4990,"currency":"MXN"}`)
	b := s.visits().pay(append(address(), "method", "voucher")...)
	b.shows("has no barcode")
	b.shows(s.only().ID)
}

// In the live dialect a voucher needs no address.
func TestALiveVoucher(t *testing.T) {
	t.Parallel()
	s := newShop(t, `{"amount":4990}`, mockserver.WithDialect(mockserver.Live))
	b := s.visits().pay("method", "voucher")
	assert.Equal(t, "voucher", b.state())
}

// The page after a refund or a chargeback.
func TestARefund(t *testing.T) {
	t.Parallel()
	s := newShop(t, `{"amount":4990}`)
	b := s.visits().pay("method", "credit_card")
	_, err := s.client.Transactions.Refund(t.Context(), s.only().ID, gateway.RefundParams{Amount: 1})
	require.NoError(t, err)
	b.open("").shows("Partly refunded")
	require.NoError(t, s.gw.Transactions.Chargeback(s.only().ID))
	b.open("").shows("Your bank has taken the payment back")
	assert.Equal(t, "returned", b.state())
}
