package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/webhooktest"
)

// During a rotation the receiver knows both secrets.
func ExampleVerifier() {
	at := time.Date(2027, 1, 4, 12, 0, 0, 0, time.UTC)
	v := webhook.Verifier{
		Keys: []webhook.SigningKey{{Key: "the new secret"}, {Key: "the old secret", NotAfter: at.Add(24 * time.Hour)}},
		Now:  func() time.Time { return at },
	}
	body := []byte(`{"id":"evt_1"}`)
	fmt.Println(v.Verify(webhooktest.Sign("the old secret", at, body), body))
	fmt.Println(v.Verify(webhooktest.Sign("no secret of ours", at, body), body))
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

// A cloud function hands over headers and a body.
func ExampleReceiver_Receive() {
	rx, err := webhook.New(webhook.Config{Keys: []webhook.SigningKey{{Key: webhooktest.Secret}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	body := webhooktest.Event{Kind: webhook.TransactionPaid}.Body()
	answer := rx.Receive(context.Background(), webhook.Delivery{
		Header: webhooktest.Sign(webhooktest.Secret, time.Now(), body),
		Body:   body,
	})
	fmt.Println(answer.Status, string(answer.Body))
	// Output: 200 {"received":true}
}

// An error has the event handled again, later.
func ExampleRetryAfter() {
	handle := func(_ context.Context, e *webhook.TransactionEvent) error {
		switch {
		case e.CorrelationID == "":
			return webhook.Permanent(errors.New("no order of ours")) // a dead letter at once
		case e.Data.Amount == 0:
			return fmt.Errorf("the warehouse is closed: %w", webhook.RetryAfter(time.Hour))
		default:
			return nil
		}
	}
	fmt.Println(handle(context.Background(), &webhook.TransactionEvent{Event: &webhook.Event{CorrelationID: "order-7"}}))
	// Output: the warehouse is closed: try again after 1h0m0s
}
