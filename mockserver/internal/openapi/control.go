package openapi

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/mockserver/internal/admin"
	"github.com/gateway-go/gateway/mockserver/internal/respond"
)

// The control plane's document is generated from its routes, the types of their
// bodies and results, and the descriptions in the table of docs/mockgateway.md.

var controlRow = regexp.MustCompile("(?m)^\\| `([A-Z]+ /__mock[^`]*)` \\| (.*) \\|$")

// control writes the description of the control plane.
func (d *document) control(root string) (object, error) {
	manual, err := os.ReadFile(filepath.Join(root, "docs", "mockgateway.md")) //nolint:gosec // of the module
	if err != nil {
		return nil, err
	}
	about := map[string]string{}
	for _, row := range controlRow.FindAllStringSubmatch(string(manual), -1) {
		about[row[1]] = strings.ToUpper(row[2][:1]) + strings.ReplaceAll(row[2][1:], "`", "")
	}
	d.failures.set("Problem", obj("description", "The call failed: 400 if it is invalid, 404 if the resource does not exist, 409 if its state does not allow the call.",
		"content", obj(respond.ProblemJSON, obj("schema", d.problem()))))
	var paths object
	for _, s := range admin.Shapes() {
		item, _ := paths.get(s.Path)
		methods, _ := item.(object)
		methods.set(strings.ToLower(s.Method), d.call(s, about[s.Method+" "+s.Path]))
		paths.set(s.Path, methods)
	}
	paths.sort()
	d.schemas.sort()
	return obj(
		"openapi", "3.1.0",
		"info", obj(
			"title", "mockgateway control plane",
			"version", version,
			"description", "Endpoints with which a test controls the mock gateway. A call acts on the account of its credential, or on "+
				"the default account if it has none. The server binds to loopback and rejects calls from pages of other origins.",
		),
		"servers", []object{obj("url", "http://127.0.0.1:4010", "description", "mockgateway")},
		"security", []object{obj(), obj("bearer", []string{}), obj("apiKey", []string{}), obj("basic", []string{})},
		"paths", paths,
		"components", obj("schemas", d.schemas, "responses", d.failures, "securitySchemes", securitySchemes()),
	), nil
}

// call describes one call of the plane.
func (d *document) call(s admin.Shape, about string) object {
	path := strings.TrimPrefix(s.Path, admin.Prefix+"/")
	resource, _, _ := strings.Cut(path, "/")
	out := obj(
		"operationId", strings.ToLower(s.Method)+camel(strings.NewReplacer("{", "by/", ".json", "").Replace(path)),
		"tags", []string{strings.TrimSuffix(resource, ".json")},
		"summary", about,
	)
	if s.Open {
		out.set("security", []object{})
	}
	var parameters []object
	for name := range strings.SplitSeq(path, "/") {
		if strings.HasPrefix(name, "{") {
			parameters = append(parameters, obj("name", strings.Trim(name, "{}"), "in", "path", "required", true,
				"schema", &schema{Type: oneOrAll{"string"}, MinLength: 1}))
		}
	}
	for _, name := range s.Query {
		parameters = append(parameters, obj("name", name, "in", "query", "description", aboutParameter(name), "schema", text("string")))
	}
	if len(parameters) > 0 {
		out.set("parameters", parameters)
	}
	if s.In != nil {
		in := d.view(reflect.TypeOf(s.In), nil, "")
		body, _ := d.schemas.get(strings.TrimPrefix(in.Ref, components))
		body.Additional = closedObject
		out.set("requestBody", obj("required", len(body.Required) > 0, "content", obj(respond.JSON, obj("schema", in))))
	}
	media := s.MediaType
	if media == "" {
		media = respond.JSON
	}
	responses := obj(
		"200", obj("description", "Done.", "content", obj(media, obj("schema", d.result(s)))),
		"default", obj("$ref", "#/components/responses/Problem"),
	)
	for _, status := range []string{"400", "401", "404", "409"} {
		responses.set(status, obj("$ref", "#/components/responses/Problem"))
	}
	responses.sort()
	out.set("responses", responses)
	return out
}

// aboutParameter describes a parameter of a query, which means the same in every call.
func aboutParameter(name string) string {
	return map[string]string{
		"account":     "The name of an account. Every account if omitted, with a credential its own.",
		"after":       "The id of the last event that you have.",
		"count":       "How many requests, default 1.",
		"id":          "The id of a resource, its reference, or a link's slug.",
		"kind":        "Only events of this kind, such as transaction.paid.",
		"match":       "An operation, or a method and path. Every request if omitted.",
		"resource_id": "Only events about this resource.",
		"status":      "Only deliveries of this status, such as delivered.",
		"timeout":     "How long the call waits in wall time, default 30s, at most 1h. Afterwards it returns 409.",
		"types":       "Only events of these types, separated by commas.",
	}[name]
}

func (d *document) result(s admin.Shape) *schema {
	var data *schema
	switch _, anything := s.Out.(map[string]any); {
	case s.Out == nil:
		data = &schema{
			Type: oneOrAll{"object"}, Required: []string{"id", "status"},
			Properties:  named[*schema]{{"id", text("string")}, {"status", text("string")}},
			Description: "The resource as its read endpoint returns it; see openapi.json.", Additional: jsontext.Value("true"),
		}
	case anything:
		data = anyObject()
	default:
		data = d.view(reflect.TypeOf(s.Out), nil, camel(strings.TrimPrefix(s.Path, admin.Prefix)))
	}
	if s.Whole {
		return data
	}
	return &schema{Type: oneOrAll{"object"}, Required: []string{"data"}, Properties: named[*schema]{{"data", data}}}
}
