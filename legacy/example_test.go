package legacy_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/legacy"
	"github.com/gateway-go/gateway/mockserver"
)

// mock returns an in-memory gateway and its v1 client, for the examples. In your
// own code, pass the client from gateway.New to legacy.New.
func mock(opts ...mockserver.Option) (*mockserver.Server, *legacy.Client) {
	gw, err := mockserver.New(append(opts, mockserver.WithSeed(1))...)
	if err != nil {
		panic(err)
	}
	v1, err := legacy.New(gw.Client(), gateway.NewSecret(gw.Key()))
	if err != nil {
		panic(err)
	}
	return gw, v1
}

func ExampleNew() {
	client, err := gateway.New("https://api.gateway.example", gateway.BearerToken("sk_test_v2"))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = legacy.New(client, gateway.NewSecret("sk_test_v1")) // always sent in the apiKey header
	fmt.Println(err)

	_, err = legacy.New(client, gateway.NewSecret("pk_test_v1"))
	fmt.Println(err)
	// Output:
	// <nil>
	// gateway: the API key is a public key (pk_…), which is for browsers: use the secret key (sk_…) of your account
}

func ExampleClient_ConfigureIntegration() {
	_, v1 := mock()

	integration, err := v1.ConfigureIntegration(context.Background(), legacy.IntegrationParams{
		WebhookURL:    "https://shop.example/webhooks/all",
		PixWebhookURL: "https://shop.example/webhooks/pix",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(integration.Status, integration.PixWebhookURL)
	// Output: active https://shop.example/webhooks/pix
}

func ExampleClient_Balance() {
	gw, v1 := mock()
	ctx := context.Background()

	_, err := gw.Client().Transfers.Create(ctx, gateway.TransferParams{
		PixKeyType: gateway.PixKeyEmail, PixKeyValue: "maria@example.com", Amount: 10_00,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	balance, err := v1.Balance(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(gateway.FormatAmount(balance.Balance, balance.Currency))
	// Output: BRL -10.00
}

func ExampleClient_CreatePixPayment() {
	_, v1 := mock()

	payment, err := v1.CreatePixPayment(context.Background(), legacy.PixPaymentParams{
		Payer: legacy.Payer{FullName: "Maria Silva", Document: "52998224725"},
		Transaction: legacy.PixCharge{
			Value:          49_90, // cents
			ExpirationTime: 3600,  // seconds
			ExternalID:     "order-3001",
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(payment.Status, payment.ExpirationDate.Sub(payment.GenerateTime.Time))
	fmt.Println(payment.PixCode[:14])
	// Output:
	// WAITING_PAYMENT 1h0m0s
	// 00020101021226
}

func ExampleClient_PaymentToken() {
	_, v1 := mock()

	token, err := v1.PaymentToken(context.Background(), "pk_test_mock")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(token.Brand, len(token.Last4), token.Token) // the token prints masked
	// Output: visa 4 pgct_…
}

func ExampleClient_CreatePaymentToken() {
	ctx := context.Background()
	gw, v1 := mock(mockserver.WithStart(time.Date(2026, 8, 1, 2, 59, 59, 0, time.UTC)))

	_, err := v1.CreatePaymentToken(ctx, "pk_test_mock", nil)
	fmt.Println(err)

	if err := gw.Clock.Advance(time.Second); err != nil {
		fmt.Println(err)
		return
	}
	_, err = v1.CreatePaymentToken(ctx, "pk_test_mock", nil)
	var e *gateway.Error
	if errors.Is(err, gateway.ErrRetired) && errors.As(err, &e) {
		fmt.Println(e.Code)
	}
	// Output:
	// <nil>
	// LEGACY_TOKENIZATION_RETIRED
}
