package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/gateway-go/gateway"
)

// Get the status, the number of attempts and the reference that the client
// generated.
func ExampleResponseInto() {
	_, client := mock()
	var response gateway.Response
	tx, err := client.Transactions.Create(context.Background(), gateway.TransactionParams{
		Amount: 4990,
		Method: gateway.Pix,
		Buyer: gateway.BuyerParams{
			Name: "Ana Souza", Email: "ana@example.com",
			Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"},
		},
		Products: []gateway.Product{{Name: "Mug", Price: 4990}},
	}, gateway.ResponseInto(&response))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(response.StatusCode, "in", response.Attempts, "attempt")
	fmt.Println("reference:", response.Reference == tx.ExternalRef && len(response.Reference) == 36)

	// Output:
	// 201 in 1 attempt
	// reference: true
}

// Call an endpoint, or send a parameter, that this package does not support yet.
func ExampleClient_Do() {
	_, client := mock()
	ctx := context.Background()
	charge(ctx, client, "order-17")

	var response struct {
		Data struct {
			Total int `json:"total"`
		} `json:"data"`
	}
	err := client.Do(ctx, http.MethodGet, "/v2/transactions", nil, &response,
		gateway.Query("limit", "1"),
		gateway.Named("transactions.count", "/v2/transactions"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(response.Data.Total)

	// Output:
	// 1
}

// Create a client that retries for longer and shares the connections.
func ExampleClient_With() {
	_, client := mock()
	patient, err := client.With(gateway.WithMaxAttempts(6), gateway.WithBackoff(time.Second, time.Minute))
	if err != nil {
		fmt.Println(err)
		return
	}
	page, err := patient.Transactions.List(context.Background(), gateway.TransactionListParams{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(page.Items))

	// Output:
	// 0
}

func ExampleCollect() {
	_, client := mock()
	ctx := context.Background()
	for _, order := range []string{"order-1", "order-2", "order-3"} {
		charge(ctx, client, order)
	}
	newest, err := gateway.Collect(client.Transactions.All(ctx, gateway.TransactionListParams{}), 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, tx := range newest {
		fmt.Println(tx.ExternalRef)
	}

	// Output:
	// order-3
	// order-2
}

func ExampleFormatAmount() {
	fmt.Println(gateway.FormatAmount(123450, gateway.BRL))
	fmt.Println(gateway.FormatAmount(1990, gateway.CLP)) // pesos have no cents

	// Output:
	// BRL 1234.50
	// CLP 1990
}

// A card token can be charged, so it prints masked.
func ExampleCardToken() {
	token := gateway.CardToken("pgct_8f2b61c0")
	fmt.Println(token)
	fmt.Printf("%+v\n", gateway.SubscriptionParams{Token: token}.Token)

	// Output:
	// pgct_…
	// pgct_…
}
