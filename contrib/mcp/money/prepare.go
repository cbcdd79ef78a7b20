package money

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/contrib/mcp/intent"
	"github.com/gateway-go/gateway/internal/refund"
	"github.com/gateway-go/gateway/internal/spec"
)

// PayoutInput is the input of prepare_payout.
type PayoutInput struct {
	For         string `json:"for" jsonschema:"what is paid: the invoice or order number. The same purpose is paid once"`
	PixKeyType  string `json:"pix_key_type"`
	PixKey      string `json:"pix_key" jsonschema:"the receiver's Pix key"`
	Amount      int64  `json:"amount" jsonschema:"cents"`
	Description string `json:"description,omitempty" jsonschema:"at most 140 characters"`
}

// ChargeInput is the input of prepare_charge.
type ChargeInput struct {
	For      string     `json:"for" jsonschema:"what is charged: the order number. The same purpose is charged once"`
	Method   string     `json:"method"`
	Amount   int64      `json:"amount" jsonschema:"in the currency's smallest unit: cents for BRL"`
	Currency string     `json:"currency,omitempty" jsonschema:"default BRL"`
	Product  string     `json:"product" jsonschema:"what the buyer pays for"`
	Buyer    BuyerInput `json:"buyer"`
}

// BuyerInput is the buyer of a charge.
type BuyerInput struct {
	Name         string        `json:"name"`
	Email        string        `json:"email"`
	DocumentType string        `json:"document_type,omitempty" jsonschema:"such as CPF or CNPJ"`
	Document     string        `json:"document,omitempty"`
	Address      *AddressInput `json:"address,omitempty" jsonschema:"required for a voucher"`
}

// AddressInput is a buyer's address.
type AddressInput struct {
	Street       string `json:"street"`
	Number       string `json:"number,omitempty"`
	Neighborhood string `json:"neighborhood,omitempty"`
	City         string `json:"city"`
	State        string `json:"state,omitempty"`
	ZipCode      string `json:"zip_code,omitempty"`
	Country      string `json:"country,omitempty" jsonschema:"two letters, default BR"`
}

// RefundInput is the input of prepare_refund. It has a target and no amount to add: a
// target can be compared later.
type RefundInput struct {
	For           string `json:"for" jsonschema:"why it is refunded: the number of the return"`
	TransactionID string `json:"transaction_id"`
	UpTo          int64  `json:"up_to,omitempty" jsonschema:"cents that shall be refunded in total, with what was refunded before"`
	Full          bool   `json:"full,omitempty" jsonschema:"refund everything that is left"`
}

// refundParams is what a refund stores.
type refundParams struct {
	TransactionID string `json:"transaction_id"`
	UpTo          int64  `json:"up_to,omitempty"`
	Full          bool   `json:"full,omitempty"`
}

func (p refundParams) goal() refund.Goal { return refund.Goal{UpTo: p.UpTo, Full: p.Full} }

func (p *plane) preparePayout(ctx context.Context, who string, in PayoutInput) *Result {
	params := gateway.TransferParams{
		PixKeyType: gateway.PixKeyType(in.PixKeyType), PixKeyValue: gateway.PixKey(in.PixKey), Amount: in.Amount, Description: in.Description,
	}
	if err := params.Validate(); err != nil {
		return new(Result).fail(err)
	}
	normal, _ := spec.NormalPixKey(in.PixKeyType, in.PixKey) // Validate has checked it
	params.PixKeyValue = gateway.PixKey(normal)
	return p.prepare(ctx, intent.Proposal{
		Kind: intent.Payout, Principal: who, For: in.For, Payee: in.PixKeyType + " " + normal, Amount: in.Amount, Currency: string(gateway.BRL),
	}, params)
}

func (p *plane) prepareCharge(ctx context.Context, who string, in ChargeInput) *Result {
	b := in.Buyer
	params := gateway.TransactionParams{
		Amount: in.Amount, Currency: gateway.Currency(in.Currency), Method: gateway.Method(in.Method),
		Buyer:    gateway.BuyerParams{Name: b.Name, Email: b.Email},
		Products: []gateway.Product{{Name: in.Product, Price: in.Amount}},
	}
	if params.Currency == "" {
		params.Currency = gateway.BRL
	}
	if b.Document != "" || b.DocumentType != "" {
		params.Buyer.Document = &gateway.Document{Type: gateway.DocumentType(b.DocumentType), Number: b.Document}
	}
	if a := b.Address; a != nil {
		params.Buyer.Address = &gateway.Address{
			Street: a.Street, Number: a.Number, Neighborhood: a.Neighborhood, City: a.City, State: a.State, ZipCode: a.ZipCode,
			Country: gateway.Country(a.Country),
		}
	}
	if err := params.Validate(); err != nil {
		return new(Result).fail(err)
	}
	return p.prepare(ctx, intent.Proposal{
		Kind: intent.Charge, Principal: who, For: in.For, Payee: strings.ToLower(b.Email), Amount: in.Amount, Currency: string(params.Currency),
	}, params)
}

