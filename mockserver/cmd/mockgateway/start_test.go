package main

import (
	"context"
	"flag"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The command in the banner works as printed, with all flags, and the console finds its
// order.
func TestTheBannersCommandWorksInEachMode(t *testing.T) {
	t.Parallel()
	needs(t, "bash", "curl")
	modes := [][]string{
		nil,
		{"-environment", "production"},
		{"-dialect", "live"},
		{"-dialect", "live", "-environment", "production", "-lenient"},
		{"-addr", ":0"},
		{"-addr", "0.0.0.0:0"},
		{"-addr", "localhost:0"},
		{"-allow-host", "gateway.test"},
		{"-clock", "manual", "-start", "2030-01-01T00:00:00Z", "-seed", "1"},
		{"-auto-pay", "1d", "-memory", "1", "-fee", "100", "-opening-balance", "-1", "-log", "off"},
		{"-data", filepath.Join(t.TempDir(), "data")},
	}
	if l, err := net.Listen("tcp", "[::1]:0"); err == nil {
		require.NoError(t, l.Close())
		modes = append(modes, []string{"-addr", "[::1]:0"})
	}
	for _, args := range modes {
		g := start(t, args...)
		command, text := bannersCommand(t, g)
		try := func() string {
			out, err := exec.CommandContext(t.Context(), "bash", "-c", command).CombinedOutput()
			require.NoError(t, err, "%v: %s", args, out)
			return string(out)
		}
		out := try()
		assert.Contains(t, out, `{"success":true,`, args)
		assert.Contains(t, out, `"status":"pending"`, args)
		assert.Contains(t, try(), "DUPLICATE_EXTERNAL_REF", args)
		assertFound(t, text, g.base, args)
		assert.Contains(t, g.printed(), g.base+"/__mock", "the port file has the same address")
		g.kill()
	}
}

// bannersCommand returns the command in the banner, and the text after it.
func bannersCommand(t *testing.T, g *process) (command, text string) {
	t.Helper()
	const end = "}}'\n"
	_, command, _ = strings.Cut(g.printed(), "Try it:\n")
	command, text, found := strings.Cut(command, end)
	require.True(t, found)
	assert.Contains(t, text, "\nPress Ctrl-C")
	return command + end, text
}

// assertFound checks that the address in a text is that of the order's page in the console.
func assertFound(t *testing.T, text, base string, args []string) {
	t.Helper()
	address := regexp.MustCompile(`http://\S+`).FindString(text)
	require.True(t, strings.HasPrefix(address, base), "%v: %s", args, text)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	require.NoError(t, err)
	r.Header.Set("Accept", "text/html")
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	page, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.Contains(t, resp.Request.URL.Path, "/transactions/", args)
	assert.Contains(t, string(page), firstOrder, args)
}

func TestThePortFileExistsWhileTheGatewayIsReady(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "gateway.addr")
	g := start(t, "-data", filepath.Join(dir, "data"))
	addr := strings.TrimPrefix(g.base, "http://")
	port := g.cmd.Args[4]
	content, err := os.ReadFile(port)
	require.NoError(t, err)
	assert.Equal(t, addr+"\n", string(content))
	require.NoError(t, g.cmd.Process.Signal(syscall.SIGTERM))
	<-g.done
	assert.NoFileExists(t, port, "it ended")

	_, err = tryStart(t, "-port-file", port, "-data", dir)
	require.Error(t, err)
	assert.NoFileExists(t, port, "it was never ready")

	require.NoError(t, os.WriteFile(file, []byte("127.0.0.1:1\n"), 0o600)) // of a gateway that was killed
	_, err = tryStart(t, "-port-file", file, "-data", dir)
	require.Error(t, err)
	assert.NoFileExists(t, file, "a stale address is removed first")

	for name, content := range map[string]string{"note": "# my notes\n", "numbers": "1 2 3"} {
		mine := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(mine, []byte(content), 0o600))
		_, err = tryStart(t, "-port-file", mine)
		require.ErrorContains(t, err, "does not contain host:port")
		after, err := os.ReadFile(mine)
		require.NoError(t, err)
		assert.Equal(t, content, string(after))
	}
	for _, path := range []string{os.DevNull, dir} {
		_, err = tryStart(t, "-port-file", path)
		require.ErrorContains(t, err, "not a regular file")
	}
	_, err = tryStart(t, "-data", os.DevNull)
	require.ErrorContains(t, err, "not a regular file")
}

// A page whose host name resolves to this machine (DNS rebinding) reaches only
// the health check; an allowed name reaches everything.
func TestAForeignHostNameReachesNothing(t *testing.T) {
	t.Parallel()
	g := start(t, "-allow-host", "gateway.test, other.test")
	ask := func(host, path string) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.base+path, nil)
		require.NoError(t, err)
		req.Host = host
		req.Header.Set("Authorization", "Bearer sk_test_mock")
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode
	}
	for path, want := range map[string]int{
		"/v2/transactions": 421, "/v2/checkout/x": 421, "/v1/x": 421, "/": 421, "/__mock/clock": 421, "/__mock/health": 200,
	} {
		for _, host := range []string{"evil.test", "evil.test:4010", "localhost.evil.test"} {
			assert.Equal(t, want, ask(host, path), "%s %s", host, path)
		}
		for _, host := range []string{"gateway.test:4010", "other.test", "localhost", "127.0.0.1", "[::1]:1", "10.1.2.3"} {
			assert.NotEqual(t, 421, ask(host, path), "%s %s", host, path)
		}
	}
}

