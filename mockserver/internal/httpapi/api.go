// Package httpapi serves the gateway's HTTP interface from the store: routes,
// authentication, the order of checks, both dialects and the exact bodies of
// responses and errors.
//
// To add an endpoint, add a row to internal/spec, a transition to engine, a view
// struct with every key of the interface to view_*.go, a handler that makes one
// call of [store.Account.Apply] or [store.Account.View], and a line to the routes
// of its resource. A handler is called only for an authenticated request whose
// body or query satisfies the row's rule. Its result is wrapped in the envelope:
//
//	{Operation: spec.Transfers.Create, status: 201, do: withBody(a.createTransfer)},
//
//	func (a *API) createTransfer(rq *request, in *gateway.TransferParams) (any, *engine.Refusal) { … }
package httpapi

import (
	"net/http"
	"time"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/events"
	"github.com/gateway-go/gateway/mockserver/internal/faults"
	"github.com/gateway-go/gateway/mockserver/internal/respond"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// Config configures an API.
type Config struct {
	Store      *store.Store
	Now        func() time.Time // the virtual clock
	IDs        engine.IDs       // makes request ids
	Dialect    spec.Dialect
	Lenient    bool // transactions without products or buyer are accepted
	Production bool // the environment; else sandbox

	// BasicTokenX is the account of the literal Basic credential "token:x"; ""
	// rejects it.
	BasicTokenX string

	// Keys are the keys that were revoked or replaced; nil means none.
	Keys *Keys

	// PublicURL is the server's address for buyers; "" means the one that the client
	// used, or that of a proxy whose X-Forwarded-Host is one of Hosts.
	PublicURL string
	Hosts     []string

	// Events is notified of the changes that requests make. It may be nil.
	Events *events.Hub
}

// API serves the interface. It is safe for concurrent use.
type API struct {
	cfg     Config
	router  router
	inside  router // with the routes that package hosted's page uses in both dialects
	limiter limiter
}

// New returns the API over cfg.Store.
func New(cfg Config) *API {
	if cfg.Keys == nil {
		cfg.Keys = &Keys{}
	}
	a := &API{cfg: cfg}
	for _, r := range a.routes() {
		a.inside.add(r)
		if a.offers(&r) {
			a.router.add(r)
		}
	}
	return a
}

// offers reports whether the server's dialect has a route.
func (a *API) offers(r *route) bool { return a.cfg.Dialect.Live(spec.HostedRoutes) || !r.liveOnly }

// Operation returns the name of a request's operation, "transactions.create",
// or "" if it has none.
func (a *API) Operation(r *http.Request) string {
	if route, _, problem := a.find(r, false); problem == nil {
		return route.Name
	}
	return ""
}

// Operations lists the operations that the API serves.
func (a *API) Operations() []spec.Operation {
	var list []spec.Operation
	for _, r := range a.routes() {
		if a.offers(&r) {
			list = append(list, r.Operation)
		}
	}
	return list
}

// Account returns the account of the key in a request, whether or not it would be
// accepted, and "" if there is none.
func (a *API) Account(r *http.Request) string {
	keys, ok := a.credentials(r.Header)
	if !ok || len(keys) == 0 {
		return ""
	}
	return a.cfg.Keys.Account(keys[0])
}

// Authenticate returns the key of a request's account, or the error response if
// its credentials are rejected. A revoked key is accepted, so that it can be restored.
func (a *API) Authenticate(r *http.Request) (key string, refused *respond.Problem) {
	key, p := a.identify(r, false)
	if p == nil {
		return a.cfg.Keys.Account(key), nil
	}
	body := respond.NewProblem(r, p.status, p.code, p.detail)
	return "", &body
}

// ServeHTTP serves one request. It checks path and method, credentials, body and
// rules, in this order, before the handler's own checks.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.respond(&request{api: a, w: w, r: r, id: a.requestID(r)})
}

// ServeAs serves a request that the gateway's own page makes for a buyer, who
// has no credentials: key is the link's account. It does not count towards a
// rate limit.
func (a *API) ServeAs(key string, w http.ResponseWriter, r *http.Request) {
	a.respond(&request{api: a, w: w, r: r, id: a.requestID(r), key: key})
}

func (a *API) respond(rq *request) {
	data, p := a.serve(rq)
	if p != nil {
		rq.writeProblem(p)
		return
	}
	rq.writeData(data)
}

func (a *API) serve(rq *request) (any, *problem) {
	key := rq.key
	route, param, p := a.find(rq.r, key != "")
	if p != nil {
		return nil, p
	}
	rq.route, rq.param, rq.status = route, param, route.status
	if key == "" {
		if key, p = a.authenticate(rq.r, route.legacy); p != nil {
			return nil, p
		}
	}
	if route.sandboxOnly {
		if refusal := engine.StatusForbidden(!a.cfg.Production); refusal != nil {
			return nil, refused(refusal)
		}
	}
	account, refusal := a.cfg.Store.Open(key)
	if refusal != nil {
		return nil, refused(refusal)
	}
	var noted func()
	if w, ok := rq.w.(faults.ChangeNoter); ok {
		noted = w.NoteChange
	}
	rq.observed = account.Observed(store.Cause{Text: route.cause, RequestID: rq.id}, noted)
	rq.account = &rq.observed
	return route.do(rq)
}

// find returns the route of a request and the value of its path parameter. In
// the document dialect a live-only route is a 404, even if its path has other
// methods and would otherwise be a 405.
func (a *API) find(r *http.Request, inside bool) (*route, string, *problem) {
	found, param, p := a.router.find(r)
	if p == nil {
		return found, param, nil
	}
	found, param, inner := a.inside.find(r)
	switch {
	case inner != nil:
		return nil, "", p
	case !inside:
		return nil, "", unknownPath()
	}
	return found, param, nil
}

// variant returns the variant of the rules that this server applies.
func (a *API) variant() spec.Variant {
	return spec.Variant{Dialect: a.cfg.Dialect, Lenient: a.cfg.Lenient, LoopbackHTTP: true, LocalHTTP: true}
}
