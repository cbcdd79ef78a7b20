package webhook_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/webhook"
)

const (
	unconfirmed     = `401 {"error":"unconfirmed_event"}`
	notConfirmedYet = `503 {"error":"event_not_confirmed_yet"}`
)

// shop is a receiver whose handlers record the events that they get.
func shop(t *testing.T, cfg webhook.Config) (*webhook.Receiver, *effects) {
	t.Helper()
	cfg.Logger = quiet
	rx := receiver(t, cfg)
	var got effects
	webhook.OnTransaction(rx, webhook.AnyKind, func(_ context.Context, e *webhook.TransactionEvent) error {
		got.add("%s %s %s", e.Kind, e.ResourceID, e.State())
		return nil
	})
	webhook.OnSubscription(rx, webhook.AnyKind, func(_ context.Context, e *webhook.SubscriptionEvent) error {
		got.add("%s %s %s", e.Kind, e.ResourceID, e.State())
		return nil
	})
	webhook.OnTransfer(rx, webhook.AnyKind, func(_ context.Context, e *webhook.TransferEvent) error {
		got.add("%s %s %s", e.Kind, e.ResourceID, e.State())
		return nil
	})
	return rx, &got
}

func mixed(t *testing.T, api *fakeAPI) webhook.Config {
	t.Helper()
	return webhook.Config{Trust: webhook.SignatureOrReadBack, Keys: []webhook.SigningKey{{Key: secret}}, API: api.client(t)}
}

func TestReadBackTrustsOnlyTheAPI(t *testing.T) {
	t.Parallel()
	api := &fakeAPI{}
	rx, got := shop(t, webhook.Config{API: api.client(t)})

	assert.Equal(t, unconfirmed, response(rx, request(paid("evt_1", "tx_1"))), "no such transaction")
	api.setTransaction("tx_1", "pending")
	w := serve(rx, request(paid("evt_1", "tx_1")))
	assert.Equal(t, notConfirmedYet, fmt.Sprintf("%d %s", w.Code, w.Body))
	assert.Equal(t, "5", w.Header().Get("Retry-After"))
	api.setTransaction("tx_1", "refused")
	assert.Equal(t, unconfirmed, response(rx, request(paid("evt_1", "tx_1"))), "it can never be paid")
	assert.Empty(t, got.all())

	api.setTransaction("tx_1", "captured")
	assert.Equal(t, received, response(rx, request(paid("evt_1", "tx_1"))))
	assert.Equal(t, []string{"transaction.paid tx_1 captured"}, got.all(), "the handler has the confirmed state")

	for _, body := range []string{
		`{"id":"e","event":"dispute","data":{"id":"d_1","event_type":"dispute.opened"}}`, // nothing to read
		`{"id":"e","event":"transaction","data":{"event_type":"transaction.paid"}}`,
		`{"id":"e","event":"transaction","data":{"id":"../tx_1","event_type":"transaction.paid"}}`,
		`{"id":"e","event":"transaction","data":{"id":"TX_1","event_type":"transaction.paid"}}`,
		`{"id":"e","event":"transfer","type":"payout.transferred","data":{"id":"tx_1"}}`, // an id of another family
	} {
		assert.Equal(t, unconfirmed, response(rx, request(body)), body)
	}
	assert.Len(t, got.all(), 1)
}

func TestAnAPIThatReadsIDsLenientlyGivesOneEventOneIdentity(t *testing.T) {
	t.Parallel()
	api := &fakeAPI{}
	rx, got := shop(t, webhook.Config{API: api.client(t)})
	api.setTransaction("tx_1", "paid")
	api.set("transactions/TX_1", map[string]any{"id": "tx_1", "status": "paid"})
	assert.Equal(t, received, response(rx, request(paid("evt_1", "tx_1"))))
	assert.Equal(t, unconfirmed, response(rx, request(paid("evt_2", "TX_1"))))
	assert.Len(t, got.all(), 1)
}

