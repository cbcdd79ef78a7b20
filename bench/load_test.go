package bench_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// clients is how many connections the load generator keeps busy, per core.
const clients = 8

// BenchmarkLoad puts mock gateways, each a process of its own, under the same
// load over loopback. A figure is the time from one response to the next.
func BenchmarkLoad(b *testing.B) {
	servers := []process{mockgateway(b), stripeMock(b)}
	for _, method := range []string{http.MethodPost, http.MethodGet} {
		for _, server := range servers {
			b.Run(method+"/"+server.name, func(b *testing.B) { load(b, method, server) })
		}
	}
}

// process is a running mock gateway.
type process struct {
	name string
	base string // URL of the collection
	one  string // URL of a resource
	body func(n int64) (contentType, body string)
}

func load(b *testing.B, method string, server process) {
	b.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	b.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport}
	b.SetParallelism(clients)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := server.call(b.Context(), client, method); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
}

// sent makes the reference of every create unique, across all runs against one
// process.
var sent atomic.Int64

func (p process) call(ctx context.Context, client *http.Client, method string) error {
	_, err := p.read(ctx, client, method)
	return err
}

func (p process) read(ctx context.Context, client *http.Client, method string) ([]byte, error) {
	url, contentType, body := p.one, "", io.Reader(nil)
	if method == http.MethodPost {
		var text string
		contentType, text = p.body(sent.Add(1))
		url, body = p.base, strings.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer sk_test_mock")
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	if res.StatusCode/100 != 2 {
		return nil, fmt.Errorf("%s %s: %s %s", p.name, method, res.Status, answer)
	}
	return answer, nil
}

// mockgateway starts this project's binary.
func mockgateway(b *testing.B) process {
	b.Helper()
	binary := build(b, "github.com/gateway-go/gateway/mockserver/cmd/mockgateway")
	address, _ := listening(b, binary)
	p := process{name: "gateway", base: "http://" + address + "/v2/transactions"}
	p.body = func(n int64) (string, string) {
		return "application/json", strings.Replace(createBody, "REFERENCE", fmt.Sprintf("order-%d", n), 1)
	}
	p.one = p.base + "/" + p.create(b, regexp.MustCompile(`"data":\{"id":"([^"]+)"`))
	return p
}

// BenchmarkMockBinaryStart starts the binary until it listens.
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

// stripeMock starts the mock that stripe publishes. It responds with fixtures:
// nothing is stored.
func stripeMock(b *testing.B) process {
	b.Helper()
	binary := build(b, "github.com/stripe/stripe-mock")
	out := start(b, exec.CommandContext(b.Context(), binary, "-http-addr", "127.0.0.1:0"))
	address := regexp.MustCompile(`Listening for HTTP at address: (\S+)`)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if m := address.FindStringSubmatch(lines.Text()); m != nil {
			go func() { _, _ = io.Copy(io.Discard, out) }() // ends with the process
			p := process{name: "stripe-mock", base: "http://" + m[1] + "/v1/payment_intents"}
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

// create makes a resource and returns its id.
func (p process) create(b *testing.B, id *regexp.Regexp) string {
	b.Helper()
	answer, err := p.read(b.Context(), &http.Client{}, http.MethodPost)
	require.NoError(b, err)
	found := id.FindSubmatch(answer)
	require.NotNil(b, found, "%s", answer)
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

// The two requests are the same order, about 1 KB each.
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
