package spec

import (
	"iter"
	"slices"
	"strings"
)

// Set is a closed list of values.
type Set struct{ values []string }

func setOf(values ...string) Set { return Set{values: values} }

// with returns a Set with the values of s and more.
func (s Set) with(more ...string) Set { return Set{values: append(slices.Clip(s.values), more...)} }

// Has reports whether v is one of the values.
func (s Set) Has(v string) bool { return slices.Contains(s.values, v) }

// All iterates over the values in the interface document's order.
func (s Set) All() iter.Seq[string] { return slices.Values(s.values) }

// String lists the values for an error message.
func (s Set) String() string { return strings.Join(s.values, ", ") }

// Limits shared by several resources; the others are in each resource's file.
// Limits are inclusive. Amounts are in cents, lengths in characters.
const (
	MinAmount      = 1
	MaxAmount      = 100_000_000 // of a transaction, a product, a subscription, a checkout link
	MaxProducts    = 100
	MaxProductName = 255
	MaxQuantity    = 999_999
	MaxNotifyURL   = 2048
)

// Limits that the interface document does not state.
const (
	MaxPageSize   = 100       // cursor lists
	MaxSafeAmount = 1<<53 - 1 // of a payout or a v1 payment: the largest integer that every JSON parser represents exactly
)

// Enums shared by several resources. Values found only in the live dialect or
// in another source are in separate Sets.
var (
	Methods       = setOf("pix", "voucher", "credit_card")
	Currencies    = setOf("ARS", "BOB", "BRL", "CLP", "COP", "CRC", "GTQ", "MXN", "PYG", "PEN", "USD", "UYU")
	Countries     = setOf("AR", "BO", "BR", "CL", "CO", "CR", "EC", "GT", "MX", "PA", "PY", "PE", "UY")
	DocumentTypes = setOf("DNI", "CUIT", "CI", "CE", "NIT", "CPF", "CNPJ", "RUT", "RUN", "CC", "CDI", "PP",
		"RUC", "PAS", "DPI", "CUI", "RFC", "CURP")
	// BillingCurrencies are the currencies of subscriptions and checkout
	// links.
	BillingCurrencies = setOf("BRL", "MXN", "COP", "CLP", "ARS", "PEN", "USD", "GTQ", "CRC", "NIO", "PYG", "UYU",
		"BOB", "PHP", "RUB", "INR", "SAR", "AED", "KWD", "QAR", "OMR", "KHR", "SGD", "IDR", "KRW", "THB", "MYR",
		"HKD", "CNY", "EGP", "EUR", "GBP", "BHD", "MAD", "AUD", "CAD", "CHF", "NZD", "PLN", "KZT", "UZS", "JPY", "GLC")
	Directions = setOf("next", "prev")
)