func TestAnUnreachableAPIIsNotARejection(t *testing.T) {
	t.Parallel()
	api := &fakeAPI{}
	rx, got := shop(t, webhook.Config{API: api.client(t)})
	api.setTransaction("tx_1", "paid")
	for _, status := range []int{500, 503, 429, 401, 403} {
		api.fail(status)
		assert.Equal(t, notConfirmedYet, response(rx, request(paid("evt_1", "tx_1"))), status)
	}
	api.fail(0)
	assert.Equal(t, received, response(rx, request(paid("evt_1", "tx_1"))))
	assert.Len(t, got.all(), 1)
}

func TestReadBackTreatsOneFactAsOneEvent(t *testing.T) {
	t.Parallel()
	api := &fakeAPI{}
	rx, got := shop(t, webhook.Config{API: api.client(t)})
	api.setTransaction("tx_1", "paid")
	for i := range 5 {
		assert.Equal(t, received, response(rx, request(paid(fmt.Sprintf("forged_%d", i), "tx_1"))))
	}
	for _, refunded := range []int{500, 500, 900} {
		api.setTransaction("tx_1", "partially_refunded", "refunded_amount", refunded)
		assert.Equal(t, received, response(rx, request(txBody(fmt.Sprintf("r_%d", refunded), webhook.TransactionRefunded, "tx_1", ""))))
	}
	api.setTransaction("tx_1", "partially_refunded", "refunded_amount", 900, "extra", 1)
	assert.Equal(t, received, response(rx, request(paid("forged_again", "tx_1"))), "the state has changed, but the payment is the same")
	assert.Equal(t, []string{
		"transaction.paid tx_1 paid",
		"transaction.refunded tx_1 partially_refunded",
		"transaction.refunded tx_1 partially_refunded",
	}, got.all(), "two refunds are two facts")
}

func TestRefundsOfAnAPIThatOmitsTheAmount(t *testing.T) {
	t.Parallel()
	api := &fakeAPI{}
	rx, got := shop(t, webhook.Config{API: api.client(t)})
	for _, status := range []string{"partially_refunded", "refunded", "refunded"} {
		api.setTransaction("tx_1", status)
		assert.Equal(t, received, response(rx, request(txBody("evt_"+status, webhook.TransactionRefunded, "tx_1", status))))
	}
	assert.Equal(t, []string{"transaction.refunded tx_1 partially_refunded", "transaction.refunded tx_1 refunded"}, got.all())
}

// TestUnsignedEventWithTheSettledAmount: the event and the API may report what is
// settled in amount, and not both do.
func TestUnsignedEventWithTheSettledAmount(t *testing.T) {
	t.Parallel()
	for members, want := range map[string]string{
		`"amount":1990`:                          received,
		`"amount":383`:                           received,
		`"amount":400,"paid_amount":"1990"`:      received,
		`"amount":400,"base_price":1990`:         received,
		`"amount":400`:                           unconfirmed,
		`"amount":400,"paid_amount":"19900"`:     unconfirmed,
		`"amount":0,"base_price":2,"paid_at":""`: unconfirmed,
	} {
		api := &fakeAPI{}
		var data webhook.TransactionData
		rx, err := webhook.New(mixed(t, api))
		require.NoError(t, err)
		webhook.OnTransaction(rx, webhook.TransactionPaid, func(_ context.Context, e *webhook.TransactionEvent) error {
			data = e.Data
			return nil
		})
		api.setTransaction("tx_1", "paid", "amount", 383, "base_price", 1990, "paid_amount", 1990)
		body := `{"id":"e","event":"transaction","data":{"id":"tx_1","event_type":"transaction.paid","status":"paid",` + members + `}}`
		assert.Equal(t, want, response(rx, request(body)), members)
		if want == received {
			assert.Equal(t, []int64{383, 1990, 1990, 1990}, []int64{data.Amount, data.BasePrice, data.PaidAmount, data.Charged()}, members)
			assert.True(t, data.AmountIs(1990), members)
		}
	}
}

