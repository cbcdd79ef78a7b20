// Crash is a shop on package merchant whose process is killed again and again while
// buyers pay and return goods. In the end nothing was lost and nothing happened twice.
//
//	cd examples/crash && go run .
//
// The shop, in shop.go, is what a merchant would write. The rest are its process, the mock
// gateway, the buyers, the kills and the count.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/examples/internal/demo"
	"github.com/gateway-go/gateway/mockserver"
)

const stormTime, buyers = 9 * time.Second, 12

func main() {
	if !isShop() {
		demo.Main("crash", run)
	}
}

// stage is the environment of the shop.
type stage struct {
	*demo.Printer

	gw          *mockserver.Server
	environment []string // of the shop
	shop        *exec.Cmd
	address     atomic.Pointer[string] // "" while no process serves
	books       *shop                  // a process that only looks

	cut, lost atomic.Int64 // requests of buyers, and webhooks

	mu              sync.Mutex
	orders, returns []string // what buyers paid, and returned
}

// run runs the demonstration and returns the first expectation that failed.
func run(ctx context.Context, out *demo.Printer) (err error) {
	folder, err := os.MkdirTemp("", "crash-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	// A webhook that reaches no process is not sent again: the shop has to find out by itself.
	gw, err := mockserver.New(mockserver.WithStart(time.Now()), mockserver.WithWebhookRetries())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, gw.Close()) }()
	address, err := gw.Listen("127.0.0.1:0") //nolint:contextcheck // it ends with Close
	if err != nil {
		return err
	}
	client, err := gateway.New(address, gateway.BearerToken(gw.Key()))
	if err != nil {
		return err
	}
	file := filepath.Join(folder, "shop.db")
	s := &stage{Printer: out, gw: gw, environment: []string{
		databaseVariable + "=" + file, secretVariable + "=" + gw.Secret().Reveal(), "GATEWAY_BASE_URL=" + address, "GATEWAY_API_KEY=" + gw.Key(),
	}}
	if s.books, err = openShop(ctx, file, client, gw.Secret()); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.books.db.Close()) }()
	if err := s.start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.kill()) }()
	gw.Webhooks.Send(s)
	return demo.Steps(ctx, s.storm, s.recover, s.count)
}

// The variables of the shop's process, besides those of [gateway.NewFromEnv]. The first one
// makes this program the shop.
const databaseVariable, secretVariable = "CRASH_EXAMPLE_DATABASE", "GATEWAY_WEBHOOK_SECRET"

// isShop reports whether this process is the shop, after it has ended.
func isShop() bool {
	file := os.Getenv(databaseVariable)
	if file == "" {
		return false
	}
	if err := serve(file); err != nil {
		log.Fatal("shop: ", err)
	}
	return true
}

// serve serves until the process is killed, or the program that started it is gone.
func serve(file string) error {
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	client, err := gateway.NewFromEnv()
	if err != nil {
		return err
	}
	s, err := openShop(ctx, file, client, gateway.NewSecret(os.Getenv(secretVariable)))
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	_, _ = fmt.Println(listener.Addr())
	server := &http.Server{Handler: s.handler(), ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(listener) }() // without it, no buyer gets a response
	return s.Run(ctx)
}

// start starts a process of the shop.
func (s *stage) start(ctx context.Context) error {
	s.shop = exec.CommandContext(ctx, os.Args[0]) //nolint:gosec // it is this program
	s.shop.Env, s.shop.Stderr = append(os.Environ(), s.environment...), os.Stderr
	_, err := s.shop.StdinPipe() // ends with this process
	stdout, err2 := s.shop.StdoutPipe()
	if err := errors.Join(err, err2, s.shop.Start()); err != nil {
		return err
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	line = strings.TrimSpace(line)
	s.address.Store(&line)
	return err
}

// kill kills the shop with SIGKILL: it ends in the middle of whatever it does.
func (s *stage) kill() error {
	s.address.Store(new(string))
	err := s.shop.Process.Kill()
	_ = s.shop.Wait() // says that it was killed
	return err
}

// post sends a request to the process that runs, as a load balancer does. The status is 503
// if there is none, and 502 if it was killed before it responded.
func (s *stage) post(ctx context.Context, path string, header http.Header, body io.Reader) (status int, text string) {
	address := *s.address.Load()
	if address == "" {
		return http.StatusServiceUnavailable, ""
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+path, body)
	if err != nil {
		return http.StatusInternalServerError, err.Error()
	}
	req.Header = header
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return http.StatusBadGateway, err.Error()
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return http.StatusBadGateway, err.Error()
	}
	return resp.StatusCode, string(b)
}

// ServeHTTP passes a webhook to the shop.
func (s *stage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status, _ := s.post(r.Context(), "/webhooks", r.Header.Clone(), r.Body)
	if status != http.StatusOK {
		s.lost.Add(1)
	}
	w.WriteHeader(status)
}

// ask repeats a buyer's request, as a reload of the page does, until it has a response.
func (s *stage) ask(ctx context.Context, path string) (text string, err error) {
	for ctx.Err() == nil {
		var status int
		switch status, text = s.post(ctx, path, nil, nil); {
		case status == http.StatusOK && text != "":
			return text, nil
		case status == http.StatusBadGateway:
			s.cut.Add(1)
		}
		time.Sleep(50 * time.Millisecond)
	}
	return "", fmt.Errorf("%s: %w: %s", path, ctx.Err(), text)
}

