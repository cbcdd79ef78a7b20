package admin

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gateway-go/gateway/mockserver/internal/events"
	"github.com/gateway-go/gateway/mockserver/internal/respond"
)

func (p *Plane) eventRoutes() []Shape {
	return []Shape{{
		Method: http.MethodGet, Path: "events", Out: events.Event{}, Query: []string{"types", "account", "after"},
		Whole: true, MediaType: "text/event-stream", do: p.events,
	}}
}

// events streams events: with a credential, only those of its account. HEAD returns
// the id of the latest one, by which a reader of the stream knows that it has read
// everything that happened before.
func (p *Plane) events(c *call) (any, error) {
	query := c.r.URL.Query()
	f := events.Filter{Account: query.Get("account")}
	for _, list := range query["types"] {
		f.Types = append(f.Types, strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })...)
	}
	for _, name := range f.Types {
		if !slices.Contains(events.Types(), name) {
			return nil, invalid("types: there is no type %q; use %s", name, strings.Join(events.Types(), ", "))
		}
	}
	if own := p.core.Events.Name(c.key); c.authenticated() && f.Account == "" {
		f.Account = own
	} else if c.authenticated() && f.Account != own {
		return nil, invalid("account: the credential belongs to the account %s; use its own, or no credential", own)
	}
	if c.r.Context().Value(http.LocalAddrContextKey) == nil {
		return nil, &RefusedError{http.StatusNotImplemented, "NO_STREAM", "a stream needs a socket: use Server.Listen, or in Go Server.Events"}
	}
	if c.r.Method == http.MethodHead {
		c.w.Header().Set("Content-Type", "text/event-stream")
		if latest := p.core.Events.Latest(f); latest != "" {
			c.w.Header().Set("Last-Event-ID", latest)
		}
		return nil, nil //nolint:nilnil // the response has no body
	}
	after := c.r.Header.Get("Last-Event-ID")
	if after == "" {
		after = query.Get("after")
	}
	reader := p.core.Events.Read(after, f)
	defer reader.Close()
	c.streamed = true
	reader.Stream(c.w, c.r)
	return nil, nil //nolint:nilnil // the response is written
}

// emit publishes a call that changed something or was rejected.
func (p *Plane) emit(c *call, outcome respond.Problem) {
	reads := c.r.Method == http.MethodGet || c.r.Method == http.MethodHead
	if !p.core.Events.Listening() || c.streamed || reads && outcome.Status < http.StatusBadRequest {
		return
	}
	key := c.key
	if outcome.Status == http.StatusUnauthorized {
		key = ""
	}
	p.core.Events.Publish(key, events.Event{Type: events.TypeControl, Request: &events.RequestEvent{
		Method: c.r.Method, Path: c.r.URL.EscapedPath(), Status: outcome.Status, Code: outcome.Code, Detail: outcome.Detail,
		DurationMS: events.Milliseconds(time.Since(c.began)),
	}})
}
