package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/internal/transport"
	"github.com/gateway-go/gateway/internal/wire"
)

// keyedCreate is a create that is safe to repeat because of its reference: the
// gateway rejects a second create with the same reference, or returns the
// first resource. P is the type of its params, T that of the resource.
type keyedCreate[P, T any] struct {
	operation *spec.Operation

	field     string                   // the JSON field with the reference, such as "external_ref"
	automatic bool                     // the client generates a reference if the caller has none
	reference func(*P) *string         // the reference in the params
	differing func(*P, *T) differences // in what a resource does not match the params
	compared  []string                 // the members of the resource with which differing compares, unless a response requires them

	// These recover a resource that an earlier attempt created; they are nil if it
	// can't be recovered. get reads a resource by id, stored returns the reference in
	// it, and search returns the id of the resource with a reference.
	get    *spec.Operation
	stored func(*T) string
	search func(ctx context.Context, c *Client, reference string, age time.Duration, opts []RequestOption) (id string, err error)
}

// create makes one call of k. A missing reference is generated here, once for
// all attempts, and set in params.
func create[P, T any](ctx context.Context, c *Client, k *keyedCreate[P, T], params *P, opts []RequestOption) (*T, error) {
	r, err := c.newRequest(k.operation, opts)
	if err != nil {
		return nil, err
	}
	ctx = r.begin(ctx)
	got, err := k.create(ctx, r, params)
	r.end(err)
	return got, err
}

func (k *keyedCreate[P, T]) create(ctx context.Context, r *request, params *P) (*T, error) {
	if err := k.setReference(r, params); err != nil {
		return nil, err
	}
	if err := r.prepare(params, nil); err != nil {
		return k.unsent(ctx, r, params, err)
	}
	res, err := r.attempt(ctx)
	if err != nil {
		return nil, err
	}
	got, err := received[T](ctx, r, res)
	switch {
	case err != nil && res.MayHaveApplied && res.Final && k.search != nil && r.reference != "":
		return k.recover(ctx, r, res, params, err)
	case err != nil || r.reference == "":
		return got, err
	}
	if in := k.differing(params, got); len(in) > 0 {
		return nil, r.differs(res, got, in)
	}
	if res.Status != http.StatusCreated { // it may be an older resource
		if in := k.unread(got); len(in) > 0 {
			return nil, r.doubtful(res, got, in)
		}
	}
	if r.o.response != nil && res.Status == http.StatusOK {
		r.o.response.Existing, r.o.response.Recovered = true, res.MayHaveApplied
	}
	return got, nil
}

// unsent handles params that the client rejects. If they are those of a repeat,
// this says nothing about the earlier call, so a caller must not take it for a
// rejection of the charge: the resource is looked for, or the outcome is unknown.
func (k *keyedCreate[P, T]) unsent(ctx context.Context, r *request, params *P, invalid error) (*T, error) {
	if r.o.firstSent.IsZero() {
		return nil, invalid
	}
	res := &transport.Result{Started: r.o.firstSent, MayHaveApplied: true}
	e := r.newError(res, wire.Problem{Detail: "the repeat is invalid and was not sent"})
	if fields, ok := errors.AsType[*ValidationError](invalid); ok {
		e.Fields = fields.Fields
	} else {
		e.Err = lookUpError{nil, invalid}
	}
	failed := r.inconclusive(res, e)
	if k.search == nil || r.reference == "" {
		return nil, failed
	}
	return k.recover(ctx, r, res, params, failed)
}

// received returns the resource that the attempts produced, or their error.
func received[T any](ctx context.Context, r *request, res *transport.Result) (*T, error) {
	if err := r.failure(res); err != nil {
		return nil, err
	}
	return decode[T](ctx, r, res)
}

