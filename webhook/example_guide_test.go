package webhook_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/webhooktest"
)

// A receiver for a registered endpoint, whose deliveries are signed.
func Example() {
	gw, err := mockserver.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer gw.Close() //nolint:errcheck // nothing listens
	client, secret := gw.Client(), gw.Secret()
	orders := map[string]gateway.TransactionParams{} // stored before they are charged

	rx, err := webhook.New(webhook.Config{
		Keys: []webhook.SigningKey{{Key: secret}}, // gateway.NewSecret(os.Getenv("GATEWAY_WEBHOOK_SECRET"))
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	webhook.OnTransaction(rx, webhook.TransactionPaid, func(ctx context.Context, e *webhook.TransactionEvent) error {
		order, stored := orders[e.CorrelationID]
		if !stored { // not yet: after an error the event is retried
			return fmt.Errorf("no order %q", e.CorrelationID)
		}
		tx, err := client.Transactions.Get(ctx, e.ResourceID) // the event may be late
		switch {
		case err != nil:
			return err
		case !tx.AmountIs(order.Amount) || tx.Currency != gateway.BRL:
			return webhook.Permanent(fmt.Errorf("order %q was paid with another amount", e.CorrelationID))
		case !tx.Settled(): // refunded since
			return nil
		}
		fmt.Println("ship", e.CorrelationID, "for", gateway.FormatAmount(tx.Charged(), tx.Currency))
		return nil
	})
	webhook.Ignore(rx, webhook.TransactionCreated, webhook.TransactionPending) // other kinds without a handler are logged
	mux := http.NewServeMux()
	mux.Handle("POST /webhooks/gateway", rx)

	// The gateway's part: one event arrives twice, another one after its payment was refunded.
	gw.Webhooks.Send(rx)
	pay := func(ref string) (*gateway.Transaction, error) {
		orders[ref] = gateway.TransactionParams{
			ExternalRef: ref, Amount: 1990, Method: gateway.Pix, Products: []gateway.Product{{Name: "Tea", Price: 1990}},
			Buyer: gateway.BuyerParams{Name: "Ana Souza", Email: "ana@example.com"},
		}
		tx, err := client.Transactions.Create(context.Background(), orders[ref])
		if err != nil {
			return nil, err
		}
		return tx, gw.Transactions.Pay(tx.ID)
	}
	twice := gw.Webhooks.Duplicate(string(webhook.TransactionPaid))
	_, first := pay("order-1001")
	sent := gw.Wait(context.Background())
	gw.Webhooks.Hold()
	tx, second := pay("order-1002")
	if err := errors.Join(twice, first, sent, second); err != nil {
		fmt.Println(err)
		return
	}
	_, err = client.Transactions.Refund(context.Background(), tx.ID, gateway.RefundParams{Full: true})
	if err := errors.Join(err, gw.Webhooks.Release(), gw.Wait(context.Background())); err != nil {
		fmt.Println(err)
	}
	// Output: ship order-1001 for BRL 19.90
}

// One URL for a registered endpoint and for the notify_url of a transaction,
// whose deliveries are not signed.
func ExampleNew_signatureOrReadBack() {
	gw, err := mockserver.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer gw.Close() //nolint:errcheck // nothing listens
	client, secret := gw.Client(), gw.Secret()

	rx, err := webhook.New(webhook.Config{
		Trust:      webhook.SignatureOrReadBack,
		Keys:       []webhook.SigningKey{{Key: secret}},
		API:        client,                                        // reads the resource that an unsigned delivery names
		SecretPath: gateway.NewSecret("c0ffee5eed0123456789abcd"), // the last element of the URL
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	forged := webhooktest.Event{Kind: webhook.TransactionPaid}.Body()
	response := rx.Receive(context.Background(), webhook.Delivery{Path: "/webhooks/gateway/c0ffee5eed0123456789abcd", Body: forged})
	fmt.Println(response.Status, string(response.Body))
	// Output:
	// 401 {"error":"unconfirmed_event"}
}

// The event of a refund has the amount of the charge. What was paid back is in
// the transaction.
func ExampleOnTransaction_refund() {
	gw, err := mockserver.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer gw.Close() //nolint:errcheck // nothing listens
	client, refunded := gw.Client(), map[string]int64{}
	rx, err := webhook.New(webhook.Config{Keys: []webhook.SigningKey{{Key: gw.Secret()}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	webhook.OnTransaction(rx, webhook.TransactionRefunded, func(ctx context.Context, e *webhook.TransactionEvent) error {
		tx, err := client.Transactions.Get(ctx, e.ResourceID)
		if err != nil {
			return err
		}
		refunded[e.CorrelationID] = tx.RefundedAmount
		return nil
	})
	webhook.Ignore(rx, webhook.TransactionCreated, webhook.TransactionPending, webhook.TransactionPaid)
	gw.Webhooks.Send(rx)

	ctx := context.Background()
	tx, err := client.Transactions.Create(ctx, gateway.TransactionParams{
		ExternalRef: "order-1001",
		Amount:      1990,
		Method:      gateway.Pix,
		Buyer: gateway.BuyerParams{
			Name: "Ana", Email: "ana@example.com",
			Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"},
		},
		Products: []gateway.Product{{Name: "Mug", Price: 1990}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := gw.Transactions.Pay(tx.ID); err != nil {
		fmt.Println(err)
		return
	}
	for _, cents := range []int64{100, 250} {
		if _, err := client.Transactions.Refund(ctx, tx.ID, gateway.RefundParams{Amount: cents}); err != nil {
			fmt.Println(err)
			return
		}
	}
	if err := gw.Wait(ctx); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(gateway.FormatAmount(refunded["order-1001"], gateway.BRL))
	// Output:
	// BRL 3.50
}

// The webhook of a payment was lost, and a charge that expires has none. A service calls
// Run instead of Once.
func ExampleReconciler_Once() {
	gw, err := mockserver.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer gw.Close() //nolint:errcheck // nothing listens
	client := gw.Client()
	rx, err := webhook.New(webhook.Config{Keys: []webhook.SigningKey{{Key: gw.Secret()}}, API: client})
	if err != nil {
		fmt.Println(err)
		return
	}
	var pending sync.Map // the orders by transaction; a table in production
	webhook.OnTransaction(rx, webhook.AnyKind, func(_ context.Context, e *webhook.TransactionEvent) error {
		fmt.Println(e.Kind, e.CorrelationID)
		pending.Delete(e.ResourceID)
		return nil
	})
	open := func(context.Context) iter.Seq2[webhook.OpenResource, error] {
		return func(yield func(webhook.OpenResource, error) bool) {
			for id := range pending.Range { // SELECT … WHERE state = 'pending' AND created_at < …
				r := webhook.OpenResource{Family: webhook.FamilyTransaction, ID: id.(string), Status: string(gateway.TransactionPending)}
				if !yield(r, nil) {
					return
				}
			}
		}
	}
	reconciler, err := webhook.NewReconciler(rx, webhook.ReconcilerConfig{Open: open})
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx := context.Background()
	for _, order := range []string{"order-1001", "order-1002"} {
		tx, err := client.Transactions.Create(ctx, gateway.TransactionParams{
			ExternalRef: order, Amount: 1990, Method: gateway.Pix, Products: []gateway.Product{{Name: "Mug", Price: 1990}},
			Buyer: gateway.BuyerParams{Name: "Ana", Email: "ana@example.com"},
		})
		if err == nil && order == "order-1001" {
			err = gw.Transactions.Pay(tx.ID) // no endpoint is registered: the webhook is lost
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		pending.Store(tx.ID, order)
	}
	if err := gw.Clock.Advance(25 * time.Hour); err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		round, err := reconciler.Once(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("checked", round.Checked, "found", round.Found)
	}
	// Unordered output:
	// transaction.paid order-1001
	// transaction.expired order-1002
	// checked 2 found 2
	// checked 0 found 0
}

// The merchant has no record of a sale by checkout link until its webhook
// arrives. If the webhook is lost, the list of transactions still has the sale.
func ExampleReconcilerConfig_checkoutLinks() {
	gw, err := mockserver.New(mockserver.WithStart(time.Now()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer gw.Close() //nolint:errcheck // nothing listens
	client, now := gw.Client(), gw.Clock.Now
	var sales sync.Map // by the id of the transaction; a table in production
	sold := func(id string) bool { _, stored := sales.Load(id); return stored }
	rx, err := webhook.New(webhook.Config{Keys: []webhook.SigningKey{{Key: gw.Secret()}}, API: client})
	if err != nil {
		fmt.Println(err)
		return
	}
	webhook.OnTransaction(rx, webhook.TransactionPaid, func(_ context.Context, e *webhook.TransactionEvent) error {
		if e.CorrelationID == "" && len(e.Data.Products) > 0 {
			sales.Store(e.ResourceID, e.Data.Customer.Email)
		}
		return nil
	})
	open := func(ctx context.Context) iter.Seq2[webhook.OpenResource, error] {
		return func(yield func(webhook.OpenResource, error) bool) {
			recent := gateway.TransactionListParams{From: now().AddDate(0, 0, -3), Statuses: []gateway.TransactionStatus{gateway.TransactionPaid, gateway.TransactionCaptured}}
			for tx, err := range client.Transactions.All(ctx, recent) {
				switch {
				case err != nil:
					yield(webhook.OpenResource{}, err)
					return
				case tx.ExternalRef != "" || len(tx.Products) == 0 || sold(tx.ID):
					continue // an order, a subscription's charge, or known
				case !yield(webhook.OpenResource{Family: webhook.FamilyTransaction, ID: tx.ID}, nil):
					return
				}
			}
		}
	}
	reconciler, err := webhook.NewReconciler(rx, webhook.ReconcilerConfig{Open: open})
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx := context.Background()
	if err := sellByLink(ctx, gw, client); err != nil { // no endpoint is registered: its webhooks are lost
		fmt.Println(err)
		return
	}
	for range 2 {
		round, err := reconciler.Once(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("checked", round.Checked, "found", round.Found)
	}
	sales.Range(func(_, buyer any) bool {
		fmt.Println("sold to", buyer)
		return true
	})
	// Output:
	// checked 1 found 1
	// checked 0 found 0
	// sold to ana@example.com
}

// sellByLink sells a mug by checkout link, and a membership.
func sellByLink(ctx context.Context, gw *mockserver.Server, client *gateway.Client) error {
	customer, err := client.Customers.Create(ctx, gateway.CustomerParams{Name: "Bia", Email: "bia@example.com"})
	if err != nil {
		return err
	}
	_, err = client.Subscriptions.Create(ctx, gateway.SubscriptionParams{
		CustomerID: customer.ID, Amount: 2990, Interval: gateway.IntervalMonth, Token: "pgct_ok",
	})
	if err != nil {
		return err
	}
	link, err := client.CheckoutLinks.Create(ctx, gateway.CheckoutLinkParams{
		Products: []gateway.CheckoutProduct{{ExternalID: "MUG-1", Name: "Mug", Price: 4990}},
	})
	if err != nil {
		return err
	}
	session, err := client.CheckoutSessions.Open(ctx, link.Slug())
	if err != nil {
		return err
	}
	_, err = client.CheckoutSessions.Update(ctx, link.Slug(), session.SessionToken, gateway.CheckoutSessionParams{
		Buyer:         gateway.CheckoutBuyer{Name: "Ana", Email: "ana@example.com"},
		PaymentMethod: gateway.Pix,
	})
	if err != nil {
		return err
	}
	return gw.Checkout.Pay(link.Slug())
}

// The payer of an old order disputes the payment. Its record is complete, so Open no
// longer yields it.
func ExampleReconcilerConfig_disputes() {
	gw, err := mockserver.New(mockserver.WithDialect(mockserver.Live))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = gw.Close() }()
	client := gw.Client()
	ctx := context.Background()
	tx, err := client.Transactions.Create(ctx, gateway.TransactionParams{
		ExternalRef: "order-1001", Amount: 1990, Method: gateway.Pix,
		Buyer: gateway.BuyerParams{
			Name: "Ana Souza", Email: "ana@example.com", Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"},
		},
		Products: []gateway.Product{{Name: "Mug", Price: 1990}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := errors.Join(gw.Transactions.Pay(tx.ID), gw.Clock.Advance(30*24*time.Hour), gw.Transactions.OpenDispute(tx.ID)); err != nil {
		fmt.Println(err)
		return
	}

	rx, err := webhook.New(webhook.Config{API: client, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		return
	}
	webhook.OnTransaction(rx, webhook.TransactionMED, func(_ context.Context, e *webhook.TransactionEvent) error {
		fmt.Println("disputed:", e.CorrelationID)
		return nil
	})
	orders := noOrders{}
	reconciler, err := webhook.NewReconciler(rx, webhook.ReconcilerConfig{
		Open: orders.open,
		Sweep: []gateway.TransactionStatus{
			gateway.TransactionMED, gateway.TransactionInProtest, gateway.TransactionPreChargedback,
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := reconciler.Once(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// disputed: order-1001
}

// noOrders are the records of a shop in which nothing is open.
type noOrders struct{}

func (noOrders) open(context.Context) iter.Seq2[webhook.OpenResource, error] {
	return func(func(webhook.OpenResource, error) bool) {}
}

// During a rotation both secrets are accepted, so no delivery is lost.
func ExampleSigningKey() {
	oldSecret, newSecret := gateway.NewSecret("whsec_of_last_year"), gateway.NewSecret("whsec_of_this_year")
	rx, err := webhook.New(webhook.Config{
		Keys: []webhook.SigningKey{
			{Key: newSecret},
			{Key: oldSecret, NotAfter: time.Now().Add(48 * time.Hour)},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	body := webhooktest.Event{Kind: webhook.TransactionPending}.Body()
	for _, secret := range []gateway.Secret{oldSecret, newSecret, gateway.NewSecret("a guess")} {
		fmt.Println(deliver(rx, webhooktest.Sign(secret, time.Now(), body), body).Status)
	}
	// Output:
	// 200
	// 200
	// 401
}

// Middleware wraps every run of a handler, for logs, metrics and traces.
func ExampleReceiver_Use() {
	secret := gateway.NewSecret("whsec_from_the_environment")
	rx, err := webhook.New(webhook.Config{Keys: []webhook.SigningKey{{Key: secret}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	rx.Use(func(next webhook.Handler) webhook.Handler {
		return func(ctx context.Context, e *webhook.Event) error {
			err := next(ctx, e) // start a span or a timer here
			fmt.Println(e.Kind, "attempt", e.Attempt, "error:", err)
			return err
		}
	})
	webhook.OnTransaction(rx, webhook.TransactionPaid, func(context.Context, *webhook.TransactionEvent) error {
		return nil
	}, webhook.WithTimeout(2*time.Minute)) // it prints shipping labels
	body := webhooktest.Event{Kind: webhook.TransactionPaid}.Body()
	deliver(rx, webhooktest.Sign(secret, time.Now(), body), body)
	// Output:
	// transaction.paid attempt 1 error: <nil>
}

// In development, Diagnose explains why a signature is rejected.
func ExampleDiagnose() {
	keys := []webhook.SigningKey{{Key: gateway.NewSecret("whsec_from_the_environment")}}
	explained := func(rx http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
			if err != nil {
				http.Error(w, "the body can't be read", http.StatusBadRequest)
				return
			}
			d := webhook.Diagnose(webhook.Delivery{Header: r.Header, Body: body}, keys)
			if !d.Valid {
				fmt.Println(d)
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			rx.ServeHTTP(w, r)
		})
	}

	// A framework has parsed the JSON and encoded it again:
	sent := []byte(`{"id":"evt_1","event":"transaction","data":{"id":"tx_1","event_type":"transaction.paid"}}`)
	got := `{"id": "evt_1", "event": "transaction", "data": {"id": "tx_1", "event_type": "transaction.paid"}}`
	r := httptest.NewRequest(http.MethodPost, "/webhooks/gateway", strings.NewReader(got))
	r.Header = webhooktest.Sign(keys[0].Key, time.Now(), sent)
	explained(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), r)
	// Output:
	// rejected: invalid_signature
	// 1. reencoded_body (proven)
	//    The JSON was parsed and written again, which changed white space. It looks like the output of Python's json.dumps, or of Python's json.dumps with ensure_ascii=False.
	//    Fix: Verify the bytes that arrived. Don't let a body parser run first: use http.Request.Body itself, express.raw instead of express.json, request.get_data() instead of request.json.
}

// A permanent error makes the event a dead letter, which someone must requeue
// or discard.
func ExampleReceiver_Requeue() {
	secret := gateway.NewSecret("whsec_from_the_environment")
	rx, err := webhook.New(webhook.Config{
		Keys:   []webhook.SigningKey{{Key: secret}},
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	approved := false
	webhook.OnTransaction(rx, webhook.TransactionPaid, func(context.Context, *webhook.TransactionEvent) error {
		if !approved {
			return webhook.Permanent(errors.New("another amount was paid"))
		}
		fmt.Println("shipped")
		return nil
	})
	body := webhooktest.Event{Kind: webhook.TransactionPaid}.Body()
	response := deliver(rx, webhooktest.Sign(secret, time.Now(), body), body)
	fmt.Println(response.Status, response.Outcome)

	approved = true // an operator has contacted the buyer

	ctx := context.Background()
	dead, err := rx.DeadLetters(ctx, webhook.DeadLetterQuery{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, letter := range dead {
		fmt.Println(letter.Kind, letter.Reason)
		if _, err := rx.Requeue(ctx, letter.Key); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// 200 dead
	// transaction.paid another amount was paid
	// shipped
}

func deliver(rx *webhook.Receiver, header http.Header, body []byte) webhook.Response {
	return rx.Receive(context.Background(), webhook.Delivery{Header: header, Body: body})
}
