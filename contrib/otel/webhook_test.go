package otelgateway_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/baggage"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/storetest"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/webhooktest"
)

const account = "shop-br"

func newStore() webhook.Store {
	return storetest.Durable{Store: webhook.NewMemoryStore(webhook.MemoryOptions{})}.For(gateway.Account{Name: account})
}

// receiver returns a receiver that handles paid transactions with handle.
func (b *backend) receiver(config webhook.Config, handle func(context.Context, *webhook.TransactionEvent) error) *webhook.Receiver {
	b.Helper()
	if config.Store != nil {
		config.Account = account
	}
	config.Keys = []webhook.SigningKey{{Key: webhooktest.Secret(), ID: "2026"}}
	config.Logger = slog.New(slog.DiscardHandler)
	rx, err := webhook.New(b.Instrument(config))
	require.NoError(b, err)
	webhook.OnTransaction(rx, webhook.TransactionPaid, handle)
	b.Cleanup(func() { _ = rx.Shutdown(context.Background()) })
	return rx
}

func (b *backend) deliver(ctx context.Context, rx *webhook.Receiver, event webhooktest.Event, at time.Time) webhook.Response {
	b.Helper()
	body := event.Body()
	return rx.Receive(ctx, webhook.Delivery{Header: webhooktest.Sign(webhooktest.Secret(), at, body), Body: body})
}

func event(id string) webhooktest.Event {
	return webhooktest.Event{Kind: webhook.TransactionPaid, ID: id, ResourceID: "tx-" + id}
}

const receiving = "messaging.operation.name=receive messaging.operation.type=receive messaging.system=gateway"

func TestADeliveryIsASpanAroundItsHandlerAndTheHandlersCalls(t *testing.T) {
	t.Parallel()
	b, gw := newBackend(t), mockserver.Run(t)
	client := b.client(gw, nil)
	rx := b.receiver(webhook.Config{}, func(ctx context.Context, _ *webhook.TransactionEvent) error {
		_, err := client.Transactions.List(ctx, gateway.TransactionListParams{})
		return err
	})
	ctx, request := b.tracer.Start(t.Context(), "POST /webhooks")
	assert.Equal(t, http.StatusOK, b.deliver(ctx, rx, event("evt_1"), time.Now()).Status)
	request.End()
	lines := b.all()
	require.Len(t, lines, 4)
	assert.Equal(t, "POST /webhooks > process transaction.paid (consumer) gateway.resource=transaction/tx-evt_1 gateway.webhook.attempt=1 "+
		"gateway.webhook.key_id=2026 gateway.webhook.outcome=handled messaging.destination.name=transaction.paid messaging.message.id=evt_1 "+
		"messaging.operation.name=process messaging.operation.type=process messaging.system=gateway", lines[1])
	assert.Contains(t, lines[2], "process transaction.paid > transactions.list (internal)")
	assert.Equal(t, []string{"messaging.process.duration{gateway.webhook.outcome=handled messaging.destination.name=transaction.paid " +
		"messaging.operation.name=process messaging.operation.type=process messaging.system=gateway} 1"}, b.metrics("messaging."))
}

func TestDuplicateForgedStaleAndUnreadableDeliveriesAreDistinguished(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	rx := b.receiver(webhook.Config{}, func(context.Context, *webhook.TransactionEvent) error { return nil })
	b.deliver(t.Context(), rx, event("evt_1"), time.Now())
	b.spans.Reset()

	b.deliver(t.Context(), rx, event("evt_1"), time.Now())
	b.deliver(t.Context(), rx, event("evt_2"), time.Now().Add(-time.Hour))
	body := event("evt_3").Body()
	rx.Receive(t.Context(), webhook.Delivery{Header: webhooktest.Sign(gateway.NewSecret("whsec_of_somebody_else"), time.Now(), body), Body: body})
	rx.Receive(t.Context(), webhook.Delivery{Header: http.Header{}, Body: body})
	rx.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/webhooks", nil))
	assert.Equal(t, []string{
		"receive transaction.paid (consumer) gateway.resource=transaction/tx-evt_1 gateway.webhook.key_id=2026 gateway.webhook.outcome=duplicate " +
			"messaging.destination.name=transaction.paid messaging.message.id=evt_1 " + receiving,
		"receive (consumer) error.type=stale_timestamp gateway.webhook.outcome=refused " + receiving,
		"receive (consumer) error.type=invalid_signature gateway.webhook.outcome=refused " + receiving,
		"receive (consumer) error.type=missing_signature gateway.webhook.outcome=refused " + receiving,
		"receive (consumer) error.type=method_not_allowed gateway.webhook.outcome=refused " + receiving,
	}, b.all())
	assert.Contains(t, b.metrics("messaging.client"),
		"messaging.client.operation.duration{error.type=invalid_signature gateway.webhook.outcome=refused "+receiving+"} 1")
}

