// Package admin implements the control plane under /__mock, which lets tests in
// any language control the gateway.
//
// To add a call, add a [Shape] next to similar ones, a handler that returns the
// value of {"data": …}, and a row in docs/mockgateway.md.
package admin

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gateway-go/gateway/internal/docs"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/core"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/faults"
	"github.com/gateway-go/gateway/mockserver/internal/httpapi"
	"github.com/gateway-go/gateway/mockserver/internal/respond"
)

// Prefix is the prefix of the control plane's paths.
const Prefix = "/__mock"

// Plane serves the control plane. It is safe for concurrent use.
type Plane struct {
	core   *core.Core
	origin *http.CrossOriginProtection
	list   []Shape

	mu        sync.Mutex
	snapshots []saved
	made      int
}

// New returns the control plane.
func New(c *core.Core) *Plane {
	p := &Plane{core: c, origin: http.NewCrossOriginProtection()}
	for _, origin := range c.Origins {
		_ = p.origin.AddTrustedOrigin(origin) // all but "*" are valid
	}
	p.list = p.routes()
	return p
}

// Serves reports whether a request belongs to the plane.
func Serves(r *http.Request) bool {
	return r.URL.Path == Prefix || strings.HasPrefix(r.URL.Path, Prefix+"/")
}

// Harmless reports whether a request reveals nothing and changes nothing, so
// that any host name is allowed: a health check may use any name for the
// machine.
func Harmless(r *http.Request) bool {
	return r.URL.Path == Prefix+"/health" && (r.Method == http.MethodGet || r.Method == http.MethodHead)
}

// call is one request to the plane.
type call struct {
	w    http.ResponseWriter
	r    *http.Request
	key  string // of the account
	args []string
	body []byte

	began    time.Time
	streamed bool // the response is a stream without a time limit
}

// Shape is one call of the plane, used both to serve and to document it.
type Shape struct {
	Method, Path string // "POST", "clock/advance"; elements of the path in braces are arguments

	In    any      // a value of the body's type; nil for none
	Out   any      // of what is in {"data": …}; nil for a resource of the interface
	Query []string // parameters
	Open  bool     // needs no credential, and ignores invalid ones

	Whole     bool   // Out is the whole response
	MediaType string // of the response; "" is JSON
	Long      bool   // the body may be as long as the memory limit, instead of 1 MiB

	do func(*call) (any, error)
}

// Shapes describes every call, with whole paths, in the order of the routes.
func Shapes() []Shape {
	list := new(Plane).routes()
	for i := range list {
		list[i].Path = Prefix + "/" + list[i].Path
	}
	return list
}

func (p *Plane) routes() []Shape {
	return slices.Concat([]Shape{
		{Method: http.MethodGet, Path: "health", Open: true, Out: HealthView{}, do: p.health},
		{Method: http.MethodGet, Path: "assumptions", Open: true, Out: []docs.Assumption{}, do: p.assumptions},
		{Method: http.MethodGet, Path: "metrics", Open: true, Out: "", Whole: true, MediaType: "text/plain", do: p.metrics},
		{Method: http.MethodGet, Path: "openapi.json", Open: true, Out: map[string]any{}, Whole: true, do: p.openAPI},
		{Method: http.MethodGet, Path: "openapi-control.json", Open: true, Out: map[string]any{}, Whole: true, do: p.controlOpenAPI},
		{Method: http.MethodPost, Path: "reset", Out: resetView{}, do: p.reset},
		{Method: http.MethodPost, Path: "down", Out: reachableView{}, do: p.reachable(false)},
		{Method: http.MethodPost, Path: "up", Out: reachableView{}, do: p.reachable(true)},
	}, p.keyRoutes(), p.clockRoutes(), p.controlRoutes(), p.webhookRoutes(), p.faultRoutes(), p.storyRoutes(), p.snapshotRoutes(), p.eventRoutes())
}

func (p *Plane) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{w: w, r: r, began: time.Now()}
	data, err := p.serve(c)
	problem := respond.Problem{Status: http.StatusOK}
	if err != nil {
		problem = problemOf(r, err)
	}
	p.emit(c, problem)
	switch {
	case err != nil:
		respond.Write(w, problem.Status, respond.ProblemJSON, problem)
	case data == nil: // the handler wrote the response
	default:
		respond.Write(w, http.StatusOK, respond.JSON, map[string]any{"data": data})
	}
}

func (p *Plane) serve(c *call) (any, error) {
	if err := p.origin.Check(c.r); err != nil {
		return nil, &RefusedError{http.StatusForbidden, "CROSS_ORIGIN", "a page from another origin can't control the gateway"}
	}
	rt, err := p.find(c)
	if err != nil {
		return nil, err
	}
	if err := p.identify(c, rt); err != nil {
		return nil, err
	}
	limit := int64(maxBody)
	if rt.Long {
		limit = p.core.Memory.Part(1)
	}
	if err := c.read(limit); err != nil {
		return nil, err
	}
	return rt.do(c)
}

// authenticated reports whether a call has a credential, which [Plane.identify] has
// checked. Without one it acts on the default account.
func (c *call) authenticated() bool {
	return c.r.Header.Get("Authorization") != "" || c.r.Header.Get("Apikey") != ""
}

// identify determines the account of a call, and opens it.
func (p *Plane) identify(c *call, rt *Shape) error {
	c.key = p.core.Key()
	if rt.Open {
		return nil
	}
	if c.authenticated() {
		key, problem := p.core.API.Authenticate(c.r)
		if problem != nil {
			return &RefusedError{problem.Status, problem.Code, problem.Detail}
		}
		c.key = key
	}
	_, refusal := p.core.Store.Open(c.key)
	return refused(refusal)
}

// find returns the route of a request and puts its arguments into the call.
func (p *Plane) find(c *call) (*Shape, error) {
	path := strings.Trim(strings.TrimPrefix(c.r.URL.Path, Prefix), "/")
	var allowed []string
	for i, rt := range p.list {
		args, matches := faults.PathArguments(rt.Path, path)
		switch {
		case !matches:
		case rt.Method != c.r.Method && (rt.Method != http.MethodGet || c.r.Method != http.MethodHead):
			allowed = append(allowed, rt.Method)
		default:
			for _, id := range args {
				if spec.IsUUID(id) {
					id = strings.ToLower(id) // as it was created
				}
				c.args = append(c.args, id)
			}
			return &p.list[i], nil
		}
	}
	if len(allowed) > 0 {
		list := respond.Allow(allowed)
		c.w.Header().Set("Allow", list)
		return nil, &RefusedError{http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED", c.r.Method + " is not allowed here, only " + list}
	}
	return nil, &RefusedError{http.StatusNotFound, "UNKNOWN_PATH", "the control plane has no such path; GET /__mock/openapi-control.json describes them all"}
}

// RefusedError is a rejected call.
type RefusedError struct {
	Status int
	Code   string
	Detail string
}

// refused maps the engine's refusal to the error of a call.
func refused(r *engine.Refusal) error {
	if r == nil {
		return nil
	}
	return &RefusedError{httpapi.StatusOf(r), r.Code, r.Detail}
}

// Error returns the detail.
func (r *RefusedError) Error() string { return r.Detail }

func invalid(format string, args ...any) error {
	return &RefusedError{http.StatusBadRequest, "VALIDATION_ERROR", fmt.Sprintf(format, args...)}
}
