package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/gateway-go/gateway"
)

// The states of the old shop's orders, by their number.
const (
	unpaid   = iota // the buyer has a code
	paid            // and shipped
	partly          // a quarter went back
	returned        // all of it went back
	disputed        // the bank withholds it
	ended           // the code can't be paid any more
	states
)

// price is what an order costs, in cents. A quarter of it is a number of cents.
func price(i int) int64 { return int64(1000 + i%200*4) }

func id(i int) string { return fmt.Sprintf("A%06d", i) }

// ids are those of all orders.
func (s *stage) ids() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range s.orders + s.late() {
			if !yield(id(i)) {
				return
			}
		}
	}
}

// late is how many orders the old code still makes while the shop moves.
func (s *stage) late() int { return s.orders / 20 }

// each calls do for each order, eight at a time, and returns its errors.
func (s *stage) each(ctx context.Context, orders int, do func(ctx context.Context, i int) error) error {
	var running sync.WaitGroup
	slots, failed := make(chan struct{}, 8), make(chan error, orders)
	for i := range orders {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			if err := do(ctx, i); err != nil {
				failed <- fmt.Errorf("order %s: %w", id(i), err)
			}
		})
	}
	running.Wait()
	close(failed)
	var err error
	for one := range failed {
		err = errors.Join(err, one)
	}
	return err
}

// sellOne brings an order of the old shop into its state.
func (s *stage) sellOne(ctx context.Context, i int) error {
	transaction, err := s.old.charge(ctx, id(i), price(i))
	if err != nil {
		return err
	}
	state := i % states
	if state == unpaid {
		return nil
	}
	if state == ended {
		return s.gw.Transactions.Cancel(transaction)
	}
	if err := errors.Join(s.gw.Transactions.Pay(transaction), s.shipped(ctx, id(i))); err != nil {
		return err
	}
	switch state {
	case partly:
		return s.old.refund(ctx, id(i), price(i)/4)
	case returned:
		return s.old.refund(ctx, id(i), price(i))
	case disputed:
		return s.gw.Transactions.OpenDispute(transaction)
	}
	return nil
}

