package openapi_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/docs"
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
