package ledger

import (
	"errors"
	"strings"
)

// ErrNotFound reports that there is no such record.
var ErrNotFound = errors.New("merchant: there is no such record")

// A subject is what has money of its own in the table of orders: an order, a sale by link, a
// subscription, a payout that belongs to no order, or the corrections of an account.
const (
	order        = "order/"
	link         = "link/"
	subscription = "subscription/"
	payout       = "payout/"
	account      = "account/"
)

// OrderSubject returns the subject of an order.
func OrderSubject(id string) string { return order + id }

// SaleSubject returns the subject of a sale by link.
func SaleSubject(transaction string) string { return link + strings.ToLower(transaction) }

// SubscriptionSubject returns the subject of a subscription.
func SubscriptionSubject(id string) string { return subscription + id }

// PayoutSubject returns the subject of a payout that belongs to no order.
func PayoutSubject(id string) string { return payout + id }

// AccountSubject returns the subject of the corrections of an account.
func AccountSubject(name string) string { return account + name }

// OrderID returns the ID of an order, "" if the subject is something else.
func OrderID(subject string) string { return idOf(subject, order) }

// SubscriptionID returns the ID of a subscription, "" if the subject is something else.
func SubscriptionID(subject string) string { return idOf(subject, subscription) }

func idOf(subject, kind string) string {
	id, ok := strings.CutPrefix(subject, kind)
	if !ok {
		return ""
	}
	return id
}
