package merchant

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/gateway-go/gateway/merchant/internal/ledger"
	"github.com/gateway-go/gateway/webhook"
)

// UnknownResource is a resource of the gateway about which events came, and that matches no record: it has
// neither the gateway's ID nor the reference of one. Another system of the account made it, such
// as the code that this package replaces. It is listed for 90 days after its last event, or until a
// record has it; those of the last 10,000 resources of an account are kept.
type UnknownResource struct {
	Account string
	Family  webhook.Family
	ID      string // the gateway's, in lower case
	Ref     string // its reference; "" if it has none, or no event has said
	Kind    webhook.Kind
	Events  int // how many have come

	First, Last time.Time
}

// UnknownQuery selects resources that match no record.
type UnknownQuery struct {
	Account string           // optional if there is only one
	After   *UnknownResource // the last one of the page before; nil for the first page
	Limit   int              // of a page; 100 if it is 0
}

// Unknown returns a page of the resources of an account that match no record, those whose events
// came last first. The error is [ErrAccount] if there is no such account, and
// [gateway.ErrValidation] if the limit is negative.
func (m *core) Unknown(ctx context.Context, q UnknownQuery) (list []UnknownResource, err error) {
	a, err := m.account(q.Account)
	switch {
	case err != nil:
		return nil, err
	case q.Limit < 0:
		return nil, invalid("merchant.unknown", "limit", "must not be negative")
	}
	var after *ledger.Unknown
	if u := q.After; u != nil {
		after = &ledger.Unknown{Family: string(u.Family), ID: u.ID, Last: u.Last}
	}
	var rows []ledger.Unknown
	err = m.byIndex(ctx, func(l ledger.Ledger) (err error) {
		rows, err = l.Unknown(ctx, a.Name, after, cmp.Or(q.Limit, 100))
		return err
	})
	for _, u := range rows {
		list = append(list, UnknownResource{
			Account: u.Account, Family: webhook.Family(u.Family), ID: u.ID, Ref: u.Ref, Kind: webhook.Kind(u.Kind), Events: u.Events,
			First: u.First, Last: u.Last,
		})
	}
	return list, err
}

// trimEvery is after how many events of an account that match nothing what is too old, or too much,
// is deleted.
const trimEvery = 100

// other handles an event that matches no record. It is noted first: if [Config.Other] fails, the
// event is repeated, and is seen meanwhile.
func (m *core) other(ctx context.Context, a *account, e *webhook.Event, ref string) error {
	l := m.outside()
	u := ledger.Unknown{Account: a.Name, Family: string(e.Family), ID: e.ResourceID, Ref: ref, Kind: string(e.Kind), Event: e.ID}
	if err := l.AddUnknown(ctx, &u); err != nil {
		return err
	}
	n := a.unknown.Add(1)
	if n%trimEvery == 1 {
		if err := l.TrimUnknown(ctx, a.Name); err != nil {
			return err
		}
	}
	if m.cfg.Other != nil {
		return m.guarded(ctx, "Config.Other", func() error { return m.cfg.Other(ctx, a.Name, e) })
	}
	if n == 1 {
		m.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "merchant: an event is about a resource that is not in the books, so what happens to its money is "+
			"not known here: another system of the account made it. Health.Unknown counts them, Config.Other gets their events. "+
			"This process logs it once for each account",
			slog.String("account", a.Name), slog.String("resource", string(e.Family)+"/"+e.ResourceID), slog.String("kind", string(e.Kind)))
	}
	return nil
}
