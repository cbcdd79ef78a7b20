package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"testing"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/jarcoal/httpmock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	files "github.com/gateway-go/gateway/internal/golden"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/internal/wire"
)

const (
	anaID          = "019416f1-8a00-7c3e-9d51-6b0f4e2a7c10"
	subscriptionID = "019416f1-8e10-7a42-8c17-3d5e9f1b2a64"
)

// at parses a timestamp of a golden file.
func at(t *testing.T, s string) gateway.Timestamp {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339, s)
	require.NoError(t, err)
	return gateway.TimestampOf(parsed)
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
			Metadata:         gateway.Some(map[string]any{"plan": "platinum"}),
			FailurePolicy:    gateway.ImmediateCancel,
			RetryOffsetsDays: []int{1, 30},
		},
		"subscriptions/update_clear.request.json": gateway.SubscriptionUpdateParams{Metadata: gateway.Clear[map[string]any]()},
		"subscriptions/cancel.request.json":       gateway.SubscriptionCancelParams{Reason: "moved abroad"},
	} {
		require.NoError(t, params.Validate(), file)
		body, err := jsonv2.Marshal(params, jsonv2.Deterministic(true))
		require.NoError(t, err)
		assert.Equal(t, goldenBody(t, file), string(body), file)
	}
}

func TestSubscriptionResponse(t *testing.T) {
	t.Parallel()
	data := goldenData(t, "subscriptions/get.response.json")
	var got gateway.Subscription
	require.NoError(t, jsonv2.Unmarshal(data, &got))

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
	require.NoError(t, jsonv2.Unmarshal(goldenData(t, "subscriptions/create_pix_automatic.response.json"), &got))
	require.NotNil(t, got.Authorization)
	assert.Equal(t, gateway.AuthorizationPending, got.Authorization.Status)
	assert.Equal(t, at(t, "2027-01-05T12:00:00Z"), got.Authorization.ExpirationDate)
	assert.Equal(t, got.Authorization, got.RecurringAuthorization)
	assert.Contains(t, got.AuthorizationQRCode(), "br.gov.bcb.pix")

	var live gateway.Subscription
	liveData := goldenData(t, "subscriptions/create_pix_automatic.live.response.json")
	require.NoError(t, jsonv2.Unmarshal(liveData, &live))
	assert.Equal(t, got.Authorization.QRCode, live.Authorization.QRCode)
	assert.Equal(t, got.Authorization.ExpirationDate, live.Authorization.ExpirationDate, "called expires_at")
	assert.Contains(t, live.Authorization.PaymentLinkURL, "/authorizations/")
	again, err := json.Marshal(live)
	require.NoError(t, err)
	files.Keeps(t, liveData, again)
	for _, nothing := range []string{`null`, `""`, `[]`} {
		var none gateway.Subscription
		require.NoError(t, wire.Decode([]byte(`{"id":"s","amount":"1","authorization":`+nothing+`}`), &none))
		assert.Nil(t, none.Authorization, nothing)
		assert.Equal(t, int64(1), none.Amount)
	}

	got.Authorization = nil
	assert.Contains(t, got.AuthorizationQRCode(), "br.gov.bcb.pix", "RecurringAuthorization has the code too")
	got.RecurringAuthorization = nil
	assert.Empty(t, got.AuthorizationQRCode())
}

func TestSubscriptionResponsesKeepEveryField(t *testing.T) {
	t.Parallel()
	for _, operation := range []string{"create", "create_pix_automatic", "get", "update", "cancel"} {
		data := goldenData(t, "subscriptions/"+operation+".response.json")
		var got gateway.Subscription
		require.NoError(t, jsonv2.Unmarshal(data, &got))
		assertKeepsFields(t, data, got)

		std, err := json.Marshal(got)
		require.NoError(t, err)
		files.Keeps(t, data, std)
	}
}

