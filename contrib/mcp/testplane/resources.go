package testplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// scheme begins the URIs of what the mock gateway has.
const scheme = "mock://"

// view is what a resource shows: a result as a tool returns it, so that both separate and
// mask the same.
type view struct {
	name, title, about string
	read               func(ctx context.Context, p *Plane, id string) (any, error)
}

func views() []view {
	return []view{
		{
			"state", "State of the mock gateway", "What mock_status returns: address, clock, timers, resources by state, faults, endpoints.",
			func(ctx context.Context, p *Plane, _ string) (any, error) { return p.status(ctx, nothing{}) },
		},
		{
			"requests", "The latest requests", "The requests that arrived, oldest first, at most 50: status, fault, and why one was rejected.",
			func(ctx context.Context, p *Plane, _ string) (any, error) { return p.latestRequests(ctx) },
		},
		{
			"deliveries", "The latest webhooks", "The deliveries with each attempt, oldest first, at most 20.",
			func(ctx context.Context, p *Plane, _ string) (any, error) { return p.latestDeliveries(ctx) },
		},
	}
}

// resourceKinds are the kinds of resources that have an id, as story names them.
func resourceKinds() []string {
	return []string{"transaction", "transfer", "customer", "subscription", "checkout_link"}
}

// addResources adds what the mock gateway has, to be read without a tool: none of them
// changes anything, and none is in the mock's list of requests.
func (p *Plane) addResources(s *mcp.Server) {
	for _, v := range views() {
		s.AddResource(&mcp.Resource{URI: scheme + v.name, Name: v.name, Title: v.title, Description: v.about, MIMEType: "application/json"}, p.reader(v, ""))
	}
	for _, kind := range resourceKinds() {
		name := strings.ReplaceAll(kind, "_", "-")
		v := view{name: name, read: func(ctx context.Context, p *Plane, id string) (any, error) {
			out, err := p.story(ctx, storyInput{ID: id})
			if err == nil && out.Resource != kind {
				err = &ToolError{Code: notFound}
			}
			return out, err
		}}
		s.AddResourceTemplate(&mcp.ResourceTemplate{
			URITemplate: scheme + name + "/{id}", Name: name, Title: "A " + strings.ReplaceAll(kind, "_", " "), MIMEType: "application/json",
			Description: "What story returns for the id, or the reference: state, changes with their causes, requests, webhooks, timers.",
		}, p.reader(v, scheme+name+"/"))
	}
}

const notFound = "NOT_FOUND"

// reader returns the handler of a resource, or of those whose URIs are a prefix and an id.
func (p *Plane) reader(v view, prefix string) mcp.ResourceHandler {
	return func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		uri, id := req.Params.URI, ""
		if prefix != "" {
			rest, found := strings.CutPrefix(uri, prefix)
			decoded, err := url.PathUnescape(rest)
			if !found || err != nil {
				return nil, mcp.ResourceNotFoundError(uri)
			}
			id = decoded
		}
		out, err := v.read(ctx, p, id)
		if failed, ok := errors.AsType[*ToolError](err); ok && (failed.Code == notFound || failed.Status == http.StatusBadRequest) {
			return nil, mcp.ResourceNotFoundError(uri)
		}
		if err != nil {
			return nil, err
		}
		text, err := json.MarshalIndent(out, "", "  ")
		if err != nil {
			return nil, err
		}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: "application/json", Text: string(text)}}}, nil
	}
}

type requestsView struct {
	outcome

	Requests []rejectedView `json:"requests"`
	Omitted  int            `json:"omitted,omitempty"` // older ones
}

const maxRequests = 50

func (p *Plane) latestRequests(ctx context.Context) (out requestsView, err error) {
	found, err := p.requests(ctx, "")
	if err != nil {
		return out, err
	}
	out.Omitted = max(0, len(found.Data)-maxRequests)
	out.Requests = []rejectedView{}
	for n, r := range found.Data[out.Omitted:] {
		out.Requests = append(out.Requests, out.rejected(fmt.Sprintf("requests[%d]", n), r))
	}
	return out, nil
}

// latestDeliveries does not wait for an attempt that is under way, unlike why_webhook.
func (p *Plane) latestDeliveries(ctx context.Context) (out deliveriesResult, err error) {
	var list []delivery
	if err := p.mock.control(ctx, http.MethodGet, "deliveries", nil, &list); err != nil {
		return out, err
	}
	out.Deliveries = []deliveryView{}
	for n, d := range list[max(0, len(list)-maxDeliveries):] {
		out.Deliveries = append(out.Deliveries, out.view(fmt.Sprintf("deliveries[%d]", n), d, false))
	}
	return out, nil
}
