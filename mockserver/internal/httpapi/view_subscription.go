package httpapi

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// The views of a subscription: camelCase, unlike the rest of v2 and unlike the
// subscription's own webhooks. Every key of the interface's table is always
// present.

type subscriptionView struct {
	ID                 string            `json:"id"`
	CustomerID         string            `json:"customerId"`
	Status             string            `json:"status"`
	PaymentMethod      string            `json:"paymentMethod"`
	BillingModel       string            `json:"billingModel"`
	BillingDayOfMonth  int               `json:"billingDayOfMonth"`
	Interval           string            `json:"interval"`
	IntervalCount      int               `json:"intervalCount"`
	Amount             int64             `json:"amount"`
	Currency           string            `json:"currency"`
	TrialEnd           stamp             `json:"trialEnd"`
	CurrentPeriodStart stamp             `json:"currentPeriodStart"`
	CurrentPeriodEnd   stamp             `json:"currentPeriodEnd"`
	CancelAtPeriodEnd  bool              `json:"cancelAtPeriodEnd"`
	CanceledAt         stamp             `json:"canceledAt"`
	FailurePolicy      string            `json:"failurePolicy"`
	RetryOffsetsDays   []int             `json:"retryOffsetsDays"`
	CancellationReason *string           `json:"cancellationReason"`
	CustomerEmail      string            `json:"customerEmail"`
	CardLast4          *string           `json:"cardLast4"`
	Metadata           jsontext.Value    `json:"metadata"`
	Informations       []informationView `json:"informations"`
	Products           []soldView        `json:"products"`
	Recurring          *consentView      `json:"recurringAuthorization"` // null for a card
	Authorization      *askView          `json:"authorization,omitzero"` // what the payer needs, only while the consent is pending
	Transactions       []chargeView      `json:"transactions,omitzero"`  // in a read by id only
	CreatedAt          stamp             `json:"createdAt"`
	UpdatedAt          stamp             `json:"updatedAt"`
}

type soldView struct {
	Name     string `json:"name"`
	Price    int64  `json:"price"`
	Quantity int    `json:"quantity"`
	Tangible bool   `json:"tangible"`
}

// consentView has a QR code only while the payer's consent is pending.
type consentView struct {
	Status         string  `json:"status"`
	QRCode         *string `json:"qr_code"`
	ExpirationDate stamp   `json:"expiration_date"`
}

// askView is the same consent without its status in the live dialect, where it has
// other names.
type askView struct {
	Status         string  `json:"status,omitzero"` // document dialect only
	QRCode         *string `json:"qr_code"`
	ExpirationDate stamp   `json:"expiration_date,omitzero"`                 // document dialect only
	ExpiresAt      stamp   `json:"expires_at,omitzero" dialect:"live"`       // live dialect only
	PaymentLinkURL string  `json:"payment_link_url,omitzero" dialect:"live"` // live dialect only; a page on which the payer authorizes
}

type chargeView struct {
	ID             string  `json:"id"`
	Status         string  `json:"status"`
	Amount         int64   `json:"amount"`
	PaidAmount     int64   `json:"paidAmount"`
	RefundedAmount int64   `json:"refundedAmount"`
	Currency       string  `json:"currency"`
	ExternalRef    *string `json:"externalRef"`
	CreatedAt      stamp   `json:"createdAt"`
	PaidAt         stamp   `json:"paidAt"`
}

func (a *API) viewSubscription(s *engine.Subscription) *subscriptionView {
	v := &subscriptionView{
		ID:                 s.ID,
		CustomerID:         s.Customer.ID,
		Status:             s.Status,
		PaymentMethod:      s.PaymentMethod,
		BillingModel:       "merchant_initiated",
		BillingDayOfMonth:  s.BillingDayOfMonth(),
		Interval:           s.Interval,
		IntervalCount:      s.IntervalCount,
		Amount:             s.Amount,
		Currency:           s.Currency,
		TrialEnd:           stamp(s.TrialEnd),
		CurrentPeriodStart: stamp(s.CurrentPeriodStart),
		CurrentPeriodEnd:   stamp(s.CurrentPeriodEnd),
		CancelAtPeriodEnd:  s.CancelAtPeriodEnd,
		CanceledAt:         stamp(s.CanceledAt),
		FailurePolicy:      s.FailurePolicy,
		RetryOffsetsDays:   s.RetryOffsetsDays,
		CancellationReason: nullable(&s.CancellationReason),
		CustomerEmail:      s.Customer.Email,
		Metadata:           viewObject(s.ReportedMetadata(a.cfg.Dialect)),
		Informations:       make([]informationView, len(s.Informations)),
		Products:           make([]soldView, len(s.Products)),
		CreatedAt:          stamp(s.CreatedAt),
		UpdatedAt:          stamp(s.UpdatedAt),
	}
	if s.Card != nil {
		v.CardLast4 = &s.Card.Last4
	}
	if consent := s.Authorization; consent != nil {
		v.Recurring = &consentView{Status: consent.Status}
		if s.Authorizing() {
			v.Recurring.QRCode, v.Recurring.ExpirationDate = &consent.QRCode, stamp(consent.ExpirationDate)
			v.Authorization = a.viewAsk(s)
		}
	}
	for i, info := range s.Informations {
		v.Informations[i] = informationView(info)
	}
	for i, p := range s.Products {
		v.Products[i] = soldView{p.Name, p.Price, p.Quantity, p.Tangible}
	}
	return v
}

func (a *API) viewAsk(s *engine.Subscription) *askView {
	consent := s.Authorization
	if a.cfg.Dialect.Live(spec.PixAuthorization) {
		return &askView{QRCode: &consent.QRCode, ExpiresAt: stamp(consent.ExpirationDate), PaymentLinkURL: s.AuthorizationURL()}
	}
	return &askView{Status: consent.Status, QRCode: &consent.QRCode, ExpirationDate: stamp(consent.ExpirationDate)}
}

// viewObject returns a JSON object that is stored as a string; "" is null.
func viewObject(text string) jsontext.Value {
	if text == "" {
		return jsontext.Value("null")
	}
	return jsontext.Value(text)
}

// viewCharges returns the transactions of a subscription, newest first.
func viewCharges(d *store.Data, s *engine.Subscription) []chargeView {
	list := make([]chargeView, 0, len(s.ChargeIDs))
	for i := len(s.ChargeIDs) - 1; i >= 0; i-- {
		t := d.Transactions.Get(s.ChargeIDs[i])
		list = append(list, chargeView{
			ID: t.ID, Status: t.Status, Amount: t.Reported(), PaidAmount: t.PaidAmount, RefundedAmount: t.RefundedAmount,
			Currency: t.Currency, ExternalRef: nullable(&t.ExternalRef), CreatedAt: stamp(t.CreatedAt), PaidAt: stamp(t.PaidAt),
		})
	}
	return list
}
