package gateway

import (
	"encoding/json"

	"github.com/gateway-go/gateway/internal/rules"
)

// CustomerStatus is the current state of a customer. The interface names no
// closed list; states that this version does not know are kept as they came.
type CustomerStatus string

// CustomerActive is the state of a new customer.
const CustomerActive CustomerStatus = "active"

// Known reports whether this version knows s.
func (s CustomerStatus) Known() bool { return rules.CustomerStatuses.Has(string(s)) }

// CustomerParams is the body of POST /v2/customers. A member at its zero value
// is not sent.
type CustomerParams struct {
	Name     string    `json:"name"`              // required
	Email    string    `json:"email"`             // required; two customers may share one
	Phone    string    `json:"phone,omitzero"`    // nullable; the live gateway wants 11 digits, without +55
	Document *Document `json:"document,omitzero"` // nullable

	// ExternalRef is the customer's reference in your own system and the
	// idempotency key: a second create with it is refused with [ErrDuplicate].
	// Without it a create is not repeated after a lost answer, since that could
	// make a second customer.
	ExternalRef string `json:"externalRef,omitzero"`

	Address   *Address `json:"address,omitzero"`    // nullable
	IPAddress string   `json:"ip_address,omitzero"` // nullable; IPv4 or IPv6, the last one known
}

// Validate checks p as the gateway would; see [ValidationError].
func (p CustomerParams) Validate() error { return validate(p, rules.Customer) }

// Customer is a reusable buyer profile. A transaction may name it by
// [BuyerParams.ID], a subscription must. Nullable texts are "", nullable
// objects nil.
type Customer struct {
	ID          string         `json:"id"` // a UUID
	Name        string         `json:"name"`
	Email       string         `json:"email"`
	Phone       string         `json:"phone"`       // nullable
	ExternalRef string         `json:"externalRef"` // nullable
	Document    *Document      `json:"document"`    // nil where none is stored
	Address     *Address       `json:"address"`     // nil where none is stored
	Status      CustomerStatus `json:"status"`
	IPAddress   string         `json:"ip_address"` // nullable

	// Extra holds the members that this version does not know.
	Extra map[string]json.RawMessage `json:",embed"`
}

// CustomerListParams is the query of GET /v2/customers. All filters must match;
// one at its zero value does not filter.
type CustomerListParams struct {
	Page  int `url:"page,omitempty"`  // 1 to 1000000; 1 where it is not sent
	Limit int `url:"limit,omitempty"` // customers in a page, 1 to 100; 10 where it is not sent

	Search         string         `url:"search,omitempty"`          // in name, e-mail and document
	DocumentNumber string         `url:"document_number,omitempty"` // exact
	Email          string         `url:"email,omitempty"`           // exact
	Phone          string         `url:"phone,omitempty"`
	ExternalRef    string         `url:"external_ref,omitempty"`
	Status         CustomerStatus `url:"status,omitempty"`
	IPAddress      string         `url:"ip_address,omitempty"` // the last one known
}
