package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func someFiles() []file {
	return []file{{name: "mockgateway", data: []byte("a program"), exec: true}, {name: "docs/guide.md", data: []byte("# A guide\n")}}
}

// entry is a file of an archive.
type entry struct {
	info string // mode and time
	data []byte
}

func entries(t *testing.T, name string, data []byte) map[string]entry {
	t.Helper()
	found := map[string]entry{}
	add := func(name string, info os.FileInfo, r io.Reader) {
		content, err := io.ReadAll(r)
		require.NoError(t, err)
		found[name] = entry{info.Mode().String() + " " + info.ModTime().UTC().Format(time.RFC3339), content}
	}
	if strings.HasSuffix(name, ".zip") {
		r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
		require.NoError(t, err)
		for _, f := range r.File {
			content, err := f.Open()
			require.NoError(t, err)
			add(f.Name, f.FileInfo(), content)
		}
		return found
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(data))
	require.NoError(t, err)
	r := tar.NewReader(unpacked)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		require.NoError(t, err)
		add(h.Name, h.FileInfo(), r)
	}
}

func TestAnArchiveHoldsModesAndTheTimeOfTheCommit(t *testing.T) {
	t.Parallel()
	made := time.Date(2026, 11, 22, 13, 30, 2, 0, time.FixedZone("BRT", -3*3600))
	for suffix, archive := range map[string]func(string, []file, time.Time) ([]byte, error){".tar.gz": tarball, ".zip": zipped} {
		data, err := archive("gateway_v1.2.3", someFiles(), made)
		require.NoError(t, err)
		assert.Equal(t, map[string]entry{
			"gateway_v1.2.3/mockgateway":   {"-rwxr-xr-x 2026-11-22T16:30:02Z", []byte("a program")},
			"gateway_v1.2.3/docs/guide.md": {"-rw-r--r-- 2026-11-22T16:30:02Z", []byte("# A guide\n")},
		}, entries(t, suffix, data), suffix)
		again, err := archive("gateway_v1.2.3", someFiles(), made.UTC())
		require.NoError(t, err)
		assert.Equal(t, data, again, suffix)
	}
}

func infoOf(settings ...string) *buildinfo.BuildInfo {
	info := &buildinfo.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Path: "github.com/gateway-go/gateway", Version: "v1.2.3"}}
	info.Deps = []*module{{Path: "example.com/a", Version: "v1.0.0"}}
	for i := 0; i < len(settings); i += 2 {
		info.Settings = append(info.Settings, debug.BuildSetting{Key: settings[i], Value: settings[i+1]})
	}
	return info
}

func TestOnlyACommitIsReleased(t *testing.T) {
	t.Parallel()
	made, err := commitTime(infoOf("vcs.revision", "abc", "vcs.time", "2026-11-22T13:30:00Z", "vcs.modified", "false"))
	require.NoError(t, err)
	assert.Equal(t, time.Date(2026, 11, 22, 13, 30, 0, 0, time.UTC), made)
	_, err = commitTime(infoOf("vcs.revision", "abc", "vcs.time", "2026-11-22T13:30:00Z", "vcs.modified", "true"))
	require.ErrorContains(t, err, "not committed")
	_, err = commitTime(infoOf())
	require.ErrorContains(t, err, "no git checkout")

	full := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(full, "old.tar.gz"), nil, 0o600))
	require.ErrorContains(t, release(t.Context(), ".", full, nil), "not empty")
}

func TestTheSBOMNamesWhatIsLinked(t *testing.T) {
	t.Parallel()
	data, err := sbom("gateway_v1.2.3_linux_amd64", infoOf(), time.Unix(0, 0))
	require.NoError(t, err)
	type part struct {
		PURL string `json:"purl"`
	}
	var document struct {
		BOMFormat   string `json:"bomFormat"`
		SpecVersion string `json:"specVersion"`
		Metadata    struct {
			Component part `json:"component"`
		} `json:"metadata"`
		Components []part `json:"components"`
	}
	require.NoError(t, json.Unmarshal(data, &document))
	assert.Equal(t, "CycloneDX 1.6", document.BOMFormat+" "+document.SpecVersion)
	assert.Equal(t, "pkg:golang/github.com/gateway-go/gateway@v1.2.3", document.Metadata.Component.PURL)
	assert.Equal(t, "[{pkg:golang/example.com/a@v1.0.0} {pkg:golang/stdlib@1.26.8}]", fmt.Sprint(document.Components))

	replaced := infoOf()
	replaced.Deps[0].Replace = &module{Path: "../fork"}
	_, err = sbom("x", replaced, time.Unix(0, 0))
	require.ErrorContains(t, err, "example.com/a is replaced")
}

