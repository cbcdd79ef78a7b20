package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"path"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/internal/wire"
)

// ItemType is physical (shipped) or digital.
type ItemType string

// The item types.
const (
	PhysicalItem ItemType = "physical"
	DigitalItem  ItemType = "digital"
)

// LinkStatus is a state of a checkout link.
type LinkStatus string

// The states of a checkout link. Only an active one opens sessions.
const (
	LinkActive    LinkStatus = "active"
	LinkExhausted LinkStatus = "exhausted" // max_uses is reached
	LinkExpired   LinkStatus = "expired"
	LinkInactive  LinkStatus = "inactive"
)

// SessionStatus is a state of a checkout session.
type SessionStatus string

// The states of a checkout session.
const (
	SessionOpen       SessionStatus = "open"       // the buyer or the payment method is missing
	SessionReady      SessionStatus = "ready"      // both are set
	SessionProcessing SessionStatus = "processing" // a transaction was created
	SessionCompleted  SessionStatus = "completed"  // it was paid
	SessionExpired    SessionStatus = "expired"
)

// CheckoutLink is a new link to a payment page that the gateway hosts.
type CheckoutLink struct {
	URL string          `json:"url"` // the page to send the buyer to
	Raw json.RawMessage `json:"-"`   // the JSON as received, with what this version has no field for; not printed
}

// Slug returns the last element of the URL's path, the slug that
// [CheckoutSessionsService.Open] takes. It returns "" if there is none.
func (l *CheckoutLink) Slug() string {
	u, err := url.Parse(l.URL)
	if err != nil {
		return ""
	}
	slug := path.Base(u.Path)
	if slug == "." || slug == "/" {
		return ""
	}
	return slug
}

// MarshalJSON writes l in the gateway's format.
func (l CheckoutLink) MarshalJSON() ([]byte, error) {
	type plain CheckoutLink
	return wire.Marshal((*plain)(&l))
}

// CheckoutSession is a buyer's visit to a checkout link.
type CheckoutSession struct {
	Link  CheckoutLinkDetails `json:"link"`
	Items []CheckoutItem      `json:"items"`

	// SessionToken resumes this session and authorizes its updates. It is
	// redacted wherever it is printed or encoded; to store it, call Reveal.
	SessionToken Secret `json:"session_token"`

	ExpiresAt Timestamp       `json:"expires_at"`
	Resumed   bool            `json:"resumed"` // false if the session is new
	Raw       json.RawMessage `json:"-"`       // the JSON as received, with what this version has no field for; not printed
}

// MarshalJSON writes s in the gateway's format, with the token redacted.
func (s CheckoutSession) MarshalJSON() ([]byte, error) {
	type plain CheckoutSession
	return wire.Marshal((*plain)(&s))
}

// CheckoutLinkDetails is a checkout link as the buyer sees it. Amounts are in
// cents.
type CheckoutLinkDetails struct {
	ID             int64      `json:"id"`
	Slug           string     `json:"slug"`
	Status         LinkStatus `json:"status"`
	Title          string     `json:"title"`       // nullable
	Description    string     `json:"description"` // nullable
	Currency       Currency   `json:"currency"`
	Amount         int64      `json:"amount"`            // the sum of the products, if there are any
	ExpiresAt      Timestamp  `json:"expires_at"`        // nullable
	MaxUses        int        `json:"max_uses,omitzero"` // nullable; null means no limit
	UsedCount      int        `json:"used_count"`
	SuccessURL     string     `json:"success_url"` // nullable
	CancelURL      string     `json:"cancel_url"`  // nullable
	PaymentMethods []Method   `json:"payment_methods"`
	Metadata       Metadata   `json:"metadata"`     // nullable; an object, see [Metadata.Decode]
	PublicToken    string     `json:"public_token"` // for the browser; not a secret
}

// MarshalJSON writes c in the gateway's format.
func (c CheckoutLinkDetails) MarshalJSON() ([]byte, error) {
	type plain CheckoutLinkDetails
	return wire.Marshal((*plain)(&c))
}

// CheckoutItem is one line of a checkout link. Prices are in cents.
type CheckoutItem struct {
	ID           int64    `json:"id"`
	ProductID    int64    `json:"product_id"`
	Name         string   `json:"name"`
	Description  string   `json:"description"` // nullable
	Quantity     int      `json:"quantity"`
	Currency     Currency `json:"currency"`
	Type         ItemType `json:"type"`
	Price        int64    `json:"price"`                  // of one unit
	ComparePrice int64    `json:"compare_price,omitzero"` // nullable: its former price
	Metadata     Metadata `json:"metadata"`               // nullable; an object, see [Metadata.Decode]
	ImageURL     string   `json:"image_url"`              // nullable
}

// MarshalJSON writes c in the gateway's format.
func (c CheckoutItem) MarshalJSON() ([]byte, error) {
	type plain CheckoutItem
	return wire.Marshal((*plain)(&c))
}

// CheckoutSessionState is a checkout session after an update.
type CheckoutSessionState struct {
	ExpiresAt               Timestamp     `json:"expires_at"`
	Status                  SessionStatus `json:"status"`
	UpdatedAt               Timestamp     `json:"updated_at"`
	SelectedPaymentMethod   Method        `json:"selected_payment_method"`    // nullable
	SelectedPaymentMethodAt Timestamp     `json:"selected_payment_method_at"` // nullable
}

// CheckoutLinkParams is the body of POST /v2/checkout-links. A link has either
// Products or an Amount, not both. Fields with their zero value are not sent.
type CheckoutLinkParams struct {
	Amount   int64             `json:"amount,omitzero"`   // cents, 1 to 100000000
	Currency Currency          `json:"currency,omitzero"` // default BRL
	Title    string            `json:"title,omitzero"`    // 1 to 255 characters
	Products []CheckoutProduct `json:"products,omitzero"` // 1 to 25
}

