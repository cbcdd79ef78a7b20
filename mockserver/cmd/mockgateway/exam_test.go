package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/exam"
)

// runExam runs the command in this process.
func runExam(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), append([]string{"exam"}, args...), nil, &o, &e)
	return code, o.String(), e.String()
}

// of returns the arguments of an exam of a test program.
func of(kind string, flags ...string) []string {
	return append(append(flags, "-env", programVariable+"="+kind), "--", os.Args[0])
}

func TestAnExamThatPasses(t *testing.T) {
	t.Parallel()
	code, out, errs := runExam(t, of("shop", "-only", "plain,not-paid,duplicate,partial-refunds", "-seed", "7", "-dialect", "live")...)
	assert.Equal(t, 0, code, out+errs)
	assert.Empty(t, errs)
	assert.Contains(t, out, "4 scenarios, seed 7\nok   plain ")
	assert.Contains(t, out, "\nskip partial-refunds            the hook refunds is not offered\n")
	assert.Contains(t, out, "4 scenarios: 3 passed, 1 skipped (the hook refunds is not offered)")
	assert.Contains(t, out, "a hook that lies passes")
}

// What a report has does not depend on what the program prints.
func TestAFailureIsInEachReport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.WriteFile(file("x.html"), []byte(strings.Repeat("yesterday ", 100_000)), 0o600))
	const key, secret = "sk_test_of_my_own", "whsec_of_my_own_1"
	code, out, errs := runExam(t, of("ships-again", "-only", "not-paid,duplicate", "-seed", "8", "-webhook-path", "/hooks/gateway",
		"-junit", file("x.xml"), "-html", file("x.html"), "-json", file("x.json"), "-key", key, "-secret", secret, "-v", "-dialect", "document")...)
	assert.Equal(t, 1, code, out+errs)
	assert.Contains(t, out, "FAIL duplicate  C5   order x")
	assert.Contains(t, out, "\n  <-   transaction.paid, again ")
	assert.Regexp(t, `\n  ->   transactions\.list.* \(5 times\) +200\n`, out, "the reads at five events are one line")
	try := "mockgateway exam -only duplicate -seed 8 -dialect document -env EXAM_TEST_PROGRAM=ships-again -key '***' -secret '***' -webhook-path /hooks/gateway -- "
	assert.Contains(t, out, "try it: "+try)
	assert.Contains(t, errs, "starting with *** and ***\n", "the program's output")

	var suite struct {
		Cases []struct {
			Name    string `xml:"name,attr"`
			Failure *struct {
				Type string `xml:"type,attr"`
			} `xml:"failure"`
		} `xml:"testsuite>testcase"`
	}
	require.NoError(t, xml.Unmarshal(read(t, file("x.xml")), &suite))
	require.Len(t, suite.Cases, 2)
	require.NotNil(t, suite.Cases[1].Failure)
	assert.Equal(t, "C5", suite.Cases[1].Failure.Type)
	assert.Nil(t, suite.Cases[0].Failure)

	var result exam.Result
	require.NoError(t, json.Unmarshal(read(t, file("x.json")), &result))
	assert.Equal(t, 1, result.Count(exam.Failed))
	assert.Equal(t, "document", result.Dialect)
	assert.Contains(t, result.Version, "mockgateway ")
	assert.Regexp(t, `^[0-9a-f]{40,64}(\+changes)?$`, result.Commit)

	page := string(read(t, file("x.html")))
	assert.NotContains(t, page, "yesterday")
	assert.Contains(t, page, `<span class="state bad">failed</span>`)
	for name, text := range map[string]string{
		"text": out, "output": errs, "HTML": page, "XML": string(read(t, file("x.xml"))), "JSON": string(read(t, file("x.json"))),
	} {
		assert.Contains(t, text, "***", name)
		assert.NotContains(t, text, key, name)
		assert.NotContains(t, text, secret, name)
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return text
}

func TestTheListHasEachScenario(t *testing.T) {
	t.Parallel()
	code, out, _ := runExam(t, "-list")
	assert.Equal(t, 0, code)
	all, err := exam.Scenarios(nil, nil)
	require.NoError(t, err)
	require.NotEmpty(t, all)
	lines := strings.Split(out, "\n")
	for i, s := range all {
		fields := strings.Fields(lines[2*i])
		want := []string{s.Name}
		for _, h := range s.Needs {
			want = append(want, string(h))
		}
		if len(s.Needs) == 0 {
			want = append(want, "-")
		}
		for _, c := range s.Claims {
			want = append(want, string(c))
		}
		assert.Equal(t, want, fields)
		assert.Equal(t, "    "+s.About, lines[2*i+1])
	}
	_, some, _ := runExam(t, "-list", "-only", "C9", "-skip", "plain")
	assert.Contains(t, some, "rerendered ")
	assert.NotContains(t, some, "plain ")
}

