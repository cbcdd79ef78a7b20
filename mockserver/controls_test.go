package mockserver_test

import (
	"net/http"
	"path"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/legacy"
	"github.com/gateway-go/gateway/mockserver"
)

// balance reads the account's balance as a v1 merchant does.
func balance(t *testing.T, gw *mockserver.Server) int64 {
	t.Helper()
	client, err := legacy.New(gw.Client(), gateway.NewSecret(gw.Key()))
	require.NoError(t, err)
	b, err := client.Balance(t.Context())
	require.NoError(t, err)
	return b.Balance
}

// conflict checks that a control was rejected because of the resource's state.
func conflict(t *testing.T, err error) {
	t.Helper()
	var refused *mockserver.ControlError
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, http.StatusConflict, refused.Status)
	assert.NotEmpty(t, refused.Detail)
}

func unknown(t *testing.T, err error) {
	t.Helper()
	var refused *mockserver.ControlError
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, http.StatusNotFound, refused.Status)
}

func payout(ref string) gateway.TransferParams {
	return gateway.TransferParams{
		PixKeyType: gateway.PixKeyEmail, PixKeyValue: "maria@example.com", Amount: 1200, ExternalRef: ref,
	}
}

func TestTransferControls(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t, mockserver.WithOpeningBalance(10_000))
	client := gw.Client()
	made, err := client.Transfers.Create(t.Context(), payout("1"))
	require.NoError(t, err)
	status := func() gateway.TransferStatus {
		read, err := client.Transfers.Get(t.Context(), made.ID)
		require.NoError(t, err)
		return read.Status
	}
	require.NoError(t, gw.Transfers.Analyse(made.ID))
	assert.Equal(t, gateway.TransferInAnalysis, status())
	require.NoError(t, gw.Transfers.Process(made.ID))
	assert.Equal(t, gateway.TransferProcessing, status())
	require.NoError(t, gw.Transfers.Settle(made.ID))
	assert.Equal(t, gateway.TransferPaid, status())
	conflict(t, gw.Transfers.Fail(made.ID))
	assert.Equal(t, int64(8800), balance(t, gw))

	made, err = client.Transfers.Create(t.Context(), payout("2"))
	require.NoError(t, err)
	assert.Equal(t, int64(7600), balance(t, gw), "reserved")
	require.NoError(t, gw.Transfers.Process(made.ID))
	require.NoError(t, gw.Transfers.Fail(made.ID))
	assert.Equal(t, gateway.TransferError, status())
	assert.Equal(t, int64(8800), balance(t, gw), "given back")
	unknown(t, gw.Transfers.Settle("nothing"))
}

// subscriber creates a customer, and returns the params of a monthly
// subscription.
func subscriber(t *testing.T, client *gateway.Client) gateway.SubscriptionParams {
	t.Helper()
	customer, err := client.Customers.Create(t.Context(), gateway.CustomerParams{Name: "Ana Souza", Email: "ana@example.com"})
	require.NoError(t, err)
	return gateway.SubscriptionParams{
		CustomerID: customer.ID, Amount: 4990, Token: "pgct_ok", Interval: gateway.IntervalMonth,
	}
}

func TestSubscriptionControls(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	client := gw.Client()
	params := subscriber(t, client)
	params.PaymentMethod, params.Token = gateway.SubscriptionPixAutomatic, ""
	made, err := client.Subscriptions.Create(t.Context(), params)
	require.NoError(t, err)
	read := func() *gateway.Subscription {
		read, err := client.Subscriptions.Get(t.Context(), made.ID)
		require.NoError(t, err)
		return read
	}
	conflict(t, gw.Subscriptions.Revoke(made.ID))
	require.NoError(t, gw.Subscriptions.Authorize(made.ID))
	assert.Equal(t, gateway.SubscriptionActive, read().Status)
	conflict(t, gw.Subscriptions.Reject(made.ID))

	require.NoError(t, gw.Subscriptions.FailNextCharges(made.ID, 1))
	require.NoError(t, gw.Clock.AdvanceTo(made.CreatedAt.AddDate(0, 1, 0)))
	assert.Equal(t, gateway.SubscriptionPastDue, read().Status)
	require.NoError(t, gw.Clock.Advance(3*24*time.Hour))
	assert.Equal(t, gateway.SubscriptionActive, read().Status)
	assert.Len(t, read().Transactions, 3)
	assert.Equal(t, int64(2*4990), balance(t, gw))

	require.NoError(t, gw.Subscriptions.Revoke(made.ID))
	assert.Equal(t, gateway.SubscriptionCanceled, read().Status)
	unknown(t, gw.Subscriptions.Authorize("nothing"))
}

// A subscription's 3-D Secure challenge is passed through its transaction.
func TestSubscriptionChallenge(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	client := gw.Client()
	params := subscriber(t, client)
	params.Token = "pgct_3ds"
	made, err := client.Subscriptions.Create(t.Context(), params)
	require.NoError(t, err)
	action, err := client.Subscriptions.PendingChallenge(t.Context(), made.ID)
	require.NoError(t, err)
	require.NotNil(t, action)
	read, err := client.Subscriptions.Get(t.Context(), made.ID)
	require.NoError(t, err)
	require.NoError(t, gw.Transactions.PassChallenge(read.Transactions[0].ID))
	read, err = client.Subscriptions.Get(t.Context(), made.ID)
	require.NoError(t, err)
	assert.Equal(t, gateway.SubscriptionActive, read.Status)
}

