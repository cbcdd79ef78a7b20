// Package manual serves the guides and the OpenAPI documents as resources of an MCP server.
package manual

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/gateway-go/gateway/docs"
	internaldocs "github.com/gateway-go/gateway/internal/docs"
)

// Scheme begins the URIs of the resources.
const Scheme = "gateway://"

// page is one resource.
type page struct {
	uri, title, mime string
	read             func() (string, error)
}

// pages is the only place that knows which guide has which URI.
func pages() []page {
	guide := func(name, title, file string) page {
		return page{Scheme + "docs/" + name, title, "text/markdown", func() (string, error) {
			text, err := docs.Guides().ReadFile(file)
			return string(text), err
		}}
	}
	api := func(name, title string, read func() []byte) page {
		return page{Scheme + "openapi/" + name, title, "application/json", func() (string, error) { return string(read()), nil }}
	}
	return []page{
		guide("agents", "Rules for coding agents", "skills/gateway-go/SKILL.md"),
		guide("errors", "Errors: what happened, what to do", "errors.md"),
		guide("states", "States, transitions and webhooks", "states.md"),
		guide("assumptions", "What this project assumes where the interface is silent", "assumptions.md"),
		guide("operations", "Operations that survive a crash", "operations.md"),
		guide("webhooks", "Receiving webhooks", "webhooks.md"),
		api("document", "The interface, as its document says", func() []byte { return internaldocs.OpenAPI(false) }),
		api("live", "The interface, as live gateways respond", func() []byte { return internaldocs.OpenAPI(true) }),
		api("control", "The mock gateway's control plane", internaldocs.ControlOpenAPI),
	}
}

// Add adds the resources to a server.
func Add(s *mcp.Server) {
	for _, p := range pages() {
		s.AddResource(&mcp.Resource{URI: p.uri, Name: p.uri[len(Scheme):], Title: p.title, MIMEType: p.mime},
			func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
				text, err := p.read()
				if err != nil {
					return nil, err
				}
				return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: p.uri, MIMEType: p.mime, Text: text}}}, nil
			})
	}
}

// URIs lists the resources.
func URIs() []string {
	var list []string
	for _, p := range pages() {
		list = append(list, p.uri)
	}
	return list
}
