// Subscriptions runs through a year of two subscriptions in a second, as the
// webhooks report it: Ana pays by card, Bia by Pix Automatico.
//
//	go run ./examples/subscriptions
package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/examples/internal/demo"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
)

// price is the monthly price of the coffee club, in cents.
const price = 4990

// anasCard comes from the client-side payment element; this one is a test
// token.
const anasCard = "pgct_ok_ana"

func main() { demo.Main("subscriptions", run) }

func run(ctx context.Context, out *demo.Printer) error {
	mock, err := mockserver.New(mockserver.WithStart(day(time.January, 17)))
	if err != nil {
		return err
	}
	defer mock.Close() //nolint:errcheck // nothing listens
	receiver, err := webhook.New(webhook.Config{Keys: []webhook.SigningKey{{Key: mock.Secret()}}})
	if err != nil {
		return err
	}
	c := &club{Printer: out, mock: mock, client: mock.Client(), names: map[string]string{}, paid: map[string]int{}}
	webhook.OnSubscription(receiver, webhook.AnyKind, c.note)
	// The charges of a subscription have their own events, which report the same.
	webhook.Ignore(receiver, webhook.TransactionCreated, webhook.TransactionPaid)
	mock.Webhooks.Send(receiver) // in production it serves the URL that is registered with the gateway
	for _, p := range c.parts() {
		c.Title("%s", p.title)
		if err := p.do(ctx); err != nil {
			return err
		}
		// A year takes milliseconds. When this returns, all its webhooks have
		// arrived.
		if err := mock.Clock.AdvanceTo(p.until); err != nil {
			return err
		}
		if err := p.check(ctx); err != nil {
			return err
		}
	}
	return c.settle(ctx)
}

// part is one part of the year: the action at its start, the time to which the
// clock advances, and the expected state at its end.
type part struct {
	title string
	do    func(context.Context) error
	until time.Time
	check func(context.Context) error
}

func (c *club) parts() []part {
	return []part{
		{
			"January: Ana starts a trial of two weeks, Bia authorizes in her bank's app",
			c.join, day(time.January, 20), c.joined,
		},
		{
			"To May: a subscription billed on the 31st renews on the last day of shorter months",
			nothing, day(time.May, 20), c.anchored,
		},
		{
			"June: Ana's bank refuses the charge and the first retry",
			c.refuse, day(time.June, 4), c.anaIs(gateway.SubscriptionPastDue),
		},
		{
			"… and accepts the second: the period has not moved",
			nothing, day(time.July, 5), c.anaIs(gateway.SubscriptionActive),
		},
		{
			"July: Ana's city and the retry days change",
			c.update, day(time.August, 10), c.anaIs(gateway.SubscriptionActive),
		},
		{
			"August: Bia revokes the authorization in her bank's app",
			c.revoke, day(time.December, 10), c.revoked,
		},
		{
			"December: Ana cancels, at the end of the paid month",
			c.leave, day(time.December, 31), c.anaIs(gateway.SubscriptionCanceled),
		},
	}
}

func nothing(context.Context) error { return nil }

// day is nine in the morning in São Paulo.
func day(month time.Month, day int) time.Time {
	return time.Date(2027, month, day, 12, 0, 0, 0, time.UTC)
}

// club is a merchant with a coffee club.
type club struct {
	*demo.Printer

	mock   *mockserver.Server
	client *gateway.Client

	ana, bia string            // their subscriptions
	names    map[string]string // by e-mail

	mu   sync.Mutex     // webhooks of two resources may arrive at once
	paid map[string]int // months paid, by name, according to the webhooks
}

// note writes one line of the timeline.
func (c *club) note(_ context.Context, e *webhook.SubscriptionEvent) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := e.Data
	name := c.names[s.CustomerEmail]
	until := s.CurrentPeriodEnd.Format("2 January")
	var what string
	switch e.Kind {
	case webhook.SubscriptionStarted, webhook.SubscriptionRenewed:
		c.paid[name]++
		what = fmt.Sprintf("paid %s, until %s", gateway.FormatAmount(s.Amount, s.Currency), until)
	case webhook.SubscriptionTrialWillEnd:
		what = "the trial ends on " + s.TrialEnd.Format("2 January")
	case webhook.SubscriptionPaymentFailed:
		what = fmt.Sprintf("attempt %d: %s", s.AttemptNumber, s.FailureReason)
	case webhook.SubscriptionPastDue:
		what = "the gateway will retry"
	default:
		what = "now " + string(s.Status)
	}
	c.Printf("%11s  %s  %-28s %s", s.OccurredAt.Format("2 Jan 2006"), name, e.Kind, what)
	return nil
}

// join creates both subscriptions. Ana's first paid month starts on a 31st.
func (c *club) join(ctx context.Context) error {
	var err error
	if c.ana, err = c.subscribe(ctx, "Ana", gateway.SubscriptionParams{Token: anasCard, TrialEnd: day(time.January, 31)}); err != nil {
		return err
	}
	if c.bia, err = c.subscribe(ctx, "Bia", gateway.SubscriptionParams{PaymentMethod: gateway.SubscriptionPixAutomatic}); err != nil {
		return err
	}
	return c.mock.Subscriptions.Authorize(c.bia) // Bia scans the code and authorizes
}

