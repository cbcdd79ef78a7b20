// Package legacy is a client for the gateway's v1 endpoints: webhook URLs, the
// account balance and v1 Pix payments. It also has the retired card tokenization.
// v2 accounts need only the balance.
//
// Names follow the v1 contract: JSON fields are in camelCase and payment states
// in capitals. Errors are those of package gateway.
package legacy

import (
	"context"
	"errors"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/spec"
)

// Client calls the v1 endpoints. Create one with [New]; it is safe for concurrent
// use.
type Client struct {
	api    *gateway.Client
	apiKey gateway.RequestOption
}

// New returns a v1 client with the base URL, connections and options of client.
// Every call sends key in the apiKey header, the only form that v1 accepts;
// [gateway.UseCredential] does not change that.
//
// New rejects an empty key, a public key (pk_…), and a production key for the
// sandbox.
func New(client *gateway.Client, key gateway.Secret) (*Client, error) {
	if client == nil {
		return nil, errors.New("legacy: New needs a client: create one with gateway.New")
	}
	credential := gateway.APIKey(key.Reveal())
	api, err := client.With(gateway.WithCredential(credential))
	if err != nil {
		return nil, err
	}
	return &Client{api: api, apiKey: gateway.UseCredential(credential)}, nil
}

// ConfigureIntegration sets where the gateway sends webhooks: POST
// /v1/business/integration. Both variants of the response decode to an
// [Integration]. The error is [gateway.ErrValidation] (422) if the gateway rejects
// a URL. After [gateway.ErrOutcomeUnknown], call it again with the same URLs.
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
// v1 has no idempotency keys and no way to look up a payment. After
// [gateway.ErrOutcomeUnknown], wait for the webhook, or create another payment and
// let this one expire. Use [gateway.TransactionsService] in new code.
func (c *Client) CreatePixPayment(ctx context.Context, params PixPaymentParams, opts ...gateway.RequestOption) (*PixPayment, error) {
	return flat[PixPayment](ctx, c, &spec.Legacy.CreatePixPayment, params, opts, "transactionId")
}

// PaymentToken reads a card token of the retired tokenization: GET
// /v2/payment_token/{public_token}. This endpoint is not retired.
func (c *Client) PaymentToken(ctx context.Context, publicToken string, opts ...gateway.RequestOption) (*PaymentToken, error) {
	return c.onToken(ctx, &spec.Legacy.PaymentToken, publicToken, nil, opts)
}

// CreatePaymentToken creates a card token: POST
// /v2/payment_token/{public_token}. From 2026-08-01 03:00 UTC by the gateway's
// clock it returns 410, which is [gateway.ErrRetired] with the code
// LEGACY_TOKENIZATION_RETIRED. The interface document does not show the body, so
// params may have any fields. Card data in them is rejected before anything is
// sent.
//
// Deprecated: Collect cards with the client-side payment element, and send its
// token in [gateway.TransactionParams.Token].
func (c *Client) CreatePaymentToken(
	ctx context.Context, publicToken string, params map[string]any, opts ...gateway.RequestOption,
) (*PaymentToken, error) {
	if params == nil {
		params = map[string]any{}
	}
	return c.onToken(ctx, &spec.Legacy.CreatePaymentToken, publicToken, params, opts)
}
