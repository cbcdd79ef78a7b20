package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/version"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
)

// mockgateway runs a command against the gateway at an address.
func mockgateway(t *testing.T, addr string, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr strings.Builder
	code = run(t.Context(), args, []string{"MOCKGATEWAY_ADDR=" + strings.TrimPrefix(addr, "http://")}, &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

// succeeds is mockgateway for a command that must exit with 0.
func succeeds(t *testing.T, addr string, args ...string) (out string) {
	t.Helper()
	code, out, errs := mockgateway(t, addr, args...)
	require.Zero(t, code, "%v: %s", args, errs)
	assert.Empty(t, errs)
	return strings.TrimSuffix(out, "\n")
}

func listening(t *testing.T, options ...mockserver.Option) (gw *mockserver.Server, addr string) {
	t.Helper()
	gw = mockserver.Run(t, options...)
	addr, err := gw.Listen("127.0.0.1:0")
	require.NoError(t, err)
	return gw, addr
}

func TestTheCommandsOfPayersAndBanks(t *testing.T) {
	t.Parallel()
	gw, addr := listening(t)
	client := gw.Client()
	for _, c := range commands() { // a control that is renamed breaks its command
		if c.group == "What payers and banks do" {
			code, _, errs := mockgateway(t, addr, c.name, "missing")
			assert.Equal(t, exitRefused, code, c.name)
			assert.Contains(t, errs, "-key selects the account", c.name)
		}
	}
	create := func(method gateway.Method) string {
		params := gateway.TransactionParams{
			Amount: 1990, Method: method, Products: []gateway.Product{{Name: "Book", Price: 1990}},
			Buyer: gateway.BuyerParams{Name: "Ana", Email: "a@b.test", Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"}},
		}
		if method == gateway.CreditCard {
			params.Token = "pgct_ok"
		}
		tx, err := client.Transactions.Create(t.Context(), params, gateway.MaxAttempts(1))
		require.NoError(t, err)
		return tx.ID
	}
	paid := create(gateway.Pix)
	assert.Equal(t, "transaction "+paid+" paid", succeeds(t, addr, "pay", paid))
	code, out, errs := mockgateway(t, addr, "pay", paid)
	assert.Equal(t, exitRefused, code)
	assert.Empty(t, out)
	assert.Contains(t, errs, "paid")
	for command, status := range map[string]string{"expire": "expired", "cancel": "canceled"} {
		id := create(gateway.Pix)
		assert.Equal(t, "transaction "+id+" "+status, succeeds(t, addr, command, id))
	}
	refused := create(gateway.CreditCard)
	assert.JSONEq(t, `{"id":"`+refused+`","status":"refused"}`, members(t, succeeds(t, addr, "refuse", "-json", refused)))

	link, err := client.CheckoutLinks.Create(t.Context(), gateway.CheckoutLinkParams{Amount: 1000, Title: "Tea"})
	require.NoError(t, err)
	assert.Equal(t, "checkout "+link.Slug()+" expired", succeeds(t, addr, "expire", link.Slug()))

	transfer := func(reference string) string {
		made, err := client.Transfers.Create(t.Context(), gateway.TransferParams{
			Amount: 100, PixKeyType: gateway.PixKeyEmail, PixKeyValue: "a@b.test", ExternalRef: reference,
		})
		require.NoError(t, err)
		require.NoError(t, gw.Transfers.Process(made.ID))
		return made.ID
	}
	settled, failed := transfer("a"), transfer("b")
	assert.Equal(t, "transfer "+settled+" paid", succeeds(t, addr, "settle", settled))
	assert.Equal(t, "transfer "+failed+" error", succeeds(t, addr, "fail", failed))

	customer, err := client.Customers.Create(t.Context(), gateway.CustomerParams{Name: "Ana", Email: "a@b.test"})
	require.NoError(t, err)
	sub, err := client.Subscriptions.Create(t.Context(), gateway.SubscriptionParams{
		CustomerID: customer.ID, Amount: 1000, Interval: gateway.IntervalMonth, Token: "pgct_ok_sub", IdempotencyKey: "s",
	})
	require.NoError(t, err)
	assert.Equal(t, "subscription "+sub.ID+" active; its next charge fails", succeeds(t, addr, "fail", sub.ID))
}

// members returns the id and the status of a resource.
func members(t *testing.T, resource string) string {
	t.Helper()
	var v struct {
		ID     string `json:"id"`
		Status string `json:"status"`
	}
	require.NoError(t, json.Unmarshal([]byte(resource), &v))
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

func TestAdvanceMovesTheClock(t *testing.T) {
	t.Parallel()
	gw, addr := listening(t)
	now := gw.Clock.Now()
	assert.Equal(t, "clock "+stamp(now.AddDate(0, 0, 40)), succeeds(t, addr, "advance", "40d"))
	assert.Equal(t, "clock 2030-01-01T00:00:00Z", succeeds(t, addr, "advance", "2030-01-01T00:00:00Z"))
	assert.JSONEq(t, `{"now":"2030-01-01T00:00:00.000Z"}`, succeeds(t, addr, "advance", "0s", "-json"))
	code, _, errs := mockgateway(t, addr, "advance", "tomorrow")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errs, `"tomorrow" is not a duration`)
	assert.Contains(t, errs, "Run mockgateway help advance.")
	code, _, errs = mockgateway(t, addr, "advance", "2020-01-01T00:00:00Z")
	assert.Equal(t, exitRefused, code)
	assert.Contains(t, errs, "mockgateway: ")
}

func TestFaultCommands(t *testing.T) {
	t.Parallel()
	gw, addr := listening(t)
	assert.Equal(t, "no fault", succeeds(t, addr, "fault", "list"))
	assert.Equal(t, "fault_1 lose-response on transactions.create, occurred 0 of 1 times",
		succeeds(t, addr, "fault", "lose-response", "transactions.create", "-times", "1"))
	assert.Equal(t, "fault_2 drop-webhook, match 2 only, probability 0.5, occurred 0 times",
		succeeds(t, addr, "fault", "-nth", "2", "drop-webhook", "-probability", "0.5"))
	assert.Len(t, strings.Split(succeeds(t, addr, "fault", "list"), "\n"), 2)
	code, out, _ := mockgateway(t, addr, "doctor")
	assert.Zero(t, code, "a fault may be intended")
	assert.Contains(t, out, "mockgateway fault clear fault_2 removes it")
	assert.Equal(t, "removed", succeeds(t, addr, "fault", "clear", "fault_1"))
	assert.Len(t, gw.Faults.Reports(), 1)
	assert.Equal(t, "[]", succeeds(t, addr, "fault", "clear", "-json"))
	assert.Empty(t, gw.Faults.Reports())
	for want, args := range map[string][]string{
		"the name of a fault":     {"fault"},
		`unexpected argument "c"`: {"fault", "a", "b", "c"},
		`unexpected argument "b"`: {"fault", "list", "b"},
		"invalid value":           {"fault", "a", "-times", "x"},
	} {
		code, _, errs := mockgateway(t, addr, args...)
		assert.Equal(t, exitUsage, code, args)
		assert.Contains(t, errs, want)
	}
	code, _, errs := mockgateway(t, addr, "fault", "nonsense")
	assert.Equal(t, exitRefused, code)
	assert.Contains(t, errs, "lose-response", "the names of faults")
}

func TestTriggerSendsEvents(t *testing.T) {
	t.Parallel()
	gw, addr := listening(t)
	code, out, errs := mockgateway(t, addr, "trigger", "transaction.paid")
	assert.Equal(t, exitRefused, code)
	assert.Contains(t, out, "no endpoint")
	assert.Contains(t, errs, "mockgateway listen -forward-to URL")

	var mu sync.Mutex
	got := map[string]bool{}
	status := http.StatusOK
	hook := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		event, err := webhook.Parse(body)
		assert.NoError(t, err)
		mu.Lock()
		defer mu.Unlock()
		if _, err := gw.Client().Transactions.Get(r.Context(), event.ResourceID); err == nil {
			got[string(event.Kind)] = true
		}
		w.WriteHeader(status)
	})
	_, err := gw.Webhooks.AddEndpoint(mockserver.Endpoint{URL: hook})
	require.NoError(t, err)
	assert.Contains(t, succeeds(t, addr, "trigger", "payout.transferred"), "delivered to "+hook+", which returned 200")
	for kind := range stories() {
		assert.Contains(t, succeeds(t, addr, "trigger", "-real", string(kind)), string(kind)+" evt_")
		mu.Lock()
		assert.True(t, got[string(kind)], "%s is about a transaction that can be read", kind)
		mu.Unlock()
	}
	mu.Lock()
	status = http.StatusUnauthorized
	mu.Unlock()
	code, out, errs = mockgateway(t, addr, "trigger", "transaction.paid", "-json")
	assert.Equal(t, exitRefused, code)
	assert.Contains(t, out, `"response_status":401`)
	assert.Contains(t, errs, "not every endpoint has accepted transaction.paid")
	for want, args := range map[string][]string{
		"one kind of event":      {"trigger"},
		"no kind of event":       {"trigger", "transaction.piad"},
		"-real can cause only":   {"trigger", "payout.failed", "-real"},
		"flag provided but not ": {"trigger", "-reel"},
	} {
		code, _, errs := mockgateway(t, addr, args...)
		assert.Equal(t, exitUsage, code, args)
		assert.Contains(t, errs, want)
	}
}

// running starts a command that runs until it is stopped, and returns its lines.
func running(t *testing.T, addr string, args ...string) (lines *bufio.Scanner, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	read, write := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, args, []string{"MOCKGATEWAY_ADDR=" + strings.TrimPrefix(addr, "http://")}, write, write)
		_ = write.Close()
	}()
	stop = func() int {
		cancel()
		_, _ = io.Copy(io.Discard, read)
		return <-code
	}
	return bufio.NewScanner(read), stop
}

