package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/examples/internal/demo"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/pix"
	"github.com/gateway-go/gateway/webhook"
)

// session is one run: a shop, an order, and the results.
type session struct {
	*demo.Printer

	draw   func(pix.QR) string
	shop   *Shop
	order  *Order
	ref    string // the order's reference at the gateway
	charge *gateway.Transaction
}

// runSession runs all steps and returns the first expectation that failed.
func runSession(ctx context.Context, s *session) error {
	began := time.Now()
	s.ref = newReference(s.order)
	if err := demo.Steps(ctx, s.show, s.create, s.pay, s.refund, s.repeat, s.list); err != nil {
		return err
	}
	s.Printf("\nEverything went as expected, in %s.", time.Since(began).Round(time.Millisecond))
	return nil
}

// newReference returns the order's reference. A shop generates it once and stores it
// with the order. Here every run has its own, so that a sandbox can be used many
// times.
func newReference(order *Order) string {
	return "order-" + order.Number + "-" + strings.ToLower(rand.Text()[:6])
}

func (s *session) show(context.Context) error {
	s.Title("The order")
	s.Printf("%s, %s", s.order.Number, s.order.Buyer.Name)
	for _, item := range s.order.Items {
		s.Printf("%4d × %-42s %14s", *item.Quantity, item.Name, money(*item.Price*int64(*item.Quantity)))
	}
	s.Printf("%-49s %14s", "       to pay", money(s.order.Total()))
	s.Printf("Gateway: %s", s.shop.Where)
	return nil
}

func (s *session) create(ctx context.Context) error {
	s.Title("The charge")
	charge, _, err := s.shop.Charge(ctx, s.order, s.ref)
	if err != nil {
		return err
	}
	s.charge = charge
	if open := charge.Status == gateway.TransactionPending || charge.Status == gateway.TransactionWaitingPayment; !open || charge.Pix == nil {
		return fmt.Errorf("a new Pix charge should be pending and have a Pix code, it is %s", charge.Status)
	}
	s.Printf("transaction  %s", charge.ID)
	s.Printf("reference    %s", charge.ExternalRef)
	s.Printf("status       %s, until %s", charge.Status, charge.Pix.ExpirationDate.Format(time.RFC3339))
	picture, err := pix.Draw(charge.Pix.QRCode)
	if err != nil {
		return err
	}
	s.Printf("The buyer scans this in the bank's app:")
	s.Printf("%s", s.draw(picture))
	s.Printf("or pastes this:")
	s.Printf("%s", charge.Pix.QRCode)
	return s.expectEvents(ctx, webhook.TransactionCreated, webhook.TransactionPending)
}

func (s *session) pay(ctx context.Context) error {
	s.Title("The buyer pays")
	err := s.shop.Pay(ctx, s.charge.ID)
	if errors.Is(err, errNotPaid) {
		s.Printf("%s: the charge stays unpaid.", err)
		return nil
	}
	if err != nil {
		return err
	}
	if err := s.expectEvents(ctx, webhook.TransactionPaid); err != nil {
		return err
	}
	if err := s.reload(ctx); err != nil {
		return err
	}
	if !s.charge.Settled() || s.charge.Paid() != s.order.Total() {
		return fmt.Errorf("the charge should be paid with %s, it is %s with %s",
			money(s.order.Total()), s.charge.Status, money(s.charge.Paid()))
	}
	s.Printf("status       %s", s.charge.Status)
	s.Printf("paid         %s at %s", money(s.charge.Paid()), s.charge.PaidAt.Format(time.RFC3339))
	s.Printf("end-to-end   %s", s.charge.Pix.EndToEndID)
	return nil
}

// refund refunds the last item.
func (s *session) refund(ctx context.Context) error {
	if !s.charge.Settled() {
		return nil
	}
	last := s.order.Items[len(s.order.Items)-1]
	params := gateway.RefundParams{Amount: *last.Price, Reason: "sold out: " + last.Name}
	if params.Amount < 1 || params.Amount >= s.order.Total() {
		params.Amount, params.Full = 0, true
	}
	s.Title("A refund: %s was sold out", last.Name)
	refund, err := s.shop.Client.Transactions.Refund(ctx, s.charge.ID, params)
	if err != nil {
		return err
	}
	if err := s.expectEvents(ctx, webhook.TransactionRefunded); err != nil {
		return err
	}
	if err := s.reload(ctx); err != nil {
		return err
	}
	if refund.AmountRefunded+refund.RemainingBalance != s.order.Total() || refund.IsFullRefund != params.Full ||
		s.charge.RefundedAmount != refund.AmountRefunded {
		return fmt.Errorf("refunded %s, remaining %s, refunded amount of the charge %s: this does not add up to %s",
			money(refund.AmountRefunded), money(refund.RemainingBalance), money(s.charge.RefundedAmount), money(s.order.Total()))
	}
	s.Printf("status       %s", s.charge.Status)
	s.Printf("refunded     %s, %s remain paid", money(refund.AmountRefunded), money(refund.RemainingBalance))
	return nil
}

