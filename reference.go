package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/gateway-go/gateway/internal/transport"
	"github.com/gateway-go/gateway/internal/wire"
)

// keyedCreate is a create that a reference makes safe to repeat: the gateway
// refuses, or answers, the second one with the same reference. P are its
// params, T the resource.
type keyedCreate[P, T any] struct {
	operation

	member    string            // that holds the reference: "external_ref"
	automatic bool              // the client makes a reference where the caller has none
	reference func(*P) string   // the caller's
	same      func(*P, *T) bool // whether a resource is what the params ask for; see agrees

	// get reads a resource and its reference by id, search finds the id that
	// has a reference. They bring back what an earlier attempt of a call had
	// made; nil where a 409 is always another call's.
	get    func(ctx context.Context, c *Client, id string, opts []RequestOption) (resource *T, reference string, err error)
	search func(ctx context.Context, c *Client, reference string, age time.Duration, opts []RequestOption) (id string, err error)
}

// create makes one call of k. A reference that the params don't have is made
// here, once for all attempts, after the params passed the rules.
func create[P, T any](ctx context.Context, c *Client, k *keyedCreate[P, T], params *P, opts []RequestOption) (*T, error) {
	r, err := c.request(&k.operation, params, opts, nil)
	if err != nil {
		return nil, err
	}
	if err := k.refer(r, params); err != nil {
		return nil, err
	}
	res := r.attempt(ctx)
	if res.Status == http.StatusConflict && res.Maybe && res.Ended == nil && k.search != nil && r.reference != "" {
		return k.recover(ctx, r, &res, params)
	}
	if err := r.failure(&res); err != nil {
		return nil, err
	}
	got, err := decode[T](r, &res)
	if err != nil || r.reference == "" {
		return got, err
	}
	if !k.same(params, got) {
		return nil, r.older(&res, got)
	}
	if r.o.response != nil && res.Status == http.StatusOK {
		r.o.response.Existing, r.o.response.Recovered = true, res.Maybe
	}
	return got, nil
}

// refer settles the call's reference and, where there is none, its class.
func (k *keyedCreate[P, T]) refer(r *request, params *P) error {
	r.reference = k.reference(params)
	automatic := k.automatic && r.client.settings.autoReference
	for _, f := range r.o.body {
		if f.name == k.member {
			automatic = false                        // also where the caller sends null
			_ = json.Unmarshal(f.json, &r.reference) // what is no text is no reference
		}
	}
	if r.reference == "" && automatic {
		id, err := uuid.NewRandom()
		if err != nil {
			return fmt.Errorf("gateway: %s: no reference could be made: %w", r.op.Name, err)
		}
		r.reference = id.String()
		r.splice(k.member, []byte(`"`+r.reference+`"`))
	}
	if r.reference == "" {
		r.class = transport.Unsafe
	}
	return nil
}

// splice puts a member in front of those of the body.
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

// recover looks for what an earlier attempt made, whose answer was lost: the
// gateway has just refused the reference as used.
func (k *keyedCreate[P, T]) recover(ctx context.Context, r *request, res *transport.Result, params *P) (*T, error) {
	conflict := r.failure(res)
	got, err := k.find(ctx, r, res)
	switch {
	case err != nil:
		return nil, &OutcomeError{Op: r.op.Name, Reference: r.reference, Err: fmt.Errorf("%w; %w", conflict, err)}
	case !k.same(params, got):
		return nil, r.older(res, got)
	}
	if r.o.response != nil {
		r.o.response.Recovered = true
	}
	return got, nil
}

// find reads the resource that has the request's reference: at the path that
// the refusal names, else through the newest pages of the list.
func (k *keyedCreate[P, T]) find(ctx context.Context, r *request, res *transport.Result) (*T, error) {
	opts := r.sameCaller()
	if id := idIn(wire.DecodeProblem(res.Body).Instance, r.op.Path); id != "" {
		got, reference, err := k.get(ctx, r.client, id, opts)
		if err == nil && reference == r.reference {
			return got, nil
		}
	}
	id, err := k.search(ctx, r.client, r.reference, time.Since(res.Started), opts)
	if err != nil {
		return nil, err
	}
	got, _, err := k.get(ctx, r.client, id, opts)
	return got, err
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

// sameCaller returns the options that make another call as this one was made.
func (r *request) sameCaller() []RequestOption {
	o := r.o
	return []RequestOption{func(other *callOptions) error {
		other.credential, other.attemptTimeout, other.maxAttempts = o.credential, o.attemptTimeout, o.maxAttempts
		return nil
	}}
}

// older returns the error of a create that was answered with another
// resource than it asked for.
func (r *request) older(res *transport.Result, existing any) error {
	e := r.newError(res, wire.Problem{
		Title: "Duplicate reference", Detail: "the reference belongs to an older resource that differs from the one asked for",
	})
	e.Existing, e.duplicate = existing, true
	return e
}

// agrees reports whether an answered value is the one asked for. What is not
// asked for, or not answered, does not disagree.
func agrees[T comparable](asked, answered T) bool {
	var none T
	return asked == none || answered == none || asked == answered
}

// searchPages is how many of the newest pages are searched for a lost answer.
const searchPages = 10

// searchNewest returns the id of the item with the reference. It reads the
// first page and goes on while items are younger than age, measured from the
// newest item, so that the two clocks need not agree.
func searchNewest[T any](
	pages iter.Seq2[*Page[T], error], age time.Duration, reference string,
	item func(*T) (id, reference string, created time.Time),
) (string, error) {
	var newest time.Time
	n := 0
	for page, err := range pages {
		if err != nil {
			return "", err
		}
		oldest := time.Time{}
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
	return "", fmt.Errorf("no resource with reference %s among the newest ones: %w", reference, ErrNotFound)
}
