package main

import (
	"context"
	"database/sql"
	"iter"
	"time"

	"github.com/gateway-go/gateway/webhook"
)

// reconcile creates the reconciler, which closes the records that no webhook
// closes: lost deliveries, charges that expired, creates whose response was
// lost. It also compares paid orders with their transactions.
func (s *shop) reconcile() (err error) {
	s.reconciler, err = webhook.NewReconciler(s.receiver, webhook.ReconcilerConfig{
		Open:       s.open,
		Identified: s.identified,
		Absent:     s.absent,
	})
	return err
}

// openQuery lists the open records: by id, or by reference if the create's
// outcome is unknown. Members without a subscription are left out: no list
// includes the idempotency key, and the page sends the request again.
const openQuery = `
	SELECT 'transaction', COALESCE(transaction_id, ''), 'order-' || id,
		CASE state WHEN 'refunding' THEN 'paid' ELSE 'pending' END, created_at, NULL::timestamptz
	FROM orders WHERE state IN ('new', 'pending', 'refunding') AND created_at <= now() - make_interval(secs => $1)
	UNION ALL
	SELECT 'transfer', COALESCE(transfer_id, ''), 'payout-' || id, 'pending', created_at, NULL
	FROM payouts WHERE state IN ('new', 'pending') AND created_at <= now() - make_interval(secs => $1)
	UNION ALL
	SELECT 'subscription', subscription_id, '', state, created_at, paid_until
	FROM members WHERE subscription_id IS NOT NULL AND state <> 'canceled'
		AND COALESCE(paid_until, created_at) <= now() - make_interval(secs => $1)
	ORDER BY 5 LIMIT 5000`

// paidQuery lists the paid orders that were not compared with their transactions for
// some time: the webhook of a chargeback, or of a refund that was not made here, may be
// lost too. It ends after half a year, when neither is expected any more.
const paidQuery = `
	UPDATE orders SET compared_at = now() WHERE id IN (
		SELECT id FROM orders WHERE state = 'paid' AND compared_at <= now() - make_interval(secs => $1)
			AND created_at > now() - make_interval(days => 180)
		ORDER BY compared_at LIMIT 5000 FOR UPDATE SKIP LOCKED)
	RETURNING 'transaction', transaction_id, '', 'paid', created_at, NULL::timestamptz`

// open reads all rows at once, from the primary: a round takes too long to keep a
// query open.
func (s *shop) open(ctx context.Context) iter.Seq2[webhook.OpenResource, error] {
	return func(yield func(webhook.OpenResource, error) bool) {
		list, err := s.resources(ctx, openQuery, s.cfg.reconcileAfter)
		if err != nil {
			yield(webhook.OpenResource{}, err)
			return
		}
		paid, err := s.resources(ctx, paidQuery, s.cfg.compareEvery)
		if err != nil {
			yield(webhook.OpenResource{}, err)
			return
		}
		for _, o := range append(list, paid...) {
			if !yield(o, nil) {
				return
			}
		}
	}
}

func (s *shop) resources(ctx context.Context, query string, after time.Duration) (list []webhook.OpenResource, err error) {
	rows, err := s.db.QueryContext(ctx, query, after.Seconds())
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err has the errors that matter
	for rows.Next() {
		var o webhook.OpenResource
		var paidUntil sql.NullTime
		if err := rows.Scan(&o.Family, &o.ID, &o.ExternalRef, &o.Status, &o.Since, &paidUntil); err != nil {
			return nil, err
		}
		o.PeriodEnd = paidUntil.Time
		list = append(list, o)
	}
	return list, rows.Err()
}

// identified stores the id of a resource whose create was applied after all.
func (s *shop) identified(ctx context.Context, o webhook.OpenResource) error {
	if id, ok := ownID(payoutPrefix, o.ExternalRef); ok {
		return s.linkTransfer(ctx, id, o.ID)
	}
	id, _ := ownID(orderPrefix, o.ExternalRef)
	tx, err := s.gateway.Transactions.Get(ctx, o.ID)
	if err != nil {
		return err
	}
	_, err = s.settle(ctx, id, tx) // with the Pix code, which no event has
	return err
}

// resendWithin limits the calls of absent, which a round makes one at a time.
const resendWithin = time.Minute

// absent handles creates that were never applied. A payout is still owed, so it
// is sent again with the same reference. An order fails: its buyer is gone by
// now.
func (s *shop) absent(ctx context.Context, o webhook.OpenResource) error {
	ctx, cancel := context.WithTimeout(ctx, resendWithin)
	defer cancel()
	if id, ok := ownID(orderPrefix, o.ExternalRef); ok {
		return s.failOrder(ctx, id, "not charged")
	}
	id, _ := ownID(payoutPrefix, o.ExternalRef)
	p, err := s.payout(ctx, id)
	if err != nil {
		return err
	}
	return s.send(ctx, p)
}
