package webhook_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
)

// These tests run the receiver against the mock gateway.

func order(notifyURL string) gateway.TransactionParams {
	return gateway.TransactionParams{
		Amount: 1990, Method: gateway.Pix, NotifyURL: notifyURL,
		Buyer:    gateway.BuyerParams{Name: "Ana Souza", Email: "ana@example.com"},
		Products: []gateway.Product{{Name: "Mug", Price: 1990}},
	}
}

// kindsOf returns the first words of the handlers' records.
func kindsOf(got *effects) (kinds []string) {
	for _, line := range got.all() {
		kind, _, _ := strings.Cut(line, " ")
		kinds = append(kinds, kind)
	}
	return kinds
}

func TestAPaymentFromTheMock(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	cfg := webhook.Config{Keys: []webhook.SigningKey{{Key: gw.Secret()}}}
	rx, got := shop(t, cfg)
	gw.Webhooks.Send(rx)
	client := gw.Client()
	tx, err := client.Transactions.Create(t.Context(), order(""))
	require.NoError(t, err)
	require.NoError(t, gw.Transactions.Pay(tx.ID))
	for _, amount := range []int64{500, 490} {
		_, err = client.Transactions.Refund(t.Context(), tx.ID, gateway.RefundParams{Amount: amount})
		require.NoError(t, err)
	}
	_, err = client.Transactions.Refund(t.Context(), tx.ID, gateway.RefundParams{Full: true})
	require.NoError(t, err)
	require.NoError(t, gw.Wait(t.Context()))
	assert.Equal(t, []string{
		"transaction.created", "transaction.pending", "transaction.paid",
		"transaction.refunded", "transaction.refunded", "transaction.refunded",
	}, kindsOf(got))
	assert.Contains(t, got.all()[5], "refunded")
}

func TestARegisteredEndpointAndANotifyURLShareAURL(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	rx, got := shop(t, webhook.Config{
		Keys: []webhook.SigningKey{{Key: gw.Secret()}}, API: gw.Client(), Trust: webhook.SignatureOrReadBack,
		SecretPath: gateway.NewSecret("c0ffee00c0ffee00"),
	})
	arrived := map[bool]int{}
	both := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived[r.Header.Get(webhook.DefaultSignatureHeader) != ""]++
		if r.URL.Path == "/" {
			r.URL.Path = "/hooks/c0ffee00c0ffee00"
		}
		rx.ServeHTTP(w, r)
	})
	serial := make(chan struct{}, 1)
	gate := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serial <- struct{}{}
		defer func() { <-serial }()
		both(w, r)
	})
	gw.Webhooks.Send(gate)
	gw.Webhooks.ServeHost("shop.example", gate)
	client := gw.Client()
	tx, err := client.Transactions.Create(t.Context(), order("https://shop.example/hooks/c0ffee00c0ffee00"))
	require.NoError(t, err)
	require.NoError(t, gw.Wait(t.Context()))
	require.NoError(t, gw.Transactions.Pay(tx.ID))
	require.NoError(t, gw.Wait(t.Context()))
	for _, amount := range []int64{500, 490} {
		_, err = client.Transactions.Refund(t.Context(), tx.ID, gateway.RefundParams{Amount: amount})
		require.NoError(t, err)
		require.NoError(t, gw.Wait(t.Context()))
	}
	assert.Equal(t, map[bool]int{true: 5, false: 5}, arrived)
	assert.ElementsMatch(t, []string{
		"transaction.created", "transaction.pending", "transaction.paid", "transaction.refunded", "transaction.refunded",
	}, kindsOf(got), "ten deliveries, five events")
}

// readBackShop trusts only the mock's API; its deliveries are unsigned.
func readBackShop(t *testing.T, gw *mockserver.Server) (*webhook.Receiver, *effects) {
	t.Helper()
	rx, got := shop(t, webhook.Config{
		API: gw.Client(), Now: gw.Clock.Now, // weeks pass instantly:
		ReadBack: webhook.ReadBack{PerSecond: 1e6},
	})
	_, err := gw.Webhooks.AddEndpoint(mockserver.Endpoint{Handler: rx})
	require.NoError(t, err)
	return rx, got
}

