package gateway

import (
	"context"
	"net/http"

	"github.com/gateway-go/gateway/internal/rules"
)

// CheckoutLinkParams is the body of POST /v2/checkout-links: a link sells
// either Products or a bare Amount, never both. A member at its zero value is
// not sent.
type CheckoutLinkParams struct {
	Amount   int64             `json:"amount,omitzero"`   // cents, 1 to 100000000
	Currency Currency          `json:"currency,omitzero"` // BRL where it is not sent
	Title    string            `json:"title,omitzero"`    // 1 to 255 characters
	Products []CheckoutProduct `json:"products,omitzero"` // 1 to 25
}

// Validate checks p as the gateway would; see [ValidationError].
func (p CheckoutLinkParams) Validate() error { return validate(p, rules.CheckoutLink) }

// CheckoutProduct is one position of a new checkout link.
type CheckoutProduct struct {
	// ExternalID is the product's id in your own system. The gateway keeps one
	// product per id: sending an id again changes that product.
	ExternalID string `json:"external_id,omitzero"`

	Name         string   `json:"name"`                   // 1 to 255 characters; required
	Price        int64    `json:"price"`                  // of one, in cents, 0 to 100000000; required
	Quantity     int      `json:"quantity,omitzero"`      // 1 to 999999; 1 where it is not sent
	Description  string   `json:"description,omitzero"`   //
	ImageURL     string   `json:"image_url,omitzero"`     // http or https
	ComparePrice int64    `json:"compare_price,omitzero"` // what it cost before, in cents
	Type         ItemType `json:"type,omitzero"`          //
	Currency     Currency `json:"currency,omitzero"`      //
}

// CheckoutSessionParams is the body of PATCH /v2/checkout/{slug}/session. A
// member at its zero value is not sent: a session may be filled in step by
// step.
type CheckoutSessionParams struct {
	Buyer         CheckoutBuyer `json:"buyer,omitzero"`
	PaymentMethod Method        `json:"payment_method,omitzero"` // one of the link's PaymentMethods
}

// Validate checks p as the gateway would; see [ValidationError].
func (p CheckoutSessionParams) Validate() error { return validate(p, rules.CheckoutSession) }

// CheckoutBuyer is what a checkout session knows of who pays.
type CheckoutBuyer struct {
	Name      string    `json:"name,omitzero"`
	Email     string    `json:"email,omitzero"`
	Phone     string    `json:"phone,omitzero"`
	BirthDate string    `json:"birth_date,omitzero"`
	Document  *Document `json:"document,omitzero"`
	Address   *Address  `json:"address,omitzero"`
}

// CheckoutLinksService calls /v2/checkout-links: payment pages that the gateway
// hosts.
type CheckoutLinksService struct{ client *Client }

// CheckoutSessionsService calls /v2/checkout/{slug}: visits of a hosted payment
// page, for merchants that draw the page themselves.
type CheckoutSessionsService struct{ client *Client }

var (
	createCheckoutLink    = endpoint("checkout_links.create", http.MethodPost, "/v2/checkout-links", classUnsafe, rules.CheckoutLink)
	openCheckoutSession   = endpoint("checkout_sessions.open", http.MethodGet, "/v2/checkout/{slug}", classSafe, nil)
	resumeCheckoutSession = endpoint("checkout_sessions.resume", http.MethodGet, "/v2/checkout/{slug}", classSafe, nil)
	updateCheckoutSession = endpoint("checkout_sessions.update", http.MethodPatch, "/v2/checkout/{slug}/session", classUnsafe,
		rules.CheckoutSession)
)

// Create makes a payment page: POST /v2/checkout-links. Send the buyer to the
// URL of the answer.
//
// A link has no reference, so the call is not repeated where it may have been
// carried out. After [ErrOutcomeUnknown] calling it again is harmless: at worst
// there are two links, of which you use one.
func (s *CheckoutLinksService) Create(ctx context.Context, params CheckoutLinkParams, opts ...RequestOption) (*CheckoutLink, error) {
	return call[CheckoutLink](ctx, s.client, &createCheckoutLink, &params, opts)
}

// Open reads the link called slug, 3 to 255 characters, and begins a session:
// GET /v2/checkout/{slug}. A session lives for a limited time, see ExpiresAt.
// An unknown slug is [ErrNotFound]; a link that takes no more buyers is
// [ErrRetired].
func (s *CheckoutSessionsService) Open(ctx context.Context, slug string, opts ...RequestOption) (*CheckoutSession, error) {
	return call[CheckoutSession](ctx, s.client, &openCheckoutSession, nil, opts, slug)
}

// Resume reads the link called slug and comes back to the session of token:
// GET /v2/checkout/{slug}. Where that session has ended the gateway begins a
// new one: Resumed says which it is, and SessionToken is to be used from then
// on.
func (s *CheckoutSessionsService) Resume(ctx context.Context, slug string, token Secret, opts ...RequestOption) (*CheckoutSession, error) {
	opts = withSessionToken(resumeCheckoutSession.Name, token, opts)
	return call[CheckoutSession](ctx, s.client, &resumeCheckoutSession, nil, opts, slug)
}

// Update sets the buyer and the payment method of a session:
// PATCH /v2/checkout/{slug}/session. What params leave out stays as it is. A
// wrong token is [ErrUnauthorized], an expired session [ErrRetired], one whose
// payment has begun [ErrConflict].
//
// The call is not repeated where it may have been carried out; after
// [ErrOutcomeUnknown] you may simply call it again: it sets values.
func (s *CheckoutSessionsService) Update(
	ctx context.Context, slug string, token Secret, params CheckoutSessionParams, opts ...RequestOption,
) (*CheckoutSessionState, error) {
	opts = withSessionToken(updateCheckoutSession.Name, token, opts)
	return call[CheckoutSessionState](ctx, s.client, &updateCheckoutSession, &params, opts, slug)
}

const sessionTokenHeader = "X-Checkout-Session-Token" //nolint:gosec // the name of a header

// withSessionToken adds the session's token to a call, or the error that it
// can't be one, which does not repeat it.
func withSessionToken(op string, token Secret, opts []RequestOption) []RequestOption {
	return append(opts[:len(opts):len(opts)], func(o *callOptions) error {
		if token == "" {
			return &ValidationError{Op: op, Fields: []FieldError{{
				Field: "session_token", Code: rules.CodeRequired, Message: "is required: pass the SessionToken that Open answered",
			}}}
		}
		if !validHeaderValue(token.Reveal()) {
			return &ValidationError{Op: op, Fields: []FieldError{{
				Field: "session_token", Code: rules.CodeInvalid, Message: "holds a control character: pass the SessionToken as Open answered it",
			}}}
		}
		if o.header == nil {
			o.header = http.Header{}
		}
		o.header.Set(sessionTokenHeader, token.Reveal())
		return nil
	})
}
