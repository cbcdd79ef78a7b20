package webhook_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/webhook"
)

// Gateways write the kind of an event in several places. The form decides only which kind
// it is, and a kind that can't be told is none.
func TestFormsOfAnEvent(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]struct {
		family webhook.Family
		kind   webhook.Kind
		id     string
	}{
		`{"id":"e","event":"transaction.paid","data":{"id":"tx_1","status":"paid"}}`:                          {webhook.FamilyTransaction, webhook.TransactionPaid, "tx_1"},
		`{"id":"e","event":"transaction.paid","data":{"id":"tx_1","event_type":"transaction.paid"}}`:          {webhook.FamilyTransaction, webhook.TransactionPaid, "tx_1"},
		`{"id":"e","event":"transaction.paid","data":{"id":"tx_1","event_type":"transaction.refunded"}}`:      {webhook.FamilyTransaction, "", "tx_1"},
		`{"id":"e","event":"transaction.paid","type":"payout.failed","data":{"id":"tx_1"}}`:                   {webhook.FamilyTransaction, "", "tx_1"},
		`{"id":"e","event":"transaction.new_kind","data":{"id":"tx_1"}}`:                                      {webhook.FamilyTransaction, "transaction.new_kind", "tx_1"},
		`{"id":"e","event":"payout.transferred","data":{"object":{"id":"tr_1"}}}`:                             {webhook.FamilyTransfer, webhook.PayoutTransferred, "tr_1"},
		`{"id":"e","event":"subscription.renewed","data":{"id":"s_1"}}`:                                       {webhook.FamilySubscription, webhook.SubscriptionRenewed, "s_1"},
		`{"id":"e","event":"transaction","data":{"id":"tx_1","status":"paid"}}`:                               {webhook.FamilyTransaction, webhook.TransactionPaid, "tx_1"},
		`{"id":"e","event":"transaction","data":{"id":"tx_1","status":"captured"}}`:                           {webhook.FamilyTransaction, webhook.TransactionPaid, "tx_1"},
		`{"id":"e","event":"transaction","data":{"id":"tx_1","status":"pending","event_type":null}}`:          {webhook.FamilyTransaction, webhook.TransactionPending, "tx_1"},
		`{"id":"e","event":"transaction","data":{"id":"tx_1","status":"new_state"}}`:                          {webhook.FamilyTransaction, "", "tx_1"},
		`{"id":"e","event":"transaction","data":{"id":"tx_1","status":"paid","event_type":{"name":"x"}}}`:     {webhook.FamilyTransaction, "", "tx_1"},
		`{"id":"e","event":"transaction","data":{"id":"tx_1","event_type":"transaction.paid\u0000"}}`:         {webhook.FamilyTransaction, "", "tx_1"},
		`{"id":"e","event":"transaction","data":{"id":"tx_1","event_type":"transaction.partially_refunded"}}`: {webhook.FamilyTransaction, webhook.TransactionPartiallyRefunded, "tx_1"},
	} {
		e := parse(t, body)
		assert.Equal(t, want.family, e.Family, body)
		assert.Equal(t, want.kind, e.Kind, body)
		assert.Equal(t, want.id, e.ResourceID, body)
	}
}

