package operations

import (
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/gateway-go/gateway/internal/masking"
)

// In logs and with fmt, operations show personal data masked. LogValue covers every
// handler of log/slog, and MarshalJSON the values inside other types, which a JSON
// handler encodes. Otherwise MarshalJSON writes the real values, for the table.

func marshalOperation(plain any) ([]byte, error) {
	if masking.Logging() {
		return masking.Show(plain).MarshalJSON()
	}
	return json.Marshal(plain, json.Deterministic(true))
}

// LogValue returns c with personal data masked.
func (c CreateTransaction) LogValue() slog.Value { return masking.Value(c) }

// Format writes c with personal data masked, for every verb.
func (c CreateTransaction) Format(f fmt.State, _ rune) { masking.Format(f, c) }

// MarshalJSON writes c as it is stored.
func (c CreateTransaction) MarshalJSON() ([]byte, error) {
	type plain CreateTransaction
	return marshalOperation((*plain)(&c))
}

// LogValue returns c with personal data masked.
func (c CreateTransfer) LogValue() slog.Value { return masking.Value(c) }

// Format writes c with personal data masked, for every verb.
func (c CreateTransfer) Format(f fmt.State, _ rune) { masking.Format(f, c) }

// MarshalJSON writes c as it is stored.
func (c CreateTransfer) MarshalJSON() ([]byte, error) {
	type plain CreateTransfer
	return marshalOperation((*plain)(&c))
}

// LogValue returns c with personal data masked.
func (c CreateCustomer) LogValue() slog.Value { return masking.Value(c) }

// Format writes c with personal data masked, for every verb.
func (c CreateCustomer) Format(f fmt.State, _ rune) { masking.Format(f, c) }

// MarshalJSON writes c as it is stored.
func (c CreateCustomer) MarshalJSON() ([]byte, error) {
	type plain CreateCustomer
	return marshalOperation((*plain)(&c))
}

// LogValue returns c with personal data masked.
func (c CreateSubscription) LogValue() slog.Value { return masking.Value(c) }

// Format writes c with personal data masked, for every verb.
func (c CreateSubscription) Format(f fmt.State, _ rune) { masking.Format(f, c) }

// MarshalJSON writes c as it is stored.
func (c CreateSubscription) MarshalJSON() ([]byte, error) {
	type plain CreateSubscription
	return marshalOperation((*plain)(&c))
}

// LogValue returns u with personal data masked.
func (u UpdateSubscription) LogValue() slog.Value { return masking.Value(u) }

// Format writes u with personal data masked, for every verb.
func (u UpdateSubscription) Format(f fmt.State, _ rune) { masking.Format(f, u) }

// MarshalJSON writes u as it is stored.
func (u UpdateSubscription) MarshalJSON() ([]byte, error) {
	type plain UpdateSubscription
	return marshalOperation((*plain)(&u))
}

// LogValue returns r with personal data masked.
func (r Refund) LogValue() slog.Value { return masking.Value(r) }

// Format writes r with personal data masked, for every verb.
func (r Refund) Format(f fmt.State, _ rune) { masking.Format(f, r) }

// MarshalJSON writes r as it is stored.
func (r Refund) MarshalJSON() ([]byte, error) {
	type plain Refund
	return marshalOperation((*plain)(&r))
}

// LogValue returns c with personal data masked.
func (c CancelTransfer) LogValue() slog.Value { return masking.Value(c) }

// Format writes c with personal data masked, for every verb.
func (c CancelTransfer) Format(f fmt.State, _ rune) { masking.Format(f, c) }

// MarshalJSON writes c as it is stored.
func (c CancelTransfer) MarshalJSON() ([]byte, error) {
	type plain CancelTransfer
	return marshalOperation((*plain)(&c))
}

// LogValue returns c with personal data masked.
func (c CancelSubscription) LogValue() slog.Value { return masking.Value(c) }

// Format writes c with personal data masked, for every verb.
func (c CancelSubscription) Format(f fmt.State, _ rune) { masking.Format(f, c) }

// MarshalJSON writes c as it is stored.
func (c CancelSubscription) MarshalJSON() ([]byte, error) {
	type plain CancelSubscription
	return marshalOperation((*plain)(&c))
}

// shownError is an error, for logs and for River, whose text has no personal data
// and can be stored: River can't complete a job whose error has U+0000 or invalid
// UTF-8, nor any other that it completes in the same batch.
type shownError struct {
	text string
	err  error
}

// Error returns the text.
func (e *shownError) Error() string { return e.text }

// Unwrap returns the error with the original text.
func (e *shownError) Unwrap() error { return e.err }

// Format writes the text, for every verb.
func (e *shownError) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, e.text) }

// shown returns err with a text that may be shown and stored.
func shown(err error) error {
	if err == nil {
		return nil
	}
	if text := shownText(err.Error()); text != err.Error() {
		return &shownError{text: text, err: err}
	}
	return err
}

func shownText(text string) string {
	return masking.Text(strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD"))
}
