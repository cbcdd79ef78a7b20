package webhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
)

// trusting is the shop in docs/webhooks.md, which ships the order that the
// event names.
func trusting(t *testing.T, cfg webhook.Config) (*webhook.Receiver, *effects) {
	t.Helper()
	cfg.Logger = quiet
	rx := receiver(t, cfg)
	var got effects
	webhook.OnTransaction(rx, webhook.AnyKind, func(_ context.Context, e *webhook.TransactionEvent) error {
		got.add("%s %s %s/%s %s/%s %d", e.Kind, e.Status, e.ResourceID, e.Data.ID, e.CorrelationID, e.Data.CorrelationID, e.Data.Amount)
		return nil
	})
	return rx, &got
}

// An attacker pays BRL 1.00 and reports the payment as that of a larger order.
func TestAForgerWhoPaysGetsOnlyTheirOwnOrder(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]func(*webhook.Config){
		"SignatureOrReadBack": func(*webhook.Config) {},
		"ReadBackOnly":        func(c *webhook.Config) { c.Trust, c.Keys = webhook.ReadBackOnly, nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gw := mockserver.Run(t)
			client := gw.Client()
			cfg := webhook.Config{Trust: webhook.SignatureOrReadBack, Keys: []webhook.SigningKey{{Key: secret}}, API: client}
			policy(&cfg)
			rx, got := trusting(t, cfg)
			create := func(reference string, amount int64) *gateway.Transaction {
				params := order("")
				params.ExternalRef, params.Amount = reference, amount
				tx, err := client.Transactions.Create(t.Context(), params)
				require.NoError(t, err)
				return tx
			}
			mine, victim := create("order-cheap", 100), create("order-expensive", 1000000)
			require.NoError(t, gw.Transactions.Pay(mine.ID))

			forge := func(format string, args ...any) string { return response(rx, request(fmt.Sprintf(format, args...))) }
			for _, members := range []string{
				`"id":"` + victim.ID + `","correlation_id":"order-expensive","amount":1000000,"object":{"id":"` + mine.ID + `"}`,
				`"id":"` + mine.ID + `","correlation_id":"order-expensive","amount":1000000`,
				`"id":"` + mine.ID + `","correlation_id":"order-expensive"`,
				`"id":"` + mine.ID + `","correlationId":"order-expensive"`,
				`"id":"` + mine.ID + `","external_ref":"order-expensive"`,
				`"id":"` + mine.ID + `","amount":1000000`,
				`"id":"` + mine.ID + `","amount":"1000000.00"`,
				`"id":"` + mine.ID + `","amount":100.5`,
				`"id":"` + mine.ID + `","currency":"USD"`,
				`"id":"` + mine.ID + `","status":"refused"`,
				`"id":"` + mine.ID + `","object":{"id":"` + mine.ID + `","correlation_id":"order-expensive"}`,
			} {
				assert.Equal(t, unconfirmed, forge(`{"id":"x","event":"transaction","data":{"event_type":"transaction.paid",%s}}`, members), members)
			}
			assert.Equal(t, `400 {"error":"invalid_json"}`,
				forge(`{"id":"x","event":"transaction","data":{"event_type":"transaction.paid","id":%q,"id":%q}}`, victim.ID, mine.ID))
			assert.Equal(t, `400 {"error":"invalid_json"}`,
				forge(`{"id":"x","event":"transaction","data":{"event_type":"transaction.paid","id":%q},"data":{"id":%q}}`, victim.ID, mine.ID))
			assert.Equal(t, notConfirmedYet, forge(`{"id":"x","event":"transaction","data":{"event_type":"transaction.paid","id":%q,"ID":%q}}`, victim.ID, mine.ID))
			assert.Empty(t, got.all())

			if cfg.Keys != nil {
				genuine := fmt.Sprintf(`{"id":"x","event":"transaction","data":{"id":%q,"event_type":"transaction.paid","status":"paid",`+
					`"correlation_id":"order-cheap","amount":100}}`, mine.ID)
				assert.Equal(t, received, response(rx, signed(genuine)), "no forgery suppresses the real event")
			} else {
				assert.Equal(t, received, forge(`{"id":"x","event":"transaction","data":{"id":%q,"event_type":"transaction.paid"}}`, mine.ID))
			}
			assert.Equal(t, []string{fmt.Sprintf("transaction.paid paid %s/%[1]s order-cheap/order-cheap 100", mine.ID)}, got.all())
		})
	}
}