func TestInvalidFlagsOfAnExam(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	running := []string{"-url", "http://127.0.0.1:9", "-addr", "127.0.0.1:0", "-key", "sk_test_x", "-secret", "whsec_0001"}
	for want, args := range map[string][]string{
		"flag provided but not defined: -nonsense":                     {"-nonsense"},
		`-only: no scenario or claim is called "plane"`:                of("shop", "-only", "plain, plane"),
		`-skip: no scenario or claim is called "C99"`:                  of("shop", "-skip", "C99"),
		"-only and -skip leave no scenario":                            of("shop", "-only", "plain", "-skip", "C1"),
		"-seed must be a whole number from 0, not \"-1\"":              of("shop", "-seed", "-1"),
		"-budget must be above 0":                                      of("shop", "-budget", "0s"),
		"-hang must be above 0":                                        of("shop", "-hang", "-1s"),
		"-start-timeout must be above 0":                               of("shop", "-start-timeout", "0s"),
		"-grace must not be negative":                                  of("shop", "-grace", "-1s"),
		"-random must not be negative":                                 of("shop", "-random", "-1s"),
		`invalid value "soon" for flag -grace`:                         of("shop", "-grace", "soon"),
		`-dialect must be document or live, not "dead"`:                of("shop", "-dialect", "dead"),
		"-profile: open ":                                              of("shop", "-profile", filepath.Join(dir, "none")),
		"-profile sets the dialect: remove -dialect":                   of("shop", "-profile", "x", "-dialect", "live"),
		"a command that starts the program is missing":                 {"-seed", "1"},
		"-url is for a program that runs already":                      of("shop", running...),
		"-url needs -key":                                              {"-url", "http://127.0.0.1:9", "-addr", "127.0.0.1:0", "-secret", "whsec_0001"},
		"-url must be http://host:port without a path":                 append([]string{"-url", "https://127.0.0.1:9"}, running[2:]...),
		"-url must be http://host:port":                                append([]string{"-url", "127.0.0.1:9"}, running[2:]...),
		"-env has no effect with -url":                                 append([]string{"-env", "A=b"}, running...),
		"it must be NAME=VALUE":                                        {"-env", "A", "--", "shop"},
		"-webhook-path must be a path such as /webhooks, not \"hook\"": of("shop", "-webhook-path", "hook"),
		"-addr must be host:port":                                      of("shop", "-addr", "4010"),
		"-key must begin with sk_test_":                                of("shop", "-key", "sk_live_1"),
		"-secret: the secret can't sign":                               of("shop", "-secret", "x"),
		"-html and -json must be two files":                            of("shop", "-html", "x", "-json", "./x"),
		"-junit: open ":                                                of("shop", "-junit", filepath.Join(dir, "none", "x.xml")),
	} {
		code, out, errs := runExam(t, args...)
		assert.Equal(t, 2, code, want)
		assert.Contains(t, errs, want)
		assert.Empty(t, out, want)
		if !strings.HasPrefix(want, "-junit") {
			assert.Contains(t, errs, "Run mockgateway exam -h for help.")
		}
	}
}

func TestHelpOfAnExam(t *testing.T) {
	t.Parallel()
	code, out, errs := runExam(t, "-h")
	assert.Equal(t, 0, code)
	assert.Empty(t, errs)
	for _, text := range []string{
		"usage: mockgateway exam [flags] -- COMMAND", "exit codes:", "  -only names\n", "  -list\n", "  -env NAME=VALUE\n", "(default 3m0s)", "(default /webhooks)", "EXAM_DATA_DIR",
	} {
		assert.Contains(t, out, text)
	}
	assert.NotContains(t, out, "MOCKGATEWAY_")
}

// A program that can't be examined is a mistake of its author: the exit code is 2, and
// the end of its output is shown.
func TestAProgramThatCantBeExamined(t *testing.T) {
	t.Parallel()
	for kind, wants := range map[string][]string{
		"exits":  {"can't be examined", "exit status 3", "\n    no database at all, key ***"},
		"silent": {"within 1s", "127.0.0.1", "PORT"},
		"html":   {"order none"},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "x.html")
			require.NoError(t, os.WriteFile(file, []byte("of yesterday"), 0o600))
			code, out, errs := runExam(t, of(kind, "-start-timeout", "1s", "-html", file)...)
			assert.Equal(t, 2, code, out)
			for _, want := range wants {
				assert.Contains(t, errs, want)
			}
			assert.NoFileExists(t, file, "yesterday's report is not today's")
		})
	}
	var lc net.ListenConfig
	taken, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = taken.Close() })
	code, _, errs := runExam(t, of("shop", "-addr", taken.Addr().String())...)
	assert.Equal(t, 2, code)
	assert.Contains(t, errs, "-addr: listen tcp "+taken.Addr().String())
	code, _, errs = runExam(t, "--", filepath.Join(t.TempDir(), "none"))
	assert.Equal(t, 2, code)
	assert.Contains(t, errs, "no such file or directory")
	code, _, errs = runExam(t, "-url", "http://127.0.0.1:1", "-addr", "127.0.0.1:0", "-key", "sk_test_x", "-secret", "whsec_0001")
	assert.Equal(t, 2, code)
	assert.Contains(t, errs, "http://127.0.0.1:1")
}

