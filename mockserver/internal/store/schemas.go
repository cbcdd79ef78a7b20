package store

import (
	"strconv"
	"strings"
	"time"

	"github.com/gateway-go/gateway/mockserver/internal/engine"
)

// The indexes of transactions.
const (
	TransactionsByEmail = iota // posting; lower case
)

// The facets of transactions.
const (
	TransactionStatus = iota
	TransactionMethod
	TransactionCurrency
	TransactionDelivery // "" without one
	TransactionInstallments
	TransactionTraceable // "true" or "false"
)

func transactions() schema[engine.Transaction] {
	return schema[engine.Transaction]{
		name:    "transactions",
		id:      func(t *engine.Transaction) string { return t.ID },
		created: func(t *engine.Transaction) time.Time { return t.CreatedAt },
		ref:     func(t *engine.Transaction) string { return t.ExternalRef },
		postings: []func(*engine.Transaction) string{
			TransactionsByEmail: func(t *engine.Transaction) string { return strings.ToLower(t.Buyer.Email) },
		},
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
	}
}

func customers() schema[engine.Customer] {
	return schema[engine.Customer]{
		name:    "customers",
		id:      func(c *engine.Customer) string { return c.ID },
		created: func(c *engine.Customer) time.Time { return c.CreatedAt },
		ref:     func(c *engine.Customer) string { return c.ExternalRef },
	}
}

func transfers() schema[engine.Transfer] {
	return schema[engine.Transfer]{
		name:    "transfers",
		id:      func(t *engine.Transfer) string { return t.ID },
		created: func(t *engine.Transfer) time.Time { return t.CreatedAt },
		ref:     func(t *engine.Transfer) string { return t.ExternalRef },
	}
}

func subscriptions() schema[engine.Subscription] {
	return schema[engine.Subscription]{
		name:    "subscriptions",
		id:      func(s *engine.Subscription) string { return s.ID },
		created: func(s *engine.Subscription) time.Time { return s.CreatedAt },
	}
}

func links() schema[engine.Link] {
	return schema[engine.Link]{
		name: "links",
		id:   func(l *engine.Link) string { return l.Slug },
	}
}

func sessions() schema[engine.Session] {
	return schema[engine.Session]{
		name: "sessions",
		id:   func(s *engine.Session) string { return s.ID },
	}
}
