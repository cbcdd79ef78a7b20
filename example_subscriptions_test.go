package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gateway-go/gateway"
)

// newCustomer creates the customer of a subscription.
func newCustomer(ctx context.Context, client *gateway.Client) *gateway.Customer {
	customer, err := client.Customers.Create(ctx, gateway.CustomerParams{Name: "Ana Souza", Email: "ana@example.com"})
	if err != nil {
		panic(err)
	}
	return customer
}

// newSubscription creates a monthly subscription with a valid card.
func newSubscription(ctx context.Context, client *gateway.Client, key string) *gateway.Subscription {
	sub, err := client.Subscriptions.Create(ctx, gateway.SubscriptionParams{
		CustomerID:     newCustomer(ctx, client).ID,
		Amount:         4990,
		Token:          gateway.CardToken("pgct_ok_" + key),
		Interval:       gateway.IntervalMonth,
		IdempotencyKey: key,
	})
	if err != nil {
		panic(err)
	}
	return sub
}

func ExampleSubscriptionsService_Create() {
	_, client := mock()
	ctx := context.Background()
	customer := newCustomer(ctx, client)

	params := gateway.SubscriptionParams{
		CustomerID:     customer.ID,
		Amount:         4990,          // R$ 49.90 every month
		Token:          "pgct_ok_ana", // from the client-side payment element
		Interval:       gateway.IntervalMonth,
		IdempotencyKey: "order-17", // stored with the order before the call
		Metadata:       map[string]any{"plan": "gold"},
	}
	sub, err := client.Subscriptions.Create(ctx, params)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(sub.Status, gateway.FormatAmount(sub.Amount, sub.Currency))

	// Repeating the call, for example after a crash, returns the same subscription.
	again, err := client.Subscriptions.Create(ctx, params)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("the same:", again.ID == sub.ID)

	// A different subscription with the same key is rejected.
	params.Amount = 9990
	_, err = client.Subscriptions.Create(ctx, params)
	fmt.Println("duplicate:", errors.Is(err, gateway.ErrDuplicate))

	// Output:
	// active BRL 49.90
	// the same: true
	// duplicate: true
}

