package webhook

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/masking"
)

// In logs and with fmt, these types show personal data masked. LogValue covers
// every handler of log/slog, and MarshalJSON the values inside other types, which
// a JSON handler encodes. Otherwise MarshalJSON writes the real values.

// LogValue returns e with personal data masked.
func (e Event) LogValue() slog.Value { return masking.Value(e) }

// Format writes e with personal data masked, for every verb.
func (e Event) Format(f fmt.State, _ rune) { masking.Format(f, e) }

// MarshalJSON writes the fields of e, in a log of log/slog masked.
func (e Event) MarshalJSON() ([]byte, error) {
	type plain Event
	return masking.JSON((*plain)(&e))
}

// LogValue returns d with personal data masked.
func (d TransactionData) LogValue() slog.Value { return masking.Value(d) }

// Format writes d with personal data masked, for every verb.
func (d TransactionData) Format(f fmt.State, _ rune) { masking.Format(f, d) }

// MarshalJSON writes the fields of d, in a log of log/slog masked.
func (d TransactionData) MarshalJSON() ([]byte, error) {
	type plain TransactionData
	return masking.JSON((*plain)(&d))
}

// LogValue returns d with personal data masked.
func (d SubscriptionData) LogValue() slog.Value { return masking.Value(d) }

// Format writes d with personal data masked, for every verb.
func (d SubscriptionData) Format(f fmt.State, _ rune) { masking.Format(f, d) }

// MarshalJSON writes the fields of d, in a log of log/slog masked.
func (d SubscriptionData) MarshalJSON() ([]byte, error) {
	type plain SubscriptionData
	return masking.JSON((*plain)(&d))
}

// LogValue returns d with personal data masked.
func (d Delivery) LogValue() slog.Value { return masking.Value(d) }

// Format writes d with personal data masked, for every verb.
func (d Delivery) Format(f fmt.State, _ rune) { masking.Format(f, d) }

// MarshalJSON writes the fields of d, in a log of log/slog masked.
func (d Delivery) MarshalJSON() ([]byte, error) {
	type plain Delivery
	return masking.JSON((*plain)(&d))
}

// LogValue returns l with personal data masked.
func (l DeadLetter) LogValue() slog.Value { return masking.Value(l) }

// Format writes l with personal data masked, for every verb.
func (l DeadLetter) Format(f fmt.State, _ rune) { masking.Format(f, l) }

// MarshalJSON writes the fields of l, in a log of log/slog masked.
func (l DeadLetter) MarshalJSON() ([]byte, error) {
	type plain DeadLetter
	return masking.JSON((*plain)(&l))
}

// LogValue returns r with personal data masked.
func (r Record) LogValue() slog.Value { return masking.Value(r) }

// Format writes r with personal data masked, for every verb.
func (r Record) Format(f fmt.State, _ rune) { masking.Format(f, r) }

// MarshalJSON writes the fields of r, in a log of log/slog masked.
func (r Record) MarshalJSON() ([]byte, error) {
	type plain Record
	return masking.JSON((*plain)(&r))
}

// LogValue returns r with personal data masked.
func (r Response) LogValue() slog.Value { return masking.Value(r) }

// Format writes r with personal data masked, for every verb.
func (r Response) Format(f fmt.State, _ rune) { masking.Format(f, r) }

// MarshalJSON writes the fields of r, in a log of log/slog masked.
func (r Response) MarshalJSON() ([]byte, error) {
	type plain Response
	return masking.JSON((*plain)(&r))
}

// The methods of an embedded Event would encode only the event.
type (
	plainEvent  Event
	plainRecord Record
)

// LogValue returns e with personal data masked.
func (e TransactionEvent) LogValue() slog.Value { return masking.Value(e) }

// Format writes e with personal data masked, for every verb.
func (e TransactionEvent) Format(f fmt.State, _ rune) { masking.Format(f, e) }

// MarshalJSON writes the fields of e, in a log of log/slog masked.
func (e TransactionEvent) MarshalJSON() ([]byte, error) {
	return masking.JSON(struct {
		*plainEvent

		Data      TransactionData
		Confirmed *gateway.Transaction
	}{(*plainEvent)(e.Event), e.Data, e.Confirmed})
}

// LogValue returns e with personal data masked.
func (e SubscriptionEvent) LogValue() slog.Value { return masking.Value(e) }

// Format writes e with personal data masked, for every verb.
func (e SubscriptionEvent) Format(f fmt.State, _ rune) { masking.Format(f, e) }

// MarshalJSON writes the fields of e, in a log of log/slog masked.
func (e SubscriptionEvent) MarshalJSON() ([]byte, error) {
	return masking.JSON(struct {
		*plainEvent

		Data      SubscriptionData
		Confirmed *gateway.Subscription
	}{(*plainEvent)(e.Event), e.Data, e.Confirmed})
}

// LogValue returns e with personal data masked.
func (e TransferEvent) LogValue() slog.Value { return masking.Value(e) }

// Format writes e with personal data masked, for every verb.
func (e TransferEvent) Format(f fmt.State, _ rune) { masking.Format(f, e) }

// MarshalJSON writes the fields of e, in a log of log/slog masked.
func (e TransferEvent) MarshalJSON() ([]byte, error) {
	return masking.JSON(struct {
		*plainEvent

		Data      gateway.Transfer
		Confirmed *gateway.Transfer
	}{(*plainEvent)(e.Event), e.Data, e.Confirmed})
}

// LogValue returns c with personal data masked.
func (c Claim) LogValue() slog.Value { return masking.Value(c) }

// Format writes c with personal data masked, for every verb.
func (c Claim) Format(f fmt.State, _ rune) { masking.Format(f, c) }

// MarshalJSON writes the fields of c, in a log of log/slog masked.
func (c Claim) MarshalJSON() ([]byte, error) {
	return masking.JSON(struct {
		plainRecord

		Token     string
		Attempt   int
		Latest    int64
		Age       time.Duration
		Completed bool
	}{plainRecord(c.Record), c.Token, c.Attempt, c.Latest, c.Age, c.Completed})
}
