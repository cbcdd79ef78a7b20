// Movein is a shop that was written by hand, with orders in every state, and that moves to package
// merchant while buyers order, pay, return goods and dispute. Its processes are killed again and
// again meanwhile. In the end the books equal the gateway's, and nothing was shipped, charged or
// refunded twice.
//
//	cd examples/movein && go run .
//
// The old shop is in old.go, the new one in shop.go; both have one table of orders. The rest are
// their processes and the mock gateway in stage.go, what buyers and banks do in buyers.go, and the
// count. MOVEIN_ORDERS sets how many orders there are, and MOVEIN_KILLS how often a process is
// killed.
package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"strconv"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/examples/internal/demo"
)

func main() {
	if isShop() {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	orders, err := number("MOVEIN_ORDERS", 1000)
	kills, err2 := number("MOVEIN_KILLS", 6)
	if err = errors.Join(err, err2); err == nil {
		err = run(ctx, demo.New(os.Stdout), orders, kills)
	}
	stop()
	if err != nil {
		_, _ = fmt.Fprintf(os.Stderr, "\nmovein: %s\n", err)
		os.Exit(1)
	}
}

// run runs the demonstration and returns the first expectation that failed.
func run(ctx context.Context, out *demo.Printer, orders, kills int) (err error) {
	s, err := open(ctx, out, orders)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	return demo.Steps(ctx, s.sell, func(ctx context.Context) error { return s.move(ctx, kills) }, s.settle, s.count)
}

// number reads a variable of the environment.
func number(variable string, otherwise int) (int, error) {
	text := os.Getenv(variable)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s is %q: it must be a number", variable, text)
	}
	return n, nil
}

// sell makes the orders of the old shop.
func (s *stage) sell(ctx context.Context) error {
	s.Title("The old shop has %d orders in %d states", s.orders, states)
	err := s.each(ctx, s.orders, s.sellOne)
	return errors.Join(err, s.gw.Wait(ctx))
}

// move adopts all orders while buyers go on, and the process is killed again and again.
func (s *stage) move(ctx context.Context, kills int) error {
	s.Title("They move while buyers order, pay, return goods and dispute")
	if err := s.start(ctx); err != nil {
		return err
	}
	s.oldWebhook.Store(nil) // from now on the webhook URL is that of the new shop
	began, killed := time.Now(), 0
	buying := make(chan error, 1)
	go func() { buying <- s.each(ctx, s.orders+s.late(), s.buyOne) }()
	for bought := false; ; {
		select {
		case err := <-buying:
			if err != nil {
				return err
			}
			bought = true
		case <-time.After(time.Duration(500+rand.IntN(1000)) * time.Millisecond): //nolint:gosec // no secret
		}
		waiting, done, failed, err := s.books.Adoptions(ctx, "shop")
		if err != nil {
			return err
		}
		if failed > 0 {
			return fmt.Errorf("%d orders could not be adopted", failed)
		}
		if bought && waiting == 0 && done == s.orders+s.late() {
			took := time.Since(began).Seconds()
			s.Printf("%d orders are in the books after %.1f s and %d kills: %.0f a second", done, took, killed, float64(done)/took)
			return nil
		}
		if killed < kills {
			killed++
			if err := errors.Join(s.kill(), s.start(ctx)); err != nil {
				return err
			}
		}
	}
}

// settle waits until nothing waits any more.
func (s *stage) settle(ctx context.Context) error {
	s.Title("What waits is done")
	began := time.Now()
	err := errors.Join(s.gw.Wait(ctx), s.books.Reconcile(ctx), s.books.Idle(ctx), s.books.storeAll(ctx, s.ids()))
	s.Printf("after %.1f s nothing waits any more", time.Since(began).Seconds())
	return err
}

// count compares the gateway, the books and the shop's own table with what buyers and banks did.
func (s *stage) count(ctx context.Context) error {
	s.Title("Count: the books equal the gateway's, and nothing happened twice")
	gw, err := s.atGateway(ctx)
	if err != nil {
		return err
	}
	all := s.orders + s.late()
	if err := s.each(ctx, all, func(ctx context.Context, i int) error { return s.countOne(ctx, i, gw[id(i)]) }); err != nil {
		return err
	}
	var sum sums
	for _, one := range gw {
		sum.transactions, sum.payments = sum.transactions+one.transactions, sum.payments+one.payments
		sum.paid, sum.refunded, sum.disputed = sum.paid+one.paid, sum.refunded+one.refunded, sum.disputed+one.disputed
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
	s.Printf("%d orders, %d transactions, %d payments; in no record: %d; problems: %d",
		all, sum.transactions, sum.payments, health.Unknown, len(problems))
	s.Printf("the gateway: %s", &sum)
	is := sums{
		transactions: sum.transactions, payments: sum.payments,
		paid: month.Paid, refunded: month.Refunded, disputed: month.Disputed,
	}
	s.Printf("the books:   %s", &is)
	if len(gw) != all || is != sum || len(differences) > 0 || len(problems) > 0 || health.Unknown > 0 {
		return fmt.Errorf("the counts differ: differences of the books: %v; problems: %v", differences, problems)
	}
	return nil
}

// sums are of an order, or of all of them, in cents.
type sums struct {
	transactions, payments   int
	paid, refunded, disputed int64
}

func (s *sums) String() string {
	amount := func(cents int64) string { return gateway.FormatAmount(cents, gateway.BRL) }
	return fmt.Sprintf("%s paid, %s refunded, %s in disputes", amount(s.paid), amount(s.refunded), amount(s.disputed))
}
