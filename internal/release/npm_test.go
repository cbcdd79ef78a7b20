package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const root = "../.."

// wasmStandIn is a folder like that of the command wasm.
func wasmStandIn(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	require.NoError(t, os.CopyFS(folder, os.DirFS(filepath.Join(root, "npm", "wasm"))))
	for _, name := range []string{wasmFile, wasmSupport} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(name), 0o600))
	}
	return folder
}

func TestThePackagesForNPM(t *testing.T) {
	t.Parallel()
	notices, binary := filepath.Join(root, "LICENSE"), filepath.Join(t.TempDir(), "binary") // any files
	for release, version := range map[string]string{"1.2.3": "1.2.3", "snapshot-0123456789ab": "0.0.0-snapshot-0123456789ab"} {
		folder := filepath.Join(t.TempDir(), "npm")
		for _, p := range platforms {
			require.NoError(t, os.WriteFile(binary, []byte(p.goos+p.goarch), 0o600))
			require.NoError(t, npm(folder, root, release, notices, p.goos+"/"+p.goarch, binary))
		}
		wasm := wasmStandIn(t)
		require.NoError(t, npm(folder, root, release, notices, "js/wasm", wasm))
		require.NoError(t, npm(folder, root, release, notices, "js/wasm", wasm), "after the next binary")
		assertPackages(t, folder, version, func(goos, goarch string) []byte { return []byte(goos + goarch) })
	}
	incomplete := wasmStandIn(t)
	require.NoError(t, os.Remove(filepath.Join(incomplete, wasmSupport)))
	require.ErrorContains(t, npm(t.TempDir(), root, "1.2.3", notices, "js/wasm", incomplete), "has no wasm_exec.js")
	require.ErrorContains(t, npm(t.TempDir(), root, "1.2.3", notices, "plan9/amd64", binary), "npm has no name for plan9/amd64")
	require.ErrorContains(t, npm(t.TempDir(), root, "1.2.3", "missing", "linux/amd64", binary), "missing")
	require.ErrorContains(t, npm(t.TempDir(), root, "1.2.3", notices, "linux/amd64", "no-binary"), "no-binary")
}

// assertPackages checks the tarballs in a folder. program returns the binary of a platform.
func assertPackages(t *testing.T, folder, version string, program func(goos, goarch string) []byte) {
	t.Helper()
	type manifest struct {
		Name     string            `json:"name"`
		Version  string            `json:"version"`
		OS       []string          `json:"os"`
		CPU      []string          `json:"cpu"`
		Optional map[string]string `json:"optionalDependencies"`
	}
	unpack := func(name string) (map[string]entry, manifest) {
		path := name + "-" + version + ".tgz"
		files := entries(t, path, readFile(t, filepath.Join(folder, path)))
		var m manifest
		require.NoError(t, json.Unmarshal(files["package/package.json"].data, &m))
		assert.Equal(t, version, m.Version)
		return files, m
	}
	main, launcher := unpack("mockgateway")
	assert.Len(t, launcher.Optional, len(platforms))
	assert.True(t, strings.HasPrefix(main["package/bin.mjs"].info, "-rwxr-xr-x"))
	for _, name := range []string{"binary.mjs", "index.mjs", "index.d.ts", "README.md", "LICENSE"} {
		assert.NotEmpty(t, main["package/"+name].data, name)
	}
	for _, p := range platforms {
		files, m := unpack("mockgateway-" + p.os + "-" + p.cpu)
		assert.Equal(t, version, launcher.Optional[m.Name], m.Name)
		assert.Equal(t, "@mockgateway/"+p.os+"-"+p.cpu, m.Name)
		assert.Equal(t, []string{p.os}, m.OS)
		assert.Equal(t, []string{p.cpu}, m.CPU)
		binary := files["package/mockgateway"+map[bool]string{true: ".exe"}[p.goos == "windows"]]
		assert.Equal(t, program(p.goos, p.goarch), binary.data, m.Name)
		assert.True(t, strings.HasPrefix(binary.info, "-rwxr-xr-x"), m.Name)
		assert.NotEmpty(t, files["package/LICENSE"].data)
		assert.NotEmpty(t, files["package/THIRD_PARTY_LICENSES.txt"].data)
	}
}
