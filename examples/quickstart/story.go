package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/qr"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
)

// teller writes the narration.
type teller struct {
	out  io.Writer
	draw func(qr.Code) string
	step int
}

func (t *teller) title(format string, args ...any) {
	t.step++
	_, _ = fmt.Fprintf(t.out, "\n%d. %s\n", t.step, fmt.Sprintf(format, args...))
}

func (t *teller) say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		_, _ = fmt.Fprintln(t.out, strings.TrimRight("   "+line, " "))
	}
}

// story is one run: a shop, an order, and what became of them.
type story struct {
	*teller

	shop   *Shop
	order  *Order
	ref    string // the order's reference at the gateway
	charge *gateway.Transaction
}

// tell runs the story. Its error is the first expectation that failed.
func tell(ctx context.Context, t *teller, shop *Shop, order *Order) error {
	begun := time.Now()
	s := &story{teller: t, shop: shop, order: order, ref: newReference(order)}
	steps := []func(context.Context) error{s.show, s.create, s.pay, s.refund, s.repeat, s.list}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	t.say("\nEverything went as expected, in %s.", time.Since(begun).Round(time.Millisecond))
	return nil
}

// newReference names the order at the gateway. A shop makes it once, keeps it
// with the order and sends it with every try. Here it differs in every run, so
// that one sandbox can be used many times.
func newReference(order *Order) string {
	return "order-" + order.Number + "-" + strings.ToLower(rand.Text()[:6])
}

func (s *story) show(context.Context) error {
	s.title("The order")
	s.say("%s, %s", s.order.Number, s.order.Buyer.Name)
	for _, item := range s.order.Items {
		s.say("%4d × %-42s %14s", *item.Quantity, item.Name, money(*item.Price*int64(*item.Quantity)))
	}
	s.say("%-49s %14s", "       to pay", money(s.order.Total()))
	s.say("Gateway: %s", s.shop.Where)
	return nil
}

func (s *story) create(ctx context.Context) error {
	s.title("The charge")
	charge, _, err := s.shop.Charge(ctx, s.order, s.ref)
	if err != nil {
		return err
	}
	s.charge = charge
	if charge.Status != gateway.TransactionPending || charge.Pix == nil {
		return fmt.Errorf("a new Pix charge should be pending and have a Pix code, it is %s", charge.Status)
	}
	s.say("transaction  %s", charge.ID)
	s.say("reference    %s", charge.ExternalRef)
	s.say("status       %s, until %s", charge.Status, charge.Pix.ExpirationDate.Format(time.RFC3339))
	picture, err := qr.New(charge.Pix.QRCode)
	if err != nil {
		return err
	}
	s.say("The buyer scans this in the bank's app:")
	s.say("%s", s.draw(picture))
	s.say("or pastes this:")
	s.say("%s", charge.Pix.QRCode)
	return s.expectEvents(ctx, webhook.TransactionCreated, webhook.TransactionPending)
}

func (s *story) pay(ctx context.Context) error {
	s.title("The buyer pays")
	err := s.shop.Pay(ctx, s.charge.ID)
	if errors.Is(err, errNotPaid) {
		s.say("%s: the charge stays unpaid.", err)
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
	if !s.charge.Settled() || s.charge.PaidAmount != s.order.Total() {
		return fmt.Errorf("the charge should be paid with %s, it is %s with %s",
			money(s.order.Total()), s.charge.Status, money(s.charge.PaidAmount))
	}
	s.say("status       %s", s.charge.Status)
	s.say("paid         %s at %s", money(s.charge.PaidAmount), s.charge.PaidAt.Format(time.RFC3339))
	s.say("proof        %s", s.charge.Pix.EndToEndID)
	return nil
}

// refund gives the last item back.
func (s *story) refund(ctx context.Context) error {
	if !s.charge.Settled() {
		return nil
	}
	last := s.order.Items[len(s.order.Items)-1]
	params := gateway.RefundParams{Amount: *last.Price, Reason: "sold out: " + last.Name}
	if params.Amount < 1 || params.Amount >= s.order.Total() {
		params.Amount, params.Full = 0, true
	}
	s.title("A refund: %s was sold out", last.Name)
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
		return fmt.Errorf("refunded %s, left %s, and the charge says %s: that does not add up to %s",
			money(refund.AmountRefunded), money(refund.RemainingBalance), money(s.charge.RefundedAmount), money(s.order.Total()))
	}
	s.say("status       %s", s.charge.Status)
	s.say("refunded     %s, %s remain paid", money(refund.AmountRefunded), money(refund.RemainingBalance))
	return nil
}

// repeat shows why every create has a reference: it can be sent again.
func (s *story) repeat(ctx context.Context) error {
	if s.shop.Mock == nil {
		return s.repeatByHand(ctx)
	}
	s.title("The same order again, and the network loses the gateway's answer")
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
	s.say("attempt 1    sent and applied, the answer never came")
	s.say("attempt 2    refused: the reference is taken. By our own first attempt, so the client reads that one.")
	s.say("result       transaction %s, %s", charge.ID, charge.Status)
	if err := s.expectEvents(ctx, webhook.TransactionCreated, webhook.TransactionPending); err != nil {
		return err
	}
	return s.expectOne(ctx)
}

// repeatByHand does what a shop does that crashed before it read the answer.
func (s *story) repeatByHand(ctx context.Context) error {
	s.title("The same charge once more, as after a crash")
	_, _, err := s.shop.Charge(ctx, s.order, s.ref)
	if !errors.Is(err, gateway.ErrDuplicate) {
		return fmt.Errorf("a second create with the same reference should be a duplicate, it is: %w", err)
	}
	s.say("refused      %v", err)
	return s.expectOne(ctx)
}

func (s *story) expectOne(ctx context.Context) error {
	found, err := s.shop.Find(ctx, s.ref, s.charge.CreatedAt.Time)
	if err != nil {
		return err
	}
	if len(found) != 1 || found[0].ID != s.charge.ID {
		return fmt.Errorf("there should be one charge with the reference %s, there are %d", s.ref, len(found))
	}
	s.say("The gateway has one charge with the reference %s.", s.ref)
	return nil
}

func (s *story) list(ctx context.Context) error {
	s.title("Everything at the gateway")
	page, err := s.shop.Client.Transactions.List(ctx, gateway.TransactionListParams{Limit: 10})
	if err != nil {
		return err
	}
	for _, item := range page.Items {
		s.say("%s  %-24s %-19s %14s", item.ID, item.ExternalRef, item.Status, gateway.FormatAmount(item.Amount, item.Currency))
	}
	if s.shop.Mock != nil && page.Total != 2 {
		return fmt.Errorf("there should be 2 charges in all, there are %d", page.Total)
	}
	return nil
}

func (s *story) reload(ctx context.Context) error {
	charge, err := s.shop.Client.Transactions.Get(ctx, s.charge.ID)
	if err != nil {
		return err
	}
	s.charge = charge
	return nil
}

// expectEvents checks that these webhooks arrived for the charge, in this order,
// and no others. A gateway that is not ours can't reach this process.
func (s *story) expectEvents(ctx context.Context, kinds ...webhook.Kind) error {
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
		s.say("webhook      %s, signature verified", event.Kind)
	}
	if fmt.Sprint(got) != fmt.Sprint(kinds) {
		return fmt.Errorf("the webhooks %v should have arrived, these did: %v", kinds, got)
	}
	return nil
}

func money(cents int64) string { return gateway.FormatAmount(cents, gateway.BRL) }
