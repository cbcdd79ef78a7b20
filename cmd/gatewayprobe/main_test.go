package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/gatewayprobe"
	"github.com/gateway-go/gateway/mockserver"
)

// command runs the command with an API key of the mock.
func command(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), args, func(name string) string {
		return map[string]string{keyVariable: "sk_test_mock"}[name]
	}, &o, &e)
	assert.NotContains(t, o.String()+e.String(), "sk_test_mock")
	return code, o.String(), e.String()
}

// startMock starts a mock gateway and returns its URL.
func startMock(t *testing.T, opts ...mockserver.Option) string {
	t.Helper()
	url, err := mockserver.Run(t, opts...).Listen("127.0.0.1:0")
	require.NoError(t, err)
	return url
}

func TestTheCommandPrintsALinePerRowAndWritesTheReport(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "report.json")
	code, out, errs := command(t, "-base-url", startMock(t, mockserver.WithDialect(mockserver.Live)), "-rate", "1000",
		"-only", "validation-status,amount-minimum,client-texts,event-id", "-json", file)
	require.Zero(t, code, errs)
	assert.Contains(t, out, "differs\tvalidation-status\tlive (expected: document)\tAn invalid v2 write gets 400, ")
	assert.Contains(t, out, "agrees\tamount-minimum\tassumed\n")
	assert.Contains(t, out, "can't tell\tevent-id\tit needs a receiver of webhooks: set -webhook-url and -listen\tEvery delivery of an event has ")
	assert.Contains(t, out, "1 agree, 1 differ, 1 inconclusive, 1 can't be tested from outside")

	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var report gatewayprobe.Report
	require.NoError(t, json.Unmarshal(text, &report))
	require.Len(t, report.Results, 4)
	assert.Equal(t, "live", report.Results[0].Reading)
	info, err := os.Stat(file)
	require.NoError(t, err)
	assert.Zero(t, info.Mode()&0o077, "others can read the report")
}

func TestAProfileShowsWhatChanged(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "report.json")
	live := startMock(t, mockserver.WithDialect(mockserver.Live))
	code, _, errs := command(t, "-base-url", live, "-rate", "1000", "-only", "validation-status,malformed-id", "-json", file)
	require.Zero(t, code, errs)

	code, out, errs := command(t, "-base-url", live, "-rate", "1000", "-only", "validation-status,malformed-id", "-profile", file)
	require.Zero(t, code, errs)
	assert.Contains(t, out, "2 agree, 0 differ")

	code, out, errs = command(t, "-base-url", startMock(t), "-rate", "1000", "-only", "validation-status,malformed-id", "-profile", file)
	assert.Equal(t, different, code, errs)
	assert.Contains(t, out, "differs\tvalidation-status\tdocument (expected: live)\t")

	code, out, errs = command(t, "-base-url", live, "-rate", "1000", "-only", "validation-status,malformed-id", "-profile", "live")
	require.Zero(t, code, errs)
	assert.Contains(t, out, "2 agree, 0 differ")
}

func TestWebhooksReachTheCommandsReceiver(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	url, err := gw.Listen("127.0.0.1:0")
	require.NoError(t, err)
	code, out, errs := command(t, "-base-url", url, "-only", "api-version", "-listen", "127.0.0.1:0",
		"-webhook-url", "https://hooks.example", "-webhook-wait", "1ms")
	require.Zero(t, code, errs)
	assert.Contains(t, out, "can't tell\tapi-version\tno webhook arrived within 1ms\t", "nothing forwards to the receiver in this test")
}

func TestATerminalShowsATableAndTheProgress(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := screen{out: &out, terminal: true, steps: gatewayprobe.Steps("validation-status", "transfer-minimum", "client-texts")}
	s.result(gatewayprobe.Result{ID: "validation-status", Verdict: gatewayprobe.Differs, Reading: "live", Expected: "document", Claim: "It gets 400."})
	s.result(gatewayprobe.Result{ID: "transfer-minimum", Verdict: gatewayprobe.Agrees, Reading: "document", Claim: "It is 1 cent."})
	s.result(gatewayprobe.Result{ID: "client-texts", Verdict: gatewayprobe.CannotTell, Why: "it is about the client"})
	s.summary(&gatewayprobe.Report{})
	plain := regexp.MustCompile(`\x1b\[\d*m`).ReplaceAllString(out.String(), "")
	lines := strings.Split(strings.ReplaceAll(plain, clearLine, "\r"), "\n")
	assert.Equal(t, "\rdiffers     validation-status        live (expected: document)", lines[0])
	assert.Equal(t, strings.Repeat(" ", 38)+"It gets 400.", lines[1])
	assert.Equal(t, "\r1 of 3 rows\ragrees      transfer-minimum         document", lines[2])
	assert.Contains(t, lines[3], "1 can't be tested from outside")
	assert.NotContains(t, plain, "It is 1 cent.")
}

func TestListSendsNothing(t *testing.T) {
	t.Parallel()
	code, out, errs := command(t, "-list")
	require.Zero(t, code, errs)
	assert.Regexp(t, `(?m)^validation-status +creates a transaction with an amount of 0 \(set by mockgateway -profile\)$`, out)
	assert.Regexp(t, `(?m)^client-texts +not tested: it is about this project's client`, out)
	assert.Regexp(t, `\d+ of \d+ rows of docs/assumptions.md are tested.\n$`, out)
}

func TestHelpListsTheFlagsAndNoneForTheKey(t *testing.T) {
	t.Parallel()
	code, out, _ := command(t, "-h")
	require.Zero(t, code)
	for _, want := range []string{"-base-url", "-i-know-this-is-a-sandbox", "GATEWAY_API_KEY", "-webhook-url"} {
		assert.Contains(t, out, want)
	}
	assert.NotContains(t, out, "-key")
}

func TestWrongFlagsAreRejected(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"":                                 "-base-url is missing",
		"-base-url http://localhost extra": `unexpected argument "extra"`,
		"-base-url http://localhost -only no-such-row":                  `-only: docs/assumptions.md has no row "no-such-row"`,
		"-base-url http://localhost -rate 0":                            "must be above 0",
		"-base-url http://localhost -listen :0":                         "-webhook-url and -listen must be set together",
		"-base-url http://localhost -listen :0 -webhook-url probe":      "-webhook-url must be",
		"-base-url http://localhost -card-token visa=1":                 "must be ok=",
		"-base-url http://localhost -profile testdata/there-is-no-file": "-profile: open",
	} {
		code, _, errs := command(t, strings.Fields(args)...)
		assert.Equal(t, misused, code, args)
		assert.Contains(t, errs, want, args)
	}
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"-base-url", "http://localhost"}, func(string) string { return "" }, &out, &errs)
	assert.Equal(t, misused, code)
	assert.Contains(t, errs.String(), "GATEWAY_API_KEY is not set")
}

func TestAHostThatMayBeProductionIsRejected(t *testing.T) {
	t.Parallel()
	code, _, errs := command(t, "-base-url", "https://api.gateway.example")
	assert.Equal(t, failed, code)
	assert.Contains(t, errs, "not a sandbox")
}

func TestVersionNeedsNoKeyAndNoURL(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"-version"}, func(string) string { return "" }, &out, &errs)
	assert.Zero(t, code)
	assert.Regexp(t, `^gatewayprobe \S+.* go1\.\S+ \w+/\w+\n$`, out.String())
	assert.Empty(t, errs.String())
}
