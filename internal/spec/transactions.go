package spec

import (
	"strings"

	"github.com/gateway-go/gateway/internal/jsonread"
)

// Transactions are the operations of /v2/transactions.
var Transactions = struct{ Create, List, Get, SetSandboxStatus, Refund, UpdateDelivery Operation }{
	Create:           operation("transactions.create", "POST /v2/transactions", Keyed, Transaction),
	List:             operation("transactions.list", "GET /v2/transactions", Safe, TransactionList),
	Get:              operation("transactions.get", "GET /v2/transactions/{id}", Safe, nil),
	SetSandboxStatus: operation("transactions.set_sandbox_status", "PUT /v2/transactions/{id}", Safe, SandboxStatus),
	Refund:           operation("transactions.refund", "PUT /v2/transactions/{id}/refund", Unsafe, Refund),
	UpdateDelivery:   operation("transactions.update_delivery", "PUT /v2/transactions/{id}/delivery", Safe, Delivery),
}

// Limits of transactions; shared limits are in values.go.
const (
	MinProducts     = 1
	MaxSKU          = 255
	MinInstallments = 1
	MaxInstallments = 12
	MinInterestRate = 0
	MaxInterestRate = 100
	MinState        = 2
	MaxState        = 3
)

// Limits that the interface document does not state.
const (
	MaxRefundReason     = 500
	MaxTrackingCode     = 255
	MaxTrackingURL      = 255
	MaxTrackingCompany  = 64
	MaxInformationKey   = 64
	MaxInformationValue = 255
)

// Enums of transactions.
var (
	TransactionStatuses = setOf("pending", "paid", "expired", "canceled", "refused", "refunded",
		"partially_refunded", "chargedback", "captured")
	LiveTransactionStatuses = TransactionStatuses.with("authorized", "three_ds_required", "in_protest",
		"partially_paid", "processing", "processed", "med", "pre_chargedback", "waiting_payment")
	DeliveryStatuses = setOf("waiting", "in_transit", "delivered")
)

// Transaction checks the body of POST /v2/transactions.
func Transaction(o *Object) {
	v := o.Variant()
	details := Required
	if v.Lenient {
		details = Optional
	}
	method := Required
	if v.Dialect.Live(MethodOptional) {
		method = Optional
	}
	o.String("external_ref", Nullable)
	o.Int("amount", Required).Between(MinAmount, MaxAmount)
	o.Enum("currency", Optional, Currencies)
	o.Enum("method", method, Methods)
	o.Int("installments", Nullable).Between(MinInstallments, MaxInstallments)
	o.Number("interest_rate", Nullable, MinInterestRate, MaxInterestRate)
	o.Object("buyer", details, buyer)
	o.Array("products", details).Len(MinProducts, MaxProducts).Each(Product)
	cardToken(o.String("token", o.When("method", "credit_card").Required("token", Optional)))
	o.String("notify_url", Nullable).MaxLen(MaxNotifyURL).HTTPS()
	o.String("metadata", Nullable)
	o.Bool("traceable", Optional)
	o.String("ip_address", Nullable).IP()
	if v.Dialect.Live(Informations) {
		o.Array("informations", Optional).Len(0, MaxInformations).Each(transactionInformation)
	}
	if !v.Dialect.Live(VoucherAddress) { // in addition to the rules for every address; the default country is sufficient
		voucher := o.When("method", "voucher")
		voucher.Require("buyer.address", "for a voucher")
		voucher.Require("buyer.address.zipCode", "for a voucher")
	}
}

func transactionInformation(o *Object) {
	o.String("key", Required).MaxLen(MaxInformationKey)
	o.String("value", Required).MaxLen(MaxInformationValue)
}

// cardToken checks that a string is a payment token. A card number is left to
// the card data check, so that it is reported only once.
func cardToken(r StringRule) {
	if ContainsCardNumber(r.value()) {
		return
	}
	r.Match(HasTokenPrefix, Format{
		Must: "must start with pgct_ or pgpm_: send a token from the client-side payment element", Pattern: "^pg(ct|pm)_",
	})
}