// TestRefundOfTheSettledAmountOnly: a refund of what is settled is not a refund of
// what the buyer paid.
func TestRefundOfTheSettledAmountOnly(t *testing.T) {
	t.Parallel()
	api := &fakeAPI{}
	rx, got := shop(t, mixed(t, api))
	refunded := txBody("e", "transaction.partially_refunded", "tx_1", "refunded")
	api.setTransaction("tx_1", "partially_refunded", "amount", 383, "paid_amount", 1990, "refunded_amount", 383)
	assert.NotEqual(t, received, response(rx, request(refunded)))
	assert.Empty(t, got.all())
}

func TestAnUnsignedEventOfAnUnknownKindIsNotConfirmed(t *testing.T) {
	t.Parallel()
	api := &fakeAPI{}
	rx, got := shop(t, mixed(t, api))
	api.setTransaction("tx_1", "pending")
	api.setTransaction("tx_2", "captured")
	api.set("transfers/po_1", map[string]any{"id": "po_1", "status": "paid", "amount": "1200"})
	api.set("subscriptions/sub_1", map[string]any{"id": "sub_1", "status": "active"})
	for _, body := range []string{
		txBody("e", "transaction.approved", "tx_1", "paid"),
		txBody("e", "transaction.approved", "tx_1", ""),
		txBody("e", "transaction.captured", "tx_2", "captured"), // an alias of transaction.paid
		txBody("e", "TRANSACTION.PAID", "tx_2", "captured"),
		txBody("e", "", "tx_2", ""),
		`{"id":"e","type":"payout.paid","data":{"id":"po_1"}}`,
		`{"id":"e","event":"subscription","data":{"id":"sub_1","event_type":"subscription.upgraded"}}`,
		`{"id":"e","event":"subscription","data":{"id":"sub_1","event_type":"transaction.paid"}}`,
	} {
		assert.Equal(t, unconfirmed, response(rx, request(body)), body)
	}
	assert.Empty(t, got.all())
	assert.Equal(t, received, response(rx, signed(txBody("e", "transaction.approved", "tx_1", ""))), "the gateway may add kinds")
	assert.Equal(t, []string{"transaction.approved tx_1 "}, got.all())
}

func TestSignedAndUnsignedDeliveriesOfOneEventAreOne(t *testing.T) {
	t.Parallel()
	for name, unsignedFirst := range map[string]bool{"unsigned first": true, "signed first": false} {
		api := &fakeAPI{}
		api.setTransaction("tx_1", "paid")
		rx, got := shop(t, mixed(t, api))
		deliveries := []*http.Request{signed(paid("evt_1", "tx_1")), request(paid("evt_1", "tx_1"))}
		if unsignedFirst {
			deliveries[0], deliveries[1] = deliveries[1], deliveries[0]
		}
		for _, r := range append(deliveries, signed(paid("evt_1", "tx_1")), request(paid("evt_1", "tx_1")), request(paid("forged", "tx_1"))) {
			assert.Equal(t, received, response(rx, r), name)
		}
		assert.Len(t, got.all(), 1, name)
	}
}

