package merchant

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/gateway-go/gateway/merchant/internal/ledger"
	"github.com/gateway-go/gateway/webhook"
)

// UnknownResource is a resource of the gateway about which events came, and that matches no record: it has
// neither the gateway's ID nor the reference of one. Another system of the account made it, such
// as the code that this package replaces. One without a reference is listed when Config.SettleAfter has
// passed: it may be a subscription's charge that is stored in a moment. It is listed for Config.Keep.Unknown
// after its last event, or until a record has it; those of the last 10,000 resources of an account are kept.
type UnknownResource struct {
	Account string
	Family  webhook.Family
	ID      string // the gateway's, in lower case
	Ref     string // its reference; "" if it has none, or no event has said
	Kind    webhook.Kind
	Events  int // how many have come; one that was repeated between others counts more than once

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
func (m *reading) Unknown(ctx context.Context, q UnknownQuery) (list []UnknownResource, err error) {
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
		rows, err = l.Unknown(ctx, m.unmatched(a.Name), after, cmp.Or(q.Limit, 100))
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

// unmatched selects what matches no record of accounts.
func (m *reading) unmatched(accounts ...string) ledger.UnknownWhere {
	return ledger.UnknownWhere{Accounts: accounts, Keep: m.unknownFor, Grace: m.lag}
}

// trimEvery is after how many events of an account that match nothing what is too old, or too much,
// is deleted.
const trimEvery = 100

// other handles an event that matches no record. It is noted before [Config.Other] is called: if that
// fails, the event is repeated, and is seen meanwhile.
func (m *core) other(ctx context.Context, a *account, e *webhook.Event, ref string) error {
	if err := m.undecided(ctx, a, e, ref); err != nil {
		return err
	}
	u := ledger.Unknown{Account: a.Name, Family: string(e.Family), ID: e.ResourceID, Ref: ref, Kind: string(e.Kind), Event: e.ID}
	age, err := m.outside().AddUnknown(ctx, &u)
	if err != nil {
		return err
	}
	if a.unknown.Add(1)%trimEvery == 1 {
		if err := m.byIndex(ctx, func(l ledger.Ledger) error { return l.TrimUnknown(ctx, a.Name, m.cfg.Keep.Unknown) }); err != nil {
			return err
		}
	}
	switch sure := ref != "" || age >= m.cfg.lag(); {
	case m.cfg.Other != nil:
		return m.toOther(ctx, a, e)
	case sure && a.warned.CompareAndSwap(false, true):
		m.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "merchant: an event is about a resource that is not in the books, so what happens to its money is "+
			"not known here: another system of the account made it. Health.Unknown counts them, Config.Other gets their events. "+
			"This process logs it once for each account",
			slog.String("account", a.Name), slog.String("resource", string(e.Family)+"/"+e.ResourceID), slog.String("kind", string(e.Kind)))
	}
	return nil
}

// toOther hands an event to the code that charged before: one that matches no record, or one that
// says what its adoption found and did not report.
func (m *core) toOther(ctx context.Context, a *account, e *webhook.Event) error {
	if m.cfg.Other == nil {
		return nil
	}
	return m.guarded(ctx, "Config.Other", func() error { return m.cfg.Other(ctx, a.Name, e) })
}

// orphan returns an error about an event whose reference begins with the account's prefix, and that
// matches no record: the books have lost it, as after a restore, or other code uses the same prefix.
// If there is such code, the event is that code's once the gateway no longer lags.
func (m *core) orphan(a *account, e *webhook.Event, ref string) error {
	wait := m.cfg.lag() - max(e.Age, 0)
	if m.cfg.Other != nil && wait <= 0 {
		return nil
	}
	err := fmt.Errorf("there is no record with the reference %s, although it begins with Account.Prefix %q: the books have lost it, or other code of the "+
		"account uses that prefix", ref, a.Prefix)
	if m.cfg.Other != nil {
		err = fmt.Errorf("%w: %w", err, webhook.RetryAfter(wait))
	}
	return err
}

// undecided returns an error, so that an event is repeated, while its resource may still be a
// subscription of ours, or the charge of one: the gateway's events of those have no reference, and
// may come before the subscription is stored or read. [Config.Other] must not get them, because
// what is not known to the code that charged before it may refund.
func (m *core) undecided(ctx context.Context, a *account, e *webhook.Event, ref string) error {
	wait := m.cfg.lag() - max(e.Age, 0)
	if m.cfg.Other == nil || ref != "" || wait <= 0 || e.Family != webhook.FamilyTransaction && e.Family != webhook.FamilySubscription {
		return nil
	}
	if is, err := m.outside().Subscribes(ctx, a.Name); err != nil || !is {
		return err
	}
	return fmt.Errorf("%s %s may belong to a subscription that is not stored or read yet: %w", e.Family, e.ResourceID, webhook.RetryAfter(wait))
}

// unread handles an event of a family that this release does not know. If it is about a record, it is
// repeated for a process of a release that does.
func (m *core) unread(ctx context.Context, a *account, e *webhook.Event) error {
	if strings.HasPrefix(e.CorrelationID, a.Prefix) {
		return fmt.Errorf("this release does not know events of %q, and the reference %s has the account's prefix %q", e.Family, e.CorrelationID, a.Prefix)
	}
	if err := m.foreign(a, e.CorrelationID); err != nil {
		return err
	}
	return m.other(ctx, a, e, e.CorrelationID)
}
