package main

import (
	"debug/buildinfo"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func probeInfo() *buildinfo.BuildInfo {
	return &buildinfo.BuildInfo{
		GoVersion: "go1.26.8", Path: "github.com/gateway-go/gateway/cmd/gatewayprobe",
		Main:     debug.Module{Path: "github.com/gateway-go/gateway", Version: "v1.2.3"},
		Deps:     []*debug.Module{{Path: "example.com/a", Version: "v2.0.0+incompatible"}},
		Settings: []debug.BuildSetting{{Key: "vcs.time", Value: "2026-11-22T13:30:00Z"}},
	}
}

func TestTheSBOMListsLinkedModules(t *testing.T) {
	t.Parallel()
	doc, err := describe(probeInfo())
	require.NoError(t, err)
	assert.Equal(t, "2026-11-22T13:30:00Z", doc.Metadata.Timestamp)
	assert.Equal(t, component{
		Type: "application", Name: "gatewayprobe", Version: "v1.2.3",
		Ref:  "pkg:golang/github.com/gateway-go/gateway@v1.2.3#cmd/gatewayprobe",
		PURL: "pkg:golang/github.com/gateway-go/gateway@v1.2.3#cmd/gatewayprobe",
	}, doc.Metadata.Component)
	var purls []string
	for _, c := range doc.Components {
		purls = append(purls, c.PURL)
	}
	assert.Equal(t, []string{"pkg:golang/example.com/a@v2.0.0%2Bincompatible", "pkg:golang/stdlib@1.26.8"}, purls)
}

func TestAnSBOMNeedsACommitAndPublishedModules(t *testing.T) {
	t.Parallel()
	replaced := probeInfo()
	replaced.Deps[0].Replace = &debug.Module{Path: "../fork"}
	_, err := describe(replaced)
	require.ErrorContains(t, err, "example.com/a is replaced")

	uncommitted := probeInfo()
	uncommitted.Settings = nil
	_, err = describe(uncommitted)
	require.ErrorContains(t, err, "cmd/gatewayprobe was not built in a git checkout")
}

func TestWrongArgumentsWriteNoFile(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out")
	require.ErrorContains(t, run(t.Context(), []string{"sbom", out}), "usage")
	require.ErrorContains(t, run(t.Context(), []string{"sbom", out, "a", "b"}), "too many arguments")
	require.ErrorContains(t, run(t.Context(), []string{"bom", out, "a"}), `unknown command "bom"`)
	require.Error(t, run(t.Context(), []string{"sbom", out, "sbom_test.go"}), "not a binary")
	require.NoFileExists(t, out)
}
