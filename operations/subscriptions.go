package operations

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/spec"
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
func (c CreateSubscription) look(ctx context.Context, s *session, _ *snapshot) (v verdict, err error) {
	pages := func(ctx context.Context, cursor string) iter.Seq2[*gateway.Page[gateway.Subscription], error] {
		return s.client.Subscriptions.Pages(ctx, gateway.SubscriptionListParams{Limit: spec.MaxPageSize, Cursor: cursor}, s.readPages()...)
	}
	err = searchList(ctx, s, pages, func(sub *gateway.Subscription) (bool, error) {
		if s.tooOld(sub.CreatedAt.Time) {
			return true, nil
		}
		if c.differs(sub) != "" {
			return false, nil
		}
		v = verdict{finding: unclear, why: "a repeat of the request was rejected, and the subscription " + sub.ID +
			" of the customer looks like this one, but may come from another request"}
		return true, nil
	})
	return v, err
}

func (c CreateSubscription) differs(value any) string {
	sub, ok := value.(*gateway.Subscription)
	if !ok || !strings.EqualFold(sub.CustomerID, c.CustomerID) || sub.Amount != c.Amount || sub.Interval != c.Interval {
		return "the subscription has another customer, amount or interval"
	}
	method := cmp.Or(c.PaymentMethod, gateway.SubscriptionCreditCard)
	if cmp.Or(sub.IntervalCount, 1) != max(c.IntervalCount, 1) || cmp.Or(sub.PaymentMethod, method) != method {
		return "the subscription has another interval count or payment method"
	}
	return ""
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
	err := replace(&settings.Metadata, s.Metadata)
	settings.Metadata = own(settings.Metadata)
	return settings, err
}

// own returns a subscription's metadata without the member in which live gateways
// report the mandate of a Pix Automatico. An empty object is nil.
func own(metadata any) any {
	const mandate = "provider_recurring"
	members, ok := metadata.(map[string]any)
	if !ok {
		return metadata
	}
	members = maps.Clone(members)
	delete(members, mandate)
	if len(members) == 0 {
		return nil
	}
	return members
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
		err := replace(&s.Metadata, metadata)
		s.Metadata = own(s.Metadata)
		return s, err
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

func (u UpdateSubscription) differs(value any) string {
	sub, ok := value.(*gateway.Subscription)
	if !ok {
		return "it is no subscription"
	}
	now, err := settingsOf(sub)
	if err != nil {
		return err.Error()
	}
	if wanted, err := u.after(*now); err != nil || u.changes(&wanted, now) {
		return "the subscription does not have the settings of the update"
	}
	return ""
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

func (CancelSubscription) differs(value any) string {
	if sub, ok := value.(*gateway.Subscription); !ok || !canceled(sub) {
		return "the subscription is not canceled"
	}
	return ""
}

func (c CancelSubscription) decided(ctx context.Context, s *session, _ *snapshot, _ string) (any, error) {
	return s.client.Subscriptions.Get(ctx, c.SubscriptionID, s.read()...)
}
