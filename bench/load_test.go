package bench_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"
)

// BenchmarkLoad puts mock gateways, each in its own process, under the same load over
// loopback. The time is from one response to the next. The load generator uses the same
// processors, so the server's CPU time is reported too. It keeps some connections per
// core busy: 8, with which the processors are idle for part of the time, and 32.
func BenchmarkLoad(b *testing.B) {
	servers := []process{mockgateway(b), stripeMock(b)}
	for _, method := range []string{http.MethodPost, http.MethodGet} {
		for _, connections := range []int{8, 32} {
			for _, server := range servers {
				name := fmt.Sprintf("%s/per-core=%d/%s", method, connections, server.name)
				b.Run(name, func(b *testing.B) { load(b, method, connections, server) })
			}
		}
	}
}

// process is a running mock gateway.
type process struct {
	name string
	pid  int
	base string // URL of the collection
	one  string // URL of a resource
	body func(n int64) (contentType, body string)
}

func load(b *testing.B, method string, connections int, server process) {
	b.Helper()
	client := &fasthttp.Client{MaxConnsPerHost: connections * runtime.GOMAXPROCS(0)}
	b.Cleanup(client.CloseIdleConnections)
	b.SetParallelism(connections)
	before := server.cpu(b)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		req, res := &fasthttp.Request{}, &fasthttp.Response{}
		for pb.Next() {
			if err := server.call(client, method, req, res); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
	b.ReportMetric(float64((server.cpu(b)-before).Microseconds())/float64(b.N), "server-µs/req")
}

// sent counts the creates of all runs, so that each has a unique reference.
var sent atomic.Int64

func (p process) call(client *fasthttp.Client, method string, req *fasthttp.Request, res *fasthttp.Response) error {
	req.Reset()
	req.Header.SetMethod(method)
	req.Header.Set("Authorization", "Bearer sk_test_mock")
	req.SetRequestURI(p.one)
	if method == http.MethodPost {
		contentType, body := p.body(sent.Add(1))
		req.SetRequestURI(p.base)
		req.Header.SetContentType(contentType)
		req.SetBodyString(body)
	}
	if err := client.Do(req, res); err != nil {
		return err
	}
	if res.StatusCode()/100 != 2 {
		return fmt.Errorf("%s %s: %d %s", p.name, method, res.StatusCode(), res.Body())
	}
	return nil
}

// cpu returns the CPU time that the process has used, to a hundredth of a second, or 0
// on systems other than Linux.
func (p process) cpu(b *testing.B) time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid))
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	require.NoError(b, err)
	_, after, _ := bytes.Cut(text, []byte(") ")) // the program's name may contain spaces
	fields := strings.Fields(string(after))
	var ticks int64
	for _, field := range fields[11:13] { // utime and stime
		n, err := strconv.ParseInt(field, 10, 64)
		require.NoError(b, err)
		ticks += n
	}
	return time.Duration(ticks) * (time.Second / 100) // USER_HZ
}

// mockgateway starts this project's binary.
func mockgateway(b *testing.B) process {
	b.Helper()
	binary := build(b, "github.com/gateway-go/gateway/mockserver/cmd/mockgateway")
	address, command := listening(b, binary)
	p := process{name: "gateway", pid: command.Process.Pid, base: "http://" + address + "/v2/transactions"}
	p.body = func(n int64) (string, string) {
		return "application/json", strings.Replace(createBody, "REFERENCE", fmt.Sprintf("order-%d", n), 1)
	}
	p.one = p.base + "/" + p.create(b, regexp.MustCompile(`"data":\{"id":"([^"]+)"`))
	return p
}

// BenchmarkMockBinaryStart measures the time from starting the binary until it listens.
func BenchmarkMockBinaryStart(b *testing.B) {
	binary := build(b, "github.com/gateway-go/gateway/mockserver/cmd/mockgateway")
	for b.Loop() {
		_, command := listening(b, binary)
		b.StopTimer()
		_ = command.Process.Kill()
		_ = command.Wait() // "signal: killed"
		b.StartTimer()
	}
}

// listening starts the binary and returns its address once it listens.
func listening(b *testing.B, binary string) (address string, command *exec.Cmd) {
	b.Helper()
	portFile := filepath.Join(b.TempDir(), "port")
	command = exec.CommandContext(b.Context(), binary, "-addr", "127.0.0.1:0", "-port-file", portFile, "-log", "off")
	start(b, command)
	poll := time.NewTicker(200 * time.Microsecond)
	defer poll.Stop()
	for range 50_000 {
		if text, err := os.ReadFile(portFile); err == nil && len(text) > 0 {
			return strings.TrimSpace(string(text)), command
		}
		<-poll.C
	}
	b.Fatal("mockgateway does not listen after ten seconds")
	return "", nil
}