func TestAConfirmedForgeryIsTheRealEventAndHidesNoOtherEvent(t *testing.T) {
	t.Parallel()
	api := &fakeAPI{}
	rx, got := shop(t, mixed(t, api))
	refund := func(id string) string {
		return txBody(id, webhook.TransactionRefunded, "tx_1", "partially_refunded")
	}
	// Two refunds were made. An attacker who knows the URL and the id reports
	// them before the gateway does. The report is true, and counts as one
	// event.
	api.setTransaction("tx_1", "partially_refunded", "refunded_amount", 900)
	assert.Equal(t, received, response(rx, request(refund("forged"))))
	assert.Equal(t, received, response(rx, request(refund("forged again"))))
	assert.Len(t, got.all(), 1)
	assert.Equal(t, received, response(rx, signed(refund("evt_1"))))
	assert.Len(t, got.all(), 1, "the first real event has been handled already")
	assert.Equal(t, received, response(rx, signed(refund("evt_2"))))
	assert.Len(t, got.all(), 2, "the second real event is not lost")
	for _, id := range []string{"evt_1", "evt_2"} {
		assert.Equal(t, received, response(rx, signed(refund(id))))
		assert.Equal(t, received, response(rx, request(refund(id))))
	}
	assert.Len(t, got.all(), 2)
}

func TestAForgeryWithARealIDDoesNotReplaceTheRealEvent(t *testing.T) {
	t.Parallel()
	api := &fakeAPI{}
	api.setTransaction("tx_1", "paid")
	api.setTransaction("tx_2", "paid")
	rx, got := shop(t, mixed(t, api))
	assert.Equal(t, received, response(rx, request(txBody("evt_1", webhook.TransactionCreated, "tx_1", ""))))
	assert.Equal(t, received, response(rx, request(paid("evt_1", "tx_2"))))
	assert.Equal(t, received, response(rx, signed(paid("evt_1", "tx_1"))), "the real evt_1")
	assert.Equal(t, []string{"transaction.created tx_1 paid", "transaction.paid tx_2 paid", "transaction.paid tx_1 paid"}, got.all())
}

func TestABadSignatureIsNotReadBack(t *testing.T) {
	t.Parallel()
	api := &fakeAPI{}
	api.setTransaction("tx_1", "paid")
	rx, got := shop(t, mixed(t, api))
	assert.Equal(t, `401 {"error":"invalid_signature"}`, response(rx, forged(paid("evt_1", "tx_1"))))
	half := request(paid("evt_1", "tx_1"))
	half.Header.Set(webhook.DefaultTimestampHeader, "1700000000")
	assert.Equal(t, `401 {"error":"missing_signature"}`, response(rx, half))
	assert.Empty(t, got.all())
	assert.Zero(t, api.count())
}

func TestASignedRefundWaitsForAnAPIThatIsDownButNotForOneThatIsBehind(t *testing.T) {
	t.Parallel()
	api := &fakeAPI{}
	rx, got := shop(t, mixed(t, api))
	refund := txBody("evt_1", webhook.TransactionRefunded, "tx_1", "refunded")
	api.fail(503)
	assert.Equal(t, notConfirmedYet, response(rx, signed(refund)))
	assert.Equal(t, received, response(rx, signed(paid("evt_0", "tx_1"))), "an event that can happen only once needs no API")
	api.fail(0)
	api.setTransaction("tx_1", "paid")
	assert.Equal(t, received, response(rx, signed(refund)), "the signature takes precedence")
	assert.Equal(t, []string{"transaction.paid tx_1 paid", "transaction.refunded tx_1 refunded"}, got.all())
}

func TestEventsOlderThanTheStoreAreNotConfirmed(t *testing.T) {
	t.Parallel()
	api := &fakeAPI{}
	rx, got := shop(t, webhook.Config{API: api.client(t)})
	old := time.Now().Add(-8 * 24 * time.Hour).UTC().Format(time.RFC3339)
	api.setTransaction("tx_1", "paid", "paid_at", old)
	assert.Equal(t, unconfirmed, response(rx, request(paid("evt_1", "tx_1"))), "though it was updated just now")
	assert.Empty(t, got.all())
}

func TestManyDeliveriesOfOneResourceReadItOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := &fakeAPI{gate: make(chan struct{})}
		api.setTransaction("tx_1", "paid")
		rx, got := shop(t, webhook.Config{API: api.client(t)})
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				assert.Equal(t, received, response(rx, request(paid(fmt.Sprintf("evt_%d", i), "tx_1"))))
			})
		}
		synctest.Wait()
		assert.Equal(t, 1, api.count())
		close(api.gate)
		all.Wait()
		assert.Len(t, got.all(), 1)
	})
}

func TestReadsAreLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := &fakeAPI{}
		rx, _ := shop(t, webhook.Config{API: api.client(t), ReadBack: webhook.ReadBack{PerSecond: 5}})
		flood := func() (asked int) {
			for i := range 100 {
				if response(rx, request(paid("e", fmt.Sprintf("guess_%d", i)))) == unconfirmed {
					asked++
				}
			}
			return asked
		}
		assert.Equal(t, 10, flood(), "twice the rate at once")
		time.Sleep(time.Second)
		assert.Equal(t, 5, flood())
		assert.Equal(t, 15, api.count())
	})
}

func TestAReadOfASlowAPITimesOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := &fakeAPI{gate: make(chan struct{})}
		api.setTransaction("tx_1", "paid")
		rx, _ := shop(t, webhook.Config{API: api.client(t), ReadBack: webhook.ReadBack{Concurrent: 1}})
		began := time.Now()
		done := make(chan string)
		go func() { done <- response(rx, request(paid("evt_2", "tx_2"))) }() // blocks the only permitted call
		assert.Equal(t, notConfirmedYet, response(rx, request(paid("evt_1", "tx_1"))))
		assert.Equal(t, notConfirmedYet, <-done)
		assert.Equal(t, 5*time.Second, time.Since(began))
	})
}

