package gateway

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/gateway-go/gateway/internal/rules"
)

// FieldError is one broken rule of a request, found by the gateway or, before
// anything was sent, by Validate.
type FieldError struct {
	Field   string `json:"field"`   // the member: "amount", "buyer.address.city", "products[0].name"
	Message string `json:"message"` // the rule in words; it never repeats the value
	Code    string `json:"code"`    // required, invalid_type, too_small, too_big, invalid_string, invalid_enum_value
}

// ValidationError says which members of a request break which rules. It is
// found before anything is sent; errors.Is(err, [ErrValidation]) holds for it
// as for the gateway's own refusal.
type ValidationError struct {
	Op     string       // the operation: "transactions.create"
	Fields []FieldError // at least one
}

// Error lists every member and its rule on one line.
func (e *ValidationError) Error() string {
	parts := make([]string, len(e.Fields))
	for i, f := range e.Fields {
		parts[i] = f.Field + " " + f.Message
	}
	return fmt.Sprintf("gateway: %s: invalid request: %s", e.Op, strings.Join(parts, "; "))
}

// validate checks the wire form of params, so that it can never disagree with
// what would be sent.
func validate(params any, rule rules.Rule) error {
	body, err := json.Marshal(params)
	if err != nil {
		return err
	}
	found, err := rules.Check(body, rule, rules.Variant{})
	if err != nil || len(found) == 0 {
		return err
	}
	fields := make([]FieldError, len(found))
	for i, v := range found {
		fields[i] = FieldError(v)
	}
	return &ValidationError{Fields: fields}
}