// The handler sees nothing from an unsigned body that the API does not
// confirm.
func TestAnUnsignedEventHasOnlyDataFromTheAPI(t *testing.T) {
	t.Parallel()
	api := &fakeAPI{}
	rx := receiver(t, webhook.Config{API: api.client(t), Logger: quiet})
	seen := make(map[webhook.Family]*webhook.Event)
	var tx *webhook.TransactionEvent
	var tr *webhook.TransferEvent
	var sub *webhook.SubscriptionEvent
	webhook.OnTransaction(rx, webhook.AnyKind, func(_ context.Context, e *webhook.TransactionEvent) error {
		tx, seen[e.Family] = e, e.Event
		return nil
	})
	webhook.OnTransfer(rx, webhook.AnyKind, func(_ context.Context, e *webhook.TransferEvent) error {
		tr, seen[e.Family] = e, e.Event
		return nil
	})
	webhook.OnSubscription(rx, webhook.AnyKind, func(_ context.Context, e *webhook.SubscriptionEvent) error {
		sub, seen[e.Family] = e, e.Event
		return nil
	})
	api.setTransaction("tx_1", "paid", "external_ref", "order-1", "currency", "BRL",
		"buyer", map[string]any{"name": "Ana", "email": "ana@example.com"},
		"products", []any{map[string]any{"name": "Mug", "price": 1990, "quantity": 1}})
	api.set("transfers/po_1", map[string]any{"id": "po_1", "status": "paid", "amount": "1200", "fee": 50, "external_ref": "payout-1"})
	api.set("subscriptions/sub_1", map[string]any{
		"id": "sub_1", "status": "active", "amount": 4990, "metadata": map[string]any{"plan": "basic"}, "customerEmail": "ana@example.com",
		"transactions": []any{map[string]any{"id": "tx_9", "status": "paid", "amount": 4990, "paidAmount": 4990}},
	})
	const lies = `"Status":"evil","customer":{"name":"evil"},"customer_email":"evil","products":[{"title":"evil"}],"metadata":{"plan":"evil"},` +
		`"informations":[{"key":"evil","value":"evil"}],"method":"evil","fee":666,"net_amount":666,"latest_transaction":{"id":"evil"},` +
		`"paid_at":"1666-06-06T00:00:00Z","transferred_at":"1666-06-06T00:00:00Z","occurred_at":"1666-06-06T00:00:00Z","cycle_count":666,` +
		`"previous_status":"evil","evil":"evil"`
	for _, body := range []string{
		`{"id":"evil","event":"transaction","api_version":"evil","evil":"evil","ID":"evil","data":{"id":"tx_1","event_type":"transaction.paid",` + lies + `}}`,
		`{"id":"evil","type":"payout.transferred","evil":1,"data":{"evil":"evil","object":{"id":"po_1",` + lies + `}}}`,
		`{"id":"evil","event":"subscription","evil":1,"data":{"id":"sub_1","event_type":"subscription.started",` + lies + `}}`,
	} {
		require.Equal(t, received, response(rx, request(body)), body)
	}
	require.Len(t, seen, 3)
	for family, e := range seen {
		assert.NotContains(t, string(e.Raw), "evil", family)
		assert.NotContains(t, string(e.Raw), "666", family)
		assert.NotContains(t, fmt.Sprint(e.ID, e.APIVersion, e.Status, e.CorrelationID), "evil", family)
		assert.False(t, e.Signed)
		assert.NotEmpty(t, e.ConfirmedStatus)
	}
	for family, data := range map[webhook.Family]any{
		webhook.FamilyTransaction: tx.Data, webhook.FamilyTransfer: tr.Data, webhook.FamilySubscription: sub.Data,
	} {
		raw, err := json.Marshal(data)
		require.NoError(t, err)
		assert.NotContains(t, string(raw), "evil", family)
		assert.NotContains(t, string(raw), "666", family)
	}
	assert.Equal(t, []gateway.ProductLine{{Name: "Mug", Price: 1990, Quantity: 1}}, tx.Data.Products)
	assert.Equal(t, "ana@example.com", tx.Data.Customer.Email)
	assert.Equal(t, "order-1", tx.CorrelationID)
	assert.Equal(t, int64(50), tr.Data.Fee)
	assert.Equal(t, "payout-1", tr.CorrelationID)
	assert.JSONEq(t, `{"plan":"basic"}`, sub.Data.Metadata.Text())
	require.NotNil(t, sub.Data.LatestTransaction)
	assert.Equal(t, "tx_9", sub.Data.LatestTransaction.ID)
}

