package httpapi

import (
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/gateway-go/gateway/internal/rules"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
)

// problem is an error on its way to the wire.
type problem struct {
	status   int
	code     string
	detail   string
	instance string // "" is the request's path
	fields   []rules.Violation
	header   [2]string // one more header and its value
}

// problemTypes is where the type URIs of problem bodies live; nothing is
// served there.
const problemTypes = "https://gateway.mock.invalid/problems/"

// problemBody is the shape of most errors.
type problemBody struct {
	Type     string            `json:"type"`
	Title    string            `json:"title"`
	Status   int               `json:"status"`
	Detail   string            `json:"detail"`
	Instance string            `json:"instance"`
	Code     string            `json:"code"`
	Errors   []rules.Violation `json:"errors,omitempty"`
}

// plainBody is the other shape of errors.
type plainBody struct {
	Error   string `json:"error"`
	Message string `json:"message"`
	Status  int    `json:"status"`
}

// invalid is the problem of a body or a query that breaks rules.
func invalid(fields []rules.Violation) *problem {
	return &problem{
		status: http.StatusBadRequest,
		code:   engine.CodeValidation,
		detail: "the request breaks the interface's rules: see errors",
		fields: fields,
	}
}

// refused turns the engine's refusal into a problem.
func refused(r *engine.Refusal) *problem {
	if r == nil {
		return nil
	}
	p := &problem{status: r.Status, code: r.Code, detail: r.Detail, instance: r.Instance}
	if r.Field != "" {
		p.detail = r.Field + " " + r.Detail
		p.fields = []rules.Violation{{Field: r.Field, Message: r.Detail, Code: r.FieldCode}}
	}
	return p
}

// settle decides what the dialect and the route leave open: the status of a
// validation failure.
func (p *problem) settle(rq *request) {
	always := rq.route != nil && (rq.route.list || rq.route.legacy)
	if len(p.fields) > 0 && p.status == http.StatusBadRequest && (always || rq.api.cfg.Live) {
		p.status = http.StatusUnprocessableEntity
	}
}

// plain reports whether the error has the {error, message, status} body.
func (p *problem) plain(rq *request) bool {
	if rq.route == nil {
		return false
	}
	return slices.Contains(rq.route.plain, p.status) ||
		rq.api.cfg.Live && slices.Contains(rq.route.livePlain, p.status)
}

func (rq *request) writeProblem(p *problem) {
	p.settle(rq)
	if p.header[0] != "" {
		rq.w.Header().Set(p.header[0], p.header[1])
	}
	if p.plain(rq) {
		rq.write(p.status, "application/json", plainBody{Error: p.code, Message: p.message(), Status: p.status})
		return
	}
	title, kind := titleOf(p.status)
	instance := p.instance
	if instance == "" {
		instance = rq.r.URL.EscapedPath()
	}
	rq.write(p.status, "application/problem+json", problemBody{
		Type: problemTypes + kind, Title: title, Status: p.status, Detail: p.detail,
		Instance: instance, Code: p.code, Errors: p.fields,
	})
}

// message names the fields in the one text that the plain body has.
func (p *problem) message() string {
	if len(p.fields) == 0 {
		return p.detail
	}
	parts := make([]string, len(p.fields))
	for i, f := range p.fields {
		parts[i] = f.Field + " " + f.Message
	}
	return strings.Join(parts, "; ")
}

// titleOf returns the title of a status and the last element of its type URI.
func titleOf(status int) (title, kind string) {
	switch status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return "Validation Error", "validation-error"
	case http.StatusTooManyRequests:
		return "Too Many Requests", "rate-limited"
	}
	title = http.StatusText(status)
	if status >= http.StatusInternalServerError {
		return title, "internal"
	}
	return title, strings.ReplaceAll(strings.ToLower(title), " ", "-")
}

// marshal encodes a body; the same value always gives the same bytes.
func marshal(v any) ([]byte, error) {
	return json.Marshal(v, json.Deterministic(true))
}