func TestSubscriptionKeepsUnknownValues(t *testing.T) {
	t.Parallel()
	text := []byte(`{
		"id": "s", "status": "paused", "interval": "year", "paymentMethod": "boleto", "failurePolicy": "ask",
		"cancellationReason": "fraud", "new": {"a": [1, 2.50]}, "informations": [], "retryOffsetsDays": [],
		"products": [{"name": "n", "price": 1, "quantity": 1, "tangible": true, "sku": "S"}],
		"recurringAuthorization": {"status": "asleep", "url": "https://x.example"},
		"transactions": [{"id": "t", "status": "med", "attempt": 2, "amount": 1, "paidAmount": 0, "refundedAmount": 0}],
		"intervalCount": 1, "amount": 1, "cancelAtPeriodEnd": false, "createdAt": "some day"
	}`)
	got, err := clientOf(t, play(reply(200, `{"success":true,"data":`+string(text)+`}`))).Subscriptions.Get(t.Context(), "s")
	require.NoError(t, err)
	assert.Equal(t, gateway.SubscriptionStatus("paused"), got.Status)
	assert.False(t, got.Status.Running())
	assert.False(t, got.Status.Final())
	assert.Equal(t, gateway.Interval("year"), got.Interval)
	assert.Equal(t, gateway.SubscriptionMethod("boleto"), got.PaymentMethod)
	assert.Equal(t, gateway.FailurePolicy("ask"), got.FailurePolicy)
	assert.Equal(t, gateway.CancellationReason("fraud"), got.CancellationReason)
	assert.Equal(t, gateway.AuthorizationStatus("asleep"), got.RecurringAuthorization.Status)
	assert.Equal(t, string(text), string(got.Raw), "with the fields that this version does not know")
	known := text
	for _, unknown := range []string{`"new": {"a": [1, 2.50]}, `, `, "sku": "S"`, `, "url": "https://x.example"`, `"attempt": 2, `} {
		known = bytes.Replace(known, []byte(unknown), nil, 1)
	}
	assertKeepsFields(t, known, got)
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
		assert.True(t, spec.SubscriptionStatuses.Has(string(status)), status)
		assert.Equal(t, want.running, status.Running(), status)
		assert.Equal(t, want.final, status.Final(), status)
	}
}

const (
	subscriptionsRoute   = "/v2/subscriptions"
	subscriptionRoute    = "/v2/subscriptions/" + subscriptionID
	listedSubscriptionID = "019416f1-9360-7f18-a2b4-8c6d0e1f3a57"
)

func TestSubscriptionsCreate(t *testing.T) {
	t.Parallel()
	response := responseOf(t, http.StatusCreated, "subscriptions/create.response.json")
	client := clientFor(t, "POST "+subscriptionsRoute, response)
	var info gateway.Response
	got, err := client.Subscriptions.Create(t.Context(), cardSubscription(), gateway.ResponseInto(&info))
	require.NoError(t, err)
	assertSent(t, response.Only(t), "subscriptions/create.request.json")
	assert.Equal(t, subscriptionID, got.ID)
	assert.Equal(t, gateway.SubscriptionActive, got.Status)
	assert.Equal(t, "sub-order-17", info.Reference)
	assert.Equal(t, "0b1f5c1e-6f0e-4f4b-9d55-0d5a3c1f7e21", info.RequestID)
	assert.False(t, info.Existing)
	assertKeepsFields(t, goldenData(t, "subscriptions/create.response.json"), got)
}

func TestSubscriptionsCreateByPixAutomatico(t *testing.T) {
	t.Parallel()
	response := responseOf(t, http.StatusCreated, "subscriptions/create_pix_automatic.response.json")
	client := clientFor(t, "POST "+subscriptionsRoute, response)
	got, err := client.Subscriptions.Create(t.Context(), pixAutomaticSubscription())
	require.NoError(t, err)
	assertSent(t, response.Only(t), "subscriptions/create_pix_automatic.request.json")
	assert.Equal(t, gateway.SubscriptionIncomplete, got.Status)
	assert.NotEmpty(t, got.AuthorizationQRCode())
}

