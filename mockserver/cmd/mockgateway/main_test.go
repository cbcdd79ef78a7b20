package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/testmain"
	"github.com/gateway-go/gateway/internal/version"
)

// TestMain lets the test binary run as the gateway, so that it can be killed.
func TestMain(m *testing.M) {
	if kind := os.Getenv(programVariable); kind != "" {
		os.Exit(program(kind))
	}
	if os.Getenv("RUN_AS_MOCKGATEWAY") == "1" {
		main()
		return
	}
	if signal.Ignored(syscall.SIGHUP) { // the tests run under nohup; a process that they start must not
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	testmain.Waiting()
	os.Exit(m.Run())
}

const asMain = "RUN_AS_MOCKGATEWAY=1"

// process is a gateway that runs as a separate process.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	base string

	portFile string
	done     chan struct{} // closed when it has ended

	out  *os.File         // standard output
	errs *strings.Builder // complete when it has ended
}

// printed returns the standard output.
func (g *process) printed() string {
	text, err := os.ReadFile(g.out.Name())
	require.NoError(g.t, err)
	return string(text)
}

func start(t *testing.T, args ...string) *process {
	t.Helper()
	g, err := tryStart(t, args...)
	require.NoError(t, err)
	return g
}

// tryStart starts a gateway and waits until it is ready or has ended.
func tryStart(t *testing.T, args ...string) (*process, error) {
	t.Helper()
	return tryStartIn(t, nil, args...)
}

// tryStartIn is tryStart with more variables in the environment.
func tryStartIn(t *testing.T, env []string, args ...string) (*process, error) {
	t.Helper()
	dir := t.TempDir()
	port := filepath.Join(dir, "port")
	out, err := os.Create(filepath.Join(dir, "out"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = out.Close() })
	g := &process{t: t, portFile: port, done: make(chan struct{}), out: out, errs: &strings.Builder{}}
	// A busy machine must not cut off what a test waits for.
	g.cmd = exec.Command(os.Args[0], append([]string{"-addr", "127.0.0.1:0", "-port-file", port, "-drain", "1h"}, args...)...)
	g.cmd.Env = append(append(os.Environ(), asMain), env...)
	g.cmd.Stdout, g.cmd.Stderr = g.out, g.errs
	require.NoError(t, g.cmd.Start())
	go func() {
		defer close(g.done)
		_ = g.cmd.Wait()
	}()
	t.Cleanup(g.kill)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-g.done:
			return g, errors.New(g.errs.String())
		case <-tick.C:
			if addr, err := os.ReadFile(port); err == nil {
				g.base = "http://" + strings.TrimSpace(string(addr))
				return g, nil
			}
		}
	}
}

// kill ends the process without warning, and waits until it is gone.
func (g *process) kill() {
	_ = g.cmd.Process.Kill()
	<-g.done
}

// call makes one request and returns the status and the decoded body.
func (g *process) call(method, path, body string) (int, map[string]any, error) {
	req, err := http.NewRequestWithContext(context.Background(), method, g.base+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer sk_test_mock")
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, nil, err
	}
	var v map[string]any
	err = json.Unmarshal(text, &v)
	return resp.StatusCode, v, err
}

func TestInvalidFlags(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"-environment must be sandbox or production": {"-environment", "staging"},
		"-dialect must be":                           {"-dialect", "x"},
		"-clock must be":                             {"-clock", "x"},
		"-log must be":                               {"-log", "x"},
		"-speed must be":                             {"-speed", "0"},
		"-start must be a time":                      {"-start", "tomorrow"},
		"-speed must be above":                       {"-speed", "NaN"},
		"-speed has no effect with -clock=manual":    {"-speed", "60", "-clock", "manual"},
		"-memory must be":                            {"-memory", "9007199254740993"},
		"40d":                                        {"-auto-pay", "soon"},
		"-allow-host must be":                        {"-allow-host", "gateway.test:4010"},
		"must be two files":                          {"-data", "x", "-port-file", "./x"},
		"-seed must be":                              {"-seed", "-1"},
		"-webhook must be":                           {"-webhook", "shop"},
		"-webhook-secret needs":                      {"-webhook-secret", "x"},
		"-webhook-secret: the secret can't sign":     {"-webhook", "http://127.0.0.1:9/", "-webhook-secret", "whsec_1"},
		"-auto-pay must not":                         {"-auto-pay", "-1s"},
		"-cors: an origin is":                        {"-cors", "localhost"},
		"-drain must not":                            {"-drain", "-1s"},
		"-webhook-timeout must not":                  {"-webhook-timeout", "-1s"},
		"-webhook-pause-after must not":              {"-webhook-pause-after", "-1"},
		"-webhook-retries must be durations":         {"-webhook-retries", "5s,soon"},
		"-webhook-retries: 5s is not after":          {"-webhook-retries", "5s,5s"},
		"-addr must be host:port":                    {"-addr", "4010"},
		"65536 is not a port":                        {"-addr", "127.0.0.1:65536"},
		"-public-url: url must":                      {"-public-url", "gateway.test"},
		"-webhook must be an http":                   {"-webhook", "http://shop.test:0/"},
		"-fee: it must be a whole number":            {"-fee", "1.5"},
		"-settled-percent must be":                   {"-settled-percent", "100", "-dialect", "live"},
		"-settled-percent needs -dialect=live":       {"-settled-percent", "19.27"},
		"-signature-header: the header name":         {"-signature-header", "x y"},
		"-port-file: ":                               {"-port-file", "missing/port"},
		"as in -console=false":                       {"-console", "false"},
		"unexpected argument":                        {"start"},
		"flag provided but not defined":              {"-nonsense"},
		"Run mockgateway -h for help":                {"-nonsense"},
	} {
		g, err := tryStart(t, args...)
		require.ErrorContains(t, err, want)
		if strings.HasPrefix(want, "-") && want != "-port-file: " {
			assert.Equal(t, 2, g.cmd.ProcessState.ExitCode(), want)
		}
	}
}

