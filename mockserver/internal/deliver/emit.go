package deliver

import (
	"net/url"
	"strings"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/events"
	"github.com/gateway-go/gateway/mockserver/internal/respond"
)

// note is the event that reports a webhook. It is published once the webhook's commit
// is visible.
type note struct {
	account string
	webhook events.WebhookEvent
	private []string
}

func noteOf(account string, e *engine.Event, endpoints int) note {
	n := note{account: account, webhook: events.WebhookEvent{
		ID: e.ID, Kind: e.Kind, ResourceID: resource(e), Endpoints: endpoints,
	}}
	switch {
	case e.Transaction != nil:
		n.webhook.Reference, n.private = e.Transaction.ExternalRef, e.Transaction.Private()
	case e.Subscription != nil:
		n.webhook.Reference, n.private = e.Subscription.IdempotencyKey, e.Subscription.Private()
	default:
		n.webhook.Reference, n.private = e.Transfer.ExternalRef, e.Transfer.Private()
	}
	return n
}

// emit publishes an attempt of a delivery; the zero Attempt means that the delivery
// is held now. secret is the attempt's signing secret.
func (s *Sender) emit(d *delivery, a Attempt, secret gateway.Secret) {
	if !s.cfg.Events.Listening() {
		return
	}
	reason, _, _ := strings.Cut(a.Error, "\n") // without the stack of a handler that panicked
	s.cfg.Events.Publish(d.Account, events.Event{Type: events.TypeDelivery, Delivery: &events.DeliveryEvent{
		ID:         d.ID,
		EventID:    d.EventID,
		Kind:       d.Kind,
		ResourceID: d.Resource,
		Endpoint:   d.Endpoint,
		URL:        withoutSecrets(d.URL),
		Attempt:    a.Number,
		Status:     a.Status,
		Error:      reason,
		DurationMS: events.Milliseconds(a.Duration),
		Signed:     a.Signed,
		State:      string(d.State),
		NextAt:     respond.Stamp(d.Next),
		Fault:      a.Fault,
	}}, secret.Reveal())
}

// withoutSecrets returns a URL without user info, query and fragment, which may contain
// tokens.
func withoutSecrets(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "(malformed)"
	}
	u.User, u.RawQuery, u.Fragment, u.ForceQuery = nil, "", "", false
	return u.String()
}
