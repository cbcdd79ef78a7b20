package httpapi

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

func (a *API) customerRoutes() []route {
	return []route{
		{
			Operation: spec.Customers.Create, status: 201,
			do: withBody(a.createCustomer), data: customerView{}, refusals: []string{engine.CodeDuplicateReference},
		},
		{
			Operation: spec.Customers.List, status: 200,
			do: listCustomers, data: customerView{},
		},
		{
			Operation: spec.Customers.Get, status: 200,
			do: a.getCustomer, data: customerView{}, live: liveCustomerView{}, refusals: []string{engine.CodeNotFound},
		},
	}
}

// customerBody is the body of a create. Its birth_date is ignored, except in the live
// reading of customer-read.
type customerBody struct {
	gateway.CustomerParams

	BirthDate string `json:"birth_date,omitzero"`
}

func (a *API) createCustomer(rq *request, in *customerBody) (any, *engine.Refusal) {
	birthDate := ""
	if a.cfg.Dialect.Live(spec.CustomerRead) {
		birthDate = in.BirthDate
	}
	c, refusal := rq.account.Apply(func(d *store.Data) (engine.Change, *engine.Refusal) {
		return engine.CreateCustomer(d.Env, d.Customers.ByRef(in.ExternalRef), engine.Customer{
			Buyer: *buyerFrom(gateway.BuyerParams{
				Name: in.Name, Email: in.Email, Phone: in.Phone, Document: in.Document, Address: in.Address, BirthDate: birthDate,
			}),
			ExternalRef: in.ExternalRef,
			IPAddress:   in.IPAddress,
		})
	})
	if refusal != nil {
		return nil, refusal
	}
	return viewCustomer(c.Customers[0]), nil
}

// defaultCustomers is the default size of a page of customers.
const defaultCustomers = 10

func customers() listed[engine.Customer, customerView] {
	return listed[engine.Customer, customerView]{
		table: func(d *store.Data) *store.Table[engine.Customer] { return &d.Customers },
		query: customerQuery,
		view:  viewCustomer,
	}
}

func listCustomers(rq *request) (any, *problem) {
	page, items, p := customers().page(rq)
	if p != nil {
		return nil, p
	}
	q := rq.r.URL.Query()
	metadata := listMetadata{Page: number(q, "page", 1), Limit: number(q, "limit", defaultCustomers), Total: page.Total}
	return numberedList{true, rq.id, metadata, items}, nil
}

func number(q url.Values, name string, fallback int) int {
	if n, err := strconv.Atoi(spec.Joined(q[name])); err == nil {
		return n
	}
	return fallback
}

func customerQuery(d *store.Data, q url.Values) store.Query[engine.Customer] {
	limit := number(q, "limit", defaultCustomers)
	query := store.Query[engine.Customer]{Limit: limit, Skip: (number(q, "page", 1) - 1) * limit}
	query.In(store.CustomerStatus, list(q, "status")...)
	query.Is(store.CustomerEmail, strings.ToLower(q.Get("email")))
	query.Is(store.CustomerDocument, q.Get("document_number"))
	query.Is(store.CustomerPhone, q.Get("phone"))
	query.Is(store.CustomerIP, q.Get("ip_address"))
	ref, search := q.Get("external_ref"), strings.ToLower(q.Get("search"))
	if ref == "" && search == "" {
		return query
	}
	if c := d.Customers.ByRef(ref); c != nil { // at most one customer has it: use the index
		query.Since, query.Until = c.CreatedAt, c.CreatedAt
	}
	query.Match = func(c *engine.Customer) bool {
		return (ref == "" || c.ExternalRef == ref) && (search == "" || found(c, search))
	}
	return query
}

// found searches the name, the e-mail and the document for a string.
func found(c *engine.Customer, text string) bool {
	return strings.Contains(strings.ToLower(c.Name), text) ||
		strings.Contains(strings.ToLower(c.Email), text) ||
		c.Document != nil && strings.Contains(strings.ToLower(c.Document.Number), text)
}

// getCustomer shows the customer in the spelling of the dialect.
func (a *API) getCustomer(rq *request) (any, *problem) {
	if !a.cfg.Dialect.Live(spec.CustomerRead) {
		return customers().byID("customer")(rq)
	}
	return listed[engine.Customer, liveCustomerView]{
		table: func(d *store.Data) *store.Table[engine.Customer] { return &d.Customers },
		view:  viewLiveCustomer,
	}.byID("customer")(rq)
}

// customerView has the document, the address and the IP address only if
// they are stored.
type customerView struct {
	ID          string        `json:"id"`
	Name        string        `json:"name"`
	Email       string        `json:"email"`
	Phone       *string       `json:"phone"`
	ExternalRef *string       `json:"externalRef"`
	Document    *documentView `json:"document,omitzero"`
	Address     *addressView  `json:"address,omitzero"`
	Status      string        `json:"status"`
	IPAddress   string        `json:"ip_address,omitzero"`
}

func viewCustomer(c *engine.Customer) customerView {
	return customerView{
		ID:          c.ID,
		Name:        c.Name,
		Email:       c.Email,
		Phone:       nullable(&c.Phone),
		ExternalRef: nullable(&c.ExternalRef),
		Document:    (*documentView)(c.Document),
		Address:     viewAddress(c.Address),
		Status:      c.Status,
		IPAddress:   c.IPAddress,
	}
}

// liveCustomerView is a customer that is read by id in the live dialect, which has
// other names for the members of the document and for the zip code.
type liveCustomerView struct {
	ID          string            `json:"id"`
	Name        string            `json:"name"`
	Email       string            `json:"email"`
	Phone       *string           `json:"phone"`
	BirthDate   *string           `json:"birth_date"`
	ExternalRef *string           `json:"externalRef"`
	Document    *liveDocumentView `json:"document,omitzero"`
	Address     *liveAddressView  `json:"address,omitzero"`
	Status      string            `json:"status"`
	IPAddress   string            `json:"ip_address,omitzero"`
}

type liveDocumentView struct {
	Type   string `json:"document_type"`
	Number string `json:"document_number"`
}

type liveAddressView struct {
	Street       string  `json:"street"`
	Number       *string `json:"number"`
	Complement   *string `json:"complement"`
	Neighborhood *string `json:"neighborhood"`
	City         string  `json:"city"`
	State        *string `json:"state"`
	ZipCode      *string `json:"zip_code"`
	Country      string  `json:"country"`
}

func viewLiveCustomer(c *engine.Customer) liveCustomerView {
	v := viewCustomer(c)
	return liveCustomerView{
		ID: v.ID, Name: v.Name, Email: v.Email, Phone: v.Phone, BirthDate: nullable(&c.BirthDate), ExternalRef: v.ExternalRef,
		Document: (*liveDocumentView)(c.Document), Address: (*liveAddressView)(v.Address), Status: v.Status, IPAddress: v.IPAddress,
	}
}
