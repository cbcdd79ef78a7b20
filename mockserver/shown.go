package mockserver

import (
	"fmt"
	"log/slog"

	"github.com/gateway-go/gateway/internal/masking"
)

// LogValue returns d with personal data masked.
func (d Delivery) LogValue() slog.Value { return masking.Value(d) }

// Format writes d with personal data masked, for every verb.
func (d Delivery) Format(f fmt.State, _ rune) { masking.Format(f, d) }

// MarshalJSON writes the fields of d, in a log of log/slog masked.
func (d Delivery) MarshalJSON() ([]byte, error) {
	type plain Delivery
	return masking.JSON((*plain)(&d))
}
