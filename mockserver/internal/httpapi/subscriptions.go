package httpapi

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/respond"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

func (a *API) subscriptionRoutes() []route {
	plain := []int{403, 404, 409}
	return []route{
		{
			Operation: spec.Subscriptions.Create, status: 201, livePlain: plain,
			do: withBody(a.createSubscription), data: subscriptionView{}, refusals: []string{
				engine.CodeNotFound, engine.CodeIdempotencyKeyReused, engine.CodeTokenUsed, engine.CodeTokenExpired,
			},
		},
		{
			Operation: spec.Subscriptions.List, status: 200, livePlain: plain,
			data: subscriptionView{},
			do: listed[engine.Subscription, *subscriptionView]{
				table: func(d *store.Data) *store.Table[engine.Subscription] { return &d.Subscriptions },
				query: subscriptionQuery,
				view:  a.viewSubscription,
			}.byCursor,
		},
		{
			Operation: spec.Subscriptions.Get, status: 200, livePlain: plain,
			do: plainly(a.getSubscription), data: subscriptionView{}, refusals: []string{engine.CodeNotFound},
		},
		{
			Operation: spec.Subscriptions.Update, status: 200, livePlain: plain,
			do: withBody(a.updateSubscription), data: subscriptionView{}, refusals: []string{engine.CodeNotFound, engine.CodeInvalidState},
		},
		{
			Operation: spec.Subscriptions.Cancel, status: 200, livePlain: plain,
			do: withBody(a.cancelSubscription), data: subscriptionView{}, refusals: []string{engine.CodeNotFound, engine.CodeInvalidState}, optional: true,
		},
	}
}

// subscriptionBody is the body of a create. Its metadata is kept as raw JSON:
// numbers may exceed the precision of a float64.
type subscriptionBody struct {
	gateway.SubscriptionParams

	Metadata jsontext.Value `json:"metadata,omitzero"`
}

func (a *API) createSubscription(rq *request, in *subscriptionBody) (any, *engine.Refusal) {
	n, err := newSubscription(in)
	if err != nil {
		return nil, engine.Invalid("metadata", spec.CodeInvalidType, "must be an object")
	}
	var first *engine.Subscription
	c, refusal := rq.account.Apply(func(d *store.Data) (engine.Change, *engine.Refusal) {
		first = d.Subscriptions.ByRef(in.IdempotencyKey)
		return engine.CreateSubscription(d.Env, n, engine.ExistingForSubscription{
			Key:        first,
			Customer:   d.Customers.Get(in.CustomerID),
			TokenSpent: d.Spent(n.Token),
		})
	})
	switch {
	case refusal != nil:
		return nil, refusal
	case len(c.Subscriptions) == 0:
		if a.cfg.Dialect.Live(spec.RepeatedSubscription) {
			rq.status = http.StatusOK
		}
		return a.viewSubscription(first), nil
	}
	rq.warn(c.Subscriptions[0])
	return a.viewSubscription(c.Subscriptions[0]), nil
}

// warningHeader says what the mock accepts although banks don't execute it.
const warningHeader = "X-Mock-Warning"

func (rq *request) warn(s *engine.Subscription) {
	if s.Authorization == nil {
		return
	}
	for _, warning := range append(spec.PixPeriodWarnings(s.Interval, s.IntervalCount), spec.PixRetryWarnings(s.FailurePolicy, s.RetryOffsetsDays)...) {
		rq.w.Header().Add(warningHeader, warning)
	}
}

func newSubscription(in *subscriptionBody) (engine.NewSubscription, error) {
	hash, err := hashOf(in)
	if err != nil {
		return engine.NewSubscription{}, err
	}
	return engine.NewSubscription{
		Subscription: engine.Subscription{
			PaymentMethod:    string(in.PaymentMethod),
			Amount:           in.Amount,
			Currency:         string(in.Currency),
			Interval:         string(in.Interval),
			IntervalCount:    in.IntervalCount,
			BillingDay:       in.BillingDayOfMonth,
			FailurePolicy:    string(in.FailurePolicy),
			RetryOffsetsDays: in.RetryOffsetsDays,
			Comment:          in.Comment,
			Metadata:         compact(in.Metadata),
			Informations:     informationsFrom(in.Informations),
			Products:         productsFrom(in.Products),
			IdempotencyKey:   in.IdempotencyKey,
			BodyHash:         hash,
			TrialEnd:         in.TrialEnd.UTC().Truncate(time.Millisecond),
		},
		Token: string(in.Token),
	}, nil
}

// compact returns a JSON object without white space, "" for none. v was parsed
// with its body, so it is valid.
func compact(v jsontext.Value) string {
	if v == nil || v.Kind() == 'n' {
		return ""
	}
	c := v.Clone()
	_ = c.Compact()
	return string(c)
}

// hashOf returns a hash of the content of a body.
func hashOf(in *subscriptionBody) (string, error) {
	body, err := respond.Marshal(in)
	if err != nil {
		return "", err
	}
	return hash("", body)
}

func (a *API) getSubscription(rq *request) (any, *engine.Refusal) {
	var view *subscriptionView
	rq.view(func(d *store.Data) {
		if s := read(rq, &d.Subscriptions); s != nil {
			view = a.viewSubscription(s)
			view.Transactions = viewCharges(d, s)
		}
	})
	if view == nil {
		return nil, engine.NotFound("subscription")
	}
	return view, nil
}

func subscriptionQuery(_ *store.Data, q url.Values) store.Query[engine.Subscription] {
	query := cursorQuery[engine.Subscription](q)
	query.In(store.SubscriptionStatus, list(q, "status")...)
	query.Is(store.SubscriptionEmail, strings.ToLower(q.Get("customer_email")))
	query.Since = day(q.Get("created_after"), 0)
	query.Until = day(q.Get("created_before"), 24*time.Hour-1)
	return query
}

// subscriptionPatch is the body of an update: an absent member is unchanged,
// null clears the metadata.
type subscriptionPatch struct {
	Metadata         gateway.Opt[jsontext.Value] `json:"metadata"`
	FailurePolicy    string                      `json:"failure_policy"`
	RetryOffsetsDays []int                       `json:"retry_offsets_days"`
}

func (a *API) updateSubscription(rq *request, in *subscriptionPatch) (any, *engine.Refusal) {
	patch := engine.SubscriptionPatch{FailurePolicy: in.FailurePolicy, RetryOffsetsDays: in.RetryOffsetsDays}
	if !in.Metadata.IsZero() {
		object, _ := in.Metadata.Get()
		metadata := compact(object)
		patch.Metadata = &metadata
	}
	s, refusal := rq.account.Subscription(rq.param, func(env engine.Env, s *engine.Subscription) (engine.Change, *engine.Refusal) {
		return engine.UpdateSubscription(env, s, patch)
	})
	if refusal != nil {
		return nil, refusal
	}
	rq.warn(s)
	return a.viewSubscription(s), nil
}

// cancelSubscription accepts a reason. In the document dialect no response
// shows it; in the live dialect it is the cancellationReason.
func (a *API) cancelSubscription(rq *request, in *gateway.SubscriptionCancelParams) (any, *engine.Refusal) {
	reason := ""
	if a.cfg.Dialect.Live(spec.CancellationReason) {
		reason = in.Reason
	}
	s, refusal := rq.account.Subscription(rq.param, func(env engine.Env, s *engine.Subscription) (engine.Change, *engine.Refusal) {
		return engine.CancelSubscription(env, s, reason)
	})
	if refusal != nil {
		return nil, refusal
	}
	return a.viewSubscription(s), nil
}
