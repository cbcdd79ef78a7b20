package otelgateway

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/gateway-go/gateway/webhook"
)

const stateKey = attribute.Key("gateway.webhook.state")

// Watch reports the events of the receiver's account whenever metrics are
// collected, until the registration is unregistered. It calls [webhook.Receiver.Counts], which
// queries the database, so call it once for each account, in only one of the
// processes that share a store.
func (t *Telemetry) Watch(rx *webhook.Receiver) (metric.Registration, error) {
	gauges, err := t.newInboxGauges()
	if err != nil {
		return nil, err
	}
	return t.meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		counts, err := rx.Counts(ctx)
		if err == nil {
			gauges.observe(o, rx.Account().Name, counts)
		}
		return err
	}, gauges.events, gauges.oldest)
}

// inboxGauges report the events of an account.
type inboxGauges struct {
	events metric.Int64ObservableGauge
	oldest metric.Float64ObservableGauge
}

func (t *Telemetry) newInboxGauges() (g inboxGauges, err error) {
	var failed [2]error
	g.events, failed[0] = t.meter.Int64ObservableGauge("gateway.webhook.inbox.events", metric.WithUnit("{event}"),
		metric.WithDescription("Events in the store that are not done."))
	g.oldest, failed[1] = t.meter.Float64ObservableGauge("gateway.webhook.inbox.oldest", metric.WithUnit("s"),
		metric.WithDescription("How long the longest waiting event has been due."))
	return g, errors.Join(failed[:]...)
}

func (g inboxGauges) observe(o metric.Observer, name string, counts webhook.Counts) {
	var account []attribute.KeyValue
	if name != "" {
		account = append(account, accountKey.String(name))
	}
	for _, state := range [...]struct {
		name string
		n    int
	}{
		{"waiting", counts.Waiting},
		{"claimed", counts.Claimed},
		{"dead", counts.Dead},
		{"unhandled", counts.Unhandled},
		{"hung", counts.Hung},
	} {
		o.ObserveInt64(g.events, int64(state.n), metric.WithAttributes(account...), metric.WithAttributes(stateKey.String(state.name)))
	}
	o.ObserveFloat64(g.oldest, counts.Oldest.Seconds(), metric.WithAttributes(account...))
}