func TestListenForwardsTheWebhooks(t *testing.T) {
	t.Parallel()
	gw, addr := listening(t)
	hook := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || webhook.Verify(r.Header, body, gateway.NewSecret("whsec_listen")) != nil {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	lines, stop := running(t, addr, "listen", "-forward-to", strings.TrimPrefix(hook, "http://"), "-secret", "whsec_listen", "-events", "transaction.*")
	require.True(t, lines.Scan())
	assert.Equal(t, "Ready: "+hook+" gets the webhooks, signed with whsec_listen. Press Ctrl-C to stop.", lines.Text())
	succeeds(t, addr, "trigger", "transaction.paid")
	require.True(t, lines.Scan())
	assert.Contains(t, lines.Text(), "<-- 200 POST "+hook+" transaction.paid")
	assert.Zero(t, stop())
	assert.Empty(t, gw.Webhooks.Endpoints(), "the endpoint is removed")

	lines, stop = running(t, addr, "listen", "-forward-to", hook)
	require.True(t, lines.Scan())
	assert.Regexp(t, `signed with whsec_[a-z0-9]{26}\.`, lines.Text())
	succeeds(t, addr, "fault", "list")
	code, out, _ := mockgateway(t, addr, "trigger", "transaction.paid")
	assert.Equal(t, exitRefused, code)
	assert.Contains(t, out, "401")
	code, out, _ = mockgateway(t, addr, "doctor")
	assert.Equal(t, exitRefused, code)
	assert.Contains(t, out, "it returned 401 for transaction.paid, as for a wrong signature")
	assert.Zero(t, stop())

	for want, args := range map[string][]string{
		"-forward-to is needed": {"listen"},
		"-forward-to: url":      {"listen", "-forward-to", "ftp://shop"},
		"-secret: the secret":   {"listen", "-forward-to", hook, "-secret", "short"},
		"unexpected argument":   {"listen", hook},
	} {
		code, _, errs := mockgateway(t, addr, args...)
		assert.Equal(t, exitUsage, code, args)
		assert.Contains(t, errs, want)
	}
}

func TestTailShowsWhatHappens(t *testing.T) {
	t.Parallel()
	gw, addr := listening(t)
	for want, args := range map[string][]string{
		`^\d\d:\d\d:\d\d  clock \S+ -> \S+$`: {"tail", "-types", "clock"},
		`^{"seq":\d+,"type":"clock",.*}$`:    {"tail", "-types=clock", "-json"},
	} {
		lines, stop := running(t, addr, args...)
		shown := make(chan struct{})
		go func() { // the command prints nothing when it is ready
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-shown:
					return
				case <-tick.C:
					assert.NoError(t, gw.Clock.Advance(time.Second))
				}
			}
		}()
		require.True(t, lines.Scan())
		close(shown)
		assert.Regexp(t, want, lines.Text())
		assert.Zero(t, stop())
	}
	code, _, errs := mockgateway(t, addr, "tail", "-types", "clocks")
	assert.Equal(t, exitRefused, code)
	assert.Contains(t, errs, `there is no type "clocks"`)
}

