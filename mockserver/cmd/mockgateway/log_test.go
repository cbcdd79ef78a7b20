package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
)

// end stops the process as a service manager does and returns its standard
// error.
func (g *process) end() string {
	require.NoError(g.t, g.cmd.Process.Signal(syscall.SIGTERM))
	<-g.done
	return g.errs.String()
}

// play makes the calls of a short session and returns the receiver's URL and the
// id of its transaction.
func play(t *testing.T, g *process) (hook, tx string) {
	t.Helper()
	hook = newServer(t, func(http.ResponseWriter, *http.Request) {})
	g.must("POST", "/__mock/endpoints", `{"url":"`+hook+`/hooks?token=secret","secret":"whsec_test_1","events":["transaction.paid"]}`)
	tx = g.id(g.must("POST", "/v2/transactions", pix("order-1")))
	g.must("POST", "/__mock/transactions/"+tx+"/pay", "")
	g.must("POST", "/__mock/deliveries/wait", "")
	for path, body := range map[string]string{"/v2/transactions": `{"amount":-1,"method":"pix"}`, "/v2/customers": "{"} {
		status, _, err := g.call("POST", path, body)
		require.NoError(t, err)
		require.Equal(t, http.StatusBadRequest, status)
	}
	g.must("GET", "/__mock/clock", "")
	g.must("POST", "/__mock/clock/advance", `{"by":"1d"}`)
	return hook, tx
}

func TestTheLogShowsRequestsEventsAndWebhooks(t *testing.T) {
	t.Parallel()
	g := start(t, "-clock", "manual", "-start", "2027-01-04T12:00:00Z")
	hook, tx := play(t, g)
	text := g.end()
	for _, want := range []string{
		`200 POST /__mock/endpoints \S+`,
		`transaction TX new -> pending order-1 by request transactions.create`,
		`--> transaction.created evt_\S+ order-1 \(no endpoint\)`,
		`201 POST /v2/transactions transactions.create \S+`,
		`transaction TX pending -> paid order-1 by control transactions/pay`,
		`--> transaction.paid evt_\S+ order-1`,
		`<-- 200 POST HOOK/hooks transaction.paid \S+`,
		`400 POST /v2/transactions transactions.create VALIDATION_ERROR \S+\n {10}amount must be at least 1 \(too_small\)\n {10}buyer is required \(required\)\n`,
		`400 POST /v2/customers customers.create MALFORMED_JSON \S+\n {10}The body is not a valid JSON`,
		`clock 2027-01-04T12:00:00Z -> 2027-01-05T12:00:00Z`,
	} {
		want = strings.NewReplacer("TX", tx, "HOOK", regexp.QuoteMeta(hook)).Replace(want)
		assert.Regexp(t, `(?m)^\d\d:\d\d:\d\d  `+want, text)
	}
	assert.NotContains(t, text, "\x1b", "a file is not colored")
	assert.NotContains(t, text, "GET /__mock/clock", "reads of the control plane are not logged")
	assert.NotContains(t, text, "token=secret")
}