func TestAYearOfASubscriptionUnderReadBack(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	rx, got := readBackShop(t, gw)
	client := gw.Client()
	customer, err := client.Customers.Create(t.Context(), gateway.CustomerParams{Name: "Ana Souza", Email: "ana@example.com"})
	require.NoError(t, err)
	sub, err := client.Subscriptions.Create(t.Context(), gateway.SubscriptionParams{
		CustomerID: customer.ID, Amount: 4990, Interval: gateway.IntervalMonth, Token: "pgct_ok_1",
	})
	require.NoError(t, err)
	require.NoError(t, gw.Wait(t.Context()))
	forge := func(kind webhook.Kind) int {
		body := fmt.Sprintf(`{"id":"forged-%d","event":"subscription","data":{"id":%q,"event_type":%q}}`, len(got.all()), sub.ID, kind)
		return serve(rx, request(body)).Code
	}
	forgeAll := func() {
		for _, kind := range webhook.DocumentedKinds() {
			if kind != webhook.SubscriptionUpdated { // an "updated" is true after every change
				forge(kind)
			}
		}
	}
	assert.Equal(t, http.StatusServiceUnavailable, forge(webhook.SubscriptionRenewed), "not in the first month")
	for range 5 {
		require.NoError(t, gw.Clock.Advance(31*24*time.Hour))
		forgeAll()
	}
	assert.Equal(t, http.StatusServiceUnavailable, forge(webhook.SubscriptionPaymentFailed))
	assert.Equal(t, http.StatusServiceUnavailable, forge(webhook.SubscriptionCanceled))

	// A renewal fails twice, then succeeds.
	require.NoError(t, gw.Subscriptions.FailNextCharges(sub.ID, 2))
	require.NoError(t, gw.Clock.Advance(31*24*time.Hour))
	for range 6 {
		forgeAll()
		require.NoError(t, gw.Clock.Advance(2*24*time.Hour))
	}
	_, err = client.Subscriptions.Cancel(t.Context(), sub.ID, gateway.SubscriptionCancelParams{})
	require.NoError(t, err)
	for range 9 {
		forgeAll()
		require.NoError(t, gw.Clock.Advance(5*24*time.Hour))
	}
	forgeAll()

	counts := map[string]int{}
	for _, kind := range kindsOf(got) {
		if strings.HasPrefix(kind, "subscription.") {
			counts[kind]++
		}
	}
	assert.Equal(t, map[string]int{
		"subscription.created": 1, "subscription.started": 1, "subscription.renewed": 6, "subscription.payment_failed": 2,
		"subscription.past_due": 1, "subscription.updated": 1, "subscription.canceled": 1,
	}, counts, "%s", got.all())
}

func TestForgersOfAPaymentUnderReadBack(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	rx, got := readBackShop(t, gw)
	client := gw.Client()
	tx, err := client.Transactions.Create(t.Context(), order(""))
	require.NoError(t, err)
	// The forger knows the URL and the id, tries every forgery after every
	// step, and tries them all again once the store has forgotten the events.
	step := func(err error) {
		t.Helper()
		require.NoError(t, err)
		require.NoError(t, gw.Wait(t.Context()))
		for range 3 {
			for _, kind := range append(webhook.DocumentedKinds(), webhook.TransactionExpired, webhook.TransactionRefused) {
				serve(rx, request(txBody("forged-"+string(kind), kind, tx.ID, "")))
			}
			require.NoError(t, gw.Clock.Advance(12*time.Hour))
		}
	}
	step(nil)
	require.Equal(t, []string{"transaction.created", "transaction.pending", "transaction.expired"}, kindsOf(got))

	tx, err = client.Transactions.Create(t.Context(), order(""))
	require.NoError(t, err)
	require.NoError(t, gw.Wait(t.Context())) // a pending after the payment is late
	step(gw.Transactions.Pay(tx.ID))
	for _, amount := range []int64{500, 490} {
		require.NoError(t, gw.Clock.Advance(9*24*time.Hour))
		_, err = client.Transactions.Refund(t.Context(), tx.ID, gateway.RefundParams{Amount: amount})
		step(err)
	}
	require.NoError(t, gw.Clock.Advance(9*24*time.Hour))
	step(nil)
	assert.Equal(t, []string{
		"transaction.created", "transaction.pending", "transaction.paid", "transaction.refunded", "transaction.refunded",
	}, kindsOf(got)[3:])
}

