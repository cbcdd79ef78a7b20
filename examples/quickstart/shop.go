package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
)

// Shop is the merchant: a client of the gateway, and a receiver of its webhooks
// if the gateway can reach it.
type Shop struct {
	Client *gateway.Client
	Where  string             // the gateway, for display
	Mock   *mockserver.Server // nil with a real gateway
	events chan *webhook.TransactionEvent
}

// OpenShop connects to the gateway that the environment configures, or to its
// own mock.
func OpenShop() (*Shop, error) {
	if address := os.Getenv("GATEWAY_BASE_URL"); address != "" {
		client, err := gateway.NewFromEnv()
		return &Shop{Client: client, Where: address}, err
	}
	mock, err := mockserver.New()
	if err != nil {
		return nil, err
	}
	shop := &Shop{
		Client: mock.Client(),
		Where:  "a mock in this process; nothing leaves your machine",
		Mock:   mock,
		events: make(chan *webhook.TransactionEvent, 100),
	}
	receiver, err := shop.receiver(mock.Secret())
	if err != nil {
		return nil, err
	}
	mock.Webhooks.Send(receiver)
	return shop, nil
}

// Close stops the mock.
func (s *Shop) Close() {
	if s.Mock != nil {
		_ = s.Mock.Close()
	}
}

// receiver returns the handler that a shop mounts at its webhook address. It
// verifies every delivery, drops duplicates, and passes on each event once.
func (s *Shop) receiver(secret gateway.Secret) (*webhook.Receiver, error) {
	receiver, err := webhook.New(webhook.Config{
		Keys: []webhook.SigningKey{{Key: secret}},
		API:  s.Client,
	})
	if err != nil {
		return nil, err
	}
	for _, kind := range webhook.DocumentedKinds() {
		if kind.Family() == webhook.FamilyTransaction {
			webhook.OnTransaction(receiver, kind, s.onTransaction)
		}
	}
	return receiver, nil
}

func (s *Shop) onTransaction(_ context.Context, event *webhook.TransactionEvent) error {
	s.events <- event
	return nil
}

// Events waits until the mock has delivered everything, and returns the events
// that arrived since the last call.
func (s *Shop) Events(ctx context.Context) ([]*webhook.TransactionEvent, error) {
	if err := s.Mock.Wait(ctx); err != nil {
		return nil, err
	}
	var arrived []*webhook.TransactionEvent
	for {
		select {
		case event := <-s.events:
			arrived = append(arrived, event)
		default:
			return arrived, nil
		}
	}
}

// Charge creates the charge for an order.
func (s *Shop) Charge(ctx context.Context, order *Order, reference string) (*gateway.Transaction, gateway.Response, error) {
	var response gateway.Response
	charge, err := s.Client.Transactions.Create(ctx, order.Charge(reference), gateway.ResponseInto(&response))
	return charge, response, err
}

// errNotPaid means that only a real payer can pay at this gateway.
var errNotPaid = errors.New("this gateway has no sandbox controls")

// Pay simulates the payer: with the mock, three minutes later on its clock;
// otherwise with the sandbox's own control.
func (s *Shop) Pay(ctx context.Context, id string) error {
	if s.Mock != nil {
		if err := s.Mock.Clock.Advance(3 * time.Minute); err != nil {
			return err
		}
		return s.Mock.Transactions.Pay(id)
	}
	_, err := s.Client.Transactions.SetSandboxStatus(ctx, id, gateway.SandboxStatusParams{Status: gateway.TransactionPaid})
	if errors.Is(err, gateway.ErrForbidden) {
		return errNotPaid
	}
	return err
}

// Find returns every transaction with the reference that was created since.
func (s *Shop) Find(ctx context.Context, reference string, since time.Time) ([]gateway.Transaction, error) {
	var found []gateway.Transaction
	for item, err := range s.Client.Transactions.All(ctx, gateway.TransactionListParams{From: since}) {
		if err != nil {
			return nil, err
		}
		if item.ExternalRef == reference {
			found = append(found, *item)
		}
	}
	return found, nil
}
