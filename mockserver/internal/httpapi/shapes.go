package httpapi

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/respond"
)

// Shape is an operation as the OpenAPI document describes it.
type Shape struct {
	spec.Operation

	Status int  // of success
	Data   any  // a value of the type of the data, or of a list's elements
	Bare   bool // the response is the data, without an envelope

	Second       any // the result of SecondStatus, another success; nil for none
	SecondStatus int

	KeyOnly      bool // accepts the apiKey header only
	OptionalBody bool // a request may have no body
	Errors       []ErrorShape
}

// ErrorShape is an error status and its codes.
type ErrorShape struct {
	Status    int
	Codes     []string
	MediaType string
	Plain     bool // the body is a [respond.Plain], else a [respond.Problem]
}

// Shapes describes every operation in one of the dialects.
func Shapes(live bool) []Shape {
	var list []Shape
	for _, r := range (&API{}).routes() {
		if r.liveOnly {
			continue // the documents describe only what the client calls
		}
		s := Shape{
			Operation: r.Operation, Status: r.status, Data: r.data, Bare: r.legacy, OptionalBody: r.optional,
			KeyOnly: r.legacy,
		}
		if live && r.live != nil {
			s.Data = r.live
		}
		switch {
		case r.second != nil:
			s.Second, s.SecondStatus = r.second, http.StatusCreated
		case live && r.Name == spec.Transfers.Create.Name: // repeated-transfer: a repeat returns the first transfer
			s.Second, s.SecondStatus, r.refusals = r.data, http.StatusOK, nil
		case live && r.Name == spec.Subscriptions.Create.Name: // repeated-subscription: a repeat returns the first subscription
			s.Second, s.SecondStatus = r.data, http.StatusOK
		}
		s.Errors = r.errors(live)
		list = append(list, s)
	}
	return list
}

// errors lists the statuses of a route's errors and their codes.
func (r *route) errors(live bool) []ErrorShape {
	codes := map[int][]string{}
	add := func(status int, more ...string) { codes[status] = append(codes[status], more...) }
	invalid := r.invalidStatus(live)
	add(http.StatusUnauthorized, "UNAUTHORIZED")
	add(http.StatusForbidden, engine.CodeForbidden)
	add(http.StatusTooManyRequests, "RATE_LIMITED")
	if r.Rule != nil {
		add(invalid, engine.CodeValidation)
	}
	if r.Rule != nil && r.Method != http.MethodGet {
		add(http.StatusBadRequest, "MALFORMED_JSON")
		add(http.StatusRequestTimeout, "BODY_TIMEOUT")
		add(http.StatusRequestEntityTooLarge, "BODY_TOO_LARGE")
		add(http.StatusUnsupportedMediaType, "UNSUPPORTED_MEDIA_TYPE")
		if live && r.Method != http.MethodPatch {
			add(http.StatusConflict, engine.CodeIdempotencyKeyReused)
		}
	}
	if strings.Contains(r.Path, "{slug}") || live && strings.Contains(r.Path, "{id}") {
		add(invalid, engine.CodeValidation)
	}
	for _, code := range r.refusals {
		status := StatusOf(&engine.Refusal{Code: code})
		if status == http.StatusBadRequest {
			status = invalid
		}
		add(status, code)
	}
	add(http.StatusInsufficientStorage, engine.CodeMemoryLimit)

	var list []ErrorShape
	for _, status := range slices.Sorted(maps.Keys(codes)) {
		e := ErrorShape{Status: status, Codes: slices.Compact(slices.Sorted(slices.Values(codes[status]))), MediaType: respond.ProblemJSON}
		switch {
		case slices.Contains(r.plain, status), live && slices.Contains(r.livePlain, status):
			e.MediaType, e.Plain = respond.JSON, true
		case live && r.liveJSON:
			e.MediaType = respond.JSON
		}
		list = append(list, e)
	}
	return list
}
