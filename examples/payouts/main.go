// Payouts sends money by Pix: one payout arrives, one is canceled, the bank
// refuses one, and the response to one is lost.
//
//	go run ./examples/payouts
package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/examples/internal/demo"
	"github.com/gateway-go/gateway/legacy"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
)

const opening = 500_000 // cents in the account, from earlier sales

func main() { demo.Main("payouts", run) }

func run(ctx context.Context, out *demo.Printer) error {
	mock, err := mockserver.New(mockserver.WithOpeningBalance(opening))
	if err != nil {
		return err
	}
	defer mock.Close() //nolint:errcheck // nothing listens
	p := &payouts{Printer: out, mock: mock, client: mock.Client()}
	// In production: the same key as for gateway.New.
	if p.account, err = legacy.New(p.client, gateway.NewSecret(mock.Key())); err != nil {
		return err
	}
	if err := p.listen(); err != nil {
		return err
	}
	return demo.Steps(ctx, p.refuse, p.send, p.cancel, p.fail, p.lose, p.list)
}

// payouts is a merchant who pays suppliers.
type payouts struct {
	*demo.Printer

	mock    *mockserver.Server
	client  *gateway.Client
	account *legacy.Client
}

// listen mounts a receiver that prints every payout event.
func (p *payouts) listen() error {
	receiver, err := webhook.New(webhook.Config{Keys: []webhook.SigningKey{{Key: p.mock.Secret()}}})
	if err != nil {
		return err
	}
	webhook.OnTransfer(receiver, webhook.AnyKind, func(_ context.Context, e *webhook.TransferEvent) error {
		p.Printf("webhook   %-20s %s", e.Kind, e.Status)
		return nil
	})
	p.mock.Webhooks.Send(receiver)
	return nil
}

// refuse shows that a mistyped key never leaves this process.
func (p *payouts) refuse(ctx context.Context) error {
	p.Title("A mistyped CPF is rejected before anything is sent")
	_, err := p.client.Transfers.Create(ctx, gateway.TransferParams{
		PixKeyType: gateway.PixKeyCPF, PixKeyValue: "123.456.789-00", Amount: 10_000,
	})
	if !errors.Is(err, gateway.ErrValidation) {
		return fmt.Errorf("the CPF should be rejected, got %w", err)
	}
	p.Printf("%s", err)
	return p.balance(ctx, opening)
}

// send makes a payout that succeeds.
func (p *payouts) send(ctx context.Context) error {
	p.Title("A payout that arrives")
	transfer, err := p.create(ctx, gateway.TransferParams{
		PixKeyType: gateway.PixKeyEmail, PixKeyValue: "torrefacao@example.com", Amount: 120_000,
		Description: "Coffee, January", ExternalRef: "payout-1001",
	})
	if err != nil {
		return err
	}
	if err := p.balance(ctx, 380_000); err != nil { // reserved at once
		return err
	}
	for _, move := range []func(string) error{p.mock.Transfers.Process, p.mock.Transfers.Settle} {
		if err := move(transfer.ID); err != nil {
			return err
		}
	}
	return p.expect(ctx, transfer.ID, gateway.TransferPaid)
}

// cancel cancels a payout while that is possible.
func (p *payouts) cancel(ctx context.Context) error {
	p.Title("A payout that is canceled in time")
	transfer, err := p.create(ctx, gateway.TransferParams{
		PixKeyType: gateway.PixKeyPhone, PixKeyValue: "+5511987654321", Amount: 45_000, ExternalRef: "payout-1002",
	})
	if err != nil {
		return err
	}
	if _, err := p.client.Transfers.Cancel(ctx, transfer.ID, gateway.TransferCancelParams{Reason: "wrong supplier"}); err != nil {
		return err
	}
	if err := p.expect(ctx, transfer.ID, gateway.TransferCancelled); err != nil {
		return err
	}
	_, err = p.client.Transfers.Cancel(ctx, transfer.ID, gateway.TransferCancelParams{})
	if !errors.Is(err, gateway.ErrConflict) {
		return fmt.Errorf("a second cancel should be a conflict, got %w", err)
	}
	return p.balance(ctx, 380_000) // released
}

