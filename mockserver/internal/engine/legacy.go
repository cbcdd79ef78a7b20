package engine

import (
	"cmp"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/gateway-go/gateway/internal/spec"
)

// The v1 states that SetLegacyStatus does not treat as labels.
const (
	legacyWaiting   = "WAITING_PAYMENT"
	legacyPaid      = "PAID"
	legacyCancelled = "CANCELLED"
	legacyRefund    = "REFUND"
)

// TokenizationRetired returns the time at which POST /v2/payment_token/:public_token
// was retired: midnight of 1 August 2026 in UTC-3.
func TokenizationRetired() time.Time { return time.Date(2026, time.August, 1, 3, 0, 0, 0, time.UTC) }

// NewLegacyPayment is a v1 request for a Pix payment.
type NewLegacyPayment struct {
	LegacyPayment

	Amount   int64 // cents
	Buyer    Buyer
	Lifetime time.Duration // 0 means [PixLifetime]
}

// CreateLegacyPayment creates the Pix transaction of a v1 payment.
func CreateLegacyPayment(env Env, in NewLegacyPayment) (Change, *Refusal) {
	return CreateTransaction(env, NewTransaction{
		Transaction: Transaction{
			Amount:       in.Amount,
			Currency:     "BRL",
			Method:       pix,
			Buyer:        &in.Buyer,
			Installments: 1,
			Products:     []Product{{Name: cmp.Or(in.Description, "Pix"), Price: in.Amount, Quantity: 1}},
			Legacy:       &in.LegacyPayment,
		},
		PixLifetime: in.Lifetime,
	}, Existing{})
}

// Reference returns the merchant's own reference of t. That of a v1 payment is not
// an idempotency key and may repeat.
func (t *Transaction) Reference() string {
	if t.Legacy != nil {
		return t.Legacy.ExternalID
	}
	return t.ExternalRef
}

// LegacyStatus returns the v1 state of t, which must be a v1 payment.
func (t *Transaction) LegacyStatus() string {
	if t.Legacy.Label != "" && t.Legacy.LabelFor == t.Status {
		return t.Legacy.Label
	}
	return legacyStatusOf(t)
}

func legacyStatusOf(t *Transaction) string {
	switch t.Status {
	case pending, waitingPayment:
		return legacyWaiting
	case paid, captured:
		return legacyPaid
	case expired, canceled:
		return legacyCancelled
	case refunded, partiallyRefunded:
		return legacyRefund
	case refused:
		return "DECLINED"
	case chargedback:
		return "REVERSED"
	default:
		return "ERROR"
	}
}

// SetLegacyStatus puts a v1 payment into a v1 state. PAID, CANCELLED and REFUND
// change the transaction and the balance, if the transaction's state allows it.
// WAITING_PAYMENT can't be set once the payment is over. Any other state is a label
// that stays until the transaction changes.
func SetLegacyStatus(env Env, t *Transaction, status string) (Change, *Refusal) {
	switch {
	case t.Legacy == nil:
		return Change{}, NotFound("legacy payment")
	case !spec.LegacyStatuses.Has(status):
		return Change{}, Invalid("status", spec.CodeInvalidEnum, "must be one of "+spec.LegacyStatuses.String())
	case status == legacyStatusOf(t):
		return label(env, t, ""), nil
	case status == legacyPaid:
		return Pay(env, t)
	case status == legacyCancelled:
		return Cancel(env, t)
	case status == legacyRefund:
		return Refund(env, t, RefundRequest{})
	case status == legacyWaiting:
		return Change{}, NewRefusal(CodeInvalidState, "A payment that is "+t.Status+" can't go back to WAITING_PAYMENT.")
	}
	return label(env, t, status), nil
}

func label(env Env, t *Transaction, status string) Change {
	return move(env, t, func(t *Transaction) {
		l := *t.Legacy
		l.Label, l.LabelFor = status, t.Status
		t.Legacy = &l
	})
}

// integrationActive is the only state of an integration.
const integrationActive = "active"

// IntegrationUpdate sets the webhook URLs of a v1 account; nil leaves one
// unchanged.
type IntegrationUpdate struct {
	WebhookURL    *string
	PixWebhookURL *string
}

// ConfigureIntegration changes the integration of an account. current is nil if
// the account has none yet.
func ConfigureIntegration(env Env, current *Integration, in IntegrationUpdate) Change {
	next := Integration{Status: integrationActive}
	if current == nil {
		next.ID = env.IDs.UUID(env.Now)
	} else {
		next = *current
	}
	if in.WebhookURL != nil {
		next.WebhookURL = *in.WebhookURL
	}
	if in.PixWebhookURL != nil {
		next.PixWebhookURL = *in.PixWebhookURL
	}
	return Change{Integration: &next}
}

// TokenizationEnded rejects a tokenization request after the retirement.
func TokenizationEnded(now time.Time) *Refusal {
	if now.Before(TokenizationRetired()) {
		return nil
	}
	return NewRefusal(CodeTokenizationRetired,
		"Tokenization by API has been retired: collect cards with the client-side payment element.")
}

// PaymentToken returns the card that belongs to a public token of the retired
// tokenization. It is the same one each time.
func PaymentToken(publicToken string) *Card {
	if spec.HasTokenPrefix(publicToken) {
		return cardOf(publicToken)
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(publicToken)) // never fails
	return cardOf("pgct_ok_" + strconv.FormatUint(h.Sum64(), 16))
}
