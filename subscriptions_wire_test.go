package gateway_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	files "github.com/gateway-go/gateway/internal/golden"
)

const (
	subscriptionsRoute = "/v2/subscriptions"
	subscriptionRoute  = "/v2/subscriptions/" + subscriptionID
	secondAnswer       = "019416f1-9360-7f18-a2b4-8c6d0e1f3a57"
)

func TestSubscriptionsCreate(t *testing.T) {
	t.Parallel()
	answer := answerOf(t, http.StatusCreated, "subscriptions/create.response.json")
	client := answering(t, "POST "+subscriptionsRoute, answer)
	var response gateway.Response
	got, err := client.Subscriptions.Create(t.Context(), cardSubscription(), gateway.ResponseInto(&response))
	require.NoError(t, err)
	assertSent(t, answer.Only(t), "subscriptions/create.request.json")
	assert.Equal(t, subscriptionID, got.ID)
	assert.Equal(t, gateway.SubscriptionActive, got.Status)
	assert.Equal(t, "sub-order-17", response.Reference)
	assert.Equal(t, "0b1f5c1e-6f0e-4f4b-9d55-0d5a3c1f7e21", response.RequestID)
	assert.False(t, response.Existing)
	assertKeepsMembers(t, goldenData(t, "subscriptions/create.response.json"), got)
}

func TestSubscriptionsCreateByPixAutomatico(t *testing.T) {
	t.Parallel()
	answer := answerOf(t, http.StatusCreated, "subscriptions/create_pix_automatic.response.json")
	client := answering(t, "POST "+subscriptionsRoute, answer)
	got, err := client.Subscriptions.Create(t.Context(), pixAutomaticSubscription())
	require.NoError(t, err)
	assertSent(t, answer.Only(t), "subscriptions/create_pix_automatic.request.json")
	assert.Equal(t, gateway.SubscriptionIncomplete, got.Status)
	assert.NotEmpty(t, got.AuthorizationQRCode())
}

func TestSubscriptionsCreateTrial(t *testing.T) {
	t.Parallel()
	// The trial's end is long past by this machine's clock: that is for the
	// gateway to judge.
	answer := &files.Exchange{Status: http.StatusBadRequest, Body: []byte(
		`{"title":"Validation Error","status":400,"errors":[{"field":"trial_end","message":"must be in the future","code":"too_small"}]}`)}
	client := answering(t, "POST "+subscriptionsRoute, answer)
	params := trialSubscription()
	_, err := client.Subscriptions.Create(t.Context(), params)
	require.ErrorIs(t, err, gateway.ErrValidation)
	assertSent(t, answer.Only(t), "subscriptions/create_trial.request.json")

	params.TrialEnd = time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	assert.NoError(t, params.Validate())
}

func TestSubscriptionsCreateMakesOneKeyPerCall(t *testing.T) {
	t.Parallel()
	answer := answerOf(t, http.StatusCreated, "subscriptions/create.response.json")
	client := answering(t, "POST "+subscriptionsRoute, answer)
	params := cardSubscription()
	params.IdempotencyKey = ""
	var first, second gateway.Response
	_, err := client.Subscriptions.Create(t.Context(), params, gateway.ResponseInto(&first))
	require.NoError(t, err)
	_, err = client.Subscriptions.Create(t.Context(), params, gateway.ResponseInto(&second))
	require.NoError(t, err)
	assert.NotEqual(t, first.Reference, second.Reference)
	for i, want := range []string{first.Reference, second.Reference} {
		assert.Contains(t, string(answer.Requests()[i].Body), `"idempotency_key":"`+want+`"`)
	}
}

