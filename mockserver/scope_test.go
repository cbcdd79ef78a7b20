package mockserver_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/legacy"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
)

// The server's controls find a resource in any account, just as its Webhooks,
// Faults and Requests cover every account.
func TestTheServersControlsActOnEveryAccount(t *testing.T) {
	t.Parallel()
	for _, opts := range [][]mockserver.Option{nil, {mockserver.WithSeed(1)}} {
		gw, shop := mockserver.Run(t, opts...), &shop{}
		gw.Webhooks.Send(shop)
		own, err := gw.Client().Transactions.Create(t.Context(), order("order-1"))
		require.NoError(t, err)
		north := gw.Account("sk_test_north")
		client := north.Client()
		theirs, err := client.Transactions.Create(t.Context(), order("order-1"))
		require.NoError(t, err)
		for _, id := range []string{own.ID, theirs.ID} {
			require.NoError(t, gw.Transactions.Pay(id))
		}
		read, err := client.Transactions.Get(t.Context(), theirs.ID)
		require.NoError(t, err)
		assert.Equal(t, gateway.TransactionPaid, read.Status)
		unknown(t, gw.Transactions.Pay("nobody"))
		require.NoError(t, gw.Wait(t.Context()))
		paid := 0
		for _, kind := range shop.got() {
			if kind == webhook.TransactionPaid {
				paid++
			}
		}
		assert.Equal(t, 2, paid)

		transfer, err := client.Transfers.Create(t.Context(), payout("1"))
		require.NoError(t, err)
		require.NoError(t, gw.Transfers.Process(transfer.ID))
		link, err := client.CheckoutLinks.Create(t.Context(), gateway.CheckoutLinkParams{Amount: 500, Currency: gateway.BRL, Title: "Book"})
		require.NoError(t, err)
		require.NoError(t, gw.Checkout.Expire(link.URL[strings.LastIndex(link.URL, "/")+1:]))
		customer, err := client.Customers.Create(t.Context(), gateway.CustomerParams{Name: "Ana", Email: "ana@shop.test"})
		require.NoError(t, err)
		subscription, err := client.Subscriptions.Create(t.Context(), gateway.SubscriptionParams{
			CustomerID: customer.ID, Amount: 500, PaymentMethod: gateway.SubscriptionPixAutomatic, Interval: gateway.IntervalMonth,
		})
		require.NoError(t, err)
		require.NoError(t, gw.Subscriptions.Authorize(subscription.ID))
		v1, err := legacy.New(client, gateway.NewSecret("sk_test_north"))
		require.NoError(t, err)
		payment, err := v1.CreatePixPayment(t.Context(), legacy.PixPaymentParams{
			Payer: legacy.Payer{FullName: "Ana"}, Transaction: legacy.PixCharge{Value: 100},
		})
		require.NoError(t, err)
		require.NoError(t, gw.Legacy.SetStatus(payment.TransactionID, "IN_ANALYSIS"))
	}
}

// The controls of an account don't find another account's resources.
func TestAnAccountsControlsActOnThatAccountAlone(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	north := gw.Account("sk_test_north")
	own, err := gw.Client().Transactions.Create(t.Context(), order("order-1"))
	require.NoError(t, err)
	unknown(t, north.Transactions.Pay(own.ID))
	unknown(t, north.Legacy.SetStatus(own.ID, "PAID"))
	require.NoError(t, gw.Account(gw.Key()).Transactions.Pay(own.ID))

	other := &shop{}
	north.Webhooks.Send(other)
	_, err = gw.Client().Transactions.Create(t.Context(), order("order-2"))
	require.NoError(t, err)
	require.NoError(t, gw.Wait(t.Context()))
	assert.Empty(t, other.got())
}
