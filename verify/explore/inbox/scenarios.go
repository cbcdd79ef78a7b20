package inbox

import (
	"context"
	"fmt"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/webhooktest"
)

// Scenarios returns deliveries of two events in every relevant combination,
// together with forged ones. The gateway confirms unsigned deliveries.
func Scenarios(ctx context.Context, gw *mockserver.Server) ([]Scenario, error) {
	client := gw.Client()
	ids := map[string]string{}
	for order, change := range map[string]func(id string) error{
		"order-1": gw.Transactions.Pay, "order-2": gw.Transactions.Pay, "order-3": gw.Transactions.Cancel,
	} {
		tx, err := client.Transactions.Create(ctx, gateway.TransactionParams{
			ExternalRef: order, Amount: 1990, Method: gateway.Pix, Buyer: gateway.BuyerParams{Name: "Ana Souza", Email: "ana@example.com"},
			Products: []gateway.Product{{Name: "Mug", Price: 1990}},
		})
		if err == nil {
			err = change(tx.ID)
		}
		if err != nil {
			return nil, fmt.Errorf("inbox: creating the transactions of the scenarios: %w", err)
		}
		ids[order] = tx.ID
	}
	paid := delivery("paid", webhook.TransactionPaid, ids["order-1"], "order-1", true)
	twin := delivery("paid, unsigned", webhook.TransactionPaid, ids["order-1"], "order-1", false)
	refunded := delivery("refunded", webhook.TransactionRefunded, ids["order-1"], "order-1", true)
	other := delivery("another paid", webhook.TransactionPaid, ids["order-2"], "order-2", true)
	forged := delivery("forged refund", webhook.TransactionRefunded, ids["order-2"], "order-2", false)
	refuted := delivery("forged payment", webhook.TransactionPaid, ids["order-3"], "order-3", false)
	forged.Event, refuted.Event = "", ""
	updated := paid // some gateways redeliver an event with its resource's newer data
	updated.Newer = body(webhook.TransactionPaid, ids["order-1"], "order-1", "2027-01-04T12:00:00Z")
	again := updated
	again.Name, again.Body = "paid, newer", updated.Newer
	return []Scenario{
		{Name: "a duplicate, and a later event of the resource", Deliveries: []Delivery{paid, paid, refunded, forged, refuted}},
		{Name: "a duplicate, and an event of another resource", Deliveries: []Delivery{paid, paid, other, forged, refuted}},
		{Name: "an unsigned twin, and an event of another resource", Deliveries: []Delivery{paid, twin, other, forged, refuted}, API: client},
		{Name: "an unsigned twin that arrives first", Deliveries: []Delivery{twin, paid, twin, forged, refuted}, API: client},
		{Name: "Sync: redeliveries with newer data, and a later event", Deliveries: []Delivery{updated, again, refunded, forged}, Sync: true},
		{Name: "Sync in memory: redeliveries with newer data", Deliveries: []Delivery{updated, again, refunded, forged}, Sync: true, Memory: true},
		{Name: "Sync: redeliveries and an unsigned twin", Deliveries: []Delivery{paid, twin, other, refuted}, API: client, Sync: true},
		{Name: "the same events of two accounts", Deliveries: []Delivery{paid, toMX(paid), paid, toMX(refunded)}},
		{Name: "an unsigned twin in another account", Deliveries: []Delivery{paid, toMX(twin), toMX(paid), refuted}, API: client},
	}, nil
}

// toMX returns the delivery to another account.
func toMX(d Delivery) Delivery {
	const account = "shop-mx"
	d.Name, d.To, d.Event = d.Name+", "+account, account, effectName(account, d.Event)
	return d
}

func delivery(name string, kind webhook.Kind, id, order string, signed bool) Delivery {
	return Delivery{Name: name, Event: string(kind) + " " + id, Signed: signed, Body: body(kind, id, order, "")}
}

func body(kind webhook.Kind, id, order, updatedAt string) []byte {
	data := map[string]any{"correlation_id": order}
	if updatedAt != "" {
		data["updated_at"] = updatedAt
	}
	return webhooktest.Event{Kind: kind, ID: "event-" + string(kind) + "-" + id, ResourceID: id, Data: data}.Body()
}
