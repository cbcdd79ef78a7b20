package simulation

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/webhook"
)

// inbox is the merchant's durable store, as used by one process. The process may
// crash at any call, and after a crash every call fails.
type inbox struct {
	webhook.Store

	p    *process
	puts int
}

// Durable returns true, because the store survives crashes.
func (s *inbox) Durable() bool { return true }

// For binds the store to the process's account.
func (s *inbox) For(a gateway.Account) webhook.Store {
	s.Store = s.Store.For(a)
	return s
}

// Purge does nothing: reconcile purges, at times that depend on the seed.
func (s *inbox) Purge(context.Context) (webhook.Purged, error) { return webhook.Purged{}, nil }

// Put stores a delivery's event.
func (s *inbox) Put(ctx context.Context, rec webhook.Record) (webhook.Entry, error) {
	if s.p.mayCrash("before storing " + string(rec.Kind) + " of " + rec.Resource) {
		return webhook.Entry{}, errCrashed
	}
	if s.p.m.w.cfg.Defect == StoresDuplicates {
		s.puts++
		rec.Key, rec.Fact = rec.Key+" "+s.p.name()+"."+strconv.Itoa(s.puts), ""
	}
	entry, err := s.Store.Put(ctx, rec)
	if s.p.mayCrash("after storing " + string(rec.Kind) + " of " + rec.Resource) {
		return webhook.Entry{}, errCrashed
	}
	return entry, err
}

// Claim claims the next due event.
func (s *inbox) Claim(ctx context.Context, _ string, lease time.Duration) (*webhook.Claim, webhook.Entry, error) {
	if s.p.crashed {
		return nil, webhook.Entry{}, errCrashed
	}
	claims, err := s.Next(ctx, 1, lease)
	if err != nil || len(claims) == 0 {
		return nil, webhook.Entry{}, err
	}
	return claims[0], webhook.Entry{}, nil
}

// Settle ends the claim of an event.
func (s *inbox) Settle(ctx context.Context, c *webhook.Claim, d webhook.Disposition) error {
	switch {
	case d.State == webhook.StateDone && s.p.mayCrash("before completing "+string(c.Kind)+" of "+c.Resource), s.p.crashed:
		return errCrashed
	case d.State == webhook.StateDead:
		s.p.m.w.note(s.p.name(), "%s of %s is a dead letter: %s", c.Kind, c.Resource, d.Reason)
	case d.State == webhook.StateWaiting && !d.Released:
		s.p.m.w.note(s.p.name(), "%s of %s fails: %s", c.Kind, c.Resource, d.Reason)
	}
	return s.Store.Settle(ctx, c, d)
}

// effect writes to the books and completes the event in one transaction, as
// sqlstore.HandleTx does.
func (p *process) effect(ctx context.Context, o *order, what string, change func(*books)) error {
	claim, ok := webhook.ClaimFromContext(ctx)
	if !ok {
		return errors.New("the context is not a handler's")
	}
	if p.m.w.cfg.Defect == CommitsEffectSeparately {
		return p.commit(o, what, change)
	}
	if p.mayCrash("before " + o.ref + ": " + what) {
		return errCrashed
	}
	if err := p.m.store.Settle(ctx, claim, webhook.Disposition{State: webhook.StateDone}); err != nil {
		return err
	}
	change(p.m.db)
	claim.Completed = true
	p.m.w.note(p.name(), "%s %s: %s", o.ref, o.id, what)
	if p.mayCrash("after " + o.ref + ": " + what) {
		return errCrashed
	}
	return nil
}

// onTransaction books a transaction event. Charges of subscriptions are booked
// with their subscription, except refunds and chargebacks.
func (p *process) onTransaction(ctx context.Context, e *webhook.TransactionEvent) error {
	o := p.m.db.byID[e.ResourceID]
	if o == nil {
		o = p.m.db.byRef[e.CorrelationID]
	}
	switch {
	case o == nil, o.kind == charge && e.Kind == webhook.TransactionPaid:
		return nil
	case e.Kind != webhook.TransactionRefunded && e.Kind != webhook.TransactionChargedback:
	case o.kind != charge && o.paid == 0:
		// The webhook of the payment is late or lost. As long as the order is
		// unpaid in the books, the reconciler finds the payment; once it is
		// booked as refunded, nothing would find it.
		return fmt.Errorf("the payment is not booked yet: %w", webhook.RetryAfter(12*time.Hour))
	default:
		return p.bookRefund(ctx, o, e)
	}
	return p.effect(ctx, o, string(e.Kind), func(b *books) {
		p.m.storeID(b, o, e.ResourceID)
		if e.Kind == webhook.TransactionPaid {
			o.paid += e.Data.Charged()
		}
		o.reach(o.stateOf(e))
	})
}

// stateOf returns the state that an event reports, which for a paid event is paid
// or captured.
func (o *order) stateOf(e *webhook.TransactionEvent) string {
	if state := string(e.State()); e.Kind == webhook.TransactionPaid && o.rank(state) == settledRank {
		return state
	}
	return e.Kind.Status()
}

// bookRefund books a refund or a chargeback. It reads the refunded amount, which
// the event does not contain.
func (p *process) bookRefund(ctx context.Context, o *order, e *webhook.TransactionEvent) error {
	tx, err := p.client.Transactions.Get(ctx, e.ResourceID)
	if err != nil {
		return err
	}
	return p.effect(ctx, o, fmt.Sprintf("%s, %d refunded", e.Kind, tx.RefundedAmount), func(b *books) {
		p.m.storeID(b, o, e.ResourceID)
		if p.m.w.cfg.Defect == BooksRefundTwice {
			o.refunded += tx.RefundedAmount
		}
		o.refundedTo(tx.RefundedAmount)
		o.reach(string(tx.Status))
	})
}

// onSubscription books a subscription as the API returns it, because events
// arrive out of order.
func (p *process) onSubscription(ctx context.Context, e *webhook.SubscriptionEvent) error {
	sub, err := p.client.Subscriptions.Get(ctx, e.ResourceID)
	if err != nil {
		return err
	}
	var metadata struct {
		Order string `json:"order"`
	}
	if err := sub.Metadata.Decode(&metadata); err != nil {
		return err
	}
	o := p.m.db.byRef[metadata.Order]
	if o == nil {
		return webhook.Permanent(fmt.Errorf("subscription %s has no order", sub.ID))
	}
	return p.effect(ctx, o, fmt.Sprintf("%s, %s until %s", e.Kind, sub.Status, sub.CurrentPeriodEnd), func(b *books) {
		p.m.storeID(b, o, sub.ID)
		if e.Kind == webhook.SubscriptionStarted || e.Kind == webhook.SubscriptionRenewed {
			o.paidPeriods++
		}
		b.sync(o, sub)
		p.m.w.scheduleChargeback(p.m, o)
	})
}

// onTransfer books a payout event. Payout webhooks have no reference.
func (p *process) onTransfer(ctx context.Context, e *webhook.TransferEvent) error {
	o := p.m.db.byID[e.ResourceID]
	if o == nil {
		tr, err := p.client.Transfers.Get(ctx, e.ResourceID)
		if err != nil {
			return err
		}
		if o = p.m.db.byRef[tr.ExternalRef]; o == nil {
			return webhook.Permanent(fmt.Errorf("payout %s has no order", e.ResourceID))
		}
	}
	return p.effect(ctx, o, string(e.Kind), func(b *books) {
		p.m.storeID(b, o, e.ResourceID)
		o.reach(e.Kind.Status())
	})
}

var _ webhook.Store = (*inbox)(nil)
