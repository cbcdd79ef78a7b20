package gateway

import (
	"fmt"
	"iter"
	"net/url"
	"reflect"
	"strings"

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
	values, err := queryOf("", params)
	if err != nil {
		return err
	}
	return violations("", rules.CheckQuery(values, rule, rules.Variant{}))
}

// queryOf returns params as a query. The gateway splits a list at its commas,
// so a value that has one would be sent as two.
func queryOf(op string, params any) (url.Values, error) {
	var found []rules.Violation
	for name, list := range joinedLists(params) {
		for i, value := range list {
			if strings.Contains(value, ",") {
				found = append(found, rules.Violation{
					Field: fmt.Sprintf("%s[%d]", name, i), Code: rules.CodeInvalid,
					Message: "must not contain a comma: the gateway splits the list of values at commas",
				})
			}
		}
	}
	if len(found) > 0 {
		return nil, violations(op, found)
	}
	values, err := query.Values(params)
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	return values, nil
}

// joinedLists ranges over the lists of strings in params that are sent as one
// parameter, joined by commas.
func joinedLists(params any) iter.Seq2[string, []string] {
	return func(yield func(string, []string) bool) {
		v := reflect.Indirect(reflect.ValueOf(params))
		if v.Kind() != reflect.Struct {
			return
		}
		for i := range v.NumField() {
			name, options, _ := strings.Cut(v.Type().Field(i).Tag.Get("url"), ",")
			f := v.Field(i)
			if f.Kind() != reflect.Slice || f.Type().Elem().Kind() != reflect.String || !strings.Contains(options, "comma") {
				continue
			}
			list := make([]string, f.Len())
			for n := range list {
				list[n] = f.Index(n).String()
			}
			if !yield(name, list) {
				return
			}
		}
	}
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