// setReference sets the call's reference. A call without one is unsafe to repeat.
func (k *keyedCreate[P, T]) setReference(r *request, params *P) error {
	inParams, inBody := k.reference(params), false
	r.reference = *inParams
	for _, f := range r.o.body {
		if f.name == k.field {
			inBody = true                            // even if the caller sends null
			_ = json.Unmarshal(f.json, &r.reference) // only a string is a reference
		}
	}
	earlier, automatic := r.o.earlier, k.automatic && r.client.settings.autoReference && !inBody
	if earlier != nil && r.reference == "" && !inBody {
		r.reference, *inParams = earlier.Reference, earlier.Reference
	}
	switch {
	case earlier != nil && r.reference != earlier.Reference:
		return k.invalid(r, "must be that of the earlier call")
	case r.reference == "" && !r.o.firstSent.IsZero() && (automatic || r.o.idempotencyKey == ""):
		return k.invalid(r, "is required for a repeat: pass the reference of the earlier call")
	case r.reference == "" && automatic:
		var err error
		if r.reference, err = r.newKey(); err != nil {
			return err
		}
		*inParams = r.reference
	case r.reference == "":
		r.class = spec.Unsafe
	}
	return nil
}

// invalid returns the error for a reference that a repeat can't have.
func (k *keyedCreate[P, T]) invalid(r *request, message string) error {
	return &ValidationError{Op: r.op.Name, Fields: []FieldError{{Field: k.field, Message: message, Code: spec.CodeRequired}}}
}

// splice inserts the field of a BodyField at the start of the body.
func (r *request) splice(name string, value []byte) {
	quoted, err := json.Marshal(name)
	if err != nil { // a string always encodes
		return
	}
	rest := bytes.TrimPrefix(r.body, []byte("{"))
	if len(rest) == 0 {
		rest = []byte("}")
	}
	body := make([]byte, 0, len(quoted)+len(value)+len(rest)+3)
	body = append(body, '{')
	body = append(body, quoted...)
	body = append(body, ':')
	body = append(body, value...)
	if rest[0] != '}' {
		body = append(body, ',')
	}
	r.body = append(body, rest...)
}

// recover looks for the resource of an earlier attempt whose response was lost.
// failed is the rejection of a later attempt, which the earlier one may have
// caused.
func (k *keyedCreate[P, T]) recover(ctx context.Context, r *request, res *transport.Result, params *P, failed error) (*T, error) {
	e, ok := errors.AsType[*Error](failed)
	if !ok || !e.unknown {
		return nil, failed
	}
	got, err := k.find(ctx, r, res, e.ResourceID)
	if err != nil {
		e.Err = lookUpError{e.Err, err}
		return nil, failed
	}
	if in := k.differing(params, got); len(in) > 0 {
		return nil, r.older(res, got, in)
	}
	if in := k.unread(got); len(in) > 0 {
		return nil, r.doubtful(res, got, in)
	}
	if r.o.response != nil {
		r.o.response.Recovered = true
	}
	return got, nil
}

// lookUpError is the reason why a resource was not found after a lost response.
// It matches no sentinel, because a failed search does not decide the kind of the
// create's error.
type lookUpError struct{ before, err error }

// Error appends the reason to the create's error.
func (l lookUpError) Error() string {
	text := strings.TrimPrefix(l.err.Error(), "gateway: ")
	if l.before != nil {
		text = l.before.Error() + "; " + text
	}
	return text
}

// Is reports whether target is in the chain of either error. It is always false
// for a sentinel.
func (l lookUpError) Is(target error) bool {
	_, sentinel := target.(sentinelError)
	return !sentinel && (errors.Is(l.before, target) || errors.Is(l.err, target))
}

// find reads the resource that has the request's reference: the one that the
// rejection names, or else one on the newest pages of the list.
func (k *keyedCreate[P, T]) find(ctx context.Context, r *request, res *transport.Result, named string) (*T, error) {
	opts := r.sameCaller()
	if named != "" {
		got, err := call[T](ctx, r.client, k.get, nil, opts, named)
		if err == nil && k.stored(got) == r.reference {
			return got, nil
		}
	}
	id, err := k.search(ctx, r.client, r.reference, time.Since(res.Started), opts)
	if err != nil {
		return nil, err
	}
	return call[T](ctx, r.client, k.get, nil, opts, id)
}

