package openapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/docs"
)

// document is an OpenAPI document under test.
type document struct {
	root     map[string]any
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema
}

// open reads a document. In strict mode every object of a known shape is
// closed: fields that its schema doesn't name are rejected, since responses
// must not have any.
func open(tb testing.TB, content []byte, strict bool) *document {
	tb.Helper()
	root, ok := decode(tb, content).(map[string]any)
	require.True(tb, ok)
	if strict {
		closeObjects(root["components"])
		closeObjects(root["paths"])
		closeObjects(root["webhooks"])
	}
	d := &document{root: root, compiler: jsonschema.NewCompiler(), compiled: map[string]*jsonschema.Schema{}}
	d.compiler.AssertFormat()
	require.NoError(tb, d.compiler.AddResource("openapi.json", root))
	return d
}

func decode(tb testing.TB, content []byte) any {
	tb.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(content))
	require.NoError(tb, err)
	return v
}

func closeObjects(v any) {
	switch v := v.(type) {
	case map[string]any:
		_, shaped := v["properties"].(map[string]any)
		if _, set := v["additionalProperties"]; !set && shaped && isObject(v["type"]) {
			v["additionalProperties"] = false
		}
		for name, sub := range v {
			if name != "examples" && name != "value" {
				closeObjects(sub)
			}
		}
	case []any:
		for _, sub := range v {
			closeObjects(sub)
		}
	}
}

func isObject(kind any) bool {
	list, _ := kind.([]any)
	return kind == "object" || len(list) > 0 && list[0] == "object"
}

// at returns the value at a path of the document, and the pointer to it after
// all references.
func (d *document) at(path ...string) (any, string) {
	var v any = d.root
	pointer := "#"
	for _, name := range path {
		switch at := v.(type) {
		case map[string]any:
			v = at[name]
		case []any:
			i, _ := strconv.Atoi(name)
			v = at[i]
		default:
			return nil, ""
		}
		pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
		if m, ok := v.(map[string]any); ok {
			if to, ok := m["$ref"].(string); ok && name != "schema" {
				var names []string
				for part := range strings.SplitSeq(to[2:], "/") {
					names = append(names, strings.NewReplacer("~1", "/", "~0", "~").Replace(part))
				}
				v, pointer = d.at(names...)
			}
		}
	}
	return v, pointer
}

// schema compiles the schema at a path, or returns nil if there is none.
func (d *document) schema(tb testing.TB, path ...string) *jsonschema.Schema {
	tb.Helper()
	v, pointer := d.at(path...)
	if v == nil {
		return nil
	}
	if s := d.compiled[pointer]; s != nil {
		return s
	}
	s, err := d.compiler.Compile("openapi.json" + pointer)
	require.NoError(tb, err, pointer)
	d.compiled[pointer] = s
	return s
}

// object returns the object at a path.
func (d *document) object(path ...string) map[string]any {
	v, _ := d.at(path...)
	m, _ := v.(map[string]any)
	return m
}

// operation is one operation of a document.
type operation struct {
	path, method, id string
}

// name is the operation's name in internal/spec, "transactions.create".
func (o operation) name() string {
	for _, resource := range []string{"checkout_links", "checkout_sessions"} {
		if rest, ok := strings.CutPrefix(o.id, resource+"_"); ok {
			return resource + "." + rest
		}
	}
	return strings.Replace(o.id, "_", ".", 1)
}

func (d *document) operations() []operation {
	var list []operation
	for path, item := range d.object("paths") {
		methods, _ := item.(map[string]any)
		for method := range methods {
			id, _ := d.object("paths", path, method)["operationId"].(string)
			list = append(list, operation{path, method, id})
		}
	}
	return list
}

// find returns the operation of a request's path.
func (d *document) find(method, path string) (operation, bool) {
	got := strings.Split(path, "/")
	best, least := operation{}, 100
	for _, o := range d.operations() {
		want := strings.Split(o.path, "/")
		if o.method != strings.ToLower(method) || len(want) != len(got) {
			continue
		}
		fits, parameters := true, 0
		for i := range want {
			if strings.HasPrefix(want[i], "{") {
				parameters++
			} else if want[i] != got[i] {
				fits = false
			}
		}
		if fits && parameters < least {
			best, least = o, parameters
		}
	}
	return best, least < 100
}

// checkResponse returns why a response doesn't fit its operation.
func (d *document) checkResponse(tb testing.TB, o operation, status int, mediaType string, body []byte) error {
	tb.Helper()
	code := strconv.Itoa(status)
	if d.object("paths", o.path, o.method, "responses", code) == nil {
		return fmt.Errorf("%s: status %d is not documented: %.300s", o.id, status, body)
	}
	mediaType, _, _ = strings.Cut(mediaType, ";")
	s := d.schema(tb, "paths", o.path, o.method, "responses", code, "content", mediaType, "schema")
	if s == nil {
		return fmt.Errorf("%s: %d as %s is not documented", o.id, status, mediaType)
	}
	if mediaType == "text/plain" {
		return nil
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err
	}
	if err := s.Validate(v); err != nil {
		return fmt.Errorf("%s: %d: %w\n%.600s", o.id, status, err, body)
	}
	return nil
}

func contents() map[string][]byte {
	return map[string][]byte{"document": docs.OpenAPI(false), "live": docs.OpenAPI(true), "control": docs.ControlOpenAPI()}
}

func encode(tb testing.TB, v any) string {
	tb.Helper()
	b, err := json.Marshal(v)
	require.NoError(tb, err)
	return string(b)
}