// Two endpoints, one of which has a secret, report a subscription's events
// twice.
func TestASubscriptionReportedSignedAndUnsignedIsHandledOnce(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	client := gw.Client()
	rx, got := shop(t, webhook.Config{
		Keys: []webhook.SigningKey{{Key: gw.Secret()}}, API: client, Trust: webhook.SignatureOrReadBack, Now: gw.Clock.Now,
		ReadBack: webhook.ReadBack{PerSecond: 1e6},
	})
	gw.Webhooks.Send(rx)
	_, err := gw.Webhooks.AddEndpoint(mockserver.Endpoint{Handler: rx})
	require.NoError(t, err)
	customer, err := client.Customers.Create(t.Context(), gateway.CustomerParams{Name: "Ana Souza", Email: "ana@example.com"})
	require.NoError(t, err)
	sub, err := client.Subscriptions.Create(t.Context(), gateway.SubscriptionParams{
		CustomerID: customer.ID, Amount: 4990, Interval: gateway.IntervalMonth, Token: "pgct_ok_1",
	})
	require.NoError(t, err)
	require.NoError(t, gw.Wait(t.Context()))
	for range 3 {
		require.NoError(t, gw.Clock.Advance(31*24*time.Hour))
		require.NoError(t, gw.Wait(t.Context()))
	}
	require.NoError(t, gw.Subscriptions.FailNextCharges(sub.ID, 1))
	for range 8 {
		require.NoError(t, gw.Clock.Advance(6*24*time.Hour))
		require.NoError(t, gw.Wait(t.Context()))
	}
	counts := map[string]int{}
	for _, kind := range kindsOf(got) {
		if strings.HasPrefix(kind, "subscription.") {
			counts[kind]++
		}
	}
	assert.Equal(t, map[string]int{
		"subscription.created": 1, "subscription.started": 1, "subscription.renewed": 4,
		"subscription.payment_failed": 1, "subscription.past_due": 1,
	}, counts, "%s", got.all())
}

func TestPixAutomaticoWithATrialUnderReadBack(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	_, got := readBackShop(t, gw)
	client := gw.Client()
	customer, err := client.Customers.Create(t.Context(), gateway.CustomerParams{Name: "Ana Souza", Email: "ana@example.com"})
	require.NoError(t, err)
	sub, err := client.Subscriptions.Create(t.Context(), gateway.SubscriptionParams{
		CustomerID: customer.ID, Amount: 4990, Interval: gateway.IntervalWeek, PaymentMethod: gateway.SubscriptionPixAutomatic,
		TrialEnd: gw.Clock.Now().Add(20 * 24 * time.Hour),
	})
	require.NoError(t, err)
	require.NoError(t, gw.Subscriptions.Authorize(sub.ID))
	require.NoError(t, gw.Clock.Advance(35*24*time.Hour))
	require.NoError(t, gw.Subscriptions.Revoke(sub.ID))
	require.NoError(t, gw.Wait(t.Context()))
	assert.Equal(t, []string{
		"subscription.created", "subscription.updated", "subscription.trial_will_end", "subscription.started",
		"subscription.renewed", "subscription.renewed", "subscription.canceled",
	}, kindsOf(got))
}

