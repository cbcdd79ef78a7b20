package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAModuleWithoutALicenseFailsTheRelease(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var out bytes.Buffer
	require.ErrorContains(t, notice(&out, "example.com/a@v1.0.0", dir), "found no license file for example.com/a@v1.0.0")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "LICENSE.md"), []byte("do what you like\n"), 0o600))
	require.NoError(t, notice(&out, "example.com/a@v1.0.0", dir))
	assert.Contains(t, out.String(), "example.com/a@v1.0.0\n\ndo what you like\n")
}
