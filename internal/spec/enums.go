package spec

import (
	"iter"
	"slices"
	"strings"
)

// Set is a closed list of values.
type Set struct{ values []string }

func setOf(values ...string) Set { return Set{values: values} }

// with returns a Set of the values of s and more.
func (s Set) with(more ...string) Set { return Set{values: append(slices.Clip(s.values), more...)} }

// Has reports whether v is one of the values.
func (s Set) Has(v string) bool { return slices.Contains(s.values, v) }

// All ranges over the values in the interface's order.
func (s Set) All() iter.Seq[string] { return slices.Values(s.values) }

// String lists the values for an error message.
func (s Set) String() string { return strings.Join(s.values, ", ") }

// The enums of the interface document. What only the live dialect or another
// source knows is a Set of its own.
var (
	Methods    = setOf("pix", "voucher", "credit_card")
	Currencies = setOf("ARS", "BOB", "BRL", "CLP", "COP", "CRC", "GTQ", "MXN", "PYG", "PEN", "USD", "UYU")
	Countries  = setOf("AR", "BO", "BR", "CL", "CO", "CR", "EC", "GT", "MX", "PA", "PY", "PE", "UY")

	DocumentTypes = setOf("DNI", "CUIT", "CI", "CE", "NIT", "CPF", "CNPJ", "RUT", "RUN", "CC", "CDI", "PP",
		"RUC", "PAS", "DPI", "CUI", "RFC", "CURP")
	CustomerDocumentTypes = DocumentTypes.with("EIN", "PASS", "PEP", "CEDULA", "NIN")

	// BillingCurrencies are those of subscriptions and checkout links.
	BillingCurrencies = setOf("BRL", "MXN", "COP", "CLP", "ARS", "PEN", "USD", "GTQ", "CRC", "NIO", "PYG", "UYU",
		"BOB", "PHP", "RUB", "INR", "SAR", "AED", "KWD", "QAR", "OMR", "KHR", "SGD", "IDR", "KRW", "THB", "MYR",
		"HKD", "CNY", "EGP", "EUR", "GBP", "BHD", "MAD", "AUD", "CAD", "CHF", "NZD", "PLN", "KZT", "UZS", "JPY", "GLC")

	TransactionStatuses = setOf("pending", "paid", "expired", "canceled", "refused", "refunded",
		"partially_refunded", "chargedback", "captured")
	LiveTransactionStatuses = TransactionStatuses.with("authorized", "three_ds_required", "in_protest",
		"partially_paid", "processing", "processed", "med")

	// CustomerStatuses is open: only the state of a new customer is known.
	CustomerStatuses = setOf("active")

	PixKeyTypes          = setOf("CPF", "CNPJ", "EMAIL", "PHONE", "EVP")
	TransferStatuses     = setOf("pending", "in_analysis", "processing", "paid", "error", "cancelled")
	LiveTransferStatuses = TransferStatuses.with("scheduled", "rejected", "unknown")

	LegacyPaymentTypes  = setOf("PIX")
	LegacySplitKeyTypes = setOf("DOCUMENT", "EMAIL", "PHONE", "RANDOM")
	LegacyStatuses      = setOf("IN_ANALYSIS", "WAITING_CONFIRMATION", "WAITING_PAYMENT", "WAITING_WITHDRAW",
		"WITHDRAW_REQUEST", "WITHDRAW_PAID", "WEBHOOK_UPDATED", "WEBHOOK_ERROR", "PAID", "CANCELLED", "REVERSED",
		"REFUND", "REFUND_IN", "REFUND_OUT", "SOFT_REFUND", "ERROR", "PENDING_APPROVAL", "APPROVED", "DECLINED")

	DeliveryStatuses = setOf("waiting", "in_transit", "delivered")
	Directions       = setOf("next", "prev")

	SubscriptionMethods  = setOf("credit_card", "pix_automatic")
	Intervals            = setOf("day", "week", "month")
	FailurePolicies      = setOf("immediate_cancel", "retry_then_cancel")
	SubscriptionStatuses = setOf("incomplete", "trialing", "active", "past_due", "cancel_scheduled", "canceled")
	CancellationReasons  = setOf("user_requested", "payment_failure", "chargeback", "system")
	// AuthorizationStatuses are those of a Pix Automatico's authorisation.
	AuthorizationStatuses = setOf("pending", "approved", "rejected", "expired", "canceled")

	LinkStatuses    = setOf("active", "exhausted", "expired", "inactive")
	SessionStatuses = setOf("open", "ready", "processing", "completed", "expired")
	ItemTypes       = setOf("physical", "digital")
)
