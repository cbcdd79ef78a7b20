package spec

// Legacy are the operations of the v1 surface and of the retired card
// tokenization.
var Legacy = struct{ ConfigureIntegration, Balance, CreatePixPayment, PaymentToken, CreatePaymentToken Operation }{
	ConfigureIntegration: operation("legacy.configure_integration", "POST /v1/business/integration", Unsafe, LegacyIntegration),
	Balance:              operation("legacy.balance", "GET /v1/account/balance", Safe, nil),
	CreatePixPayment:     operation("legacy.create_pix_payment", "POST /pix/v1/payment", Unsafe, LegacyPayment),
	PaymentToken:         operation("legacy.payment_token", "GET /v2/payment_token/{public_token}", Safe, nil),
	CreatePaymentToken:   operation("legacy.create_payment_token", "POST /v2/payment_token/{public_token}", Unsafe, LegacyToken),
}

// Limits of the v1 surface, which the interface document does not state;
// shared limits are in values.go.
const (
	MinLegacyExpiration = 1         // seconds
	MaxLegacyExpiration = 1<<31 - 1 // seconds: 68 years, which fits in a time.Duration
	MaxSplitPercent     = 100
)

// Enums of the v1 surface.
var (
	LegacyPaymentTypes  = setOf("PIX")
	LegacySplitKeyTypes = setOf("DOCUMENT", "EMAIL", "PHONE", "RANDOM")
	LegacyStatuses      = setOf("IN_ANALYSIS", "WAITING_CONFIRMATION", "WAITING_PAYMENT", "WAITING_WITHDRAW",
		"WITHDRAW_REQUEST", "WITHDRAW_PAID", "WEBHOOK_UPDATED", "WEBHOOK_ERROR", "PAID", "CANCELLED", "REVERSED",
		"REFUND", "REFUND_IN", "REFUND_OUT", "SOFT_REFUND", "ERROR", "PENDING_APPROVAL", "APPROVED", "DECLINED")
)

// LegacyIntegration checks the body of POST /v1/business/integration. The
// document gives two variants of the body: webhookUrl and pixWebhookUrl, both
// optional URIs; or pixWebhookUrl alone, which must then be https.
func LegacyIntegration(o *Object) {
	o.String("webhookUrl", Optional).WebURL()
	pix := o.String("pixWebhookUrl", Optional)
	if o.Has("webhookUrl") {
		pix.WebURL()
	} else {
		pix.HTTPS()
	}
}

// LegacyPayment checks the body of POST /pix/v1/payment.
func LegacyPayment(o *Object) {
	o.Enum("type", Required, LegacyPaymentTypes)
	o.Object("payer", Required, legacyPayer)
	o.Object("transaction", Required, func(o *Object) {
		o.Int("value", Required).Between(MinAmount, MaxSafeAmount)
		o.Int("expirationTime", Optional).Between(MinLegacyExpiration, MaxLegacyExpiration)
		optionalStrings(o, "description", "dueDate", "externalId")
	})
	o.Array("splits", Optional).Each(legacySplit)
}

func legacyPayer(o *Object) {
	optionalStrings(o, "fullName", "document")
	o.Object("contact", Optional, func(o *Object) { optionalStrings(o, "mail", "phone") })
	o.Object("address", Optional, func(o *Object) {
		optionalStrings(o, "zipCode", "street", "number", "city", "state", "country", "neighboor", "neighborhood")
	})
}

func legacySplit(o *Object) {
	optionalStrings(o, "pixKey", "document", "externalId")
	o.Enum("pixKeyType", Optional, LegacySplitKeyTypes)
	o.Number("percent", Optional, 0, MaxSplitPercent)
	o.Int("amount", Optional).Between(0, MaxSafeAmount)
}

// LegacyToken checks the body of POST /v2/payment_token/{public_token}, which
// may be any object without card data.
func LegacyToken(*Object) {}

// optionalStrings checks optional members whose only documented rule is that
// they are strings.
func optionalStrings(o *Object, names ...string) {
	for _, name := range names {
		o.String(name, Optional)
	}
}
