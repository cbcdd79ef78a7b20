package legacy

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/internal/wire"
)

// operation is one row of the v1 interface.
type operation struct {
	*spec.Operation

	element string // what stands in the place of {public_token}
}

func (c *Client) do(ctx context.Context, op operation, in, out any, opts []gateway.RequestOption) error {
	path := op.Path
	if op.element != "" {
		path = strings.Replace(path, "{public_token}", url.PathEscape(op.element), 1)
	}
	own := []gateway.RequestOption{gateway.Named(op.Name, op.Path)}
	own = append(own, opts...)
	return c.api.Do(ctx, op.Method, path, in, out, append(own, c.apiKey)...)
}

// write runs the operation's rule over what will be sent, and sends it.
func (c *Client) write(ctx context.Context, op operation, in, out any, opts []gateway.RequestOption) error {
	if err := validate(in, op.Rule); err != nil {
		if refused, ok := errors.AsType[*gateway.ValidationError](err); ok {
			refused.Op = op.Name
		}
		return err
	}
	return c.do(ctx, op, in, out, opts)
}

// validate checks the wire form of params. A URL of this machine may be plain
// http: only the gateway can tell whether it reaches it.
func validate(params any, rule spec.Rule) error {
	body, err := wire.Encode(params)
	if err != nil {
		return err
	}
	found, err := spec.Check(body, rule, spec.Variant{LoopbackHTTP: true})
	if err != nil || len(found) == 0 {
		return err
	}
	e := &gateway.ValidationError{}
	for _, v := range found {
		e.Fields = append(e.Fields, gateway.FieldError(v))
	}
	return e
}

// of returns the operation on a token. It refuses what would name another
// endpoint than a token's.
func (op operation) of(publicToken string) (operation, error) {
	if strings.TrimSpace(publicToken) == "" || publicToken == "." || publicToken == ".." || strings.ContainsAny(publicToken, `/\`) {
		return operation{}, &gateway.ValidationError{Op: op.Name, Fields: []gateway.FieldError{{
			Field: "public_token", Code: spec.CodeInvalid,
			Message: "must be the token alone, not empty and not a path",
		}}}
	}
	op.element = publicToken
	return op, nil
}

// response is a v1 response, which has no envelope: a 2xx counts only where it has
// one of the members that tell it from an empty object. A balance of 0 and a
// body that says nothing are not the same.
type response[T any] struct {
	value T
	must  []string
}

// UnmarshalJSON refuses a response that says nothing.
func (a *response[T]) UnmarshalJSON(b []byte) error {
	var members map[string]jsontext.Value
	if err := wire.Decode(b, &members); err != nil {
		return err
	}
	says := func(name string) bool {
		v := members[name]
		return len(v) > 0 && v.Kind() != 'n' && string(v) != `""`
	}
	if !slices.ContainsFunc(a.must, says) {
		return wire.ErrNoData
	}
	return wire.Decode(b, &a.value)
}

// tokenResponse is a token in an envelope or, since no response is published,
// without one.
type tokenResponse struct{ value *PaymentToken }

// UnmarshalJSON reads both.
func (a *tokenResponse) UnmarshalJSON(b []byte) error {
	var err error
	a.value, _, err = wire.DecodeEnvelope[PaymentToken](b)
	if err == nil && a.value.Token == "" {
		return wire.ErrNoData
	}
	if !errors.Is(err, wire.ErrNoData) {
		return err
	}
	flat := response[PaymentToken]{must: []string{"token"}}
	err = flat.UnmarshalJSON(b)
	a.value = &flat.value
	return err
}