func TestSubscriptionsCreateTrial(t *testing.T) {
	t.Parallel()
	// The client does not compare the end of the trial with its own clock: only the
	// gateway can reject it.
	response := &files.Exchange{Status: http.StatusBadRequest, Body: []byte(
		`{"title":"Validation Error","status":400,"errors":[{"field":"trial_end","message":"must be in the future","code":"too_small"}]}`)}
	client := clientFor(t, "POST "+subscriptionsRoute, response)
	params := trialSubscription()
	_, err := client.Subscriptions.Create(t.Context(), params)
	require.ErrorIs(t, err, gateway.ErrValidation)
	assertSent(t, response.Only(t), "subscriptions/create_trial.request.json")

	params.TrialEnd = time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	assert.NoError(t, params.Validate())
}

func TestSubscriptionsCreateGeneratesOneKeyPerCall(t *testing.T) {
	t.Parallel()
	response := responseOf(t, http.StatusCreated, "subscriptions/create.response.json")
	client := clientFor(t, "POST "+subscriptionsRoute, response)
	params := cardSubscription()
	params.IdempotencyKey = ""
	var first, second gateway.Response
	_, err := client.Subscriptions.Create(t.Context(), params, gateway.ResponseInto(&first))
	require.NoError(t, err)
	_, err = client.Subscriptions.Create(t.Context(), params, gateway.ResponseInto(&second))
	require.NoError(t, err)
	assert.NotEqual(t, first.Reference, second.Reference)
	for i, want := range []string{first.Reference, second.Reference} {
		assert.Contains(t, string(response.Requests()[i].Body), `"idempotency_key":"`+want+`"`)
	}
}

func TestSubscriptionsCreateRejectsAnOlderSubscription(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*gateway.SubscriptionParams){
		"amount":   func(p *gateway.SubscriptionParams) { p.Amount++ },
		"customer": func(p *gateway.SubscriptionParams) { p.CustomerID = "019416f1-0000-7c3e-9d51-6b0f4e2a7c10" },
		"interval": func(p *gateway.SubscriptionParams) { p.Interval = gateway.IntervalWeek },
		"count":    func(p *gateway.SubscriptionParams) { p.IntervalCount = 2 },
		"currency": func(p *gateway.SubscriptionParams) { p.Currency = gateway.USD },
		"method": func(p *gateway.SubscriptionParams) {
			p.Token, p.PaymentMethod = "", gateway.SubscriptionPixAutomatic
		},
		"trial": func(p *gateway.SubscriptionParams) { p.TrialEnd = at(t, "2027-01-06T12:00:00Z").Time },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := clientFor(t, "POST "+subscriptionsRoute, responseOf(t, http.StatusOK, "subscriptions/create.response.json"))
			params := cardSubscription()
			change(&params)
			_, err := client.Subscriptions.Create(t.Context(), params)
			require.ErrorIs(t, err, gateway.ErrDuplicate)
			var e *gateway.Error
			require.ErrorAs(t, err, &e)
			existing, ok := e.Existing.(*gateway.Subscription)
			require.True(t, ok)
			assert.Equal(t, subscriptionID, existing.ID)
			assert.Equal(t, "sub-order-17", e.Reference)
		})
	}
}

