package gateway

import (
	"encoding/json"
	"net/url"
	"path"

	"github.com/gateway-go/gateway/internal/rules"
	"github.com/gateway-go/gateway/internal/wire"
)

// ItemType says whether a sold thing is shipped.
type ItemType string

// The item types.
const (
	PhysicalItem ItemType = "physical"
	DigitalItem  ItemType = "digital"
)

// Known reports whether this version knows t.
func (t ItemType) Known() bool { return rules.ItemTypes.Has(string(t)) }

// LinkStatus is a state of a checkout link.
type LinkStatus string

// The states of a checkout link. Only an active one opens sessions.
const (
	LinkActive    LinkStatus = "active"
	LinkExhausted LinkStatus = "exhausted" // used as often as it may be
	LinkExpired   LinkStatus = "expired"
	LinkInactive  LinkStatus = "inactive"
)

// Known reports whether this version knows s.
func (s LinkStatus) Known() bool { return rules.LinkStatuses.Has(string(s)) }

// SessionStatus is a state of a checkout session.
type SessionStatus string

// The states of a checkout session.
const (
	SessionOpen       SessionStatus = "open"       // buyer or payment method are missing
	SessionReady      SessionStatus = "ready"      // both are there
	SessionProcessing SessionStatus = "processing" // a transaction was created
	SessionCompleted  SessionStatus = "completed"  // it was paid
	SessionExpired    SessionStatus = "expired"
)

// Known reports whether this version knows s.
func (s SessionStatus) Known() bool { return rules.SessionStatuses.Has(string(s)) }

// CheckoutLink is a new hosted checkout page.
type CheckoutLink struct {
	URL string `json:"url"` // where to send the buyer

	// Extra holds the members that this version does not know.
	Extra map[string]json.RawMessage `json:",embed"`
}

// Slug returns the last element of the URL's path, by which
// [CheckoutSessionsService.Open] finds the link; "" where there is none.
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

// MarshalJSON writes l as the gateway would.
func (l CheckoutLink) MarshalJSON() ([]byte, error) {
	type plain CheckoutLink
	return wire.Marshal((*plain)(&l))
}

// CheckoutSession is a buyer's visit of a checkout link.
type CheckoutSession struct {
	Link  CheckoutLinkDetails `json:"link"`
	Items []CheckoutItem      `json:"items"`

	// SessionToken opens this session again and authorises its updates. It is
	// redacted wherever it is printed or encoded; keep it with
	// [Secret.Reveal] if you must.
	SessionToken Secret `json:"session_token"`

	ExpiresAt Timestamp `json:"expires_at"`
	Resumed   bool      `json:"resumed"` // false for a new session

	// Extra holds the members that this version does not know.
	Extra map[string]json.RawMessage `json:",embed"`
}

// MarshalJSON writes s as the gateway would, but for the redacted token.
func (s CheckoutSession) MarshalJSON() ([]byte, error) {
	type plain CheckoutSession
	return wire.Marshal((*plain)(&s))
}

// CheckoutLinkDetails is a checkout link as its buyer sees it. Amounts are in
// cents.
type CheckoutLinkDetails struct {
	ID             int64      `json:"id"`
	Slug           string     `json:"slug"`
	Status         LinkStatus `json:"status"`
	Title          string     `json:"title"`       // nullable
	Description    string     `json:"description"` // nullable
	Currency       Currency   `json:"currency"`
	Amount         int64      `json:"amount"`            // the sum of the products, where there are any
	ExpiresAt      Timestamp  `json:"expires_at"`        // nullable
	MaxUses        int        `json:"max_uses,omitzero"` // nullable: without limit
	UsedCount      int        `json:"used_count"`
	SuccessURL     string     `json:"success_url"` // nullable
	CancelURL      string     `json:"cancel_url"`  // nullable
	PaymentMethods []Method   `json:"payment_methods"`
	Metadata       Metadata   `json:"metadata"`     // nullable; an object, see [Metadata.Decode]
	PublicToken    string     `json:"public_token"` // for the browser; no secret

	// Extra holds the members that this version does not know.
	Extra map[string]json.RawMessage `json:",embed"`
}

// MarshalJSON writes c as the gateway would.
func (c CheckoutLinkDetails) MarshalJSON() ([]byte, error) {
	type plain CheckoutLinkDetails
	return wire.Marshal((*plain)(&c))
}

// CheckoutItem is one position of a checkout link. Prices are in cents.
type CheckoutItem struct {
	ID           int64    `json:"id"`
	ProductID    int64    `json:"product_id"`
	Name         string   `json:"name"`
	Description  string   `json:"description"` // nullable
	Quantity     int      `json:"quantity"`
	Currency     Currency `json:"currency"`
	Type         ItemType `json:"type"`
	Price        int64    `json:"price"`                  // of one
	ComparePrice int64    `json:"compare_price,omitzero"` // nullable: what it cost before
	Metadata     Metadata `json:"metadata"`               // nullable; an object, see [Metadata.Decode]
	ImageURL     string   `json:"image_url"`              // nullable

	// Extra holds the members that this version does not know.
	Extra map[string]json.RawMessage `json:",embed"`
}

// MarshalJSON writes c as the gateway would.
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

	// Extra holds the members that this version does not know.
	Extra map[string]json.RawMessage `json:",embed"`
}

// MarshalJSON writes s as the gateway would.
func (s CheckoutSessionState) MarshalJSON() ([]byte, error) {
	type plain CheckoutSessionState
	return wire.Marshal((*plain)(&s))
}
