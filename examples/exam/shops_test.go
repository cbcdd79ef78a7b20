package exam_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/testmain"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
)

const secret = "whsec_of_the_shops"

// mistakes are those that every shop can make; see README.md.
var mistakes = []string{
	"no_dedup", "memory_dedup", "new_ref", "unsigned", "swallow_errors", "no_amount_check", "late_overwrites", "timeout_is_failure",
	"refund_repeated", "any_refund_is_full", "acks_unknown_order", "check_then_act", "chargeback_ignored", "float_cents", "double_click",
}

// program is a shop that can be started.
type program struct {
	name    string
	command func(t *testing.T) []string
}

// programs are the shops. Without FULL_SIZE it is only the Go shop, since starting the
// others takes seconds.
func programs() []program {
	all := []program{
		{"go", func(t *testing.T) []string {
			t.Helper()
			path, err := goShop()
			require.NoError(t, err)
			return []string{path}
		}},
		{"python", interpreted("python3", "python/shop.py")},
		{"node", interpreted("node", "node/shop.mjs")},
	}
	if os.Getenv("FULL_SIZE")+os.Getenv("EXAMS") == "" {
		return all[:1]
	}
	return all
}

func interpreted(interpreter, script string) func(t *testing.T) []string {
	return func(t *testing.T) []string {
		t.Helper()
		path, err := exec.LookPath(interpreter)
		if err != nil {
			t.Skipf("%s is not installed", interpreter)
		}
		return []string{path, filepath.FromSlash(script)}
	}
}

// binaries is the folder of the Go shop's executable.
var binaries string

var goShop = sync.OnceValues(func() (string, error) {
	path := filepath.Join(binaries, "goshop.exe")
	out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, "./goshop").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "shops")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = os.RemoveAll(dir) }()
		binaries = dir
		if err := noticeChanges(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		testmain.Waiting()
		return m.Run()
	}())
}

// dialects are the gateway's: in the live one, errors, lists and metadata have other
// shapes, and the amount of a transaction is what the gateway settles.
func dialects() map[string][]mockserver.Option {
	return map[string][]mockserver.Option{
		"document": {mockserver.WithDialect(mockserver.Document)},
		"live":     {mockserver.WithDialect(mockserver.Live), mockserver.WithSettledPercent(19.27)},
	}
}

// TestShops runs every shop with a gateway of each dialect. The lives follow each
// other in one process, because starting one costs more than all of them.
func TestShops(t *testing.T) {
	t.Parallel()
	lives := []struct {
		name string
		play func(s *shop)
	}{
		{"plain", plainLife},
		{"cards", cards},
		{"someone else has the reference", referenceTaken},
		{"forged and foreign events", forgedAndForeignEvents},
		{"bad requests", badRequests},
		{"restart", restart},
		{"refund with a lost response", lostRefund},
		{"voucher paid late", voucherPaidLate},
		{"subscriptions and payouts", subscriptionsAndPayouts},
	}
	for _, p := range programs() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			command := p.command(t)
			for name, opts := range dialects() {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					s := newShop(t, command, opts...)
					s.start()
					for _, life := range lives {
						t.Run(life.name, func(t *testing.T) { //nolint:paralleltest // they share the process
							s.t = t
							life.play(s)
						})
					}
					s.t = t
				})
			}
		})
	}
}

// noticeChanges reads the shops, so that go test's cache notices that one has changed.
func noticeChanges() error {
	return filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			_, err = os.ReadFile(filepath.Clean(path))
		}
		return err
	})
}

// shop is a shop's process with its gateway.
type shop struct {
	t        *testing.T
	gw       *mockserver.Server
	command  []string
	env      []string
	url      string
	endpoint string
	process  *exec.Cmd
	output   bytes.Buffer
}

func newShop(t *testing.T, command []string, opts ...mockserver.Option) *shop {
	t.Helper()
	gw := mockserver.Run(t, opts...)
	base, err := gw.Listen("127.0.0.1:0")
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	require.NoError(t, l.Close())
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	endpoint, err := gw.Webhooks.AddEndpoint(mockserver.Endpoint{URL: "http://" + addr + "/webhooks", Secret: gateway.NewSecret(secret)})
	require.NoError(t, err)
	s := &shop{t: t, gw: gw, command: command, url: "http://" + addr, endpoint: endpoint.ID}
	s.env = append(os.Environ(), "EXAM=1", "EXAM_MISTAKE=", "PORT="+port, "GATEWAY_BASE_URL="+base, "GATEWAY_API_KEY="+gw.Key(),
		"GATEWAY_WEBHOOK_SECRET="+secret, "EXAM_DATA_DIR="+t.TempDir())
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			t.Logf("the shop printed:\n%s", s.output.String())
		}
	})
	return s
}

