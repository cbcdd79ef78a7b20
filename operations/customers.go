package operations

import (
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/spec"
)

const kindCreateCustomer = "customers.create"

// CreateCustomer creates a customer: POST /v2/customers. ExternalRef is required
// and is its key.
type CreateCustomer gateway.CustomerParams

// CustomerResult is the outcome of a [CreateCustomer].
type CustomerResult = Result[CreateCustomer, gateway.Customer]

// Validate implements [Operation].
func (c CreateCustomer) Validate() error {
	return errors.Join(checkIdentity(c, "externalRef", ""), gateway.CustomerParams(c).Validate())
}

func (c CreateCustomer) identity() identity {
	return identity{kind: kindCreateCustomer, key: c.ExternalRef}
}

func (CreateCustomer) repeat() repeatability     { return byReference }
func (CreateCustomer) result() *gateway.Customer { return new(gateway.Customer) }

func (CreateCustomer) begin(context.Context, *session) (snapshot, any, error) {
	return snapshot{}, nil, nil
}

func (c CreateCustomer) send(ctx context.Context, s *session, _ *snapshot) (any, error) {
	return s.client.Customers.Create(ctx, gateway.CustomerParams(c), s.options...)
}

// look searches for the reference. The interface document names neither the filters
// of the list nor the members of its customers, so the gateway may list all
// customers, or this one without its reference.
func (c CreateCustomer) look(ctx context.Context, s *session, _ *snapshot) (v verdict, err error) {
	pages := func(ctx context.Context, _ string) iter.Seq2[*gateway.Page[gateway.Customer], error] {
		// This list has page numbers. New customers move the others to later pages.
		return s.client.Customers.Pages(ctx, gateway.CustomerListParams{
			ExternalRef: c.ExternalRef, Page: s.search.Pages + 1, Limit: spec.MaxCustomerPageSize,
		}, s.readPages()...)
	}
	err = searchList(ctx, s, pages, func(listed *gateway.Customer) (bool, error) {
		why := c.differs(listed)
		switch {
		case listed.ExternalRef == "" && why == "":
			v = verdict{finding: unclear, why: "a repeat of the request was rejected, and the customer " + listed.ID +
				" has the e-mail address but no reference, so it may come from another request"}
			return true, nil
		case listed.ExternalRef != c.ExternalRef:
			return false, nil
		case why != "":
			v = verdict{finding: unclear, why: why}
			return true, nil
		}
		v = verdict{finding: applied, result: listed}
		return true, nil
	})
	return v, err
}

// differs compares what the client compares too: the gateway may return the other
// members in another format.
func (c CreateCustomer) differs(value any) string {
	customer, ok := value.(*gateway.Customer)
	switch {
	case !ok:
		return "it is no customer"
	case customer.ExternalRef != "" && customer.ExternalRef != c.ExternalRef:
		return "the customer " + customer.ID + " has another reference"
	case customer.Email != "" && !strings.EqualFold(customer.Email, c.Email):
		return "the customer " + customer.ID + " has the reference but another e-mail address"
	}
	return ""
}

func (CreateCustomer) decided(ctx context.Context, s *session, _ *snapshot, id string) (any, error) {
	return s.client.Customers.Get(ctx, id, s.read()...)
}