func TestAForgedTransferIsRejected(t *testing.T) {
	t.Parallel()
	api := &fakeAPI{}
	rx, got := shop(t, mixed(t, api))
	api.set("transfers/po_1", map[string]any{"id": "po_1", "status": "paid", "amount": "1200", "external_ref": "payout-1"})
	api.set("transfers/po_2", map[string]any{"id": "po_2", "status": "pending", "amount": 90000})
	for _, data := range []string{
		`{"id":"po_2","object":{"id":"po_1"}}`,
		`{"id":"po_1","object":{"id":"po_2"}}`,
		`{"object":{"id":"po_1","object":{"id":"po_2"}}}`,
		`{"object":{"id":"po_1","amount":90000}}`,
		`{"id":"po_1","external_ref":"payout-2"}`,
		`{"id":"po_1","correlation_id":"payout-2"}`,
		`{"id":"po_1","status":"error"}`,
	} {
		assert.Equal(t, unconfirmed, response(rx, request(`{"id":"e","type":"payout.transferred","data":`+data+`}`)), data)
	}
	assert.Empty(t, got.all())
	assert.Equal(t, received, response(rx, request(`{"id":"e","type":"payout.transferred","data":{"object":{"id":"po_1","amount":1200,"status":"paid"}}}`)))
	assert.Equal(t, []string{"payout.transferred po_1 paid"}, got.all())
}

func TestAForgedSubscriptionIsRejected(t *testing.T) {
	t.Parallel()
	api := &fakeAPI{}
	rx, got := shop(t, mixed(t, api))
	api.set("subscriptions/sub_1", map[string]any{"id": "sub_1", "status": "active", "amount": 100, "currency": "BRL"})
	for data, want := range map[string]string{
		`"amount":99900`:                  unconfirmed,
		`"currency":"USD"`:                unconfirmed,
		`"object":{"id":"sub_2"}`:         unconfirmed,
		`"status":"canceled"`:             notConfirmedYet, // it may still become so
		`"amount":"100","currency":"BRL"`: received,
	} {
		body := `{"id":"e","event":"subscription","data":{"id":"sub_1","event_type":"subscription.started",` + data + `}}`
		assert.Equal(t, want, response(rx, request(body)), data)
	}
	assert.Equal(t, []string{"subscription.started sub_1 active"}, got.all())
}

// An event with an earlier status of the resource is late, not forged.
func TestAnUnsignedEventMayLagBehindTheAPI(t *testing.T) {
	t.Parallel()
	api := &fakeAPI{}
	rx, got := shop(t, webhook.Config{API: api.client(t)})
	api.setTransaction("tx_1", "refunded", "refunded_amount", 1990)
	assert.Equal(t, received, response(rx, request(paid("evt_1", "tx_1"))))
	assert.Equal(t, received, response(rx, request(txBody("evt_2", webhook.TransactionRefunded, "tx_1", "partially_refunded"))))
	api.setTransaction("tx_2", "partially_refunded", "refunded_amount", 500)
	assert.Equal(t, notConfirmedYet, response(rx, request(txBody("evt_3", webhook.TransactionRefunded, "tx_2", "refunded"))), "the rest may follow")
	assert.Equal(t, []string{"transaction.paid tx_1 refunded", "transaction.refunded tx_1 refunded"}, got.all())
}

func TestTheIDOfAnUnsignedEventIdentifiesItsFact(t *testing.T) {
	t.Parallel()
	api := &fakeAPI{}
	api.setTransaction("tx_1", "paid")
	var ids []string
	for _, deliver := range []func(*webhook.Receiver){
		func(rx *webhook.Receiver) { assert.Equal(t, received, response(rx, request(paid("evt_1", "tx_1")))) },
		func(rx *webhook.Receiver) { assert.Equal(t, received, response(rx, request(paid("another", "tx_1")))) },
		func(rx *webhook.Receiver) {
			_, err := reconciler(t, rx, pendingTx("tx_1")...).Once(t.Context())
			assert.NoError(t, err)
		},
	} {
		var seen []string
		rx := receiver(t, webhook.Config{API: api.client(t), Logger: quiet, Observe: func(_ context.Context, o webhook.Observation) { seen = append(seen, o.EventID) }})
		webhook.OnTransaction(rx, webhook.TransactionPaid, func(_ context.Context, e *webhook.TransactionEvent) error {
			ids = append(ids, e.ID)
			return nil
		})
		deliver(rx)
		assert.Equal(t, ids[len(ids)-1:], seen, "the log has the same event id as the handler")
	}
	require.Len(t, ids, 3)
	assert.Equal(t, ids[0], ids[1])
	assert.Equal(t, ids[0], ids[2])
	assert.True(t, strings.HasPrefix(ids[0], "fact-"), ids[0])
}

