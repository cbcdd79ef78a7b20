package gateway_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
)

// charge creates a Pix charge of BRL 49.90.
func charge(ctx context.Context, client *gateway.Client, reference string) *gateway.Transaction {
	tx, err := client.Transactions.Create(ctx, gateway.TransactionParams{
		ExternalRef: reference,
		Amount:      4990,
		Method:      gateway.Pix,
		Buyer: gateway.BuyerParams{
			Name: "Ana Souza", Email: "ana@example.com",
			Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"},
		},
		Products: []gateway.Product{{Name: "Mug", Price: 4990, Tangible: true}},
	})
	if err != nil {
		panic(err)
	}
	return tx
}

// paid creates a Pix charge that its buyer pays.
func paid(ctx context.Context, gw *mockserver.Server, client *gateway.Client, reference string) *gateway.Transaction {
	tx := charge(ctx, client, reference)
	if err := gw.Transactions.Pay(tx.ID); err != nil {
		panic(err)
	}
	return tx
}

func ExampleTransactionsService_Create() {
	_, client := mock()
	ctx := context.Background()
	params := gateway.TransactionParams{
		ExternalRef: "order-17", // stored with the order before the call
		Amount:      4990,       // R$ 49.90
		Method:      gateway.Pix,
		Buyer: gateway.BuyerParams{
			Name: "Ana Souza", Email: "ana@example.com",
			Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"},
		},
		Products: []gateway.Product{{Name: "Mug", Price: 4990}},
	}
	tx, err := client.Transactions.Create(ctx, params)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(tx.Status, gateway.FormatAmount(tx.Amount, tx.Currency))
	fmt.Println("Pix code:", tx.Pix.QRCode[:8]+"…")

	// The same order is never charged twice.
	_, err = client.Transactions.Create(ctx, params)
	fmt.Println("duplicate:", errors.Is(err, gateway.ErrDuplicate))

	// Output:
	// pending BRL 49.90
	// Pix code: 00020101…
	// duplicate: true
}