// A live gateway returns the first subscription of a key whatever the body says.
func TestSubscriptionsCreateReportsWhatDiffers(t *testing.T) {
	t.Parallel()
	params := trialSubscription()
	for name, tc := range map[string]struct {
		change   func(*gateway.Subscription)
		differ   string
		existing bool
	}{
		"the same":          {func(*gateway.Subscription) {}, "", true},
		"a rounded trial":   {func(s *gateway.Subscription) { s.TrialEnd.Time = s.TrialEnd.Add(-3 * time.Hour) }, "", true},
		"two days of trial": {func(s *gateway.Subscription) { s.TrialEnd.Time = s.TrialEnd.Add(-48 * time.Hour) }, "another trial_end", false},
		"no trial, not paid": {func(s *gateway.Subscription) {
			s.TrialEnd, s.Status = gateway.Timestamp{}, gateway.SubscriptionIncomplete
		}, "", true},
		"interval and amount": {func(s *gateway.Subscription) {
			s.Amount, s.Interval, s.IntervalCount = 1, gateway.IntervalDay, 3
		}, "another amount, interval and interval_count", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := &gateway.Subscription{
				ID: subscriptionID, CustomerID: anaID, Amount: 4990, Interval: gateway.IntervalWeek, IntervalCount: 2,
				PaymentMethod: gateway.SubscriptionCreditCard, Status: gateway.SubscriptionTrialing, TrialEnd: gateway.TimestampOf(params.TrialEnd),
			}
			tc.change(first)
			body, err := json.Marshal(map[string]any{"success": true, "data": first})
			require.NoError(t, err)
			client := clientFor(t, "POST "+subscriptionsRoute, &files.Exchange{Status: http.StatusOK, Body: body})
			var response gateway.Response
			got, err := client.Subscriptions.Create(t.Context(), params, gateway.ResponseInto(&response))
			assert.Equal(t, tc.existing, response.Existing)
			if tc.existing {
				require.NoError(t, err)
				assert.Equal(t, subscriptionID, got.ID)
				return
			}
			require.ErrorIs(t, err, gateway.ErrDuplicate)
			assert.ErrorContains(t, err, tc.differ)
		})
	}
}

func TestSubscriptionsCreateWithoutATrialIsNotATrial(t *testing.T) {
	t.Parallel()
	body := golden(t, "subscriptions/create.response.json")
	body = bytes.Replace(body, []byte(`"status": "active"`), []byte(`"status": "trialing"`), 1)
	client := clientFor(t, "POST "+subscriptionsRoute, &files.Exchange{Status: http.StatusOK, Body: body})
	_, err := client.Subscriptions.Create(t.Context(), cardSubscription())
	require.ErrorIs(t, err, gateway.ErrDuplicate)
	assert.ErrorContains(t, err, "another trial_end")
}

func TestSubscriptionsCreateWithTheSameKeyReturnsTheFirst(t *testing.T) {
	t.Parallel()
	client := clientFor(t, "POST "+subscriptionsRoute, responseOf(t, http.StatusOK, "subscriptions/create.response.json"))
	var response gateway.Response
	got, err := client.Subscriptions.Create(t.Context(), cardSubscription(), gateway.ResponseInto(&response))
	require.NoError(t, err)
	assert.Equal(t, subscriptionID, got.ID)
	assert.True(t, response.Existing)
}

func TestSubscriptionsCreateWithAUsedKeyIsADuplicate(t *testing.T) {
	t.Parallel()
	client := clientFor(t, "POST "+subscriptionsRoute, &files.Exchange{Status: http.StatusConflict, Body: []byte(
		`{"error":"DUPLICATE_IDEMPOTENCY_KEY","message":"in words","status":409}`)})
	_, err := client.Subscriptions.Create(t.Context(), cardSubscription())
	assert.ErrorIs(t, err, gateway.ErrDuplicate)
}

func TestSubscriptionsGet(t *testing.T) {
	t.Parallel()
	response := responseOf(t, http.StatusOK, "subscriptions/get.response.json")
	client := clientFor(t, "GET "+subscriptionRoute, response)
	got, err := client.Subscriptions.Get(t.Context(), subscriptionID)
	require.NoError(t, err)
	assertSent(t, response.Only(t), "")
	assert.Len(t, got.Transactions, 2)
	assertKeepsFields(t, goldenData(t, "subscriptions/get.response.json"), got)
}

