package webhook_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/gateway-go/gateway/webhook"
)

func TestLateEventsAreSkippedByDefault(t *testing.T) {
	t.Parallel()
	for _, asked := range []bool{false, true} {
		cfg := signedConfig()
		cfg.HandleStale = asked
		rx := receiver(t, cfg)
		var got effects
		webhook.OnTransaction(rx, webhook.AnyKind, func(_ context.Context, e *webhook.TransactionEvent) error {
			got.add("%s %v", e.Kind, e.Stale)
			return nil
		})
		assert.Equal(t, received, response(rx, signed(paid("evt_3", "tx_1"))))
		assert.Equal(t, received, response(rx, signed(txBody("evt_2", webhook.TransactionPending, "tx_1", "pending"))))
		assert.Equal(t, received, response(rx, signed(txBody("evt_4", webhook.TransactionRefunded, "tx_1", "partially_refunded"))))
		assert.Equal(t, received, response(rx, signed(txBody("evt_5", webhook.TransactionRefunded, "tx_1", "partially_refunded"))))
		want := []string{"transaction.paid false", "transaction.refunded false", "transaction.refunded false"}
		if asked {
			want = []string{"transaction.paid false", "transaction.pending true", "transaction.refunded false", "transaction.refunded false"}
		} else {
			assert.Equal(t, uint64(1), rx.Stats()[webhook.OutcomeStale])
		}
		assert.Equal(t, want, got.all())
	}
}

func TestLateEventsOfASubscriptionAreOrderedByTimestamp(t *testing.T) {
	t.Parallel()
	rx := receiver(t, signedConfig())
	var got effects
	webhook.OnSubscription(rx, webhook.AnyKind, func(_ context.Context, e *webhook.SubscriptionEvent) error {
		got.add("%s", e.ID)
		return nil
	})
	for _, e := range []struct{ id, kind, at string }{
		{"renewed", "renewed", "2027-03-01T00:00:00.500Z"},
		{"past due, before", "past_due", "2027-03-01T00:00:00.499Z"},
		{"past due, after", "past_due", "2027-04-01T00:00:00.000Z"},
		{"chargeback, whenever", "chargeback_received", "2027-01-01T00:00:00.000Z"},
		{"canceled", "canceled", "2027-05-01T00:00:00.000Z"},
		{"payment failed, same time", "payment_failed", "2027-05-01T00:00:00.000Z"},
		{"no moment", "updated", ""},
	} {
		body := fmt.Sprintf(`{"id":%q,"event":"subscription","data":{"id":"s_1","event_type":"subscription.%s","occurred_at":%q}}`, e.id, e.kind, e.at)
		assert.Equal(t, received, response(rx, signed(body)))
	}
	assert.Equal(t, []string{"renewed", "past due, after", "chargeback, whenever", "canceled", "payment failed, same time", "no moment"}, got.all())
}

func TestLateEventsThatMoveMoneyAreHandled(t *testing.T) {
	t.Parallel()
	sub := func(id string, kind webhook.Kind, at string) string {
		return fmt.Sprintf(`{"id":%q,"event":"subscription","data":{"id":"sub_1","event_type":%q,"occurred_at":%q}}`, id, kind, at)
	}
	cases := map[string]struct {
		bodies []string
		want   []string
	}{
		"a payment after a part was refunded": {
			[]string{txBody("evt_2", webhook.TransactionRefunded, "tx_1", "partially_refunded"), paid("evt_1", "tx_1")},
			[]string{"transaction.refunded false", "transaction.paid true"},
		},
		"a payment after all was refunded": {
			[]string{txBody("evt_2", webhook.TransactionRefunded, "tx_1", "refunded"), paid("evt_1", "tx_1")},
			[]string{"transaction.refunded false", "transaction.paid true"},
		},
		"a part's refund after the rest's": {
			[]string{
				txBody("evt_2", webhook.TransactionRefunded, "tx_1", "refunded"),
				txBody("evt_1", webhook.TransactionRefunded, "tx_1", "partially_refunded"),
			},
			[]string{"transaction.refunded false", "transaction.refunded true"},
		},
		"a renewal after an update": {
			[]string{
				sub("evt_2", webhook.SubscriptionUpdated, "2027-03-01T12:00:00.000Z"),
				sub("evt_1", webhook.SubscriptionRenewed, "2027-02-01T12:00:00.000Z"),
			},
			[]string{"subscription.updated false", "subscription.renewed true"},
		},
		"a failed charge after dunning has ended": {
			[]string{
				sub("evt_2", webhook.SubscriptionRenewed, "2027-03-01T12:00:00.000Z"),
				sub("evt_1", webhook.SubscriptionPastDue, "2027-02-26T12:00:00.000Z"),
			},
			[]string{"subscription.renewed false"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rx := receiver(t, signedConfig())
			var got effects
			webhook.OnTransaction(rx, webhook.AnyKind, func(_ context.Context, e *webhook.TransactionEvent) error {
				got.add("%s %v", e.Kind, e.Stale)
				return nil
			})
			webhook.OnSubscription(rx, webhook.AnyKind, func(_ context.Context, e *webhook.SubscriptionEvent) error {
				got.add("%s %v", e.Kind, e.Stale)
				return nil
			})
			for _, body := range c.bodies {
				assert.Equal(t, received, response(rx, signed(body)))
			}
			assert.Equal(t, c.want, got.all())
		})
	}
}