// The time of a retry is on the gateway's clock, as its other times are: on a manual
// clock, "in 5s" would never come.
func TestTheLogShowsWhenARetryIsDueAndThatAFileWasApplied(t *testing.T) {
	t.Parallel()
	g := start(t, "-clock", "manual", "-start", "2027-01-04T12:00:00Z")
	hook := newServer(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	g.must("POST", "/__mock/endpoints", `{"url":"`+hook+`","secret":"whsec_test_1","events":["transaction.created"]}`)
	g.must("POST", "/v2/transactions", pix("order-1"))
	g.must("POST", "/__mock/deliveries/wait", "")
	g.must("POST", "/__mock/seed", `{"links":[{"as":"mug","title":"Mug","currency":"BRL","amount":4990}]}`)
	text := g.end()
	assert.Regexp(t, `<-- 503 POST \S+ transaction.created \S+, retry due 2027-01-04T12:00:05Z\n`, text)
	assert.Regexp(t, `(?m)^\d\d:\d\d:\d\d  a seed file was applied`, text)
	assert.NotContains(t, text, "was reset")
}

func TestTheLogInJSONIsTheStreamOfEvents(t *testing.T) {
	t.Parallel()
	g := start(t, "-log", "json")
	play(t, g)
	types := map[string]int{}
	lines := bufio.NewScanner(strings.NewReader(g.end()))
	for lines.Scan() {
		var e map[string]any
		require.NoError(t, json.Unmarshal(lines.Bytes(), &e), lines.Text())
		kind, _ := e["type"].(string)
		types[kind]++
		if kind != "control" {
			assert.Contains(t, e, kind)
		}
		for _, name := range []string{"at", "wall"} {
			at, _ := e[name].(string)
			_, err := time.Parse(time.RFC3339, at)
			require.NoError(t, err)
		}
	}
	assert.Equal(t, map[string]int{"control": 4, "request": 3, "transition": 2, "webhook": 3, "delivery": 1, "clock": 1}, types)
}

// A client can neither send control sequences to the terminal nor forge a line.
func TestTheLogIsSafeToShow(t *testing.T) {
	t.Parallel()
	const evil = "x\x1b[2J\n10:00:00  transaction forged -> paid\u202e"
	for _, e := range []mockserver.Event{
		{Request: &mockserver.RequestEvent{Path: evil, Query: evil, Operation: evil, Code: evil, Fault: evil, Method: "GET"}},
		{Request: &mockserver.RequestEvent{Detail: evil}},
		{Request: &mockserver.RequestEvent{Errors: []gateway.FieldError{{Field: evil, Message: evil, Code: evil}}}},
		{Transition: &mockserver.TransitionEvent{ID: evil, Reference: evil}},
		{Timer: &mockserver.TimerEvent{ID: evil}},
		{Timer: &mockserver.TimerEvent{Error: evil}},
		{Webhook: &mockserver.WebhookEvent{Reference: evil}},
		{Delivery: &mockserver.DeliveryEvent{Attempt: 1, URL: evil, Error: evil, Fault: evil}},
		{Fault: &mockserver.FaultEvent{Fault: evil, On: evil}},
	} {
		text := string(log{form: "text"}.lines(e))
		assert.Contains(t, text, `x\x1b[2J\n10:00:00`)
		assert.NotContains(t, text, "\x1b")
		assert.NotContains(t, text, "\u202e")
		for line := range strings.Lines(text) {
			assert.NotRegexp(t, `^10:00:00`, line)
		}
	}
}

func TestALongListOfErrorsIsCut(t *testing.T) {
	t.Parallel()
	g := start(t)
	status, _, err := g.call("POST", "/v2/transactions", `{"amount":1,"method":"pix","buyer":{"name":"Ana","email":"a@b.test"},"products":[`+
		strings.Repeat("{},", 5000)+`{}]}`)
	require.NoError(t, err)
	require.Equal(t, http.StatusBadRequest, status)
	text := g.end()
	assert.Contains(t, text, "products[0].name is required (required)\n")
	assert.Contains(t, text, " fields are invalid.\n")
	assert.Equal(t, 12, strings.Count(text, "\n"), text)
}

func TestColorsAreForTerminalsThatSupportThem(t *testing.T) {
	t.Parallel()
	paid := mockserver.Event{Transition: &mockserver.TransitionEvent{To: "paid"}}
	assert.Contains(t, string(log{form: "text", color: true}.lines(paid)), "\x1b[1mpaid\x1b[0m")
	assert.NotContains(t, string(log{form: "text"}.lines(paid)), "\x1b")

	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0) // a pseudoterminal
	if err != nil {
		t.Skip("no terminal available: " + err.Error())
	}
	defer func() { _ = terminal.Close() }()
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	assert.True(t, colored(terminal, []string{"TERM=xterm", "NO_COLOR="}))
	assert.False(t, colored(terminal, []string{"TERM=xterm", "NO_COLOR=1"}))
	assert.False(t, colored(terminal, []string{"TERM=dumb"}))
	assert.False(t, colored(terminal, nil))
	assert.False(t, colored(file, []string{"TERM=xterm"}))
	assert.False(t, colored(&bytes.Buffer{}, []string{"TERM=xterm"}))
}

