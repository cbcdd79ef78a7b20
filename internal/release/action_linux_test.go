package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// action is action.yml: the names of its inputs, with their defaults, and of its outputs,
// and its step.
type action struct {
	inputs  map[string]string
	outputs map[string]bool
	env     map[string]string
	script  string
}

// readAction reads the parts of action.yml by their indentation.
func readAction(t *testing.T) action {
	t.Helper()
	text := string(readFile(t, filepath.Join(root, "action.yml")))
	assert.YAMLEq(t, text, text+"# the end\n", "it is not valid YAML")
	a := action{map[string]string{}, map[string]bool{}, map[string]string{}, ""}
	section, name := "", ""
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		value = strings.Trim(strings.TrimSpace(value), `"`)
		switch indent := len(line) - len(strings.TrimLeft(line, " ")); {
		case section == "run":
			a.script += strings.TrimPrefix(line, "        ")
		case strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#"):
		case indent == 0 || indent == 6:
			section = strings.TrimPrefix(key, "- ")
		case section == "inputs" && indent == 2, section == "outputs" && indent == 2:
			name = key
			a.outputs[name] = section == "outputs"
		case section == "inputs" && key == "default":
			a.inputs[name] = value
		case section == "outputs" && key == "value":
			assert.Equal(t, "${{ steps.start.outputs."+name+" }}", value)
		case section == "env" && indent == 8:
			a.env[key] = value
		}
	}
	for name := range a.inputs {
		delete(a.outputs, name)
	}
	assert.Equal(t, map[string]bool{"url": true, "key": true, "log": true}, a.outputs)
	require.NotEmpty(t, a.script)
	assert.Equal(t, 1, strings.Count(text, "shell: bash\n"))
	return a
}

// runner is a machine of GitHub Actions.
type runner struct {
	os, arch string
	ref      string // at which the action is used
	temp     string
}

// stepResult is what a step leaves.
type stepResult struct {
	err     error
	printed string
	outputs map[string]string
	path    string
}

// run runs the action's step with inputs. What it starts is killed when the test ends.
func (m runner) run(t *testing.T, a action, inputs map[string]string) stepResult {
	t.Helper()
	m.temp = t.TempDir()
	script, output, path := filepath.Join(m.temp, "script.sh"), filepath.Join(m.temp, "output"), filepath.Join(m.temp, "path")
	require.NoError(t, os.WriteFile(script, []byte(a.script), 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "--noprofile", "--norc", "-eo", "pipefail", script)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "RUNNER_OS="+m.os, "RUNNER_ARCH="+m.arch, "RUNNER_TEMP="+m.temp, "GITHUB_OUTPUT="+output, "GITHUB_PATH="+path)
	expression := regexp.MustCompile(`^\$\{\{ (\w+)\.(\w+) \}\}$`)
	for name, value := range a.env {
		found := expression.FindStringSubmatch(value)
		require.NotNil(t, found, value)
		switch found[1] + "." + found[2] {
		case "github.action_ref":
			value = m.ref
		default:
			require.Equal(t, "inputs", found[1])
			standard, declared := a.inputs[found[2]]
			require.True(t, declared, value)
			if value = inputs[found[2]]; value == "" {
				value = standard
			}
		}
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	t.Cleanup(func() {
		if cmd.Process != nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // nothing may be left
		}
	})
	cmd.WaitDelay = 10 * time.Second // a step ends when nothing holds its output any more
	printed, err := cmd.CombinedOutput()
	result := stepResult{err: err, printed: string(printed), outputs: map[string]string{}}
	if text, err := os.ReadFile(output); err == nil {
		for line := range strings.Lines(string(text)) {
			name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
			result.outputs[name] = value
		}
	}
	if text, err := os.ReadFile(path); err == nil {
		result.path = strings.TrimSuffix(string(text), "\n")
	}
	return result
}

