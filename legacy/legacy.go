// Package legacy is a client for the gateway's v1 surface: the webhook integration,
// the balance, the first Pix payment, and the retired card tokenization. An account
// made for v2 needs only the balance.
//
// Names are those of the v1 contract: camelCase members, payment states in capitals.
// Errors are those of package gateway.
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

// New returns a client for the v1 surface of client's gateway. It shares client's
// connections, retries and logger. Every call sends key in the header apiKey,
// the only form that v1 accepts; [gateway.UseCredential] does not change that.
//
// New rejects an empty key, a public one (pk_…), and a production key for a sandbox.
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
// [Integration]. After [gateway.ErrOutcomeUnknown] call it again with the same URLs.
// A URL that the gateway rejects is [gateway.ErrValidation] (422).
func (c *Client) ConfigureIntegration(ctx context.Context, params IntegrationParams, opts ...gateway.RequestOption) (*Integration, error) {
	return flat[Integration](ctx, c, &spec.Legacy.ConfigureIntegration, params, opts, "id", "status", "pixWebhookUrl", "webhookUrl")
}

// Balance reads the account's balance: GET /v1/account/balance. It is the only
// call of this package that a v2 account needs: transfers are paid from the
// balance.
func (c *Client) Balance(ctx context.Context, opts ...gateway.RequestOption) (*Balance, error) {
	return flat[Balance](ctx, c, &spec.Legacy.Balance, nil, opts, "balance")
}

// CreatePixPayment creates a Pix payment: POST /pix/v1/payment. Show the payer
// PixCode, or PixQRCode as an image. Note the unit of [PixCharge.Value].
//
// The v1 surface has no idempotency key and no call to find a payment. After
// [gateway.ErrOutcomeUnknown] wait for the webhook, or make another payment and let
// this one expire. New code uses [gateway.TransactionsService].
func (c *Client) CreatePixPayment(ctx context.Context, params PixPaymentParams, opts ...gateway.RequestOption) (*PixPayment, error) {
	return flat[PixPayment](ctx, c, &spec.Legacy.CreatePixPayment, params, opts, "transactionId")
}

// PaymentToken reads a card token of the retired tokenization: GET
// /v2/payment_token/{public_token}. It continues to work.
func (c *Client) PaymentToken(ctx context.Context, publicToken string, opts ...gateway.RequestOption) (*PaymentToken, error) {
	return c.onToken(ctx, &spec.Legacy.PaymentToken, publicToken, nil, opts)
}

// CreatePaymentToken creates a card token: POST
// /v2/payment_token/{public_token}. From 2026-08-01 03:00 UTC by the gateway's
// clock it returns 410, which is [gateway.ErrRetired] with the code
// LEGACY_TOKENIZATION_RETIRED. The document shows no body, so params may have
// any members; card data among them is rejected before anything is sent, as
// everywhere.
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
