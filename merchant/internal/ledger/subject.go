package ledger

import (
	"errors"
	"strings"
)

// ErrNotFound reports that there is no such record.
var ErrNotFound = errors.New("merchant: there is no such record")

// Subject is what has money of its own in the table of orders: an order, a sale by link, a
// subscription, a payout that belongs to no order, or the corrections of an account. Two
// companies may have orders with the same ID, so a subject is in the book of one.
type Subject struct {
	Book string
	ID   string // unique in the book, such as "order/A17"
}

func (s Subject) String() string { return s.Book + ": " + s.ID }

const (
	order        = "order/"
	link         = "link/"
	subscription = "subscription/"
	payout       = "payout/"
	account      = "account/"
)

// OrderSubject returns the subject of an order.
func OrderSubject(book, id string) Subject { return Subject{book, order + id} }

// SaleSubject returns the subject of a sale by link.
func SaleSubject(book, transaction string) Subject {
	return Subject{book, link + strings.ToLower(transaction)}
}

// SubscriptionSubject returns the subject of a subscription.
func SubscriptionSubject(book, id string) Subject { return Subject{book, subscription + id} }

// PayoutSubject returns the subject of a payout that belongs to no order.
func PayoutSubject(book, id string) Subject { return Subject{book, payout + id} }

// AccountSubject returns the subject of the corrections of an account.
func AccountSubject(book, name string) Subject { return Subject{book, account + name} }

// OrderID returns the ID of an order, "" if the subject is something else.
func OrderID(s Subject) string { return s.id(order) }

// SubscriptionID returns the ID of a subscription, "" if the subject is something else.
func SubscriptionID(s Subject) string { return s.id(subscription) }

// IsSale reports whether the subject is a sale by link.
func (s Subject) IsSale() bool { return strings.HasPrefix(s.ID, link) }

func (s Subject) id(kind string) string {
	id, ok := strings.CutPrefix(s.ID, kind)
	if !ok {
		return ""
	}
	return id
}