// shipped waits until an order was shipped.
func (s *stage) shipped(ctx context.Context, order string) error {
	for {
		switch n, err := s.parcels(ctx, order); {
		case err != nil:
			return err
		case n > 0:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("it was not shipped: %w", ctx.Err())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (s *stage) parcels(ctx context.Context, order string) (n int, err error) {
	err = s.old.db.QueryRowContext(ctx, `SELECT COUNT(*) FROM parcels WHERE order_id = ?`, order).Scan(&n)
	return n, err
}

// buyOne is what the buyer of an order and a bank do while the shop moves, by the order's state and
// by turns.
func (s *stage) buyOne(ctx context.Context, i int) error {
	transaction, err := s.transaction(ctx, i)
	if err != nil {
		return err
	}
	const first, second = 0, 1
	turn := i / states % 3
	switch state := i % states; {
	case i >= s.orders: // by the old checkout, which is still there
		return s.gw.Transactions.Pay(transaction)
	case state == unpaid && turn == first: // reloads the page
		shown, err := s.ask(ctx, "/orders/"+id(i))
		if err != nil {
			return err
		}
		if shown != transaction {
			return fmt.Errorf("the page shows %s, and the buyer has %s", shown, transaction)
		}
		return s.gw.Transactions.Pay(transaction)
	case state == unpaid && turn == second: // has the code in a mail
		return s.gw.Transactions.Pay(transaction)
	case state == ended && turn == first: // wants it after all
		again, err := s.ask(ctx, "/orders/"+id(i))
		if err != nil {
			return err
		}
		return s.gw.Transactions.Pay(again)
	case (state == paid || state == partly) && turn == first: // returns what is left
		_, err := s.ask(ctx, "/orders/"+id(i)+"/return")
		return err
	case state == paid && turn == second:
		return s.gw.Transactions.OpenDispute(transaction)
	case state == disputed && turn == first:
		return errors.Join(s.gw.Transactions.ContestDispute(transaction), s.gw.Transactions.WinDispute(transaction))
	}
	return nil
}

// transaction returns the old code's transaction of an order, and orders what is not ordered yet.
func (s *stage) transaction(ctx context.Context, i int) (transaction string, err error) {
	if i >= s.orders {
		return s.books.oldCheckout(ctx, id(i), price(i))
	}
	err = s.old.db.QueryRowContext(ctx, `SELECT transaction_id FROM orders WHERE id = ?`, id(i)).Scan(&transaction)
	return transaction, err
}

// wanted returns what is to be in the books of an order.
func (s *stage) wanted(i int) sums {
	turn, all := i/states%3, price(i)
	once := sums{transactions: 1, payments: 1, paid: all}
	if i >= s.orders {
		return once
	}
	switch i % states {
	case unpaid:
		if turn == 2 {
			return sums{transactions: 1}
		}
	case paid:
		if turn == 0 {
			once.refunded = all
		}
		if turn == 1 {
			once.disputed = all
		}
	case partly:
		once.refunded = all / 4
		if turn == 0 {
			once.refunded = all
		}
	case returned:
		once.refunded = all
	case disputed:
		if turn != 0 {
			once.disputed = all
		}
	case ended:
		if turn != 0 {
			return sums{transactions: 1}
		}
		once.transactions = 2
	}
	return once
}

// atGateway returns what the gateway has of each order.
func (s *stage) atGateway(ctx context.Context) (map[string]sums, error) {
	orderOf := make(map[string]string) // by transactions: pages repeat some that change meanwhile
	for t, err := range s.gw.Client().Transactions.All(ctx, gateway.TransactionListParams{}) {
		if err != nil {
			return nil, err
		}
		order, _, _ := strings.Cut(strings.TrimPrefix(t.ExternalRef, "shop-"), "-") // the new code's are shop-A000001-2
		orderOf[t.ID] = order
	}
	of := make(map[string]sums)
	for transaction, order := range orderOf {
		t, err := s.gw.Client().Transactions.Get(ctx, transaction) // a list doesn't show what was refunded
		if err != nil {
			return nil, err
		}
		is := of[order]
		is.transactions++
		if t.Paid() > 0 {
			is.payments++
		}
		is.paid, is.refunded = is.paid+t.Paid(), is.refunded+t.RefundedAmount
		if t.Status == gateway.TransactionMED || t.Status == gateway.TransactionPreChargedback {
			is.disputed += t.Paid() - t.RefundedAmount
		}
		of[order] = is
	}
	return of, nil
}

// countOne compares an order.
func (s *stage) countOne(ctx context.Context, i int, is sums) error {
	wanted := s.wanted(i)
	if is != wanted {
		return fmt.Errorf("the gateway has %+v, and it should have %+v", is, wanted)
	}
	n, err := s.parcels(ctx, id(i))
	if err != nil {
		return err
	}
	if n != wanted.payments {
		return fmt.Errorf("%d parcels, and %d payments", n, wanted.payments)
	}
	var refunded int64
	if err := s.old.db.QueryRowContext(ctx, `SELECT refunded FROM orders WHERE id = ?`, id(i)).Scan(&refunded); err != nil {
		return err
	}
	if refunded != is.refunded {
		return fmt.Errorf("the shop has %d refunded, and the gateway %d", refunded, is.refunded)
	}
	o, err := s.books.Order(ctx, id(i))
	if err != nil {
		return err
	}
	if o.Paid != is.paid || o.Refunded != is.refunded || o.Disputed != is.disputed {
		return fmt.Errorf("the gateway has %+v, and the books %d paid, %d refunded, %d disputed", is, o.Paid, o.Refunded, o.Disputed)
	}
	return nil
}
