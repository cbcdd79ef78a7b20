// Package openapi writes the machine-readable description of the interface, in
// both dialects, and that of the control plane:
//
//	docs/openapi.json          the interface document's dialect
//	docs/openapi-live.json     the live dialect
//	docs/openapi-control.json  the control plane under /__mock
//
// Nothing in them is written by hand: paths come from internal/spec and the
// routes, limits, enums and required members from the rules (see [spec.Describe]),
// responses from the views, descriptions from doc comments, examples from
// testdata. To regenerate them:
//
//	go generate ./mockserver/internal/openapi
package openapi

import (
	"net/http"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/legacy"
	"github.com/gateway-go/gateway/mockserver/internal/httpapi"
	"github.com/gateway-go/gateway/mockserver/internal/respond"
)

//go:generate go run ./write

// version is that of the interface's own description; every webhook names it.
const version = "2.0.0"

// document is an OpenAPI document under construction.
type document struct {
	live     bool
	comments *comments
	schemas  named[*schema]
	views    map[reflect.Type]string // the components that describe them
	failures named[object]           // responses, as components
	samples  *samples
	byView   bool // components have the names of views: the client has no types
}

// Files returns the three documents by their paths below root, the folder of
// the module.
func Files(root string) (map[string][]byte, error) {
	read, err := readComments(map[string]string{
		"gateway": root, "legacy": filepath.Join(root, "legacy"), "webhook": filepath.Join(root, "webhook"),
		"httpapi": filepath.Join(root, "mockserver", "internal", "httpapi"),
		"deliver": filepath.Join(root, "mockserver", "internal", "deliver"),
		"admin":   filepath.Join(root, "mockserver", "internal", "admin"),
		"events":  filepath.Join(root, "mockserver", "internal", "events"),
	})
	if err != nil {
		return nil, err
	}
	examples, err := readSamples(filepath.Join(root, "testdata"))
	if err != nil {
		return nil, err
	}
	files := map[string]object{}
	for name, live := range map[string]bool{"openapi.json": false, "openapi-live.json": true} {
		d := &document{live: live, comments: read, samples: examples, views: map[reflect.Type]string{}}
		if files[name], err = d.whole(); err != nil {
			return nil, err
		}
	}
	d := &document{comments: read, samples: examples, byView: true, views: map[reflect.Type]string{}}
	if files["openapi-control.json"], err = d.control(root); err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for name, content := range files {
		b, err := encode(content)
		if err != nil {
			return nil, err
		}
		if out[filepath.Join("docs", name)], err = layout(b); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func encode(v any) ([]byte, error) { return json.Marshal(v, json.Deterministic(true)) }

func (d *document) whole() (object, error) {
	paths := d.paths()
	webhooks, err := d.webhooks()
	if err != nil {
		return nil, err
	}
	d.schemas.sort()
	d.failures.sort()
	title, dialect := "Payment gateway", "document"
	if d.live {
		title, dialect = title+", live dialect", "live"
	}
	return obj(
		"openapi", "3.1.0",
		"info", obj(
			"title", title,
			"version", version,
			"summary", "Transactions, subscriptions, customers, transfers and hosted checkout.",
			"description", "Amounts are integers in the smallest currency unit (cents). Timestamps are RFC 3339.\n\n"+
				"This describes the "+dialect+" dialect; docs/assumptions.md, The two dialects, lists where the other one differs. "+
				"The gateway also checks rules that JSON Schema can't express, such as check digits, and reports violations in `errors`.",
		),
		"x-dialect", dialect,
		"servers", []object{
			obj("url", "http://127.0.0.1:4010", "description", "mockgateway"),
			obj("url", "https://{host}", "description", "A gateway: production and sandbox have separate addresses.",
				"variables", obj("host", obj("default", "api.example.com"))),
		},
		"security", []object{obj("bearer", []string{}), obj("apiKey", []string{}), obj("basic", []string{})},
		"tags", d.tags(),
		"paths", paths,
		"webhooks", webhooks,
		"components", obj(
			"schemas", d.schemas,
			"responses", d.failures,
			"parameters", d.parameters(),
			"headers", obj("RequestID", obj("description", "The id of the request, for support. If the client sent one, it is echoed.",
				"required", true, "schema", text("string"))),
			"examples", d.samples.failures(d.live),
			"securitySchemes", securitySchemes(),
		),
	), nil
}

func securitySchemes() object {
	return obj(
		"bearer", obj("type", "http", "scheme", "bearer", "description", "The API key. Recommended."),
		"apiKey", obj("type", "apiKey", "in", "header", "name", "apiKey", "description", "The only method that v1 paths accept."),
		"basic", obj("type", "http", "scheme", "basic", "description", "Username: the API key. Password: x."),
	)
}

// resources are the tags, by the first part of an operation's name.
func (d *document) tags() []object {
	var list []object
	seen := map[string]bool{}
	for _, op := range httpapi.Shapes(d.live) {
		resource, _, _ := strings.Cut(op.Name, ".")
		if seen[resource] {
			continue
		}
		seen[resource] = true
		name := "gateway." + camel(resource) + "Service"
		if resource == "legacy" {
			name = "legacy.Client"
		}
		tag := obj("name", resource)
		if text := d.comments.types[name]; text != "" {
			tag.set("description", text)
		}
		list = append(list, tag)
	}
	return list
}

func (d *document) paths() object {
	var paths object
	for _, op := range httpapi.Shapes(d.live) {
		item, _ := paths.get(op.Path)
		methods, _ := item.(object)
		methods.set(strings.ToLower(op.Method), d.operation(op))
		paths.set(op.Path, methods)
	}
	return paths
}

// method returns the client's method for an operation: its comment and the
// types of its params and its result, nil if it has none.
func (d *document) method(name string) (about string, params, result reflect.Type) {
	resource, action, _ := strings.Cut(name, ".")
	service, method := camel(resource)+"Service", camel(action)
	var t reflect.Type
	if resource == "legacy" {
		t, service = reflect.TypeFor[*legacy.Client](), "legacy.Client"
	} else {
		f, ok := reflect.TypeFor[gateway.Client]().FieldByName(camel(resource))
		if !ok {
			panic("openapi: the client has no field for " + name)
		}
		t, service = f.Type, "gateway."+service
	}
	m, ok := t.MethodByName(method)
	if !ok {
		panic("openapi: the client has no method for " + name)
	}
	for in := range m.Type.Ins() {
		if in.Kind() == reflect.Struct && strings.HasSuffix(in.Name(), "Params") {
			params = in
		}
	}
	result = bare(m.Type.Out(0))
	if strings.HasPrefix(result.Name(), "Page[") {
		items, _ := result.FieldByName("Items")
		result = bare(items.Type.Elem())
	}
	return d.comments.methods[service+"."+method], params, result
}

// summary returns the summary in a method's comment, without its name and
// route: "Create makes a transaction: POST /v2/transactions." is "Makes a
// transaction".
func summary(comment string) string {
	_, rest, _ := strings.Cut(comment, " ")
	end := len(rest)
	for _, mark := range []string{": GET ", ": POST ", ": PUT ", ": PATCH ", ". "} {
		if i := strings.Index(rest, mark); i >= 0 {
			end = min(end, i)
		}
	}
	rest = strings.TrimSuffix(rest[:end], ".")
	return strings.ToUpper(rest[:1]) + rest[1:]
}

func (d *document) operation(op httpapi.Shape) object {
	about, params, result := d.method(op.Name)
	resource, _, _ := strings.Cut(op.Name, ".")
	out := obj(
		"operationId", strings.ReplaceAll(op.Name, ".", "_"),
		"tags", []string{resource},
		"summary", summary(about),
	)
	if op.KeyOnly {
		out.set("security", []object{obj("apiKey", []string{})})
	}
	out.set("parameters", d.operationParameters(op, params))
	if op.Rule != nil && op.Method != http.MethodGet {
		out.set("requestBody", d.requestBody(op, params))
	}
	out.set("responses", d.responses(op, result))
	out.set("x-repeat", op.Class.String())
	return out
}

func (d *document) variant() spec.Variant {
	if d.live {
		return spec.Variant{Dialect: spec.LiveDialect}
	}
	return spec.Variant{}
}

func (d *document) requestBody(op httpapi.Shape, params reflect.Type) object {
	name := camel(op.Name) + "Body"
	if params != nil {
		name = params.Name()
	}
	content := obj("schema", d.body(op.Rule, params, name))
	if examples := d.samples.requests(op.Operation, d.variant()); len(examples) > 0 {
		content.set("examples", examples)
	}
	return obj("required", !op.OptionalBody, "content", obj("application/json", content))
}

// body writes the schema of a rule's bodies as a component.
func (d *document) body(rule spec.Rule, params reflect.Type, name string) *schema {
	var write func(s *spec.Shape, twin reflect.Type, name string) *schema
	write = func(s *spec.Shape, twin reflect.Type, name string) *schema {
		twin = bare(twin)
		switch {
		case s.Kind == '[':
			out := value(s)
			out.Items = write(s.Element, elem(twin), strings.TrimSuffix(name, "s"))
			return out
		case s.Kind != '{':
			return value(s)
		case len(s.Members) == 0:
			return anyObject()
		}
		other := strings.TrimSuffix(name, "Params") + "Params"
		if twin != nil && twin.Name() != "" {
			name = strings.TrimSuffix(twin.Name(), "Params") + "Params"
		}
		out := members(s, func(m *spec.Shape) *schema {
			about := field(twin, m.Name)
			var t reflect.Type
			text := ""
			if about != nil {
				t, text = about.Type, d.fieldText(twin, about)
			}
			sub := write(m, t, strings.TrimSuffix(name, "Params")+camel(m.Name))
			if text != "" {
				if sub.Ref != "" {
					sub = &schema{AllOf: []*schema{sub}}
				}
				sub.Description = text
			}
			return sub
		})
		out.AllOf = append(out.AllOf, dependencies(s)...)
		if twin != nil {
			out.Description = d.typeText(twin)
		}
		return d.component(name, other, out)
	}
	return write(spec.Describe(rule, d.variant()), params, name)
}

// operationParameters are those of the path, the query and the headers.
func (d *document) operationParameters(op httpapi.Shape, params reflect.Type) []any {
	list := []any{obj("$ref", "#/components/parameters/RequestID")}
	for name := range strings.SplitSeq(op.Path, "/") {
		if strings.HasPrefix(name, "{") {
			list = append(list, d.pathParameter(strings.Trim(name, "{}")))
		}
	}
	if op.Rule != nil && op.Method == http.MethodGet {
		list = append(list, d.query(op, params)...)
	}
	switch op.Name {
	case spec.CheckoutSessions.Open.Name:
		list = append(list, sessionToken(false))
	case spec.CheckoutSessions.Update.Name:
		list = append(list, sessionToken(true))
	case spec.Transactions.UpdateDelivery.Name:
		list = append(list, obj("name", "If-Match", "in", "header", "schema", text("string"),
			"description", "The ETag of the read that the update is based on: 412 if the transaction has changed since."))
	}
	if d.live && op.Rule != nil && (op.Method == http.MethodPost || op.Method == http.MethodPut) {
		list = append(list, obj("$ref", "#/components/parameters/IdempotencyKey"))
	}
	return list
}

func sessionToken(required bool) object {
	return obj("name", "x-checkout-session-token", "in", "header", "required", required, "schema", text("string"),
		"description", "The session_token of an earlier read of the link.")
}

func (d *document) pathParameter(name string) object {
	s := text("string")
	switch name {
	case "id":
		s.MinLength = 1
		if d.live {
			s = &schema{Type: oneOrAll{"string"}, Format: "uuid"}
		}
	case "slug":
		s = value(spec.Describe(spec.CheckoutSlug, d.variant()).Member(name))
	default:
		s.MinLength = 1
	}
	return obj("name", name, "in", "path", "required", true, "schema", s)
}

// query lists the parameters of a rule, and those that only the client's params
// have: filters that may be any string.
func (d *document) query(op httpapi.Shape, params reflect.Type) []any {
	shape := spec.Describe(op.Rule, d.variant())
	var list []any
	add := func(name string, s *schema, joined bool) {
		p := obj("name", name, "in", "query")
		if about := field(params, name); about != nil {
			if text := d.fieldText(params, about); text != "" {
				p.set("description", text)
			}
		}
		if joined {
			p.set("style", "form")
			p.set("explode", false)
		}
		p.set("schema", s)
		list = append(list, p)
	}
	for f := range params.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("url"), ",")
		m := shape.Member(name)
		switch {
		case name == "" || name == "-":
		case m == nil && strings.Contains(options, "comma"):
			add(name, &schema{Type: oneOrAll{"array"}, Items: text("string")}, true)
		case m == nil:
			add(name, text("string"), false)
		case m.Joined:
			add(name, &schema{Type: oneOrAll{"array"}, Items: value(m.Element)}, true)
		default:
			add(name, value(m), false)
		}
	}
	for _, m := range shape.Members {
		if field(params, m.Name) == nil {
			panic("openapi: " + op.Name + " has no params for " + m.Name)
		}
	}
	return list
}

