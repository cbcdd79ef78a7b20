package spec

import (
	"iter"
	"reflect"
	"strings"
)

// Operation is one row of the interface: what the client, the mock gateway,
// the documentation and the tests all need to know of a call.
type Operation struct {
	Name   string // "transactions.refund"
	Method string // "PUT"
	Path   string // the template: "/v2/transactions/{id}/refund"
	Class  Class
	Rule   Rule // of the body, or of the query of a GET; nil for none

	Numbered bool // a list by page number
}

// Class says what may be done with an operation whose outcome is not known.
type Class uint8

const (
	// Safe operations may be repeated at will: reads, and writes that set a
	// state rather than add to it.
	Safe Class = iota
	// Keyed operations carry a reference that makes the gateway reject a second
	// one, or return the first one's result. They may be repeated with the same
	// bytes.
	Keyed
	// Unsafe operations are repeated only if nothing was sent or the gateway
	// said that it did nothing.
	Unsafe
)

// String returns the class as docs/interface.md writes it.
func (c Class) String() string { return [...]string{"safe", "keyed", "unsafe"}[c] }

// operation returns a row; route is "PUT /v2/transactions/{id}/refund".
func operation(name, route string, class Class, rule Rule) Operation {
	method, path, _ := strings.Cut(route, " ")
	return Operation{Name: name, Method: method, Path: path, Class: class, Rule: rule}
}

func numbered(list Operation) Operation {
	list.Numbered = true
	return list
}

// Operations ranges over every row.
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