// releases serves a release 1.2.3, whose binaries are of this machine for all platforms,
// as GitHub does. change changes its checksums.
func releases(t *testing.T, program []byte, change func(name, sum string) string) (url string) {
	t.Helper()
	files, sums := map[string][]byte{}, ""
	for _, p := range platforms {
		name := "gateway_1.2.3_" + p.goos + "_" + p.goarch
		var data bytes.Buffer
		if p.goos == "windows" {
			writer := zip.NewWriter(&data)
			writer.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestSpeed) })
			header := &zip.FileHeader{Name: name + "/mockgateway.exe", Method: zip.Deflate}
			header.SetMode(0o755)
			w, err := writer.CreateHeader(header)
			require.NoError(t, err)
			_, err = w.Write(program)
			require.NoError(t, err)
			require.NoError(t, writer.Close())
			name += ".zip"
		} else {
			compressed, err := gzip.NewWriterLevel(&data, gzip.BestSpeed)
			require.NoError(t, err)
			writer := tar.NewWriter(compressed)
			require.NoError(t, writer.WriteHeader(&tar.Header{Name: name + "/mockgateway", Mode: 0o755, Size: int64(len(program))}))
			_, err = writer.Write(program)
			require.NoError(t, err)
			require.NoError(t, writer.Close())
			require.NoError(t, compressed.Close())
			name += ".tar.gz"
		}
		files["/v1.2.3/"+name] = data.Bytes()
		sums += change(name, fmt.Sprintf("%x  %s\n", sha256.Sum256(data.Bytes()), name))
	}
	files["/v1.2.3/checksums.txt"] = []byte(sums)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, found := files[strings.TrimPrefix(r.URL.Path, "/there")]
		if !found {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if !strings.HasPrefix(r.URL.Path, "/there") { // as GitHub redirects to its storage
			http.Redirect(w, r, "/there"+r.URL.Path, http.StatusFound)
			return
		}
		_, _ = w.Write(data) // curl may go away
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func unchanged(_, sum string) string { return sum }

// mockgateway builds the binary, with the flags of go test: other ones would compile the
// standard library again, which takes a minute.
func mockgateway(t *testing.T) []byte {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "mockgateway")
	output(t, root, nil, "go", "build", "-ldflags=-s -w", "-o", binary, "./mockserver/cmd/mockgateway")
	return readFile(t, binary)
}

func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(program + " is missing")
		}
	}
}

// ask sends a request to a gateway and returns the response.
func ask(t *testing.T, url, key string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+key)
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	resp, err := client.Do(r)
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.Equal(t, http.StatusOK, resp.StatusCode, "%s", body)
	return string(body)
}

// The action starts the gateway on each platform, with the flags of the workflow.
func TestTheActionStartsTheGateway(t *testing.T) {
	t.Parallel()
	needs(t, "bash", "curl", "tar", "unzip", "awk")
	a, program := readAction(t), mockgateway(t)
	url := releases(t, program, unchanged)
	start := func(m runner, inputs map[string]string) (got stepResult, health string) {
		t.Helper()
		inputs["releases"] = url
		got = m.run(t, a, inputs)
		require.NoError(t, got.err, got.printed)
		require.NotEmpty(t, got.outputs["key"])
		health = ask(t, got.outputs["url"]+"/__mock/health", "")
		assert.Contains(t, got.printed, `"status":"ok"`, "the step waits for it")
		ask(t, got.outputs["url"]+"/v2/transactions", got.outputs["key"])
		logged := func() bool { return strings.Contains(string(readFile(t, got.outputs["log"])), "/v2/transactions") }
		require.Eventually(t, logged, 20*time.Second, time.Millisecond, "the log is written after the step")
		return got, health
	}
	for os, name := range map[string]string{"Linux": "mockgateway", "macOS": "mockgateway", "Windows": "mockgateway.exe"} {
		for _, arch := range []string{"X64", "ARM64"} {
			got, _ := start(runner{os: os, arch: arch, ref: "v1.2.3"}, map[string]string{})
			assert.Equal(t, "sk_test_mock", got.outputs["key"])
			assert.True(t, strings.HasPrefix(got.outputs["url"], "http://127.0.0.1:"))
			assert.Equal(t, program, readFile(t, filepath.Join(got.path, name)), "for later steps")
		}
	}

	linux := runner{os: "Linux", arch: "X64", ref: "v9.9.9"}
	_, health := start(linux, map[string]string{"version": "1.2.3", "args": "-dialect live\n  -clock manual -start 2030-01-01T00:00:00Z\n"})
	assert.Contains(t, health, `"dialect":"live","now":"2030-01-01T00:00:00.000Z"`)
	got, _ := start(linux, map[string]string{"version": "v1.2.3", "args": "-environment production -log json"})
	assert.Equal(t, "sk_live_mock", got.outputs["key"])
	got, _ = start(linux, map[string]string{"version": "1.2.3", "args": "-tls-self-signed cert.pem"})
	assert.True(t, strings.HasPrefix(got.outputs["url"], "https://"))
}