func TestSubscriptionsListInBothShapes(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"subscriptions/list.response.json", "subscriptions/list.live.response.json"} {
		response := responseOf(t, http.StatusOK, file)
		client := clientFor(t, "GET "+subscriptionsRoute, response)
		page, err := client.Subscriptions.List(t.Context(), gateway.SubscriptionListParams{
			Cursor: "abc", Limit: 1, Direction: gateway.DirectionNext,
			Status: gateway.SubscriptionTrialing, CustomerEmail: "ana+1@example.com",
			CreatedAfter:  time.Date(2027, 1, 1, 0, 0, 0, 0, time.FixedZone("", -3*60*60)),
			CreatedBefore: time.Date(2027, 2, 1, 0, 0, 0, 250e6, time.UTC),
		})
		require.NoError(t, err, file)
		sent := response.Only(t)
		assertSent(t, sent, "")
		assert.Equal(t, map[string][]string{
			"cursor": {"abc"}, "limit": {"1"}, "direction": {"next"}, "status": {"trialing"},
			"customer_email": {"ana+1@example.com"},
			"created_after":  {"2027-01-01T00:00:00-03:00"}, "created_before": {"2027-02-01T00:00:00.25Z"},
		}, map[string][]string(sent.Query))
		require.Len(t, page.Items, 1)
		assert.Equal(t, listedSubscriptionID, page.Items[0].ID)
		assert.Equal(t, gateway.AuthorizationApproved, page.Items[0].RecurringAuthorization.Status)
		assert.Nil(t, page.Items[0].Transactions)
		assert.Equal(t, 41, page.Total)
		assert.Equal(t, "c3ViczoyMA", page.NextCursor)
		assert.Empty(t, page.PrevCursor)
		assert.True(t, page.HasMore())
	}
}

func TestSubscriptionsListSendsNoQueryByDefault(t *testing.T) {
	t.Parallel()
	response := responseOf(t, http.StatusOK, "subscriptions/list.response.json")
	client := clientFor(t, "GET "+subscriptionsRoute, response)
	_, err := client.Subscriptions.List(t.Context(), gateway.SubscriptionListParams{})
	require.NoError(t, err)
	assert.Empty(t, response.Only(t).Query)
}

func TestSubscriptionsUpdate(t *testing.T) {
	t.Parallel()
	for file, params := range map[string]gateway.SubscriptionUpdateParams{
		"subscriptions/update.request.json": {
			Metadata:         gateway.Some(map[string]any{"plan": "platinum"}),
			FailurePolicy:    gateway.ImmediateCancel,
			RetryOffsetsDays: []int{1, 30},
		},
		"subscriptions/update_clear.request.json": {Metadata: gateway.Clear[map[string]any]()},
	} {
		response := responseOf(t, http.StatusOK, "subscriptions/update.response.json")
		client := clientFor(t, "PATCH "+subscriptionRoute, response)
		got, err := client.Subscriptions.Update(t.Context(), subscriptionID, params)
		require.NoError(t, err)
		assertSent(t, response.Only(t), file)
		assert.Equal(t, gateway.ImmediateCancel, got.FailurePolicy)
		assertKeepsFields(t, goldenData(t, "subscriptions/update.response.json"), got)
	}
}

func TestSubscriptionsUpdateRejectsImmutableFields(t *testing.T) {
	t.Parallel()
	response := responseOf(t, http.StatusOK, "subscriptions/update.response.json")
	client := clientFor(t, "PATCH "+subscriptionRoute, response)
	_, err := client.Subscriptions.Update(t.Context(), subscriptionID, gateway.SubscriptionUpdateParams{}, gateway.BodyField("amount", 1))
	require.ErrorIs(t, err, gateway.ErrValidation)
	require.ErrorContains(t, err, "amount can't be changed")
	assert.Empty(t, response.Requests())
}

