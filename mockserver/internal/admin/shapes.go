package admin

import (
	"strings"

	"github.com/gateway-go/gateway/docs"
)

// Shape is a call of the control plane as its OpenAPI document describes it.
type Shape struct {
	Method, Path string // "POST", "/__mock/clock/advance"

	In    any      // a value of the body's type; nil for none
	Out   any      // of what is in {"data": …}; nil for a resource of the interface
	Query []string // parameters
	Open  bool     // needs no credential

	Whole     bool // Out is the whole response
	MediaType string
}

// shaped is what a call takes and returns.
type shaped struct {
	in, out any
	query   []string
	whole   bool   // out is the whole response
	media   string // of the response; "" is JSON
}

func calls() map[string]shaped {
	filters := []string{"kind", "status", "resource_id"}
	return map[string]shaped{
		"GET health":                       {out: healthView{}},
		"GET assumptions":                  {out: []docs.Assumption{}},
		"GET metrics":                      {out: "", whole: true, media: "text/plain"},
		"GET openapi.json":                 {out: map[string]any{}, whole: true},
		"GET openapi-control.json":         {out: map[string]any{}, whole: true},
		"POST reset":                       {out: resetView{}},
		"POST down":                        {out: reachableView{}},
		"POST up":                          {out: reachableView{}},
		"GET clock":                        {out: clockView{}},
		"POST clock/advance":               {in: advanceBody{}, out: clockView{}},
		"GET clock/timers":                 {out: []timerView{}},
		"POST legacy/payments/{id}/status": {in: legacyStatusBody{}, out: legacyView{}},
		"POST endpoints":                   {in: endpointBody{}, out: endpointView{}},
		"GET endpoints":                    {out: []endpointView{}},
		"DELETE endpoints/{id}":            {out: endpointView{}},
		"POST endpoints/{id}/rotate":       {in: secretBody{}, out: endpointView{}},
		"GET deliveries":                   {out: []deliveryView{}, query: filters},
		"GET deliveries/{id}":              {out: deliveryView{}},
		"POST deliveries/{id}/redeliver":   {out: deliveryView{}},
		"POST deliveries/wait":             {out: []deliveryView{}, query: filters},
		"POST deliveries/hold":             {out: holdView{}},
		"POST deliveries/release":          {in: releaseBody{}, out: holdView{}},
		"POST faults":                      {in: faultBody{}, out: faultView{}},
		"GET faults":                       {out: []faultView{}},
		"DELETE faults":                    {out: []faultView{}},
		"DELETE deliveries/faults":         {out: []faultView{}},
		"DELETE faults/{id}":               {out: faultView{}},
		"GET requests":                     {out: foundView{}, query: []string{"match"}, whole: true},
		"DELETE requests":                  {out: []requestView{}},
		"POST snapshots":                   {out: snapshotView{}},
		"GET snapshots":                    {out: []snapshotView{}},
		"POST snapshots/{id}/restore":      {out: snapshotView{}},
		"DELETE snapshots/{id}":            {out: snapshotView{}},
	}
}

// Shapes describes every call, with the given [Config.Controls], in the order of
// the routes. It panics where one has no row in calls.
func Shapes(controls []string) []Shape {
	known := calls()
	var list []Shape
	for _, r := range (&Plane{cfg: Config{Controls: controls}}).routes() {
		c, ok := known[r.method+" "+r.path]
		switch resource, _, _ := strings.Cut(r.path, "/"); {
		case ok:
		case resource == "checkout":
			c.out = linkView{}
		case resource == "transactions", resource == "transfers":
		case resource == "subscriptions":
			if strings.HasSuffix(r.path, "/fail-next") {
				c.in = actionBody{}
			}
		default:
			panic("admin: no shape of " + r.method + " " + r.path)
		}
		s := Shape{
			Method: r.method, Path: Prefix + "/" + r.path, In: c.in, Out: c.out, Query: c.query, Open: r.open,
			Whole: c.whole, MediaType: c.media,
		}
		list = append(list, s)
	}
	return list
}