func TestFlagsFromTheEnvironment(t *testing.T) {
	t.Parallel()
	g, err := tryStartIn(t, []string{
		"MOCKGATEWAY_ADDR=nowhere:1:2", "MOCKGATEWAY_ENVIRONMENT=production", "MOCKGATEWAY_LENIENT=true", "MOCKGATEWAY_AUTO_PAY=40d",
		"MOCKGATEWAY_CLOCK=manual", "MOCKGATEWAY_START=", "MOCKGATEWAY_LOG=json", "MOCKGATEWAY_SEEDS=1", "MOCKGATEWAY_VERSION=7",
	}, "-log", "off")
	require.NoError(t, err, "the flag -addr wins, and an empty variable is ignored")
	assert.Contains(t, g.printed(), "sk_live_mock")
	g.kill()
	assert.Equal(t, "mockgateway: warning: MOCKGATEWAY_SEEDS is not a setting; mockgateway -h lists them\n"+
		"mockgateway: warning: MOCKGATEWAY_VERSION is not a setting; mockgateway -h lists them\n", g.errs.String())

	for want, variable := range map[string]string{
		`MOCKGATEWAY_SPEED: invalid value "fast"`: "MOCKGATEWAY_SPEED=fast",
		"MOCKGATEWAY_SPEED must be above 0":       "MOCKGATEWAY_SPEED=0",
		"MOCKGATEWAY_CLOCK must be":               "MOCKGATEWAY_CLOCK=x",
		"MOCKGATEWAY_WEBHOOK_SECRET needs":        "MOCKGATEWAY_WEBHOOK_SECRET=x",
		"MOCKGATEWAY_AUTO_PAY: invalid value":     "MOCKGATEWAY_AUTO_PAY=soon",
		"MOCKGATEWAY_LENIENT must be true":        "MOCKGATEWAY_LENIENT=yes",
	} {
		_, err := tryStartIn(t, []string{variable})
		require.ErrorContains(t, err, want)
	}
}

// A misspelt variable in a file that users copy would only cause a warning.
func TestVariablesInTheGuidesAndTheImageAreSettings(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	(&flags{from: map[string]string{}}).set().VisitAll(func(f *flag.Flag) { known[variable(f.Name)] = !isCommand(f.Name) })
	for _, file := range []string{"Dockerfile", "compose.yaml", "docs/mockgateway.md", "docs/testing.md"} {
		text, err := os.ReadFile(filepath.Join("../../..", file))
		require.NoError(t, err)
		found := regexp.MustCompile(`MOCKGATEWAY_[A-Z_]+`).FindAllString(string(text), -1)
		if file != "docs/testing.md" {
			assert.NotEmpty(t, found, file)
		}
		for _, name := range found {
			assert.True(t, known[name], "%s: %s", file, name)
		}
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(context.Background(), os.Args[0], "-version")
	cmd.Env = append(os.Environ(), asMain, "MOCKGATEWAY_CLOCK=x")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err)
	assert.Regexp(t, `^mockgateway \S+.* go1\.\S+ \w+/\w+\n$`, string(out))
}

// askHealth runs the image's health check against addr.
func askHealth(t *testing.T, addr string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-health")
	cmd.Env = append(os.Environ(), asMain, "MOCKGATEWAY_ADDR="+addr, "MOCKGATEWAY_UNKNOWN=1", "HTTP_PROXY=http://127.0.0.1:1")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestHealthReportsWhetherTheGatewayIsReady(t *testing.T) {
	t.Parallel()
	g := start(t, "-addr", ":0")
	_, port, err := net.SplitHostPort(strings.TrimPrefix(g.base, "http://"))
	require.NoError(t, err)
	for _, addr := range []string{":" + port, "0.0.0.0:" + port, "[::]:" + port, "127.0.0.1:" + port, "localhost:" + port} {
		out, err := askHealth(t, addr)
		require.NoError(t, err, "%s: %s", addr, out)
		assert.Regexp(t, `^\{"data":\{.*"status":"ok".*\}\n?$`, out, addr)
	}
	g.kill()
	out, err := askHealth(t, ":"+port)
	require.Error(t, err)
	assert.Contains(t, out, "connection refused")
}

func TestHealthRejectsAnythingButAMockGateway(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("welcome")) }))
	t.Cleanup(other.Close)
	out, err := askHealth(t, strings.TrimPrefix(other.URL, "http://"))
	require.Error(t, err)
	assert.Contains(t, out, "is not a mock gateway")
	for addr, want := range map[string]string{"127.0.0.1:0": "port 0", "nowhere": "missing port"} {
		out, err := askHealth(t, addr)
		require.Error(t, err)
		assert.Contains(t, out, want)
	}
}

// A client that sends a long body completely before it reads still gets the
// response.
func TestTheSenderOfALongBodyReadsTheResponse(t *testing.T) {
	t.Parallel()
	g := start(t)
	for _, path := range []string{"/v2/transactions", "/__mock/faults"} {
		var d net.Dialer
		conn, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(g.base, "http://"))
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		const size = 4 << 20
		_, err = conn.Write([]byte("POST " + path + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer sk_test_mock\r\n" +
			"Content-Type: application/json\r\nContent-Length: " + strconv.Itoa(size) + "\r\n\r\n" + strings.Repeat("x", size)))
		require.NoError(t, err)
		response := make([]byte, 20)
		_, err = conn.Read(response)
		require.NoError(t, err)
		assert.Equal(t, "HTTP/1.1 413 Request", string(response))
	}
}
