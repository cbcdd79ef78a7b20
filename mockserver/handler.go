package mockserver

import (
	"net/http"

	"github.com/gateway-go/gateway/mockserver/internal/admin"
	"github.com/gateway-go/gateway/mockserver/internal/console"
	"github.com/gateway-go/gateway/mockserver/internal/core"
	"github.com/gateway-go/gateway/mockserver/internal/faults"
	"github.com/gateway-go/gateway/mockserver/internal/gate"
	"github.com/gateway-go/gateway/mockserver/internal/hosted"
	"github.com/gateway-go/gateway/mockserver/internal/memory"
)

// handler returns the gateway's HTTP handler: what reaches it at all, and which front
// serves it.
func handler(c *core.Core) http.Handler {
	f := &fronts{core: c, pages: hosted.New(c), plane: admin.New(c)}
	f.gateway = c.Journal.Wrap(&faults.Injector{
		Set: c.Faults, Operation: c.Operation, Account: c.Account, Next: http.HandlerFunc(f.serveGateway),
	})
	if c.Console {
		f.console = console.New(c, f.plane, f.gateway)
	}
	return &gate.Gate{
		Hosts:       c.AllowHosts,
		Open:        admin.Harmless,
		Strict:      admin.Serves,
		Rejected:    c.EmitForeign,
		BodyTimeout: c.BodyTimeout,
		Next:        gate.CORS(c.Origins, gate.Decoded(f)),
	}
}

// fronts are the parts of the gateway that serve requests.
type fronts struct {
	core    *core.Core
	pages   *hosted.Pages
	plane   *admin.Plane
	console *console.Console // nil if it is switched off
	gateway http.Handler     // the interface and the checkout page, with journal and faults
}

// ServeHTTP implements http.Handler.
func (f *fronts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	quiet := core.IsQuiet(r) // open pages poll every few seconds
	switch {
	case f.console != nil && console.Serves(r):
		f.console.ServeHTTP(w, r)
	case admin.Serves(r):
		f.plane.ServeHTTP(w, r)
	case f.core.IsDown():
		if !quiet {
			f.core.EmitUnreachable(r)
		}
		memory.Refuse(w)
	case quiet:
		f.pages.ServeHTTP(w, r)
	default:
		f.gateway.ServeHTTP(w, r)
	}
}

func (f *fronts) serveGateway(w http.ResponseWriter, r *http.Request) {
	if core.IsPage(r) {
		f.pages.ServeHTTP(w, r)
		return
	}
	f.core.API.ServeHTTP(w, r)
}