func TestTransfersUnderReadBack(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	_, got := readBackShop(t, gw)
	client := gw.Client()
	pay := func() string {
		tr, err := client.Transfers.Create(t.Context(), gateway.TransferParams{PixKeyType: gateway.PixKeyEmail, PixKeyValue: "ana@example.com", Amount: 1200})
		require.NoError(t, err)
		require.NoError(t, gw.Wait(t.Context()))
		return tr.ID
	}
	step := func(err error) {
		t.Helper()
		require.NoError(t, err)
		require.NoError(t, gw.Wait(t.Context()))
	}
	id := pay()
	step(gw.Transfers.Analyse(id))
	step(gw.Transfers.Process(id))
	step(gw.Transfers.Settle(id))
	id = pay()
	step(gw.Transfers.Process(id))
	step(gw.Transfers.Fail(id))
	_, err := client.Transfers.Cancel(t.Context(), pay(), gateway.TransferCancelParams{})
	step(err)
	assert.Equal(t, []string{
		"payout.created", "payout.in_analysis", "payout.processing", "payout.transferred",
		"payout.created", "payout.processing", "payout.failed", "payout.created", "payout.canceled",
	}, kindsOf(got))
}

func TestChangesWithoutAWebhookReachTheHandlers(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	client := gw.Client()
	rx, got := shop(t, webhook.Config{Keys: []webhook.SigningKey{{Key: gw.Secret()}}, API: client})
	gw.Webhooks.Send(rx)
	var expired, refused, lost *gateway.Transaction
	var err error
	expired, err = client.Transactions.Create(t.Context(), order(""))
	require.NoError(t, err)
	lost, err = client.Transactions.Create(t.Context(), order(""))
	require.NoError(t, err)
	card := order("")
	card.Method, card.Token = gateway.CreditCard, "pgct_ok_2"
	refused, err = client.Transactions.Create(t.Context(), card)
	require.NoError(t, err)
	require.NoError(t, gw.Wait(t.Context()))
	require.NoError(t, gw.Transactions.Refuse(refused.ID))
	require.NoError(t, gw.Webhooks.Drop("transaction.paid"))
	require.NoError(t, gw.Transactions.Pay(lost.ID))
	require.NoError(t, gw.Clock.Advance(25*time.Hour))
	before := len(got.all())
	require.Equal(t, 6, before, "created and pending of each, but no webhooks for later changes")

	reconcile, err := webhook.NewReconciler(rx, webhook.ReconcilerConfig{
		Open: openOnes(pendingTx(expired.ID, refused.ID, lost.ID)...),
	})
	require.NoError(t, err)
	for range 2 {
		_, err = reconcile.Once(t.Context())
		require.NoError(t, err)
	}
	found := got.all()[before:]
	slices.Sort(found)
	assert.Equal(t, []string{
		"transaction.expired " + expired.ID + " expired",
		"transaction.paid " + lost.ID + " paid",
		"transaction.refused " + refused.ID + " refused",
	}, found)
}

