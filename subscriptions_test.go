package gateway_test

import (
	stdjson "encoding/json"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	files "github.com/gateway-go/gateway/internal/golden"
)

const (
	anaID          = "019416f1-8a00-7c3e-9d51-6b0f4e2a7c10"
	subscriptionID = "019416f1-8e10-7a42-8c17-3d5e9f1b2a64"
)

// at reads a moment of a golden file.
func at(t *testing.T, s string) gateway.Timestamp {
	t.Helper()
	moment, err := time.Parse(time.RFC3339, s)
	require.NoError(t, err)
	return gateway.TimestampOf(moment)
}

func cardSubscription() gateway.SubscriptionParams {
	return gateway.SubscriptionParams{
		CustomerID:       anaID,
		Amount:           4990,
		Token:            "pgct_ok_4242",
		PaymentMethod:    gateway.SubscriptionCreditCard,
		Interval:         gateway.IntervalMonth,
		IntervalCount:    1,
		FailurePolicy:    gateway.RetryThenCancel,
		RetryOffsetsDays: []int{3, 5, 7},
		Currency:         gateway.BRL,
		Metadata:         map[string]any{"plan": "gold", "seats": 3},
		Informations:     []gateway.Information{{Key: "contract", Value: "C-17"}},
		IdempotencyKey:   "sub-order-17",
		Products:         []gateway.Product{{Name: "Gold plan", Price: 4990, Quantity: 1, SKU: "GOLD"}},
	}
}

func trialSubscription() gateway.SubscriptionParams {
	return gateway.SubscriptionParams{
		CustomerID:     anaID,
		Amount:         4990,
		Token:          "pgct_ok_4242",
		Interval:       gateway.IntervalWeek,
		IntervalCount:  2,
		FailurePolicy:  gateway.ImmediateCancel,
		IdempotencyKey: "sub-order-18",
		TrialEnd:       time.Date(2027, 2, 1, 0, 0, 0, 0, time.FixedZone("", -3*60*60)),
	}
}

func pixAutomaticSubscription() gateway.SubscriptionParams {
	return gateway.SubscriptionParams{
		CustomerID:        anaID,
		Amount:            2990,
		PaymentMethod:     gateway.SubscriptionPixAutomatic,
		Interval:          gateway.IntervalMonth,
		IdempotencyKey:    "sub-order-19",
		BillingDayOfMonth: 31,
		Comment:           "Monthly box",
	}
}

func TestSubscriptionBodies(t *testing.T) {
	t.Parallel()
	for file, params := range map[string]interface{ Validate() error }{
		"subscriptions/create.request.json":               cardSubscription(),
		"subscriptions/create_trial.request.json":         trialSubscription(),
		"subscriptions/create_pix_automatic.request.json": pixAutomaticSubscription(),
		"subscriptions/update.request.json": gateway.SubscriptionUpdateParams{
			Metadata:         gateway.Set(map[string]any{"plan": "platinum"}),
			FailurePolicy:    gateway.ImmediateCancel,
			RetryOffsetsDays: []int{1, 30},
		},
		"subscriptions/update_clear.request.json": gateway.SubscriptionUpdateParams{Metadata: gateway.Null[map[string]any]()},
		"subscriptions/cancel.request.json":       gateway.SubscriptionCancelParams{Reason: "moved abroad"},
	} {
		require.NoError(t, params.Validate(), file)
		body, err := json.Marshal(params, json.Deterministic(true))
		require.NoError(t, err)
		assert.Equal(t, goldenBody(t, file), string(body), file)
	}
}

func TestSubscriptionAnswer(t *testing.T) {
	t.Parallel()
	data := goldenData(t, "subscriptions/get.response.json")
	var got gateway.Subscription
	require.NoError(t, json.Unmarshal(data, &got))

	var metadata struct {
		Account int64
		Tags    []string
		Trial   bool
	}
	require.NoError(t, got.Metadata.Decode(&metadata))
	assert.Equal(t, int64(9007199254740993), metadata.Account, "a number that a float64 can't hold")
	assert.Equal(t, []string{"a", "b"}, metadata.Tags)
	assert.True(t, metadata.Trial)

	want := gateway.Subscription{
		ID:                 subscriptionID,
		CustomerID:         anaID,
		Status:             gateway.SubscriptionCanceled,
		PaymentMethod:      gateway.SubscriptionCreditCard,
		BillingModel:       "merchant_initiated",
		BillingDayOfMonth:  4,
		Interval:           gateway.IntervalMonth,
		IntervalCount:      1,
		Amount:             4990,
		Currency:           gateway.BRL,
		TrialEnd:           at(t, "2027-01-10T03:00:00Z"),
		CurrentPeriodStart: at(t, "2027-01-10T03:00:00Z"),
		CurrentPeriodEnd:   at(t, "2027-02-10T03:00:00Z"),
		CancelAtPeriodEnd:  true,
		CanceledAt:         at(t, "2027-02-10T03:00:00Z"),
		FailurePolicy:      gateway.ImmediateCancel,
		RetryOffsetsDays:   []int{1, 30},
		CancellationReason: gateway.CancellationUserRequested,
		CustomerEmail:      "ana@example.com",
		CardLast4:          "4242",
		Metadata:           got.Metadata,
		Informations:       []gateway.Information{{Key: "contract", Value: "C-17"}, {Key: "channel", Value: "web"}},
		Products: []gateway.SubscriptionProduct{
			{Name: "Gold plan", Price: 3990, Quantity: 1},
			{Name: "Welcome box", Price: 500, Quantity: 2, Tangible: true},
		},
		Transactions: []gateway.SubscriptionTransaction{
			{
				ID: "019416f1-8e11-7b00-9f3a-5c7d1e2f4a68", Status: gateway.TransactionPartiallyRefunded,
				Amount: 4990, PaidAmount: 4990, RefundedAmount: 1000, Currency: gateway.BRL, ExternalRef: "sub-order-17-1",
				CreatedAt: at(t, "2027-01-10T03:00:00Z"), PaidAt: at(t, "2027-01-10T03:00:01.250Z"),
			},
			{
				ID: "019416f1-8e12-7b00-9f3a-5c7d1e2f4a69", Status: gateway.TransactionRefused,
				Amount: 4990, Currency: gateway.BRL, CreatedAt: at(t, "2027-01-10T02:59:00Z"),
			},
		},
		CreatedAt: at(t, "2027-01-04T12:00:00Z"),
		UpdatedAt: at(t, "2027-02-10T03:00:00Z"),
	}
	assert.Equal(t, want, got)
}

