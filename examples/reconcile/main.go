// Reconcile finds changes that no webhook reported: a payment whose webhooks
// were all lost, and the two final states without a webhook, expired and
// refused.
//
//	go run ./examples/reconcile
package main

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/examples/internal/demo"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
)

func main() { demo.Main("reconcile", run) }

func run(ctx context.Context, out *demo.Printer) error {
	mock, err := mockserver.New()
	if err != nil {
		return err
	}
	defer mock.Close() //nolint:errcheck // nothing listens
	s := &shop{Printer: out, mock: mock, client: mock.Client(), orders: map[string]order{}}
	if err := s.listen(); err != nil {
		return err
	}
	return demo.Steps(ctx, s.sell, s.receive, s.miss, s.reconcile, s.again)
}

// order is an order in the shop's own books.
type order struct {
	name        string
	transaction string
	status      gateway.TransactionStatus
}

// shop is a merchant that updates its books by webhooks.
type shop struct {
	*demo.Printer

	mock     *mockserver.Server
	client   *gateway.Client
	receiver *webhook.Receiver

	mu     sync.Mutex
	orders map[string]order // by reference
}

// listen mounts the receiver. The same handler serves webhooks and the
// reconciler's findings.
func (s *shop) listen() error {
	var err error
	s.receiver, err = webhook.New(webhook.Config{
		Keys: []webhook.SigningKey{{Key: s.mock.Secret()}},
		API:  s.client, // used by the reconciler
	})
	if err != nil {
		return err
	}
	webhook.OnTransaction(s.receiver, webhook.AnyKind, s.book)
	s.mock.Webhooks.Send(s.receiver)
	return nil
}

// book writes the state that an event reports into the books.
func (s *shop) book(_ context.Context, e *webhook.TransactionEvent) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.orders[e.CorrelationID]
	if !ok {
		return fmt.Errorf("order %q is not stored yet", e.CorrelationID) // the error causes a retry
	}
	status := gateway.TransactionStatus(cmp.Or(e.ConfirmedStatus, e.Status))
	if status != o.status {
		s.Printf("%-10s %s -> %s, reported by %s %s", o.name, o.status, status, e.Source, e.Kind)
	}
	o.status, o.transaction = status, e.ResourceID
	s.orders[e.CorrelationID] = o
	return nil
}

// sell books four orders as pending and charges them.
func (s *shop) sell(ctx context.Context) error {
	s.Title("Four orders")
	for _, sale := range []struct {
		name   string
		method gateway.Method
		token  gateway.CardToken
	}{
		{"noticed", gateway.Pix, ""},
		{"missed", gateway.Pix, ""},
		{"expired", gateway.Pix, ""},
		{"refused", gateway.CreditCard, "pgct_ok_until_the_issuer_says_no"},
	} {
		ref := "order-" + sale.name
		s.put(ref, func(o *order) { o.name, o.status = sale.name, gateway.TransactionPending }) // its webhooks may arrive before the response
		tx, err := s.client.Transactions.Create(ctx, gateway.TransactionParams{
			ExternalRef: ref, Amount: 9_900, Method: sale.method, Token: sale.token,
			Buyer:    gateway.BuyerParams{Name: "Maria Oliveira", Email: "maria@example.com"},
			Products: []gateway.Product{{Name: "Café em grãos, 500 g", Price: 9_900}},
		})
		if err != nil {
			return err
		}
		s.put(ref, func(o *order) { o.transaction = tx.ID }) // only webhooks set the status
		s.Printf("%-10s %s, %s", sale.name, tx.Method, tx.Status)
	}
	return s.mock.Wait(ctx)
}

func (s *shop) put(ref string, change func(*order)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.orders[ref]
	change(&o)
	s.orders[ref] = o
}

// receive shows the case in which the webhook arrives.
func (s *shop) receive(ctx context.Context) error {
	s.Title("One is paid, and the webhook arrives")
	if err := s.mock.Transactions.Pay(s.find("noticed")); err != nil {
		return err
	}
	if err := s.mock.Wait(ctx); err != nil {
		return err
	}
	return s.expect(map[string]gateway.TransactionStatus{
		"noticed": gateway.TransactionPaid, "missed": gateway.TransactionPending,
		"expired": gateway.TransactionPending, "refused": gateway.TransactionPending,
	})
}

// miss makes the changes that no webhook reports.
func (s *shop) miss(ctx context.Context) error {
	s.Title("One webhook is lost, two events have none")
	if err := s.mock.Webhooks.Drop(string(webhook.TransactionPaid)); err != nil {
		return err
	}
	if err := s.mock.Transactions.Pay(s.find("missed")); err != nil {
		return err
	}
	if err := s.mock.Transactions.Refuse(s.find("refused")); err != nil {
		return err
	}
	// A Pix charge expires after 24 hours.
	if err := s.mock.Clock.Advance(25 * time.Hour); err != nil {
		return err
	}
	if err := s.mock.Wait(ctx); err != nil {
		return err
	}
	s.Printf("In the books they are still pending.")
	return s.expect(map[string]gateway.TransactionStatus{
		"noticed": gateway.TransactionPaid, "missed": gateway.TransactionPending,
		"expired": gateway.TransactionPending, "refused": gateway.TransactionPending,
	})
}

// reconcile reads the orders that are open in the books. A service does this
// periodically with Reconciler.Run.
func (s *shop) reconcile(ctx context.Context) error {
	s.Title("The reconciler reads what is still open")
	if err := s.round(ctx, webhook.Reconciliation{Checked: 3, Found: 3}); err != nil {
		return err
	}
	return s.expect(map[string]gateway.TransactionStatus{
		"noticed": gateway.TransactionPaid, "missed": gateway.TransactionPaid,
		"expired": gateway.TransactionExpired, "refused": gateway.TransactionRefused,
	})
}

func (s *shop) again(ctx context.Context) error {
	s.Title("The next round finds nothing open")
	return s.round(ctx, webhook.Reconciliation{})
}

func (s *shop) round(ctx context.Context, want webhook.Reconciliation) error {
	reconciler, err := webhook.NewReconciler(s.receiver, webhook.ReconcilerConfig{Open: s.open})
	if err != nil {
		return err
	}
	found, err := reconciler.Once(ctx)
	if err != nil {
		return err
	}
	s.Printf("%d checked, %d found", found.Checked, found.Found)
	if found != want {
		return fmt.Errorf("the round should have found %+v, it found %+v", want, found)
	}
	return nil
}

// open yields the orders that are still pending.
func (s *shop) open(context.Context) iter.Seq2[webhook.OpenResource, error] {
	return func(yield func(webhook.OpenResource, error) bool) {
		for _, o := range s.books() {
			if o.status != gateway.TransactionPending {
				continue
			}
			resource := webhook.OpenResource{Family: webhook.FamilyTransaction, ID: o.transaction, Status: string(o.status)}
			if !yield(resource, nil) {
				return
			}
		}
	}
}

// books returns a copy of the orders, sorted by name.
func (s *shop) books() []order {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.orders), func(a, b order) int { return cmp.Compare(a.name, b.name) })
}

func (s *shop) find(name string) string {
	for _, o := range s.books() {
		if o.name == name {
			return o.transaction
		}
	}
	return ""
}

func (s *shop) expect(want map[string]gateway.TransactionStatus) error {
	for _, o := range s.books() {
		if o.status != want[o.name] {
			return fmt.Errorf("the books should have %s as %s, they have %s", o.name, want[o.name], o.status)
		}
	}
	return nil
}
