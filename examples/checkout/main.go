// Checkout sells by link: the shop creates a hosted page, a buyer opens it,
// leaves, returns, fills it in and pays.
//
//	go run ./examples/checkout
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/examples/internal/demo"
	"github.com/gateway-go/gateway/mockserver"
)

func main() { demo.Main("checkout", run) }

func run(ctx context.Context, out *demo.Printer) error {
	mock, err := mockserver.New()
	if err != nil {
		return err
	}
	defer mock.Close() //nolint:errcheck // nothing listens
	c := &checkout{Printer: out, mock: mock, client: mock.Client()}
	return demo.Steps(ctx, c.link, c.open, c.resume, c.fill, c.pay, c.expire)
}

// checkout is a shop and one of its buyers.
type checkout struct {
	*demo.Printer

	mock   *mockserver.Server
	client *gateway.Client
	slug   string         // of the link
	token  gateway.Secret // of the buyer's session
}

// link creates the page. A link sells either products or an amount.
func (c *checkout) link(ctx context.Context) error {
	c.Title("Two links")
	both := gateway.CheckoutLinkParams{Amount: 100, Products: []gateway.CheckoutProduct{{Name: "Filtro", Price: 100}}}
	if _, err := c.client.CheckoutLinks.Create(ctx, both); !errors.Is(err, gateway.ErrValidation) {
		return fmt.Errorf("amount and products together should be rejected, got %w", err)
	}
	donation, err := c.client.CheckoutLinks.Create(ctx, gateway.CheckoutLinkParams{Amount: 5_000, Title: "Donation"})
	if err != nil {
		return err
	}
	c.Printf("an amount   %s", donation.URL)
	shop, err := c.client.CheckoutLinks.Create(ctx, gateway.CheckoutLinkParams{
		Title: "Coffee of the month",
		Products: []gateway.CheckoutProduct{
			// Sending an ExternalID again changes that product instead of creating
			// another.
			{ExternalID: "coffee-500", Name: "Café em grãos, 500 g", Price: 6_490, Quantity: 2, Type: gateway.PhysicalItem},
			{ExternalID: "filter-40", Name: "Filtro de papel, 40 un.", Price: 2_490},
		},
	})
	if err != nil {
		return err
	}
	c.slug = shop.Slug()
	c.Printf("products    %s", shop.URL)
	return nil
}

// open is the buyer's first visit.
func (c *checkout) open(ctx context.Context) error {
	c.Title("A buyer opens the page")
	session, err := c.client.CheckoutSessions.Open(ctx, c.slug)
	if err != nil {
		return err
	}
	for _, item := range session.Items {
		c.Printf("%d × %-28s %12s", item.Quantity, item.Name, gateway.FormatAmount(item.Price, item.Currency))
	}
	c.Printf("    %-28s %12s", "to pay", gateway.FormatAmount(session.Link.Amount, session.Link.Currency))
	c.Printf("session token %s, until %s", session.SessionToken, session.ExpiresAt.Format(time.TimeOnly))
	if session.Resumed || session.Link.Amount != 15_470 {
		return fmt.Errorf("a new session for 15470 cents was expected, got resumed=%t and %d", session.Resumed, session.Link.Amount)
	}
	c.token = session.SessionToken
	return nil
}

// resume is the same session ten minutes later, on another page view.
func (c *checkout) resume(ctx context.Context) error {
	c.Title("The buyer leaves and comes back")
	if err := c.mock.Clock.Advance(10 * time.Minute); err != nil {
		return err
	}
	session, err := c.client.CheckoutSessions.Resume(ctx, c.slug, c.token)
	if err != nil {
		return err
	}
	c.Printf("resumed       %t", session.Resumed)
	if !session.Resumed {
		return errors.New("the session should have been resumed")
	}
	return nil
}

// fill is the form that the buyer sends.
func (c *checkout) fill(ctx context.Context) error {
	c.Title("The buyer fills in the form")
	_, err := c.client.CheckoutSessions.Update(ctx, c.slug, gateway.NewSecret("cs_of_another_session"), gateway.CheckoutSessionParams{PaymentMethod: gateway.Pix})
	if !errors.Is(err, gateway.ErrUnauthorized) {
		return fmt.Errorf("the token of another session should be rejected, got %w", err)
	}
	state, err := c.client.CheckoutSessions.Update(ctx, c.slug, c.token, gateway.CheckoutSessionParams{
		Buyer:         gateway.CheckoutBuyer{Name: "Maria Oliveira", Email: "maria@example.com"},
		PaymentMethod: gateway.Pix,
	})
	if err != nil {
		return err
	}
	c.Printf("session       %s, pays by %s", state.Status, state.SelectedPaymentMethod)
	if state.Status != gateway.SessionReady {
		return fmt.Errorf("the session should be ready, it is %s", state.Status)
	}
	return nil
}

// pay is the buyer's payment, and what the shop sees afterwards.
func (c *checkout) pay(ctx context.Context) error {
	c.Title("The buyer pays")
	if err := c.mock.Checkout.Pay(c.slug); err != nil {
		return err
	}
	page, err := c.client.Transactions.List(ctx, gateway.TransactionListParams{Email: "maria@example.com"})
	if err != nil {
		return err
	}
	if len(page.Items) != 1 || !page.Items[0].Status.Settled() {
		return fmt.Errorf("one paid transaction was expected, got %d", len(page.Items))
	}
	tx := page.Items[0]
	c.Printf("transaction   %s, %s by %s", tx.Status, gateway.FormatAmount(tx.Amount, tx.Currency), tx.Method)
	session, err := c.client.CheckoutSessions.Open(ctx, c.slug) // the next buyer
	if err != nil {
		return err
	}
	c.Printf("link          %s, used %d time(s)", session.Link.Status, session.Link.UsedCount)
	if session.Link.UsedCount != 1 {
		return fmt.Errorf("the link should have been used once, it was used %d times", session.Link.UsedCount)
	}
	c.token = session.SessionToken
	return nil
}

// expire is a session whose buyer does not return in time.
func (c *checkout) expire(ctx context.Context) error {
	c.Title("The next buyer comes back too late")
	if err := c.mock.Clock.Advance(31 * time.Minute); err != nil {
		return err
	}
	_, err := c.client.CheckoutSessions.Update(ctx, c.slug, c.token, gateway.CheckoutSessionParams{PaymentMethod: gateway.Pix})
	if !errors.Is(err, gateway.ErrRetired) {
		return fmt.Errorf("an expired session should be gone (410), got %w", err)
	}
	c.Printf("%s", err)
	return nil
}
