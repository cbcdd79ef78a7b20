package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/examples/internal/demo"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/webhooktest"
)

const (
	orders    = 120
	killAt    = 60 // deliveries that the first process acknowledges before it is killed
	diesAt    = 20 // the payment at which the second process dies
	forgeries = 5
)

// stage is the environment of the demonstration.
type stage struct {
	*demo.Printer

	folder  string
	mock    *mockserver.Server
	front   *front
	running *process

	paid        map[string]int64 // cents by transaction: the expected ledger
	uncommitted string           // the transaction whose payment was written and not committed
}

func newStage(ctx context.Context, out *demo.Printer) (*stage, error) {
	mock, err := mockserver.New()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "gateway-webhooks-")
	if err != nil {
		return nil, err
	}
	s := &stage{Printer: out, folder: folder, mock: mock, front: newFront(), paid: make(map[string]int64)}
	_, err = mock.Webhooks.AddEndpoint(mockserver.Endpoint{
		Handler: s.front,
		Secret:  mock.Secret(),
		Events:  []string{string(webhook.TransactionPaid)},
	})
	if err == nil {
		// The network duplicates some deliveries and corrupts others.
		err = mock.Faults.Add(mockserver.DuplicateWebhook().Probability(0.2), mockserver.CorruptSignature().Probability(0.05))
	}
	if err == nil {
		err = s.start(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *stage) database() string { return filepath.Join(s.folder, "shop.db") }

// start starts a receiver and makes the front send deliveries to it.
func (s *stage) start(ctx context.Context, environment ...string) error {
	p, err := start(ctx, append(environment,
		databaseVariable+"="+s.database(), secretVariable+"="+s.mock.Secret().Reveal())...)
	if err != nil {
		return err
	}
	s.running = p
	s.front.point(p.address)
	return nil
}

func (s *stage) close() error {
	var killed error
	if s.running != nil {
		killed = s.running.kill()
	}
	return errors.Join(killed, s.mock.Close(), os.RemoveAll(s.folder))
}

// sell creates the charges, all pending.
func (s *stage) sell(ctx context.Context) error {
	s.Title("A shop sells")
	client := s.mock.Client()
	for i := range orders {
		cents := int64(1000 + 7*i)
		charge, err := client.Transactions.Create(ctx, gateway.TransactionParams{
			ExternalRef: fmt.Sprintf("order-%04d", i+1),
			Amount:      cents,
			Method:      gateway.Pix,
			Buyer: gateway.BuyerParams{
				Name: "Maria Oliveira", Email: "maria@example.com",
				Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"},
			},
			Products: []gateway.Product{{Name: "Café em grãos, 500 g", Price: cents}},
		})
		if err != nil {
			return err
		}
		s.paid[charge.ID] = cents
	}
	s.Printf("%d orders wait for their Pix; the receiver runs, with an inbox in SQLite", orders)
	return nil
}

// killAnywhere kills the first process while deliveries arrive and events are
// handled.
func (s *stage) killAnywhere(ctx context.Context) error {
	s.Title("All are paid at once, and the receiver is killed halfway (SIGKILL)")
	for id := range s.paid {
		if err := s.mock.Transactions.Pay(id); err != nil {
			return err
		}
	}
	err := until(ctx, "waiting for deliveries", func() (bool, error) { return s.front.taken.Load() >= killAt, nil })
	if err != nil {
		return err
	}
	if err := s.running.kill(); err != nil {
		return err
	}
	if err := s.mock.Wait(ctx); err != nil {
		return err
	}
	s.Printf("the receiver is gone: %v", s.running.err)
	s.Printf("%d deliveries returned 200, %d reached no process; the gateway retries those",
		s.front.taken.Load(), s.front.failed.Load())
	return s.backlog(ctx)
}

// backlog reads the dead receiver's database: a receiver without an inbox would
// have lost the events that were acknowledged and not handled.
func (s *stage) backlog(ctx context.Context) error {
	b, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer b.close()
	counts, err := b.store.Counts(ctx)
	if err != nil {
		return err
	}
	booked, err := b.entries(ctx)
	if err != nil {
		return err
	}
	s.Printf("the ledger has %d payments; %d events were acknowledged and wait in the inbox", len(booked), counts.Waiting+counts.Claimed)
	if counts.Waiting+counts.Claimed == 0 {
		return errors.New("the receiver was killed while it had no events, which proves nothing")
	}
	return nil
}

// killBeforeCommit starts a second process, which dies between an effect and
// its commit.
func (s *stage) killBeforeCommit(ctx context.Context) error {
	s.Title("It is restarted, and killed with an uncommitted payment")
	if err := s.start(ctx, fmt.Sprintf("%s=%d", diesAtVariable, diesAt)); err != nil {
		return err
	}
	select {
	case <-s.running.ended:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case line := <-s.running.output:
		s.uncommitted = strings.TrimPrefix(line, "dies ")
	default:
		return fmt.Errorf("the receiver ended too early: %w", s.running.err)
	}
	s.Printf("the receiver is gone: %v", s.running.err)
	b, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer b.close()
	booked, err := b.entries(ctx)
	if err != nil {
		return err
	}
	s.Printf("the ledger has %d payments; the one of %s was rolled back", len(booked), s.uncommitted)
	if len(booked[s.uncommitted]) != 0 {
		return errors.New("a payment that was not committed is in the ledger")
	}
	return s.backlog(ctx)
}

// recover starts a third process and lets the gateway redeliver what failed.
func (s *stage) recover(ctx context.Context) error {
	s.Title("It is restarted, and the gateway retries what was not acknowledged")
	if err := s.start(ctx); err != nil {
		return err
	}
	repeated := 0
	err := until(ctx, "waiting for the gateway", func() (bool, error) {
		pending := s.undelivered()
		if pending == 0 {
			return true, nil
		}
		repeated = max(repeated, pending)
		if _, err := s.mock.Clock.Next(); err != nil { //nolint:contextcheck // the clock takes no context
			return false, err
		}
		return false, s.mock.Wait(ctx)
	})
	if err != nil {
		return err
	}
	s.Printf("%d redeliveries, on the virtual clock of the mock", repeated)
	b, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer b.close()
	err = until(ctx, "waiting for the inbox", func() (bool, error) {
		counts, err := b.store.Counts(ctx)
		return counts.Waiting+counts.Claimed == 0, err
	})
	if err == nil {
		s.Printf("the inbox is empty")
	}
	return err
}

func (s *stage) undelivered() (n int) {
	for _, d := range s.mock.Webhooks.Deliveries() {
		if d.State == mockserver.DeliveryPending {
			n++
		}
	}
	return n
}

// forge sends payments that do not exist at the gateway.
func (s *stage) forge(ctx context.Context) error {
	s.Title("An attacker sends forged deliveries")
	for range forgeries {
		body := webhooktest.Event{Kind: webhook.TransactionPaid}.Body()
		forged := webhooktest.Signed(gateway.NewSecret("a guess"), body).WithContext(ctx) //nolint:contextcheck // it has one now
		forged.URL.Scheme, forged.URL.Host = "http", s.running.address
		response, err := (&http.Client{}).Do(forged)
		if err != nil {
			return err
		}
		if err := response.Body.Close(); err != nil {
			return err
		}
		if response.StatusCode != http.StatusUnauthorized {
			return fmt.Errorf("a forged delivery returned %s", response.Status)
		}
	}
	s.Printf("%d forged deliveries returned 401", forgeries)
	return nil
}

// audit shuts the receiver down gracefully and compares the ledger with the
// gateway.
func (s *stage) audit(ctx context.Context) error {
	s.Title("The audit")
	if err := s.running.stop(); err != nil {
		return fmt.Errorf("the receiver did not shut down cleanly: %w", err)
	}
	b, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer b.close()
	booked, err := b.entries(ctx)
	if err != nil {
		return err
	}
	counts, err := b.store.Counts(ctx)
	if err != nil {
		return err
	}
	found := compare(s.paid, booked)
	s.Printf("deliveries: %d returned 200 (%d of them repeats), %d reached no process, %d with an invalid signature were rejected",
		s.front.taken.Load(), s.front.taken.Load()-int64(len(s.paid)), s.front.failed.Load(), s.front.denied.Load())
	s.Printf("the gateway was paid %d times, the ledger has %d payments", len(s.paid), found.rows)
	s.Printf("lost %d, doubled %d, wrong amounts %d, forged %d, dead letters %d",
		found.lost, found.doubled, found.wrong, found.unknown, counts.Dead)
	if !found.clean(len(s.paid)) || counts != (webhook.Counts{}) {
		return errors.New("the ledger does not match the payments")
	}
	s.Printf("total %s, to the cent", gateway.FormatAmount(found.cents, gateway.BRL))
	return nil
}
