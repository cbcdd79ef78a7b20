package httpapi

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/respond"
)

// route is one operation of the interface.
type route struct {
	spec.Operation // at most one element of its path is a parameter

	status int // of success
	do     handler

	liveOnly    bool  // the document dialect has no such path
	sandboxOnly bool  // 403 in production
	legacy      bool  // v1: only the apiKey header, no envelope
	plain       []int // statuses whose errors have the {error, message, status} body
	livePlain   []int // the same in the live dialect only
	liveJSON    bool  // problems are sent as application/json in the live dialect
	optional    bool  // a request may have no body at all, which counts as an empty object

	// For the OpenAPI documents:
	data, live any      // the type of its result, or of a list's elements; live is nil if the dialects agree
	second     any      // the result of another success status
	refusals   []string // the codes of its errors, besides those that every operation has

	cause string // of the changes that it makes; set by [router.add]

	rule func(param string, live bool) []spec.Violation // of the path's parameter; set by [router.add]
}

// invalidStatus is the status of a request that breaks a rule. In the document dialect
// a v2 write has 400, unless it has a plain body for 422.
func (r *route) invalidStatus(live bool) int {
	if live || r.Method == http.MethodGet || r.legacy || slices.Contains(r.plain, http.StatusUnprocessableEntity) {
		return http.StatusUnprocessableEntity
	}
	return http.StatusBadRequest
}

// handler executes the operation. Its data goes into the envelope.
type handler func(rq *request) (data any, p *problem)

// router finds routes by path elements. It replaces net/http's ServeMux, which
// returns 404 and 405 as text and redirects paths with "..".
type router struct{ root element }

type element struct {
	next    map[string]*element
	param   *element // matches any element
	methods map[string]*route
}

func (rt *router) add(r route) {
	at := &rt.root
	for name := range strings.SplitSeq(r.Path[1:], "/") {
		at = at.child(name)
	}
	if at.methods == nil {
		at.methods = map[string]*route{}
	}
	switch {
	case strings.Contains(r.Path, "{id}"):
		r.rule = checkID
	case strings.Contains(r.Path, "{slug}"):
		r.rule = checkSlug
	}
	r.cause = "request " + r.Name
	at.methods[r.Method] = &r
}

func (e *element) child(name string) *element {
	if strings.HasPrefix(name, "{") {
		if e.param == nil {
			e.param = &element{}
		}
		return e.param
	}
	if e.next == nil {
		e.next = map[string]*element{}
	}
	if e.next[name] == nil {
		e.next[name] = &element{}
	}
	return e.next[name]
}

// checkID checks the id of a resource.
func checkID(id string, live bool) []spec.Violation {
	if !live || spec.IsUUID(id) {
		return nil
	}
	return []spec.Violation{{Field: "id", Code: spec.CodeInvalid, Message: "must be a UUID"}}
}

// checkSlug checks the slug of a checkout link.
func checkSlug(slug string, _ bool) []spec.Violation {
	return spec.CheckQuery(url.Values{"slug": {slug}}, spec.CheckoutSlug, spec.Variant{})
}

// find returns the route of a request and the value of its path parameter.
func (rt *router) find(r *http.Request) (*route, string, *problem) {
	at, param := &rt.root, ""
	path, _ := strings.CutPrefix(r.URL.EscapedPath(), "/")
	for escaped := range strings.SplitSeq(path, "/") {
		name, err := url.PathUnescape(escaped)
		if err != nil {
			return nil, "", unknownPath()
		}
		next := at.next[name]
		if next == nil && at.param != nil && name != "" {
			next, param = at.param, canonicalID(name)
		}
		if next == nil {
			return nil, "", unknownPath()
		}
		at = next
	}
	if at.methods == nil {
		return nil, "", unknownPath()
	}
	found := at.methods[r.Method]
	if r.Method == http.MethodHead { // net/http sends no body
		found = at.methods[http.MethodGet]
	}
	if found == nil {
		return nil, "", wrongMethod(r.Method, at.methods)
	}
	return found, param, nil
}

func unknownPath() *problem {
	return &problem{status: http.StatusNotFound, code: "UNKNOWN_PATH", detail: "The interface has no such path; GET /__mock/openapi.json describes it."}
}

// canonicalID returns the id of a resource as it was created: a UUID may be written in
// upper case.
func canonicalID(id string) string {
	if spec.IsUUID(id) {
		return strings.ToLower(id)
	}
	return id
}

func wrongMethod(method string, methods map[string]*route) *problem {
	list := respond.Allow(slices.Collect(maps.Keys(methods)))
	return &problem{
		status: http.StatusMethodNotAllowed,
		code:   "METHOD_NOT_ALLOWED",
		detail: method + " is not allowed here, only " + list + ".",
		header: [2]string{"Allow", list},
	}
}