// Validate checks p against the rules of the interface; see [ValidationError].
func (p CheckoutLinkParams) Validate() error { return validate(p, spec.CheckoutLink) }

// CheckoutProduct is one line of a new checkout link.
type CheckoutProduct struct {
	// ExternalID is the product's id in your own system. The gateway stores
	// one product per id: sending an id again updates that product. Live
	// gateways require it.
	ExternalID string `json:"external_id,omitzero"`

	Name         string   `json:"name"`              // 1 to 255 characters; required
	Price        int64    `json:"price"`             // of one unit, in cents, 0 to 100000000; required
	Quantity     int      `json:"quantity,omitzero"` // 1 to 999999; default 1
	Description  string   `json:"description,omitzero"`
	ImageURL     string   `json:"image_url,omitzero"`     // http or https
	ComparePrice int64    `json:"compare_price,omitzero"` // its former price, in cents
	Type         ItemType `json:"type,omitzero"`
	Currency     Currency `json:"currency,omitzero"`
}

// CheckoutSessionParams is the body of PATCH /v2/checkout/{slug}/session. Fields
// with their zero value are not sent, so a session can be filled in step by
// step.
type CheckoutSessionParams struct {
	Buyer         CheckoutBuyer `json:"buyer,omitzero"`
	PaymentMethod Method        `json:"payment_method,omitzero"` // one that the link offers
}

// Validate checks p against the rules of the interface; see [ValidationError].
func (p CheckoutSessionParams) Validate() error { return validate(p, spec.CheckoutSession) }

// CheckoutBuyer is the buyer of a checkout session.
type CheckoutBuyer struct {
	Name      string    `json:"name,omitzero"`
	Email     string    `json:"email,omitzero"`
	Phone     string    `json:"phone,omitzero"`
	BirthDate string    `json:"birth_date,omitzero"`
	Document  *Document `json:"document,omitzero"`
	Address   *Address  `json:"address,omitzero"`
}

// CheckoutLinksService creates links to payment pages that the gateway hosts:
// /v2/checkout-links.
type CheckoutLinksService struct{ client *Client }

// CheckoutSessionsService opens and updates the sessions of a checkout link, for
// merchants that render the payment page themselves: /v2/checkout/{slug}.
type CheckoutSessionsService struct{ client *Client }

// Create creates a checkout link: POST /v2/checkout-links. Send the buyer to
// its URL. Links have no reference. After [ErrOutcomeUnknown], call Create
// again: at worst this leaves an unused link.
func (s *CheckoutLinksService) Create(ctx context.Context, params CheckoutLinkParams, opts ...RequestOption) (*CheckoutLink, error) {
	return call[CheckoutLink](ctx, s.client, &spec.CheckoutLinks.Create, &params, opts)
}

// Open reads the link with the given slug, 3 to 255 characters, and opens a
// session: GET /v2/checkout/{slug}. The session expires at ExpiresAt. The error
// is [ErrNotFound] if no link has the slug, and [ErrRetired] if the link is used
// up, expired or inactive.
func (s *CheckoutSessionsService) Open(ctx context.Context, slug string, opts ...RequestOption) (*CheckoutSession, error) {
	return call[CheckoutSession](ctx, s.client, &spec.CheckoutSessions.Open, nil, opts, slug)
}

// Resume reads the link with the given slug and resumes the session that token
// belongs to: GET /v2/checkout/{slug}. If the token is unknown or its session
// has ended, the gateway opens a new session, and Resumed is false. Use the
// returned SessionToken from then on. The errors are those of Open.
func (s *CheckoutSessionsService) Resume(ctx context.Context, slug string, token Secret, opts ...RequestOption) (*CheckoutSession, error) {
	opts = withSessionToken(spec.CheckoutSessions.Resume.Name, token, opts)
	return call[CheckoutSession](ctx, s.client, &spec.CheckoutSessions.Resume, nil, opts, slug)
}

// Update sets the buyer and the payment method of a session: PATCH
// /v2/checkout/{slug}/session. Fields that are not sent keep their values. The
// error is [ErrUnauthorized] if the token is wrong, [ErrRetired] if the session
// has expired, and [ErrConflict] if its payment has started. After
// [ErrOutcomeUnknown], call Update again: repeating it is safe.
func (s *CheckoutSessionsService) Update(
	ctx context.Context, slug string, token Secret, params CheckoutSessionParams, opts ...RequestOption,
) (*CheckoutSessionState, error) {
	opts = withSessionToken(spec.CheckoutSessions.Update.Name, token, opts)
	return call[CheckoutSessionState](ctx, s.client, &spec.CheckoutSessions.Update, &params, opts, slug)
}

const sessionTokenHeader = "X-Checkout-Session-Token" //nolint:gosec // the name of a header

// withSessionToken adds the session token to a call. An invalid token fails the
// call with an error that does not contain it.
func withSessionToken(op string, token Secret, opts []RequestOption) []RequestOption {
	return append(opts[:len(opts):len(opts)], func(o *callOptions) error {
		if token.IsZero() {
			return &ValidationError{Op: op, Fields: []FieldError{{
				Field: "session_token", Code: spec.CodeRequired, Message: "is required: pass the SessionToken that Open returned",
			}}}
		}
		if !validHeaderValue(token.Reveal()) {
			return &ValidationError{Op: op, Fields: []FieldError{{
				Field: "session_token", Code: spec.CodeInvalid, Message: "contains a control character: pass the SessionToken as Open returned it",
			}}}
		}
		if o.header == nil {
			o.header = http.Header{}
		}
		o.header.Set(sessionTokenHeader, token.Reveal())
		return nil
	})
}