func TestStatesThatConfirmAnEvent(t *testing.T) {
	t.Parallel()
	tx := func(status gateway.TransactionStatus) *gateway.Transaction {
		return &gateway.Transaction{ID: "x", Status: status, Method: gateway.CreditCard}
	}
	tr := func(status gateway.TransferStatus) *gateway.Transfer {
		return &gateway.Transfer{ID: "x", Status: status}
	}
	sub := func(status gateway.SubscriptionStatus, charges ...gateway.TransactionStatus) *gateway.Subscription {
		s := &gateway.Subscription{ID: "x", Status: status, Amount: 100}
		for _, c := range charges {
			s.Transactions = append(s.Transactions, gateway.SubscriptionTransaction{Status: c, Amount: 100})
		}
		return s
	}
	tested := map[webhook.Kind]bool{}
	for _, tc := range []struct {
		kind                       webhook.Kind
		confirmed, behind, refuted []any
	}{
		{webhook.TransactionCreated, []any{tx("pending"), tx("paid"), tx("anything")}, nil, nil},
		{webhook.TransactionPending, []any{tx("pending"), tx("paid"), tx("refused")}, nil, nil},
		{
			webhook.TransactionPaid,
			[]any{tx("paid"), tx("captured"), tx("partially_refunded"), tx("refunded"), tx("chargedback"), tx("med"), tx("in_protest"), tx("pre_chargedback")},
			[]any{tx("pending"), tx("processing"), tx("expired"), tx("three_ds_required"), tx("brand_new")},
			[]any{tx("refused"), tx("canceled")},
		},
		{webhook.TransactionCancelled, []any{tx("canceled")}, []any{tx("pending"), tx("brand_new")}, []any{tx("paid"), tx("captured"), tx("refused"), tx("expired"), tx("refunded")}},
		{
			webhook.TransactionRefunded,
			[]any{tx("refunded"), tx("partially_refunded"), &gateway.Transaction{Status: "chargedback", RefundedAmount: 1}},
			[]any{tx("paid"), tx("captured"), tx("pending"), tx("chargedback")},
			[]any{tx("refused"), tx("canceled"), tx("expired")},
		},
		{webhook.TransactionPartiallyRefunded, []any{tx("partially_refunded"), tx("refunded")}, []any{tx("paid")}, []any{tx("refused")}},
		{webhook.TransactionChargedback, []any{tx("chargedback")}, []any{tx("paid"), tx("in_protest"), tx("refunded"), tx("pending")}, []any{tx("refused"), tx("canceled"), tx("expired")}},
		{webhook.TransactionMED, []any{tx("med"), tx("in_protest"), tx("pre_chargedback"), tx("chargedback")}, []any{tx("paid"), tx("partially_refunded")}, []any{tx("refunded")}},
		{webhook.TransactionInProtest, []any{tx("in_protest"), tx("pre_chargedback"), tx("chargedback")}, []any{tx("med"), tx("paid")}, []any{tx("refunded")}},
		{webhook.TransactionPreChargedback, []any{tx("pre_chargedback"), tx("chargedback")}, []any{tx("med"), tx("in_protest")}, []any{tx("refunded")}},
		{webhook.TransactionDisputeWon, []any{tx("paid"), tx("partially_refunded")}, []any{tx("med"), tx("in_protest")}, []any{tx("chargedback"), tx("refunded")}},
		{
			webhook.TransactionThreeDSRequired,
			[]any{tx("three_ds_required"), &gateway.Transaction{Status: "pending", NextAction: &gateway.NextAction{}}, tx("paid"), tx("refused")},
			[]any{tx("pending")},
			[]any{&gateway.Transaction{Status: "pending", Method: gateway.Pix}},
		},
		{webhook.TransactionExpired, []any{tx("expired")}, []any{tx("pending")}, []any{tx("paid"), tx("canceled")}},
		{webhook.TransactionRefused, []any{tx("refused")}, []any{tx("pending")}, []any{tx("paid"), tx("canceled")}},
		{"transaction.brand_new", []any{tx("brand_new")}, nil, []any{tx("pending"), tx("paid")}},

		{webhook.PayoutCreated, []any{tr("pending"), tr("paid")}, nil, nil},
		{webhook.PayoutInAnalysis, []any{tr("in_analysis"), tr("processing"), tr("paid"), tr("cancelled")}, []any{tr("pending"), tr("unknown")}, nil},
		{webhook.PayoutProcessing, []any{tr("processing"), tr("paid"), tr("error")}, []any{tr("pending"), tr("in_analysis")}, []any{tr("cancelled")}},
		{webhook.PayoutTransferred, []any{tr("paid")}, []any{tr("pending"), tr("processing"), tr("scheduled")}, []any{tr("error"), tr("cancelled"), tr("rejected")}},
		{webhook.PayoutFailed, []any{tr("error"), tr("rejected")}, []any{tr("processing")}, []any{tr("paid"), tr("cancelled")}},
		{webhook.PayoutRejected, []any{tr("error"), tr("rejected")}, []any{tr("processing")}, []any{tr("paid"), tr("cancelled")}},
		{webhook.PayoutCanceled, []any{tr("cancelled")}, []any{tr("pending")}, []any{tr("paid"), tr("error")}},

		{webhook.SubscriptionCreated, []any{sub("incomplete"), sub("canceled")}, nil, nil},
		{webhook.SubscriptionUpdated, []any{sub("active")}, nil, nil},
		{
			webhook.SubscriptionStarted,
			[]any{sub("active"), sub("past_due", "paid", "refused"), sub("canceled", "paid"), sub("cancel_scheduled", "paid")},
			[]any{sub("incomplete"), sub("trialing"), sub("cancel_scheduled"), sub("past_due", "refused")},
			[]any{sub("canceled"), sub("canceled", "refused")},
		},
		{
			webhook.SubscriptionRenewed,
			[]any{sub("active", "paid", "paid"), sub("active", "paid", "refused", "captured"), sub("canceled", "refunded", "paid")},
			[]any{sub("active", "paid"), sub("active"), sub("past_due", "paid", "refused")},
			[]any{sub("canceled", "paid")},
		},
		{
			webhook.SubscriptionPaymentFailed,
			[]any{
				sub("past_due"), sub("incomplete", "refused"), sub("active", "refused", "paid"),
				&gateway.Subscription{Status: "canceled", CancellationReason: gateway.CancellationPaymentFailure},
			},
			[]any{sub("active"), sub("trialing")},
			[]any{sub("canceled")},
		},
		{
			webhook.SubscriptionPastDue,
			[]any{sub("past_due"), &gateway.Subscription{Status: "canceled", CancellationReason: gateway.CancellationPaymentFailure}},
			[]any{sub("active")},
			[]any{sub("canceled")},
		},
		{webhook.SubscriptionCanceled, []any{sub("canceled")}, []any{sub("active"), sub("cancel_scheduled"), sub("past_due")}, nil},
		{webhook.SubscriptionChargebackReceived, []any{
			sub("canceled", "chargedback"), sub("active", "paid", "chargedback"),
			&gateway.Subscription{Status: "canceled", CancellationReason: gateway.CancellationChargeback},
		}, []any{sub("active", "paid")}, []any{sub("canceled", "paid")}},
		{
			webhook.SubscriptionTrialWillEnd,
			[]any{trial("trialing", 7), trial("cancel_scheduled", 1)},
			[]any{trial("trialing", 8), trial("incomplete", 1), sub("trialing")},
			[]any{trial("active", 1), trial("canceled", 1)},
		},
	} {
		tested[tc.kind] = true
		for verdict, states := range map[string][]any{"confirmed": tc.confirmed, "behind": tc.behind, "refuted": tc.refuted} {
			for _, state := range states {
				assert.Equal(t, verdict, webhook.Verdict(tc.kind, state, trialNow), "%s %+v", tc.kind, state)
			}
		}
	}
	for _, row := range webhook.KindRows() {
		assert.True(t, tested[row.Kind], "no state confirms %s here", row.Kind)
	}
}

