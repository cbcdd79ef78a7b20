package engine

import (
	"strings"

	"github.com/gateway-go/gateway/internal/spec"
)

// The codes of a Refusal.
const (
	CodeValidation         = "VALIDATION_ERROR"
	CodeNotFound           = "NOT_FOUND"
	CodeForbidden          = "FORBIDDEN"
	CodeDuplicateReference = "DUPLICATE_EXTERNAL_REF"
	CodeInvalidState       = "INVALID_STATE"
	CodeNotRefundable      = "NOT_REFUNDABLE"
	CodeDeliveryState      = "DELIVERY_STATE"
	CodePreconditionFailed = "PRECONDITION_FAILED"
	CodeTokenUsed          = "TOKEN_ALREADY_USED"
	CodeTokenExpired       = "TOKEN_EXPIRED"
	CodeMemoryLimit        = "MEMORY_LIMIT"
	CodeLogFailed          = "DATA_FILE_FAILED"

	CodeIdempotencyKeyReused = "IDEMPOTENCY_KEY_REUSED"
	CodeCheckoutGone         = "CHECKOUT_GONE"
	CodeSessionToken         = "INVALID_SESSION_TOKEN"
	CodeTokenizationRetired  = "LEGACY_TOKENIZATION_RETIRED"

	CodePixAutomaticDisabled = "PIX_AUTOMATIC_DISABLED"
)

// NotFound returns the refusal for a resource that does not exist. kind is a word
// such as "transaction".
func NotFound(kind string) *Refusal {
	return &Refusal{Code: CodeNotFound, Detail: "There is no " + kind + " with this id."}
}

// NewRefusal returns a refusal that concerns neither a field nor a reference.
func NewRefusal(code, detail string) *Refusal {
	return &Refusal{Code: code, Detail: detail}
}

// Duplicate returns the refusal for an external reference that an earlier resource
// of the same kind has. instance is the path of that resource.
func Duplicate(kind, instance string) *Refusal {
	return &Refusal{
		Code:     CodeDuplicateReference,
		Detail:   "A " + kind + " with this external reference already exists",
		Instance: instance,
	}
}

// Invalid rejects one field of the request; fieldCode is one of spec's codes.
func Invalid(field, fieldCode, message string) *Refusal {
	return InvalidFields([]spec.Violation{{Field: field, Message: message, Code: fieldCode}})
}

// InvalidFields rejects several fields of the request.
func InvalidFields(fields []spec.Violation) *Refusal {
	return &Refusal{Code: CodeValidation, Detail: Describe(fields) + ".", Fields: fields}
}

// Describe formats all fields and their errors as one string.
func Describe(fields []spec.Violation) string {
	parts := make([]string, len(fields))
	for i, f := range fields {
		parts[i] = f.Field + " " + f.Message
	}
	return strings.Join(parts, "; ")
}