// storm kills the shop while buyers pay.
func (s *stage) storm(ctx context.Context) (err error) {
	s.Title("A shop is killed for %v while %d buyers pay and return goods", stormTime, buyers)
	// With the latency of a network, processes die between a request and its response.
	if err := s.gw.Faults.Add(mockserver.Latency(30 * time.Millisecond).On("transactions.*").Probability(1)); err != nil {
		return err
	}
	deadline, ended := time.Now().Add(stormTime), make(chan error, buyers)
	for buyer := range buyers {
		go func() { ended <- s.buy(ctx, buyer, deadline) }()
	}
	kills := 0
	for ; err == nil && time.Now().Before(deadline); kills++ {
		time.Sleep(time.Duration(200+rand.IntN(1000)) * time.Millisecond) //nolint:gosec // no secret
		err = errors.Join(s.kill(), s.start(ctx))
	}
	for range buyers {
		err = errors.Join(err, <-ended)
	}
	s.Printf("%d kills cut off %d requests of buyers, who reload the page; %d webhooks are lost", kills, s.cut.Load(), s.lost.Load())
	return err
}

// buy orders and pays until the deadline, and returns every second order.
func (s *stage) buy(ctx context.Context, buyer int, deadline time.Time) error {
	for n := 1; time.Now().Before(deadline); n++ {
		order := fmt.Sprintf("%d.%d", buyer, n)
		transaction, err := s.ask(ctx, "/orders/"+order)
		if err == nil {
			err = s.gw.Transactions.Pay(transaction)
		}
		s.add(&s.orders, order)
		if err == nil && n%2 == 1 {
			_, err = s.ask(ctx, "/orders/"+order+"/return")
			s.add(&s.returns, order)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) add(list *[]string, order string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*list = append(*list, order)
}

// recover waits until the shop has finished what its dead processes began. Reconcile finds
// the payments whose webhooks were lost; the shop's Run would find them within minutes.
func (s *stage) recover(ctx context.Context) error {
	s.Title("The last process finds out what the others left")
	began := time.Now()
	err := errors.Join(s.gw.Wait(ctx), s.books.Reconcile(ctx), s.books.Idle(ctx))
	s.Printf("after %.1f s nothing waits any more", time.Since(began).Seconds())
	return err
}

// count compares what buyers did with the gateway and with the shop's database.
func (s *stage) count(ctx context.Context) error {
	s.Title("Count: each order is charged, shipped, refunded and credited once")
	var charged, refunded, shipped, credited []string
	var in, out int64 // cents
	for tx, err := range s.gw.Client().Transactions.All(ctx, gateway.TransactionListParams{}) {
		if err != nil {
			return err
		}
		order := []string{strings.Split(tx.ExternalRef, "-")[1]} // shop-ORDER-ATTEMPT
		charged = append(charged, order...)
		refunded = append(refunded, slices.Repeat(order, int(tx.RefundedAmount/credit))...)
		in, out = in+tx.Paid(), out+tx.RefundedAmount
	}
	for _, order := range s.orders {
		var ships, credits int
		if err := s.books.db.QueryRowContext(ctx, `SELECT shipped, credited FROM orders WHERE id = ?`, order).Scan(&ships, &credits); err != nil {
			return err
		}
		shipped = append(shipped, slices.Repeat([]string{order}, ships)...)
		credited = append(credited, slices.Repeat([]string{order}, credits)...)
	}
	wrong := 0
	s.Printf("%-24s expected    found     lost  doubled", "")
	row := func(name string, expected, found []string) {
		lost, doubled := compare(expected, found)
		s.Printf("%-24s %8d %8d %8d %8d", name, len(expected), len(found), lost, doubled)
		wrong += lost + doubled
	}
	row("charges at the gateway", s.orders, charged)
	row("shipments by Goods", s.orders, shipped)
	row("refunds at the gateway", s.returns, refunded)
	row("credits by Refunded", s.returns, credited)
	month, differences, err := s.books.CheckMonth(ctx, "shop", s.gw.Clock.Now().UTC().Format("2006-01"))
	if err != nil {
		return err
	}
	problems, err := s.books.Problems(ctx)
	if err != nil {
		return err
	}
	s.Printf("the shop's books: %s paid, %s refunded", gateway.FormatAmount(month.Paid, gateway.BRL), gateway.FormatAmount(month.Refunded, gateway.BRL))
	s.Printf("the gateway's:    %s paid, %s refunded", gateway.FormatAmount(in, gateway.BRL), gateway.FormatAmount(out, gateway.BRL))
	if wrong > 0 || month.Paid != in || month.Refunded != out || len(differences) > 0 || len(problems) > 0 {
		return fmt.Errorf("the counts differ; differences of the books: %v; problems: %d", differences, len(problems))
	}
	return nil
}

// compare returns how many of the expected were not found, and how many were found that
// are not expected, or once too often.
func compare(expected, found []string) (lost, doubled int) {
	left := make(map[string]int)
	for _, order := range expected {
		left[order]++
	}
	for _, order := range found {
		left[order]--
	}
	for _, n := range left {
		lost, doubled = lost+max(n, 0), doubled+max(-n, 0)
	}
	return lost, doubled
}
