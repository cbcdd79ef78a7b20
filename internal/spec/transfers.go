package spec

// Transfers are the operations of /v2/transfers.
var Transfers = struct{ Create, List, Get, Cancel Operation }{
	Create: operation("transfers.create", "POST /v2/transfers", Keyed, Transfer),
	List:   operation("transfers.list", "GET /v2/transfers", Safe, TransferList),
	Get:    operation("transfers.get", "GET /v2/transfers/{id}", Safe, nil),
	Cancel: operation("transfers.cancel", "POST /v2/transfers/{id}/cancel", Unsafe, TransferCancel),
}

// Limits of transfers, which the interface document does not state; shared
// limits are in values.go.
const (
	MinLiveTransferAmount  = 1000
	MaxTransferDescription = 140
	MaxTransferReference   = 100
	MaxTransferOrigin      = 50
	MinPixKey              = 1
	MaxPixKey              = 77
	MaxCancelReason        = 250
)

// Enums of transfers.
var (
	PixKeyTypes          = setOf("CPF", "CNPJ", "EMAIL", "PHONE", "EVP")
	TransferStatuses     = setOf("pending", "in_analysis", "processing", "paid", "error", "cancelled")
	LiveTransferStatuses = TransferStatuses.with("scheduled", "rejected", "unknown")
)

// Transfer checks the body of POST /v2/transfers.
func Transfer(o *Object) {
	minAmount := int64(MinAmount)
	if o.Variant().Dialect.Live(TransferMinimum) {
		minAmount = MinLiveTransferAmount
	}
	o.Enum("pix_key_type", Required, PixKeyTypes)
	key := o.String("pix_key_value", Required).Len(MinPixKey, MaxPixKey)
	if requirement := pixKeyRequirement(o.Text("pix_key_type")); requirement != "" && key.value() != "" {
		_, valid := NormalPixKey(o.Text("pix_key_type"), key.value())
		key.Match(func(string) bool { return valid }, Format{Must: requirement})
	}
	o.Int("amount", Required).Between(minAmount, MaxSafeAmount)
	o.String("description", Optional).MaxLen(MaxTransferDescription)
	o.String("external_ref", Optional).MaxLen(MaxTransferReference)
	o.String("notify_url", Nullable).MaxLen(MaxNotifyURL).HTTPS()
	o.String("origin", o.optional()).MaxLen(MaxTransferOrigin)
}

// TransferCancel checks the body of POST /v2/transfers/{id}/cancel.
func TransferCancel(o *Object) {
	o.String("reason", Optional).MaxLen(MaxCancelReason)
}

// TransferList checks the query of GET /v2/transfers.
func TransferList(o *Object) {
	cursorPage(o)
	o.Enum("status", Optional, LiveTransferStatuses)
}