func (c *club) joined(ctx context.Context) error {
	return errors.Join(c.expect(ctx, c.ana, gateway.SubscriptionTrialing), c.expect(ctx, c.bia, gateway.SubscriptionActive))
}

func (c *club) subscribe(ctx context.Context, name string, params gateway.SubscriptionParams) (id string, err error) {
	email := name + "@example.com"
	customer, err := c.client.Customers.Create(ctx, gateway.CustomerParams{Name: name + " Souza", Email: email, ExternalRef: name})
	if err != nil {
		return "", err
	}
	c.names[email] = name
	params.CustomerID = customer.ID
	params.Amount = price
	params.Interval = gateway.IntervalMonth
	params.IdempotencyKey = "club-" + name // stored first, so that a repeat does not create a second subscription
	subscription, err := c.client.Subscriptions.Create(ctx, params)
	if err != nil {
		return "", err
	}
	return subscription.ID, c.mock.Wait(ctx) // until its webhooks have arrived
}

// anchored checks that periods start on the 31st again after the shorter
// months.
func (c *club) anchored(ctx context.Context) error {
	read, err := c.client.Subscriptions.Get(ctx, c.ana)
	if err != nil {
		return err
	}
	if !read.CurrentPeriodEnd.Equal(day(time.May, 31)) {
		return fmt.Errorf("the period of Ana should end on 31 May, it ends on %s", read.CurrentPeriodEnd)
	}
	return nil
}

// refuse makes Ana's bank decline the next charge and the first retry.
func (c *club) refuse(context.Context) error { return c.mock.Subscriptions.FailNextCharges(c.ana, 2) }

// update changes the fields that can be changed.
func (c *club) update(ctx context.Context) error {
	_, err := c.client.Subscriptions.Update(ctx, c.ana, gateway.SubscriptionUpdateParams{
		Metadata:         gateway.Some(map[string]any{"city": "Recife"}),
		RetryOffsetsDays: []int{1, 2, 10},
	})
	return err
}

// revoke simulates Bia, who revokes the consent in her bank's app: the
// interface has no call for it.
func (c *club) revoke(context.Context) error { return c.mock.Subscriptions.Revoke(c.bia) }

func (c *club) revoked(ctx context.Context) error {
	_, err := c.client.Subscriptions.Cancel(ctx, c.bia, gateway.SubscriptionCancelParams{})
	if !errors.Is(err, gateway.ErrConflict) {
		return fmt.Errorf("the cancellation of a canceled subscription should be rejected, got %w", err)
	}
	return c.expect(ctx, c.bia, gateway.SubscriptionCanceled)
}

// leave is Ana's cancellation: she keeps access to the end of the paid period.
func (c *club) leave(ctx context.Context) error {
	if _, err := c.client.Subscriptions.Cancel(ctx, c.ana, gateway.SubscriptionCancelParams{}); err != nil {
		return err
	}
	return c.expect(ctx, c.ana, gateway.SubscriptionCancelScheduled)
}

// settle compares what the webhooks reported with the gateway's state.
func (c *club) settle(ctx context.Context) error {
	c.Title("The year in numbers")
	for _, name := range []string{"Ana", "Bia"} {
		read, err := c.client.Subscriptions.Get(ctx, map[string]string{"Ana": c.ana, "Bia": c.bia}[name])
		if err != nil {
			return err
		}
		charged, sum := 0, int64(0)
		for _, t := range read.Transactions {
			if t.Status.Settled() {
				charged, sum = charged+1, sum+t.Paid()
			}
		}
		if charged != c.paid[name] {
			return fmt.Errorf("%s was charged %d times, the webhooks reported %d", name, charged, c.paid[name])
		}
		c.Printf("%s  %d months, %s, %d attempts", name, charged, gateway.FormatAmount(sum, gateway.BRL), len(read.Transactions))
	}
	if c.paid["Ana"] != 11 || c.paid["Bia"] != 7 {
		return fmt.Errorf("want 11 paid months for Ana and 7 for Bia, got %v", c.paid)
	}
	return nil
}

func (c *club) anaIs(want gateway.SubscriptionStatus) func(context.Context) error {
	return func(ctx context.Context) error { return c.expect(ctx, c.ana, want) }
}

// expect reads the subscription once its webhooks have arrived.
func (c *club) expect(ctx context.Context, id string, want gateway.SubscriptionStatus) error {
	if err := c.mock.Wait(ctx); err != nil {
		return err
	}
	read, err := c.client.Subscriptions.Get(ctx, id)
	if err != nil {
		return err
	}
	if read.Status != want {
		return fmt.Errorf("subscription %s should be %s, it is %s", id, want, read.Status)
	}
	return nil
}