var trialNow = time.Date(2027, 1, 4, 12, 0, 0, 0, time.UTC)

func trial(status gateway.SubscriptionStatus, days int) *gateway.Subscription {
	return &gateway.Subscription{Status: status, TrialEnd: gateway.TimestampOf(trialNow.AddDate(0, 0, days))}
}

func TestARenewalIsProvenByItsDatesIfNoChargesAreListed(t *testing.T) {
	t.Parallel()
	at := func(month, day int) gateway.Timestamp {
		return gateway.TimestampOf(time.Date(2027, time.Month(month), day, 0, 0, 0, 0, time.UTC))
	}
	sub := gateway.Subscription{Status: "active", Amount: 100, CreatedAt: at(1, 31), CurrentPeriodStart: at(1, 31), CurrentPeriodEnd: at(2, 28)}
	assert.Equal(t, "behind", webhook.Verdict(webhook.SubscriptionRenewed, &sub, trialNow))
	sub.CurrentPeriodStart = at(2, 1) // authorised a day later
	assert.Equal(t, "behind", webhook.Verdict(webhook.SubscriptionRenewed, &sub, trialNow))
	sub.CurrentPeriodStart, sub.CurrentPeriodEnd = at(2, 28), at(3, 31)
	assert.Equal(t, "confirmed", webhook.Verdict(webhook.SubscriptionRenewed, &sub, trialNow))
	sub.TrialEnd = at(2, 28)
	assert.Equal(t, "behind", webhook.Verdict(webhook.SubscriptionRenewed, &sub, trialNow), "the trial ended, the first period began")
	sub.CurrentPeriodStart, sub.CurrentPeriodEnd = at(3, 31), at(4, 30)
	assert.Equal(t, "confirmed", webhook.Verdict(webhook.SubscriptionRenewed, &sub, trialNow))
	require.Equal(t, "behind", webhook.Verdict(webhook.SubscriptionRenewed, &gateway.Subscription{Status: "active"}, trialNow))
}
