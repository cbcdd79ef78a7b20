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

// snapshot writes a folder like that of goreleaser, with stand-ins for the binaries.
func snapshot(t *testing.T, metadata string) (dist string) {
	t.Helper()
	dist = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dist, "metadata.json"), []byte(metadata), 0o600))
	for _, p := range platforms {
		folder := filepath.Join(dist, "mockgateway_"+p.goos+"_"+p.goarch+"_v1")
		require.NoError(t, os.Mkdir(folder, 0o700))
		name := "mockgateway" + map[bool]string{true: ".exe"}[p.goos == "windows"]
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(p.goos+p.goarch), 0o600))
	}
	require.NoError(t, os.CopyFS(filepath.Join(dist, wasmFolder), os.DirFS(filepath.Join(root, "npm", "wasm"))))
	for _, name := range []string{wasmFile, wasmSupport} {
		require.NoError(t, os.WriteFile(filepath.Join(dist, wasmFolder, name), []byte(name), 0o600))
	}
	return dist
}

const root = "../.."

func TestThePackagesForNPM(t *testing.T) {
	t.Parallel()
	notices := filepath.Join(root, "LICENSE") // any file
	for metadata, version := range map[string]string{
		`{"version":"1.2.3"}`: "1.2.3", `{"version":"snapshot-0123456789ab"}`: "0.0.0-snapshot-0123456789ab",
	} {
		folder, dist := t.TempDir(), snapshot(t, metadata)
		require.NoError(t, npm(folder, root, dist, notices))
		assertPackages(t, folder, version, func(goos, goarch string) []byte { return []byte(goos + goarch) })
	}
	missing := snapshot(t, `{"version":"1.2.3"}`)
	require.NoError(t, os.RemoveAll(filepath.Join(missing, "mockgateway_darwin_arm64_v1")))
	require.ErrorContains(t, npm(t.TempDir(), root, missing, notices), "has 0 binaries mockgateway for darwin/arm64, not 1")
	missing = snapshot(t, `{"version":"1.2.3"}`)
	require.NoError(t, os.Remove(filepath.Join(missing, wasmFolder, wasmSupport)))
	require.ErrorContains(t, npm(t.TempDir(), root, missing, notices), "has no wasm_exec.js")
	require.ErrorContains(t, npm(t.TempDir(), root, snapshot(t, `{}`), notices), "metadata.json has no version")
	require.ErrorContains(t, npm(t.TempDir(), root, snapshot(t, `{"version":"1.2.3"}`), "missing"), "missing")
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
	files, m := unpack("mockgateway-wasm")
	assert.Equal(t, "@mockgateway/wasm", m.Name)
	for _, name := range []string{wasmFile, wasmSupport, "index.js", "index.d.ts", "README.md", "LICENSE", "THIRD_PARTY_LICENSES.txt"} {
		assert.NotEmpty(t, files["package/"+name].data, name)
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

// The notices of mockgateway are those of the package for WebAssembly too.
func TestWebAssemblyLinksNoOtherModule(t *testing.T) {
	t.Parallel()
	const format = "{{with .Module}}{{if not .Main}}{{.Path}}@{{.Version}}{{end}}{{end}}"
	list, err := goCommand(t.Context(), []string{"GOOS=js", "GOARCH=wasm"}, "list", "-C", root, "-deps", "-f", format, wasmCommand)
	require.NoError(t, err)
	modules, err := linked(t.Context(), []string{"github.com/gateway-go/gateway/mockserver/cmd/mockgateway"})
	require.NoError(t, err)
	require.NotEmpty(t, strings.Fields(list))
	for module := range strings.FieldsSeq(list) {
		assert.Contains(t, modules, module)
	}
}
