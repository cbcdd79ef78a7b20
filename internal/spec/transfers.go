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

// Transfer holds the rules of POST /v2/transfers.
func Transfer(o *Object) {
	least := int64(MinAmount)
	if o.Variant().Dialect.Live(D7) {
		least = MinLiveTransferAmount
	}
	o.Enum("pix_key_type", Required, PixKeyTypes)
	key := o.String("pix_key_value", Required).Len(MinPixKey, MaxPixKey)
	if must := pixKeyForm(o.Text("pix_key_type")); must != "" && key.value() != "" {
		_, fits := NormalPixKey(o.Text("pix_key_type"), key.value())
		key.Match(func(string) bool { return fits }, must)
	}
	o.Int("amount", Required).Between(least, MaxSafeAmount)
	o.String("description", Optional).MaxLen(MaxTransferDescription)
	o.String("external_ref", Optional).MaxLen(MaxTransferReference)
	o.String("notify_url", Nullable).MaxLen(MaxNotifyURL).HTTPS()
	o.String("origin", o.optional()).MaxLen(MaxTransferOrigin)
}

// TransferCancel holds the rules of POST /v2/transfers/{id}/cancel.
func TransferCancel(o *Object) {
	o.String("reason", Optional).MaxLen(MaxCancelReason)
}

// TransferList holds the rules of the query of GET /v2/transfers.
func TransferList(o *Object) {
	cursorPage(o)
	o.Enum("status", Optional, LiveTransferStatuses)
}
