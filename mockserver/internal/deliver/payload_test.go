package deliver_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/mockserver/internal/deliver"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/webhook"
)

func transaction() *engine.Transaction {
	return &engine.Transaction{
		ID: "tx_1", ExternalRef: "order-1", Amount: 1990, Currency: "BRL", Method: "pix", Status: "paid",
		PaidAmount: 1990, PaidAt: start.Add(1500 * time.Microsecond), CreatedAt: start,
		Buyer: &engine.Buyer{
			ID: "b", Name: "Ana <&> Souza", Email: "ana@shop.test", Phone: "11987654321",
			Document: &engine.Document{Type: "CPF", Number: "12345678909"},
		},
		Products: []engine.Product{{Name: "Book", Price: 995, Quantity: 2, SKU: "b-1"}},
	}
}

func TestBodies(t *testing.T) {
	t.Parallel()
	noted := transaction()
	noted.Informations = []engine.Information{{Key: "reason", Value: "fraud"}}
	noted.ExternalRef, noted.PaidAt, noted.Buyer = "", time.Time{}, nil
	subscription := &engine.Subscription{
		ID: "sub_1", Status: "past_due", Amount: 2990, Currency: "BRL", Interval: "month", IntervalCount: 1,
		CurrentPeriodStart: start, CurrentPeriodEnd: start.AddDate(0, 1, 0), Cycle: 3,
		Customer: &engine.Buyer{Email: "ana@shop.test"}, FailurePolicy: "retry_then_cancel",
		Metadata: `{"plan":"gold","n":1.0}`, Latest: transaction(),
	}
	for name, tc := range map[string]struct {
		event engine.Event
		want  string
	}{
		"transaction": {
			engine.Event{ID: "evt_1", Kind: "transaction.paid", Transaction: transaction()},
			`{"id":"evt_1","event":"transaction","api_version":"2.0.0","data":{"id":"tx_1","event_type":"transaction.paid",` +
				`"correlation_id":"order-1","method":"pix","status":"paid","amount":1990,"currency":"BRL",` +
				`"paid_at":"2027-01-04T12:00:00.001Z","customer":{"name":"Ana <&> Souza","email":"ana@shop.test","phone":"11987654321"},` +
				`"products":[{"title":"Book","unit_price":995,"quantity":2}]}}`,
		},
		"minimal transaction": {
			engine.Event{ID: "evt_1", Kind: "transaction.created", Transaction: noted},
			`{"id":"evt_1","event":"transaction","api_version":"2.0.0","data":{"id":"tx_1","event_type":"transaction.created",` +
				`"correlation_id":null,"method":"pix","status":"paid","amount":1990,"currency":"BRL","paid_at":null,` +
				`"customer":{"name":null,"email":null,"phone":null},"products":[{"title":"Book","unit_price":995,"quantity":2}],` +
				`"informations":[{"key":"reason","value":"fraud"}]}}`,
		},
		"transfer": {
			engine.Event{ID: "evt_2", Kind: "payout.transferred", Transfer: &engine.Transfer{
				ID: "po_1", Status: "paid", Amount: 1200, Fee: 50, TransferredAt: start, PixKey: "12345678909",
			}},
			`{"id":"evt_2","type":"payout.transferred","api_version":"2.0.0","data":{"object":{"id":"po_1","status":"paid",` +
				`"type":"pix","amount":1200,"fee":50,"net_amount":1150,"transferred_at":"2027-01-04T12:00:00.000Z"}}}`,
		},
		"subscription": {
			engine.Event{
				ID: "evt_3", At: start, Kind: "subscription.payment_failed", PreviousStatus: "active", Attempt: 1,
				FailureReason: "declined", Subscription: subscription,
			},
			`{"id":"evt_3","event":"subscription","api_version":"2.0.0","data":{"id":"sub_1",` +
				`"event_type":"subscription.payment_failed","status":"past_due","previous_status":"active","amount":2990,` +
				`"currency":"BRL","interval":"month","interval_count":1,"current_period_start":"2027-01-04T12:00:00.000Z",` +
				`"current_period_end":"2027-02-04T12:00:00.000Z","cancel_at_period_end":false,"cycle_count":3,` +
				`"customer_email":"ana@shop.test","failure_policy":"retry_then_cancel","trial_end":null,` +
				`"metadata":{"plan":"gold","n":1.0},"occurred_at":"2027-01-04T12:00:00.000Z",` +
				`"latest_transaction":{"id":"tx_1","status":"paid","amount":1990,"paid_amount":"1990","refunded_amount":0,` +
				`"currency":"BRL","external_ref":"order-1","created_at":"2027-01-04T12:00:00.000Z",` +
				`"paid_at":"2027-01-04T12:00:00.001Z"},"attempt_number":1,"failure_reason":"declined"}}`,
		},
		"new subscription": {
			engine.Event{ID: "evt_4", At: start, Kind: "subscription.created", Subscription: &engine.Subscription{ID: "sub_1", Status: "incomplete"}},
			`{"id":"evt_4","event":"subscription","api_version":"2.0.0","data":{"id":"sub_1","event_type":"subscription.created",` +
				`"status":"incomplete","previous_status":null,"amount":0,"currency":"","interval":"","interval_count":0,` +
				`"current_period_start":null,"current_period_end":null,"cancel_at_period_end":false,"cycle_count":0,` +
				`"customer_email":null,"failure_policy":"","trial_end":null,"metadata":null,` +
				`"occurred_at":"2027-01-04T12:00:00.000Z","latest_transaction":null}}`,
		},
	} {
		body, err := deliver.RenderDocument(tc.event)
		require.NoError(t, err, name)
		assert.Equal(t, tc.want, string(body), name)
		e, err := webhook.Parse(body)
		require.NoError(t, err, name)
		assert.Equal(t, webhook.Kind(tc.event.Kind), e.Kind, name)
		assert.NotContains(t, string(body), "12345678909", "webhooks don't contain document numbers")
	}
}
