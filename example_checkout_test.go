package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gateway-go/gateway"
)

// newLink creates a checkout link for two mugs.
func newLink(ctx context.Context, client *gateway.Client) *gateway.CheckoutLink {
	link, err := client.CheckoutLinks.Create(ctx, gateway.CheckoutLinkParams{
		Products: []gateway.CheckoutProduct{{ExternalID: "MUG-1", Name: "Mug", Price: 3990, Quantity: 2}},
	})
	if err != nil {
		panic(err)
	}
	return link
}

func ExampleCheckoutLinksService_Create() {
	_, client := mock()
	ctx := context.Background()
	link, err := client.CheckoutLinks.Create(ctx, gateway.CheckoutLinkParams{
		Title: "Order 17",
		Products: []gateway.CheckoutProduct{
			{ExternalID: "MUG-1", Name: "Mug", Price: 3990, Quantity: 2, Type: gateway.PhysicalItem},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("has a URL:", link.URL != "", "has a slug:", link.Slug() != "")

	// A link has products or an amount, not both: this request is not sent.
	_, err = client.CheckoutLinks.Create(ctx, gateway.CheckoutLinkParams{
		Amount:   4990,
		Products: []gateway.CheckoutProduct{{Name: "Mug", Price: 4990}},
	})
	fmt.Println(err)

	// Output:
	// has a URL: true has a slug: true
	// gateway: checkout_links.create: invalid request: amount must not be sent together with products
}

func ExampleCheckoutSessionsService_Open() {
	_, client := mock()
	ctx := context.Background()
	link := newLink(ctx, client)

	session, err := client.CheckoutSessions.Open(ctx, link.Slug())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(session.Link.Status, gateway.FormatAmount(session.Link.Amount, session.Link.Currency))
	for _, item := range session.Items {
		fmt.Println(item.Quantity, item.Name)
	}
	fmt.Println("resumed:", session.Resumed, "token:", session.SessionToken)

	// Output:
	// active BRL 79.80
	// 2 Mug
	// resumed: false token: [redacted]
}

func ExampleCheckoutSessionsService_Resume() {
	gw, client := mock()
	ctx := context.Background()
	link := newLink(ctx, client)
	session, err := client.CheckoutSessions.Open(ctx, link.Slug())
	if err != nil {
		fmt.Println(err)
		return
	}

	same, err := client.CheckoutSessions.Resume(ctx, link.Slug(), session.SessionToken)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("resumed:", same.Resumed)

	// After half an hour the session has expired, and Resume opens a new one.
	if err := gw.Clock.Advance(31 * time.Minute); err != nil {
		fmt.Println(err)
		return
	}
	other, err := client.CheckoutSessions.Resume(ctx, link.Slug(), session.SessionToken)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("resumed:", other.Resumed, "same token:", other.SessionToken == session.SessionToken)

	// Output:
	// resumed: true
	// resumed: false same token: false
}

func ExampleCheckoutSessionsService_Update() {
	_, client := mock()
	ctx := context.Background()
	link := newLink(ctx, client)
	session, err := client.CheckoutSessions.Open(ctx, link.Slug())
	if err != nil {
		fmt.Println(err)
		return
	}

	state, err := client.CheckoutSessions.Update(ctx, link.Slug(), session.SessionToken, gateway.CheckoutSessionParams{
		Buyer: gateway.CheckoutBuyer{Name: "Ana Souza", Email: "ana@example.com"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(state.Status)

	state, err = client.CheckoutSessions.Update(ctx, link.Slug(), session.SessionToken, gateway.CheckoutSessionParams{
		PaymentMethod: gateway.Pix,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(state.Status, state.SelectedPaymentMethod)

	_, err = client.CheckoutSessions.Update(ctx, link.Slug(), gateway.NewSecret("cst_of_another_session"), gateway.CheckoutSessionParams{})
	fmt.Println("unauthorized:", errors.Is(err, gateway.ErrUnauthorized))

	// Output:
	// open
	// ready pix
	// unauthorized: true
}