func (s *shop) start() {
	s.t.Helper()
	s.process = exec.Command(s.command[0], s.command[1:]...)
	s.process.Env, s.process.Stdout, s.process.Stderr = s.env, &s.output, &s.output
	require.NoError(s.t, s.process.Start())
	require.Eventually(s.t, func() bool {
		resp, err := http.Get(s.url + "/exam/orders/none")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return true
	}, 30*time.Second, 5*time.Millisecond, "the shop does not respond")
}

// kill ends the process like a crash.
func (s *shop) kill() {
	if s.process != nil {
		_ = s.process.Process.Kill()
		_ = s.process.Wait()
		s.process = nil
	}
}

// report is what a shop says about an order.
type report struct {
	ID          string   `json:"id"`
	Status      string   `json:"status"`
	Paid        int64    `json:"paid"`
	Refunded    int64    `json:"refunded"`
	ChargedBack int64    `json:"charged_back"`
	Shipped     int64    `json:"shipped"`
	Charges     []string `json:"charges"`
}

func (s *shop) call(method, path, body string) (int, []byte) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	require.NoError(s.t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(s.t, err)
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	return resp.StatusCode, b
}

func (s *shop) post(path, body string) int {
	s.t.Helper()
	status, _ := s.call(http.MethodPost, path, body)
	return status
}

func (s *shop) get(path string) int {
	s.t.Helper()
	status, _ := s.call(http.MethodGet, path, "")
	return status
}

func (s *shop) place(id string, cents int64, method, more string) int {
	s.t.Helper()
	return s.post("/exam/orders", fmt.Sprintf(`{"id":%q,"amount":%d,"currency":"BRL","method":%q,"buyer":{
		"name":"José & Ana <Souza>","email":"ana@example.com","document":{"type":"CPF","number":"52998224725"},
		"address":{"street":"Rua das Flores","city":"São Paulo","state":"SP","zipCode":"01001000","country":"BR"}}%s}`, id, cents, method, more))
}

func (s *shop) tick() {
	s.t.Helper()
	now := s.gw.Clock.Now().UTC().Format(time.RFC3339Nano)
	require.Equal(s.t, http.StatusOK, s.post("/exam/tick", fmt.Sprintf(`{"now":%q}`, now)))
}

func (s *shop) report(id string) report {
	s.t.Helper()
	status, body := s.call(http.MethodGet, "/exam/orders/"+id, "")
	require.Equal(s.t, http.StatusOK, status, string(body))
	var r report
	require.NoError(s.t, json.Unmarshal(body, &r))
	assert.Equal(s.t, id, r.ID)
	return r
}

// charge returns the id of the order's only charge.
func (s *shop) charge(id string) string {
	s.t.Helper()
	r := s.report(id)
	require.Len(s.t, r.Charges, 1)
	return r.Charges[0]
}

func (s *shop) delivered() {
	s.t.Helper()
	require.NoError(s.t, s.gw.Wait(s.t.Context()))
}

// charges returns how many charges of this amount the gateway has.
func (s *shop) charges(cents int64) (n int) {
	s.t.Helper()
	for tx, err := range s.gw.Client().Transactions.All(s.t.Context(), gateway.TransactionListParams{}) {
		require.NoError(s.t, err)
		if tx.AmountIs(cents) {
			n++
		}
	}
	return n
}

