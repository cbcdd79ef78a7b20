package gateway

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"

	"github.com/gateway-go/gateway/internal/masking"
)

// In logs and with fmt, these types show personal data masked. LogValue covers
// every handler of log/slog, and MarshalJSON the values inside other types, which
// a JSON handler encodes. Otherwise MarshalJSON writes the real values.

// LogValue returns p with personal data masked.
func (p TransactionParams) LogValue() slog.Value { return masking.Value(p) }

// Format writes p with personal data masked, for every verb.
func (p TransactionParams) Format(f fmt.State, _ rune) { masking.Format(f, p) }

// LogValue returns p with personal data masked.
func (p BuyerParams) LogValue() slog.Value { return masking.Value(p) }

// Format writes p with personal data masked, for every verb.
func (p BuyerParams) Format(f fmt.State, _ rune) { masking.Format(f, p) }

// MarshalJSON writes p in the gateway's format.
func (p BuyerParams) MarshalJSON() ([]byte, error) {
	type plain BuyerParams
	return marshalParams((*plain)(&p))
}

// LogValue returns p with personal data masked.
func (p CustomerParams) LogValue() slog.Value { return masking.Value(p) }

// Format writes p with personal data masked, for every verb.
func (p CustomerParams) Format(f fmt.State, _ rune) { masking.Format(f, p) }

// MarshalJSON writes p in the gateway's format.
func (p CustomerParams) MarshalJSON() ([]byte, error) {
	type plain CustomerParams
	return marshalParams((*plain)(&p))
}

// LogValue returns p with personal data masked.
func (p CustomerListParams) LogValue() slog.Value { return masking.Value(p) }

// Format writes p with personal data masked, for every verb.
func (p CustomerListParams) Format(f fmt.State, _ rune) { masking.Format(f, p) }

// MarshalJSON writes the fields of p by their Go names.
func (p CustomerListParams) MarshalJSON() ([]byte, error) {
	type plain CustomerListParams
	return marshalQuery((*plain)(&p))
}

// LogValue returns p with personal data masked.
func (p TransactionListParams) LogValue() slog.Value { return masking.Value(p) }

// Format writes p with personal data masked, for every verb.
func (p TransactionListParams) Format(f fmt.State, _ rune) { masking.Format(f, p) }

// MarshalJSON writes the fields of p by their Go names.
func (p TransactionListParams) MarshalJSON() ([]byte, error) {
	type plain TransactionListParams
	return marshalQuery((*plain)(&p))
}

// LogValue returns p with personal data masked.
func (p TransferParams) LogValue() slog.Value { return masking.Value(p) }

// Format writes p with personal data masked, for every verb.
func (p TransferParams) Format(f fmt.State, _ rune) { masking.Format(f, p) }

// LogValue returns p with personal data masked.
func (p CheckoutSessionParams) LogValue() slog.Value { return masking.Value(p) }

// Format writes p with personal data masked, for every verb.
func (p CheckoutSessionParams) Format(f fmt.State, _ rune) { masking.Format(f, p) }

// LogValue returns b with personal data masked.
func (b CheckoutBuyer) LogValue() slog.Value { return masking.Value(b) }

// Format writes b with personal data masked, for every verb.
func (b CheckoutBuyer) Format(f fmt.State, _ rune) { masking.Format(f, b) }

// MarshalJSON writes b in the gateway's format.
func (b CheckoutBuyer) MarshalJSON() ([]byte, error) {
	type plain CheckoutBuyer
	return marshalParams((*plain)(&b))
}

// LogValue returns p with personal data masked.
func (p SubscriptionParams) LogValue() slog.Value { return masking.Value(p) }

// Format writes p with personal data masked, for every verb.
func (p SubscriptionParams) Format(f fmt.State, _ rune) { masking.Format(f, p) }

// LogValue returns t with personal data masked.
func (t Transaction) LogValue() slog.Value { return masking.Value(t) }

// Format writes t with personal data masked, for every verb.
func (t Transaction) Format(f fmt.State, _ rune) { masking.Format(f, t) }

// LogValue returns b with personal data masked.
func (b Buyer) LogValue() slog.Value { return masking.Value(b) }

// Format writes b with personal data masked, for every verb.
func (b Buyer) Format(f fmt.State, _ rune) { masking.Format(f, b) }

// LogValue returns c with personal data masked.
func (c Customer) LogValue() slog.Value { return masking.Value(c) }

// Format writes c with personal data masked, for every verb.
func (c Customer) Format(f fmt.State, _ rune) { masking.Format(f, c) }

// LogValue returns t with personal data masked.
func (t Transfer) LogValue() slog.Value { return masking.Value(t) }

