// First makes one Pix charge and waits until it is paid.
package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	mock, err := mockserver.New() // the whole gateway, in this process; WithDialect(mockserver.Live) rejects more
	if err != nil {
		log.Fatal(err)
	}
	client := mock.Client() // in production: gateway.New(baseURL, gateway.BearerToken(key))

	charge, err := client.Transactions.Create(ctx, gateway.TransactionParams{
		ExternalRef: "order-1001", // yours: stored with the order, sent with every retry
		Amount:      15470,        // cents
		Method:      gateway.Pix,
		Buyer: gateway.BuyerParams{
			Name: "Maria Oliveira", Email: "maria@example.com",
			Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"}, // live gateways require it for a Pix
		},
		Products: []gateway.Product{{Name: "Café em grãos, 500 g", Price: 15470}},
	})
	if err != nil {
		log.Fatal(err) // in a service, handle the sentinels below with errors.Is
	}
	fmt.Println("Pay with:", charge.Pix.QRCode)

	if err := mock.Transactions.Pay(charge.ID); err != nil { // what the buyer's bank does
		log.Fatal(err)
	}
	charge, err = client.Transactions.Wait(ctx, charge.ID)
	if err != nil {
		log.Fatal(err)
	}
	if !charge.Settled() { // Wait also returns an expired or refused transaction
		log.Fatal("not paid: ", charge.Status)
	}
	fmt.Println("Paid:", gateway.FormatAmount(charge.Paid(), charge.Currency))
}