func (d *document) parameters() object {
	out := obj("RequestID", obj("name", "X-Request-Id", "in", "header", "schema", text("string"),
		"description", "Your own id for the request, echoed in the response."))
	if d.live {
		out.set("IdempotencyKey", obj("name", "Idempotency-Key", "in", "header",
			"schema", &schema{Type: oneOrAll{"string"}, MinLength: 1, MaxLength: new(255)},
			"description", "Makes the request safe to retry: for 24 hours the same key and body return the first response."))
	}
	return out
}

func (d *document) responses(op httpapi.Shape, result reflect.Type) object {
	var out object
	out.set(strconv.Itoa(op.Status), d.success(op, op.Status, op.Data, result))
	if op.Second != nil {
		out.set(strconv.Itoa(op.SecondStatus), d.success(op, op.SecondStatus, op.Second, result))
	}
	for _, e := range op.Errors {
		out.set(strconv.Itoa(e.Status), d.failure(e))
	}
	out.sort()
	out.set("default", obj("description", "Any other error. A proxy's response may not be JSON.",
		"content", obj(respond.ProblemJSON, obj("schema", d.problem()))))
	return out
}

var statusText = map[int]string{ //nolint:gochecknoglobals // never changes
	200: "Success.", 201: "Created.", 400: "The request is invalid.", 401: "The credentials are missing or wrong.",
	403: "The key is not allowed to do this.", 404: "The resource does not exist.", 408: "The body did not arrive in time.",
	409: "The resource's state does not allow the call, or the reference has already been used.",
	410: "The link, session or call is no longer available.", 412: "The resource has changed since it was read.", 413: "The body is too long.",
	415: "The body is not application/json, or compressed with something other than gzip.", 422: "The request is invalid.", 429: "Too many requests: wait for Retry-After.",
	507: "The server has reached its memory limit.",
}

