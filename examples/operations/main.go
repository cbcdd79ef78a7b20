// Operations is a shop whose worker is killed after sending one refund and
// before sending another. A new worker takes over, and each refund is made once.
//
//	cd examples/operations && ../../integration/with-postgres go run .
//
// The shop, in shop.go, is what a merchant would write. The rest sets up the
// demonstration: the mock gateway, the worker's process, the kill and the
// audit.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/contrib/river/operations"
	"github.com/gateway-go/gateway/examples/internal/demo"
	"github.com/gateway-go/gateway/mockserver"
)

func main() {
	if isWorker() {
		mainWorker()
		return
	}
	demo.Main("operations", run)
}

const cents = 2500

// stage is the environment of the demonstration.
type stage struct {
	*demo.Printer

	mock   *mockserver.Server
	base   string
	shop   *shop
	lost   string // the transaction whose refund is sent but gets no response
	unsent string // the one whose refund is never sent
}

// run runs the demonstration and returns the first expectation that failed.
func run(ctx context.Context, out *demo.Printer) (err error) {
	if os.Getenv("DATABASE_URL") == "" {
		return errors.New("no DATABASE_URL is set: see the package comment for the command")
	}
	s := &stage{Printer: out}
	if s.mock, err = mockserver.New(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.mock.Close()) }()
	if s.base, err = s.mock.Listen("127.0.0.1:0"); err != nil { //nolint:contextcheck // it ends with Close
		return err
	}
	client, err := newClient(s.base, s.mock.Key(), nil)
	if err != nil {
		return err
	}
	if s.shop, err = openShop(ctx, os.Getenv("DATABASE_URL"), client); err != nil {
		return err
	}
	defer s.shop.db.Close()
	if err := s.shop.migrate(ctx); err != nil {
		return err
	}
	return demo.Steps(ctx, s.sell, s.kill, s.recover, s.audit)
}

// sell creates two paid orders, half of which is returned.
func (s *stage) sell(ctx context.Context) error {
	s.Title("Two orders are paid, and half of each comes back")
	for i, id := range []*string{&s.lost, &s.unsent} {
		charge, err := s.mock.Client().Transactions.Create(ctx, gateway.TransactionParams{
			ExternalRef: fmt.Sprintf("order-%d", i+1), Amount: 2 * cents, Method: gateway.Pix,
			Buyer: gateway.BuyerParams{
				Name: "Maria Oliveira", Email: "maria@example.com",
				Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"},
			},
			Products: []gateway.Product{{Name: "Mug", Price: cents, Quantity: 2}},
		})
		if err != nil {
			return err
		}
		if err := s.mock.Transactions.Pay(charge.ID); err != nil {
			return err
		}
		*id = charge.ID
		if err := s.shop.accept(ctx, fmt.Sprintf("return-%d", i+1), charge.ID, cents); err != nil {
			return err
		}
	}
	s.Printf("the returns and their refunds of %s each are stored together", gateway.FormatAmount(cents, gateway.BRL))
	return nil
}

// kill starts a worker that dies while it works on both refunds.
func (s *stage) kill(ctx context.Context) error {
	s.Title("The worker is killed: one refund was sent, the other was about to be (SIGKILL)")
	p, err := s.start(ctx, lostVariable+"="+s.lost, unsentVariable+"="+s.unsent)
	if err != nil {
		return err
	}
	s.Printf("the worker is gone: %v", <-p.ended)
	if err := s.show(ctx); err != nil {
		return err
	}
	entries, err := s.shop.outbox.List(ctx, operations.Query{States: []operations.State{operations.Sent}})
	if err != nil {
		return err
	}
	if len(entries) != 2 {
		return fmt.Errorf("%d refunds have an unknown outcome, there should be 2", len(entries))
	}
	s.Printf("to the shop both look alike: a request that may have been sent, and no response")
	s.Printf("sending both again would refund the first one twice; giving up would never refund the second")
	return nil
}

func (s *stage) start(ctx context.Context, environment ...string) (*process, error) {
	return start(ctx, append(environment, gatewayVariable+"="+s.base, keyVariable+"="+s.mock.Key())...)
}

// recover starts another worker and waits until the returns are settled.
func (s *stage) recover(ctx context.Context) error {
	s.Title("A new worker finds out both outcomes")
	p, err := s.start(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	for open := -1; open != 0; {
		if err := s.shop.db.QueryRow(ctx, `SELECT count(*) FROM returns WHERE state = 'refunding'`).Scan(&open); err != nil {
			return errors.Join(err, p.stop())
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case err := <-p.ended:
			return fmt.Errorf("the worker ended too early: %w", err)
		}
	}
	if err := p.stop(); err != nil {
		return err
	}
	for _, transaction := range []string{s.lost, s.unsent} {
		entries, err := s.shop.outbox.List(ctx, operations.Query{Resource: "transactions/" + transaction})
		if err != nil {
			return err
		}
		for _, e := range entries {
			for _, note := range e.History {
				s.Printf("%s: %s", e.Key, note.Text)
			}
		}
	}
	s.Printf("both are settled after %d s", int(time.Since(began).Seconds()))
	return nil
}

// audit compares the gateway's books with the shop's.
func (s *stage) audit(ctx context.Context) error {
	s.Title("One refund each")
	if err := s.show(ctx); err != nil {
		return err
	}
	for _, id := range []string{s.lost, s.unsent} {
		tx, err := s.mock.Client().Transactions.Get(ctx, id)
		if err != nil {
			return err
		}
		var state string
		var reports int
		if err := s.shop.db.QueryRow(ctx, `SELECT state, reports FROM returns WHERE transaction_id = $1`, id).Scan(&state, &reports); err != nil {
			return err
		}
		if tx.RefundedAmount != cents || state != "refunded" || reports != 1 {
			return fmt.Errorf("the gateway refunded %d, the shop's return is %s, reported %d times", tx.RefundedAmount, state, reports)
		}
	}
	s.Printf("the gateway's books and the shop's agree")
	return nil
}

// show prints the gateway's refunds.
func (s *stage) show(ctx context.Context) error {
	for i, id := range []string{s.lost, s.unsent} {
		tx, err := s.mock.Client().Transactions.Get(ctx, id)
		if err != nil {
			return err
		}
		s.Printf("order-%d: the gateway refunded %s", i+1, gateway.FormatAmount(tx.RefundedAmount, tx.Currency))
	}
	return nil
}
