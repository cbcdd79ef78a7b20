package store

import (
	"strconv"
	"strings"
	"time"

	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/memlimit"
)

// The facets and postings of transactions.
const (
	TransactionStatus Facet[engine.Transaction] = iota
	TransactionMethod
	TransactionCurrency
	TransactionDelivery // "" without a delivery
	TransactionInstallments
	TransactionTraceable // "true" or "false"

	TransactionEmail Posting[engine.Transaction] = 0 // lower case
)

func transactions() schema[engine.Transaction] {
	return schema[engine.Transaction]{
		name:    "transactions",
		id:      func(t *engine.Transaction) string { return t.ID },
		size:    memlimit.SizeOfTransaction,
		times:   func(t *engine.Transaction) (created, updated time.Time) { return t.CreatedAt, t.UpdatedAt },
		created: func(t *engine.Transaction) time.Time { return t.CreatedAt },
		ref:     func(t *engine.Transaction) string { return t.ExternalRef },
		facets: []func(*engine.Transaction) string{
			TransactionStatus:   func(t *engine.Transaction) string { return t.Status },
			TransactionMethod:   func(t *engine.Transaction) string { return t.Method },
			TransactionCurrency: func(t *engine.Transaction) string { return t.Currency },
			TransactionDelivery: func(t *engine.Transaction) string {
				if t.Delivery == nil {
					return ""
				}
				return t.Delivery.Status
			},
			TransactionInstallments: func(t *engine.Transaction) string { return strconv.Itoa(t.Installments) },
			TransactionTraceable:    func(t *engine.Transaction) string { return strconv.FormatBool(t.Traceable) },
		},
		postings: []func(*engine.Transaction) string{
			TransactionEmail: func(t *engine.Transaction) string { return strings.ToLower(t.Buyer.Email) },
		},
	}
}

// The facets and postings of customers.
const (
	CustomerStatus Facet[engine.Customer] = 0

	CustomerEmail Posting[engine.Customer] = iota - 1 // lower case
	CustomerDocument
	CustomerPhone
	CustomerIP
)

func customers() schema[engine.Customer] {
	return schema[engine.Customer]{
		name:    "customers",
		id:      func(c *engine.Customer) string { return c.ID },
		size:    memlimit.SizeOfCustomer,
		times:   func(c *engine.Customer) (created, updated time.Time) { return c.CreatedAt, c.UpdatedAt },
		created: func(c *engine.Customer) time.Time { return c.CreatedAt },
		ref:     func(c *engine.Customer) string { return c.ExternalRef },
		facets: []func(*engine.Customer) string{
			CustomerStatus: func(c *engine.Customer) string { return c.Status },
		},
		postings: []func(*engine.Customer) string{
			CustomerEmail: func(c *engine.Customer) string { return strings.ToLower(c.Email) },
			CustomerDocument: func(c *engine.Customer) string {
				if c.Document == nil {
					return ""
				}
				return c.Document.Number
			},
			CustomerPhone: func(c *engine.Customer) string { return c.Phone },
			CustomerIP:    func(c *engine.Customer) string { return c.IPAddress },
		},
	}
}

// TransferStatus is the facet of transfers.
const TransferStatus Facet[engine.Transfer] = 0

func transfers() schema[engine.Transfer] {
	return schema[engine.Transfer]{
		name:  "transfers",
		id:    func(t *engine.Transfer) string { return t.ID },
		size:  memlimit.SizeOfTransfer,
		times: func(t *engine.Transfer) (created, updated time.Time) { return t.CreatedAt, t.UpdatedAt },
		ref:   func(t *engine.Transfer) string { return t.ExternalRef },
		facets: []func(*engine.Transfer) string{
			TransferStatus: func(t *engine.Transfer) string { return t.Status },
		},
	}
}

// The facet and the posting of subscriptions.
const (
	SubscriptionStatus Facet[engine.Subscription]   = 0
	SubscriptionEmail  Posting[engine.Subscription] = 0 // lower case
)

// A subscription's reference is its idempotency key.
func subscriptions() schema[engine.Subscription] {
	return schema[engine.Subscription]{
		name:    "subscriptions",
		id:      func(s *engine.Subscription) string { return s.ID },
		size:    memlimit.SizeOfSubscription,
		times:   func(s *engine.Subscription) (created, updated time.Time) { return s.CreatedAt, s.UpdatedAt },
		created: func(s *engine.Subscription) time.Time { return s.CreatedAt },
		ref:     func(s *engine.Subscription) string { return s.IdempotencyKey },
		facets: []func(*engine.Subscription) string{
			SubscriptionStatus: func(s *engine.Subscription) string { return s.Status },
		},
		postings: []func(*engine.Subscription) string{
			SubscriptionEmail: func(s *engine.Subscription) string {
				if s.Customer == nil {
					return ""
				}
				return strings.ToLower(s.Customer.Email)
			},
		},
	}
}

// A link's id in its table is its slug.
func links() schema[engine.Link] {
	return schema[engine.Link]{
		name:  "links",
		id:    func(l *engine.Link) string { return l.Slug },
		size:  memlimit.SizeOfLink,
		times: func(l *engine.Link) (created, updated time.Time) { return l.CreatedAt, l.UpdatedAt },
	}
}

// A product's id is a number, and its reference the external id.
func products() schema[engine.CatalogProduct] {
	return schema[engine.CatalogProduct]{
		name:  "products",
		id:    func(p *engine.CatalogProduct) string { return strconv.FormatInt(p.ID, 10) },
		size:  memlimit.SizeOfProduct,
		times: func(*engine.CatalogProduct) (created, updated time.Time) { return created, updated }, // always current
		ref:   func(p *engine.CatalogProduct) string { return p.ExternalID },
	}
}

// SessionSlug is the posting of sessions.
const SessionSlug Posting[engine.Session] = 0

// A session's reference is its token.
func sessions() schema[engine.Session] {
	return schema[engine.Session]{
		name:  "sessions",
		id:    func(s *engine.Session) string { return s.ID },
		size:  memlimit.SizeOfSession,
		times: func(s *engine.Session) (created, updated time.Time) { return s.CreatedAt, s.UpdatedAt },
		ref:   func(s *engine.Session) string { return s.Token },
		postings: []func(*engine.Session) string{
			SessionSlug: func(s *engine.Session) string { return s.Slug },
		},
	}
}