// A signed event whose data differs from an unsigned event, which has the
// API's data, is a different event.
func TestASignedEventThatDiffersIsHandledToo(t *testing.T) {
	t.Parallel()
	api := &fakeAPI{}
	api.setTransaction("tx_1", "paid", "external_ref", "order-1")
	rx, got := trusting(t, mixed(t, api))
	other := `{"id":"evt_2","event":"transaction","data":{"id":"tx_1","event_type":"transaction.paid","amount":1990,"correlation_id":"order-2"}}`
	assert.Equal(t, received, response(rx, request(paid("evt_1", "tx_1"))))
	assert.Equal(t, received, response(rx, signed(other)))
	assert.Equal(t, received, response(rx, signed(other)))
	assert.Equal(t, []string{
		"transaction.paid paid tx_1/tx_1 order-1/order-1 1990",
		"transaction.paid  tx_1/tx_1 order-2/order-2 1990",
	}, got.all())
}

func TestAnEqualSignedEventIsADuplicate(t *testing.T) {
	t.Parallel()
	api := &fakeAPI{}
	api.setTransaction("tx_1", "paid", "external_ref", "order-1", "currency", "BRL")
	rx, got := trusting(t, mixed(t, api))
	assert.Equal(t, received, response(rx, request(paid("evt_1", "tx_1"))))
	for range 2 {
		assert.Equal(t, received, response(rx, signed(`{"id":"evt_1","event":"transaction","data":{"id":"tx_1","event_type":"transaction.paid",`+
			`"amount":"1990.00","currency":"BRL","correlation_id":"order-1"}}`)))
	}
	assert.Len(t, got.all(), 1)
	api.fail(503)
	assert.Equal(t, notConfirmedYet, response(rx, signed(paid("evt_1", "tx_1"))), "the API is down, so the two can't be compared")
}

// A late renewal must not be confused with one that an unsigned delivery has
// reported in the meantime: each pays for its own period.
func TestALateRenewalIsNotHiddenByAnotherPeriods(t *testing.T) {
	t.Parallel()
	api := &fakeAPI{}
	rx := receiver(t, mixed(t, api))
	var got effects
	webhook.OnSubscription(rx, webhook.SubscriptionRenewed, func(_ context.Context, e *webhook.SubscriptionEvent) error {
		got.add("%s", e.Data.CurrentPeriodStart.Format("2006-01"))
		return nil
	})
	show := func(month int) {
		charge := map[string]any{"status": "paid", "amount": 100}
		api.set("subscriptions/sub_1", map[string]any{
			"id": "sub_1", "status": "active", "amount": 100, "transactions": []any{charge, charge, charge},
			"currentPeriodStart": fmt.Sprintf("2027-%02d-04T12:00:00.000Z", month), "currentPeriodEnd": fmt.Sprintf("2027-%02d-04T12:00:00.000Z", month+1),
		})
	}
	renewed := func(id string, month int) string {
		return fmt.Sprintf(`{"id":%q,"event":"subscription","data":{"id":"sub_1","event_type":"subscription.renewed",`+
			`"current_period_start":"2027-%02d-04T12:00:00.000Z"}}`, id, month)
	}
	show(3)
	assert.Equal(t, received, response(rx, request(renewed("evt_2", 3))), "with a guessed id of another event")
	assert.Equal(t, received, response(rx, signed(renewed("evt_2", 2))), "late")
	assert.Equal(t, received, response(rx, signed(renewed("evt_3", 3))), "known")
	show(4)
	assert.Equal(t, received, response(rx, signed(renewed("evt_4", 4))))
	assert.Equal(t, received, response(rx, request(renewed("evt_4", 4))))
	assert.Equal(t, []string{"2027-03", "2027-02", "2027-04"}, got.all())
}
