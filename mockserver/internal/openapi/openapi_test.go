package openapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/docs"
	"github.com/gateway-go/gateway/mockserver/internal/openapi"
)

// The documents are generated from doc comments, rules, views and golden files,
// and must be regenerated when one of those changes.
func TestDocumentsAreUpToDate(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..")
	files, err := openapi.Files(root)
	require.NoError(t, err)
	assert.Len(t, files, 3)
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		if !bytes.Equal(want, got) { // a diff of it would fill the screen
			t.Errorf("%s is stale: run go generate ./mockserver/internal/openapi", name)
		}
	}
	for name, packed := range map[string][]byte{
		"openapi.json": docs.OpenAPI(false), "openapi-live.json": docs.OpenAPI(true), "openapi-control.json": docs.ControlOpenAPI(),
	} {
		want, err := os.ReadFile(filepath.Join(root, "docs", name))
		require.NoError(t, err)
		if !bytes.Equal(want, packed) {
			t.Errorf("%s in docs/openapi.zip is stale: run go generate ./mockserver/internal/openapi", name)
		}
	}
}

// Doc comments describe Go types as well; the documents keep what is about the
// wire, with the names and values of the wire.
func TestDescriptionsAreAboutTheWire(t *testing.T) {
	t.Parallel()
	for _, live := range []bool{false, true} {
		content := string(docs.OpenAPI(live))
		assert.NotRegexp(t, `Reveal|[Pp]rint|are zero|decoded|Full is|Nullable|PaymentMethods|requires? [^"]*\b(Amount|Token)\b|"Are `, content)
		assert.Contains(t, content, "data.status is then paid, or for a card also captured.")
	}
	assert.Contains(t, string(docs.ControlOpenAPI()), `status=503; retry-after=2`, "a semicolon in quotes ends no sentence")
}

// The guide leaves the parameters of the control plane to its document.
func TestEveryControlParameterIsDescribed(t *testing.T) {
	t.Parallel()
	var doc struct {
		Paths map[string]map[string]struct {
			Summary    string `json:"summary"`
			Parameters []struct {
				Name        string `json:"name"`
				In          string `json:"in"`
				Description string `json:"description"`
			} `json:"parameters"`
		} `json:"paths"`
	}
	require.NoError(t, json.Unmarshal(docs.ControlOpenAPI(), &doc))
	queries := 0
	for path, methods := range doc.Paths {
		for method, call := range methods {
			assert.NotEmpty(t, call.Summary, method+" "+path)
			for _, p := range call.Parameters {
				if p.In == "query" {
					queries++
					assert.NotEmpty(t, p.Description, "%s %s: %s", method, path, p.Name)
				}
			}
		}
	}
	assert.Greater(t, queries, 10)
}

// Generators such as oapi-codegen reject a list of types, unless it is one type or null.
func TestNoValueHasAListOfTypes(t *testing.T) {
	t.Parallel()
	var check func(path string, v any)
	check = func(path string, v any) {
		switch v := v.(type) {
		case []any:
			for i, element := range v {
				check(fmt.Sprintf("%s/%d", path, i), element)
			}
		case map[string]any:
			if kinds, list := v["type"].([]any); list {
				kinds = slices.DeleteFunc(kinds, func(kind any) bool { return kind == "null" })
				assert.Len(t, kinds, 1, path)
			}
			for name, member := range v {
				check(path+"/"+name, member)
			}
		}
	}
	for name, text := range map[string][]byte{
		"openapi.json": docs.OpenAPI(false), "openapi-live.json": docs.OpenAPI(true), "openapi-control.json": docs.ControlOpenAPI(),
	} {
		var doc any
		require.NoError(t, json.Unmarshal(text, &doc))
		check(name, doc)
	}
}
