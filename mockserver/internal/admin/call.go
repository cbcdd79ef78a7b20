package admin

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/internal/jsonread"
	"github.com/gateway-go/gateway/internal/truncate"
	"github.com/gateway-go/gateway/mockserver/internal/clock"
	"github.com/gateway-go/gateway/mockserver/internal/core"
	"github.com/gateway-go/gateway/mockserver/internal/deliver"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/faults"
	"github.com/gateway-go/gateway/mockserver/internal/gate"
	"github.com/gateway-go/gateway/mockserver/internal/respond"
	"github.com/gateway-go/gateway/mockserver/internal/seed"
)

const (
	maxBody  = 1 << 20
	maxShown = 200 // bytes of the body's names in an error
)

// read reads the body and ignores its content type: curl -d sends a form's.
func (c *call) read(limit int64) error {
	if encoding := gate.Encoding(c.r); encoding != "" {
		c.w.Header().Set("Accept-Encoding", gate.AcceptEncoding)
		return &RefusedError{http.StatusUnsupportedMediaType, "UNSUPPORTED_MEDIA_TYPE", fmt.Sprintf(
			"the body's Content-Encoding is %.40q: send it without one, or as gzip", encoding)}
	}
	body, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, limit))
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return &RefusedError{http.StatusRequestEntityTooLarge, "BODY_TOO_LARGE", fmt.Sprintf("the body is longer than %d KiB", limit>>10)}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &RefusedError{http.StatusRequestTimeout, "BODY_TIMEOUT", "the body did not arrive in time"}
	case errors.Is(err, gate.ErrGzip):
		return invalid("%v, as its Content-Encoding says", gate.ErrGzip)
	case err != nil:
		return invalid("the body could not be read completely")
	}
	c.body = body
	return nil
}

// decode reads the body into v. No body is an empty object; an unknown member
// is an error, since it is probably mistyped.
func (c *call) decode(v any) error {
	if len(c.body) == 0 {
		return nil
	}
	err := json.Unmarshal(c.body, v, json.RejectUnknownMembers(true))
	var wrong *json.SemanticError
	var broken *jsontext.SyntacticError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong) && errors.Is(err, json.ErrUnknownName):
		return invalid("the body has an unknown member %s", truncate.Ellipsis(string(wrong.JSONPointer), maxShown))
	case errors.As(err, &wrong) && wrong.JSONPointer != "":
		return invalid("the body's member %s has the wrong type", truncate.Ellipsis(string(wrong.JSONPointer), maxShown))
	case errors.As(err, &wrong):
		return invalid("the body must be a JSON object")
	case jsonread.Marked(c.body):
		return invalid("the body begins with a byte order mark (the bytes EF BB BF), which JSON doesn't allow: send it without")
	case errors.As(err, &broken):
		return invalid("the body is not JSON: %s", truncate.Ellipsis(broken.Error(), maxShown))
	default:
		return invalid("the body can't be read: %s", truncate.Ellipsis(err.Error(), maxShown))
	}
}

// withBody returns a call whose body is decoded for its handler.
func withBody[T any](s Shape, do func(*call, T) (any, error)) Shape {
	s.In = *new(T)
	s.do = func(c *call) (any, error) {
		var in T
		if err := c.decode(&in); err != nil {
			return nil, err
		}
		return do(c, in)
	}
	return s
}

// rejected returns the error of input that another package has rejected.
func rejected(err error) error {
	switch {
	case errors.Is(err, deliver.ErrLimit):
		return &RefusedError{http.StatusConflict, "TOO_MANY_ENDPOINTS", err.Error()}
	case errors.Is(err, faults.ErrLimit):
		return &RefusedError{http.StatusConflict, "TOO_MANY_FAULTS", err.Error()}
	default:
		return invalid("%v", err)
	}
}

// problemOf maps an error of any part of the gateway to a problem body.
func problemOf(r *http.Request, err error) respond.Problem {
	var refusal *RefusedError
	var mistakes seed.Errors
	switch {
	case errors.As(err, &refusal):
		return respond.NewProblem(r, refusal.Status, refusal.Code, refusal.Detail)
	case errors.As(err, &mistakes):
		return respond.NewProblem(r, http.StatusBadRequest, "VALIDATION_ERROR", mistakes.Error())
	case errors.Is(err, core.ErrSeedRace):
		return respond.NewProblem(r, http.StatusConflict, "CONFLICT", err.Error())
	case errors.Is(err, core.ErrSeedMemory):
		return respond.NewProblem(r, http.StatusInsufficientStorage, engine.CodeMemoryLimit, err.Error())
	case errors.Is(err, core.ErrSnapshot):
		return respond.NewProblem(r, http.StatusBadRequest, "SNAPSHOT_REJECTED", strings.TrimPrefix(err.Error(), "mockserver: "))
	case errors.Is(err, deliver.ErrUnknownDelivery), errors.Is(err, deliver.ErrUnknownEndpoint):
		return respond.NewProblem(r, http.StatusNotFound, "NOT_FOUND", err.Error())
	case errors.Is(err, deliver.ErrNotHeld), errors.Is(err, deliver.ErrNoTarget),
		errors.Is(err, clock.ErrAdvancing), errors.Is(err, clock.ErrRunaway), errors.Is(err, clock.ErrFire):
		return respond.NewProblem(r, http.StatusConflict, "CONFLICT", err.Error())
	case errors.Is(err, clock.ErrBackwards), errors.Is(err, clock.ErrRange), errors.Is(err, deliver.ErrLong),
		errors.Is(err, deliver.ErrSecret):
		return respond.NewProblem(r, http.StatusBadRequest, "VALIDATION_ERROR", err.Error())
	default:
		return respond.NewProblem(r, http.StatusInternalServerError, "INTERNAL", err.Error())
	}
}