// A stream that the gateway ends is not the end of what happens.
func TestTailEndsWithTheGateway(t *testing.T) {
	t.Parallel()
	g := start(t)
	lines, stop := running(t, g.base, "tail")
	go func() { // until the stream is open and the gateway has been stopped
		for {
			if _, _, err := g.call(http.MethodPost, "/__mock/up", ""); err != nil {
				return
			}
		}
	}()
	require.True(t, lines.Scan())
	g.kill()
	for lines.Scan() {
		if strings.Contains(lines.Text(), "no mock gateway responds at "+g.base+" any more") {
			break
		}
	}
	assert.Equal(t, exitNoGateway, stop())
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	gw, addr := listening(t)
	out := succeeds(t, addr, "doctor")
	assert.Contains(t, out, addr+", sandbox, dialect document")
	assert.Contains(t, out, "moves only when it is advanced; no timer is pending")
	assert.Contains(t, out, "none is registered: mockgateway listen -forward-to URL")
	_, err := gw.Client().Transactions.Create(t.Context(), gateway.TransactionParams{
		Amount: 1990, Method: gateway.Pix, Products: []gateway.Product{{Name: "Book", Price: 1990}},
		Buyer: gateway.BuyerParams{Name: "Ana", Email: "a@b.test", Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"}},
	})
	require.NoError(t, err)
	assert.Contains(t, succeeds(t, addr, "doctor"), "mockgateway advance next")

	endpoint, err := gw.Webhooks.AddEndpoint(mockserver.Endpoint{URL: newServer(t, func(http.ResponseWriter, *http.Request) {}), Secret: gateway.NewSecret("whsec_doctor")})
	require.NoError(t, err)
	assert.Contains(t, succeeds(t, addr, "doctor", "-secret", "whsec_doctor"), endpoint.ID+" signs with it")
	code, text, errs := mockgateway(t, addr, "doctor", "-secret", "whsec_other", "-json")
	assert.Equal(t, exitRefused, code)
	assert.Contains(t, text, `{"check":"secret","result":"failed","detail":"no endpoint signs with it"}`)
	assert.Contains(t, errs, "failed checks: 1")
	code, text, _ = mockgateway(t, addr, "doctor", "-secret", "whsec_doctor\n")
	assert.Equal(t, exitRefused, code)
	assert.Contains(t, text, "white space")

	_, running := listening(t, mockserver.WithRealtime(1000))
	assert.Contains(t, succeeds(t, running, "doctor"), "runs by itself")
	assert.Regexp(t, `(?m)^ok +gateway .*, version `+regexp.QuoteMeta(version.Module())+`, as this command$`, out)
	assert.Regexp(t, `(?m)^warning +gateway .*, version v0\.1\.0; this command has `+regexp.QuoteMeta(version.Module())+`: use one version of both$`,
		succeeds(t, ofVersion(t, gw, `"v0.1.0"`), "doctor"))
	code, _, errs = mockgateway(t, strings.Replace(addr, "127.0.0.1", "localhost", 1), "doctor")
	assert.Zero(t, code, errs)
}

// ofVersion serves a gateway that reports another version, as JSON.
func ofVersion(t *testing.T, gw *mockserver.Server, reported string) (addr string) {
	t.Helper()
	own, err := json.Marshal(version.Module())
	require.NoError(t, err)
	return newServer(t, func(w http.ResponseWriter, r *http.Request) {
		recorded := httptest.NewRecorder()
		gw.Handler().ServeHTTP(recorded, r)
		maps.Copy(w.Header(), recorded.Header())
		w.Header().Del("Content-Length")
		w.WriteHeader(recorded.Code)
		_, _ = io.WriteString(w, strings.Replace(recorded.Body.String(), `"version":`+string(own), `"version":`+reported, 1))
	})
}

// The exit code and the message say whether there is a gateway, which is checked for
// every command.
func TestWithoutAGatewayTheExitCodeIs3(t *testing.T) {
	t.Parallel()
	other := newServer(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	page := newServer(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("welcome")) })
	gw := mockserver.Run(t)
	gone, err := gw.Listen("127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, gw.Close())
	for _, addr := range []string{other, page, gone} {
		for _, c := range commands() {
			args := map[string][]string{
				"advance": {"1d"}, "fault": {"list"}, "listen": {"-forward-to", "http://127.0.0.1:1/"}, "trigger": {"transaction.paid"},
				"tail": nil, "doctor": nil,
			}[c.name]
			if c.client == nil || addr == page && (c.name == "tail" || c.name == "listen") {
				continue
			}
			if c.group == "What payers and banks do" {
				args = []string{"id"}
			}
			code, _, errs := mockgateway(t, addr, append([]string{c.name}, args...)...)
			assert.Equal(t, exitNoGateway, code, "%s: %s", c.name, errs)
			assert.Contains(t, errs, "no mock gateway responds at "+addr)
			assert.Contains(t, errs, "MOCKGATEWAY_ADDR")
		}
	}
}

func TestWrongCommandLines(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		`unknown command "pya"`:                      {"pya"},
		`unknown command "trig"; did you mean trigg`: {"trig"},
		`unknown command "listening"; did you mean`:  {"listening"},
		"Run mockgateway help for the commands":      {"start"},
		`unknown command "nothing"`:                  {"help", "nothing"},
		"an id is needed":                            {"pay"},
		"needed, and nothing else":                   {"pay", "a", "b"},
		`must be host:port, or an http`:              {"pay", "a", "-addr", "ftp://x"},
		"-addr or MOCKGATEWAY_ADDR: address":         {"pay", "a", "-addr", "4010"},
		"the port of the gateway is needed":          {"pay", "a", "-addr", ":0"},
		"-ca: open":                                  {"pay", "a", "-ca", "missing.pem"},
		"-ca: command.go has no certificate":         {"pay", "a", "-ca", "command.go"},
		"unexpected argument":                        {"serve", "now"},
	} {
		code, out, errs := mockgateway(t, "http://127.0.0.1:1", args...)
		assert.Equal(t, exitUsage, code, args)
		assert.Empty(t, out)
		assert.Contains(t, errs, want)
	}
}

