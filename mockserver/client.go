package mockserver

import (
	"net/http"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver/internal/admin"
	"github.com/gateway-go/gateway/mockserver/internal/memory"
)

// BaseURL is the address that [Server.Client] uses. It is a loopback address,
// so that a notify_url may be plain http; nothing listens there.
const BaseURL = "http://localhost"

// Transport returns an in-memory transport to the gateway, for an [http.Client]
// of your own. The host of a request does not matter.
func (s *Server) Transport() http.RoundTripper {
	return &memory.Transport{Handler: s.Handler(), Inline: inline}
}

// inline reports whether a request goes to the interface. Control plane calls
// may wait for webhook handlers.
func inline(r *http.Request) bool { return !admin.Serves(r) }

// Client returns a client of the default account over [Server.Transport].
// The options are applied after its own, so they can override them. It panics
// if an option is invalid.
func (s *Server) Client(opts ...gateway.Option) *gateway.Client {
	return s.Account(s.Key()).Client(opts...)
}

// Client returns a client of the account; see [Server.Client].
func (a *Account) Client(opts ...gateway.Option) *gateway.Client {
	own := []gateway.Option{gateway.WithHTTPClient(&http.Client{Transport: a.server.Transport()})}
	c, err := gateway.New(BaseURL, gateway.BearerToken(a.key.Reveal()), append(own, opts...)...)
	if err != nil {
		panic("mockserver: " + err.Error())
	}
	return c
}