// fail makes a payout that the bank refuses.
func (p *payouts) fail(ctx context.Context) error {
	p.Title("A payout that the bank refuses")
	transfer, err := p.create(ctx, gateway.TransferParams{
		PixKeyType: gateway.PixKeyEVP, PixKeyValue: "71cdf9ba-c695-4e3c-b010-abb521a3f1be", Amount: 30_000, ExternalRef: "payout-1003",
	})
	if err != nil {
		return err
	}
	for _, move := range []func(string) error{p.mock.Transfers.Process, p.mock.Transfers.Fail} {
		if err := move(transfer.ID); err != nil {
			return err
		}
	}
	if err := p.expect(ctx, transfer.ID, gateway.TransferError); err != nil {
		return err
	}
	return p.balance(ctx, 380_000) // released
}

// lose makes a payout whose first response is lost.
func (p *payouts) lose(ctx context.Context) error {
	p.Title("A payout whose response is lost is made once")
	if err := p.mock.Faults.Add(mockserver.LoseResponse().On("transfers.create").Times(1)); err != nil {
		return err
	}
	var response gateway.Response
	transfer, err := p.create(ctx, gateway.TransferParams{
		PixKeyType: gateway.PixKeyEmail, PixKeyValue: "frete@example.com", Amount: 20_000, ExternalRef: "payout-1004",
	}, gateway.ResponseInto(&response))
	if err != nil {
		return err
	}
	if !response.Recovered {
		return errors.New("the first attempt's transfer should have been recovered")
	}
	p.Printf("attempts  %d; the transfer of the first one was recovered: %s", response.Attempts, transfer.ID)
	return p.balance(ctx, 360_000) // one payout, not two
}

func (p *payouts) list(ctx context.Context) error {
	p.Title("All payouts at the gateway, newest first")
	n := 0
	for transfer, err := range p.client.Transfers.All(ctx, gateway.TransferListParams{}) {
		if err != nil {
			return err
		}
		p.Printf("%s  %-10s %14s", transfer.ExternalRef, transfer.Status, gateway.FormatAmount(transfer.Amount, gateway.BRL))
		n++
	}
	if n != 4 {
		return fmt.Errorf("there should be 4 transfers, there are %d", n)
	}
	return nil
}

func (p *payouts) create(ctx context.Context, params gateway.TransferParams, opts ...gateway.RequestOption) (*gateway.Transfer, error) {
	transfer, err := p.client.Transfers.Create(ctx, params, opts...)
	if err != nil {
		return nil, err
	}
	p.Printf("created   %s to a key of type %s", gateway.FormatAmount(transfer.Amount, gateway.BRL), transfer.PixKeyType)
	return transfer, p.mock.Wait(ctx) // until its webhooks have arrived
}

// expect reads the transfer once its webhooks have arrived.
func (p *payouts) expect(ctx context.Context, id string, want gateway.TransferStatus) error {
	if err := p.mock.Wait(ctx); err != nil {
		return err
	}
	transfer, err := p.client.Transfers.Get(ctx, id)
	if err != nil {
		return err
	}
	p.Printf("read      %s", transfer.Status)
	if transfer.Status != want {
		return fmt.Errorf("transfer %s should be %s, it is %s", id, want, transfer.Status)
	}
	return nil
}

// balance reads the account's balance, the only v1 call that payouts need.
func (p *payouts) balance(ctx context.Context, want int64) error {
	account, err := p.account.Balance(ctx)
	if err != nil {
		return err
	}
	p.Printf("balance   %s", gateway.FormatAmount(account.Balance, account.Currency))
	if account.Balance != want {
		return fmt.Errorf("the balance should be %d cents, it is %d", want, account.Balance)
	}
	return nil
}
