package otelgateway_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/webhooktest"
)

// TestNoSpanAndNoMetricHasPersonalData makes calls that send and find personal
// data, some of which fail, and has handlers fail with everything they know.
func TestNoSpanAndNoMetricHasPersonalData(t *testing.T) {
	t.Parallel()
	const phone, token = "11987654321", "pgct_of_a_card"
	b, gw := newBackend(t), mockserver.Run(t)
	client := b.client(gw, nil)
	ctx := t.Context()
	tx, err := client.Transactions.Create(ctx, charge())
	require.NoError(t, err)
	card := charge()
	card.ExternalRef, card.Method, card.Token = "order-2", gateway.CreditCard, gateway.CardToken(token)
	_, err = client.Transactions.Create(ctx, card)
	require.NoError(t, err)
	_, err = client.Customers.Create(ctx, gateway.CustomerParams{Name: buyer, Email: email, Phone: phone})
	require.NoError(t, err)
	_, err = client.Transfers.Create(ctx, gateway.TransferParams{
		PixKeyType: gateway.PixKeyCPF, PixKeyValue: document, Amount: 100, ExternalRef: "payout-1",
	})
	require.NoError(t, err)
	_, err = client.Transactions.Get(ctx, email)
	require.Error(t, err)

	cfg := b.Instrument(webhook.Config{
		Keys: []webhook.SigningKey{{Key: webhooktest.Secret()}}, Backoff: func(int) time.Duration { return 0 },
	})
	rx, err := webhook.New(cfg)
	require.NoError(t, err)
	webhook.OnTransaction(rx, webhook.AnyKind, func(_ context.Context, e *webhook.TransactionEvent) error {
		text := fmt.Sprintf("no order for %s, %s, %+v", buyer, email, e.Data)
		if e.ResourceID == "panics" {
			panic(text)
		}
		return errors.New(text)
	})
	for _, id := range []string{"fails", "panics"} {
		body := webhooktest.Event{Kind: webhook.TransactionPaid, ID: id, ResourceID: id, Data: map[string]any{
			"customer": map[string]any{"name": buyer, "email": email, "phone": phone, "document": document},
		}}.Body()
		rx.Receive(ctx, webhook.Delivery{Header: webhooktest.Sign(webhooktest.Secret(), time.Now(), body), Body: body})
	}

	var shown strings.Builder
	for _, s := range b.spans.GetSpans() {
		fmt.Fprintf(&shown, "%+v\n", s)
	}
	require.Contains(t, shown.String(), tx.ID[:8])
	require.Contains(t, shown.String(), "process transaction.paid")
	fmt.Fprintln(&shown, strings.Join(b.metrics(""), "\n"))
	for _, value := range []string{buyer, email, document, phone, token} {
		assert.NotContains(t, shown.String(), value)
	}
}
