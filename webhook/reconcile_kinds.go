package webhook

import (
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway"
)

// happenedSince lists the kinds of what must have happened to the resource
// since the records were written, in order.
func happenedSince(open OpenResource, res *resource) []Kind {
	switch {
	case res.transaction != nil:
		return transactionSince(gateway.TransactionStatus(open.Status), res.transaction)
	case res.transfer != nil:
		return transferSince(gateway.TransferStatus(open.Status), res.transfer.Status)
	default:
		return subscriptionSince(open, res.subscription)
	}
}

func transactionSince(was gateway.TransactionStatus, tx *gateway.Transaction) []Kind {
	if tx.Status == was {
		return nil
	}
	var since []Kind
	paidBefore := was.Settled() || was == gateway.TransactionPartiallyRefunded
	if !paidBefore && paidVerdict(tx) == confirmed {
		since = append(since, TransactionPaid)
	}
	switch tx.Status {
	case gateway.TransactionPaid, gateway.TransactionCaptured, gateway.TransactionPending:
		return since
	case gateway.TransactionThreeDSRequired:
		return append(since, TransactionThreeDSRequired)
	case gateway.TransactionPartiallyRefunded, gateway.TransactionRefunded:
		return append(since, TransactionRefunded)
	case gateway.TransactionChargedback:
		return append(since, TransactionChargedback)
	case gateway.TransactionCanceled:
		return append(since, TransactionCancelled)
	case gateway.TransactionExpired:
		return append(since, TransactionExpired)
	case gateway.TransactionRefused:
		return append(since, TransactionRefused)
	default: // a state without a kind: tell it by its own name
		return append(since, Kind("transaction."+string(tx.Status)))
	}
}

func transferSince(was, is gateway.TransferStatus) []Kind {
	if was == is {
		return nil
	}
	switch is {
	case gateway.TransferInAnalysis:
		return []Kind{PayoutInAnalysis}
	case gateway.TransferProcessing:
		return []Kind{PayoutProcessing}
	case gateway.TransferPaid:
		return []Kind{PayoutTransferred}
	case gateway.TransferError:
		return []Kind{PayoutFailed}
	case gateway.TransferRejected:
		return []Kind{PayoutRejected}
	case gateway.TransferCancelled:
		return []Kind{PayoutCanceled}
	case gateway.TransferPending:
		return nil
	default:
		return []Kind{Kind("payout." + string(is))}
	}
}

func subscriptionSince(open OpenResource, sub *gateway.Subscription) []Kind {
	was := gateway.SubscriptionStatus(open.Status)
	var since []Kind
	begun := was != "" && was != gateway.SubscriptionIncomplete && was != gateway.SubscriptionTrialing
	if !begun && startedVerdict(sub) == confirmed {
		since = append(since, SubscriptionStarted)
	}
	recovered := was == gateway.SubscriptionPastDue && sub.Status == gateway.SubscriptionActive
	later := !open.PeriodEnd.IsZero() && sub.CurrentPeriodEnd.After(open.PeriodEnd)
	if (begun && (recovered || later)) && renewed(sub) {
		since = append(since, SubscriptionRenewed)
	}
	if sub.Status == was {
		return since
	}
	switch sub.Status {
	case gateway.SubscriptionPastDue:
		return append(since, SubscriptionPastDue)
	case gateway.SubscriptionCanceled:
		return append(since, SubscriptionCanceled)
	case gateway.SubscriptionTrialing, gateway.SubscriptionCancelScheduled:
		return append(since, SubscriptionUpdated)
	default:
		return since
	}
}

// syntheticBody writes what the gateway would have sent, from the resource.
func syntheticBody(id string, kind Kind, res *resource) ([]byte, error) {
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
			"external_ref": tr.ExternalRef, "transferred_at": tr.TransferredAt,
		}}
	default:
		sub := res.subscription
		body["event"] = FamilySubscription
		body["data"] = object{
			"id": sub.ID, "event_type": kind, "status": sub.Status, "customer_id": sub.CustomerID, "amount": sub.Amount,
			"currency": sub.Currency, "interval": sub.Interval, "interval_count": sub.IntervalCount,
			"current_period_start": sub.CurrentPeriodStart, "current_period_end": sub.CurrentPeriodEnd,
			"cancel_at_period_end": sub.CancelAtPeriodEnd, "customer_email": sub.CustomerEmail,
			"failure_policy": sub.FailurePolicy, "trial_end": sub.TrialEnd, "metadata": strictly(sub.Metadata),
		}
	}
	return jsonv2.Marshal(body, jsonv2.Deterministic(true), jsontext.AllowInvalidUTF8(true))
}

// strictly returns metadata that an event may hold, null where the API's is not
// quite JSON.
func strictly(m gateway.Metadata) any {
	raw, err := m.MarshalJSON()
	if err != nil || !jsontext.Value(raw).IsValid() {
		return nil
	}
	return m
}

func eventProducts(lines []gateway.ProductLine) []map[string]any {
	products := make([]map[string]any, len(lines))
	for i, p := range lines {
		products[i] = map[string]any{"title": p.Name, "unit_price": p.Price, "quantity": p.Quantity}
	}
	return products
}
