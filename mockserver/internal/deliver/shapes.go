package deliver

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/webhook"
)

// Shape returns the zero value of the type that describes the data of a kind's events
// in OpenAPI.
func Shape(k webhook.Kind) any {
	switch k.Family() {
	case webhook.FamilyTransaction:
		return transactionView{}
	case webhook.FamilySubscription:
		return subscriptionView{}
	default:
		return transferData{}
	}
}

// Sample returns the body of a sample event of a kind, about a resource that does not
// exist, in a dialect. The bytes are the same every time.
func Sample(k webhook.Kind, dialect spec.Dialect) ([]byte, error) {
	return Render(sample(k, "evt_01945f2c", time.Date(2027, time.January, 4, 12, 0, 0, 0, time.UTC)), dialect)
}

// Kinds lists the kinds of event that the gateway sends in a dialect.
func Kinds(dialect spec.Dialect) []webhook.Kind {
	kinds := webhook.DocumentedKinds()
	if dialect.Live(spec.PartialRefundEvent) {
		kinds = append(kinds, webhook.TransactionPartiallyRefunded)
	}
	return kinds
}

// SendSample sends a sample event of a kind, about a resource that does not exist, to
// the account's targets for that kind. It returns the event's id.
func (s *Sender) SendSample(account string, k webhook.Kind) (eventID string, err error) {
	if !slices.Contains(Kinds(s.cfg.Dialect), k) {
		return "", fmt.Errorf("kind must be one that the gateway sends, such as transaction.paid, not %q", k)
	}
	s.mu.Lock()
	s.created++
	eventID = "evt_sample_" + strconv.FormatUint(s.created, 10)
	s.mu.Unlock()
	posting := s.Prepare(account, []engine.Event{*sample(k, eventID, s.cfg.Clock.Now())}, nil)
	return eventID, posting.persistAndSend()
}

// persistAndSend saves and sends deliveries that do not belong to a commit.
func (p *Posting) persistAndSend() error {
	s := p.sender
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range p.deliveries {
		if s.cfg.Persist == nil {
			break
		}
		var err error
		saved := d.copy()
		if saved.Body, err = d.message.bytes(); err == nil {
			err = s.cfg.Persist(Changed{Delivery: &saved})
		}
		if err != nil {
			return err
		}
	}
	p.publish()
	p.send()
	return nil
}

func sample(k webhook.Kind, id string, at time.Time) *engine.Event {
	e := &engine.Event{ID: id, At: at, Kind: string(k)}
	buyer := &engine.Buyer{Name: "Ana Souza", Email: "ana@example.com", Phone: "11987654321"}
	charge := &engine.Transaction{
		ID: "01945f2c-6d80-7000-8000-000000000001", ExternalRef: "order-1001", Amount: 4990, Currency: "BRL", Method: "pix",
		Status: "paid", Buyer: buyer, Products: []engine.Product{{Name: "T-shirt", Price: 4990, Quantity: 1}},
		PaidAmount: 4990, PaidAt: at, CreatedAt: at,
	}
	switch k.Family() {
	case webhook.FamilyTransaction:
		charge.Status = k.Status()
		if charge.Status == "pending" || charge.Status == "canceled" {
			charge.PaidAt, charge.PaidAmount = time.Time{}, 0
		}
		if k == webhook.TransactionThreeDSRequired {
			charge.Method = "credit_card"
		}
		e.Transaction = charge
	case webhook.FamilySubscription:
		charge.Method = "credit_card"
		s := &engine.Subscription{
			ID: "01945f2c-6d80-7000-8000-000000000002", Customer: buyer, Status: k.Status(), Amount: 4990, Currency: "BRL",
			Interval: "month", IntervalCount: 1, FailurePolicy: "retry_then_cancel", Metadata: `{"plan":"gold"}`, Cycle: 1,
			CurrentPeriodStart: at, CurrentPeriodEnd: at.AddDate(0, 1, 0), Latest: charge, CreatedAt: at,
		}
		if k == webhook.SubscriptionPaymentFailed {
			charge.Status, charge.PaidAt, charge.PaidAmount = "refused", time.Time{}, 0
			e.PreviousStatus, e.Attempt, e.FailureReason = "active", 1, "insufficient_funds"
		}
		e.Subscription = s
	default:
		e.Transfer = &engine.Transfer{ID: "01945f2c-6d80-7000-8000-000000000003", Amount: 12000, Fee: 50, Status: k.Status(), CreatedAt: at}
		if k == webhook.PayoutTransferred {
			e.Transfer.TransferredAt = at
		}
	}
	return e
}
