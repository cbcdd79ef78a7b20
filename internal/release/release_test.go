package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
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
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func commands() []string { return []string{"gatewayprobe", "mockgateway"} }

// documents are the files in an archive other than the commands.
func documents() []string {
	return []string{
		"CHANGELOG.md", "LICENSE", "THIRD_PARTY_LICENSES.txt",
		"docs/assumptions.md", "docs/mockgateway.md", "docs/probe.md", "docs/shop.seed.json",
	}
}

func fullSize(t *testing.T) {
	t.Helper()
	if os.Getenv("FULL_SIZE") == "" {
		t.Skip("builds a release or an image: run .ci/run release")
	}
}

// output runs a command in dir with additional environment variables and returns
// what it prints.
func output(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return strings.TrimSpace(string(out))
}

// clone clones the repository into a new folder with this name.
func clone(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	output(t, ".", nil, "git", "clone", "-q", output(t, ".", nil, "git", "rev-parse", "--show-toplevel"), dir)
	return dir
}

// maintainerEnv is an environment with settings that would change a binary.
func maintainerEnv(t *testing.T) []string {
	t.Helper()
	settings := filepath.Join(t.TempDir(), "env") // the file that "go env -w" writes
	require.NoError(t, os.WriteFile(settings, []byte("GOFLAGS=-tags=of_go_env\nGOFIPS140=latest\n"), 0o600))
	return []string{"GOENV=" + settings, "GOFLAGS=", "GOAMD64=v3", "GOARM64=v8.1", "TZ=America/Sao_Paulo"}
}

// sampled reports whether the environment variable SAMPLE selects one of two builds. If it
// is not a number, it selects both.
func sampled(i int) bool {
	n, err := strconv.Atoi(os.Getenv("SAMPLE"))
	return err != nil || (n+i)%2 == 0
}

// The clones are in different folders and share the build cache: the
// toolchain's builds are reproducible, and the test checks what goreleaser and
// this package add to them.
func TestAReleaseIsReproducible(t *testing.T) {
	fullSize(t)
	if !sampled(0) {
		t.Skip("every second commit builds a tagged version instead")
	}
	t.Parallel()
	first, second := clone(t, "a"), clone(t, "another-name")
	output(t, first, maintainerEnv(t), ".ci/release", "--snapshot")
	output(t, second, []string{"GOFLAGS=-tags=of_a_maintainer"}, ".ci/release", "--snapshot")
	sums := readFile(t, filepath.Join(first, "dist", "checksums.txt"))
	require.Equal(t, string(sums), string(readFile(t, filepath.Join(second, "dist", "checksums.txt"))))
	require.Equal(t, tarballs(t, first), tarballs(t, second))
	commit := output(t, first, nil, "git", "rev-parse", "HEAD")[:12]
	assertReleased(t, first, "snapshot-"+commit, commit)
}

func TestAReleaseReportsItsVersion(t *testing.T) {
	fullSize(t)
	if !sampled(1) {
		t.Skip("every second commit builds two snapshots instead")
	}
	t.Parallel()
	dir := clone(t, "tagged")
	output(t, dir, nil, "git", "tag", "v1.1000.0") // higher than any tag of the commit
	output(t, dir, maintainerEnv(t), ".ci/release", "--skip=publish")
	assertReleased(t, dir, "1.1000.0", "v1.1000.0")
}

// tarballs returns the hashes of the packages for npm.
func tarballs(t *testing.T, source string) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(source, "dist", "npm", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	sums := map[string]string{}
	for _, path := range paths {
		sums[filepath.Base(path)] = fmt.Sprintf("%x", sha256.Sum256(readFile(t, path)))
	}
	return sums
}

// assertReleased checks the archives and SBOMs in dist. reported is the
// expected output of a command with -version.
func assertReleased(t *testing.T, source, version, reported string) {
	t.Helper()
	dist := filepath.Join(source, "dist")
	found := map[string]string{} // the hashes
	for line := range strings.Lines(string(readFile(t, filepath.Join(dist, "checksums.txt")))) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		path := filepath.Join(dist, name)
		if strings.HasSuffix(name, ".tgz") {
			path = filepath.Join(dist, "npm", name)
		}
		assert.Equal(t, sum, fmt.Sprintf("%x", sha256.Sum256(readFile(t, path))), name)
		found[name] = sum
	}
	committed, err := time.Parse(time.RFC3339, output(t, source, nil, "git", "show", "-s", "--format=%cI", "HEAD"))
	require.NoError(t, err)
	assertManifests(t, dist, version, found)
	programs := map[string][]byte{}
	for _, system := range []string{"linux", "darwin", "windows"} {
		for _, arch := range []string{"amd64", "arm64"} {
			platform := fmt.Sprintf("_%s_%s_%s", version, system, arch)
			archive := "gateway" + platform + map[bool]string{true: ".zip", false: ".tar.gz"}[system == "windows"]
			require.NotEmpty(t, found[archive], "%s is missing in checksums.txt: %v", archive, found)
			delete(found, archive)
			files := entries(t, archive, readFile(t, filepath.Join(dist, archive)))
			assertFiles(t, archive, "gateway"+platform, files, committed)
			for _, command := range commands() {
				sbom := command + platform + ".cdx.json"
				require.NotEmpty(t, found[sbom], "%s is missing in checksums.txt: %v", sbom, found)
				delete(found, sbom)
				program := files["gateway"+platform+"/"+command+map[string]string{"windows": ".exe"}[system]].data
				notices := files["gateway"+platform+"/THIRD_PARTY_LICENSES.txt"].data
				assertSBOM(t, sbom, readFile(t, filepath.Join(dist, sbom)), program, string(notices))
				assert.Equal(t, arch, archOf(t, system, program), archive)
				programs[command+system+arch] = program
				if system == runtime.GOOS && arch == runtime.GOARCH {
					assertVersion(t, command, program, reported)
				}
			}
		}
	}
	for name := range tarballs(t, source) {
		assert.NotEmpty(t, found[name], "%s is missing in checksums.txt", name)
		delete(found, name)
	}
	assert.Empty(t, found, "checksums.txt lists other files")
	npmVersion := strings.Replace(version, "snapshot-", "0.0.0-snapshot-", 1)
	assertPackages(t, filepath.Join(dist, "npm"), npmVersion, func(goos, goarch string) []byte { return programs["mockgateway"+goos+goarch] })
}