// Format writes t with personal data masked, for every verb.
func (t Transfer) Format(f fmt.State, _ rune) { masking.Format(f, t) }

// LogValue returns s with personal data masked.
func (s Subscription) LogValue() slog.Value { return masking.Value(s) }

// Format writes s with personal data masked, for every verb.
func (s Subscription) Format(f fmt.State, _ rune) { masking.Format(f, s) }

// LogValue returns a with personal data masked.
func (a Address) LogValue() slog.Value { return masking.Value(a) }

// Format writes a with personal data masked, for every verb.
func (a Address) Format(f fmt.State, _ rune) { masking.Format(f, a) }

// LogValue returns c with personal data masked.
func (c CheckoutItem) LogValue() slog.Value { return masking.Value(c) }

// Format writes c with personal data masked, for every verb.
func (c CheckoutItem) Format(f fmt.State, _ rune) { masking.Format(f, c) }

// LogValue returns l with personal data masked.
func (l CheckoutLink) LogValue() slog.Value { return masking.Value(l) }

// Format writes l with personal data masked, for every verb.
func (l CheckoutLink) Format(f fmt.State, _ rune) { masking.Format(f, l) }

// LogValue returns c with personal data masked.
func (c CheckoutLinkDetails) LogValue() slog.Value { return masking.Value(c) }

// Format writes c with personal data masked, for every verb.
func (c CheckoutLinkDetails) Format(f fmt.State, _ rune) { masking.Format(f, c) }

// LogValue returns s with personal data masked.
func (s CheckoutSession) LogValue() slog.Value { return masking.Value(s) }

// Format writes s with personal data masked, for every verb.
func (s CheckoutSession) Format(f fmt.State, _ rune) { masking.Format(f, s) }

// LogValue returns p with personal data masked.
func (p PixDetails) LogValue() slog.Value { return masking.Value(p) }

// Format writes p with personal data masked, for every verb.
func (p PixDetails) Format(f fmt.State, _ rune) { masking.Format(f, p) }

// LogValue returns r with personal data masked.
func (r RecurringAuthorization) LogValue() slog.Value { return masking.Value(r) }

// Format writes r with personal data masked, for every verb.
func (r RecurringAuthorization) Format(f fmt.State, _ rune) { masking.Format(f, r) }

// LogValue returns v with personal data masked.
func (v VoucherDetails) LogValue() slog.Value { return masking.Value(v) }

// Format writes v with personal data masked, for every verb.
func (v VoucherDetails) Format(f fmt.State, _ rune) { masking.Format(f, v) }

// LogValue returns p with personal data masked.
func (p SubscriptionListParams) LogValue() slog.Value { return masking.Value(p) }

// Format writes p with personal data masked, for every verb.
func (p SubscriptionListParams) Format(f fmt.State, _ rune) { masking.Format(f, p) }

// LogValue returns m with personal data masked.
func (m Metadata) LogValue() slog.Value { return slog.StringValue(masking.Free(m.Text())) }

// Format writes the text with personal data masked, for every verb. String
// returns it unchanged.
func (m Metadata) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, masking.Free(m.Text())) }

// MarshalJSON writes the fields of p by their Go names.
func (p SubscriptionListParams) MarshalJSON() ([]byte, error) {
	type plain SubscriptionListParams
	return marshalQuery((*plain)(&p))
}

// LogValue returns d with personal data masked.
func (d Delivery) LogValue() slog.Value { return masking.Value(d) }

// Format writes d with personal data masked, for every verb.
func (d Delivery) Format(f fmt.State, _ rune) { masking.Format(f, d) }

// LogValue returns r with personal data masked.
func (r Refund) LogValue() slog.Value { return masking.Value(r) }

// Format writes r with personal data masked, for every verb.
func (r Refund) Format(f fmt.State, _ rune) { masking.Format(f, r) }

// LogValue returns p with personal data masked.
func (p Page[T]) LogValue() slog.Value { return masking.Value(p) }

// Format writes p with personal data masked, for every verb.
func (p Page[T]) Format(f fmt.State, _ rune) { masking.Format(f, p) }

// marshalParams encodes params as they are sent, or masked for a log.
func marshalParams(v any) ([]byte, error) {
	if masking.Logging() {
		return masking.Show(v).MarshalJSON()
	}
	return encodeRequest(v)
}

// marshalQuery encodes params that are sent as a query, for a program that stores
// them, or masked for a log.
func marshalQuery(v any) ([]byte, error) { return masking.JSON(v) }

// marshalText encodes a string that is masked in a log.
func marshalText(text string, masked fmt.Stringer) ([]byte, error) {
	if masking.Logging() {
		text = masked.String()
	}
	return json.Marshal(text)
}
