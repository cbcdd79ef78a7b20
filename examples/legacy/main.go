// Legacy uses the v1 surface: the account-wide webhook addresses, a v1 Pix
// payment, the balance, and the card tokenization that was retired on
// 2026-08-01.
//
//	go run ./examples/legacy
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/examples/internal/demo"
	"github.com/gateway-go/gateway/legacy"
	"github.com/gateway-go/gateway/mockserver"
)

func main() { demo.Main("legacy", run) }

// cutoff is when the card tokenization was retired, by the gateway's clock.
func cutoff() time.Time { return time.Date(2026, time.August, 1, 3, 0, 0, 0, time.UTC) }

func run(ctx context.Context, out *demo.Printer) error {
	mock, err := mockserver.New(mockserver.WithStart(cutoff().Add(-time.Hour)))
	if err != nil {
		return err
	}
	defer mock.Close() //nolint:errcheck // nothing listens
	// In production: the same client and key as for v2. Every v1 call sends the
	// key in the apiKey header, whatever the client itself uses.
	v1, err := legacy.New(mock.Client(), gateway.NewSecret(mock.Key()))
	if err != nil {
		return err
	}
	o := &old{Printer: out, mock: mock, v1: v1}
	return demo.Steps(ctx, o.integrate, o.charge, o.pay, o.tokenize, o.retire)
}

// old is a merchant with a v1 account.
type old struct {
	*demo.Printer

	mock    *mockserver.Server
	v1      *legacy.Client
	payment *legacy.PixPayment
}

func (o *old) integrate(ctx context.Context) error {
	o.Title("Where webhooks go")
	integration, err := o.v1.ConfigureIntegration(ctx, legacy.IntegrationParams{
		WebhookURL: "https://shop.example/webhooks", PixWebhookURL: "https://shop.example/webhooks/pix",
	})
	if err != nil {
		return err
	}
	o.Printf("all events    %s", integration.WebhookURL)
	o.Printf("Pix, payouts  %s", integration.PixWebhookURL)
	o.Printf("status        %s", integration.Status)
	return nil
}

func (o *old) charge(ctx context.Context) error {
	o.Title("A Pix payment")
	var err error
	o.payment, err = o.v1.CreatePixPayment(ctx, legacy.PixPaymentParams{
		Payer: legacy.Payer{
			FullName: "Maria Oliveira",
			Contact:  legacy.Contact{Mail: "maria@example.com"},
		},
		Transaction: legacy.PixCharge{Value: 15_470, Description: "Order 1001", ExternalID: "order-1001"},
	})
	if err != nil {
		return err
	}
	o.Printf("payment       %s", o.payment.TransactionID)
	o.Printf("status        %s until %s", o.payment.Status, o.payment.ExpirationDate.Format(time.RFC3339))
	o.Printf("copy-paste    %.44s…", o.payment.PixCode)
	if o.payment.Status != legacy.PaymentWaitingPayment {
		return fmt.Errorf("a new payment should be WAITING_PAYMENT, it is %s", o.payment.Status)
	}
	return nil
}

// pay shows that a v1 payment is an ordinary transaction.
func (o *old) pay(ctx context.Context) error {
	o.Title("The payer pays, and v2 shows it too")
	if err := o.mock.Transactions.Pay(o.payment.TransactionID); err != nil {
		return err
	}
	tx, err := o.mock.Client().Transactions.Get(ctx, o.payment.TransactionID)
	if err != nil {
		return err
	}
	balance, err := o.v1.Balance(ctx)
	if err != nil {
		return err
	}
	o.Printf("v2 status     %s", tx.Status)
	o.Printf("balance       %s", gateway.FormatAmount(balance.Balance, balance.Currency))
	if !tx.Settled() || balance.Balance != 15_470 {
		return fmt.Errorf("15470 cents should have been paid, the transaction is %s and the balance %d", tx.Status, balance.Balance)
	}
	return nil
}

// tokenize makes the retired call while it still works.
func (o *old) tokenize(ctx context.Context) error {
	o.Title("Card tokens, an hour before the cutoff")
	token, err := o.v1.CreatePaymentToken(ctx, "public-token", map[string]any{"holder": "Maria Oliveira"}) //nolint:staticcheck // the point of this example
	if err != nil {
		return err
	}
	o.Printf("created       %s, last digits %s", token.Token, token.Last4)
	_, err = o.v1.CreatePaymentToken(ctx, "public-token", map[string]any{"card_number": "4111 1111 1111 1111"}) //nolint:staticcheck // as above
	if !errors.Is(err, gateway.ErrValidation) {
		return fmt.Errorf("card data should never be sent, got %w", err)
	}
	o.Printf("%s", err)
	return nil
}

// retire makes the same call after the cutoff.
func (o *old) retire(ctx context.Context) error {
	o.Title("The same call after the cutoff")
	if err := o.mock.Clock.AdvanceTo(cutoff()); err != nil {
		return err
	}
	_, err := o.v1.CreatePaymentToken(ctx, "public-token", map[string]any{"holder": "Maria Oliveira"}) //nolint:staticcheck // as above
	if !errors.Is(err, gateway.ErrRetired) {
		return fmt.Errorf("tokenization should be retired, got %w", err)
	}
	o.Printf("%s", err)
	if _, err := o.v1.PaymentToken(ctx, "public-token"); err != nil {
		return fmt.Errorf("existing tokens should still be readable: %w", err)
	}
	o.Printf("Existing tokens can still be read and charged.")
	return nil
}