// Skipping a payment but handling its refund would leave the books wrong.
func TestEveryEventThatMovesMoneyIsHandledOnceHoweverLate(t *testing.T) {
	t.Parallel()
	last := map[webhook.Family]webhook.Kind{
		webhook.FamilyTransaction:  webhook.TransactionChargedback,
		webhook.FamilyTransfer:     webhook.PayoutFailed,
		webhook.FamilySubscription: webhook.SubscriptionCanceled,
	}
	body := func(id string, kind webhook.Kind, at string) string {
		if kind.Family() == webhook.FamilyTransfer {
			return fmt.Sprintf(`{"id":%q,"type":%q,"data":{"object":{"id":"r_1"}}}`, id, kind)
		}
		return fmt.Sprintf(`{"id":%q,"event":%q,"data":{"id":"r_1","event_type":%q,"occurred_at":%q}}`, id, kind.Family(), kind, at)
	}
	for _, kind := range []webhook.Kind{
		webhook.TransactionPaid, webhook.TransactionRefunded, webhook.TransactionPartiallyRefunded, webhook.TransactionChargedback,
		webhook.PayoutCreated, webhook.PayoutTransferred, webhook.PayoutFailed, webhook.PayoutCanceled, webhook.PayoutRejected,
		webhook.SubscriptionStarted, webhook.SubscriptionRenewed, webhook.SubscriptionPaymentFailed, webhook.SubscriptionChargebackReceived,
		webhook.SubscriptionCanceled,
	} {
		rx := receiver(t, signedConfig())
		var got effects
		note := func(e *webhook.Event) error {
			got.add("%s %s", e.ID, e.Kind)
			return nil
		}
		webhook.OnOther(rx, func(_ context.Context, e *webhook.Event) error { return note(e) })
		for _, b := range []string{
			body("evt_2", last[kind.Family()], "2027-03-01T12:00:00.000Z"), body("evt_1", kind, "2027-02-01T12:00:00.000Z"),
			body("evt_1", kind, "2027-02-01T12:00:00.000Z"),
		} {
			assert.Equal(t, received, response(rx, signed(b)), kind)
		}
		assert.Equal(t, []string{"evt_2 " + string(last[kind.Family()]), "evt_1 " + string(kind)}, got.all(), kind)
	}
}

func TestTheOrderOfAnEventWithoutAReadableTimeIsUnknown(t *testing.T) {
	t.Parallel()
	body := func(id, at string) string {
		return `{"id":"` + id + `","event":"subscription","data":{"id":"sub_1","event_type":"subscription.updated","occurred_at":"` + at + `"}}`
	}
	var logged logBuffer
	cfg := signedConfig()
	cfg.Logger, cfg.HandleStale = slog.New(slog.NewTextHandler(&logged, nil)), true
	rx := receiver(t, cfg)
	var got effects
	webhook.OnSubscription(rx, webhook.AnyKind, func(_ context.Context, e *webhook.SubscriptionEvent) error {
		got.add("%s late=%t", e.ID, e.Stale)
		return nil
	})
	assert.Equal(t, received, response(rx, signed(body("new", "2027-01-04T12:00:00-0300"))))
	assert.Equal(t, received, response(rx, signed(body("old", "2027-01-04t11:00:00 utc"))))
	assert.NotContains(t, logged.String(), "order")
	assert.Equal(t, received, response(rx, signed(body("unknown", "soon"))))
	assert.Equal(t, 1, strings.Count(logged.String(), "the order of an event is unknown"), logged.String())
	assert.Equal(t, received, response(rx, signed(body("older", "2027-01-04T10:00:00z"))))
	assert.Equal(t, []string{"new late=false", "old late=true", "unknown late=false", "older late=true"}, got.all())
}