func buyer(o *Object) {
	dialect, known, unknown := o.Variant().Dialect, o.When("id"), o.When("id", "")
	buyerID(o)
	if !dialect.Live(BuyerIDAlone) || !known.Forbid("name", Nullable, "together with id") {
		o.String("name", unknown.Required("name", Nullable)).MinLen(1)
	}
	if !dialect.Live(BuyerIDAlone) || !known.Forbid("email", Nullable, "together with id") {
		o.String("email", unknown.Required("email", Nullable)).Email()
	}
	o.String("phone", Nullable)
	o.String("birth_date", Nullable)
	documentPresence := Nullable
	if dialect.Live(PixDocument) {
		documentPresence = unknown.And(o.parent.When("method", "", "pix")).Required("document", Nullable)
	}
	o.Object("document", documentPresence, func(o *Object) { document(o, DocumentTypes) })
	o.Object("address", Nullable, Address)
}

// buyerID checks the buyer's id, the only member that may be a number or a
// string.
func buyerID(o *Object) {
	switch k := o.kind("id"); {
	case k == 0, k == 'n', k == '"':
		o.String("id", Nullable).MinLen(1).shape().orInteger()
	case k != '0':
		o.Fail("id", CodeInvalidType, "must be an integer or a string, not %s", jsonread.KindName(k))
	case strings.ContainsAny(o.c.doc.Raw(o.locate("id")), ".eE"): // ids are compared as written
		o.Fail("id", CodeInvalidType, "must be an integer in plain digits, or a string")
	}
}

func document(o *Object, types Set) {
	o.Enum("type", Required, types)
	o.String("number", Required).MinLen(1)
}

// Address checks a postal address in one of the gateway's countries.
func Address(o *Object) {
	postal(o)
	o.Enum("country", Optional, Countries)
}

// postal checks an address except for its country.
func postal(o *Object) {
	o.String("street", Required).MinLen(1)
	o.String("number", Optional)
	o.String("complement", Nullable)
	o.String("neighborhood", Optional)
	o.String("city", Required).MinLen(1)
	o.String("state", Optional).Len(MinState, MaxState).
		Match(alphanumeric, Format{Must: "must contain only letters and digits", Pattern: "^[A-Za-z0-9]*$"})
	o.String("zipCode", Optional)
}

// Product checks one product of a transaction or a subscription.
func Product(o *Object) {
	o.String("name", Required).Len(1, MaxProductName)
	o.Int("price", Required).Between(0, MaxAmount)
	o.Int("quantity", Optional).Between(1, MaxQuantity)
	o.Bool("tangible", Optional)
	o.String("sku", Nullable).MaxLen(MaxSKU)
}

// Refund checks the body of PUT /v2/transactions/{id}/refund.
func Refund(o *Object) {
	o.Int("amount", Optional).AtLeast(MinAmount)
	o.String("reason", Optional).MaxLen(MaxRefundReason)
}

// Delivery checks the body of PUT /v2/transactions/{id}/delivery.
func Delivery(o *Object) {
	o.String("tracking_code", Required).Len(1, MaxTrackingCode)
	o.Enum("delivery_status", Optional, DeliveryStatuses)
	o.String("tracking_url", Nullable).MaxLen(MaxTrackingURL).WebURL()
	o.String("tracking_company", Nullable).Len(1, MaxTrackingCompany)
}

// SandboxStatus checks the body of PUT /v2/transactions/{id}.
func SandboxStatus(o *Object) {
	states := TransactionStatuses
	if o.Variant().Dialect.Live(TransactionStates) {
		states = LiveTransactionStatuses
	}
	o.Enum("status", Required, states)
}

// LiveSandboxStatus is SandboxStatus for the client, which may talk to a
// gateway of either dialect: the gateway decides which states it accepts.
func LiveSandboxStatus(o *Object) { o.Enum("status", Required, LiveTransactionStatuses) }

// TransactionList checks the query of GET /v2/transactions.
func TransactionList(o *Object) {
	cursorPage(o)
	o.EnumList("paymentMethods", Methods)
	o.EnumList("currency", Currencies)
	o.EnumList("status", LiveTransactionStatuses)
	o.EnumList("deliveryStatus", DeliveryStatuses)
	o.IntList("installments", MinInstallments, MaxInstallments)
	o.Bool("traceable", Optional)
	o.String("dateFrom", Optional).Date()
	o.String("dateTo", Optional).Date()
}

// cursorPage checks the parameters of every list with cursor pagination.
func cursorPage(o *Object) {
	o.Int("limit", Optional).Between(1, MaxPageSize)
	o.Enum("direction", Optional, Directions)
}
