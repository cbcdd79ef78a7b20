package gateway

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/gateway-go/gateway/internal/jsonread"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/internal/transport"
	"github.com/gateway-go/gateway/internal/wire"
)

// A method of a service passes its operation, a row of [spec.Operations], to
// one of four functions:
//
//	func (s *ThingsService) Get(ctx context.Context, id string, opts ...RequestOption) (*Thing, error) {
//		return call[Thing](ctx, s.client, &spec.Things.Get, nil, opts, id)
//	}
//
//   - call sends params (or nil) and decodes the response's data into a new T;
//   - create does so for a create with a reference: see keyedCreate;
//   - listPage and listPages read lists, by cursor or by page number.
//
// Params are the body, or for GET the query: a pointer or nil. They are
// encoded, and the operation's rule is run on exactly the bytes that will be
// sent. Path arguments come last; they are checked and escaped.
// CONTRIBUTING.md lists what else an endpoint needs.

// call makes one call whose response is an envelope with one resource.
func call[T any](ctx context.Context, c *Client, op *spec.Operation, params any, opts []RequestOption, path ...string) (*T, error) {
	r, err := c.newRequest(op, opts)
	if err != nil {
		return nil, err
	}
	ctx = r.begin(ctx)
	got, err := perform[T](ctx, r, params, path)
	r.end(err)
	return got, err
}

func perform[T any](ctx context.Context, r *request, params any, path []string) (*T, error) {
	if err := r.prepare(params, path); err != nil {
		return nil, err
	}
	res, err := r.send(ctx)
	if err != nil {
		return nil, err
	}
	return decode[T](ctx, r, res)
}

// decode returns the resource in a 2xx response.
func decode[T any](ctx context.Context, r *request, res *transport.Result) (*T, error) {
	got, err := wire.DecodeEnvelope[T](res.Body, membersOf[T]())
	if err == nil {
		err = checkIdentity(got.Data)
	}
	if err != nil {
		return nil, r.undecodable(res, err)
	}
	if k, ok := any(got.Data).(keeper); ok {
		raw := got.Raw
		if len(res.Body) <= jsonread.ShortBody {
			raw = bytes.Clone(raw) // the strings of data are parts of the body, and a caller may change Raw
		}
		k.keep(raw)
	}
	r.fillResponse(res, got.RequestID)
	r.warnUnread(ctx, leftOut(got.Unread, got.Data))
	return got.Data, nil
}

// request is one prepared call.
type request struct {
	op        *spec.Operation
	client    *Client
	class     spec.Class
	url       *url.URL
	query     url.Values
	body      []byte
	reference string
	key       string // the Idempotency-Key that is sent; "" for none
	o         callOptions
	transport transport.Request
	ended     func(Response, error) // returned by the observer; may be nil
}

// prepare encodes the params, checks them and resolves the path.
func (r *request) prepare(params any, path []string) error {
	if err := r.encode(params); err != nil {
		return err
	}
	var err error
	r.url, err = r.client.resolve(r.op, path, r.query)
	return misuse(r.op, err)
}

// misuse returns the error of a call with invalid arguments.
func misuse(op *spec.Operation, err error) error {
	if err == nil || errors.Is(err, ErrValidation) {
		return err
	}
	return &Error{Op: op.Name, Err: err, kind: http.StatusBadRequest}
}

// newRequest returns a request for op with the call's options applied.
func (c *Client) newRequest(op *spec.Operation, opts []RequestOption) (*request, error) {
	r := &request{op: op, client: c, class: op.Class}
	err := applyOptions(&r.o, opts)
	if err == nil && r.o.credential != nil {
		err = r.o.credential.check(c.host)
	}
	if err != nil {
		return nil, misuse(op, err)
	}
	if r.o.operation.Name != "" {
		named := *op // Path stays, because it is the path of the request
		named.Name = r.o.operation.Name
		r.op = &named
	}
	return r, misuse(r.op, r.repeat(r.o.earlier))
}

// repeat makes the call one with the idempotency key of an earlier one.
func (r *request) repeat(earlier *OutcomeError) error {
	switch {
	case earlier == nil:
		return nil
	case earlier.Op != r.op.Name:
		return fmt.Errorf("RepeatOf: the error is that of %s", earlier.Op)
	case earlier.account != r.client.Account():
		return errors.New("RepeatOf: the error is that of a client with another account or base URL, where the earlier call may have been applied")
	case r.o.idempotencyKey != "" && r.o.idempotencyKey != earlier.IdempotencyKey:
		return errors.New("RepeatOf: the IdempotencyKey is not that of the earlier call")
	}
	r.o.idempotencyKey = earlier.IdempotencyKey
	return nil
}

