package gateway

import "github.com/gateway-go/gateway/internal/rules"

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