func TestSubscriptionsCancel(t *testing.T) {
	t.Parallel()
	response := responseOf(t, http.StatusOK, "subscriptions/cancel.response.json")
	client := clientFor(t, "POST "+subscriptionRoute+"/cancel", response)
	got, err := client.Subscriptions.Cancel(t.Context(), subscriptionID, gateway.SubscriptionCancelParams{Reason: "moved abroad"})
	require.NoError(t, err)
	assertSent(t, response.Only(t), "subscriptions/cancel.request.json")
	assert.Equal(t, gateway.SubscriptionCancelScheduled, got.Status)
	assert.True(t, got.CancelAtPeriodEnd)
	assertKeepsFields(t, goldenData(t, "subscriptions/cancel.response.json"), got)

	_, err = client.Subscriptions.Cancel(t.Context(), subscriptionID, gateway.SubscriptionCancelParams{})
	require.NoError(t, err)
	assert.Equal(t, "{}", string(response.Requests()[1].Body))
}

func TestSubscriptionsFailures(t *testing.T) {
	t.Parallel()
	checkFailures(t, "subscriptions.create", "POST "+subscriptionsRoute, true, func(ctx context.Context, c *gateway.Client) error {
		_, err := c.Subscriptions.Create(ctx, cardSubscription())
		return err
	})
	checkFailures(t, "subscriptions.get", "GET "+subscriptionRoute, false, func(ctx context.Context, c *gateway.Client) error {
		_, err := c.Subscriptions.Get(ctx, subscriptionID)
		return err
	})
	checkFailures(t, "subscriptions.list", "GET "+subscriptionsRoute, false, func(ctx context.Context, c *gateway.Client) error {
		_, err := c.Subscriptions.List(ctx, gateway.SubscriptionListParams{})
		return err
	})
	checkFailures(t, "subscriptions.update", "PATCH "+subscriptionRoute, true, func(ctx context.Context, c *gateway.Client) error {
		_, err := c.Subscriptions.Update(ctx, subscriptionID, gateway.SubscriptionUpdateParams{FailurePolicy: gateway.ImmediateCancel})
		return err
	})
	checkFailures(t, "subscriptions.cancel", "POST "+subscriptionRoute+"/cancel", true, func(ctx context.Context, c *gateway.Client) error {
		_, err := c.Subscriptions.Cancel(ctx, subscriptionID, gateway.SubscriptionCancelParams{})
		return err
	})
	checkFailures(t, "subscriptions.get", "GET "+subscriptionRoute, false, func(ctx context.Context, c *gateway.Client) error {
		_, err := c.Subscriptions.PendingChallenge(ctx, subscriptionID)
		return err
	})
}