// idIn returns the element after collection in a path: an id, or "".
func idIn(path, collection string) string {
	_, after, _ := strings.Cut(path, collection+"/")
	id, err := url.PathUnescape(after)
	if err != nil || checkPathElement("", "id", id) != nil {
		return ""
	}
	return id
}

// sameCaller returns the options for another call with the same credential and
// limits.
func (r *request) sameCaller() []RequestOption {
	o := r.o
	return []RequestOption{func(other *callOptions) error {
		other.credential, other.attemptTimeout, other.maxAttempts = o.credential, o.attemptTimeout, o.maxAttempts
		return nil
	}}
}

// differs returns the error of a create whose response has another content than
// the request. A 201 means that something was created, whatever it is.
func (r *request) differs(res *transport.Result, got any, in differences) error {
	if res.Status != http.StatusCreated {
		return r.older(res, got, in)
	}
	e := r.newError(res, wire.Problem{
		Title: "Different resource", Detail: "the gateway returned a resource with another " + in.String() + " than the requested one",
	})
	e.Existing, e.ResourceID = got, idOf(got)
	return r.inconclusive(res, e)
}

// unread returns the compared members that were left out of a resource, so that it can't
// be said whether it is the requested one.
func (k *keyedCreate[P, T]) unread(got *T) differences {
	raw, ok := any(got).(interface{ asReceived() json.RawMessage })
	if !ok {
		return nil
	}
	return unreadIn[T](raw.asReceived(), k.compared)
}

// doubtful returns the error of a create whose reference belongs to a resource that may
// be an older one with another content.
func (r *request) doubtful(res *transport.Result, got any, in differences) error {
	e := r.newError(res, wire.Problem{
		Title: "Unreadable resource", Detail: "the gateway returned a resource with the reference, whose " + in.String() + " can't be read: compare it with the request",
	})
	e.Existing, e.ResourceID = got, idOf(got)
	return r.inconclusive(res, e)
}

// older returns the error of a create whose reference belongs to an older,
// different resource.
func (r *request) older(res *transport.Result, existing any, in differences) error {
	e := r.newError(res, wire.Problem{
		Title: "Duplicate reference", Detail: "the reference belongs to an older resource with another " + in.String(),
	})
	e.Existing, e.ResourceID, e.duplicate = existing, idOf(existing), true
	return e
}

// differences are the members in which a resource differs from the params of its
// create.
type differences []string

// unless adds a member if the resource does not agree with the params in it.
func (d *differences) unless(agree bool, member string) {
	if !agree {
		*d = append(*d, member)
	}
}

// String returns "amount", "amount and currency" or "amount, currency and interval".
func (d *differences) String() string {
	all := *d
	if last := len(all) - 1; last > 0 {
		return strings.Join(all[:last], ", ") + " and " + all[last]
	}
	return strings.Join(all, "")
}

// agrees reports whether a returned value matches the requested one. A value
// that was not requested, or not returned, matches.
func agrees[T comparable](requested, returned T) bool {
	var none T
	return requested == none || returned == none || requested == returned
}

// searchPages is how many of the newest pages are searched for a resource whose
// response was lost.
const searchPages = 10

// searchNewest returns the id of the item with the reference. It stops at items
// older than age, relative to the newest item, because the client's clock may
// differ from the gateway's.
func searchNewest[T any](
	pages iter.Seq2[*Page[T], error], age time.Duration, reference string,
	item func(*T) (id, reference string, created time.Time),
) (string, error) {
	var newest time.Time
	n, read := 0, 0
	for page, err := range pages {
		if err != nil {
			return "", err
		}
		oldest := time.Time{}
		read += len(page.Items)
		for i := range page.Items {
			id, ref, created := item(&page.Items[i])
			if ref == reference {
				return id, nil
			}
			if newest.IsZero() {
				newest = created
			}
			oldest = created
		}
		if n++; n == searchPages || newest.Sub(oldest) > age+time.Minute && !oldest.IsZero() {
			break
		}
	}
	return "", fmt.Errorf("no resource with the reference was found (%d checked)", read)
}
