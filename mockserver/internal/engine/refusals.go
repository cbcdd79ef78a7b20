package engine

import (
	"time"

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
)

// NotFound says that there is no such record: kind is "transaction".
func NotFound(kind string) *Refusal {
	return &Refusal{Code: CodeNotFound, Detail: "There is no " + kind + " with this id."}
}

// Conflict says that a record's state does not allow a transition.
func Conflict(code, detail string) *Refusal {
	return &Refusal{Code: code, Detail: detail}
}

// Duplicate says that the reference belongs to an earlier record of that kind,
// whose path is instance.
func Duplicate(kind, instance string) *Refusal {
	return &Refusal{
		Code:     CodeDuplicateReference,
		Detail:   "A " + kind + " with this external reference already exists",
		Instance: instance,
	}
}

// Invalid says which member of the request is at fault and why; fieldCode is
// one of the rules package's codes.
func Invalid(field, fieldCode, detail string) *Refusal {
	return &Refusal{
		Code:      CodeValidation,
		Detail:    detail,
		Field:     field,
		FieldCode: fieldCode,
	}
}

// notInFuture is a time that must be after the gateway's, whose clock is not
// the caller's: a test may have moved it by months.
func notInFuture(env Env, field string) *Refusal {
	return Invalid(field, spec.CodeInvalid, "must be after the gateway's clock, which is at "+env.Now.UTC().Format(time.RFC3339))
}