// repeat shows why every create has a reference: it can be sent again.
func (s *session) repeat(ctx context.Context) error {
	if s.shop.Mock == nil {
		return s.repeatByHand(ctx)
	}
	s.Title("The same order again, and the network loses the gateway's response")
	s.ref = newReference(s.order)
	if err := s.shop.Mock.Faults.Add(mockserver.LoseResponse().On("transactions.create").Times(1)); err != nil {
		return err
	}

	charge, response, err := s.shop.Charge(ctx, s.order, s.ref)
	if err != nil {
		return err
	}
	s.charge = charge
	if response.Attempts != 2 || !response.Recovered {
		return fmt.Errorf("the create should have taken 2 attempts and be recovered, it took %d (recovered: %t)",
			response.Attempts, response.Recovered)
	}
	s.Printf("attempt 1    sent and applied; the response is lost")
	s.Printf("attempt 2    rejected: the reference is taken, by attempt 1; the client reads that transaction")
	s.Printf("result       transaction %s, %s", charge.ID, charge.Status)
	if err := s.expectEvents(ctx, webhook.TransactionCreated, webhook.TransactionPending); err != nil {
		return err
	}
	return s.expectOne(ctx)
}

// repeatByHand does what a shop does after it crashed before reading the
// response.
func (s *session) repeatByHand(ctx context.Context) error {
	s.Title("The same charge again, as after a crash")
	_, _, err := s.shop.Charge(ctx, s.order, s.ref)
	if !errors.Is(err, gateway.ErrDuplicate) {
		return fmt.Errorf("a second create with the same reference should be a duplicate, got: %w", err)
	}
	s.Printf("rejected     %v", err)
	return s.expectOne(ctx)
}

func (s *session) expectOne(ctx context.Context) error {
	found, err := s.shop.Find(ctx, s.ref, s.charge.CreatedAt.Time)
	if err != nil {
		return err
	}
	if len(found) != 1 || found[0].ID != s.charge.ID {
		return fmt.Errorf("there should be one charge with the reference %s, there are %d", s.ref, len(found))
	}
	s.Printf("The gateway has one charge with the reference %s.", s.ref)
	return nil
}

func (s *session) list(ctx context.Context) error {
	s.Title("Everything at the gateway")
	page, err := s.shop.Client.Transactions.List(ctx, gateway.TransactionListParams{Limit: 10})
	if err != nil {
		return err
	}
	for _, item := range page.Items {
		s.Printf("%s  %-24s %-19s %14s", item.ID, item.ExternalRef, item.Status, gateway.FormatAmount(item.Amount, item.Currency))
	}
	if s.shop.Mock != nil && page.Total != 2 {
		return fmt.Errorf("there should be 2 charges in all, there are %d", page.Total)
	}
	return nil
}

func (s *session) reload(ctx context.Context) error {
	charge, err := s.shop.Client.Transactions.Get(ctx, s.charge.ID)
	if err != nil {
		return err
	}
	s.charge = charge
	return nil
}

// expectEvents checks that these webhooks arrived for the charge, in this order,
// and no others. A real gateway can't reach this process.
func (s *session) expectEvents(ctx context.Context, kinds ...webhook.Kind) error {
	if s.shop.Mock == nil {
		return nil
	}
	arrived, err := s.shop.Events(ctx)
	if err != nil {
		return err
	}
	var got []webhook.Kind
	for _, event := range arrived {
		if !event.Signed || event.ResourceID != s.charge.ID {
			return fmt.Errorf("a webhook should be signed and about %s, %s is not", s.charge.ID, event.ID)
		}
		got = append(got, event.Kind)
		s.Printf("webhook      %s, signature verified", event.Kind)
	}
	if fmt.Sprint(got) != fmt.Sprint(kinds) {
		return fmt.Errorf("the webhooks %v should have arrived, these did: %v", kinds, got)
	}
	return nil
}

func money(cents int64) string { return gateway.FormatAmount(cents, gateway.BRL) }