func ExampleSubscriptionsService_Create_pixAutomatico() {
	gw, client := mock()
	ctx := context.Background()
	sub, err := client.Subscriptions.Create(ctx, gateway.SubscriptionParams{
		CustomerID:    newCustomer(ctx, client).ID,
		Amount:        2990,
		PaymentMethod: gateway.SubscriptionPixAutomatic, // no token: the payer authorizes in the bank's app
		Interval:      gateway.IntervalMonth,

		IdempotencyKey: "order-17", // stored with the order before the call
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(sub.Status, sub.AuthorizationQRCode()[:8])

	if err := gw.Subscriptions.Authorize(sub.ID); err != nil { // simulate the payer
		fmt.Println(err)
		return
	}
	sub, err = client.Subscriptions.Get(ctx, sub.ID)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(sub.Status, sub.RecurringAuthorization.Status)

	// Output:
	// incomplete 00020101
	// active approved
}

func ExampleSubscriptionsService_Create_trial() {
	gw, client := mock()
	ctx := context.Background()
	sub, err := client.Subscriptions.Create(ctx, gateway.SubscriptionParams{
		CustomerID: newCustomer(ctx, client).ID,
		Amount:     4990,
		Token:      "pgct_ok_trial",
		Interval:   gateway.IntervalMonth,

		IdempotencyKey: "order-17", // stored with the order before the call
		TrialEnd:       gw.Clock.Now().AddDate(0, 0, 14),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(sub.Status, sub.TrialEnd.Format(time.DateOnly))

	// Output:
	// trialing 2027-01-18
}

func ExampleSubscriptionsService_Get() {
	_, client := mock()
	ctx := context.Background()
	id := newSubscription(ctx, client, "order-17").ID

	sub, err := client.Subscriptions.Get(ctx, id)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(sub.Status, "until", sub.CurrentPeriodEnd.Format(time.DateOnly))
	for _, charge := range sub.Transactions {
		fmt.Println(charge.Status, gateway.FormatAmount(charge.PaidAmount, charge.Currency))
	}

	// Output:
	// active until 2027-02-04
	// paid BRL 49.90
}

func ExampleSubscriptionsService_List() {
	_, client := mock()
	ctx := context.Background()
	for _, key := range []string{"order-1", "order-2", "order-3"} {
		newSubscription(ctx, client, key)
	}

	page, err := client.Subscriptions.List(ctx, gateway.SubscriptionListParams{
		Limit:  2,
		Status: gateway.SubscriptionActive,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(page.Items), "of", page.Total, "more:", page.HasMore())

	// Output:
	// 2 of 3 more: true
}

func ExampleSubscriptionsService_Pages() {
	_, client := mock()
	ctx := context.Background()
	for _, key := range []string{"order-1", "order-2", "order-3"} {
		newSubscription(ctx, client, key)
	}

	for page, err := range client.Subscriptions.Pages(ctx, gateway.SubscriptionListParams{Limit: 2}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("a page of", len(page.Items))
	}

	// Output:
	// a page of 2
	// a page of 1
}

func ExampleSubscriptionsService_All() {
	_, client := mock()
	ctx := context.Background()
	for _, key := range []string{"order-1", "order-2", "order-3"} {
		newSubscription(ctx, client, key)
	}

	var monthly int64
	for sub, err := range client.Subscriptions.All(ctx, gateway.SubscriptionListParams{}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if sub.Status.Running() {
			monthly += sub.Amount
		}
	}
	fmt.Println(gateway.FormatAmount(monthly, gateway.BRL))

	// Output:
	// BRL 149.70
}

func ExampleSubscriptionsService_Update() {
	_, client := mock()
	ctx := context.Background()
	id := newSubscription(ctx, client, "order-17").ID

	sub, err := client.Subscriptions.Update(ctx, id, gateway.SubscriptionUpdateParams{
		Metadata:         gateway.Some(map[string]any{"plan": "platinum"}),
		RetryOffsetsDays: []int{1, 3, 7},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(sub.Metadata, sub.RetryOffsetsDays)

	// Null clears a field. Fields that are not set stay unchanged.
	sub, err = client.Subscriptions.Update(ctx, id, gateway.SubscriptionUpdateParams{
		Metadata: gateway.Clear[map[string]any](),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(sub.Metadata.IsZero(), sub.RetryOffsetsDays)

	// Output:
	// {"plan":"platinum"} [1 3 7]
	// true [1 3 7]
}

func ExampleSubscriptionsService_Cancel() {
	_, client := mock()
	ctx := context.Background()
	id := newSubscription(ctx, client, "order-17").ID

	sub, err := client.Subscriptions.Cancel(ctx, id, gateway.SubscriptionCancelParams{
		Reason: string(gateway.CancellationUserRequested), // live gateways accept no other text
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	// The customer keeps access until the end of the period.
	fmt.Println(sub.Status, sub.CurrentPeriodEnd.Format(time.DateOnly), sub.Status.Running())

	_, err = client.Subscriptions.Cancel(ctx, id, gateway.SubscriptionCancelParams{})
	fmt.Println("again:", errors.Is(err, gateway.ErrConflict))

	// Output:
	// cancel_scheduled 2027-02-04 true
	// again: true
}

func ExampleSubscriptionsService_PendingChallenge() {
	gw, client := mock()
	ctx := context.Background()
	sub, err := client.Subscriptions.Create(ctx, gateway.SubscriptionParams{
		CustomerID: newCustomer(ctx, client).ID,
		Amount:     4990,
		Token:      "pgct_3ds_ana", // the issuer requires authentication
		Interval:   gateway.IntervalMonth,

		IdempotencyKey: "order-17", // stored with the order before the call
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(sub.Status)

	challenge, err := client.Subscriptions.PendingChallenge(ctx, sub.ID)
	if err != nil || challenge == nil {
		fmt.Println("no challenge", err)
		return
	}
	fmt.Println(challenge.Type) // challenge.ClientSecret goes to the payment element

	sub, err = client.Subscriptions.Get(ctx, sub.ID)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := gw.Transactions.PassChallenge(sub.Transactions[0].ID); err != nil { // simulate the buyer
		fmt.Println(err)
		return
	}
	sub, err = client.Subscriptions.Get(ctx, sub.ID)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(sub.Status)

	// Output:
	// incomplete
	// three_ds_challenge
	// active
}
