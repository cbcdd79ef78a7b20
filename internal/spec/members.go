package spec

import (
	"slices"
	"strings"
)

// Members says which members of a response must be readable. Live gateways send some
// members in several types; whoever reads a response must not lose a payment to one that
// only informs, and must not guess one that decides about money.
//
// A path has the names of the members that contain it, without indices: the elements of a
// list have the list's path.
type Members struct {
	Resource string // for people

	// Strict are the members that decide about money: ids, states, amounts, currencies and
	// references. A value of another type is an error. So is one of an object or a list
	// that contains a strict member. Text that is exactly an integer is an amount.
	Strict []string

	// Whole are lists and objects whose members mean nothing without the others: if one of
	// them can't be read, all are left out.
	Whole []string
}

// The members of each resource. Any other member with a value of another type is left
// out. A time never has another type: one that can't be read is unknown.
var (
	TransactionMembers = Members{
		Resource: "transaction",
		Strict: []string{
			"id", "status", "amount", "base_price", "paid_amount", "refunded_amount", "currency", "external_ref",
			"payment.amount", "payment.base_price", "payment.currency", "payment.external_ref", // of the items of live lists
		},
		Whole: []string{"fee", "products", "splits", "payment.fee"},
	}
	SandboxMembers      = within("transaction", TransactionMembers, "sandbox status")
	RefundMembers       = Members{Resource: "refund", Strict: []string{"amount_refunded", "remaining_balance"}}
	DeliveryMembers     = Members{Resource: "delivery", Strict: []string{"status"}}
	TransferMembers     = Members{Resource: "transfer", Strict: []string{"id", "status", "amount", "external_ref"}}
	CustomerMembers     = Members{Resource: "customer", Strict: []string{"id", "status", "externalRef"}}
	SubscriptionMembers = Members{
		Resource: "subscription",
		Strict: []string{
			"id", "status", "amount", "currency",
			"transactions.id", "transactions.status", "transactions.amount", "transactions.paidAmount",
			"transactions.refundedAmount", "transactions.currency", "transactions.externalRef",
		},
		Whole: []string{"products", "retryOffsetsDays"},
	}
	// NextActionMembers are those of a transaction's next action.
	NextActionMembers = Members{Resource: "next action"}
	// AuthorizationMembers are those of a Pix Automatico's authorization, inside a subscription.
	AuthorizationMembers   = Members{Resource: "authorization"}
	CheckoutLinkMembers    = Members{Resource: "checkout link", Strict: []string{"url"}}
	CheckoutSessionMembers = Members{
		Resource: "checkout session",
		Strict:   []string{"session_token", "link.id", "link.status", "link.amount", "link.currency"},
		Whole:    []string{"items", "link.payment_methods"},
	}
	CheckoutSessionStateMembers = Members{Resource: "checkout session update", Strict: []string{"status"}}

	PixPaymentMembers   = Members{Resource: "v1 payment", Strict: []string{"transactionId", "status"}}
	PaymentTokenMembers = Members{Resource: "payment token", Strict: []string{"token"}}

	// PageMembers are those of a list besides its items, in either shape.
	PageMembers = Members{
		Resource: "page of a list",
		Strict:   []string{"total", "next_cursor", "prev_cursor", "metadata.page", "metadata.limit", "metadata.total"},
	}
)

// ResponseMembers lists the tables of all responses.
func ResponseMembers() []*Members {
	return []*Members{
		&TransactionMembers, &NextActionMembers, &RefundMembers, &SandboxMembers, &DeliveryMembers, &TransferMembers, &CustomerMembers,
		&SubscriptionMembers, &AuthorizationMembers, &CheckoutLinkMembers, &CheckoutSessionMembers, &CheckoutSessionStateMembers,
		&PixPaymentMembers, &PaymentTokenMembers, &PageMembers,
	}
}

// within returns the members of a resource that is the value of a member.
func within(member string, m Members, resource string) Members {
	inside := func(paths []string) []string {
		out := make([]string, len(paths))
		for i, path := range paths {
			out[i] = member + "." + path
		}
		return out
	}
	return Members{Resource: resource, Strict: inside(m.Strict), Whole: inside(m.Whole)}
}

// IsStrict reports whether a path is strict or contains a strict member. Without a table,
// every path is.
func (m *Members) IsStrict(path string) bool {
	return m == nil || path == "" || slices.ContainsFunc(m.Strict, func(strict string) bool {
		return strict == path || strings.HasPrefix(strict, path+".")
	})
}

// IsWhole reports whether a path is left out as a whole.
func (m *Members) IsWhole(path string) bool { return m != nil && slices.Contains(m.Whole, path) }