// The delivery, the failed run and the successful run are three traces; both runs
// link to the delivery. The runs happen in another process.
func TestRunsOfTheInboxAreLinkedToTheDelivery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, store := newBackend(t), newStore()
		receives := b.receiver(webhook.Config{Mode: webhook.Inbox, Store: store, Workers: -1}, func(context.Context, *webhook.TransactionEvent) error { return nil })
		ctx, request := b.tracer.Start(t.Context(), "POST /webhooks")
		b.deliver(ctx, receives, event("evt_1"), time.Now())
		request.End()
		delivery := b.spans.GetSpans()[0].SpanContext

		handles := b.receiver(webhook.Config{Mode: webhook.Inbox, Store: store}, func(ctx context.Context, e *webhook.TransactionEvent) error {
			_, span := b.tracer.Start(ctx, fmt.Sprint("update ", e.Attempt))
			defer span.End()
			if e.Attempt == 1 {
				return errors.New("no such order: " + email)
			}
			return nil
		})
		handles.Start()
		time.Sleep(time.Minute)
		synctest.Wait()
		lines := b.all()
		require.Len(t, lines, 6)
		assert.Contains(t, lines[1], "POST /webhooks > receive transaction.paid (consumer) gateway.account=shop-br gateway.resource=transaction/tx-evt_1 gateway.webhook.key_id=2026 gateway.webhook.outcome=stored")
		assert.Equal(t, "process transaction.paid (consumer) Error failed linked to receive transaction.paid error.type=failed gateway.account=shop-br gateway.resource=transaction/tx-evt_1 "+
			"gateway.webhook.attempt=1 gateway.webhook.key_id=2026 gateway.webhook.outcome=failed messaging.destination.name=transaction.paid messaging.message.id=evt_1 "+
			"messaging.operation.name=process messaging.operation.type=process messaging.system=gateway", lines[2])
		assert.Equal(t, "process transaction.paid > update 1 (internal)", lines[3])
		assert.Contains(t, lines[4], "process transaction.paid (consumer) linked to receive transaction.paid gateway.account=shop-br gateway.resource=transaction/tx-evt_1 gateway.webhook.attempt=2")
		assert.Contains(t, lines[4], "gateway.webhook.outcome=handled")
		assert.NotContains(t, strings.Join(lines, "\n"), email)
		for _, s := range b.spans.GetSpans() {
			for _, link := range s.Links {
				assert.Equal(t, delivery.TraceID(), link.SpanContext.TraceID())
				assert.Equal(t, delivery.SpanID(), link.SpanContext.SpanID())
				assert.NotEqual(t, delivery.TraceID(), s.SpanContext.TraceID(), "a separate trace, even if the event waited long")
			}
		}
	})
}