func (p *plane) prepareRefund(ctx context.Context, who string, in RefundInput) *Result {
	if (in.UpTo == 0) != in.Full || in.UpTo < 0 {
		return new(Result).fail(&gateway.ValidationError{Fields: []gateway.FieldError{{
			Field: "up_to", Message: "must be at least 1 cent, unless full is true: set exactly one of the two",
		}}})
	}
	t, err := p.client.Transactions.Get(ctx, in.TransactionID, gateway.MaxAttempts(1))
	if err != nil {
		return new(Result).fail(err)
	}
	amount := in.UpTo
	if in.Full {
		amount = t.Paid() // of which part may have been refunded before
	}
	if amount < 1 || amount > t.Paid() {
		return new(Result).fail(&gateway.ValidationError{Fields: []gateway.FieldError{{
			Field: "up_to", Message: fmt.Sprintf("must be at most what was paid: %d cents", t.Paid()),
		}}})
	}
	// The gateway's spelling of the id: two refunds of one transaction must know each other,
	// and ids ignore case.
	return p.prepare(ctx, intent.Proposal{
		Kind: intent.Refund, Principal: who, For: in.For, Payee: t.ID, Amount: amount, Currency: string(t.Currency),
	}, refundParams{TransactionID: t.ID, UpTo: in.UpTo, Full: in.Full})
}

// prepare records a proposal. If its purpose was paid with something that ended
// without moving money, it is recorded as another attempt.
func (p *plane) prepare(ctx context.Context, proposal intent.Proposal, params any) *Result {
	var err error
	if proposal.Params, err = json.Marshal(params); err != nil {
		return new(Result).fail(err)
	}
	i, _, err := p.journal.Prepare(proposal)
	earlier := i
	if reused, ok := errors.AsType[*intent.ReusedError](err); ok {
		earlier = reused.Existing
	}
	if earlier != nil && p.ended(ctx, earlier) {
		i, _, err = p.journal.Prepare(proposal)
	}
	if reused, ok := errors.AsType[*intent.ReusedError](err); ok {
		return reusedBy(reused.Existing, &proposal).fail(err)
	}
	if err != nil {
		return new(Result).fail(err)
	}
	r := show(i)
	if i.State == intent.Prepared && !i.Approved && !p.journal.ClientMayApprove(i) {
		r.DoNext = "A person must approve it: ask the user to run `gateway-mcp approve " + i.ID + "` in a terminal. Then call commit_intent with this intent."
	}
	return r
}

// reusedBy shows both versions of a purpose: the intent that has it, and what was requested.
func reusedBy(existing *intent.Intent, p *intent.Proposal) *Result {
	if existing == nil {
		return &Result{Requested: p.Amount}
	}
	r := show(existing)
	r.Requested = p.Amount
	if existing.Payee != p.Payee {
		r.Differs = append(r.Differs, "payee")
	}
	if existing.Amount != p.Amount {
		r.Differs = append(r.Differs, "amount")
	}
	if existing.Currency != p.Currency {
		r.Differs = append(r.Differs, "currency")
	}
	if r.Differs == nil {
		r.Differs = []string{"details"}
	}
	return r
}

// ended reports whether the resource of an intent ended without moving money. Only a
// read of the gateway proves it.
func (p *plane) ended(ctx context.Context, i *intent.Intent) bool {
	if i.State != intent.Done || i.Void != "" || i.Kind == intent.Refund {
		return false
	}
	var status string
	if i.Kind == intent.Payout {
		t, err := p.client.Transfers.Get(ctx, i.ResourceID, gateway.MaxAttempts(1))
		if err != nil || !t.Status.Final() || t.Status == gateway.TransferPaid {
			return false
		}
		status = string(t.Status)
	} else {
		t, err := p.client.Transactions.Get(ctx, i.ResourceID, gateway.MaxAttempts(1))
		if err != nil || t.Paid() != 0 || !unpaid(t) {
			return false
		}
		status = string(t.Status)
	}
	_, err := p.journal.Void(i.Principal, i.ID, status)
	return err == nil
}

// unpaid reports whether a transaction can no longer be paid. An expired voucher can.
func unpaid(t *gateway.Transaction) bool {
	switch t.Status {
	case gateway.TransactionRefused, gateway.TransactionCanceled:
		return true
	default:
		return t.Status == gateway.TransactionExpired && t.Method == gateway.Pix
	}
}
