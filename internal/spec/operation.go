package spec

import (
	"iter"
	"reflect"
	"strings"
)

// Operation describes one operation of the interface, for the client, the mock
// gateway, the documentation and the tests.
type Operation struct {
	Name   string // "transactions.refund"
	Method string // "PUT"
	Path   string // the template: "/v2/transactions/{id}/refund"
	Class  Class
	Rule   Rule // for the body, or for the query of a GET; nil if there is none

	Numbered bool // a list paginated by page number
}

// Class says whether an operation may be repeated if its outcome is unknown.
type Class uint8

const (
	// Safe operations may always be repeated: reads, and writes that set a
	// state rather than add to it.
	Safe Class = iota
	// Keyed operations carry a reference that lets the gateway reject a repeat
	// or return the original result. They may be repeated with the same bytes.
	Keyed
	// Unsafe operations are repeated only if nothing was sent or the gateway
	// reported that it did nothing.
	Unsafe
)

// String returns the class as it is written in docs/interface.md.
func (c Class) String() string { return [...]string{"safe", "keyed", "unsafe"}[c] }

// operation returns an Operation; route is, for example, "PUT
// /v2/transactions/{id}/refund".
func operation(name, route string, class Class, rule Rule) Operation {
	method, path, _ := strings.Cut(route, " ")
	return Operation{Name: name, Method: method, Path: path, Class: class, Rule: rule}
}

func numbered(list Operation) Operation {
	list.Numbered = true
	return list
}

// Operations iterates over all operations except those of [HostedCheckout].
func Operations() iter.Seq[Operation] {
	return func(yield func(Operation) bool) {
		for _, resource := range [...]any{Transactions, Transfers, Customers, Subscriptions, CheckoutLinks, CheckoutSessions, Legacy} {
			for _, field := range reflect.ValueOf(resource).Fields() {
				if op, ok := field.Interface().(Operation); ok && !yield(op) {
					return
				}
			}
		}
	}
}
