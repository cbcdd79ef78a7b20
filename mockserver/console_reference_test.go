package mockserver_test

import (
	"net/http"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
)

// TestAnExampleCanBeSentTwice sends the examples of the API reference that create
// something, twice each. The response leads to what was created, and no webhook goes to a
// host of the documentation.
func TestAnExampleCanBeSentTwice(t *testing.T) {
	t.Parallel()
	for _, dialect := range []mockserver.Dialect{mockserver.Document, mockserver.Live} {
		gw := mockserver.Run(t, mockserver.WithDialect(dialect))
		_, err := gw.Client().Customers.Create(t.Context(), gateway.CustomerParams{Name: "Bia", Email: "bia@example.com", Document: &gateway.Document{Type: "CPF", Number: "52998224725"}})
		require.NoError(t, err)
		b := browser{t, gw}
		made := regexp.MustCompile(`href="([^"]+)">Open it in the console`)
		pages := map[string]bool{}
		for _, example := range []string{
			"transactions_create?example=create", "transactions_create?example=create_card", "transactions_create?example=create_voucher",
			"customers_create", "transfers_create", "checkout_links_create?example=create_amount",
			"subscriptions_create?example=create", "subscriptions_create?example=create_trial", "subscriptions_create?example=create_pix_automatic",
		} {
			for range 2 {
				// The body is the text of a textarea, which forms don't read.
				p := b.get(consoleAt + "/reference/" + example)
				body := regexp.MustCompile(`(?s)<textarea name="body"[^>]*>(.*?)</textarea>`).FindStringSubmatch(p.text())
				require.Len(t, body, 2, example)
				p = b.click(p.form(t, "Send"), "body", body[1])
				require.Contains(t, p.body, "<h1>201", "%s: %s", example, p.text())
				to := made.FindStringSubmatch(p.body)
				require.Len(t, to, 2, example)
				assert.False(t, pages[to[1]], "%s: %s was made before", example, to[1])
				pages[to[1]] = true
				require.Equal(t, http.StatusOK, b.ask(http.MethodGet, to[1], nil).status)
			}
		}
		assert.Len(t, pages, 18)
		for _, d := range gw.Webhooks.Deliveries() {
			assert.NotContains(t, d.URL, "example", d.Kind)
		}
	}
}

// A call on a resource is filled in with the latest one.
func TestTheReferenceKnowsTheLatestResource(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	tx, err := gw.Client().Transactions.Create(t.Context(), order("order-1"))
	require.NoError(t, err)
	b := browser{t, gw}
	p := b.click(b.get(consoleAt+"/reference/transactions_get").form(t, "Send"))
	inOrder(t, p.text(), "200 OK", "Open it in the console", tx.ID)
}
