package httpapi

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/respond"
)

// problem is an error response.
type problem struct {
	status   int
	code     string
	detail   string
	instance string // "" stands for the request's path
	fields   []spec.Violation
	header   [2]string // an additional header and its value
}

// invalid is the problem of a body or a query that breaks rules.
func invalid(fields []spec.Violation) *problem {
	detail := "1 field is invalid."
	if len(fields) > 1 {
		detail = strconv.Itoa(len(fields)) + " fields are invalid."
	}
	return &problem{status: http.StatusBadRequest, code: engine.CodeValidation, detail: detail, fields: fields}
}

// refused turns the engine's refusal into a problem.
func refused(r *engine.Refusal) *problem {
	if r == nil {
		return nil
	}
	return &problem{status: StatusOf(r), code: r.Code, detail: r.Detail, instance: r.Instance, fields: r.Fields}
}

// StatusOf returns the status of a refusal in the document dialect.
func StatusOf(r *engine.Refusal) int {
	switch r.Code {
	case engine.CodeValidation, engine.CodeTokenUsed, engine.CodeTokenExpired:
		return http.StatusBadRequest
	case engine.CodeSessionToken:
		return http.StatusUnauthorized
	case engine.CodeForbidden, engine.CodePixAutomaticDisabled:
		return http.StatusForbidden
	case engine.CodeNotFound:
		return http.StatusNotFound
	case engine.CodeDuplicateReference, engine.CodeIdempotencyKeyReused, engine.CodeInvalidState,
		engine.CodeNotRefundable, engine.CodeDeliveryState:
		return http.StatusConflict
	case engine.CodeCheckoutGone, engine.CodeTokenizationRetired:
		return http.StatusGone
	case engine.CodePreconditionFailed:
		return http.StatusPreconditionFailed
	case engine.CodeMemoryLimit:
		return http.StatusInsufficientStorage
	default:
		return http.StatusInternalServerError
	}
}

// settle sets the status of a validation failure, which depends on the dialect
// and the route.
func (p *problem) settle(rq *request) {
	if len(p.fields) > 0 {
		p.status = max(p.status, rq.route.invalidStatus(rq.api.cfg.Dialect.Live(spec.ValidationStatus))) // it may be 422 already
	}
}

// plain reports whether the error has the {error, message, status} body.
func (p *problem) plain(rq *request) bool {
	if rq.route == nil {
		return false
	}
	return p.code == engine.CodePixAutomaticDisabled || slices.Contains(rq.route.plain, p.status) ||
		rq.api.cfg.Dialect.Live(spec.PlainErrors) && slices.Contains(rq.route.livePlain, p.status)
}

func (rq *request) writeProblem(p *problem) {
	p.settle(rq)
	if p.header[0] != "" {
		rq.w.Header().Set(p.header[0], p.header[1])
	}
	if p.plain(rq) {
		rq.write(p.status, respond.JSON, respond.Plain{Error: p.code, Message: p.message(), Status: p.status})
		return
	}
	body := respond.NewProblem(rq.r, p.status, p.code, p.detail)
	body.Errors = p.fields
	if p.instance != "" {
		body.Instance = p.instance
	}
	contentType := respond.ProblemJSON
	if rq.route != nil && rq.route.liveJSON && rq.api.cfg.Dialect.Live(spec.DeliveryErrors) {
		contentType = respond.JSON
	}
	rq.write(p.status, contentType, body)
}

// message names the fields in the plain body's only string.
func (p *problem) message() string {
	if len(p.fields) == 0 {
		return p.detail
	}
	return engine.Describe(p.fields)
}
