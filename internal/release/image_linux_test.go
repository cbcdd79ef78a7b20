package main

import (
	"bufio"
	"debug/elf"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// maxImage is the maximum size of the image's binary, to notice what grows it. The exam
// is 1.5 MB of it: its own code, and the client, os/exec and encoding/xml, which the mock
// gateway alone does not need.
const maxImage = 17 << 20

// instructions returns the arguments of the instructions in the Dockerfile's last
// stage, and the command that builds the binary.
func instructions(t *testing.T, dir string) (last map[string]string, build string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "Dockerfile"))
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case name == "FROM":
			last = map[string]string{}
		case name == "RUN" && strings.Contains(rest, "go build"):
			build = rest
		}
		if name != "" && name != "#" {
			last[name] = rest
		}
	}
	return last, build
}

// inImage returns a command that runs as in the image: with its environment and, if
// this process is root, its root file system and user.
func inImage(t *testing.T, root, env string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Env = []string{env}
	if os.Geteuid() != 0 { // can't chroot, so the command runs in an empty folder
		cmd.Path, cmd.Dir = filepath.Join(root, args[0]), t.TempDir()
		return cmd
	}
	cmd.Path, cmd.Dir, cmd.Err = args[0], "/", nil
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
	return cmd
}

func TestTheImageRunsFromAnEmptyDirectory(t *testing.T) {
	fullSize(t)
	t.Parallel()
	source := clone(t, "src")
	image, build := instructions(t, source)
	assert.Equal(t, "scratch", image["FROM"])
	assert.Equal(t, "65532:65532", image["USER"], "not root, and numeric because there is no passwd file")
	assert.Equal(t, "MOCKGATEWAY_ADDR=:"+image["EXPOSE"], image["ENV"])

	root := t.TempDir()
	compiler := exec.CommandContext(t.Context(), "sh", "-c", strings.Replace(build, " -o /", " -o "+root+"/", 1))
	compiler.Dir = source
	compiler.Env = append(os.Environ(), "TARGETOS=linux", "TARGETARCH="+runtime.GOARCH)
	out, err := compiler.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, os.Chmod(root, 0o755))
	binary, err := os.Stat(filepath.Join(root, "mockgateway"))
	require.NoError(t, err)
	assert.Less(t, binary.Size(), int64(maxImage))
	t.Logf("the image's binary has %d bytes", binary.Size())
	program, err := elf.Open(filepath.Join(root, "mockgateway"))
	require.NoError(t, err)
	libraries, err := program.ImportedLibraries()
	require.NoError(t, err)
	assert.Empty(t, libraries, "not static")
	require.NoError(t, program.Close())

	// The gateway listens on a free port, because the image's port may be in use.
	var entrypoint, health []string
	require.NoError(t, json.Unmarshal([]byte(image["ENTRYPOINT"]), &entrypoint))
	_, check, _ := strings.Cut(image["HEALTHCHECK"], " CMD ")
	require.NoError(t, json.Unmarshal([]byte(check), &health))
	gateway := inImage(t, root, "MOCKGATEWAY_ADDR=:0", entrypoint...)
	printed, err := gateway.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, gateway.Start())
	t.Cleanup(func() {
		_ = gateway.Process.Kill()
		_ = gateway.Wait()
	})
	address := regexp.MustCompile(`http://[^\s/:]+:(\d+)`)
	lines, port := bufio.NewScanner(printed), ""
	for port == "" && lines.Scan() {
		if found := address.FindStringSubmatch(lines.Text()); found != nil {
			port = found[1]
		}
	}
	require.NotEmpty(t, port, "the banner does not name the port")
	healthy, err := inImage(t, root, "MOCKGATEWAY_ADDR=:"+port, health...).CombinedOutput()
	require.NoError(t, err, "%s", healthy)
	assert.Contains(t, string(healthy), `"status":"ok"`)

	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:"+port+"/v2/transactions", nil)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer sk_test_mock")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.Equal(t, http.StatusOK, resp.StatusCode)

	require.NoError(t, gateway.Process.Signal(syscall.SIGTERM))
	for lines.Scan() { // until the process ends
		continue
	}
	require.NoError(t, gateway.Wait())
	unhealthy, err := inImage(t, root, "MOCKGATEWAY_ADDR=:"+port, health...).CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(unhealthy), "connection refused")
}
