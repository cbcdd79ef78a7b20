// Movein is a shop that was written by hand, with orders in every state, and that moves to package
// merchant while buyers pay and return goods. Its processes are killed again and again meanwhile. In
// the end the books equal the gateway's, and nothing was shipped, charged or refunded twice.
//
//	cd examples/movein && go run .
//
// The old shop is in old.go, the new one in shop.go; both have one table of orders. The rest are
// the mock gateway, the buyers, the kills and the count. MOVEIN_ORDERS sets how many orders there
// are.
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
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/examples/internal/demo"
	"github.com/gateway-go/gateway/mockserver"
)

func main() {
	if !isShop() {
		demo.Main("movein", run)
	}
}

// stage is the environment of the shops.
type stage struct {
	*demo.Printer

	gw          *mockserver.Server
	orders      int
	old         *oldShop
	environment []string // of the new shop
	process     *exec.Cmd
	address     atomic.Pointer[string] // "" while no process serves
	books       *shop                  // a process that only looks
	webhook     atomic.Pointer[http.Handler]
}

// run runs the demonstration and returns the first expectation that failed.
func run(ctx context.Context, out *demo.Printer) (err error) {
	orders := 1000
	if n, err := strconv.Atoi(os.Getenv("MOVEIN_ORDERS")); err == nil {
		orders = n
	}
	folder, err := os.MkdirTemp("", "movein-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	gw, err := mockserver.New(mockserver.WithStart(time.Now()), mockserver.WithDialect(mockserver.Live))
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
	db, err := openDB(ctx, file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rate := max(orders/5, 20) // a real gateway has limits
	s := &stage{
		Printer: out, gw: gw, orders: orders, old: &oldShop{db, client},
		environment: []string{
			databaseVariable + "=" + file, secretVariable + "=" + gw.Secret().Reveal(), "GATEWAY_BASE_URL=" + address, "GATEWAY_API_KEY=" + gw.Key(),
			rateVariable + "=" + strconv.Itoa(rate),
		},
	}
	s.address.Store(new(string))
	handler, err := s.old.webhook(gw.Secret())
	if err != nil {
		return err
	}
	s.webhook.Store(&handler)
	gw.Webhooks.Send(s)
	if err := s.sell(ctx); err != nil {
		return err
	}
	if s.books, err = openShop(ctx, file, client, gw.Secret(), rate); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.books.db.Close(), s.kill()) }()
	return demo.Steps(ctx, s.move, s.settle, s.count)
}

// The variables of the new shop's process, besides those of [gateway.NewFromEnv]. The first one
// makes this program the shop.
const databaseVariable, secretVariable, rateVariable = "MOVEIN_EXAMPLE_DATABASE", "GATEWAY_WEBHOOK_SECRET", "MOVEIN_EXAMPLE_RATE"

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
	rate, err := strconv.Atoi(os.Getenv(rateVariable))
	if err != nil {
		return err
	}
	s, err := openShop(ctx, file, client, gateway.NewSecret(os.Getenv(secretVariable)), rate)
	if err != nil {
		return err
	}
	// Each process adds what no other one has: a list that was cut off goes on.
	adding := make(chan error, 1)
	go func() {
		_, err := s.AdoptAll(ctx, (&oldShop{s.db, client}).adoptions(ctx))
		adding <- err
	}()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	_, _ = fmt.Println(listener.Addr())
	server := &http.Server{Handler: s.handler(), ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(listener) }() // without it, no buyer gets a response
	return errors.Join(s.Run(ctx), <-adding)
}