func TestADeadLetterIsAFailureOfItsLastRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBackend(t)
		rx := b.receiver(webhook.Config{Mode: webhook.Inbox, Store: newStore()}, func(context.Context, *webhook.TransactionEvent) error {
			return webhook.Permanent(errors.New("no such order"))
		})
		stop, err := b.Watch(rx)
		require.NoError(t, err)
		b.deliver(t.Context(), rx, event("evt_1"), time.Now())
		synctest.Wait()
		assert.Contains(t, strings.Join(b.all(), "\n"), "process transaction.paid (consumer) Error dead linked to receive transaction.paid error.type=dead")
		assert.Equal(t, []string{
			"gateway.webhook.inbox.events{gateway.account=shop-br gateway.webhook.state=claimed} 0", "gateway.webhook.inbox.events{gateway.account=shop-br gateway.webhook.state=dead} 1",
			"gateway.webhook.inbox.events{gateway.account=shop-br gateway.webhook.state=hung} 0", "gateway.webhook.inbox.events{gateway.account=shop-br gateway.webhook.state=unhandled} 0",
			"gateway.webhook.inbox.events{gateway.account=shop-br gateway.webhook.state=waiting} 0", "gateway.webhook.inbox.oldest{gateway.account=shop-br} 0",
		}, b.metrics("gateway.webhook"))
		require.NoError(t, stop.Unregister())
		assert.Empty(t, b.metrics("gateway.webhook"))
	})
}

func TestAHandlerThatHungIsReportedAtOnceAndWhenItReturns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBackend(t)
		rx := b.receiver(webhook.Config{Mode: webhook.Inbox, Store: newStore(), HandlerTimeout: time.Second}, func(context.Context, *webhook.TransactionEvent) error {
			time.Sleep(time.Minute)
			return nil
		})
		b.deliver(t.Context(), rx, event("evt_1"), time.Now())
		time.Sleep(30 * time.Second)
		hung := strings.Join(b.all(), "\n")
		assert.Contains(t, hung, "process transaction.paid (consumer) Error hung linked to receive transaction.paid error.type=hung")
		assert.NotContains(t, hung, "handled")
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Regexp(t, `process transaction.paid > process transaction.paid \(consumer\) .*gateway.webhook.outcome=handled`, strings.Join(b.all(), "\n"))
	})
}

// Kinds unknown to this version would make the number of span names unbounded.
func TestUnknownKindsShareOneName(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	rx := b.receiver(webhook.Config{}, func(context.Context, *webhook.TransactionEvent) error { return nil })
	for n := range 3 {
		b.deliver(t.Context(), rx, webhooktest.Event{Kind: webhook.Kind(fmt.Sprintf("transaction.v%d", n))}, time.Now())
	}
	assert.Equal(t, []string{"messaging.process.duration{gateway.webhook.outcome=unhandled messaging.destination.name=_OTHER " +
		"messaging.operation.name=process messaging.operation.type=process messaging.system=gateway} 3"}, b.metrics("messaging."))
}

// Anyone who can read the table can read the trace context stored with a delivery.
func TestTheStoreKeepsNoBaggage(t *testing.T) {
	t.Parallel()
	b, store := newBackend(t), newStore()
	rx := b.receiver(webhook.Config{Mode: webhook.Inbox, Store: store, Workers: -1}, func(context.Context, *webhook.TransactionEvent) error { return nil })
	member, err := baggage.NewMember("user", "maria")
	require.NoError(t, err)
	bag, err := baggage.New(member)
	require.NoError(t, err)
	b.deliver(baggage.ContextWithBaggage(t.Context(), bag), rx, event("evt_1"), time.Now())
	claims, err := store.Next(t.Context(), 1, time.Minute)
	require.NoError(t, err)
	require.Len(t, claims, 1)
	assert.Regexp(t, `^00-[0-9a-f]{32}-[0-9a-f]{16}-01$`, claims[0].Trace)
}

func TestHooksSetInTheConfigAreStillCalled(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	var calls []string
	config := webhook.Config{
		Begin: func(ctx context.Context, _ *webhook.Claim) context.Context {
			calls = append(calls, "begin")
			return ctx
		},
		Observe: func(_ context.Context, o webhook.Observation) { calls = append(calls, string(o.Outcome)) },
	}
	rx := b.receiver(config, func(context.Context, *webhook.TransactionEvent) error { return nil })
	b.deliver(t.Context(), rx, event("evt_1"), time.Now())
	assert.Equal(t, []string{"begin", "handled"}, calls)
	assert.Len(t, b.all(), 1)
}