func (d *document) success(op httpapi.Shape, status int, data any, result reflect.Type) object {
	view := d.view(reflect.TypeOf(data), twinOf(data, result), camel(op.Name))
	content := obj("schema", d.envelope(op, view))
	if examples := d.samples.responses(op.Name, status, d.live); len(examples) > 0 {
		content.set("examples", examples)
	}
	headers := obj("X-Request-Id", obj("$ref", "#/components/headers/RequestID"))
	if op.Name == spec.Transactions.Get.Name || op.Name == spec.Transactions.UpdateDelivery.Name {
		headers.set("ETag", obj("description", "Identifies this version of the transaction, for If-Match.", "schema", text("string")))
	}
	return obj("description", statusText[status], "headers", headers, "content", obj(respond.JSON, content))
}

// twinOf returns the client's type for a view, nil if the two have little in
// common: the client assembles some responses from several.
func twinOf(data any, result reflect.Type) reflect.Type {
	t := reflect.TypeOf(data)
	common := 0
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if field(result, name) != nil {
			common++
		}
	}
	if common*2 < t.NumField() {
		return nil
	}
	return result
}

// envelope puts the data of a success into its envelope.
func (d *document) envelope(op httpapi.Shape, data *schema) *schema {
	if op.Bare {
		return data
	}
	out := text("object")
	out.Properties.set("success", &schema{Type: oneOrAll{"boolean"}, Const: true})
	out.Properties.set("requestId", text("string"))
	page := func(to, items *schema) {
		to.Properties.set("data", items)
		to.Properties.set("total", &schema{Type: oneOrAll{"integer"}, Format: "int64", Description: "The number of items on all pages."})
		to.Properties.set("next_cursor", &schema{Type: oneOrAll{"string", "null"}, Description: "Null on the last page."})
		to.Properties.set("prev_cursor", &schema{Type: oneOrAll{"string", "null"}, Description: "Null on the first page."})
	}
	list := strings.HasSuffix(op.Name, ".list")
	items := &schema{Type: oneOrAll{"array"}, Items: data}
	switch {
	case !list:
		out.Properties.set("data", data)
	case op.Numbered:
		meta := text("object")
		for _, name := range []string{"page", "limit", "total"} {
			meta.Properties.set(name, &schema{Type: oneOrAll{"integer"}, Format: "int64"})
			meta.Required = append(meta.Required, name)
		}
		out.Properties.set("metadata", meta)
		out.Properties.set("data", items)
	case d.live:
		page(out, items)
	default:
		inner := text("object")
		page(inner, items)
		inner.Required = names(inner.Properties)
		out.Properties.set("data", inner)
	}
	out.Required = names(out.Properties)
	return out
}