// childOf returns a variable for the program, and a check that its child is gone.
func childOf(t *testing.T) (env string, gone func()) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "child")
	return "EXAM_TEST_CHILD=" + file, func() {
		addr := string(read(t, file))
		assert.Eventually(t, func() bool {
			conn, err := net.Dial("tcp", addr)
			if err == nil {
				_ = conn.Close()
			}
			return err != nil
		}, time.Minute, time.Millisecond, "a child of the program is left")
	}
}

func TestNoChildOfTheProgramIsLeft(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]int{"parent": 0, "orphan": 2} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			env, gone := childOf(t)
			code, out, errs := runExam(t, of(kind, "-only", "not-paid", "-env", env)...)
			assert.Equal(t, want, code, out+errs)
			gone()
		})
	}
}

// A program that never becomes quiet delays the exam, but does not stop it.
func TestAProgramThatFloodsTheGateway(t *testing.T) {
	t.Parallel()
	began := time.Now()
	code, out, errs := runExam(t, of("flood", "-only", "plain,not-paid", "-budget", "1s")...)
	assert.Equal(t, 3, code, out+errs)
	// On a busy machine, the program's start alone may use up the budget.
	assert.Regexp(t, `[12] not run \(the budget of 1s was used up\)`, out)
	assert.Less(t, time.Since(began), 2*time.Minute)
}

func TestAProgramThatRunsAlready(t *testing.T) {
	t.Parallel()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	require.NoError(t, l.Close())
	shop := httptest.NewServer(newTestShop("shop", "http://"+addr, "sk_test_fixed", "whsec_fixed_1"))
	t.Cleanup(shop.Close)
	profile := profileOf(t, `{"readings":{"validation-status":"live","list-order":"the older transaction is listed first"}}`)
	code, out, errs := runExam(t, "-only", "plain,shop-down", "-profile", profile, "-url", shop.URL, "-addr", addr, "-key", "sk_test_fixed", "-secret", "whsec_fixed_1")
	assert.Equal(t, 0, code, out+errs)
	assert.Contains(t, errs, "the profile is ignored in rows that have no setting: list-order\n")
	assert.Contains(t, out, "skip shop-down                  the program can't be restarted")
}

func TestAnExamThatIsInterruptedBeforeTheProgramIsReady(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	env, gone := childOf(t)
	go func() {
		defer cancel()
		assert.Eventually(t, func() bool {
			text, err := os.ReadFile(strings.TrimPrefix(env, "EXAM_TEST_CHILD="))
			return err == nil && len(text) > 0
		}, time.Minute, time.Millisecond)
	}()
	var out, errs bytes.Buffer
	code := run(ctx, append([]string{"exam", "-start-timeout", "1h"}, of("child", "-env", env)...), nil, &out, &errs)
	assert.Equal(t, 3, code)
	assert.Equal(t, "mockgateway: the exam was ended before the program was ready\n", errs.String())
	gone()
}

// An interrupted exam ends the program with its children, and shows what is known.
func TestAnInterruptedExam(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]int{"/webhooks": 3, "/nowhere": 1} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			env, gone := childOf(t)
			cmd := exec.Command(os.Args[0], append([]string{"exam"}, of("parent", "-only", "not-paid,plain,hang,duplicate", "-hang", "1h", "-budget", "1h", "-grace", "0s",
				"-webhook-path", path, "-env", env, "-json", filepath.Join(dir, "x.json"))...)...)
			cmd.Env = append(os.Environ(), asMain)
			out, err := os.Create(filepath.Join(dir, "out"))
			require.NoError(t, err)
			defer func() { _ = out.Close() }()
			var errs strings.Builder
			cmd.Stdout, cmd.Stderr = out, &errs
			require.NoError(t, cmd.Start())
			t.Cleanup(func() { _ = cmd.Process.Kill() })
			require.Eventually(t, func() bool { return strings.Contains(string(read(t, out.Name())), " not-paid") }, time.Minute, time.Millisecond)
			require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
			_ = cmd.Wait()
			assert.Equal(t, want, cmd.ProcessState.ExitCode(), errs.String())
			assert.Contains(t, string(read(t, out.Name())), "not run: the exam was ended\n")
			var result exam.Result
			require.NoError(t, json.Unmarshal(read(t, filepath.Join(dir, "x.json")), &result))
			assert.Len(t, result.Outcomes, 4)
			gone()
		})
	}
}