// A signed event whose kind can't be read is kept and shown. An unsigned one is no proof.
func TestASignedEventWithoutAReadableKindIsKept(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"id":"evt_1","event":"transaction","data":{"id":"tx_1","status":"paid","event_type":{"name":"x"}}}`,
		`{"id":"evt_1","event":"transaction.paid","data":{"id":"tx_1","event_type":"transaction.refunded"}}`,
		`{"id":"evt_1","event":"transaction","data":{"id":"tx_1","event_type":"` + strings.Repeat("k", 300) + `"}}`,
		`{"id":"evt_1","data":{"id":"tx_1","status":"paid"}}`,
	} {
		api := &fakeAPI{}
		api.setTransaction("tx_1", "paid")
		cfg := mixed(t, api)
		cfg.Logger = quiet
		rx := receiver(t, cfg)
		webhook.OnTransaction(rx, webhook.TransactionPaid, func(context.Context, *webhook.TransactionEvent) error { return nil })
		assert.Equal(t, unconfirmed, response(rx, request(body)), body)
		assert.Equal(t, received, response(rx, signed(body)), body)
		counts, err := rx.Counts(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 1, counts.Unhandled, body)
	}
}

// An event with only a state is confirmed by the API, like any other unsigned one.
func TestAnUnsignedEventWithOnlyAStateIsConfirmed(t *testing.T) {
	t.Parallel()
	api := &fakeAPI{}
	api.setTransaction("tx_1", "pending")
	rx, got := shop(t, mixed(t, api))
	body := `{"id":"evt_1","event":"transaction","data":{"id":"tx_1","status":"paid"}}`
	assert.Equal(t, notConfirmedYet, response(rx, request(body)))
	api.setTransaction("tx_1", "paid")
	assert.Equal(t, received, response(rx, request(body)))
	assert.Equal(t, []string{"transaction.paid tx_1 paid"}, got.all())
}

// The key expires without notice, and webhooks go on: signed events are accepted, unsigned
// ones are delivered again, and an operator is told once.
func TestARejectedKeyLosesNoEvents(t *testing.T) {
	t.Parallel()
	api := &fakeAPI{}
	cfg := mixed(t, api)
	var logged strings.Builder
	cfg.Logger = slog.New(slog.NewTextHandler(&logged, nil))
	rx := receiver(t, cfg)
	var got effects
	webhook.OnTransaction(rx, webhook.AnyKind, func(_ context.Context, e *webhook.TransactionEvent) error {
		got.add("%s %s", e.Kind, e.ResourceID)
		return nil
	})
	assert.Zero(t, rx.KeyRejectedSince())
	api.fail(401)
	refund := txBody("evt_1", webhook.TransactionRefunded, "tx_1", "refunded")
	assert.Equal(t, received, response(rx, signed(refund)), "the gateway gives up after a day, a new key may take longer")
	assert.Equal(t, notConfirmedYet, response(rx, request(paid("evt_2", "tx_2"))))
	assert.Equal(t, notConfirmedYet, response(rx, request(paid("evt_2", "tx_2"))))
	assert.NotZero(t, rx.KeyRejectedSince())
	assert.Equal(t, 1, strings.Count(logged.String(), "level=ERROR"), logged.String())
	assert.Contains(t, logged.String(), "the gateway rejects the key")

	api.fail(0)
	api.setTransaction("tx_1", "refunded", "refunded_amount", 1990)
	api.setTransaction("tx_2", "paid")
	assert.Equal(t, received, response(rx, request(paid("evt_2", "tx_2"))))
	assert.Equal(t, received, response(rx, request(refund)), "the unsigned twin")
	assert.Zero(t, rx.KeyRejectedSince())
	assert.Equal(t, []string{"transaction.refunded tx_1", "transaction.paid tx_2"}, got.all(), "each once")
}

// The fee within an event has what is left after it.
func TestNetAmountOfAnEvent(t *testing.T) {
	t.Parallel()
	for fee, want := range map[string]int64{
		`"fee":{"net_amount":1900,"estimated_fee":90,"spread_percentage":0.5}`: 1900,
		`"fee":{"net_amount":"1900"}`:                                          1900,
		`"net_amount":1890,"fee":{"net_amount":1900}`:                          1890,
		`"fee":{"net_amount":"much"}`:                                          0,
		`"fee":90`:                                                             0,
		`"fee":null`:                                                           0,
	} {
		e, err := parse(t, `{"id":"e","event":"transaction","data":{"id":"tx_1","amount":1990,`+fee+`}}`).Transaction()
		require.NoError(t, err, fee)
		assert.Equal(t, want, e.Data.NetAmount, fee)
		assert.Equal(t, int64(1990), e.Data.Amount, fee)
	}
}

// Every member of an event is sent in every type: one that decides about money is an error
// for the handler, any other is left out and logged once.
func TestMembersOfAnEventOfAnotherType(t *testing.T) {
	t.Parallel()
	odd := []string{`7`, `"soon"`, `"12"`, `{"zzz":1}`, `[{"zzz":1}]`, `["a"]`, `true`, `1.5`, `null`}
	strict := []string{"amount", "latest_transaction.amount", "latest_transaction.paid_amount", "latest_transaction.refunded_amount"}
	cases, errors := 0, 0
	for family, members := range map[webhook.Family][]string{
		webhook.FamilyTransaction: {
			"amount", "base_price", "paid_amount", "net_amount", "fee", "currency", "method", "paid_at", "customer", "products", "informations", "correlation_id",
		},
		webhook.FamilySubscription: {
			"amount", "currency", "interval", "interval_count", "current_period_start", "current_period_end", "cancel_at_period_end", "cycle_count",
			"customer_email", "failure_policy", "trial_end", "metadata", "occurred_at", "attempt_number", "failure_reason", "latest_transaction",
			"latest_transaction.amount", "latest_transaction.paid_amount", "latest_transaction.refunded_amount", "latest_transaction.paid_at",
		},
		webhook.FamilyTransfer: {"amount", "fee", "net_amount", "type", "transferred_at", "external_ref"},
	} {
		for _, member := range members {
			for _, value := range odd {
				data := fmt.Sprintf(`"id":"x","status":"paid",%q:%s`, member, value)
				if inner, ok := strings.CutPrefix(member, "latest_transaction."); ok {
					data = fmt.Sprintf(`"id":"x","status":"paid","latest_transaction":{"id":"tx_1",%q:%s}`, inner, value)
				}
				e := parse(t, fmt.Sprintf(`{"id":"e","event":%q,"data":{%s}}`, family, data))
				err := readTyped(e, family)
				fails := slices.Contains(strict, member) && slices.Contains(odd[1:2], value) || slices.Contains(strict, member) && slices.Contains(odd[3:8], value)
				if fails {
					require.ErrorContains(t, err, "is not an integer number of cents", "%s %s: %s", family, member, value)
					errors++
				} else {
					require.NoError(t, err, "%s %s: %s", family, member, value)
				}
				cases++
			}
		}
	}
	t.Logf("%d cases, %d errors", cases, errors)

	var logged strings.Builder
	cfg := signedConfig()
	cfg.Logger = slog.New(slog.NewTextHandler(&logged, nil))
	rx := receiver(t, cfg)
	webhook.OnTransaction(rx, webhook.AnyKind, func(_ context.Context, e *webhook.TransactionEvent) error {
		assert.Empty(t, e.Data.Products)
		assert.Contains(t, string(e.Raw), `"soon"`)
		return nil
	})
	for _, id := range []string{"evt_1", "evt_2"} {
		body := `{"id":"` + id + `","event":"transaction","data":{"id":"` + id + `","event_type":"transaction.paid","amount":1990,"products":[{"title":"a","unit_price":"soon"}],"paid_at":[1]}}`
		assert.Equal(t, received, response(rx, signed(body)))
	}
	assert.Equal(t, 1, strings.Count(logged.String(), "member=data.products.unit_price"), logged.String())
	assert.Equal(t, 1, strings.Count(logged.String(), "member=data.paid_at"), logged.String())
	assert.NotContains(t, logged.String(), "soon")
}

func readTyped(e *webhook.Event, family webhook.Family) error {
	var err error
	switch family {
	case webhook.FamilyTransaction:
		_, err = e.Transaction()
	case webhook.FamilySubscription:
		_, err = e.Subscription()
	default:
		_, err = e.Transfer()
	}
	return err
}

// Two occurrences whose times can't be read are not the same one.
func TestAnUnreadableTimeIsNoReasonToDropAnEvent(t *testing.T) {
	t.Parallel()
	api := &fakeAPI{}
	rx, got := shop(t, mixed(t, api))
	for _, updated := range []string{"first", "second", "second"} {
		api.setTransaction("tx_1", "med", "updated_at", updated)
		assert.Equal(t, received, response(rx, request(txBody("evt_"+updated, webhook.TransactionMED, "tx_1", "med"))))
	}
	assert.Len(t, got.all(), 2)
}