func names[T any](n named[T]) []string {
	list := make([]string, len(n))
	for i, e := range n {
		list[i] = e.name
	}
	return list
}

func (d *document) failure(e httpapi.ErrorShape) object {
	member, body := "code", d.problem()
	if e.Plain {
		member, body = "error", d.plain()
	}
	s := &schema{AllOf: []*schema{body, {Properties: named[*schema]{{member, &schema{Enum: e.Codes}}}}}}
	content := obj("schema", s)
	if examples := d.samples.failing(e, d.live); len(examples) > 0 {
		content.set("examples", examples)
	}
	out := obj("description", statusText[e.Status], "content", obj(e.MediaType, content))
	name := strings.ReplaceAll(http.StatusText(e.Status), " ", "")
	for _, name := range []string{name, name + "." + strings.Join(e.Codes, "."), name + "." + strings.Join(e.Codes, ".") + "." + member} {
		old, taken := d.failures.get(name)
		if !taken {
			d.failures.set(name, out)
		}
		if !taken || same(old, out) {
			return obj("$ref", "#/components/responses/"+name)
		}
	}
	panic("openapi: two responses are called " + name)
}

func (d *document) problem() *schema {
	return d.view(reflect.TypeFor[respond.Problem](), reflect.TypeFor[Problem](), "Problem")
}

func (d *document) plain() *schema {
	return d.view(reflect.TypeFor[respond.Plain](), reflect.TypeFor[PlainError](), "PlainError")
}

// The client has one type for all errors; these name the components.
type (
	// Problem is the body of most errors.
	Problem respond.Problem
	// PlainError is the body of the others.
	PlainError respond.Plain
)
