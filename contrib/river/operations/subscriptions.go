package operations

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/go-json-experiment/json"
)

const (
	kindCreateSubscription = "subscriptions.create"
	kindUpdateSubscription = "subscriptions.update"
	kindCancelSubscription = "subscriptions.cancel"
)

// CreateSubscription creates a subscription: POST /v2/subscriptions.
// IdempotencyKey is required and is its key.
type CreateSubscription gateway.SubscriptionParams

// SubscriptionResult is the outcome of a [CreateSubscription].
type SubscriptionResult = Result[CreateSubscription, gateway.Subscription]

// Validate implements [Operation].
func (c CreateSubscription) Validate() error {
	return errors.Join(checkIdentity(c, "idempotency_key", ""), gateway.SubscriptionParams(c).Validate())
}

func (c CreateSubscription) identity() identity {
	return identity{kind: kindCreateSubscription, key: c.IdempotencyKey}
}

func (CreateSubscription) repeat() repeatability         { return byReference }
func (CreateSubscription) result() *gateway.Subscription { return new(gateway.Subscription) }

func (CreateSubscription) begin(context.Context, *session) (snapshot, any, error) {
	return snapshot{}, nil, nil
}

func (c CreateSubscription) send(ctx context.Context, s *session, _ *snapshot) (any, error) {
	return s.client.Subscriptions.Create(ctx, gateway.SubscriptionParams(c), s.options...)
}

// look searches for a subscription that the request may have created. Responses do
// not include the idempotency key, so an equal subscription may come from
// another request.
func (c CreateSubscription) look(ctx context.Context, s *session, _ *snapshot) (verdict, error) {
	var newest time.Time
	for sub, err := range s.client.Subscriptions.All(ctx, gateway.SubscriptionListParams{Limit: 100}, s.readPages()...) {
		if err != nil {
			return verdict{}, err
		}
		if s.tooOld(&newest, sub.CreatedAt.Time) {
			break
		}
		if strings.EqualFold(sub.CustomerID, c.CustomerID) && sub.Amount == c.Amount && sub.Interval == c.Interval {
			return verdict{finding: unclear, why: "a repeat of the request was rejected, and the subscription " + sub.ID +
				" of the customer looks like this one, but may come from another request"}, nil
		}
	}
	return verdict{finding: notApplied}, nil
}

func (CreateSubscription) decided(ctx context.Context, s *session, _ *snapshot, id string) (any, error) {
	return s.client.Subscriptions.Get(ctx, id, s.read()...)
}

// UpdateSubscription changes the metadata, the failure policy or the retry days
// of a subscription: PATCH /v2/subscriptions/{id}.
type UpdateSubscription struct {
	Key            string                           `json:"key"`
	SubscriptionID string                           `json:"subscription_id"`
	Params         gateway.SubscriptionUpdateParams `json:"params"`
}

// UpdateSubscriptionResult is the outcome of an [UpdateSubscription].
type UpdateSubscriptionResult = Result[UpdateSubscription, gateway.Subscription]

// Validate implements [Operation].
func (u UpdateSubscription) Validate() error {
	return errors.Join(checkIdentity(u, "key", "subscription_id"), u.Params.Validate())
}

func (u UpdateSubscription) identity() identity {
	return identity{kind: kindUpdateSubscription, key: u.Key, resource: resource("subscriptions", u.SubscriptionID)}
}

// The header is documented for POST and PUT only.
func (UpdateSubscription) repeat() repeatability         { return byReading }
func (UpdateSubscription) result() *gateway.Subscription { return new(gateway.Subscription) }

// subscriptionSettings are the fields that an update can change.
type subscriptionSettings struct {
	FailurePolicy    gateway.FailurePolicy `json:"failure_policy"`
	RetryOffsetsDays []int                 `json:"retry_offsets_days"`
	Metadata         any                   `json:"metadata"`
}

func settingsOf(s *gateway.Subscription) (*subscriptionSettings, error) {
	settings := &subscriptionSettings{FailurePolicy: s.FailurePolicy, RetryOffsetsDays: s.RetryOffsetsDays}
	return settings, replace(&settings.Metadata, s.Metadata)
}

// after returns the settings with the update applied.
func (u UpdateSubscription) after(s subscriptionSettings) (subscriptionSettings, error) {
	if u.Params.FailurePolicy != "" {
		s.FailurePolicy = u.Params.FailurePolicy
	}
	if u.Params.RetryOffsetsDays != nil {
		s.RetryOffsetsDays = u.Params.RetryOffsetsDays
	}
	if metadata, set := u.Params.Metadata.Get(); set {
		return s, replace(&s.Metadata, metadata)
	}
	if u.Params.Metadata.IsNull() {
		s.Metadata = nil
	}
	return s, nil
}

// replace sets *to to a copy of from, made by encoding and decoding it.
func replace(to *any, from any) error {
	encoded, err := json.Marshal(from)
	if err != nil {
		return err
	}
	*to = nil
	return json.Unmarshal(encoded, to)
}