func plainLife(s *shop) {
	t := s.t
	require.Equal(t, http.StatusCreated, s.place("plain", 1990, "pix", ""))
	tx := s.charge("plain")
	assert.Equal(t, report{ID: "plain", Status: "pending", Charges: []string{tx}}, s.report("plain"))
	assert.Contains(t, []int{200, 201}, s.place("plain", 1990, "pix", ""), "a second click")
	assert.Equal(t, 1, s.charges(1990))

	require.NoError(t, s.gw.Transactions.Pay(tx))
	s.delivered()
	paid := report{ID: "plain", Status: "paid", Paid: 1990, Shipped: 1, Charges: []string{tx}}
	assert.Equal(t, paid, s.report("plain"))
	for _, d := range s.gw.Webhooks.Deliveries() {
		require.Equal(t, mockserver.DeliveryDelivered, d.State, d.Kind)
		require.NoError(t, s.gw.Webhooks.Redeliver(d.ID))
	}
	s.delivered()
	assert.Equal(t, paid, s.report("plain"), "after every event was delivered twice")

	for range 2 { // the operator clicks twice
		assert.Equal(t, http.StatusOK, s.post("/exam/orders/plain/refunds", `{"id":"r1","amount":500}`))
	}
	assert.Equal(t, http.StatusConflict, s.post("/exam/orders/plain/refunds", `{"id":"r2","amount":1491}`), "more than is left")
	s.delivered()
	assert.Equal(t, report{ID: "plain", Status: "partially_refunded", Paid: 1990, Refunded: 500, Shipped: 1, Charges: []string{tx}}, s.report("plain"))
	assert.Equal(t, http.StatusOK, s.post("/exam/orders/plain/refunds", `{"id":"r3","amount":1490}`))
	s.delivered()
	assert.Equal(t, report{ID: "plain", Status: "refunded", Paid: 1990, Refunded: 1990, Shipped: 1, Charges: []string{tx}}, s.report("plain"))
}

func cards(s *shop) {
	t := s.t
	assert.Equal(t, http.StatusPaymentRequired, s.place("refused", 1990, "credit_card", `,"card_token":"pgct_refused_1"`))
	assert.Equal(t, "failed", s.report("refused").Status)
	assert.Equal(t, http.StatusPaymentRequired, s.place("invalid", 1990, "credit_card", `,"card_token":"not_a_token"`))
	assert.Equal(t, "failed", s.report("invalid").Status)

	require.Equal(t, http.StatusCreated, s.place("card", 1990, "credit_card", `,"card_token":"pgct_captured_1"`))
	s.delivered()
	assert.Equal(t, report{ID: "card", Status: "paid", Paid: 1990, Shipped: 1, Charges: []string{s.charge("card")}}, s.report("card"))
	require.Equal(t, http.StatusOK, s.post("/exam/orders/card/refunds", `{"id":"r1","amount":500}`))
	require.NoError(t, s.gw.Transactions.Chargeback(s.charge("card")))
	s.delivered()
	assert.Equal(t, report{
		ID: "card", Status: "charged_back", Paid: 1990, Refunded: 500, ChargedBack: 1490, Shipped: 1, Charges: []string{s.charge("card")},
	}, s.report("card"))
}

// The response of the create is lost for good, the webhooks too, and the process dies.
func restart(s *shop) {
	t := s.t
	require.Equal(t, http.StatusCreated, s.place("kept", 2980, "pix", ""))
	require.NoError(t, s.gw.Webhooks.PauseEndpoint(s.endpoint))
	require.NoError(t, s.gw.Faults.Add(mockserver.Status(http.StatusServiceUnavailable).Applied().On("transactions.create")))
	require.Equal(t, http.StatusAccepted, s.place("lost", 2990, "pix", ""))
	require.Equal(t, "unknown", s.report("lost").Status)
	s.kill()
	s.gw.Faults.Clear()
	require.NoError(t, s.gw.Transactions.Pay(s.only(2990)))
	s.delivered()
	require.NoError(t, s.gw.Webhooks.ResumeEndpoint(s.endpoint))
	s.start()

	require.Equal(t, "pending", s.report("kept").Status)
	require.NoError(t, s.gw.Transactions.Pay(s.charge("kept")))
	s.delivered()
	assert.Equal(t, "paid", s.report("kept").Status)
	s.tick()
	assert.Equal(t, report{ID: "lost", Status: "paid", Paid: 2990, Shipped: 1, Charges: []string{s.charge("lost")}}, s.report("lost"))
	assert.Equal(t, 1, s.charges(2990))
}

func lostRefund(s *shop) {
	t := s.t
	// A refund that was made, though its response was lost, is not sent again.
	require.NoError(t, s.gw.Webhooks.PauseEndpoint(s.endpoint))
	require.NoError(t, s.gw.Faults.Add(mockserver.LoseResponse().On("transactions.refund").Times(1)))
	require.Equal(t, http.StatusAccepted, s.post("/exam/orders/lost/refunds", `{"id":"r1","amount":100}`))
	s.kill()
	s.start()
	s.tick()
	assert.EqualValues(t, 100, s.report("lost").Refunded)
	assert.Equal(t, http.StatusOK, s.post("/exam/orders/lost/refunds", `{"id":"r1","amount":100}`))

	// One that was not made is sent again, but not at once.
	require.NoError(t, s.gw.Faults.Add(mockserver.ResetBefore().On("transactions.refund").Times(1)))
	require.Equal(t, http.StatusAccepted, s.post("/exam/orders/kept/refunds", `{"id":"r1","amount":300}`))
	s.tick()
	assert.Zero(t, s.report("kept").Refunded)
	require.NoError(t, s.gw.Clock.Advance(10*time.Minute))
	s.tick()
	assert.EqualValues(t, 300, s.report("kept").Refunded)
	assert.Equal(t, http.StatusOK, s.post("/exam/orders/kept/refunds", `{"id":"r1","amount":300}`))
	require.NoError(t, s.gw.Webhooks.ResumeEndpoint(s.endpoint))
}

