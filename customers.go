package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"strings"
	"time"

	"github.com/gateway-go/gateway/internal/masking"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/internal/wire"
)

// CustomerStatus is the current state of a customer. The interface document
// does not list the states; those unknown to this version are kept unchanged.
type CustomerStatus string

// CustomerActive is the state of a new customer.
const CustomerActive CustomerStatus = "active"

// CustomerParams is the body of POST /v2/customers. Fields with their zero value
// are not sent.
type CustomerParams struct {
	Name     string    `json:"name"`              // required
	Email    string    `json:"email"`             // required; need not be unique
	Phone    string    `json:"phone,omitzero"`    // nullable; live gateways require 11 digits, without +55
	Document *Document `json:"document,omitzero"` // nullable

	// ExternalRef is the customer's reference in your own system and the
	// idempotency key. A second create with it is rejected with [ErrDuplicate].
	// After a lost response the client does not retry a create without one,
	// since that could create a second customer; see [WithIdempotencyKeys].
	ExternalRef string `json:"externalRef,omitzero"`

	Address   *Address `json:"address,omitzero"`    // nullable
	IPAddress string   `json:"ip_address,omitzero"` // nullable; IPv4 or IPv6, the last known one
}

// Validate checks p against the rules of the interface; see [ValidationError].
func (p CustomerParams) Validate() error { return validate(p, spec.Customer) }

// Customer is a reusable buyer profile. A transaction may refer to one with
// [BuyerParams.ID]; a subscription always belongs to one. Null strings decode to
// "", null objects to nil.
type Customer struct {
	ID          string          `json:"id"` // a UUID
	Name        string          `json:"name"`
	Email       string          `json:"email"`
	Phone       string          `json:"phone"`               // nullable
	BirthDate   string          `json:"birth_date,omitzero"` // nullable; only some live gateways report it
	ExternalRef string          `json:"externalRef"`         // nullable
	Document    *Document       `json:"document"`            // nil if none is stored
	Address     *Address        `json:"address"`             // nil if none is stored
	Status      CustomerStatus  `json:"status"`
	IPAddress   string          `json:"ip_address"` // nullable
	Raw         json.RawMessage `json:"-"`          // the JSON as received, with what this version has no field for; not printed

	received spelling
}

// spelling says under which names members were received that live gateways also
// spell in another way, and which were left out. The zero value is the document's
// spelling.
type spelling struct {
	document, zip struct{ only, too bool } // the other names, alone or beside the document's

	unread []wire.Unread // what was left out
}

// plainCustomer is a Customer without methods.
type plainCustomer Customer

// customerItem is a customer on the wire, in the document's spelling or in that of
// live gateways.
type customerItem struct {
	plainCustomer

	Document *customerDocument `json:"document"` // replaces that of Customer
	Address  *customerAddress  `json:"address"`  // the same
}

type customerDocument struct {
	plainDocument

	OtherType   DocumentType `json:"document_type,omitzero"`
	OtherNumber string       `json:"document_number,omitzero"`
}

// plainDocument is a Document without methods, of which a member may be missing.
type plainDocument struct {
	Type   DocumentType `json:"type,omitzero"`
	Number string       `json:"number,omitzero"`
}

type customerAddress struct {
	plainAddress

	Zip string `json:"zip_code,omitzero"`
}

// plainAddress is an Address without methods.
type plainAddress Address

// UnmarshalJSON reads either spelling.
func (c *Customer) UnmarshalJSON(b []byte) error {
	var item customerItem
	unread, err := wire.DecodeMembers(b, &item, &spec.CustomerMembers)
	if err != nil {
		return err
	}
	*c = Customer(item.plainCustomer)
	c.received.unread = unread
	if d := item.Document; d != nil {
		c.received.document.too = d.OtherType != "" || d.OtherNumber != ""
		c.received.document.only = c.received.document.too && d.Type == "" && d.Number == ""
		c.Document = (*Document)(&d.plainDocument)
		c.Document.Type, c.Document.Number = cmp.Or(d.Type, d.OtherType), cmp.Or(d.Number, d.OtherNumber)
	}
	if a := item.Address; a != nil {
		c.received.zip.too = a.Zip != ""
		c.received.zip.only = a.Zip != "" && a.ZipCode == ""
		c.Address = (*Address)(&a.plainAddress)
		c.Address.ZipCode = cmp.Or(c.Address.ZipCode, a.Zip)
	}
	return nil
}