// assertManifests checks that the manifests for package managers have the hashes of the
// archives.
func assertManifests(t *testing.T, dist, version string, sums map[string]string) {
	t.Helper()
	for manifest, systems := range map[string][]string{
		"homebrew/Casks/mockgateway.rb": {"linux", "darwin"},
		"scoop/mockgateway.json":        {"windows"},
		"winget/manifests/g/GatewayGo/Mockgateway/" + version + "/GatewayGo.Mockgateway.installer.yaml": {"windows"},
	} {
		text := string(readFile(t, filepath.Join(dist, filepath.FromSlash(manifest))))
		for name, sum := range sums {
			archive := strings.HasSuffix(name, ".zip") || strings.HasSuffix(name, ".tar.gz")
			if archive && slices.ContainsFunc(systems, func(system string) bool { return strings.Contains(name, "_"+system+"_") }) {
				assert.Contains(t, text, sum, "%s: %s", manifest, name)
			}
		}
	}
}

// assertFiles checks that an archive contains the commands and the documents,
// owned by root and with the time of the commit.
func assertFiles(t *testing.T, archive, folder string, files map[string]entry, committed time.Time) {
	t.Helper()
	suffix, owner := "", "root:root "
	if strings.HasSuffix(archive, ".zip") { // the format has no owners
		suffix, owner = ".exe", ""
	}
	expected, got := map[string]string{}, map[string]string{}
	for _, command := range commands() {
		expected[folder+"/"+command+suffix] = "-rwxr-xr-x " + owner + committed.UTC().Format(time.RFC3339)
	}
	for _, document := range documents() {
		expected[folder+"/"+document] = "-rw-r--r-- " + owner + committed.UTC().Format(time.RFC3339)
	}
	for name, file := range files {
		got[name] = file.info
		assert.NotEmpty(t, file.data, "%s in %s", name, archive)
	}
	assert.Equal(t, expected, got, archive)
}

// assertSBOM checks that an SBOM describes the program and that the notices contain
// the licenses of all its modules.
func assertSBOM(t *testing.T, name string, data, program []byte, notices string) {
	t.Helper()
	var doc document
	require.NoError(t, json.Unmarshal(data, &doc), name)
	assert.Equal(t, []hash{{"SHA-256", fmt.Sprintf("%x", sha256.Sum256(program))}}, doc.Metadata.Component.Hashes, name)
	assert.NotContains(t, doc.Metadata.Component.Version, "dirty", name)
	require.NotEmpty(t, doc.Components, name)
	for _, c := range doc.Components[:len(doc.Components)-1] {
		assert.Contains(t, notices, "\n"+c.Name+"@"+c.Version+", ", name)
	}
	assert.Contains(t, notices, "\nthe Go standard library, ")
}

func assertVersion(t *testing.T, command string, program []byte, reported string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), command)
	require.NoError(t, os.WriteFile(path, program, 0o700))
	line := output(t, ".", nil, path, "-version")
	assert.Regexp(t, `^`+command+` v\d+\.\d+\.\d+\S*( [0-9a-f]{40})? `+runtime.Version()+` `+runtime.GOOS+"/"+runtime.GOARCH+`$`, line)
	assert.Contains(t, line, reported)
	assert.NotContains(t, line, "dirty")
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return data
}

// entry is a file of an archive.
type entry struct {
	info string // mode, owner if the format has one, and time
	data []byte
}

func entries(t *testing.T, name string, data []byte) map[string]entry {
	t.Helper()
	found := map[string]entry{}
	add := func(name, owner string, info os.FileInfo, r io.Reader) {
		content, err := io.ReadAll(r)
		require.NoError(t, err)
		found[name] = entry{info.Mode().String() + " " + owner + info.ModTime().UTC().Format(time.RFC3339), content}
	}
	if strings.HasSuffix(name, ".zip") {
		r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
		require.NoError(t, err)
		for _, f := range r.File {
			content, err := f.Open()
			require.NoError(t, err)
			add(f.Name, "", f.FileInfo(), content)
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
		add(h.Name, fmt.Sprintf("%s:%s ", cmp.Or(h.Uname, fmt.Sprint(h.Uid)), cmp.Or(h.Gname, fmt.Sprint(h.Gid))), h.FileInfo(), r)
	}
}

func archOf(t *testing.T, system string, data []byte) string {
	t.Helper()
	r := bytes.NewReader(data)
	switch system {
	case "linux":
		f, err := elf.NewFile(r)
		require.NoError(t, err)
		libraries, err := f.ImportedLibraries()
		require.NoError(t, err)
		assert.Empty(t, libraries, "not static")
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
