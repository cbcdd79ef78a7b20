// Webhook makes the Pix charge of examples/first and ships its order when the gateway's
// webhook says that it is paid.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := run(ctx, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, options ...mockserver.Option) error {
	mock, err := mockserver.New(options...)
	if err != nil {
		return err
	}
	order := gateway.TransactionParams{
		ExternalRef: "order-1001", Amount: 15470, Method: gateway.Pix,
		Buyer: gateway.BuyerParams{
			Name: "Maria Oliveira", Email: "maria@example.com",
			Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"},
		},
		Products: []gateway.Product{{Name: "Café em grãos, 500 g", Price: 15470}},
	}
	orders := map[string]gateway.TransactionParams{order.ExternalRef: order} // in a service, in the database before the charge

	receiver, err := webhook.New(webhook.Config{
		Keys: []webhook.SigningKey{{Key: mock.Secret()}}, // in production, the secret of your endpoint
	})
	if err != nil {
		return err
	}
	webhook.Ignore(receiver, webhook.TransactionCreated, webhook.TransactionPending) // nothing to do
	webhook.OnTransaction(receiver, webhook.TransactionPaid, func(_ context.Context, e *webhook.TransactionEvent) error {
		stored, ok := orders[e.CorrelationID] // the ExternalRef of the charge
		if !ok || !e.Data.AmountIs(stored.Amount) {
			return fmt.Errorf("no order %q of this amount", e.CorrelationID) // the gateway delivers it again
		}
		_, err := fmt.Fprintln(out, "The webhook has arrived. Ship", e.CorrelationID, "for", gateway.FormatAmount(e.Data.Charged(), e.Data.Currency))
		return err
	})
	mux := http.NewServeMux() // in production: http.ListenAndServe(":8080", mux), behind TLS
	mux.Handle("POST /webhooks/gateway", receiver)
	if err := mock.Webhooks.SendTo("/webhooks/gateway", mux); err != nil {
		return err
	}

	charge, err := mock.Client().Transactions.Create(ctx, order)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, "Pay with:", charge.Pix.QRCode); err != nil {
		return err
	}
	if err := mock.Transactions.Pay(charge.ID); err != nil { // what the buyer's bank does
		return err
	}
	return mock.Wait(ctx) // until the webhooks are delivered
}
