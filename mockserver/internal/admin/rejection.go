package admin

import (
	"cmp"
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/journal"
)

// rejectionView says why a request was rejected, and what its sender should do.
type rejectionView struct {
	Code     string               `json:"code"`
	Detail   string               `json:"detail"`
	Errors   []gateway.FieldError `json:"errors"`   // the fields that break a rule
	Injected bool                 `json:"injected"` // a fault made the response, not a rule
	DoNext   string               `json:"do_next"`
}

// rejectionOf reads the error in a response of the journal, nil if it has none.
func rejectionOf(e journal.Entry) *rejectionView {
	if e.Status < http.StatusBadRequest {
		return nil
	}
	var body struct {
		Code    string               `json:"code"`
		Error   string               `json:"error"` // of the other format of errors
		Detail  string               `json:"detail"`
		Message string               `json:"message"`
		Errors  []gateway.FieldError `json:"errors"`
	}
	_ = json.Unmarshal([]byte(e.Response), &body) // an injected page is no JSON
	v := &rejectionView{
		Code: cmp.Or(body.Code, body.Error), Detail: cmp.Or(body.Detail, body.Message),
		Errors: append([]gateway.FieldError{}, body.Errors...), Injected: e.Fault != "",
	}
	v.DoNext = doNext(v.Code, e.Status)
	if v.Injected {
		v.DoNext = "An injected fault made this response: the program must handle it as it would handle the gateway's own."
	}
	return v
}

// doNext returns what to do about an error code or, if the code is unknown, a status.
func doNext(code string, status int) string {
	if text := advice()[code]; text != "" {
		return text
	}
	if status >= http.StatusInternalServerError {
		return "The outcome of a write is unknown: repeat a create with the same reference, and read the resource before any other write is repeated."
	}
	return "Read detail. Nothing was changed; the same request is rejected again."
}

// advice returns what to do about each error code of docs/mockgateway.md.
func advice() map[string]string {
	const body = "Fix the body and send it again with the same reference: nothing was created or changed."
	const path = "Compare method and path with the OpenAPI document, GET /__mock/openapi.json."
	const state = "Read the resource: its state doesn't allow the call, and a repeat is rejected again. docs/states.md has the transitions."
	return map[string]string{
		engine.CodeValidation:           "Fix each invalid field by its rule, and send the request again with the same reference: nothing was created or changed.",
		"MALFORMED_JSON":                body,
		"BODY_TIMEOUT":                  "Send the whole body at once. The request was not executed.",
		"BODY_TOO_LARGE":                body,
		"UNSUPPORTED_MEDIA_TYPE":        "Send Content-Type: application/json, and no Content-Encoding but gzip.",
		"UNAUTHORIZED":                  "Send a key of the mock's environment, such as Authorization: Bearer sk_test_…. A repeat with the same key is rejected again.",
		engine.CodeForbidden:            "Use a key that has the permission. A repeat with the same key is rejected again.",
		engine.CodePixAutomaticDisabled: "Use a key for which Pix Automatico is enabled. A repeat with the same key is rejected again.",
		engine.CodeNotFound:             "Check the id, and that the resource was created with the same key: accounts are isolated from each other.",
		"UNKNOWN_PATH":                  path,
		"METHOD_NOT_ALLOWED":            path,
		engine.CodeDuplicateReference: "Read the first resource and compare its amount, currency and method with the order. " +
			"Don't use a new reference to get around the rejection: that charges twice.",
		engine.CodeIdempotencyKeyReused: "A repeat must be equal to the first request, byte for byte. A different request needs a key of its own.",
		engine.CodeInvalidState:         state,
		engine.CodeNotRefundable:        state,
		engine.CodeDeliveryState:        state,
		engine.CodeCheckoutGone:         "Create a new checkout link, or open a new session.",
		engine.CodeTokenizationRetired:  "Create card tokens with the payment element in the browser: this endpoint no longer exists.",
		engine.CodePreconditionFailed:   "Read the resource again and send its current version as If-Match.",
		engine.CodeTokenUsed:            "Ask the payment element for a new card token: a token can be charged once.",
		engine.CodeTokenExpired:         "Ask the payment element for a new card token shortly before the charge.",
		engine.CodeSessionToken:         "Send the session_token that opening the session returned.",
		"RATE_LIMITED":                  "Wait as long as Retry-After says, then repeat the same request.",
		engine.CodeLogFailed:            "The mock could not write its data file; nothing has changed. Free space, then repeat the same request.",
		engine.CodeMemoryLimit:          "Reset the account or raise -memory; nothing has changed.",
	}
}
