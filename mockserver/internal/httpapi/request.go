package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/internal/jsonread"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/faults"
	"github.com/gateway-go/gateway/mockserver/internal/gate"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// request is one request to the API.
type request struct {
	api     *API
	w       http.ResponseWriter
	r       *http.Request
	id      string // for X-Request-Id
	key     string // of the account, if the gateway itself makes the request
	route   *route
	param   string         // of the path
	account *store.Account // &observed

	observed store.Account
	status   int // of success; a handler may change it
}

// read returns the resource in the path, or nil. A fault may request its
// previous version.
func read[R any](rq *request, t *store.Table[R]) *R {
	if faults.Stale(rq.r.Context()) {
		return t.Before(rq.param)
	}
	return t.Get(rq.param)
}

// view reads the account, as it was some time ago if a fault requests that.
func (rq *request) view(do func(*store.Data)) {
	rq.account.View(func(d *store.Data) {
		if behind := faults.Behind(rq.r.Context()); behind > 0 {
			d = d.AsOf(rq.api.cfg.Now().Add(-behind))
		}
		do(d)
	})
}

// maxBody is the maximum size of a body in bytes.
const maxBody = 1 << 20

// withBody reads a JSON body, validates it and decodes it for do.
func withBody[T any](do func(rq *request, in *T) (any, *engine.Refusal)) handler {
	return func(rq *request) (any, *problem) {
		buf, ok := bodies.Get().(*bytes.Buffer)
		if !ok {
			buf = new(bytes.Buffer)
		}
		defer putBody(buf)
		if p := rq.read(buf); p != nil {
			return nil, p
		}
		in, keys := new(T), rq.idempotencyKeys()
		if p := rq.decode(buf.Bytes(), in, append(rq.pathErrors(), checkKeys(keys)...)); p != nil {
			return nil, p
		}
		if keys != nil {
			return rq.once(keys[0], buf.Bytes(), func() (any, *engine.Refusal) { return do(rq, in) })
		}
		data, refusal := do(rq, in)
		return data, refused(refusal)
	}
}

// pathErrors checks the path parameter.
func (rq *request) pathErrors() []spec.Violation {
	if rq.route.rule == nil {
		return nil
	}
	return rq.route.rule(rq.param, rq.api.cfg.Dialect.Live(spec.MalformedID))
}

// plainly wraps a handler for requests without a body or query.
func plainly(do func(rq *request) (any, *engine.Refusal)) handler {
	return func(rq *request) (any, *problem) {
		if fields := rq.pathErrors(); len(fields) > 0 {
			return nil, invalid(fields)
		}
		data, refusal := do(rq)
		return data, refused(refusal)
	}
}

// bodies are buffers for request bodies; putBody discards the large ones.
var bodies sync.Pool

func putBody(b *bytes.Buffer) {
	if b.Cap() <= 64<<10 {
		b.Reset()
		bodies.Put(b)
	}
}

// read checks the declared size and content type, and reads the body.
func (rq *request) read(buf *bytes.Buffer) *problem {
	optional := rq.route.optional
	if rq.r.ContentLength > maxBody {
		return tooLarge()
	}
	if !optional || rq.r.Header.Get("Content-Type") != "" || rq.r.ContentLength > 0 {
		media, _, err := mime.ParseMediaType(rq.r.Header.Get("Content-Type"))
		if err != nil || media != "application/json" {
			return &problem{
				status: http.StatusUnsupportedMediaType,
				code:   "UNSUPPORTED_MEDIA_TYPE",
				detail: "Send the body as Content-Type: application/json.",
			}
		}
	}
	if encoding := gate.Encoding(rq.r); encoding != "" {
		rq.w.Header().Set("Accept-Encoding", gate.AcceptEncoding)
		return &problem{
			status: http.StatusUnsupportedMediaType,
			code:   "UNSUPPORTED_MEDIA_TYPE",
			detail: fmt.Sprintf("The body's Content-Encoding is %.40q: send it without one, or as gzip.", encoding),
		}
	}
	_, err := buf.ReadFrom(http.MaxBytesReader(rq.w, rq.r.Body, maxBody))
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		return tooLarge()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &problem{status: http.StatusRequestTimeout, code: "BODY_TIMEOUT", detail: "The body did not arrive in time."}
	case errors.Is(err, gate.ErrGzip):
		return malformed("The body is not in gzip format, as its Content-Encoding says.")
	case err != nil:
		return malformed("The body could not be read completely.")
	case buf.Len() == 0 && optional:
		buf.WriteString("{}")
	}
	return nil
}

func tooLarge() *problem {
	return &problem{
		status: http.StatusRequestEntityTooLarge,
		code:   "BODY_TOO_LARGE",
		detail: "The body is longer than 1 MiB.",
	}
}

func malformed(detail string) *problem {
	return &problem{status: http.StatusBadRequest, code: "MALFORMED_JSON", detail: detail}
}

// notAnObject is the live reading of body-not-object for a body that is valid JSON.
func notAnObject(kind jsontext.Kind, wrong []spec.Violation) *problem {
	p := invalid(append(wrong, spec.Violation{
		Field: "body", Code: spec.CodeInvalidType, Message: "must be an object, not " + jsonread.KindName(kind),
	}))
	p.status = http.StatusUnprocessableEntity
	return p
}

// decode validates body and decodes it into v. Errors in other parts of the
// request are reported together with its own.
func (rq *request) decode(body []byte, v any, wrong []spec.Violation) *problem {
	doc, err := spec.Parse(body)
	if err != nil {
		if kind := jsontext.Value(body).Kind(); rq.api.cfg.Dialect.Live(spec.BodyNotObject) && kind != '{' && jsontext.Value(body).IsValid() {
			return notAnObject(kind, wrong)
		}
		if jsonread.Marked(body) { // or the message would point at a byte that no editor shows
			return malformed("The body begins with a byte order mark (the bytes EF BB BF), which JSON doesn't allow: send it without.")
		}
		return malformed("The body is not a valid JSON object: " + err.Error() + ".")
	}
	defer doc.Release()
	variant := rq.api.variant()
	if len(doc.Check(rq.route.Rule, variant))+len(wrong) > 0 {
		// Times are compared with the clock here only if the request is invalid
		// anyway. Otherwise the engine compares them, after it has looked up the
		// idempotency key.
		variant.Now = rq.api.cfg.Now()
		return invalid(append(wrong, doc.Check(rq.route.Rule, variant)...))
	}
	err = doc.Decode(v)
	var mistyped *json.SemanticError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &mistyped):
		// Every rule rejects values of another type.
		field := spec.FieldPath(mistyped.JSONPointer)
		return invalid([]spec.Violation{{
			Field: field, Code: spec.CodeInvalidType, Message: "has the wrong type",
		}})
	default:
		return malformed("The body could not be decoded.")
	}
}

// maxRequestID is the maximum length of an id that a client chose.
const maxRequestID = 128

// requestID returns the id that the client sent, if it may be echoed, or a new
// one.
func (a *API) requestID(r *http.Request) string {
	id := r.Header.Get("X-Request-Id")
	if id == "" || len(id) > maxRequestID || strings.ContainsFunc(id, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return a.cfg.IDs.UUID(a.cfg.Now())
	}
	return id
}
