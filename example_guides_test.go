package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/pix"
)

// The code of the guides in docs/. A test checks that the two are the same.

// Create a client for production once, when the process starts.
func ExampleNew_production() {
	baseURL, key := "https://api.gateway.example", "sk_live_from_your_secret_store"

	client, err := gateway.New(baseURL, gateway.BearerToken(key),
		gateway.WithUserAgent("shop/1.4"),          // so that the gateway's support can tell your requests apart
		gateway.WithLogger(slog.Default()),         // attempts, without headers and bodies
		gateway.WithAttemptTimeout(20*time.Second), // for one request; the context bounds the whole call
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.CloseIdleConnections()

	_, err = gateway.New("https://sandbox.gateway.example", gateway.BearerToken(key))
	fmt.Println(err)

	// Output:
	// gateway: the API key is a production key (sk_live_…), but sandbox.gateway.example is a sandbox host: use the sandbox key (sk_test_…), or the production address
}

// Rotate the key while the process runs.
func ExampleCredentialFunc() {
	gw, _ := mock()

	var current atomic.Pointer[gateway.Credential] // your configuration replaces it
	rotate := func(key string) {
		credential := gateway.BearerToken(key)
		current.Store(&credential)
	}
	rotate("sk_test_old")
	client := gw.Client(gateway.WithCredential(gateway.CredentialFunc(func(context.Context) (gateway.Credential, error) {
		return *current.Load(), nil // called before every attempt: return from memory
	})))

	ctx := context.Background()
	charge(ctx, client, "order-1")
	rotate("sk_test_new") // belongs to another account of the mock, to show that it is used
	page, err := client.Transactions.List(ctx, gateway.TransactionListParams{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("transactions of the new key:", len(page.Items))

	// Output:
	// transactions of the new key: 0
}

// A page needs the Pix code as a picture.
func ExamplePixDetails() {
	_, client := mock()
	tx := charge(context.Background(), client, "order-17")

	picture, err := pix.Draw(tx.Pix.QRCode)
	if err != nil {
		fmt.Println(err)
		return
	}
	page := picture.SVG() // an <svg> element; for an e-mail, picture.PNG(8) is a picture with 8 pixels per module
	fmt.Println(page[:4])

	// Output:
	// <svg
}

func ExampleTransactionsService_Create_voucher() {
	_, client := mock()
	ctx := context.Background()
	tx, err := client.Transactions.Create(ctx, gateway.TransactionParams{
		ExternalRef: "order-17", // stored with the order before the call
		Amount:      4990,
		Method:      gateway.Voucher, // Boleto in Brazil
		Buyer: gateway.BuyerParams{
			Name:     "Ana Souza",
			Email:    "ana@example.com",
			Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"},
			Address:  &gateway.Address{Street: "Rua das Laranjeiras", City: "Rio de Janeiro", ZipCode: "22240003", Country: gateway.Brazil},
		},
		Products: []gateway.Product{{Name: "Mug", Price: 4990}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(tx.Voucher.DigitableLine), "digits, until", tx.Voucher.ExpirationDate.Format(time.DateOnly))

	// Output:
	// 47 digits, until 2027-01-07
}

// The response to a create is lost, and its retries fail.
func ExampleRepeatOf() {
	gw, client := mock()
	ctx := context.Background()
	lost, failed := mockserver.LoseResponse().Times(1), mockserver.Status(503).Times(2) // three attempts
	if err := gw.Faults.Add(lost.On("transactions.create"), failed.On("transactions.create")); err != nil {
		fmt.Println(err)
		return
	}

	order := gateway.TransactionParams{
		ExternalRef: "order-17",
		Amount:      4990,
		Method:      gateway.Pix,
		Buyer: gateway.BuyerParams{
			Name: "Ana Souza", Email: "ana@example.com",
			Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"},
		},
		Products: []gateway.Product{{Name: "Mug", Price: 4990, Tangible: true}},
	}
	var response gateway.Response
	tx, err := client.Transactions.Create(ctx, order)
	if errors.Is(err, gateway.ErrOutcomeUnknown) { // repeat it now and, if the error is the same, later
		tx, err = client.Transactions.Create(ctx, order, gateway.RepeatOf(err), gateway.ResponseInto(&response))
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(tx.Status, "recovered:", response.Recovered)

	// Output:
	// pending recovered: true
}

// A process died after it sent a create. Another process finds the order still
// open.
func ExampleFirstSent() {
	_, client := mock()
	ctx := context.Background()
	charge(ctx, client, "order-17") // what the first process sent; it never read the response
	firstSent := time.Now()         // stored with the order before the first call

	var response gateway.Response
	tx, err := client.Transactions.Create(ctx, gateway.TransactionParams{
		ExternalRef: "order-17",
		Amount:      4990,
		Method:      gateway.Pix,
		Buyer: gateway.BuyerParams{
			Name: "Ana Souza", Email: "ana@example.com",
			Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"},
		},
		Products: []gateway.Product{{Name: "Mug", Price: 4990, Tangible: true}},
	}, gateway.FirstSent(firstSent), gateway.ResponseInto(&response))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(tx.Status, "recovered:", response.Recovered)

	// Output:
	// pending recovered: true
}

// If the response to a refund is lost, read the transaction to see whether the
// refund was applied.
func Example_lostRefund() {
	gw, client := mock()
	ctx := context.Background()
	id := paid(ctx, gw, client, "order-17").ID
	if err := gw.Faults.Add(mockserver.LoseResponse().On("transactions.refund").Times(1)); err != nil {
		fmt.Println(err)
		return
	}

	before, err := client.Transactions.Get(ctx, id)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = client.Transactions.Refund(ctx, id, gateway.RefundParams{Amount: 1000})
	if errors.Is(err, gateway.ErrOutcomeUnknown) {
		after, err := client.Transactions.Get(ctx, id)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("refunded by this call:", after.RefundedAmount-before.RefundedAmount)
	}

	// Output:
	// refunded by this call: 1000
}

// Read the details of an error.
func ExampleError() {
	_, client := mock()
	ctx := context.Background()
	charge(ctx, client, "order-17")

	_, err := client.Transactions.Create(ctx, gateway.TransactionParams{
		ExternalRef: "order-17",
		Amount:      9990, // another order with the same reference
		Method:      gateway.Pix,
		Buyer: gateway.BuyerParams{
			Name: "Ana Souza", Email: "ana@example.com",
			Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"},
		},
		Products: []gateway.Product{{Name: "Teapot", Price: 9990}},
	})
	var rejected *gateway.Error
	if errors.As(err, &rejected) {
		fmt.Println(rejected.Op, rejected.StatusCode, rejected.Code)
		fmt.Println("request id for support:", rejected.RequestID != "")
		first, err := client.Transactions.FindByExternalRef(ctx, "order-17", gateway.FindOptions{ID: rejected.ResourceID})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("the reference belongs to a charge of", gateway.FormatAmount(first.Amount, first.Currency))
	}

	// Output:
	// transactions.create 409 DUPLICATE_EXTERNAL_REF
	// request id for support: true
	// the reference belongs to a charge of BRL 49.90
}

// The transaction of a checkout link does not have your reference, so match the
// sale by the buyer and the amount.
func Example_checkoutSale() {
	gw, client := mock()
	ctx := context.Background()
	link := newLink(ctx, client)
	session, err := client.CheckoutSessions.Open(ctx, link.Slug())
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = client.CheckoutSessions.Update(ctx, link.Slug(), session.SessionToken, gateway.CheckoutSessionParams{
		Buyer:         gateway.CheckoutBuyer{Name: "Ana Souza", Email: "ana@example.com"},
		PaymentMethod: gateway.Pix,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := gw.Checkout.Pay(link.Slug()); err != nil { // simulate the buyer
		fmt.Println(err)
		return
	}

	page, err := client.Transactions.List(ctx, gateway.TransactionListParams{Email: "ana@example.com"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, tx := range page.Items {
		fmt.Printf("%s %s reference %q\n", tx.Status, gateway.FormatAmount(tx.Amount, tx.Currency), tx.ExternalRef)
	}

	// Output:
	// paid BRL 79.80 reference ""
}