// stripeMock starts the mock that Stripe publishes. It responds with fixtures and stores
// nothing.
func stripeMock(b *testing.B) process {
	b.Helper()
	binary := build(b, "github.com/stripe/stripe-mock")
	command := exec.CommandContext(b.Context(), binary, "-http-addr", "127.0.0.1:0")
	out := start(b, command)
	address := regexp.MustCompile(`Listening for HTTP at address: (\S+)`)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if m := address.FindStringSubmatch(lines.Text()); m != nil {
			go func() { _, _ = io.Copy(io.Discard, out) }() // ends with the process
			p := process{name: "stripe-mock", pid: command.Process.Pid, base: "http://" + m[1] + "/v1/payment_intents"}
			p.body = func(n int64) (string, string) {
				return "application/x-www-form-urlencoded", fmt.Sprintf(createForm, n)
			}
			p.one = p.base + "/" + p.create(b, regexp.MustCompile(`"id": ?"(pi_[^"]+)"`))
			return p
		}
	}
	b.Fatal("stripe-mock did not start")
	return process{}
}

// create creates a resource and returns its id.
func (p process) create(b *testing.B, id *regexp.Regexp) string {
	b.Helper()
	var res fasthttp.Response
	require.NoError(b, p.call(&fasthttp.Client{}, http.MethodPost, &fasthttp.Request{}, &res))
	found := id.FindSubmatch(res.Body())
	require.NotNil(b, found, "%s", res.Body())
	return string(found[1])
}

// build compiles a program of this module or of one that it requires.
func build(b *testing.B, program string) string {
	b.Helper()
	binary := filepath.Join(b.TempDir(), filepath.Base(program))
	out, err := exec.CommandContext(b.Context(), "go", "build", "-o", binary, program).CombinedOutput()
	require.NoError(b, err, "%s", out)
	return binary
}

// start runs a program until the benchmark ends and returns its output.
func start(b *testing.B, command *exec.Cmd) io.Reader {
	b.Helper()
	out, err := command.StdoutPipe()
	require.NoError(b, err)
	command.Stderr = os.Stderr
	require.NoError(b, command.Start())
	b.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait() // "signal: killed"
	})
	return out
}

// Both requests are for the same order and are about 1 KB long.
const (
	createBody = `{"external_ref":"REFERENCE","amount":15470,"currency":"BRL","method":"pix",` +
		`"buyer":{"name":"Maria Oliveira","email":"maria.oliveira@example.com","phone":"11987654321","birth_date":"1990-05-17",` +
		`"document":{"type":"CPF","number":"12345678909"},"address":{"street":"Rua das Laranjeiras","number":"210",` +
		`"complement":"apto 31","neighborhood":"Laranjeiras","city":"Rio de Janeiro","state":"RJ","zipCode":"22240003","country":"BR"}},` +
		`"products":[{"name":"Café em grãos, torra média, 500 g","price":4290,"quantity":2,"tangible":true,"sku":"CAFE-500"},` +
		`{"name":"Filtro de papel nº 103","price":890,"quantity":1,"tangible":true,"sku":"FILTRO-103"},` +
		`{"name":"Oficina de métodos de preparo (online)","price":6000,"quantity":1}],` +
		`"metadata":"` + cartMetadata + `","ip_address":"203.0.113.7"}`

	createForm = `amount=15470&currency=brl&customer=cus_QxJm2Lk8Rt4Vn6&automatic_payment_methods[enabled]=true` +
		`&capture_method=automatic_async&description=order-%d&metadata[order]=2027-0117&metadata[cart]=8f2c` +
		`&metadata[campaign]=verao&metadata[channel]=web&metadata[item_1]=CAFE-500+x+2&metadata[item_2]=FILTRO-103+x+1` +
		`&metadata[item_3]=Oficina+de+preparo+x+1&metadata[gift]=yes&metadata[card]=Feliz+anivers%%C3%%A1rio,+Joana` +
		`&metadata[deliver]=after+18h&metadata[leave]=front+desk&metadata[invoice]=NF-e+000.117.204&metadata[seller]=ana` +
		`&payment_method=pm_1PQrStUvWxYz0000000001&receipt_email=maria.oliveira@example.com` +
		`&statement_descriptor_suffix=CAFE&transfer_group=order-2027-0117&shipping[name]=Maria+Oliveira` +
		`&shipping[phone]=%%2B5511987654321&shipping[address][line1]=Rua+das+Laranjeiras,+210` +
		`&shipping[address][line2]=apto+31&shipping[address][city]=Rio+de+Janeiro&shipping[address][state]=RJ` +
		`&shipping[address][postal_code]=22240-003&shipping[address][country]=BR`
)