func TestInvalidSubscriptionParamsAreNotSent(t *testing.T) {
	t.Parallel()
	response := responseOf(t, http.StatusOK, "subscriptions/create.response.json")
	client := clientFor(t, "POST "+subscriptionsRoute, response)
	for field, change := range map[string]func(*gateway.SubscriptionParams){
		"token":          func(p *gateway.SubscriptionParams) { p.Token = "" },
		"customer_id":    func(p *gateway.SubscriptionParams) { p.CustomerID = "" },
		"amount":         func(p *gateway.SubscriptionParams) { p.Amount = 0 },
		"interval":       func(p *gateway.SubscriptionParams) { p.Interval = "" },
		"interval_count": func(p *gateway.SubscriptionParams) { p.IntervalCount = 366 },
		"informations":   func(p *gateway.SubscriptionParams) { p.Informations = make([]gateway.Information, 51) },
		"retry_offsets_days[0]": func(p *gateway.SubscriptionParams) {
			p.RetryOffsetsDays = []int{0}
		},
		"payment_method": func(p *gateway.SubscriptionParams) { p.PaymentMethod = "boleto" },
	} {
		params := cardSubscription()
		change(&params)
		_, err := client.Subscriptions.Create(t.Context(), params)
		var invalid *gateway.ValidationError
		require.ErrorAs(t, err, &invalid, field)
		require.ErrorIs(t, err, gateway.ErrValidation)
		assert.Equal(t, field, invalid.Fields[0].Field)
		assert.Equal(t, "subscriptions.create", invalid.Op)
	}
	pix := pixAutomaticSubscription()
	pix.Token = "pgct_ok"
	_, err := client.Subscriptions.Create(t.Context(), pix)
	require.ErrorContains(t, err, "token must not be sent with pix_automatic")

	for _, id := range []string{"", " ", ".", "..", "a/b", `a\b`, "a\nb"} {
		_, err = client.Subscriptions.Get(t.Context(), id)
		require.ErrorIs(t, err, gateway.ErrValidation, id)
		_, err = client.Subscriptions.Update(t.Context(), id, gateway.SubscriptionUpdateParams{})
		require.ErrorIs(t, err, gateway.ErrValidation, id)
		_, err = client.Subscriptions.Cancel(t.Context(), id, gateway.SubscriptionCancelParams{})
		require.ErrorIs(t, err, gateway.ErrValidation, id)
		_, err = client.Subscriptions.PendingChallenge(t.Context(), id)
		require.ErrorIs(t, err, gateway.ErrValidation, id)
	}
	_, err = client.Subscriptions.List(t.Context(), gateway.SubscriptionListParams{Limit: 101})
	require.ErrorIs(t, err, gateway.ErrValidation)
	assert.Empty(t, response.Requests())
}

// routed returns a client whose responses depend on the route, and the
// transport that counts the calls.
func routed(t *testing.T, responses map[string]string) (*gateway.Client, *httpmock.MockTransport) {
	t.Helper()
	transport := httpmock.NewMockTransport()
	for path, body := range responses {
		transport.RegisterResponder(http.MethodGet, baseURL+path, httpmock.NewStringResponder(http.StatusOK, body))
	}
	client, err := gateway.New(baseURL, gateway.BearerToken(testKey), gateway.WithHTTPClient(&http.Client{Transport: transport}))
	require.NoError(t, err)
	return client, transport
}

const (
	incomplete = `{"success":true,"requestId":"r","data":{"id":"sub","status":"incomplete","transactions":[
		{"id":"refused","status":"refused"},{"id":"paid","status":"paid"},
		{"id":"waiting","status":"pending"},{"id":"challenged","status":"three_ds_required"}]}}`
	waiting    = `{"success":true,"requestId":"r","data":{"id":"waiting","status":"pending","next_action":null}}`
	challenged = `{"success":true,"requestId":"r","data":{"id":"challenged","status":"three_ds_required","next_action":{
		"type":"three_ds_challenge","challenge_session_id":"c-1","client_secret":"s-1","expires_at":"2027-01-04T12:15:00.000Z"}}}`
)

func TestPendingChallengeIsFoundThroughTheCharge(t *testing.T) {
	t.Parallel()
	client, transport := routed(t, map[string]string{
		"/v2/subscriptions/sub":        incomplete,
		"/v2/transactions/waiting":     waiting,
		"/v2/transactions/challenged":  challenged,
		"/v2/transactions/never-asked": waiting,
	})
	got, err := client.Subscriptions.PendingChallenge(t.Context(), "sub")
	require.NoError(t, err)
	require.NotNil(t, got)
	assert.Equal(t, "three_ds_challenge", got.Type)
	assert.Equal(t, "c-1", got.ChallengeSessionID)
	assert.Equal(t, gateway.NewClientSecret("s-1"), got.ClientSecret)
	assert.Equal(t, at(t, "2027-01-04T12:15:00Z"), got.ExpiresAt)
	assert.Equal(t, 3, transport.GetTotalCallCount(), "settled and failed charges are not read")
}

