package deliver

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/respond"
)

// The api_version of events: the version of the API description, or, in the live
// reading of api-version, that of the API through which a payment was made.
const (
	documentVersion = "2.0.0"
	liveVersion     = "v2"
	legacyVersion   = "v1"
)

func apiVersion(e *engine.Event, dialect spec.Dialect) string {
	switch {
	case !dialect.Live(spec.APIVersion):
		return documentVersion
	case e.Transaction != nil && e.Transaction.Legacy != nil:
		return legacyVersion
	default:
		return liveVersion
	}
}

// The event families, as the top-level member event names them. Transfer events have
// no such member; their kind is in the member type.
const (
	familyTransaction  = "transaction"
	familySubscription = "subscription"
)

type envelope struct {
	ID         string `json:"id"`
	Event      string `json:"event,omitempty"`
	Type       string `json:"type,omitempty"`
	APIVersion string `json:"api_version"`
	Data       any    `json:"data"`
}

// Render returns the body of an event: the same bytes for every target and
// every attempt.
func Render(e *engine.Event, dialect spec.Dialect) ([]byte, error) {
	body := envelope{ID: e.ID, APIVersion: apiVersion(e, dialect)}
	switch {
	case e.Transaction != nil:
		body.Event, body.Data = familyTransaction, viewTransaction(e, dialect)
	case e.Subscription != nil:
		body.Event, body.Data = familySubscription, viewSubscription(e, dialect)
	default:
		body.Type, body.Data = e.Kind, transferData{viewTransfer(e.Transfer)}
	}
	return respond.Marshal(body)
}

// resource returns the id of the resource that an event is about.
func resource(e *engine.Event) string {
	switch {
	case e.Transaction != nil:
		return e.Transaction.ID
	case e.Subscription != nil:
		return e.Subscription.ID
	default:
		return e.Transfer.ID
	}
}

type transactionView struct {
	ID            string            `json:"id"`
	EventType     string            `json:"event_type"`
	CorrelationID *string           `json:"correlation_id"`
	Method        string            `json:"method"`
	Status        string            `json:"status"`
	Amount        int64             `json:"amount"`                                     // in the live dialect what the gateway settles, which may differ from base_price
	BasePrice     int64             `json:"base_price,omitzero" dialect:"live"`         // what the buyer is charged; live dialect only
	PaidAmount    int64             `json:"paid_amount,string,omitzero" dialect:"live"` // what the buyer paid; live dialect only
	Currency      string            `json:"currency"`
	PaidAt        respond.Stamp     `json:"paid_at"`
	Customer      customerView      `json:"customer"`
	Products      []productView     `json:"products"`
	Informations  []informationView `json:"informations,omitempty"`
}

type customerView struct {
	Name  *string `json:"name"`
	Email *string `json:"email"`
	Phone *string `json:"phone"`
}

type productView struct {
	Title     string `json:"title"`
	UnitPrice int64  `json:"unit_price"` // cents
	Quantity  int    `json:"quantity"`
}

type informationView struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

func viewTransaction(e *engine.Event, dialect spec.Dialect) transactionView {
	t := e.Transaction
	v := transactionView{
		ID:            t.ID,
		EventType:     e.Kind,
		CorrelationID: correlation(t),
		Method:        t.Method,
		Status:        t.Status,
		Amount:        t.Reported(),
		Currency:      t.Currency,
		PaidAt:        respond.Stamp(t.PaidAt),
		Products:      make([]productView, len(t.Products)),
	}
	if dialect.Live(spec.BasePrice) {
		v.BasePrice, v.PaidAmount = t.Amount, t.PaidAmount
	}
	if b := t.Buyer; b != nil {
		v.Customer = customerView{respond.Nullable(&b.Name), respond.Nullable(&b.Email), respond.Nullable(&b.Phone)}
	}
	if v.Customer.Phone == nil && dialect.Live(spec.AbsentPhone) {
		absent := "null"
		v.Customer.Phone = &absent
	}
	for i, p := range t.Products {
		v.Products[i] = productView{p.Name, p.Price, p.Quantity}
	}
	for _, i := range t.Informations {
		v.Informations = append(v.Informations, informationView(i))
	}
	return v
}

// correlation returns the merchant's own reference, or null.
func correlation(t *engine.Transaction) *string {
	ref := t.Reference()
	return respond.Nullable(&ref)
}

