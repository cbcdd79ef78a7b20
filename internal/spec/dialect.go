package spec

import (
	"math/bits"
	"strings"
)

// Dialect selects a reading for each row of docs/assumptions.md in which
// gateways differ: the interface document's, or the published (live)
// gateway's. The zero Dialect is the document's reading of every row.
type Dialect uint64

// Row is a row of docs/assumptions.md in which gateways differ.
type Row uint8

// The rows.
const (
	ListEnvelope Row = iota
	TransactionStates
	ChallengeState
	RepeatedTransfer
	ValidationStatus
	PlainErrors
	TransferMinimum
	VoucherAddress
	TransactionMetadata
	TransferAmount
	ListedTransaction // and listed-fee, which is about a member that exists only in its live reading
	MethodOptional
	BuyerIDAlone
	PixDocument
	IdempotencyHeader
	DeliveryErrors
	NullMembers
	CustomerFormats
	CancellationReason
	MalformedID
	LinkProductLimits
	BasePrice
	Informations
	CustomerRead
	RepeatedSubscription
	PixAutomaticMembers
	PixAuthorization
	APIVersion
	AbsentPhone
	SandboxPays
	BodyNotObject
	CustomerPhone
	HostedRoutes
	PartialRefundEvent
	ColombianVouchers
	rows
)

// rowIDs are the rows' ids in docs/assumptions.md.
var rowIDs = [rows]string{
	ListEnvelope:         "list-envelope",
	TransactionStates:    "transaction-states",
	ChallengeState:       "challenge-state",
	RepeatedTransfer:     "repeated-transfer",
	ValidationStatus:     "validation-status",
	PlainErrors:          "plain-errors",
	TransferMinimum:      "transfer-minimum",
	VoucherAddress:       "voucher-address",
	TransactionMetadata:  "transaction-metadata",
	TransferAmount:       "transfer-amount",
	ListedTransaction:    "listed-transaction",
	MethodOptional:       "method-optional",
	BuyerIDAlone:         "buyer-id-alone",
	PixDocument:          "pix-document",
	IdempotencyHeader:    "idempotency-header",
	DeliveryErrors:       "delivery-errors",
	NullMembers:          "null-members",
	CustomerFormats:      "customer-formats",
	CancellationReason:   "cancellation-reason",
	MalformedID:          "malformed-id",
	LinkProductLimits:    "link-product-limits",
	BasePrice:            "base-price",
	Informations:         "informations",
	CustomerRead:         "customer-read",
	RepeatedSubscription: "repeated-subscription",
	PixAutomaticMembers:  "pix-automatic-members",
	PixAuthorization:     "pix-authorization",
	APIVersion:           "api-version",
	AbsentPhone:          "absent-phone",
	SandboxPays:          "sandbox-pays",
	BodyNotObject:        "body-not-object",
	CustomerPhone:        "customer-phone",
	HostedRoutes:         "hosted-routes",
	PartialRefundEvent:   "partial-refund-event",
	ColombianVouchers:    "colombian-vouchers",
}

// The two known dialects.
const (
	DocumentDialect Dialect = 0
	LiveDialect     Dialect = 1<<rows - 1
)

// ClientDialect has the live readings that check a member which gateways of the
// document ignore. The client checks its params with it: any other live reading
// would reject what such a gateway accepts.
const ClientDialect Dialect = 1 << Informations

// RowOf returns the row with the given id.
func RowOf(id string) (r Row, found bool) {
	for i, own := range rowIDs {
		if own == id {
			return Row(i), true
		}
	}
	return 0, false
}

// With returns d with the live reading of r.
func (d Dialect) With(r Row) Dialect { return d | 1<<r }

// Live reports whether d has the live reading of r.
func (d Dialect) Live(r Row) bool { return d&(1<<r) != 0 }

// Nearest returns DocumentDialect or LiveDialect, whichever shares more
// readings with d.
func (d Dialect) Nearest() Dialect {
	if bits.OnesCount64(uint64(d)) > int(rows)/2 {
		return LiveDialect
	}
	return DocumentDialect
}

// String returns "document", "live", or for a mixture the rows with the live
// reading: "live in repeated-transfer, transfer-minimum".
func (d Dialect) String() string {
	switch d {
	case DocumentDialect:
		return "document"
	case LiveDialect:
		return "live"
	default:
		var ids []string
		for i, id := range rowIDs {
			if d&(1<<i) != 0 {
				ids = append(ids, id)
			}
		}
		return "live in " + strings.Join(ids, ", ")
	}
}
