// Package legacy speaks the gateway's v1 surface: the webhook integration, the
// account's balance and the first Pix payment. It also holds the two calls of
// the retired card tokenization. Accounts that were made for v2 need nothing of
// it but the balance.
//
// Its names are those of the v1 contract, which differ from v2's: camelCase
// members, payment states in capitals. Errors are those of package gateway:
// [gateway.Error] with its kinds for errors.Is, [gateway.OutcomeError] for a
// write of unknown outcome, [gateway.ValidationError] for what was not sent.
package legacy

import (
	"context"
	"errors"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/spec"
)

// Client calls the v1 surface. Make one with [New]; it is safe for concurrent
// use.
type Client struct {
	api    *gateway.Client
	apiKey gateway.RequestOption
}

// New returns a client for the v1 surface of the gateway that client calls. It
// shares client's connections, retries and logger. The v1 surface takes key in
// the header apiKey and in no other form, so that is how every call sends it,
// whatever client itself uses; a call with [gateway.UseCredential] does not
// change it.
//
// New refuses what is no secret key: an empty one, a public one (pk_…), a
// production key for a sandbox.
func New(client *gateway.Client, key gateway.Secret) (*Client, error) {
	if client == nil {
		return nil, errors.New("legacy: New needs a client: make one with gateway.New")
	}
	credential := gateway.APIKey(key.Reveal())
	api, err := client.With(gateway.WithCredential(credential))
	if err != nil {
		return nil, err
	}
	return &Client{api: api, apiKey: gateway.UseCredential(credential)}, nil
}

// ConfigureIntegration sets where the gateway sends webhooks: POST
// /v1/business/integration. Both variants of the contract are read into one
// [Integration].
//
// It is not repeated once it may have been applied: the error is then
// [gateway.ErrOutcomeUnknown], and calling again with the same URLs is safe.
// A URL that the gateway does not take is [gateway.ErrValidation] (422).
func (c *Client) ConfigureIntegration(ctx context.Context, params IntegrationParams, opts ...gateway.RequestOption) (*Integration, error) {
	return flat[Integration](ctx, c, &spec.Legacy.ConfigureIntegration, params, opts, "id", "status", "pixWebhookUrl", "webhookUrl")
}

// Balance reads the account's balance: GET /v1/account/balance. It is the one
// call of this package that a v2 account needs too: transfers are paid from it.
func (c *Client) Balance(ctx context.Context, opts ...gateway.RequestOption) (*Balance, error) {
	return flat[Balance](ctx, c, &spec.Legacy.Balance, nil, opts, "balance")
}

// CreatePixPayment asks a payer for a Pix payment: POST /pix/v1/payment. Show
// the payer PixCode or the picture PixQRCode of the response. Mind the unit of
// [PixCharge.Value].
//
// The v1 surface has no idempotency key, so a payment is not repeated once it
// may have been made: the error is then [gateway.ErrOutcomeUnknown], and there
// is no call to find the payment with; wait for its webhook, or make another
// one and let this one expire. New code uses [gateway.TransactionsService],
// which has neither problem.
func (c *Client) CreatePixPayment(ctx context.Context, params PixPaymentParams, opts ...gateway.RequestOption) (*PixPayment, error) {
	return flat[PixPayment](ctx, c, &spec.Legacy.CreatePixPayment, params, opts, "transactionId")
}

// PaymentToken reads a card token of the retired tokenization: GET
// /v2/payment_token/{public_token}. It goes on working.
func (c *Client) PaymentToken(ctx context.Context, publicToken string, opts ...gateway.RequestOption) (*PaymentToken, error) {
	return c.onToken(ctx, &spec.Legacy.PaymentToken, publicToken, nil, opts)
}

// CreatePaymentToken makes a card token: POST /v2/payment_token/{public_token}.
// From 2026-08-01 03:00 UTC by the gateway's clock it returns 410, which is
// [gateway.ErrRetired] with the code LEGACY_TOKENIZATION_RETIRED. The document
// shows no body, so params are any members; card data among them is refused
// before it is sent, as everywhere.
//
// Deprecated: cards are collected by the client-side payment element, whose
// token goes into [gateway.TransactionParams.Token].
func (c *Client) CreatePaymentToken(
	ctx context.Context, publicToken string, params map[string]any, opts ...gateway.RequestOption,
) (*PaymentToken, error) {
	if params == nil {
		params = map[string]any{}
	}
	return c.onToken(ctx, &spec.Legacy.CreatePaymentToken, publicToken, params, opts)
}