// The diagnosis covers the member order of every event that the mock sends, so
// it recognizes a body whose members were sorted.
func TestDiagnoseRecognizesEveryEventWithSortedMembers(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	type delivery struct {
		header http.Header
		body   []byte
	}
	var mu sync.Mutex
	var got []delivery
	gw.Webhooks.Send(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		mu.Lock()
		defer mu.Unlock()
		got = append(got, delivery{r.Header, body})
	}))
	client := gw.Client()
	tx, err := client.Transactions.Create(t.Context(), order(""))
	require.NoError(t, err)
	require.NoError(t, gw.Transactions.Pay(tx.ID))
	_, err = client.Transactions.Refund(t.Context(), tx.ID, gateway.RefundParams{Amount: 500, Reason: "too small"})
	require.NoError(t, err)
	_, err = client.Transfers.Create(t.Context(), gateway.TransferParams{Amount: 100, PixKeyType: gateway.PixKeyEmail, PixKeyValue: "ana@shop.test"})
	require.NoError(t, err)
	customer, err := client.Customers.Create(t.Context(), gateway.CustomerParams{Name: "João", Email: "joao@shop.test"})
	require.NoError(t, err)
	_, err = client.Subscriptions.Create(t.Context(), gateway.SubscriptionParams{
		CustomerID: customer.ID, Amount: 1990, Interval: gateway.IntervalMonth, Token: "pgct_renewal_fails",
	})
	require.NoError(t, err)
	require.NoError(t, gw.Clock.Advance(60*24*time.Hour))
	families := map[string]bool{}
	for _, d := range got {
		event, err := webhook.Parse(d.body)
		require.NoError(t, err)
		families[string(event.Family)] = true
		var any map[string]any
		require.NoError(t, json.Unmarshal(d.body, &any))
		sorted, err := json.MarshalIndent(any, "", "  ")
		require.NoError(t, err)
		diagnosis := webhook.Diagnose(webhook.Delivery{Header: d.header, Body: sorted}, []webhook.SigningKey{{Key: gw.Secret()}})
		require.Len(t, diagnosis.Findings, 1, "%s: %s", event.Kind, diagnosis)
		assert.Equal(t, "reencoded_body", diagnosis.Findings[0].Cause, "%s: %s", event.Kind, diagnosis)
		assert.True(t, diagnosis.Findings[0].Proven, "%s: %s", event.Kind, diagnosis)
	}
	assert.Len(t, families, 3)
}

// What a Reconciler finds about paid orders and about a subscription that missed
// several webhooks, as docs/webhooks.md says.
func TestWhatAReconcilerFindsAfterThePayment(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	client := gw.Client()
	rx, got := shop(t, webhook.Config{Keys: []webhook.SigningKey{{Key: gw.Secret()}}, API: client}) // it gets no webhooks
	paid := func(token gateway.CardToken) *gateway.Transaction {
		p := order("")
		p.Method, p.Token = gateway.CreditCard, token
		tx, err := client.Transactions.Create(t.Context(), p)
		require.NoError(t, err)
		return tx
	}
	refund := func(id string) {
		_, err := client.Transactions.Refund(t.Context(), id, gateway.RefundParams{Amount: 10})
		require.NoError(t, err)
	}
	charged, refunded, again := paid("pgct_captured_1"), paid("pgct_captured_2"), paid("pgct_captured_3")
	require.NoError(t, gw.Transactions.Chargeback(charged.ID))
	refund(refunded.ID)
	refund(again.ID)
	refund(again.ID)
	customer, err := client.Customers.Create(t.Context(), gateway.CustomerParams{Name: "Ana", Email: "ana@example.com"})
	require.NoError(t, err)
	sub, err := client.Subscriptions.Create(t.Context(), gateway.SubscriptionParams{
		CustomerID: customer.ID, Amount: 4990, Interval: gateway.IntervalMonth, Token: "pgct_ok",
	})
	require.NoError(t, err)
	require.NoError(t, gw.Clock.Advance(100*24*time.Hour))

	_, err = reconciler(t, rx,
		webhook.OpenResource{Family: webhook.FamilyTransaction, ID: charged.ID, Status: "captured"},
		webhook.OpenResource{Family: webhook.FamilyTransaction, ID: refunded.ID, Status: "captured"},
		webhook.OpenResource{Family: webhook.FamilyTransaction, ID: again.ID, Status: "partially_refunded"},
		webhook.OpenResource{Family: webhook.FamilySubscription, ID: sub.ID, Status: "active", PeriodEnd: sub.CurrentPeriodEnd.Time},
	).Once(t.Context())
	require.NoError(t, err)
	kinds := kindsOf(got)
	slices.Sort(kinds)
	assert.Equal(t, []string{"subscription.renewed", "transaction.chargedback", "transaction.refunded"}, kinds)
	sub, err = client.Subscriptions.Get(t.Context(), sub.ID)
	require.NoError(t, err)
	assert.Len(t, sub.Transactions, 4, "three renewals")
}
