package legacy

import (
	"bytes"
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

// do checks the body, if any, against the operation's rule and sends it.
func (c *Client) do(ctx context.Context, op *spec.Operation, path string, in, out any, opts []gateway.RequestOption) error {
	if in != nil {
		if err := validate(in, op.Rule); err != nil {
			if invalid, ok := errors.AsType[*gateway.ValidationError](err); ok {
				invalid.Op = op.Name
			}
			return err
		}
	}
	own := []gateway.RequestOption{gateway.Named(op.Name, op.Path)}
	own = append(own, opts...)
	return c.api.Do(ctx, op.Method, path, in, out, append(own, c.apiKey)...)
}

// validate checks params in their encoded form. A loopback URL may be plain http:
// only the gateway can tell whether it can reach that URL.
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

// onToken makes a call for a card token. It rejects a token that would change the
// endpoint.
func (c *Client) onToken(
	ctx context.Context, op *spec.Operation, publicToken string, in any, opts []gateway.RequestOption,
) (*PaymentToken, error) {
	if strings.TrimSpace(publicToken) == "" || publicToken == "." || publicToken == ".." || strings.ContainsAny(publicToken, `/\`) {
		return nil, &gateway.ValidationError{Op: op.Name, Fields: []gateway.FieldError{{
			Field: "public_token", Code: spec.CodeInvalid,
			Message: "must be the token alone, not empty and not a path",
		}}}
	}
	var out tokenResponse
	if err := c.do(ctx, op, strings.Replace(op.Path, "{public_token}", url.PathEscape(publicToken), 1), in, &out, opts); err != nil {
		return nil, err
	}
	return out.value, nil
}

// flat makes a call whose response has no envelope. The response must have at
// least one of the identifying fields.
func flat[T any](
	ctx context.Context, c *Client, op *spec.Operation, in any, opts []gateway.RequestOption, identifying ...string,
) (*T, error) {
	out := response[T]{identifying: identifying}
	if err := c.do(ctx, op, op.Path, in, &out, opts); err != nil {
		return nil, err
	}
	return &out.value, nil
}

// response is a v1 response, which has no envelope. A 2xx is a success only if it
// has at least one of the identifying fields.
type response[T any] struct {
	value       T
	identifying []string
}

// UnmarshalJSON rejects a response without any of the identifying fields.
func (a *response[T]) UnmarshalJSON(b []byte) error {
	var fields map[string]jsontext.Value
	if err := wire.Decode(b, &fields); err != nil {
		return err
	}
	has := func(name string) bool {
		v := fields[name]
		return len(v) > 0 && v.Kind() != 'n' && string(v) != `""`
	}
	if !slices.ContainsFunc(a.identifying, has) {
		return wire.ErrNoData
	}
	if _, err := wire.DecodeMembers(b, &a.value, membersOf(&a.value)); err != nil {
		return err
	}
	keep(&a.value, b)
	return nil
}

// membersOf returns the members that a result requires; nil requires all.
func membersOf(result any) *spec.Members {
	switch result.(type) {
	case *PixPayment:
		return &spec.PixPaymentMembers
	case *PaymentToken:
		return &spec.PaymentTokenMembers
	default:
		return nil
	}
}

// keep sets the Raw of the results that have one.
func keep(result any, raw []byte) {
	switch r := result.(type) {
	case *Integration:
		r.Raw = bytes.Clone(raw)
	case *PixPayment:
		r.Raw = bytes.Clone(raw)
	case *PaymentToken:
		r.Raw = bytes.Clone(raw)
	}
}

// tokenResponse is a token with or without an envelope, since the interface
// document shows no response.
type tokenResponse struct{ value *PaymentToken }

// UnmarshalJSON reads both forms.
func (a *tokenResponse) UnmarshalJSON(b []byte) error {
	got, err := wire.DecodeEnvelope[PaymentToken](bytes.Clone(b), &spec.PaymentTokenMembers)
	switch {
	case err == nil && got.Data.Token == "":
		return wire.ErrNoData
	case err == nil:
		a.value = got.Data
		keep(a.value, got.Raw)
		return nil
	case !errors.Is(err, wire.ErrNoData):
		return err
	}
	bare := response[PaymentToken]{identifying: []string{"token"}}
	err = bare.UnmarshalJSON(b)
	a.value = &bare.value
	return err
}
