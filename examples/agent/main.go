// Agent charges by Pix, survives a lost response, ships on the webhook, and refunds.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
)

func main() {
	ctx := context.Background()
	mock, err := mockserver.New() // the gateway, in this process
	check(err)
	client := mock.Client() // in production: gateway.NewFromEnv()

	order := gateway.TransactionParams{ // store it before the first call
		ExternalRef: "order-1001", // the idempotency key: never a new one for the same order
		Amount:      4990,         // int64, cents: BRL 49.90
		Method:      gateway.Pix,
		Buyer: gateway.BuyerParams{
			Name: "Ana Souza", Email: "ana@example.com",
			Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"},
		},
		Products: []gateway.Product{{Name: "Mug", Price: 4990}},
	}

	// In production, add a sqlstore.Store and write the effect with sqlstore.HandleTx: exactly once, also across crashes.
	receiver, err := webhook.New(webhook.Config{Keys: []webhook.SigningKey{{Key: mock.Secret()}}})
	check(err)
	webhook.OnTransaction(receiver, webhook.TransactionPaid, func(ctx context.Context, e *webhook.TransactionEvent) error {
		tx, err := client.Transactions.Get(ctx, e.ResourceID) // the event may be older than a refund
		if err != nil {
			return err // the event is retried
		}
		if tx.ExternalRef != order.ExternalRef || !tx.AmountIs(order.Amount) || tx.Currency != gateway.BRL {
			return webhook.Permanent(errors.New("not this order, or not its amount"))
		}
		if tx.Settled() {
			fmt.Println("ship", tx.ExternalRef)
		}
		return nil
	})
	webhook.Ignore(receiver, webhook.TransactionCreated, webhook.TransactionPending, webhook.TransactionRefunded)
	mock.Webhooks.Send(receiver) // in production: mux.Handle("POST /webhooks/gateway", receiver)
	check(mock.Webhooks.Duplicate(string(webhook.TransactionPaid)))

	// The response to the first attempt is lost, and both retries of the client fail.
	check(mock.Faults.Add(mockserver.LoseResponse().On("transactions.create").Times(1),
		mockserver.Status(503).On("transactions.create").Times(2)))
	charge, err := client.Transactions.Create(ctx, order)
	if errors.Is(err, gateway.ErrOutcomeUnknown) { // the charge may exist: repeat with the same params
		fmt.Println("unknown, repeat:", order.ExternalRef)
		charge, err = client.Transactions.Create(ctx, order, gateway.RepeatOf(err))
	}
	check(err)
	fmt.Println("to pay:", gateway.FormatAmount(charge.Charged(), charge.Currency))

	check(mock.Transactions.Pay(charge.ID)) // what the buyer's bank does
	check(mock.Wait(ctx))                   // until the webhooks are delivered

	// A refund has no reference: after an unknown outcome, don't repeat it, but read.
	check(mock.Faults.Add(mockserver.LoseResponse().On("transactions.refund").Times(1)))
	before, err := client.Transactions.Get(ctx, charge.ID)
	check(err)
	_, err = client.Transactions.Refund(ctx, charge.ID, gateway.RefundParams{Amount: 990})
	if errors.Is(err, gateway.ErrOutcomeUnknown) { // with a real gateway, wait a few minutes first
		var after *gateway.Transaction
		after, err = client.Transactions.Get(ctx, charge.ID)
		check(err)
		fmt.Println("refunded:", after.RefundedAmount-before.RefundedAmount, after.Status)
	}
	check(err)
	check(mock.Close())
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