// changes reports whether a and b differ in the fields that the update
// changes.
func (u UpdateSubscription) changes(a, b *subscriptionSettings) bool {
	metadata := u.Params.Metadata.IsNull() || !u.Params.Metadata.IsZero()
	return u.Params.FailurePolicy != "" && a.FailurePolicy != b.FailurePolicy ||
		u.Params.RetryOffsetsDays != nil && !slices.Equal(a.RetryOffsetsDays, b.RetryOffsetsDays) ||
		metadata && !reflect.DeepEqual(a.Metadata, b.Metadata)
}

func (u UpdateSubscription) begin(ctx context.Context, s *session) (snapshot, any, error) {
	sub, err := s.client.Subscriptions.Get(ctx, u.SubscriptionID, s.read()...)
	if err != nil {
		return snapshot{}, nil, err
	}
	settings, err := settingsOf(sub)
	return snapshot{Status: string(sub.Status), Settings: settings}, nil, err
}

func (u UpdateSubscription) send(ctx context.Context, s *session, _ *snapshot) (any, error) {
	return s.client.Subscriptions.Update(ctx, u.SubscriptionID, u.Params, s.options...)
}

func (u UpdateSubscription) look(ctx context.Context, s *session, before *snapshot) (verdict, error) {
	sub, err := s.client.Subscriptions.Get(ctx, u.SubscriptionID, s.read()...)
	if err != nil {
		return verdict{}, err
	}
	now, err := settingsOf(sub)
	if err != nil {
		return verdict{}, err
	}
	was := before.Settings
	if was == nil {
		was = &subscriptionSettings{}
	}
	wanted, err := u.after(*was)
	switch {
	case err != nil:
		return verdict{}, err
	case !u.changes(&wanted, now):
		return verdict{finding: applied, result: sub}, nil
	case !u.changes(was, now):
		return verdict{finding: notApplied}, nil
	}
	return verdict{finding: unclear, why: "someone else updated the subscription meanwhile: it matches neither its earlier settings nor those of this update"}, nil
}

func (u UpdateSubscription) decided(ctx context.Context, s *session, _ *snapshot, _ string) (any, error) {
	return s.client.Subscriptions.Get(ctx, u.SubscriptionID, s.read()...)
}

// CancelSubscription ends a subscription: POST /v2/subscriptions/{id}/cancel.
// If it is already canceled, or scheduled to be, the operation succeeds.
type CancelSubscription struct {
	Key            string `json:"key"`
	SubscriptionID string `json:"subscription_id"`
	Reason         string `json:"reason,omitzero"`
}

// CancelSubscriptionResult is the outcome of a [CancelSubscription].
type CancelSubscriptionResult = Result[CancelSubscription, gateway.Subscription]

// Validate implements [Operation].
func (c CancelSubscription) Validate() error {
	return errors.Join(checkIdentity(c, "key", "subscription_id"), gateway.SubscriptionCancelParams{Reason: c.Reason}.Validate())
}

func (c CancelSubscription) identity() identity {
	return identity{kind: kindCancelSubscription, key: c.Key, resource: resource("subscriptions", c.SubscriptionID)}
}

func (CancelSubscription) repeat() repeatability         { return byIdempotencyKey }
func (CancelSubscription) result() *gateway.Subscription { return new(gateway.Subscription) }

func canceled(sub *gateway.Subscription) bool {
	return sub.Status == gateway.SubscriptionCanceled || sub.Status == gateway.SubscriptionCancelScheduled
}

func (c CancelSubscription) begin(ctx context.Context, s *session) (snapshot, any, error) {
	sub, err := s.client.Subscriptions.Get(ctx, c.SubscriptionID, s.read()...)
	switch {
	case err != nil:
		return snapshot{}, nil, err
	case canceled(sub):
		return snapshot{Status: string(sub.Status)}, sub, nil
	}
	return snapshot{Status: string(sub.Status)}, nil, nil
}

func (c CancelSubscription) send(ctx context.Context, s *session, _ *snapshot) (any, error) {
	return s.client.Subscriptions.Cancel(ctx, c.SubscriptionID, gateway.SubscriptionCancelParams{Reason: c.Reason}, s.options...)
}

func (c CancelSubscription) look(ctx context.Context, s *session, _ *snapshot) (verdict, error) {
	sub, err := s.client.Subscriptions.Get(ctx, c.SubscriptionID, s.read()...)
	switch {
	case err != nil:
		return verdict{}, err
	case canceled(sub):
		return verdict{finding: applied, result: sub}, nil
	}
	return verdict{finding: notApplied}, nil
}

func (c CancelSubscription) decided(ctx context.Context, s *session, _ *snapshot, _ string) (any, error) {
	return s.client.Subscriptions.Get(ctx, c.SubscriptionID, s.read()...)
}