// start starts a process of the new shop.
func (s *stage) start(ctx context.Context) error {
	s.process = exec.CommandContext(ctx, os.Args[0]) //nolint:gosec // it is this program
	s.process.Env, s.process.Stderr = append(os.Environ(), s.environment...), os.Stderr
	_, err := s.process.StdinPipe() // ends with this process
	stdout, err2 := s.process.StdoutPipe()
	if err := errors.Join(err, err2, s.process.Start()); err != nil {
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
	if s.process == nil {
		return nil
	}
	err := s.process.Process.Kill()
	_ = s.process.Wait() // says that it was killed
	s.process = nil
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

// ServeHTTP is the webhook URL: first that of the old shop, then that of the new one.
func (s *stage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if old := s.webhook.Load(); old != nil {
		(*old).ServeHTTP(w, r)
		return
	}
	status, _ := s.post(r.Context(), "/webhooks", r.Header.Clone(), r.Body)
	w.WriteHeader(status)
}

// ask repeats a buyer's request, as a reload of the page does, until it has a response.
func (s *stage) ask(ctx context.Context, path string) (text string, err error) {
	for ctx.Err() == nil {
		var status int
		if status, text = s.post(ctx, path, nil, nil); status == http.StatusOK && text != "" {
			return text, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return "", fmt.Errorf("%s: %w: %s", path, ctx.Err(), text)
}

// price is what an order costs, in cents.
func price(i int) int64 { return int64(1000 + i%700) }

// The states of the old shop's orders, by their number.
const (
	open     = iota // the buyer has a code
	paid            // and shipped
	partly          // a part of it went back
	returned        // all of it went back
	disputed        // the bank withholds it
	ended           // the code has expired
	states
)

func id(i int) string { return fmt.Sprintf("A%06d", i) }

// sell makes the orders of the old shop.
func (s *stage) sell(ctx context.Context) error {
	s.Title("The old shop has %d orders in %d states", s.orders, states)
	slots, failed := make(chan struct{}, 8), make(chan error, s.orders)
	for i := range s.orders {
		slots <- struct{}{}
		go func() {
			failed <- s.sellOne(ctx, i)
			<-slots
		}()
	}
	var err error
	for range s.orders {
		err = errors.Join(err, <-failed)
	}
	return errors.Join(err, s.gw.Wait(ctx))
}

func (s *stage) sellOne(ctx context.Context, i int) error {
	t, err := s.old.charge(ctx, id(i), price(i))
	if err != nil || i%states == open {
		return err
	}
	if i%states == ended {
		return s.gw.Transactions.Cancel(t.ID)
	}
	if err := errors.Join(s.gw.Transactions.Pay(t.ID), s.shipped(ctx, id(i))); err != nil {
		return err
	}
	switch i % states {
	case partly:
		return s.old.refund(ctx, id(i), price(i)/4)
	case returned:
		return s.old.refund(ctx, id(i), price(i))
	case disputed:
		return s.gw.Transactions.OpenDispute(t.ID)
	}
	return nil
}

// shipped waits until the old shop has shipped an order.
func (s *stage) shipped(ctx context.Context, order string) error {
	for ctx.Err() == nil {
		var n int
		if err := s.old.db.QueryRowContext(ctx, `SELECT COUNT(*) FROM parcels WHERE order_id = ?`, order).Scan(&n); err != nil || n > 0 {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("order %s was not shipped: %w", order, ctx.Err())
}

// move adopts all orders while buyers go on, and the process is killed again and again.
func (s *stage) move(ctx context.Context) (err error) {
	s.Title("They move while buyers pay and return goods")
	if err := s.start(ctx); err != nil {
		return err
	}
	s.webhook.Store(nil) // the webhook URL is that of the new shop
	began, kills := time.Now(), 0
	buying := make(chan error, 1)
	go func() { buying <- s.buy(ctx) }()
	for {
		time.Sleep(time.Duration(500+rand.IntN(1000)) * time.Millisecond) //nolint:gosec // no secret
		waiting, done, failed, err := s.books.Adoptions(ctx, "shop")
		if err != nil {
			return err
		}
		if waiting == 0 && done == s.orders {
			s.Printf("%d orders are in the books after %.1f s and %d kills, %d could not be adopted", done, time.Since(began).Seconds(), kills, failed)
			break
		}
		if failed > 0 {
			return fmt.Errorf("%d adoptions have failed", failed)
		}
		if kills < 6 {
			kills++
			if err := errors.Join(s.kill(), s.start(ctx)); err != nil {
				return err
			}
		}
	}
	return <-buying
}

// buy pays a third of what is open by the code that a page of the new shop shows, a third by the old
// code, and returns some of what is paid.
func (s *stage) buy(ctx context.Context) error {
	slots, failed := make(chan struct{}, 8), make(chan error, s.orders)
	var begun sync.WaitGroup
	for i := range s.orders {
		if ctx.Err() != nil {
			break
		}
		slots <- struct{}{}
		begun.Go(func() {
			defer func() { <-slots }()
			if err := s.buyOne(ctx, i); err != nil {
				failed <- fmt.Errorf("order %s: %w", id(i), err)
			}
		})
	}
	begun.Wait()
	close(failed)
	var err error
	for one := range failed {
		err = errors.Join(err, one)
	}
	return err
}

func (s *stage) buyOne(ctx context.Context, i int) error {
	switch i % (3 * states) {
	case open: // the buyer has reloaded the page
		transaction, err := s.ask(ctx, "/orders/"+id(i))
		if err != nil {
			return err
		}
		return s.gw.Transactions.Pay(transaction)
	case states + open: // the buyer has the code in a mail
		var transaction string
		if err := s.old.db.QueryRowContext(ctx, `SELECT transaction_id FROM orders WHERE id = ?`, id(i)).Scan(&transaction); err != nil {
			return err
		}
		return s.gw.Transactions.Pay(transaction)
	case paid:
		_, err := s.ask(ctx, "/orders/"+id(i)+"/return")
		return err
	}
	return nil
}

// settle waits until nothing waits any more.
func (s *stage) settle(ctx context.Context) error {
	s.Title("What waits is done")
	began := time.Now()
	err := errors.Join(s.gw.Wait(ctx), s.books.Reconcile(ctx), s.books.Idle(ctx))
	s.Printf("after %.1f s nothing waits any more", time.Since(began).Seconds())
	return err
}

// count compares the gateway, the books and the shop's own table.
func (s *stage) count(ctx context.Context) error {
	s.Title("Count: the books equal the gateway's, and nothing happened twice")
	paidBy, left := make(map[string]int), make(map[string]int64)
	var in, out int64 // cents
	transactions := 0
	for t, err := range s.gw.Client().Transactions.All(ctx, gateway.TransactionListParams{}) {
		if err != nil {
			return err
		}
		transactions++
		if t.Paid() > 0 {
			paidBy[t.ExternalRef]++
			left[t.ExternalRef] = t.Paid() - t.RefundedAmount
		}
		in, out = in+t.Paid(), out+t.RefundedAmount
	}
	var wrong []string
	fail := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if transactions != s.orders {
		fail("the gateway has %d transactions", transactions)
	}
	parcels := 0
	for i := range s.orders {
		var sent int
		if err := s.old.db.QueryRowContext(ctx, `SELECT COUNT(*) FROM parcels WHERE order_id = ?`, id(i)).Scan(&sent); err != nil {
			return err
		}
		parcels += sent
		if sent != paidBy[id(i)] {
			fail("order %s: %d parcels, %d payments", id(i), sent, paidBy[id(i)])
		}
		o, err := s.books.Order(ctx, id(i))
		if err != nil {
			return err
		}
		if o.Paid-o.Refunded != left[id(i)] {
			fail("order %s: %d is left in the books, %d at the gateway", id(i), o.Paid-o.Refunded, left[id(i)])
		}
	}
	month, differences, err := s.books.CheckMonth(ctx, "shop", s.gw.Clock.Now().UTC().Format("2006-01"))
	if err != nil {
		return err
	}
	problems, err := s.books.Problems(ctx)
	if err != nil {
		return err
	}
	health, err := s.books.Health(ctx)
	if err != nil {
		return err
	}
	s.Printf("%d orders, %d paid, %d parcels; in no record: %d; problems: %d", s.orders, len(paidBy), parcels, health.Unknown, len(problems))
	s.Printf("the shop's books: %s paid, %s refunded", gateway.FormatAmount(month.Paid, gateway.BRL), gateway.FormatAmount(month.Refunded, gateway.BRL))
	s.Printf("the gateway's:    %s paid, %s refunded", gateway.FormatAmount(in, gateway.BRL), gateway.FormatAmount(out, gateway.BRL))
	if len(wrong) > 0 || month.Paid != in || month.Refunded != out || len(differences) > 0 || len(problems) > 0 || health.Unknown > 0 {
		return fmt.Errorf("the counts differ: %s; differences of the books: %v; problems: %v", strings.Join(wrong[:min(len(wrong), 10)], "; "), differences, problems)
	}
	return nil
}
