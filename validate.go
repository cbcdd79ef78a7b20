package gateway

import (
	"github.com/google/go-querystring/query"

	"github.com/gateway-go/gateway/internal/rules"
	"github.com/gateway-go/gateway/internal/wire"
)

// validate checks the wire form of params, so that it can never disagree with
// what would be sent.
func validate(params any, rule rules.Rule) error {
	body, err := wire.Encode(params)
	if err != nil {
		return err
	}
	found, err := rules.Check(body, rule, rules.Variant{})
	if err != nil {
		return err
	}
	return violations("", found)
}

// validateQuery does so for params that are a query.
func validateQuery(params any, rule rules.Rule) error {
	values, err := query.Values(params)
	if err != nil {
		return err
	}
	return violations("", rules.CheckQuery(values, rule, rules.Variant{}))
}

// violations returns what was found as an error, nil for nothing.
func violations(op string, found []rules.Violation) error {
	if len(found) == 0 {
		return nil
	}
	e := &ValidationError{Op: op, Fields: make([]FieldError, len(found))}
	for i, v := range found {
		e.Fields[i] = FieldError(v)
	}
	return e
}
