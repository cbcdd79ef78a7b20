package console_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const pagesAt = "/__mock/console"

// xss is markup that must stay text wherever a merchant or buyer can write it.
const xss = `"><script>window.hacked=1</script><img src=x onerror="window.hacked=1">`

// shop is a gateway in which something of everything has happened.
type shop struct {
	*mockserver.Server
	client *gateway.Client
	base   string

	pix, card, challenge, voucher, subscription, transfer, customer, link string

	rejected string // the number of a request that broke rules
}

func newShop(t *testing.T, text string, opts ...mockserver.Option) *shop {
	t.Helper()
	gw, base := serve(t, opts...)
	s := &shop{Server: gw, client: gw.Client(), base: base}
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
		return string(tx.ID)
	}
	s.pix = create("order-1 "+text, gateway.Pix, "")
	s.card = create("order-2", gateway.CreditCard, "pgct_paid_1")
	s.challenge = create("order-3", gateway.CreditCard, "pgct_3ds_1")
	s.voucher = create("order-4", gateway.Voucher, "")
	customer, err := s.client.Customers.Create(ctx, gateway.CustomerParams{Name: "Bia " + text, Email: "bia@example.com", ExternalRef: "cus-1 " + text})
	require.NoError(t, err)
	s.customer = string(customer.ID)
	subscription, err := s.client.Subscriptions.Create(ctx, gateway.SubscriptionParams{
		CustomerID: customer.ID, Amount: 4990, Interval: gateway.IntervalMonth, Token: "pgct_ok_subscription",
	})
	require.NoError(t, err)
	s.subscription = string(subscription.ID)
	transfer, err := s.client.Transfers.Create(ctx, gateway.TransferParams{
		Amount: 2500, PixKeyType: gateway.PixKeyEmail, PixKeyValue: "maria@example.com", Description: "Rent " + text, ExternalRef: "payout-1 " + text,
	})
	require.NoError(t, err)
	s.transfer = string(transfer.ID)
	link, err := s.client.CheckoutLinks.Create(ctx, gateway.CheckoutLinkParams{
		Title: "Shop " + text, Products: []gateway.CheckoutProduct{{Name: "Shirt " + text, Price: 7990, Description: text}},
	})
	require.NoError(t, err)
	s.link = link.Slug()
	s.rejected = s.reject(t)
	require.NoError(t, s.Transactions.Chargeback(create("order-5", gateway.CreditCard, "pgct_paid_5")))
	require.NoError(t, s.Clock.Advance(26*time.Hour))
	create("order-6", gateway.CreditCard, "pgct_paid_6")
	require.NoError(t, gw.Account(gw.Key()).Faults.Add(mockserver.Status(503).RetryAfter(time.Second).On("transfers.create").Times(2)))
	require.NoError(t, err)
	return s
}

// reject sends a request that breaks rules and returns its number.
func (s *shop) reject(t *testing.T) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.base+"/v2/transactions",
		strings.NewReader(`{"amount":-1,"method":"cash","buyer":{"email":"nobody"},"products":[{"name":"","price":0}]}`))
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+s.Key())
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusBadRequest, resp.StatusCode)
	return strconv.Itoa(len(s.Requests.All()))
}

// Every page is readable on a phone and on a desk, by light and dark, and by a
// screen reader.
func TestPages(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	for name, d := range map[string]device{"-360": {width: 360}, "": {}, "-dark": {dark: true}} {
		t.Run("device"+name, func(t *testing.T) {
			t.Parallel()
			p := open(t, s.base, d)
			for page, path := range s.paths() {
				p.visit(path)
				p.fits()
				if d.width != 360 {
					p.accessible()
				}
				p.shot(page + name)
				assert.NotEmpty(t, p.text("h1"), path)
			}
		})
	}
}

// paths are the console's pages by name.
func (s *shop) paths() map[string]string {
	list := map[string]string{"home": "/"}
	for name, path := range map[string]string{
		"transactions": "transactions", "transactions-none": "transactions?status=refunded", "transactions-wrong": "transactions?dateFrom=no",
		"transaction-pix": "transactions/" + s.pix, "transaction-card": "transactions/" + s.card,
		"transaction-3ds": "transactions/" + s.challenge, "transaction-voucher": "transactions/" + s.voucher,
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
