package webhook

// Refusal is why a delivery is not accepted. Its text is what the sender is
// answered: {"error":"invalid_signature"}.
type Refusal string

// Error returns the machine-readable code.
func (r Refusal) Error() string { return "webhook: " + string(r) }

// The refusals of [Parse] (answered with 400) and of [Verify] (401).
const (
	ErrInvalidJSON    Refusal = "invalid_json"
	ErrMissingEventID Refusal = "missing_event_id"

	ErrMissingSignature Refusal = "missing_signature"
	ErrInvalidSignature Refusal = "invalid_signature"
	ErrStaleTimestamp   Refusal = "stale_timestamp"
)