// The commands also reach a gateway that serves HTTPS with its own certificate, and serve
// is the gateway.
func TestCommandsOverHTTPS(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "ca.pem")
	g := start(t, "-tls-self-signed", file)
	addr := strings.TrimPrefix(g.base, "http://")
	assert.Contains(t, succeeds(t, addr, "doctor", "-ca", file), "https://"+addr)
	assert.Contains(t, succeeds(t, "", "doctor", "-addr", "https://"+addr, "-ca", file), "https://"+addr)
	code, _, errs := mockgateway(t, "", "doctor", "-addr", "https://"+addr)
	assert.Equal(t, exitNoGateway, code)
	assert.Contains(t, errs, "certificate")
}

// The gateway stops with the program that holds the other end of its standard input.
func TestStopWithStdin(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "serve", "-addr", "127.0.0.1:0", "-log", "json", "-stop-with-stdin")
	cmd.Env = append(os.Environ(), asMain)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	assert.Contains(t, line, `"type":"ready"`)
	require.NoError(t, in.Close())
	require.NoError(t, cmd.Wait())
}

// mcp runs gateway-mcp with its arguments and its exit code.
func TestMCPRunsTheOtherBinary(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(bin, "gateway-mcp"), []byte("#!/bin/sh\necho \"$@\" \"$(cat)\"\nexit 7\n"), 0o700))
	cmd := exec.CommandContext(t.Context(), os.Args[0], "mcp", "test", "-x")
	cmd.Env = append(os.Environ(), asMain, "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	cmd.Stdin = strings.NewReader("in")
	out, err := cmd.Output()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, 7, exit.ExitCode())
	assert.Equal(t, "test -x in\n", string(out))

	cmd = exec.CommandContext(t.Context(), os.Args[0], "mcp")
	cmd.Env = []string{asMain, "PATH=" + t.TempDir()}
	text, err := cmd.CombinedOutput()
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, exitRefused, exit.ExitCode())
	assert.Contains(t, string(text), "gateway-mcp is neither in the folder of mockgateway nor in PATH")
}
