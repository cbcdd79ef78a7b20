package otelgateway

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/gateway-go/gateway/merchant"
)

const (
	callbackStateKey = attribute.Key("gateway.merchant.callback.state") // "waiting" or "failing"
	callbackNameKey  = attribute.Key("gateway.merchant.callback.name")  // such as "refunded"
)

// Merchant is implemented by [merchant.Merchant].
type Merchant interface {
	Health(ctx context.Context) (merchant.Health, error)
}

// WatchMerchant reports the problems, callbacks and due comparisons of a merchant's side,
// and the operations and events of its accounts as [Telemetry.WatchOutbox] and
// [Telemetry.Watch] do, whenever metrics are collected, until the registration is
// unregistered. It calls [merchant.Merchant.Health], which queries the database, so call it
// in only one of the processes that share one.
func (t *Telemetry) WatchMerchant(m Merchant) (metric.Registration, error) {
	is, err := t.newMerchantGauges()
	if err != nil {
		return nil, err
	}
	return t.meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		h, err := m.Health(ctx)
		if err == nil {
			is.observe(o, &h)
		}
		return err
	}, is.problems, is.callbacks, is.callbackAge, is.skipped, is.comparisons, is.comparisonAge, is.unknown, is.adopting,
		is.unfinished, is.inbox.events, is.inbox.oldest)
}

type merchantGauges struct {
	problems, callbacks, skipped, comparisons, unknown, adopting metric.Int64ObservableGauge
	callbackAge, comparisonAge                                   metric.Float64ObservableGauge

	unfinished metric.Int64ObservableGauge
	inbox      inboxGauges
}

func (t *Telemetry) newMerchantGauges() (g merchantGauges, err error) {
	var failed [10]error
	g.problems, failed[0] = t.meter.Int64ObservableGauge("gateway.merchant.problems", metric.WithUnit("{problem}"),
		metric.WithDescription("What needs a person."))
	g.callbacks, failed[1] = t.meter.Int64ObservableGauge("gateway.merchant.callbacks", metric.WithUnit("{callback}"),
		metric.WithDescription("Facts whose callback has not succeeded yet."))
	g.callbackAge, failed[2] = t.meter.Float64ObservableGauge("gateway.merchant.callbacks.oldest", metric.WithUnit("s"),
		metric.WithDescription("How long the oldest callback has waited."))
	g.comparisons, failed[3] = t.meter.Int64ObservableGauge("gateway.merchant.comparisons", metric.WithUnit("{record}"),
		metric.WithDescription("Records that are due to be compared with the gateway."))
	g.comparisonAge, failed[4] = t.meter.Float64ObservableGauge("gateway.merchant.comparisons.oldest", metric.WithUnit("s"),
		metric.WithDescription("How long the oldest comparison has been due."))
	g.unfinished, failed[5] = t.newOutboxGauge()
	g.inbox, failed[6] = t.newInboxGauges()
	g.skipped, failed[7] = t.meter.Int64ObservableGauge("gateway.merchant.callbacks.skipped", metric.WithUnit("{callback}"),
		metric.WithDescription("Facts of the last seven days that were given up because no process had a callback for them."))
	g.unknown, failed[8] = t.meter.Int64ObservableGauge("gateway.merchant.unknown", metric.WithUnit("{resource}"),
		metric.WithDescription("Resources of the gateway about which events came, and that match no record."))
	g.adopting, failed[9] = t.meter.Int64ObservableGauge("gateway.merchant.adopting", metric.WithUnit("{resource}"),
		metric.WithDescription("Resources that other code has made, and that wait to be adopted."))
	return g, errors.Join(failed[:]...)
}

func (g *merchantGauges) observe(o metric.Observer, h *merchant.Health) {
	o.ObserveInt64(g.problems, int64(h.Problems))
	for state, n := range map[string]int{"waiting": h.Callbacks.Waiting - h.Callbacks.Failing, "failing": h.Callbacks.Failing} {
		o.ObserveInt64(g.callbacks, int64(n), metric.WithAttributes(callbackStateKey.String(state)))
	}
	o.ObserveFloat64(g.callbackAge, h.Callbacks.Oldest.Seconds())
	for name, n := range h.Skipped {
		o.ObserveInt64(g.skipped, int64(n), metric.WithAttributes(callbackNameKey.String(name)))
	}
	o.ObserveInt64(g.comparisons, int64(h.Comparisons.Due))
	o.ObserveFloat64(g.comparisonAge, h.Comparisons.Oldest.Seconds())
	for _, a := range h.Accounts {
		observeOperations(o, g.unfinished, a.Name, a.Operations)
		g.inbox.observe(o, a.Name, a.Events)
		o.ObserveInt64(g.unknown, int64(a.Unknown), metric.WithAttributes(accountKey.String(a.Name)))
		o.ObserveInt64(g.adopting, int64(a.Adopting), metric.WithAttributes(accountKey.String(a.Name)))
	}
}
