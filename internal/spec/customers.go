package spec

import "strings"

// Customers are the operations of /v2/customers.
var Customers = struct{ Create, List, Get Operation }{
	Create: operation("customers.create", "POST /v2/customers", Keyed, Customer),
	List:   numbered(operation("customers.list", "GET /v2/customers", Safe, CustomerList)),
	Get:    operation("customers.get", "GET /v2/customers/{id}", Safe, nil),
}

// Limits of customers; shared limits are in values.go.
const (
	MaxCustomerPage     = 1_000_000
	MaxCustomerPageSize = 100
)

// Enums of customers.
var (
	CustomerDocumentTypes = DocumentTypes.with("EIN", "PASS", "PEP", "CEDULA", "NIN")
	// CustomerStatuses may be incomplete: only the status of a new customer is
	// documented.
	CustomerStatuses = setOf("active")
)

// livePhoneDigits is the length of a Brazilian area code and mobile number.
const livePhoneDigits = 11

// Customer checks the body of POST /v2/customers.
func Customer(o *Object) {
	o.String("name", Required).MinLen(1)
	o.String("email", Required).Email()
	phone := o.String("phone", Nullable)
	if o.Variant().Dialect.Live(CustomerPhone) {
		phone.Match(func(s string) bool { return len(s) == livePhoneDigits && digits(s) },
			Format{Must: "must be 11 digits: an area code and a mobile number", Pattern: "^[0-9]{11}$"})
	}
	o.Object("document", Nullable, customerDocument)
	o.String("externalRef", Nullable)
	o.Object("address", Nullable, customerAddress)
	if o.Variant().Dialect.Live(CustomerRead) {
		o.String("birth_date", Nullable)
	}
	ip := o.String("ip_address", Nullable)
	if !o.Variant().Dialect.Live(CustomerFormats) {
		ip.IP()
	}
}

func customerDocument(o *Object) {
	if !o.Variant().Dialect.Live(CustomerFormats) {
		document(o, CustomerDocumentTypes)
		return
	}
	o.Enum("type", Required, CustomerDocumentTypes)
	o.String("number", Required)
}

func customerAddress(o *Object) {
	if !o.Variant().Dialect.Live(CustomerFormats) {
		Address(o)
		return
	}
	postal(o)
	o.String("country", Optional).Match(isTwoLetters, Format{Must: "must be two letters", Pattern: "^[A-Za-z]{2}$"})
}

func isTwoLetters(s string) bool {
	return len(s) == 2 && alphanumeric(s) && !strings.ContainsAny(s, "0123456789")
}

// CustomerList checks the query of GET /v2/customers. Filters may be any string
// and are compared as they are.
func CustomerList(o *Object) {
	o.Int("page", Optional).Between(1, MaxCustomerPage)
	o.Int("limit", Optional).Between(1, MaxCustomerPageSize)
	for _, filter := range [...]string{"search", "document_number", "email", "phone", "external_ref", "status", "ip_address"} {
		o.String(filter, Optional)
	}
}

func digits(s string) bool { return strings.Trim(s, "0123456789") == "" }

// OnlyDigits returns the digits of s.
func OnlyDigits(s string) string {
	return strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, s)
}