// Nothing is started if the release is not the one that its checksums describe.
func TestTheActionFailsWithAReason(t *testing.T) {
	t.Parallel()
	needs(t, "bash", "curl", "tar", "awk")
	a := readAction(t)
	stub := []byte("#!/bin/sh\necho started; echo it fails on purpose >&2; exit 3\n")
	good := releases(t, stub, unchanged)
	wrong := releases(t, stub, func(_, sum string) string {
		return map[bool]string{true: "1", false: "0"}[sum[0] == '0'] + sum[1:]
	})
	unlisted := releases(t, stub, func(name, sum string) string {
		if strings.Contains(name, "linux_amd64") {
			return strings.Replace(sum, "linux_amd64", "other", 1)
		}
		return sum
	})
	const platforms = "only for Linux, macOS and Windows on X64 and ARM64"
	for _, c := range []struct {
		want                             string
		os, arch, ref, version, releases string
	}{
		{want: "there is no binary for Linux on ARM, " + platforms, os: "Linux", arch: "ARM", ref: "v1.2.3"},
		{want: "there is no binary for Windows on X86, " + platforms, os: "Windows", arch: "X86", ref: "v1.2.3"},
		{want: "there is no binary for FreeBSD on X64, " + platforms, os: "FreeBSD", arch: "X64", ref: "v1.2.3"},
		{want: `"main" is not a release: set version`, ref: "main"},
		{want: `"8f2c1e0d" is not a release: set version`, ref: "8f2c1e0d"},
		{want: `"1.2.3/../x" is not a release: set version`, ref: "v1.2.3", version: "1.2.3/../x"},
		{want: "can't download " + good + "/v1.2.4/checksums.txt", ref: "v1.2.3", version: "1.2.4"},
		{want: "gateway_1.2.3_linux_amd64.tar.gz has the SHA-256 checksum ", ref: "refs/tags/v1.2.3", releases: wrong},
		{want: ", and checksums.txt of the release has none", ref: "v1.2.3", releases: unlisted},
		{want: "the gateway has exited", ref: "v1.2.3"},
	} {
		m := runner{os: "Linux", arch: "X64", ref: c.ref}
		if c.os != "" {
			m.os, m.arch = c.os, c.arch
		}
		if c.releases == "" {
			c.releases = good
		}
		got := m.run(t, a, map[string]string{"version": c.version, "releases": c.releases})
		var exit *exec.ExitError
		require.ErrorAs(t, got.err, &exit, got.printed)
		assert.Equal(t, 1, exit.ExitCode())
		assert.Regexp(t, "(?m)^::error::mockgateway: .*"+regexp.QuoteMeta(c.want), got.printed)
		assert.Equal(t, c.want == "the gateway has exited", strings.Contains(got.printed, "it fails on purpose"), got.printed)
		assert.Empty(t, got.outputs)
		assert.Empty(t, got.path)
	}
}

// The guide uses inputs and outputs that exist.
func TestTheGuideOfTheAction(t *testing.T) {
	t.Parallel()
	a := readAction(t)
	_, section, found := strings.Cut(string(readFile(t, filepath.Join(root, "docs", "testing.md"))), "\n## In GitHub Actions\n")
	require.True(t, found)
	used := regexp.MustCompile(`steps\.mock\.outputs\.(\w+)`).FindAllStringSubmatch(section, -1)
	assert.Len(t, used, len(a.outputs))
	for _, name := range used {
		assert.True(t, a.outputs[name[1]], name[0])
	}
	with := regexp.MustCompile(`with: \{(\w+): `).FindAllStringSubmatch(section, -1)
	assert.NotEmpty(t, with)
	for _, name := range with {
		assert.Contains(t, a.inputs, name[1])
	}
}