// only returns the id of the only charge of this amount.
func (s *shop) only(cents int64) (id string) {
	s.t.Helper()
	for tx, err := range s.gw.Client().Transactions.All(s.t.Context(), gateway.TransactionListParams{}) {
		require.NoError(s.t, err)
		if tx.AmountIs(cents) {
			require.Empty(s.t, id, "two charges")
			id = tx.ID
		}
	}
	require.NotEmpty(s.t, id)
	return id
}

func referenceTaken(s *shop) {
	t := s.t
	require.Equal(t, http.StatusCreated, s.place("own", 1990, "pix", ""))
	own, err := s.gw.Client().Transactions.Get(t.Context(), s.charge("own"))
	require.NoError(t, err)
	_, err = s.gw.Client().Transactions.Create(t.Context(), gateway.TransactionParams{
		ExternalRef: strings.Replace(own.ExternalRef, "own", "taken", 1), Amount: 100, Method: gateway.Pix,
		Buyer:    gateway.BuyerParams{Name: "Rui", Email: "rui@example.com", Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"}},
		Products: []gateway.Product{{Name: "Another system's", Price: 100}},
	})
	require.NoError(t, err)
	assert.Equal(t, http.StatusAccepted, s.place("taken", 1990, "pix", ""))
	require.NoError(t, s.gw.Transactions.Pay(s.only(100)))
	s.delivered()
	s.tick()
	assert.Equal(t, report{ID: "taken", Status: "review", Charges: []string{}}, s.report("taken"))
}

func voucherPaidLate(s *shop) {
	t := s.t
	require.Equal(t, http.StatusCreated, s.place("voucher", 1990, "voucher", ""))
	require.NoError(t, s.gw.Clock.Advance(4*24*time.Hour))
	s.tick()
	assert.Equal(t, "failed", s.report("voucher").Status)
	require.NoError(t, s.gw.Transactions.Pay(s.charge("voucher")))
	s.delivered()
	assert.Equal(t, report{ID: "voucher", Status: "paid", Paid: 1990, Shipped: 1, Charges: []string{s.charge("voucher")}}, s.report("voucher"))
}

// Only the Go shop offers the hooks for subscriptions and payouts.
func subscriptionsAndPayouts(s *shop) {
	t := s.t
	if !strings.Contains(s.command[0], "goshop") {
		assert.Equal(t, http.StatusNotFound, s.post("/exam/subscriptions", `{}`))
		assert.Equal(t, http.StatusNotFound, s.post("/exam/payouts", `{}`))
		return
	}
	read := func(path string) string {
		_, body := s.call(http.MethodGet, path, "")
		return string(body)
	}
	require.NoError(t, s.gw.Faults.Add(mockserver.LoseResponse().On("subscriptions.create").Times(1)))
	for range 2 {
		require.Equal(t, http.StatusCreated, s.post("/exam/subscriptions", `{"id":"s1","amount":4990,"interval":"month","card_token":"pgct_ok_1"}`))
	}
	assert.JSONEq(t, `{"id":"s1","status":"active","periods":1,"paid":4990}`, read("/exam/subscriptions/s1"))
	require.NoError(t, s.gw.Clock.Advance(32*24*time.Hour))
	s.delivered()
	assert.JSONEq(t, `{"id":"s1","status":"active","periods":2,"paid":9980}`, read("/exam/subscriptions/s1"))

	require.NoError(t, s.gw.Faults.Add(mockserver.LoseResponse().On("transfers.create").Times(1)))
	for range 2 {
		require.Equal(t, http.StatusCreated, s.post("/exam/payouts", `{"id":"p1","amount":5000,"pix_key":"ana@example.com"}`))
	}
	require.NoError(t, s.gw.Clock.Advance(time.Minute))
	s.delivered()
	assert.JSONEq(t, `{"id":"p1","status":"paid","paid":5000}`, read("/exam/payouts/p1"))

	require.Equal(t, http.StatusCreated, s.post("/exam/payouts", `{"id":"p2","amount":6000,"pix_key":"ana@example.com"}`))
	require.NoError(t, s.gw.Webhooks.PauseEndpoint(s.endpoint))
	require.NoError(t, s.gw.Clock.Advance(32*24*time.Hour))
	s.kill()
	s.start()
	s.tick()
	assert.JSONEq(t, `{"id":"s1","status":"active","periods":3,"paid":14970}`, read("/exam/subscriptions/s1"))
	assert.JSONEq(t, `{"id":"p2","status":"paid","paid":6000}`, read("/exam/payouts/p2"))
	n := 0
	for _, err := range s.gw.Client().Transfers.All(t.Context(), gateway.TransferListParams{}) {
		require.NoError(t, err)
		n++
	}
	assert.Equal(t, 2, n)
}

func forgedAndForeignEvents(s *shop) {
	t := s.t
	require.Equal(t, http.StatusCreated, s.place("forged", 1990, "pix", ""))
	body := fmt.Sprintf(`{"id":"evt_1","event":"transaction","data":{"id":%q,"event_type":"transaction.paid","status":"paid","amount":1990}}`, s.charge("forged"))
	assert.Equal(t, http.StatusUnauthorized, s.post("/webhooks", body))
	assert.Equal(t, "pending", s.report("forged").Status)
	for _, kind := range []string{"transaction.paid", "payout.transferred", "subscription.renewed"} {
		_, err := s.gw.Webhooks.SendSample(webhook.Kind(kind))
		require.NoError(t, err)
	}
	s.delivered()
	for _, d := range s.gw.Webhooks.Deliveries() {
		assert.Equal(t, mockserver.DeliveryDelivered, d.State, "%s is of no use, but a retry would not help", d.Kind)
	}
}

func badRequests(s *shop) {
	t := s.t
	for _, body := range []string{``, `[]`, `{`, `{}`, `{"id":"x1","amount":0,"method":"pix"}`, `{"id":"x1","amount":1.5,"method":"pix"}`, `{"id":"x1","amount":100,"method":"cash"}`} {
		status := s.post("/exam/orders", body)
		assert.True(t, status == 400 || status == 422, "%s: %d", body, status)
	}
	assert.Equal(t, http.StatusNotFound, s.post("/exam/orders/none/refunds", `{"id":"r1","amount":500}`))
	assert.Equal(t, http.StatusNotFound, s.post("/nothing", `{}`))
	assert.Equal(t, http.StatusNotFound, s.get("/exam/orders/x1"))
}

// Without EXAM=1 a shop must not have the hooks.
func TestNoHooksOutsideAnExam(t *testing.T) {
	t.Parallel()
	for _, p := range programs() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, p.command(t))
			s.env = append(s.env, "EXAM=")
			s.start()
			assert.Equal(t, http.StatusNotFound, s.place("x1", 1990, "pix", ""))
			assert.Equal(t, http.StatusUnauthorized, s.post("/webhooks", `{}`))
			assert.Zero(t, s.charges(1990))
		})
	}
}

