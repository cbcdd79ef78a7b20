package spec

// CheckoutLinks are the operations of /v2/checkout-links.
var CheckoutLinks = struct{ Create Operation }{
	Create: operation("checkout_links.create", "POST /v2/checkout-links", Unsafe, CheckoutLink),
}

// Limits of checkout links and sessions; shared limits are in values.go.
const (
	MaxLinkTitle    = 255
	MinLinkProducts = 1
	MaxLinkProducts = 25
	MinSlug         = 3
	MaxSlug         = 255
)

// Limits that the interface document does not state.
const (
	MaxLiveExternalID  = 255  // of a checkout link's product
	MaxLiveDescription = 2000 // of a checkout link's product
	MaxPaymentKey      = 255  // of a payment on the hosted page
)

// Enums of checkout links and sessions.
var (
	LinkStatuses    = setOf("active", "exhausted", "expired", "inactive")
	SessionStatuses = setOf("open", "ready", "processing", "completed", "expired")
	ItemTypes       = setOf("physical", "digital")
)

// CheckoutSessions are the operations of /v2/checkout/{slug}. Open and Resume
// share an endpoint: Resume sends a session token in the header.
var CheckoutSessions = struct{ Open, Resume, Update Operation }{
	Open:   operation("checkout_sessions.open", "GET /v2/checkout/{slug}", Safe, nil),
	Resume: operation("checkout_sessions.resume", "GET /v2/checkout/{slug}", Safe, nil),
	Update: operation("checkout_sessions.update", "PATCH /v2/checkout/{slug}/session", Unsafe, CheckoutSession),
}

// HostedCheckout are the operations that the hosted checkout page uses. The
// live gateway has them, but the interface document does not, and the client
// does not call them.
var HostedCheckout = struct{ Open, Pay Operation }{
	Open: operation("hosted_checkout.open", "POST /v2/checkout/{slug}/session", Unsafe, HostedSession),
	Pay:  operation("hosted_checkout.pay", "POST /v2/checkout/{slug}/pay", Keyed, HostedPayment),
}

// CheckoutLink checks the body of POST /v2/checkout-links: a link has either
// products or an amount.
func CheckoutLink(o *Object) {
	if o.kind("amount") != 'n' && o.kind("products") == 0 { // values of a wrong type are reported as such
		o.When("amount", "").Require("products", "if amount is not sent")
	}
	o.When("products").Forbid("amount", Nullable, "together with products")
	product := linkProduct
	if o.Variant().Dialect.Live(LinkProductLimits) {
		product = liveLinkProduct
	}
	o.Int("amount", Optional).Between(MinAmount, MaxAmount)
	o.Enum("currency", Optional, BillingCurrencies)
	o.String("title", Optional).Len(1, MaxLinkTitle)
	o.Array("products", Optional).Len(MinLinkProducts, MaxLinkProducts).Each(product)
	oneCurrency(o)

	// Members that the document shows only in the response.
	o.String("description", Nullable)
	o.String("expires_at", Nullable).Time().Future()
	o.Int("max_uses", Nullable).AtLeast(1)
	o.String("success_url", Nullable)
	o.String("cancel_url", Nullable)
	o.Array("payment_methods", Optional).EachEnum(Methods)
	o.Object("metadata", Nullable, nil)
}

// oneCurrency checks that a link and all its products have the same currency,
// because a buyer pays one amount.
func oneCurrency(o *Object) {
	at, first := o.locate("products"), o.Text("currency")
	if at == 0 || o.c.doc.Kind(at) != '[' {
		return
	}
	for i, e := 0, at+1; e < o.c.doc.End(at); i, e = i+1, o.c.doc.End(e) {
		p := o.c.doc.element(o, "products", i, e)
		switch currency := p.Text("currency"); {
		case first == "":
			first = currency
		case currency != "" && currency != first && BillingCurrencies.Has(currency) && BillingCurrencies.Has(first):
			p.Fail("currency", CodeInvalid, "must be %s: a checkout link and all its products must have the same currency", first)
		}
	}
}

// linkProduct checks a link's product by the document's rules. Members that
// other products have too have the same limits.
func linkProduct(o *Object) {
	o.String("external_id", Optional).MinLen(1)
	o.String("name", Required).Len(1, MaxProductName)
	o.Int("price", Required).Between(0, MaxAmount)
	o.Int("quantity", Optional).Between(1, MaxQuantity)
	o.String("description", Nullable)
	o.Int("compare_price", Nullable).Between(0, MaxAmount)
	linkProductDetails(o)
}

// liveLinkProduct checks a link's product by the live dialect's rules.
func liveLinkProduct(o *Object) {
	o.String("external_id", Required).Len(1, MaxLiveExternalID)
	o.String("name", Required).Len(1, MaxProductName)
	o.Int("price", Required).Between(1, MaxSafeAmount)
	o.Int("quantity", Optional).Between(1, MaxSafeAmount)
	o.String("description", Nullable).MaxLen(MaxLiveDescription)
	o.Int("compare_price", Nullable).Between(1, MaxSafeAmount)
	linkProductDetails(o)
}

// linkProductDetails checks the members with the same rules in both dialects.
func linkProductDetails(o *Object) {
	o.String("image_url", Nullable).WebURL()
	o.Enum("type", Optional, ItemTypes)
	o.Enum("currency", Optional, BillingCurrencies)
	o.Object("metadata", Nullable, nil)
}

// CheckoutSlug checks the slug of a checkout path, passed as a parameter called
// slug.
func CheckoutSlug(o *Object) {
	o.String("slug", Required).Len(MinSlug, MaxSlug)
}

// CheckoutSession checks the body of PATCH /v2/checkout/{slug}/session. A
// session is filled in step by step, so every member of the buyer is optional,
// but a document or an address must be complete if it is sent.
func CheckoutSession(o *Object) {
	o.Object("buyer", Optional, sessionBuyer)
	o.Enum("payment_method", Optional, Methods)
}

func sessionBuyer(o *Object) {
	o.String("name", Nullable).MinLen(1)
	o.String("email", Nullable).Email()
	o.String("phone", Nullable)
	o.String("birth_date", Nullable)
	o.Object("document", Nullable, func(o *Object) { document(o, DocumentTypes) })
	o.Object("address", Nullable, Address)
}

// HostedSession checks the body of POST /v2/checkout/{slug}/session.
func HostedSession(o *Object) { o.String("referrer_url", Nullable) }

// HostedPayment checks the body of POST /v2/checkout/{slug}/pay. Members that
// the session already has may be omitted.
func HostedPayment(o *Object) {
	o.String("session_token", Required).MinLen(1)
	CheckoutSession(o)
	o.Enum("currency", Optional, BillingCurrencies)
	o.Int("amount", Optional).Between(MinAmount, MaxAmount)
	cardToken(o.String("token", Nullable))
	o.Int("installments", Nullable).Between(MinInstallments, MaxInstallments)
	o.String("idempotency_key", Nullable).MaxLen(MaxPaymentKey)
}