// A blocked standard error delays neither requests nor the shutdown.
func TestABlockedLogDelaysNothing(t *testing.T) {
	t.Parallel()
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	defer func() { _ = reader.Close() }()
	port := filepath.Join(t.TempDir(), "port")
	cmd := exec.Command(os.Args[0], "-addr", "127.0.0.1:0", "-port-file", port, "-log", "json")
	cmd.Env = append(os.Environ(), asMain)
	cmd.Stderr = writer
	require.NoError(t, cmd.Start())
	require.NoError(t, writer.Close())
	g := &process{t: t, cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(g.done)
		_ = cmd.Wait()
	}()
	t.Cleanup(g.kill)
	require.Eventually(t, func() bool {
		addr, err := os.ReadFile(port)
		g.base = "http://" + strings.TrimSpace(string(addr))
		return err == nil
	}, time.Minute, time.Millisecond)
	for i := range 200 { // more than a pipe holds
		g.must("POST", "/v2/transactions", pix(strconv.Itoa(i)))
	}
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	select {
	case <-g.done:
	case <-time.After(time.Minute):
		t.Error("the gateway did not exit")
	}
}

// The banner lists the test cards of the guide.
func TestTheBannerListsTheTestCards(t *testing.T) {
	t.Parallel()
	g := start(t)
	guide, err := os.ReadFile("../../../docs/testing.md")
	require.NoError(t, err)
	cards := regexp.MustCompile("(?m)^\\| `(pgct_[a-z0-9_]+)…?`").FindAllStringSubmatch(string(guide), -1)
	assert.Greater(t, len(cards), 5)
	for _, card := range cards {
		assert.Contains(t, g.printed(), "\n  "+card[1]+" ")
	}
	for _, path := range []string{"/__mock/openapi.json", "/__mock/events", "/   (for a browser"} {
		assert.Contains(t, g.printed(), g.base+path)
	}
	assert.NotContains(t, start(t, "-console=false").printed(), "browser")
}

// With -log json a program reads both outputs line by line, whatever happens.
func TestTheJSONLogHasOnlyJSON(t *testing.T) {
	t.Parallel()
	kinds := func(text string) (list []string) {
		for line := range strings.Lines(text) {
			var object struct {
				Type    string `json:"type"`
				BaseURL string `json:"base_url"`
			}
			require.NoError(t, json.Unmarshal([]byte(line), &object), line)
			list = append(list, object.Type)
		}
		return list
	}
	profile := filepath.Join(t.TempDir(), "profile.json")
	require.NoError(t, os.WriteFile(profile, []byte(`{"readings":{"list-order":"other"}}`), 0o600))
	g, err := tryStartIn(t, []string{"MOCKGATEWAY_SEEDS=1"}, "-log", "json", "-profile", profile)
	require.NoError(t, err)
	assert.Equal(t, []string{"ready"}, kinds(g.printed()))
	assert.Contains(t, g.printed(), `"base_url":"`+g.base+`","api_key":"sk_test_mock"`)
	g.must("POST", "/v2/transactions", pix("order-1"))
	assert.Subset(t, kinds(g.end()), []string{"warning", "request", "transition"})
	assert.Equal(t, 2, strings.Count(g.errs.String(), `"type":"warning"`), g.errs)

	for name, args := range map[string][]string{
		"a wrong flag":     {"-log", "json", "-speed", "0"},
		"an unknown flag":  {"-log", "json", "-nonsense"},
		"no port":          {"-log=json", "-addr", "127.0.0.1:x"},
		"a missing file":   {"-log", "json", "-seed-file", filepath.Join(t.TempDir(), "missing")},
		"an address twice": {"-log", "json", "-addr", strings.TrimPrefix(newServer(t, func(http.ResponseWriter, *http.Request) {}), "http://")},
	} {
		g, err := tryStart(t, args...)
		require.Error(t, err, name)
		assert.Equal(t, []string{"error"}, kinds(g.errs.String()), name)
		assert.Empty(t, g.printed(), name)
	}
}
