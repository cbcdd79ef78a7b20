package legacy

import (
	"fmt"
	"log/slog"

	"github.com/gateway-go/gateway/internal/masking"
	"github.com/gateway-go/gateway/internal/wire"
)

// In logs and with fmt, these types show personal data masked. LogValue covers
// every handler of log/slog, and MarshalJSON the values inside other types, which
// a JSON handler encodes. Otherwise MarshalJSON writes the real values.

// LogValue returns p with personal data masked.
func (p Payer) LogValue() slog.Value { return masking.Value(p) }

// Format writes p with personal data masked, for every verb.
func (p Payer) Format(f fmt.State, _ rune) { masking.Format(f, p) }

// MarshalJSON writes the fields of p, in a log of log/slog masked.
func (p Payer) MarshalJSON() ([]byte, error) {
	type plain Payer
	return marshalParams((*plain)(&p))
}

// LogValue returns c with personal data masked.
func (c Contact) LogValue() slog.Value { return masking.Value(c) }

// Format writes c with personal data masked, for every verb.
func (c Contact) Format(f fmt.State, _ rune) { masking.Format(f, c) }

// MarshalJSON writes the fields of c, in a log of log/slog masked.
func (c Contact) MarshalJSON() ([]byte, error) {
	type plain Contact
	return marshalParams((*plain)(&c))
}

// LogValue returns r with personal data masked.
func (r SplitRule) LogValue() slog.Value { return masking.Value(r) }

// Format writes r with personal data masked, for every verb.
func (r SplitRule) Format(f fmt.State, _ rune) { masking.Format(f, r) }

// MarshalJSON writes the fields of r, in a log of log/slog masked.
func (r SplitRule) MarshalJSON() ([]byte, error) {
	type plain SplitRule
	return marshalParams((*plain)(&r))
}

// LogValue returns i with personal data masked.
func (i Integration) LogValue() slog.Value { return masking.Value(i) }

// Format writes i with personal data masked, for every verb.
func (i Integration) Format(f fmt.State, _ rune) { masking.Format(f, i) }

// LogValue returns t with personal data masked.
func (t PaymentToken) LogValue() slog.Value { return masking.Value(t) }

// Format writes t with personal data masked, for every verb.
func (t PaymentToken) Format(f fmt.State, _ rune) { masking.Format(f, t) }

// LogValue returns p with personal data masked.
func (p PixPayment) LogValue() slog.Value { return masking.Value(p) }

// Format writes p with personal data masked, for every verb.
func (p PixPayment) Format(f fmt.State, _ rune) { masking.Format(f, p) }

// LogValue returns p with personal data masked.
func (p PixPaymentParams) LogValue() slog.Value { return masking.Value(p) }

// Format writes p with personal data masked, for every verb.
func (p PixPaymentParams) Format(f fmt.State, _ rune) { masking.Format(f, p) }

// LogValue returns a with personal data masked.
func (a Address) LogValue() slog.Value { return masking.Value(a) }

// Format writes a with personal data masked, for every verb.
func (a Address) Format(f fmt.State, _ rune) { masking.Format(f, a) }

// marshalParams encodes params as they are sent, or masked for a log.
func marshalParams(v any) ([]byte, error) {
	if masking.Logging() {
		return masking.Show(v).MarshalJSON()
	}
	return wire.Encode(v)
}