func TestCheckoutControls(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	client := gw.Client()
	link, err := client.CheckoutLinks.Create(t.Context(), gateway.CheckoutLinkParams{Amount: 4990, Title: "Order 17"})
	require.NoError(t, err)
	slug := path.Base(link.URL)
	session, err := client.CheckoutSessions.Open(t.Context(), slug)
	require.NoError(t, err)
	err = gw.Checkout.Pay(slug)
	conflict(t, err)
	require.ErrorContains(t, err, "PATCH /v2/checkout/{slug}/session", "it says how to make one ready")
	_, err = client.CheckoutSessions.Update(t.Context(), slug, session.SessionToken, gateway.CheckoutSessionParams{
		Buyer:         gateway.CheckoutBuyer{Name: "Ana Souza", Email: "ana@example.com"},
		PaymentMethod: gateway.Pix,
	})
	require.NoError(t, err)
	require.NoError(t, gw.Checkout.Pay(slug))
	assert.Equal(t, int64(4990), balance(t, gw))
	_, err = client.CheckoutSessions.Update(t.Context(), slug, session.SessionToken, gateway.CheckoutSessionParams{PaymentMethod: gateway.CreditCard})
	require.ErrorIs(t, err, gateway.ErrConflict, "the session is completed")

	session, err = client.CheckoutSessions.Open(t.Context(), slug)
	require.NoError(t, err)
	assert.Equal(t, 1, session.Link.UsedCount)
	require.NoError(t, gw.Checkout.Expire(slug))
	conflict(t, gw.Checkout.Deactivate(slug))
	_, err = client.CheckoutSessions.Resume(t.Context(), slug, session.SessionToken)
	require.ErrorIs(t, err, gateway.ErrRetired)
	unknown(t, gw.Checkout.Pay("nothing"))

	link, err = client.CheckoutLinks.Create(t.Context(), gateway.CheckoutLinkParams{Amount: 4990})
	require.NoError(t, err)
	require.NoError(t, gw.Checkout.Deactivate(path.Base(link.URL)))
	_, err = client.CheckoutSessions.Open(t.Context(), path.Base(link.URL))
	require.ErrorIs(t, err, gateway.ErrRetired)
}

// Controls act on a checkout's payment as on any other transaction, and the
// session is updated.
func TestCheckoutFollowsItsTransaction(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	client := gw.Client()
	link, err := client.CheckoutLinks.Create(t.Context(), gateway.CheckoutLinkParams{
		Products: []gateway.CheckoutProduct{{Name: "Mug", Price: 3990, Quantity: 2}},
	}, gateway.BodyField("max_uses", 1))
	require.NoError(t, err)
	slug := path.Base(link.URL)
	session, err := client.CheckoutSessions.Open(t.Context(), slug)
	require.NoError(t, err)
	_, err = client.CheckoutSessions.Update(t.Context(), slug, session.SessionToken, gateway.CheckoutSessionParams{
		Buyer:         gateway.CheckoutBuyer{Name: "Ana Souza", Email: "ana@example.com"},
		PaymentMethod: gateway.Pix,
	})
	require.NoError(t, err)
	require.NoError(t, gw.Checkout.Begin(slug))
	conflict(t, gw.Checkout.Begin(slug))
	page, err := client.Transactions.List(t.Context(), gateway.TransactionListParams{})
	require.NoError(t, err)
	require.Len(t, page.Items, 1)
	assert.Equal(t, int64(7980), page.Items[0].Amount)

	require.NoError(t, gw.Clock.Advance(24*time.Hour), "the Pix expires")
	require.NoError(t, gw.Checkout.Begin(slug), "the session is ready again")
	page, err = client.Transactions.List(t.Context(), gateway.TransactionListParams{})
	require.NoError(t, err)
	require.NoError(t, gw.Transactions.Pay(page.Items[0].ID))
	_, err = client.CheckoutSessions.Open(t.Context(), slug)
	require.ErrorIs(t, err, gateway.ErrRetired, "the link is exhausted")
}

func TestLegacyControls(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	client, err := legacy.New(gw.Client(), gateway.NewSecret(gw.Key()))
	require.NoError(t, err)
	made, err := client.CreatePixPayment(t.Context(), legacy.PixPaymentParams{
		Payer: legacy.Payer{FullName: "Ana Souza"}, Transaction: legacy.PixCharge{Value: 4990},
	})
	require.NoError(t, err)
	require.NoError(t, gw.Legacy.SetStatus(made.TransactionID, "IN_ANALYSIS"))
	require.NoError(t, gw.Legacy.SetStatus(made.TransactionID, "PAID"))
	assert.Equal(t, int64(4990), balance(t, gw))
	conflict(t, gw.Legacy.SetStatus(made.TransactionID, "CANCELLED"))
	unknown(t, gw.Legacy.SetStatus("nothing", "PAID"))
	read, err := gw.Client().Transactions.Get(t.Context(), made.TransactionID)
	require.NoError(t, err)
	assert.True(t, read.Settled())
	var refused *mockserver.ControlError
	require.ErrorAs(t, gw.Legacy.SetStatus(made.TransactionID, "WON"), &refused)
	assert.Equal(t, http.StatusBadRequest, refused.Status)
}