func TestSubscriptionAuthorization(t *testing.T) {
	t.Parallel()
	var got gateway.Subscription
	require.NoError(t, json.Unmarshal(goldenData(t, "subscriptions/create_pix_automatic.response.json"), &got))
	require.NotNil(t, got.Authorization)
	assert.Equal(t, gateway.AuthorizationPending, got.Authorization.Status)
	assert.Equal(t, at(t, "2027-01-05T12:00:00Z"), got.Authorization.ExpirationDate)
	assert.Equal(t, got.Authorization, got.RecurringAuthorization)
	assert.Contains(t, got.AuthorizationQRCode(), "br.gov.bcb.pix")

	got.Authorization = nil
	assert.Contains(t, got.AuthorizationQRCode(), "br.gov.bcb.pix", "it stands on the record, too")
	got.RecurringAuthorization = nil
	assert.Empty(t, got.AuthorizationQRCode())
}

func TestSubscriptionAnswersKeepEveryMember(t *testing.T) {
	t.Parallel()
	for _, operation := range []string{"create", "create_pix_automatic", "get", "update", "cancel"} {
		data := goldenData(t, "subscriptions/"+operation+".response.json")
		var got gateway.Subscription
		require.NoError(t, json.Unmarshal(data, &got))
		assert.Empty(t, got.Extra, operation)
		assertKeepsMembers(t, data, got)

		old, err := stdjson.Marshal(got)
		require.NoError(t, err)
		files.Keeps(t, data, old)
	}
}

func TestSubscriptionKeepsWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	text := []byte(`{
		"id": "s", "status": "paused", "interval": "year", "paymentMethod": "boleto", "failurePolicy": "ask",
		"cancellationReason": "fraud", "new": {"a": [1, 2.50]}, "informations": [], "retryOffsetsDays": [],
		"products": [{"name": "n", "price": 1, "quantity": 1, "tangible": true, "sku": "S"}],
		"recurringAuthorization": {"status": "asleep", "url": "https://x.example"},
		"transactions": [{"id": "t", "status": "med", "attempt": 2, "amount": 1, "paidAmount": 0, "refundedAmount": 0}],
		"intervalCount": 1, "amount": 1, "cancelAtPeriodEnd": false, "createdAt": "some day"
	}`)
	var got gateway.Subscription
	require.NoError(t, json.Unmarshal(text, &got))
	assert.False(t, got.Status.Known())
	assert.False(t, got.Status.Running())
	assert.False(t, got.Status.Final())
	assert.False(t, got.Interval.Known())
	assert.False(t, got.PaymentMethod.Known())
	assert.False(t, got.FailurePolicy.Known())
	assert.False(t, got.CancellationReason.Known())
	assert.False(t, got.RecurringAuthorization.Status.Known())
	assert.Contains(t, got.Extra, "new")
	assert.Contains(t, got.Products[0].Extra, "sku")
	assert.Contains(t, got.RecurringAuthorization.Extra, "url")
	assert.Contains(t, got.Transactions[0].Extra, "attempt")
	assertKeepsMembers(t, text, got)
}

func TestSubscriptionStates(t *testing.T) {
	t.Parallel()
	for status, want := range map[gateway.SubscriptionStatus]struct{ running, final bool }{
		gateway.SubscriptionIncomplete:      {false, false},
		gateway.SubscriptionTrialing:        {true, false},
		gateway.SubscriptionActive:          {true, false},
		gateway.SubscriptionPastDue:         {false, false},
		gateway.SubscriptionCancelScheduled: {true, false},
		gateway.SubscriptionCanceled:        {false, true},
	} {
		assert.True(t, status.Known(), status)
		assert.Equal(t, want.running, status.Running(), status)
		assert.Equal(t, want.final, status.Final(), status)
	}
}