func TestPendingChallengeWithoutOne(t *testing.T) {
	t.Parallel()
	client, _ := routed(t, map[string]string{
		"/v2/subscriptions/sub": `{"success":true,"data":{"id":"sub","status":"active","transactions":[{"id":"waiting","status":"pending"}]}}`,
		"/v2/subscriptions/new": `{"success":true,"data":{"id":"new","status":"incomplete","transactions":null}}`,

		"/v2/transactions/waiting": waiting,
	})
	for _, id := range []string{"sub", "new"} {
		got, err := client.Subscriptions.PendingChallenge(t.Context(), id)
		require.NoError(t, err)
		assert.Nil(t, got)
	}
}

func TestPendingChallengeOfAChargeThatCannotBeRead(t *testing.T) {
	t.Parallel()
	client, transport := routed(t, map[string]string{"/v2/subscriptions/sub": incomplete})
	transport.RegisterNoResponder(httpmock.NewStringResponder(http.StatusNotFound, problem(404)))
	_, err := client.Subscriptions.PendingChallenge(t.Context(), "sub")
	require.ErrorIs(t, err, gateway.ErrNotFound)
	assert.ErrorContains(t, err, "transactions.get")
}

func TestSubscriptionsAllAndPages(t *testing.T) {
	t.Parallel()
	const first = `{"success":true,"data":{"data":[{"id":"s3"},{"id":"s2"}],"total":3,"next_cursor":"n1","prev_cursor":null}}`
	const last = `{"success":true,"data":[{"id":"s1"}],"total":3,"next_cursor":null,"prev_cursor":"p1"}`
	client, transport := routed(t, map[string]string{
		"/v2/subscriptions?limit=2&status=active":           first,
		"/v2/subscriptions?cursor=n1&limit=2&status=active": last,
	})
	params := gateway.SubscriptionListParams{Limit: 2, Status: gateway.SubscriptionActive}

	all := client.Subscriptions.All(t.Context(), params)
	assert.Zero(t, transport.GetTotalCallCount(), "nothing is sent before the iteration")
	got, err := gateway.Collect(all, 0)
	require.NoError(t, err)
	ids := make([]string, len(got))
	for i := range got {
		ids[i] = got[i].ID
	}
	assert.Equal(t, []string{"s3", "s2", "s1"}, ids)

	var sizes []int
	for page, err := range client.Subscriptions.Pages(t.Context(), params) {
		require.NoError(t, err)
		assert.Equal(t, 3, page.Total)
		sizes = append(sizes, len(page.Items))
	}
	assert.Equal(t, []int{2, 1}, sizes)

	sent := transport.GetTotalCallCount()
	for range client.Subscriptions.Pages(t.Context(), params) {
		break
	}
	assert.Equal(t, sent+1, transport.GetTotalCallCount(), "a loop that breaks sends no more requests")
}

func TestSubscriptionWarnings(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	client := clientFor(t, "POST "+subscriptionsRoute, responseOf(t, http.StatusCreated, "subscriptions/create_pix_automatic.response.json"),
		gateway.WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))))
	params := pixAutomaticSubscription()
	assert.Empty(t, params.Warnings())
	params.RetryOffsetsDays = []int{3, 5, 7, 30}
	require.NoError(t, params.Validate(), "gateways accept it")
	assert.Len(t, params.Warnings(), 2)
	_, err := client.Subscriptions.Create(t.Context(), params)
	require.NoError(t, err)
	assert.Contains(t, log.String(), "retried at most 3 times")
	assert.Contains(t, log.String(), "retried within 7 days")
	assert.Empty(t, cardSubscription().Warnings())

	params.RetryOffsetsDays, params.IntervalCount = nil, 2
	require.NoError(t, params.Validate(), "gateways accept it")
	require.Len(t, params.Warnings(), 1)
	assert.Contains(t, params.Warnings()[0], "every 2 months")
}
