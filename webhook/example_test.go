package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/webhooktest"
)

// orderBook stands for the merchant's own code: MarkPaid checks the paid
// amount, and returns an error if the order does not exist yet.
type orderBook interface {
	MarkPaid(ctx context.Context, reference string, amount int64, currency gateway.Currency) error
}

// openingSnippet is the code in the package documentation. A test compares the
// two.
func openingSnippet(mux *http.ServeMux, orders orderBook) error {
	rx, err := webhook.New(webhook.Config{
		Keys: []webhook.SigningKey{{Key: gateway.NewSecret(os.Getenv("GATEWAY_WEBHOOK_SECRET"))}},
	})
	if err != nil {
		return err
	}
	webhook.OnTransaction(rx, webhook.TransactionPaid,
		func(ctx context.Context, e *webhook.TransactionEvent) error {
			// If this returns an error, because the order is not stored yet for
			// example, the event is retried.
			return orders.MarkPaid(ctx, e.CorrelationID, e.Data.Charged(), e.Data.Currency)
		})
	mux.Handle("POST /webhooks/gateway", rx)
	return nil
}

// paidOrders records payments.
type paidOrders map[string]int64

func (o paidOrders) MarkPaid(_ context.Context, reference string, amount int64, _ gateway.Currency) error {
	o[reference] = amount
	return nil
}

func TestTheOpeningSnippetWorks(t *testing.T) {
	t.Setenv("GATEWAY_WEBHOOK_SECRET", webhooktest.Secret().Reveal())
	mux, orders := http.NewServeMux(), paidOrders{}
	require.NoError(t, openingSnippet(mux, orders))
	r := webhooktest.Signed(webhooktest.Secret(), webhooktest.Event{Kind: webhook.TransactionPaid, ResourceID: "1001"}.Body())
	r.URL.Path = "/webhooks/gateway"
	assert.Equal(t, received, response(mux, r))
	assert.Equal(t, paidOrders{"order-1001": 1990}, orders)
}

// During a rotation the receiver accepts both secrets.
func ExampleVerifier() {
	at := time.Date(2027, 1, 4, 12, 0, 0, 0, time.UTC)
	v := webhook.Verifier{
		Keys: []webhook.SigningKey{{Key: gateway.NewSecret("the new secret")}, {Key: gateway.NewSecret("the old secret"), NotAfter: at.Add(24 * time.Hour)}},
		Now:  func() time.Time { return at },
	}
	body := []byte(`{"id":"evt_1"}`)
	fmt.Println(v.Verify(webhooktest.Sign(gateway.NewSecret("the old secret"), at, body), body))
	fmt.Println(v.Verify(webhooktest.Sign(gateway.NewSecret("no secret of ours"), at, body), body))
	// Output:
	// <nil>
	// webhook: invalid_signature
}

func ExampleParse() {
	e, err := webhook.Parse([]byte(`{"id":"evt_1","type":"payout.failed","data":{"object":{"id":"po_1","status":"error","amount":1200}}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(e.Family, e.Kind, e.ResourceID)
	if transfer, err := e.Transfer(); err == nil {
		fmt.Println(transfer.State(), transfer.Data.Amount)
	}
	// Output:
	// transfer payout.failed po_1
	// error 1200
}

// A cloud function receives headers and a body.
func ExampleReceiver_Receive() {
	rx, err := webhook.New(webhook.Config{Keys: []webhook.SigningKey{{Key: webhooktest.Secret()}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	body := webhooktest.Event{Kind: webhook.TransactionPaid}.Body()
	response := rx.Receive(context.Background(), webhook.Delivery{
		Header: webhooktest.Sign(webhooktest.Secret(), time.Now(), body),
		Body:   body,
	})
	fmt.Println(response.Status, string(response.Body))
	// Output: 200 {"received":true}
}

// The error that a handler returns decides whether and when the event is
// handled again.
func ExampleRetryAfter() {
	closed := true
	orders := map[string]int64{} // cents, by reference
	handle := func(_ context.Context, e *webhook.TransactionEvent) error {
		cents, stored := orders[e.CorrelationID]
		switch {
		case e.CorrelationID == "":
			return nil // the charge of a subscription: subscription.renewed reports it
		case !stored:
			return fmt.Errorf("order %s is not stored yet", e.CorrelationID) // again with the backoff
		case closed:
			return fmt.Errorf("the warehouse is closed: %w", webhook.RetryAfter(time.Hour))
		case !e.Data.AmountIs(cents):
			return webhook.Permanent(errors.New("another amount was paid")) // a dead letter at once
		default:
			return nil // ship it
		}
	}
	paid := &webhook.TransactionEvent{Event: &webhook.Event{CorrelationID: "order-7"}, Data: webhook.TransactionData{Amount: 1990}}
	fmt.Println(handle(context.Background(), paid))
	orders["order-7"] = 1990
	fmt.Println(handle(context.Background(), paid))
	closed = false
	fmt.Println(handle(context.Background(), paid))
	orders["order-7"] = 2990
	fmt.Println(handle(context.Background(), paid))
	// Output:
	// order order-7 is not stored yet
	// the warehouse is closed: try again after 1h0m0s
	// <nil>
	// another amount was paid
}
