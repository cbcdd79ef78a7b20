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

	Second       any // what SecondStatus, another success, returns; nil for none
	SecondStatus int

	KeyOnly      bool // takes the apiKey header only
	OptionalBody bool // a request may have no body
	Errors       []ErrorShape
}

// ErrorShape is a status of errors and its codes.
type ErrorShape struct {
	Status    int
	Codes     []string
	MediaType string
	Plain     bool // the body is a [respond.Plain], else a [respond.Problem]
}

// returns is what the handler of an operation returns and how it refuses,
// beside what every operation does.
type returns struct {
	data, live any // the element of a list; live is nil where the dialects agree
	second     any // what another status of success returns
	refusals   []string
	optional   bool // a request may have no body
}

func returned() map[string]returns {
	const notFound = engine.CodeNotFound
	return map[string]returns{
		"transactions.create": {data: transactionView{}, refusals: []string{
			engine.CodeDuplicateReference, notFound, engine.CodeTokenUsed, engine.CodeTokenExpired,
		}},
		"transactions.list":               {data: transactionView{}, live: transactionItem{}},
		"transactions.get":                {data: transactionView{}, refusals: []string{notFound}},
		"transactions.set_sandbox_status": {data: statusView{}, refusals: []string{notFound, engine.CodeForbidden, engine.CodeInvalidState}},
		"transactions.refund":             {data: refundView{}, refusals: []string{notFound, engine.CodeNotRefundable}, optional: true},
		"transactions.update_delivery": {data: deliveryView{}, refusals: []string{
			notFound, engine.CodeDeliveryState, engine.CodePreconditionFailed,
		}},
		"transfers.create": {data: transferView{}, refusals: []string{engine.CodeDuplicateReference}},
		"transfers.list":   {data: transferView{}},
		"transfers.get":    {data: transferView{}, refusals: []string{notFound}},
		"transfers.cancel": {data: transferView{}, refusals: []string{notFound, engine.CodeInvalidState}, optional: true},
		"customers.create": {data: customerView{}, refusals: []string{engine.CodeDuplicateReference}},
		"customers.list":   {data: customerView{}},
		"customers.get":    {data: customerView{}, refusals: []string{notFound}},
		"subscriptions.create": {data: subscriptionView{}, refusals: []string{
			notFound, engine.CodeIdempotencyKeyReused, engine.CodeTokenUsed, engine.CodeTokenExpired,
		}},
		"subscriptions.list":     {data: subscriptionView{}},
		"subscriptions.get":      {data: subscriptionView{}, refusals: []string{notFound}},
		"subscriptions.update":   {data: subscriptionView{}, refusals: []string{notFound, engine.CodeInvalidState}},
		"subscriptions.cancel":   {data: subscriptionView{}, refusals: []string{notFound, engine.CodeInvalidState}, optional: true},
		"checkout_links.create":  {data: linkURL{}},
		"checkout_sessions.open": {data: sessionView{}, refusals: []string{notFound, engine.CodeCheckoutGone}},
		"checkout_sessions.update": {data: sessionState{}, refusals: []string{
			notFound, engine.CodeCheckoutGone, engine.CodeSessionToken, engine.CodeInvalidState,
		}},
		"legacy.configure_integration": {data: integrationView{}, second: pixIntegrationView{}},
		"legacy.balance":               {data: balanceView{}},
		"legacy.create_pix_payment":    {data: legacyPaymentView{}},
		"legacy.payment_token":         {data: tokenView{}},
		"legacy.create_payment_token":  {data: tokenView{}, refusals: []string{engine.CodeTokenizationRetired}},
	}
}

// Shapes describes every operation in one of the dialects. It panics where one
// has no row in returned.
func Shapes(live bool) []Shape {
	var list []Shape
	known := returned()
	for _, r := range (&API{}).routes() {
		what, ok := known[r.Name]
		switch {
		case r.public:
			continue // the page of a checkout link, for people
		case !ok:
			panic("httpapi: no row in returned for " + r.Name)
		}
		s := Shape{
			Operation: r.Operation, Status: r.status, Data: what.data, Bare: r.legacy, OptionalBody: what.optional,
			KeyOnly: r.legacy,
		}
		if live && what.live != nil {
			s.Data = what.live
		}
		switch {
		case what.second != nil:
			s.Second, s.SecondStatus = what.second, http.StatusCreated
		case live && r.Name == spec.Transfers.Create.Name: // D4: the first transfer again
			s.Second, s.SecondStatus, what.refusals = what.data, http.StatusOK, nil
		}
		s.Errors = r.errors(what.refusals, live)
		list = append(list, s)
	}
	return list
}

// errors lists the statuses of a route's errors and their codes.
func (r *route) errors(refusals []string, live bool) []ErrorShape {
	codes := map[int][]string{}
	add := func(status int, more ...string) { codes[status] = append(codes[status], more...) }
	invalid := http.StatusBadRequest
	if live || r.list || r.legacy {
		invalid = http.StatusUnprocessableEntity
	}
	if !r.public {
		add(http.StatusUnauthorized, "UNAUTHORIZED")
		add(http.StatusForbidden, engine.CodeForbidden)
		add(http.StatusTooManyRequests, "RATE_LIMITED")
	}
	if r.Rule != nil && r.Method == http.MethodGet {
		add(http.StatusUnprocessableEntity, engine.CodeValidation)
	} else if r.Rule != nil {
		add(invalid, engine.CodeValidation)
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
	for _, code := range refusals {
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