// MarshalJSON writes c in the gateway's format, in the spelling in which it was
// received: every field that was received, null for the empty ones.
func (c Customer) MarshalJSON() ([]byte, error) {
	if masking.Logging() {
		return masking.Show(plainCustomer(c)).MarshalJSON()
	}
	item := customerItem{plainCustomer: plainCustomer(c)}
	if d := c.Document; d != nil {
		item.Document = &customerDocument{plainDocument: plainDocument(*d)}
		if c.received.document.too {
			item.Document.OtherType, item.Document.OtherNumber = d.Type, d.Number
		}
		if c.received.document.only {
			item.Document.Type, item.Document.Number = "", ""
		}
	}
	if a := c.Address; a != nil {
		item.Address = &customerAddress{plainAddress: plainAddress(*a)}
		if c.received.zip.too {
			item.Address.Zip = a.ZipCode
		}
		if c.received.zip.only {
			item.Address.ZipCode = ""
		}
	}
	return wire.Marshal(&item)
}

// CustomerListParams is the query of GET /v2/customers. A customer must match
// all filters. Fields with their zero value are not sent.
type CustomerListParams struct {
	Page  int `url:"page,omitempty"`  // 1 to 1000000; default 1
	Limit int `url:"limit,omitempty"` // customers per page, 1 to 100; default 10

	Search         string         `url:"search,omitempty"`          // in name, e-mail and document
	DocumentNumber string         `url:"document_number,omitempty"` // exact
	Email          string         `url:"email,omitempty"`           // exact
	Phone          string         `url:"phone,omitempty"`
	ExternalRef    string         `url:"external_ref,omitempty"`
	Status         CustomerStatus `url:"status,omitempty"`
	IPAddress      string         `url:"ip_address,omitempty"` // the last known one
}

// CustomersService manages reusable buyer profiles: /v2/customers.
type CustomersService struct{ client *Client }

var createCustomer = keyedCreate[CustomerParams, Customer]{
	operation: &spec.Customers.Create,
	field:     "externalRef",
	automatic: false, // a generated reference would be stored with the customer permanently
	reference: func(p *CustomerParams) *string { return &p.ExternalRef },
	differing: func(p *CustomerParams, c *Customer) (d differences) {
		d.unless(agrees(strings.ToLower(p.Email), strings.ToLower(c.Email)), "email")
		return d
	},
	compared: []string{"email"},

	get:    &spec.Customers.Get,
	stored: func(c *Customer) string { return c.ExternalRef },
	search: func(ctx context.Context, c *Client, reference string, _ time.Duration, opts []RequestOption) (string, error) {
		pages := c.Customers.Pages(ctx, CustomerListParams{ExternalRef: reference}, opts...)
		return searchNewest(pages, 0, reference, func(c *Customer) (string, string, time.Time) {
			return c.ID, c.ExternalRef, time.Time{}
		})
	},
}

// Create creates a customer: POST /v2/customers. With an ExternalRef it is safe to
// repeat.
//
// Errors: [ErrValidation] if params are invalid; [ErrDuplicate] if the
// ExternalRef was used before (find that customer with
// [CustomerListParams.ExternalRef]); [ErrOutcomeUnknown] if the customer may
// have been created.
func (s *CustomersService) Create(ctx context.Context, params CustomerParams, opts ...RequestOption) (*Customer, error) {
	return create(ctx, s.client, &createCustomer, &params, opts)
}

// Get reads a customer: GET /v2/customers/{id}. The error is [ErrNotFound] if
// the id is unknown.
func (s *CustomersService) Get(ctx context.Context, id string, opts ...RequestOption) (*Customer, error) {
	return call[Customer](ctx, s.client, &spec.Customers.Get, nil, opts, id)
}

// List reads one page of customers, newest first: GET /v2/customers. Unlike
// other lists, this one has page numbers instead of cursors.
func (s *CustomersService) List(ctx context.Context, params CustomerListParams, opts ...RequestOption) (*Page[Customer], error) {
	return listPage[Customer](ctx, s.client, &spec.Customers.List, &params, opts)
}

// Pages iterates over the pages of a list, starting at the page in params. It
// ends at the first error. If customers are created during the iteration, the
// pages shift and an item may appear twice.
func (s *CustomersService) Pages(ctx context.Context, params CustomerListParams, opts ...RequestOption) iter.Seq2[*Page[Customer], error] {
	return listPages[Customer](ctx, s.client, &spec.Customers.List, &params, opts)
}

// All iterates over the customers of all pages; see Pages.
func (s *CustomersService) All(ctx context.Context, params CustomerListParams, opts ...RequestOption) iter.Seq2[*Customer, error] {
	return items(s.Pages(ctx, params, opts...))
}