func TestHelpExplainsEachFlag(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0], "-h")
	cmd.Env = append(os.Environ(), asMain)
	out, err := cmd.Output()
	require.NoError(t, err)
	guide, err := os.ReadFile("../../../docs/mockgateway.md")
	require.NoError(t, err)
	for _, flag := range []string{
		"addr", "port-file", "environment", "dialect", "lenient", "clock", "speed", "start", "seed", "webhook",
		"webhook-secret", "webhook-timeout", "webhook-retries", "webhook-pause-after", "webhook-insecure", "cors", "tls-cert", "tls-self-signed", "drain", "auto-pay", "basic-token-x", "opening-balance", "fee", "settled-percent", "memory", "allow-host", "data", "log",
		"timestamp-header", "signature-header",
	} {
		assert.Contains(t, string(out), "  -"+flag)
		assert.Contains(t, string(out), "(MOCKGATEWAY_"+strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))+")")
		assert.Contains(t, string(guide), "`-"+flag+"`")
	}
}

func TestItPrintsWhatANewUserNeeds(t *testing.T) {
	t.Parallel()
	g := start(t)
	g.kill()
	assert.Contains(t, g.printed(), g.base)
	assert.Contains(t, g.printed(), "sk_test_mock")
	assert.Contains(t, g.printed(), "curl")
	assert.Contains(t, g.printed(), "\n  dialect        document   (live gateways reject more: test with -dialect live too)\n")
	assert.NotContains(t, g.printed(), "clock/advance", "the clock runs by itself")

	g = start(t, "-clock", "manual", "-start", "2030-01-01T00:00:00Z", "-dialect", "live", "-console=false")
	g.kill()
	assert.Contains(t, g.printed(), "\n  dialect        live\n")
	assert.NotContains(t, g.printed(), "console", "it is off")
	assert.Contains(t, g.printed(), "2030-01-01T00:00:00Z; it only moves by   curl "+g.base+"/__mock/clock/advance -d '{\"by\":\"1d\"}'")
}

// A request whose handler runs when SIGTERM arrives gets its response. net/http closes a
// connection whose request it has not read yet, so the test waits for the 100 Continue,
// which is sent when the handler reads the body.
func TestSIGTERMDrains(t *testing.T) {
	t.Parallel()
	g := start(t, "-log", "json")
	body, rest := io.Pipe()
	handling := make(chan struct{})
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got100Continue: func() { close(handling) }})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.base+"/v2/transactions", body)
	require.NoError(t, err)
	req.Header.Set("Apikey", "sk_test_mock")
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Expect", "100-continue")
	status := make(chan int, 1)
	go func() {
		patient := &http.Client{Transport: &http.Transport{ExpectContinueTimeout: time.Hour}}
		resp, err := patient.Do(req)
		if !assert.NoError(t, err) {
			status <- 0
			return
		}
		_ = resp.Body.Close()
		status <- resp.StatusCode
	}()
	<-handling
	require.NoError(t, g.cmd.Process.Signal(syscall.SIGTERM))
	for { // until the gateway shuts down
		if _, err := os.Stat(g.portFile); errors.Is(err, os.ErrNotExist) {
			break
		}
		runtime.Gosched()
	}
	_, err = io.WriteString(rest, pix("order-1"))
	require.NoError(t, err)
	require.NoError(t, rest.Close())
	assert.Equal(t, http.StatusCreated, <-status)
	<-g.done
	assert.Zero(t, g.cmd.ProcessState.ExitCode())
	assert.Contains(t, g.errs.String(), `"status":201`)
}

func TestTheFlagsReachTheGateway(t *testing.T) {
	t.Parallel()
	got := make(chan http.Header, 100)
	hook := newServer(t, func(_ http.ResponseWriter, r *http.Request) { got <- r.Header })
	g := start(t, "-environment", "production", "-dialect", "live", "-clock", "manual", "-start", "2030-01-01T00:00:00Z",
		"-seed", "7", "-webhook", hook, "-webhook-secret", "whsec_flag", "-auto-pay", "5s", "-lenient", "-log", "off",
		"-basic-token-x", "sk_live_x", "-allow-host", "gateway.test", "-opening-balance", "100", "-fee", "1", "-settled-percent", "19.27", "-memory", "10",
		"-timestamp-header", "X-Acme-Timestamp", "-signature-header", "X-Acme-Signature")
	status, v, err := g.call(http.MethodGet, "/__mock/health", "")
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, status)
	assert.Equal(t, map[string]any{"data": map[string]any{
		"status": "ok", "environment": "production", "dialect": "live", "now": "2030-01-01T00:00:00.000Z", "version": version.Module(),
	}}, v)
	status, _, err = g.call(http.MethodGet, "/v2/transactions", "")
	require.NoError(t, err)
	assert.Equal(t, http.StatusUnauthorized, status, "a key of the other environment")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.base+"/v2/transactions", strings.NewReader(`{"amount":1000,"method":"pix"}`))
	require.NoError(t, err)
	req.SetBasicAuth("token", "x")
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.Equal(t, http.StatusCreated, resp.StatusCode, "-lenient and -basic-token-x")
	signed := <-got
	assert.NotEmpty(t, signed.Get("X-Acme-Timestamp"))
	assert.NotEmpty(t, signed.Get("X-Acme-Signature"))
	g.kill()
	assert.Contains(t, g.printed(), "sk_live_mock")
	assert.Empty(t, g.errs.String())
}