type transferData struct {
	Object transferView `json:"object"`
}

type transferView struct {
	ID            string        `json:"id"`
	Status        string        `json:"status"`
	Type          string        `json:"type"`
	Amount        int64         `json:"amount"`
	Fee           int64         `json:"fee"`
	NetAmount     int64         `json:"net_amount"` // what the recipient gets
	TransferredAt respond.Stamp `json:"transferred_at"`
}

func viewTransfer(t *engine.Transfer) transferView {
	return transferView{
		ID:            t.ID,
		Status:        t.Status,
		Type:          "pix",
		Amount:        t.Amount,
		Fee:           t.Fee,
		NetAmount:     t.NetAmount(),
		TransferredAt: respond.Stamp(t.TransferredAt),
	}
}

// subscriptionView has names in snake_case, unlike the API's subscription.
type subscriptionView struct {
	ID                 string         `json:"id"`
	EventType          string         `json:"event_type"`
	Status             string         `json:"status"`
	PreviousStatus     *string        `json:"previous_status"`
	Amount             int64          `json:"amount"`
	Currency           string         `json:"currency"`
	Interval           string         `json:"interval"`
	IntervalCount      int            `json:"interval_count"`
	CurrentPeriodStart respond.Stamp  `json:"current_period_start"`
	CurrentPeriodEnd   respond.Stamp  `json:"current_period_end"`
	CancelAtPeriodEnd  bool           `json:"cancel_at_period_end"`
	CycleCount         int            `json:"cycle_count"`
	CustomerEmail      *string        `json:"customer_email"`
	FailurePolicy      string         `json:"failure_policy"`
	TrialEnd           respond.Stamp  `json:"trial_end"`
	Metadata           jsontext.Value `json:"metadata"`
	OccurredAt         respond.Stamp  `json:"occurred_at"`
	LatestTransaction  *chargeView    `json:"latest_transaction"`
	AttemptNumber      int            `json:"attempt_number,omitzero"`
	FailureReason      string         `json:"failure_reason,omitzero"`
}

// chargeView is a charge of a subscription. Its paid amount is a string.
type chargeView struct {
	ID             string        `json:"id"`
	Status         string        `json:"status"`
	Amount         int64         `json:"amount"`
	PaidAmount     int64         `json:"paid_amount,string"`
	RefundedAmount int64         `json:"refunded_amount"`
	Currency       string        `json:"currency"`
	ExternalRef    *string       `json:"external_ref"`
	CreatedAt      respond.Stamp `json:"created_at"`
	PaidAt         respond.Stamp `json:"paid_at"`
}

func viewSubscription(e *engine.Event, dialect spec.Dialect) subscriptionView {
	s := e.Subscription
	v := subscriptionView{
		ID:                 s.ID,
		EventType:          e.Kind,
		Status:             s.Status,
		PreviousStatus:     respond.Nullable(&e.PreviousStatus),
		Amount:             s.Amount,
		Currency:           s.Currency,
		Interval:           s.Interval,
		IntervalCount:      s.IntervalCount,
		CurrentPeriodStart: respond.Stamp(s.CurrentPeriodStart),
		CurrentPeriodEnd:   respond.Stamp(s.CurrentPeriodEnd),
		CancelAtPeriodEnd:  s.CancelAtPeriodEnd,
		CycleCount:         s.Cycle,
		FailurePolicy:      s.FailurePolicy,
		TrialEnd:           respond.Stamp(s.TrialEnd),
		OccurredAt:         respond.Stamp(e.At),
		AttemptNumber:      e.Attempt,
		FailureReason:      e.FailureReason,
	}
	if s.Customer != nil {
		v.CustomerEmail = respond.Nullable(&s.Customer.Email)
	}
	if text := jsontext.Value(strings.Clone(s.ReportedMetadata(dialect))); text.IsValid() {
		v.Metadata = text
	}
	if t := s.Latest; t != nil {
		v.LatestTransaction = &chargeView{
			ID:             t.ID,
			Status:         t.Status,
			Amount:         t.Reported(),
			PaidAmount:     t.PaidAmount,
			RefundedAmount: t.RefundedAmount,
			Currency:       t.Currency,
			ExternalRef:    respond.Nullable(&t.ExternalRef),
			CreatedAt:      respond.Stamp(t.CreatedAt),
			PaidAt:         respond.Stamp(t.PaidAt),
		}
	}
	return v
}
