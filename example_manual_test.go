package gateway_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/gateway-go/gateway"
)

// The code of the package documentation in doc.go, compiled and run. A test
// checks that the two are the same.

func manualNew(baseURL, key string) error {
	client, err := gateway.New(baseURL, gateway.BearerToken(key))
	if err != nil {
		return err
	}
	client.CloseIdleConnections()
	return nil
}

func manualPay(ctx context.Context, client *gateway.Client, show func(string)) error {
	tx, err := client.Transactions.Create(ctx, gateway.TransactionParams{
		ExternalRef: "order-17",
		Amount:      4990, // R$ 49.90
		Method:      gateway.Pix,
		Buyer: gateway.BuyerParams{
			Name: "Ana Souza", Email: "ana@example.com",
			Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"},
		},
		Products: []gateway.Product{{Name: "Mug", Price: 4990}},
	})
	if err != nil {
		return err
	}
	show(tx.Pix.QRCode)
	return nil
}

func manualErrors(err error) string {
	switch {
	case errors.Is(err, gateway.ErrOutcomeUnknown):
		return "look it up" // the write may have been applied: resolve the outcome
	case errors.Is(err, gateway.ErrNotSent):
		return "try again" // nothing reached the gateway
	case errors.Is(err, gateway.ErrDuplicate):
		return "read the first one" // the reference was used before
	case errors.Is(err, gateway.ErrConflict):
		return "read the resource" // its state does not allow the call
	case errors.Is(err, gateway.ErrValidation):
		return "fix the request" // err names the fields
	case errors.Is(err, gateway.ErrNotFound), errors.Is(err, gateway.ErrRetired):
		return "stop" // the resource does not exist, or the endpoint is retired
	case errors.Is(err, gateway.ErrUnauthorized), errors.Is(err, gateway.ErrForbidden):
		return "fix the key" // it is invalid or lacks the permission
	case errors.Is(err, gateway.ErrRateLimited), errors.Is(err, gateway.ErrServer):
		return "try later" // the client has already tried a few times
	}
	return "other"
}

func manualList(ctx context.Context, client *gateway.Client) error {
	for tx, err := range client.Transactions.All(ctx, gateway.TransactionListParams{}) {
		if err != nil {
			return err
		}
		fmt.Println(tx.ExternalRef, tx.Status)
	}
	return nil
}

func manualSubscribe(ctx context.Context, client *gateway.Client, customer *gateway.Customer, token gateway.CardToken, show func(string)) error {
	sub, err := client.Subscriptions.Create(ctx, gateway.SubscriptionParams{
		CustomerID:     customer.ID,
		Amount:         4990, // every month
		Token:          token,
		Interval:       gateway.IntervalMonth,
		IdempotencyKey: "club-" + customer.ID, // the same in every retry
	})
	if err != nil {
		return err
	}
	if sub.Status == gateway.SubscriptionIncomplete {
		challenge, err := client.Subscriptions.PendingChallenge(ctx, sub.ID)
		if err != nil {
			return err
		}
		if challenge != nil {
			show(challenge.ClientSecret.Reveal())
		}
	}
	return nil
}

func manualPayout(ctx context.Context, client *gateway.Client) error {
	transfer, err := client.Transfers.Create(ctx, gateway.TransferParams{
		PixKeyType:  gateway.PixKeyEmail,
		PixKeyValue: "supplier@example.com",
		Amount:      125000, // R$ 1250.00
		ExternalRef: "invoice-99",
	})
	if err != nil {
		return err
	}
	fmt.Println(transfer.Status)
	return nil
}

func manualCheckout(ctx context.Context, client *gateway.Client, redirect func(string)) error {
	link, err := client.CheckoutLinks.Create(ctx, gateway.CheckoutLinkParams{
		Products: []gateway.CheckoutProduct{{ExternalID: "MUG-1", Name: "Mug", Price: 4990}},
	})
	if err != nil {
		return err
	}
	redirect(link.URL)
	return nil
}

// Create a Pix charge and show its code to the buyer.
func Example() {
	_, client := mock()
	ctx := context.Background()
	err := manualPay(ctx, client, func(code string) { fmt.Println("code begins with", code[:8]) })
	fmt.Println("error:", err)

	// A second charge with the same reference is rejected.
	err = manualPay(ctx, client, nil)
	fmt.Println("again:", manualErrors(err))

	// Output:
	// code begins with 00020101
	// error: <nil>
	// again: read the first one
}

// Iterate over all transactions without handling pages.
func Example_list() {
	_, client := mock()
	ctx := context.Background()
	for _, order := range []string{"order-1", "order-2"} {
		_, err := client.Transactions.Create(ctx, gateway.TransactionParams{
			ExternalRef: order,
			Amount:      4990,
			Method:      gateway.Pix,
			Buyer: gateway.BuyerParams{
				Name: "Ana Souza", Email: "ana@example.com",
				Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"},
			},
			Products: []gateway.Product{{Name: "Mug", Price: 4990}},
		})
		if err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println("error:", manualList(ctx, client))

	// Output:
	// order-2 pending
	// order-1 pending
	// error: <nil>
}

// New rejects configurations that can't work.
func ExampleNew() {
	fmt.Println(manualNew("https://sandbox.gateway.example", "sk_test_1"))
	fmt.Println(manualNew("https://sandbox.gateway.example", "pk_test_1"))
	fmt.Println(manualNew("http://gateway.example", "sk_test_1"))

	// Output:
	// <nil>
	// gateway: the API key is a public key (pk_…), which is for browsers: use the secret key (sk_…) of your account
	// gateway: plain http would send the key to gateway.example unencrypted: use https, or WithInsecureHTTP if that is acceptable
}

// If the first charge of a subscription needs 3-D Secure, PendingChallenge
// returns the challenge.
func Example_subscription() {
	_, client := mock()
	ctx := context.Background()
	show := func(secret string) { fmt.Println("challenge for the payment element:", secret != "") }
	fmt.Println("error:", manualSubscribe(ctx, client, newCustomer(ctx, client), "pgct_ok_1", show))
	fmt.Println("error:", manualSubscribe(ctx, client, newCustomer(ctx, client), "pgct_3ds_1", show))

	// Output:
	// error: <nil>
	// challenge for the payment element: true
	// error: <nil>
}

// Pay a supplier by Pix key.
func Example_payout() {
	_, client := mock()
	fmt.Println("error:", manualPayout(context.Background(), client))

	// Output:
	// pending
	// error: <nil>
}

// Create a hosted payment page and redirect the buyer to it.
func Example_checkout() {
	_, client := mock()
	err := manualCheckout(context.Background(), client, func(url string) { fmt.Println("redirect:", url != "") })
	fmt.Println("error:", err)

	// Output:
	// redirect: true
	// error: <nil>
}