func ExampleTransactionsService_Create_card() {
	gw, client := mock()
	ctx := context.Background()
	tx, err := client.Transactions.Create(ctx, gateway.TransactionParams{
		ExternalRef:  "order-17", // stored with the order before the call
		Amount:       29900,
		Method:       gateway.CreditCard,
		Installments: 3,
		Token:        "pgct_3ds_ana", // from the client-side payment element
		Buyer:        gateway.BuyerParams{Name: "Ana Souza", Email: "ana@example.com"},
		Products:     []gateway.Product{{Name: "Headphones", Price: 29900}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if tx.NextAction != nil {
		fmt.Println(tx.NextAction.Type) // its ClientSecret goes back to the payment element
	}

	if err := gw.Transactions.PassChallenge(tx.ID); err != nil { // simulate the buyer
		fmt.Println(err)
		return
	}
	tx, err = client.Transactions.Get(ctx, tx.ID)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("settled:", tx.Settled())

	// Output:
	// three_ds_challenge
	// settled: true
}

func ExampleTransactionsService_Create_invalid() {
	_, client := mock()
	_, err := client.Transactions.Create(context.Background(), gateway.TransactionParams{
		Method:   gateway.CreditCard,
		Token:    "4111 1111 1111 1111",
		Buyer:    gateway.BuyerParams{Name: "Ana Souza", Email: "ana@example.com"},
		Products: []gateway.Product{{Name: "Mug", Price: 4990}},
	})
	var invalid *gateway.ValidationError // nothing was sent
	if errors.As(err, &invalid) {
		for _, f := range invalid.Fields {
			fmt.Println(f.Field, f.Code)
		}
	}

	// Output:
	// amount too_small
	// token invalid_string
}

func ExampleTransactionsService_Get() {
	gw, client := mock()
	ctx := context.Background()
	id := paid(ctx, gw, client, "order-17").ID

	tx, err := client.Transactions.Get(ctx, id)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(tx.ExternalRef, tx.Status, gateway.FormatAmount(tx.PaidAmount, tx.Currency))

	_, err = client.Transactions.Get(ctx, "0194177e-0000-7000-8000-000000000000")
	fmt.Println("unknown:", errors.Is(err, gateway.ErrNotFound))

	// Output:
	// order-17 paid BRL 49.90
	// unknown: true
}

func ExampleTransactionsService_List() {
	gw, client := mock()
	ctx := context.Background()
	paid(ctx, gw, client, "order-1")
	charge(ctx, client, "order-2")
	paid(ctx, gw, client, "order-3")

	page, err := client.Transactions.List(ctx, gateway.TransactionListParams{
		Statuses: []gateway.TransactionStatus{gateway.TransactionPaid, gateway.TransactionCaptured},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, tx := range page.Items {
		fmt.Println(tx.ExternalRef, tx.Status)
	}
	fmt.Println("of", page.Total, "more:", page.HasMore())

	// Output:
	// order-3 paid
	// order-1 paid
	// of 2 more: false
}

func ExampleTransactionsService_Pages() {
	_, client := mock()
	ctx := context.Background()
	for _, order := range []string{"order-1", "order-2", "order-3"} {
		charge(ctx, client, order)
	}

	// Store the cursor, and another process can continue later.
	var cursor string
	for page, err := range client.Transactions.Pages(ctx, gateway.TransactionListParams{Limit: 2}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("a page of", len(page.Items))
		cursor = page.NextCursor
		break
	}
	for page, err := range client.Transactions.Pages(ctx, gateway.TransactionListParams{Limit: 2, Cursor: cursor}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("later, a page of", len(page.Items))
	}

	// Output:
	// a page of 2
	// later, a page of 1
}

func ExampleTransactionsService_All() {
	gw, client := mock()
	ctx := context.Background()
	paid(ctx, gw, client, "order-1")
	charge(ctx, client, "order-2")

	var settled int64
	for tx, err := range client.Transactions.All(ctx, gateway.TransactionListParams{}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if tx.Status.Settled() {
			settled += tx.Charged()
		}
	}
	fmt.Println(gateway.FormatAmount(settled, gateway.BRL))

	// Output:
	// BRL 49.90
}

func ExampleTransactionsService_Refund() {
	gw, client := mock()
	ctx := context.Background()
	id := paid(ctx, gw, client, "order-17").ID

	refund, err := client.Transactions.Refund(ctx, id, gateway.RefundParams{Amount: 1000, Reason: "a scratch"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(refund.AmountRefunded, "back,", refund.RemainingBalance, "left")

	refund, err = client.Transactions.Refund(ctx, id, gateway.RefundParams{Full: true}) // the rest
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(refund.AmountRefunded, "back,", refund.RemainingBalance, "left")

	_, err = client.Transactions.Refund(ctx, id, gateway.RefundParams{Full: true})
	fmt.Println("conflict:", errors.Is(err, gateway.ErrConflict))

	// Output:
	// 1000 back, 3990 left
	// 3990 back, 0 left
	// conflict: true
}

func ExampleTransactionsService_UpdateDelivery() {
	gw, client := mock()
	ctx := context.Background()
	id := paid(ctx, gw, client, "order-17").ID

	delivery, err := client.Transactions.UpdateDelivery(ctx, id, gateway.DeliveryParams{
		TrackingCode:    "BR123456789",
		TrackingCompany: gateway.Some("Correios"),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(delivery.Status, delivery.Company, delivery.Code)

	delivery, err = client.Transactions.UpdateDelivery(ctx, id, gateway.DeliveryParams{
		TrackingCode:   "BR123456789",
		DeliveryStatus: gateway.DeliveryDelivered,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(delivery.Status, delivery.Company, delivery.Code)

	// Output:
	// in_transit Correios BR123456789
	// delivered Correios BR123456789
}

func ExampleTransactionsService_SetSandboxStatus() {
	_, client := mock()
	ctx := context.Background()
	id := charge(ctx, client, "order-17").ID

	// The sandbox has no buyers. This simulates a payment, and the gateway sends the
	// webhook.
	tx, err := client.Transactions.SetSandboxStatus(ctx, id, gateway.SandboxStatusParams{Status: gateway.TransactionPaid})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(tx.ExternalRef, tx.Status)

	// Output:
	// order-17 paid
}

func ExampleTransactionsService_Wait() {
	gw, client := mock()
	ctx := context.Background()
	id := paid(ctx, gw, client, "order-17").ID

	// Wait returns when the transaction is settled, partially refunded or final.
	tx, err := client.Transactions.Wait(ctx, id)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(tx.Status, "ship:", tx.Settled() && tx.PaidAmount == 4990)

	// Output:
	// paid ship: true
}

func ExampleTransactionsService_WaitUntil() {
	gw, client := mock()
	ctx := context.Background()
	id := paid(ctx, gw, client, "order-17").ID
	if _, err := client.Transactions.Refund(ctx, id, gateway.RefundParams{Full: true}); err != nil {
		fmt.Println(err)
		return
	}

	tx, err := client.Transactions.WaitUntil(ctx, id, func(t *gateway.Transaction) bool { return t.RefundedAmount == t.PaidAmount })
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(tx.Status)

	// Output:
	// refunded
}

func ExampleTransactionsService_FindByExternalRef() {
	gw, client := mock()
	ctx := context.Background()
	paid(ctx, gw, client, "order-17")

	// After ErrOutcomeUnknown, check whether the charge was created.
	tx, err := client.Transactions.FindByExternalRef(ctx, "order-17", gateway.FindOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(tx.ExternalRef, tx.Status)

	// If not, send the create again with the same reference.
	_, err = client.Transactions.FindByExternalRef(ctx, "order-18", gateway.FindOptions{})
	fmt.Println("not created:", errors.Is(err, gateway.ErrNotFound))

	// Output:
	// order-17 paid
	// not created: true
}
