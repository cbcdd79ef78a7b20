package core

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/deliver"
	"github.com/gateway-go/gateway/mockserver/internal/events"
	"github.com/gateway-go/gateway/mockserver/internal/faults"
	"github.com/gateway-go/gateway/mockserver/internal/httpapi"
	"github.com/gateway-go/gateway/mockserver/internal/store"
	"github.com/gateway-go/gateway/webhook"
)

// The requests that the journal records and that faults can target are those of the
// interface and those of the checkout page.

func pageOperations() []spec.Operation {
	return []spec.Operation{
		{Name: "checkout_links.page", Method: http.MethodGet, Path: httpapi.PagePath + "{slug}"},
		{Name: "checkout_links.submit", Method: http.MethodPost, Path: httpapi.PagePath + "{slug}"},
	}
}

// IsPage reports whether a request is for a checkout page or one of its files.
func IsPage(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, httpapi.PagePath) }

// IsQuiet reports whether a request is left out of the journal: those for the
// checkout page's files, and the page's polls for changes every second.
func IsQuiet(r *http.Request) bool {
	_, rest, found := strings.Cut(strings.TrimPrefix(r.URL.Path, httpapi.PagePath), "/")
	return IsPage(r) && found && rest != ""
}

// Operation returns the name of a request's operation, "" if it has none.
func (c *Core) Operation(r *http.Request) string {
	page := ""
	if IsPage(r) && !IsQuiet(r) {
		for _, op := range pageOperations() {
			if op.Method == r.Method || op.Method == http.MethodGet && r.Method == http.MethodHead {
				page = op.Name
			}
		}
	}
	return cmp.Or(page, c.API.Operation(r))
}

// Account returns the key of the account that a request acts on, "" if it is unknown.
func (c *Core) Account(r *http.Request) string {
	if IsPage(r) {
		slug, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, httpapi.PagePath), "/")
		return c.LinkOwner(slug)
	}
	return c.API.Account(r)
}

// LinkOwner returns the key of the account that has a link, or "". A buyer has no
// credentials, so the slug identifies the account.
func (c *Core) LinkOwner(slug string) string {
	return c.Store.Owner(func(d *store.Data) bool { return d.Links.Get(slug) != nil })
}

// matchesAny reports whether a pattern matches any operation or kind of event.
func (c *Core) matchesAny(webhooks bool, pattern string) bool {
	if webhooks {
		return slices.ContainsFunc(deliver.Kinds(c.Dialect), func(k webhook.Kind) bool {
			return faults.Glob(pattern, string(k))
		})
	}
	return slices.ContainsFunc(append(c.API.Operations(), pageOperations()...), func(o spec.Operation) bool {
		return faults.Request{Operation: o.Name, Method: o.Method, Path: o.Path}.CanMatch(pattern)
	})
}

// EmitForeign reports a request with a host name that is not allowed, which
// reaches neither the gateway nor its control plane.
func (c *Core) EmitForeign(r *http.Request) {
	c.Events.Publish("", events.Event{Type: events.TypeRequest, Request: &events.RequestEvent{
		Method: r.Method, Path: r.URL.EscapedPath(), Status: http.StatusMisdirectedRequest, Code: "FOREIGN_HOST",
		Detail: "The host name " + r.Host + " is not allowed.",
	}})
}

// EmitUnreachable reports a request that arrived while the gateway is down.
func (c *Core) EmitUnreachable(r *http.Request) {
	c.Events.Publish("", events.Event{Type: events.TypeRequest, Request: &events.RequestEvent{
		Method: r.Method, Path: r.URL.EscapedPath(), Fault: "down", Broken: true,
	}})
}
