package webhook

import (
	"fmt"
	"slices"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/jsonread"
)

// An event that carries no proof is rebuilt from the resource that the API
// returned: nothing in its body, the id included, comes from the sender. Whoever
// owns a paid transaction could otherwise have any amount, reference or metadata
// confirmed with it.

// rebuilt returns the record of an event that the API confirmed. e says what
// happened to which resource. The id of its delivery is kept only where a signed
// twin may be found by nothing else: it may be guessed.
func rebuilt(e *Event, c confirmation, res *resource) (Record, error) {
	body, err := eventBody(factID(c.fact), e.Kind, res)
	if err != nil {
		return Record{}, fmt.Errorf("webhook: %s of %s can't be written: %w", e.Kind, e.ResourceID, err)
	}
	again, err := Parse(body)
	if err != nil {
		return Record{}, err
	}
	again.Source, again.ConfirmedStatus, again.Stale = e.Source, c.status, c.late
	rec, err := record(again, c.fact, res)
	if row := rowOf(e.Kind); e.ID != "" && row != nil && row.needsAPI() {
		rec.EventID = e.ID
	}
	return rec, err
}

// eventBody writes what the gateway would have sent, from the resource. What
// the API does not say is left out.
func eventBody(id string, kind Kind, res *resource) ([]byte, error) {
	type object = map[string]any
	body := object{"id": id}
	switch {
	case res.transaction != nil:
		tx := res.transaction
		body["event"] = FamilyTransaction
		body["data"] = object{
			"id": tx.ID, "event_type": kind, "status": tx.Status, "correlation_id": tx.ExternalRef, "method": tx.Method,
			"amount": tx.Amount, "currency": tx.Currency, "paid_at": tx.PaidAt, "informations": tx.Informations,
			"customer": object{"name": tx.Buyer.Name, "email": tx.Buyer.Email, "phone": tx.Buyer.Phone},
			"products": eventProducts(tx.Products),
		}
	case res.transfer != nil:
		tr := res.transfer
		body["type"] = kind
		body["data"] = object{"object": object{
			"id": tr.ID, "status": tr.Status, "type": tr.Type, "amount": tr.Amount, "fee": tr.Fee,
			"net_amount": tr.Amount - tr.Fee, "external_ref": tr.ExternalRef, "transferred_at": tr.TransferredAt,
		}}
	default:
		sub := res.subscription
		body["event"] = FamilySubscription
		body["data"] = object{
			"id": sub.ID, "event_type": kind, "status": sub.Status, "customer_id": sub.CustomerID, "amount": sub.Amount,
			"currency": sub.Currency, "interval": sub.Interval, "interval_count": sub.IntervalCount,
			"current_period_start": sub.CurrentPeriodStart, "current_period_end": sub.CurrentPeriodEnd,
			"cancel_at_period_end": sub.CancelAtPeriodEnd, "customer_email": sub.CustomerEmail,
			"failure_policy": sub.FailurePolicy, "trial_end": sub.TrialEnd, "metadata": sub.Metadata,
			"latest_transaction": latestCharge(sub),
		}
	}
	return jsonv2.Marshal(body, jsonv2.Deterministic(true), jsonread.Lenient)
}

func eventProducts(lines []gateway.ProductLine) []map[string]any {
	products := make([]map[string]any, len(lines))
	for i, p := range lines {
		products[i] = map[string]any{"title": p.Name, "unit_price": p.Price, "quantity": p.Quantity}
	}
	return products
}

// latestCharge returns the last charge of a subscription, nil where the API
// lists none.
func latestCharge(sub *gateway.Subscription) map[string]any {
	if len(sub.Transactions) == 0 {
		return nil
	}
	tx := slices.MaxFunc(sub.Transactions, func(a, b gateway.SubscriptionTransaction) int {
		return a.CreatedAt.Compare(b.CreatedAt.Time)
	})
	return map[string]any{
		"id": tx.ID, "status": tx.Status, "amount": tx.Amount, "paid_amount": tx.PaidAmount, "refunded_amount": tx.RefundedAmount,
		"currency": tx.Currency, "external_ref": tx.ExternalRef, "created_at": tx.CreatedAt, "paid_at": tx.PaidAt,
	}
}