// encode sets the query or the body from params, and checks it.
func (r *request) encode(params any) error {
	if isRead(r.op.Method) {
		return misuse(r.op, r.encodeQuery(params))
	}
	return misuse(r.op, r.encodeBody(params))
}

func isRead(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

func (r *request) encodeQuery(params any) error {
	if len(r.o.body) > 0 {
		return fmt.Errorf("BodyField: a %s has no body", r.op.Method)
	}
	if params != nil {
		values, err := queryOf(r.op.Name, params)
		if err != nil {
			return err
		}
		r.query = values
	}
	r.query = merge(r.query, r.o.query)
	if r.op.Rule == nil {
		return nil
	}
	return violations(r.op.Name, spec.CheckQuery(r.query, r.op.Rule, r.client.variant))
}

func (r *request) encodeBody(params any) error {
	r.query = r.o.query
	if params != nil {
		body, err := encodeRequest(params)
		if err != nil {
			return fmt.Errorf("body: %w", err)
		}
		r.body = body
	}
	for _, f := range r.o.body {
		r.splice(f.name, f.json)
	}
	if r.body == nil || r.op.Rule == nil && len(r.o.body) == 0 {
		return nil
	}
	found, err := spec.Check(r.body, r.op.Rule, r.client.variant)
	if err != nil {
		return fmt.Errorf("body: %w", err)
	}
	return violations(r.op.Name, found)
}

// merge adds the parameters of more to q.
func merge(q, more url.Values) url.Values {
	if q == nil {
		return more
	}
	for name, values := range more {
		q[name] = append(q[name], values...)
	}
	return q
}

// send makes the attempts and returns a 2xx response, or the error.
func (r *request) send(ctx context.Context) (*transport.Result, error) {
	res, err := r.attempt(ctx)
	if err != nil {
		return nil, err
	}
	return res, r.failure(res)
}

// attempt makes the attempts. It returns an error only if it made none.
func (r *request) attempt(ctx context.Context) (*transport.Result, error) {
	s := &r.client.settings
	if err := r.useKey(s.idempotencyKeys); err != nil {
		return nil, err
	}
	if r.o.earlier != nil && r.class == spec.Unsafe {
		return nil, misuse(r.op, errors.New("RepeatOf: a repeat of this call may be applied twice: wait a few minutes and read the resource"))
	}
	r.transport = transport.Request{
		Operation:      transport.Operation(r.operation()),
		Class:          r.class,
		URL:            r.url,
		Header:         r.headers(),
		Body:           r.body,
		Credential:     r,
		MaxAttempts:    cmp.Or(r.o.maxAttempts, s.maxAttempts),
		AttemptTimeout: cmp.Or(r.o.attemptTimeout, s.attemptTimeout),
		RepeatOf:       r.o.firstSent,
	}
	res := r.client.engine.Do(ctx, &r.transport)
	r.watchKey(ctx, res)
	return res, nil
}

// watchKey logs once that the gateway rejects the client's key, which may expire without
// notice, and once that it accepts it again.
func (r *request) watchKey(ctx context.Context, res *transport.Result) {
	rejected, logger := r.client.settings.keyRejected, r.client.settings.logger
	if logger == nil || r.o.credential != nil || r.o.header.Get(sessionTokenHeader) != "" { // a 401 may be about those
		return
	}
	switch {
	case res.Status == http.StatusUnauthorized && res.Definite:
		if rejected.CompareAndSwap(false, true) {
			logger.LogAttrs(ctx, slog.LevelError, "gateway: the gateway rejects the key: every call fails until it is replaced",
				slog.String("op", r.op.Name), slog.String("request_id", res.RequestID()))
		}
	case res.Err == nil && isSuccess(res.Status):
		if rejected.CompareAndSwap(true, false) {
			logger.LogAttrs(ctx, slog.LevelInfo, "gateway: the gateway accepts the key again")
		}
	}
}

// useKey sets the call's Idempotency-Key. If the gateway supports the header,
// every unsafe POST and PUT has a key and may be retried with it, except on the
// v1 surface. Other methods and v1 have no idempotency keys.
func (r *request) useKey(supported bool) error {
	r.key = r.o.idempotencyKey
	path := strings.TrimPrefix(r.url.Path, r.client.base.Path)
	hasKeys := (r.op.Method == http.MethodPost || r.op.Method == http.MethodPut) && !strings.Contains(path, "/v1/")
	if !supported || !hasKeys || r.class != spec.Unsafe {
		return nil
	}
	r.class = spec.Keyed
	if r.key != "" {
		return nil
	}
	var err error
	r.key, err = r.newKey()
	return err
}

// newKey generates a reference or an idempotency key.
func (r *request) newKey() (string, error) {
	id, err := uuid.NewRandom()
	if err != nil {
		return "", &Error{Op: r.op.Name, Err: fmt.Errorf("can't generate an idempotency key: %w", err), notSent: true}
	}
	return id.String(), nil
}

// Authorize sets the headers of the call's credential.
func (r *request) Authorize(ctx context.Context, h http.Header) error {
	credential := &r.client.settings.credential
	if r.o.credential != nil {
		credential = r.o.credential
	}
	return credential.set(ctx, r.client.host, h)
}

func (r *request) headers() http.Header {
	base := r.client.header
	if r.body != nil {
		base = r.client.bodyHeader
	}
	if r.o.header == nil && r.key == "" {
		return base
	}
	h := base.Clone()
	maps.Copy(h, r.o.header)
	if r.key != "" {
		h.Set(idempotencyKeyHeader, r.key)
	}
	return h
}

// Operation identifies the kind of a call. It contains no ids, so it is safe to
// use in logs and span names.
type Operation struct {
	Name   string // "transactions.refund"
	Method string // "PUT"
	Path   string // the template: "/v2/transactions/{id}/refund"
}

// OperationFromContext returns the operation that a request belongs to, for use
// in an http.RoundTripper set with [WithHTTPClient]. All attempts of a call have
// the same operation. It returns false for a request that no [Client] made.
func OperationFromContext(ctx context.Context) (Operation, bool) {
	op, ok := transport.OperationFromContext(ctx)
	return Operation(op), ok
}

// resolve returns the URL of op with its placeholders replaced by args.
func (c *Client) resolve(op *spec.Operation, args []string, query url.Values) (*url.URL, error) {
	u := *c.base
	u.RawQuery = query.Encode()
	if len(args) == 0 {
		u.Path += op.Path
		if u.RawPath != "" {
			u.RawPath += op.Path
		}
		return &u, nil
	}
	var plain, escaped strings.Builder
	rest := op.Path
	for _, arg := range args {
		before, after, _ := strings.Cut(rest, "{")
		name, after, _ := strings.Cut(after, "}")
		if err := checkPathElement(op.Name, name, arg); err != nil {
			return nil, err
		}
		plain.WriteString(before + arg)
		escaped.WriteString(before + url.PathEscape(arg))
		rest = after
	}
	u.RawPath = c.base.EscapedPath() + escaped.String() + rest
	u.Path += plain.String() + rest
	return &u, nil
}

// checkPathElement rejects an element that would change the endpoint, such as
// "" or "..", before anything is sent.
func checkPathElement(op, name, value string) error {
	reject := func(code, format string, args ...any) error {
		return &ValidationError{Op: op, Fields: []FieldError{{Field: name, Message: fmt.Sprintf(format, args...), Code: code}}}
	}
	switch {
	case strings.TrimSpace(value) == "":
		return reject(spec.CodeRequired, "is required: pass the %s as the gateway returned it", name)
	case value == "." || value == "..":
		return reject(spec.CodeInvalid, "must not be a relative path: pass the %s as the gateway returned it", name)
	case strings.ContainsAny(value, `/\`) || !printable(value):
		return reject(spec.CodeInvalid, "must not contain slashes or control characters: pass the %s alone, not a path", name)
	}
	if name != "slug" {
		return nil
	}
	switch n := utf8.RuneCountInString(value); {
	case n < spec.MinSlug:
		return reject(spec.CodeTooSmall, "must have at least %d characters", spec.MinSlug)
	case n > spec.MaxSlug:
		return reject(spec.CodeTooBig, "must have at most %d characters", spec.MaxSlug)
	}
	return nil
}

func printable(s string) bool {
	for _, r := range s {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return false
		}
	}
	return true
}

// rawURL returns the URL of a path that the caller escaped.
func (c *Client) rawURL(path string, query url.Values) (*url.URL, error) {
	plain, err := url.PathUnescape(path)
	switch {
	case err != nil || !strings.HasPrefix(path, "/"):
		return nil, fmt.Errorf("gateway: the path %q must start with a slash and be escaped", path)
	case strings.ContainsAny(path, "?#"):
		return nil, fmt.Errorf("gateway: the path %q must not contain a query or a fragment: pass query parameters in the argument in, or with Query", path)
	}
	for element := range strings.SplitSeq(plain, "/") {
		if element == "." || element == ".." {
			return nil, fmt.Errorf("gateway: the path %q must not have . or .. as an element", path)
		}
	}
	u := *c.base
	u.RawQuery = query.Encode()
	u.RawPath = c.base.EscapedPath() + path
	u.Path += plain
	return &u, nil
}

// resource is the content of a response. An empty object also decodes without
// an error, so every resource has a field that identifies it.
type resource interface{ identity() (field, value string) }

func (t *Transaction) identity() (field, value string)       { return "id", t.ID }
func (t *listedTransaction) identity() (field, value string) { return "id", t.ID }
func (a *sandboxResponse) identity() (field, value string) {
	return "transaction.id", a.Transaction.ID
}
func (t *Transfer) identity() (field, value string)     { return "id", t.ID }
func (c *Customer) identity() (field, value string)     { return "id", c.ID }
func (s *Subscription) identity() (field, value string) { return "id", s.ID }
func (l *CheckoutLink) identity() (field, value string) { return "url", l.URL }

func (d *Delivery) identity() (field, value string) {
	return "status", cmp.Or(string(d.Status), d.Code)
}

func (r *Refund) identity() (field, value string) {
	return "amount_refunded", strconv.FormatInt(r.AmountRefunded, 10)
}

func (s *CheckoutSession) identity() (field, value string) {
	return "session_token", s.SessionToken.Reveal()
}

func (s *CheckoutSessionState) identity() (field, value string) {
	return "status", string(s.Status)
}

// keeper is a resource with its JSON as received.
type keeper interface{ keep(raw json.RawMessage) }

func (t *Transaction) keep(raw json.RawMessage)       { t.Raw = raw }
func (t *listedTransaction) keep(raw json.RawMessage) { t.Raw = raw }
func (t *Transfer) keep(raw json.RawMessage)          { t.Raw = raw }
func (c *Customer) keep(raw json.RawMessage)          { c.Raw = raw }
func (s *Subscription) keep(raw json.RawMessage)      { s.Raw = raw }
func (l *CheckoutLink) keep(raw json.RawMessage)      { l.Raw = raw }
func (s *CheckoutSession) keep(raw json.RawMessage)   { s.Raw = raw }

func (t *Transaction) asReceived() json.RawMessage  { return t.Raw }
func (t *Transfer) asReceived() json.RawMessage     { return t.Raw }
func (c *Customer) asReceived() json.RawMessage     { return c.Raw }
func (s *Subscription) asReceived() json.RawMessage { return s.Raw }

// checkIdentity returns an error if v is a resource without the field that
// identifies it.
func checkIdentity(v any) error {
	r, ok := v.(resource)
	if !ok {
		return nil
	}
	if field, value := r.identity(); value == "" || value == "0" {
		return fmt.Errorf("the response has no %s", field)
	}
	return nil
}

// checkIdentities is checkIdentity for the items of a list.
func checkIdentities[T any](items []T) error {
	for i := range items {
		if err := checkIdentity(&items[i]); err != nil {
			return fmt.Errorf("item %d of the list: %w", i+1, err)
		}
	}
	return nil
}

// idOf returns the id of a resource.
func idOf(v any) string {
	if r, ok := v.(resource); ok {
		_, id := r.identity()
		return id
	}
	return ""
}

// Response is the metadata of a response: everything except the resource. See
// [ResponseInto]. If the call fails, it has whatever was received.
type Response struct {
	StatusCode int
	RequestID  string      // the gateway's trace id
	Header     http.Header // as received
	Attempts   int         // how many requests were made

	// Reference is the external_ref or idempotency_key that was sent. If the
	// params had none, it is the one that the client generated for all attempts.
	Reference string

	// Recovered reports that an earlier attempt, whose response was lost, had
	// created the resource, and that the client found it by its reference.
	Recovered bool

	// Unread lists the members that were left out of the result because their values
	// have another type than documented, and the times that can't be read: "fee",
	// "updated_at". The result's Raw has them. No member that decides about money is
	// among them: such a value is an error.
	Unread []string

	// Existing reports that the gateway returned an existing resource with the
	// same reference and the same content as this call.
	Existing bool
}