func TestBadSettings(t *testing.T) {
	t.Parallel()
	for _, p := range programs() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			command := p.command(t)
			s := newShop(t, command)
			for name, c := range map[string]struct {
				args []string
				env  string
				want []string
			}{
				"unknown mistake":                 {[]string{"--mistake", "no_such"}, "", append([]string{"no_such"}, mistakes...)},
				"unknown mistake in EXAM_MISTAKE": {nil, "EXAM_MISTAKE=no_such", append([]string{"no_such"}, mistakes...)},
				"no key":                          {nil, "GATEWAY_API_KEY=", []string{"GATEWAY_API_KEY"}},
				"no folder":                       {nil, "EXAM_DATA_DIR=", []string{"EXAM_DATA_DIR"}},
				"a wrong port":                    {nil, "PORT=http", []string{"PORT", "http"}},
			} {
				t.Run(name, func(t *testing.T) {
					cmd := exec.CommandContext(t.Context(), command[0], slices.Concat(command[1:], c.args)...)
					cmd.Env = append(slices.Clone(s.env), c.env)
					out, err := cmd.CombinedOutput()
					require.Error(t, err)
					assert.Equal(t, 2, cmd.ProcessState.ExitCode(), string(out))
					for _, want := range c.want {
						assert.Contains(t, string(out), want)
					}
				})
			}
		})
	}
}