func TestSubscriptionsCreateAnsweredWithAnOlderOne(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*gateway.SubscriptionParams){
		"amount":   func(p *gateway.SubscriptionParams) { p.Amount++ },
		"customer": func(p *gateway.SubscriptionParams) { p.CustomerID = "019416f1-0000-7c3e-9d51-6b0f4e2a7c10" },
		"interval": func(p *gateway.SubscriptionParams) { p.Interval = gateway.IntervalWeek },
		"count":    func(p *gateway.SubscriptionParams) { p.IntervalCount = 2 },
		"currency": func(p *gateway.SubscriptionParams) { p.Currency = gateway.USD },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := answering(t, "POST "+subscriptionsRoute, answerOf(t, http.StatusCreated, "subscriptions/create.response.json"))
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

func TestSubscriptionsCreateAnsweredWithTheSameAgain(t *testing.T) {
	t.Parallel()
	client := answering(t, "POST "+subscriptionsRoute, answerOf(t, http.StatusOK, "subscriptions/create.response.json"))
	var response gateway.Response
	got, err := client.Subscriptions.Create(t.Context(), cardSubscription(), gateway.ResponseInto(&response))
	require.NoError(t, err)
	assert.Equal(t, subscriptionID, got.ID)
	assert.True(t, response.Existing)
}

func TestSubscriptionsCreateOfAnotherBodyUnderTheKey(t *testing.T) {
	t.Parallel()
	client := answering(t, "POST "+subscriptionsRoute, &files.Exchange{Status: http.StatusConflict, Body: []byte(
		`{"error":"DUPLICATE_IDEMPOTENCY_KEY","message":"in words","status":409}`)})
	_, err := client.Subscriptions.Create(t.Context(), cardSubscription())
	assert.ErrorIs(t, err, gateway.ErrDuplicate)
}

func TestSubscriptionsGet(t *testing.T) {
	t.Parallel()
	answer := answerOf(t, http.StatusOK, "subscriptions/get.response.json")
	client := answering(t, "GET "+subscriptionRoute, answer)
	got, err := client.Subscriptions.Get(t.Context(), subscriptionID)
	require.NoError(t, err)
	assertSent(t, answer.Only(t), "")
	assert.Len(t, got.Transactions, 2)
	assertKeepsMembers(t, goldenData(t, "subscriptions/get.response.json"), got)
}

func TestSubscriptionsListInBothShapes(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"subscriptions/list.response.json", "subscriptions/list.live.response.json"} {
		answer := answerOf(t, http.StatusOK, file)
		client := answering(t, "GET "+subscriptionsRoute, answer)
		page, err := client.Subscriptions.List(t.Context(), gateway.SubscriptionListParams{
			Cursor: "abc", Limit: 1, Direction: gateway.DirectionNext,
			Status: gateway.SubscriptionTrialing, CustomerEmail: "ana+1@example.com",
			CreatedAfter:  time.Date(2027, 1, 1, 0, 0, 0, 0, time.FixedZone("", -3*60*60)),
			CreatedBefore: time.Date(2027, 2, 1, 0, 0, 0, 250e6, time.UTC),
		})
		require.NoError(t, err, file)
		sent := answer.Only(t)
		assertSent(t, sent, "")
		assert.Equal(t, map[string][]string{
			"cursor": {"abc"}, "limit": {"1"}, "direction": {"next"}, "status": {"trialing"},
			"customer_email": {"ana+1@example.com"},
			"created_after":  {"2027-01-01T00:00:00-03:00"}, "created_before": {"2027-02-01T00:00:00.25Z"},
		}, map[string][]string(sent.Query))
		require.Len(t, page.Items, 1)
		assert.Equal(t, secondAnswer, page.Items[0].ID)
		assert.Equal(t, gateway.AuthorizationApproved, page.Items[0].RecurringAuthorization.Status)
		assert.Nil(t, page.Items[0].Transactions)
		assert.Equal(t, 41, page.Total)
		assert.Equal(t, "c3ViczoyMA", page.NextCursor)
		assert.Empty(t, page.PrevCursor)
		assert.True(t, page.HasMore())
	}
}

func TestSubscriptionsListSendsNothingByDefault(t *testing.T) {
	t.Parallel()
	answer := answerOf(t, http.StatusOK, "subscriptions/list.response.json")
	client := answering(t, "GET "+subscriptionsRoute, answer)
	_, err := client.Subscriptions.List(t.Context(), gateway.SubscriptionListParams{})
	require.NoError(t, err)
	assert.Empty(t, answer.Only(t).Query)
}

func TestSubscriptionsUpdate(t *testing.T) {
	t.Parallel()
	for file, params := range map[string]gateway.SubscriptionUpdateParams{
		"subscriptions/update.request.json": {
			Metadata:         gateway.Set(map[string]any{"plan": "platinum"}),
			FailurePolicy:    gateway.ImmediateCancel,
			RetryOffsetsDays: []int{1, 30},
		},
		"subscriptions/update_clear.request.json": {Metadata: gateway.Null[map[string]any]()},
	} {
		answer := answerOf(t, http.StatusOK, "subscriptions/update.response.json")
		client := answering(t, "PATCH "+subscriptionRoute, answer)
		got, err := client.Subscriptions.Update(t.Context(), subscriptionID, params)
		require.NoError(t, err)
		assertSent(t, answer.Only(t), file)
		assert.Equal(t, gateway.ImmediateCancel, got.FailurePolicy)
		assertKeepsMembers(t, goldenData(t, "subscriptions/update.response.json"), got)
	}
}

func TestSubscriptionsUpdateRefusesWhatCannotChange(t *testing.T) {
	t.Parallel()
	answer := answerOf(t, http.StatusOK, "subscriptions/update.response.json")
	client := answering(t, "PATCH "+subscriptionRoute, answer)
	_, err := client.Subscriptions.Update(t.Context(), subscriptionID, gateway.SubscriptionUpdateParams{}, gateway.BodyField("amount", 1))
	require.ErrorIs(t, err, gateway.ErrValidation)
	require.ErrorContains(t, err, "amount can't be changed")
	assert.Empty(t, answer.Requests())
}

func TestSubscriptionsCancel(t *testing.T) {
	t.Parallel()
	answer := answerOf(t, http.StatusOK, "subscriptions/cancel.response.json")
	client := answering(t, "POST "+subscriptionRoute+"/cancel", answer)
	got, err := client.Subscriptions.Cancel(t.Context(), subscriptionID, gateway.SubscriptionCancelParams{Reason: "moved abroad"})
	require.NoError(t, err)
	assertSent(t, answer.Only(t), "subscriptions/cancel.request.json")
	assert.Equal(t, gateway.SubscriptionCancelScheduled, got.Status)
	assert.True(t, got.CancelAtPeriodEnd)
	assertKeepsMembers(t, goldenData(t, "subscriptions/cancel.response.json"), got)

	_, err = client.Subscriptions.Cancel(t.Context(), subscriptionID, gateway.SubscriptionCancelParams{})
	require.NoError(t, err)
	assert.Equal(t, "{}", string(answer.Requests()[1].Body))
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

func TestSubscriptionsSendNothingWrong(t *testing.T) {
	t.Parallel()
	answer := answerOf(t, http.StatusOK, "subscriptions/create.response.json")
	client := answering(t, "POST "+subscriptionsRoute, answer)
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
	assert.Empty(t, answer.Requests())
}