func TestAModuleWithoutALicenceIsNotReleased(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var out bytes.Buffer
	require.ErrorContains(t, notice(&out, "example.com/a v1.0.0", dir), "no licence found of example.com/a")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "LICENSE.md"), []byte("do what you like\n"), 0o600))
	require.NoError(t, notice(&out, "example.com/a v1.0.0", dir))
	assert.Contains(t, out.String(), "example.com/a v1.0.0\n\ndo what you like\n")
}

func fullSize(t *testing.T) {
	t.Helper()
	if os.Getenv("FULL_SIZE") == "" {
		t.Skip("it builds for every platform: .ci/run release")
	}
}

// clone checks the commit out in a folder of that name.
func clone(t *testing.T, name string) string {
	t.Helper()
	top, err := exec.CommandContext(t.Context(), "git", "rev-parse", "--show-toplevel").Output()
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), name)
	out, err := exec.CommandContext(t.Context(), "git", "clone", "-q", strings.TrimSpace(string(top)), dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return dir
}

// The two clones lie in different folders and share the build cache: what is compared is
// what this module adds to the toolchain, whose own builds are reproducible.
func TestTwoClonesReleaseTheSameBytes(t *testing.T) {
	fullSize(t)
	t.Setenv("GOFLAGS", "-tags=of_a_maintainer") // must not matter
	first, second := filepath.Join(t.TempDir(), "dist"), filepath.Join(t.TempDir(), "dist")
	require.NoError(t, release(t.Context(), clone(t, "a"), first, platforms()))
	t.Setenv("GOFLAGS", "")
	require.NoError(t, release(t.Context(), clone(t, "another-name"), second, platforms()))

	sums, err := os.ReadFile(filepath.Join(first, "checksums.txt"))
	require.NoError(t, err)
	again, err := os.ReadFile(filepath.Join(second, "checksums.txt"))
	require.NoError(t, err)
	require.Equal(t, string(sums), string(again))
	lines := strings.Split(strings.TrimSpace(string(sums)), "\n")
	require.Len(t, lines, 2*len(platforms()), "an archive and an SBOM for each platform")
	for _, line := range lines {
		sum, name, _ := strings.Cut(line, "  ")
		data, err := os.ReadFile(filepath.Join(first, name))
		require.NoError(t, err)
		assert.Equal(t, sum, fmt.Sprintf("%x", sha256.Sum256(data)), name)
		if !strings.HasSuffix(name, ".json") {
			t.Logf("%s: %d bytes", name, len(data))
			assertRuns(t, name, entries(t, name, data))
		}
	}
}

// assertRuns checks that an archive holds programs of its platform, which report its
// version where they can be run here.
func assertRuns(t *testing.T, archive string, files map[string]entry) {
	t.Helper()
	folder := strings.TrimSuffix(strings.TrimSuffix(archive, ".zip"), ".tar.gz")
	parts := strings.Split(folder, "_")
	require.Len(t, parts, 4, archive)
	version, system, arch := parts[1], parts[2], parts[3]
	assert.Regexp(t, `^v\d+\.\d+\.\d+`, version)
	assert.NotContains(t, version, "dirty")
	assert.Len(t, files, len(commands())+1+len(documents()), archive)
	for _, command := range commands() {
		name := filepath.Base(command)
		program := files[folder+"/"+name+map[string]string{"windows": ".exe"}[system]]
		assert.Contains(t, program.info, "-rwxr-xr-x", archive)
		assert.Equal(t, arch, archOf(t, system, program.data), archive)
		if system != runtime.GOOS || arch != runtime.GOARCH {
			continue
		}
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, program.data, 0o700))
		out, err := exec.CommandContext(t.Context(), path, "-version").CombinedOutput()
		require.NoError(t, err, "%s", out)
		assert.Equal(t, fmt.Sprintf("%s %s %s %s/%s\n", name, version, runtime.Version(), system, arch), string(out))
	}
}

func archOf(t *testing.T, system string, data []byte) string {
	t.Helper()
	r := bytes.NewReader(data)
	switch system {
	case "linux":
		f, err := elf.NewFile(r)
		require.NoError(t, err)
		return map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64"}[f.Machine]
	case "darwin":
		f, err := macho.NewFile(r)
		require.NoError(t, err)
		return map[macho.Cpu]string{macho.CpuAmd64: "amd64", macho.CpuArm64: "arm64"}[f.Cpu]
	default:
		f, err := pe.NewFile(r)
		require.NoError(t, err)
		return map[uint16]string{pe.IMAGE_FILE_MACHINE_AMD64: "amd64", pe.IMAGE_FILE_MACHINE_ARM64: "arm64"}[f.Machine]
	}
}
