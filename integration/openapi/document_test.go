// Package openapi_test checks docs/openapi*.json against the OpenAPI 3.1 schema, the
// golden files, the mock gateway's responses and webhooks, and the mock's
// rules for requests.
package openapi_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/docs"
)

// testdata/oas-3.1.json is the schema that the OpenAPI Initiative publishes for
// documents of version 3.1, https://spec.openapis.org/oas/3.1/schema/2022-10-07.
func TestDocumentsAreValidOpenAPI31(t *testing.T) {
	t.Parallel()
	meta, err := os.ReadFile(filepath.Join("testdata", "oas-3.1.json"))
	require.NoError(t, err)
	for name, content := range contents() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compiler := jsonschema.NewCompiler()
			require.NoError(t, compiler.AddResource("https://spec.openapis.org/oas/3.1/schema", decode(t, meta)))
			oas, err := compiler.Compile("https://spec.openapis.org/oas/3.1/schema")
			require.NoError(t, err)
			require.NoError(t, oas.Validate(decode(t, content)))

			broken := bytes.Replace(content, []byte(`"in": "path", "required": true`), []byte(`"in": "path"`), 1)
			require.Error(t, oas.Validate(decode(t, broken)), "the schema must reject the broken document")
		})
	}
}

// Every schema is valid JSON Schema 2020-12, every reference resolves, and
// every example conforms.
func TestSchemasCompileAndExamplesFit(t *testing.T) {
	t.Parallel()
	for name, content := range contents() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := open(t, content, false)
			examples := 0
			var walk func(v any, path []string)
			walk = func(v any, path []string) {
				switch v := v.(type) {
				case map[string]any:
					if _, ok := v["schema"]; ok {
						s := d.schema(t, append(slices.Clone(path), "schema")...)
						for example := range d.object(append(slices.Clone(path), "examples")...) {
							value := d.object(append(slices.Clone(path), "examples", example)...)["value"]
							examples++
							if err := s.Validate(value); err != nil {
								t.Errorf("%s: %s: %v", path, example, err)
							}
						}
					}
					for key, sub := range v {
						if key != "examples" {
							walk(sub, append(slices.Clone(path), key))
						}
					}
				case []any:
					for i, sub := range v {
						walk(sub, append(slices.Clone(path), strconv.Itoa(i)))
					}
				}
			}
			for _, part := range []string{"paths", "webhooks", "components"} {
				walk(d.root[part], []string{part})
			}
			if name != "control" {
				assert.Greater(t, examples, 50)
			}
		})
	}
}

// The golden files that no schema describes, and why.
var foreign = map[string]string{
	"errors/failed.200.json":            "an error under a success status, as a proxy may send it",
	"errors/coded_title.422.json":       "a title that is a code, as live gateways send it; the mock does so only in a fault",
	"errors/validation_errors.422.json": "the body of another version of the gateway",
}

// TestGoldenFilesFit checks the documents against the hand-written wire form.
func TestGoldenFilesFit(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("..", "..", "testdata", "*", "*.json"))
	require.NoError(t, err)
	require.Greater(t, len(files), 60)
	for _, file := range files {
		name := filepath.Base(filepath.Dir(file)) + "/" + filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			d := open(t, docs.OpenAPI(strings.Contains(name, ".live.")), true)
			if strings.Contains(name, ".request.") {
				d = open(t, docs.OpenAPI(false), false)
			}
			fits := fitsSomewhere(t, d, name, decode(t, content))
			if _, ok := foreign[name]; ok {
				assert.Error(t, fits, "it conforms: remove it from the list")
				return
			}
			assert.NoError(t, fits)
		})
	}
}

// fitsSomewhere checks a golden file against the schema of its operation, and
// an error against those of all errors.
func fitsSomewhere(t *testing.T, d *document, name string, value any) error {
	t.Helper()
	if strings.HasPrefix(name, "errors/") {
		err := d.schema(t, "components", "schemas", "Problem").Validate(value)
		if err == nil {
			return nil
		}
		return d.schema(t, "components", "schemas", "PlainError").Validate(value)
	}
	id := strings.ReplaceAll(strings.Split(strings.ReplaceAll(name, "resume", "open"), ".")[0], "/", "_")
	best := operation{}
	for _, o := range d.operations() {
		if (id == o.id || strings.HasPrefix(id, o.id+"_")) && len(o.id) > len(best.id) {
			best = o
		}
	}
	require.NotEmpty(t, best.id, "no operation is called %s", id)
	if strings.Contains(name, ".request.") {
		return d.schema(t, "paths", best.path, best.method, "requestBody", "content", "application/json", "schema").Validate(value)
	}
	var err error
	for _, status := range []string{"200", "201"} {
		s := d.schema(t, "paths", best.path, best.method, "responses", status, "content", "application/json", "schema")
		if s == nil {
			continue
		}
		if err = s.Validate(value); err == nil {
			return nil
		}
	}
	return err
}
