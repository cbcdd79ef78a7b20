package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/gateway-go/gateway"
)

const (
	memberPrefix    = "member-"
	membershipPrice = 4990 // cents a month
)

type member struct {
	ID        string     `json:"id"`
	State     string     `json:"state"` // "new", or the subscription's
	PaidUntil *time.Time `json:"paid_until,omitempty"`
	Challenge string     `json:"challenge,omitempty"` // 3-D Secure, for the payment element

	name, email, customerID, subscriptionID string
}

const memberColumns = `id, state, paid_until, name, email, COALESCE(customer_id, ''), COALESCE(subscription_id, '')`

func (s *shop) member(ctx context.Context, id string) (m member, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT `+memberColumns+` FROM members WHERE id = $1`, id).
		Scan(&m.ID, &m.State, &m.PaidUntil, &m.name, &m.email, &m.customerID, &m.subscriptionID)
	if err != nil || m.State != string(gateway.SubscriptionIncomplete) {
		return m, err
	}
	challenge, err := s.gateway.Subscriptions.PendingChallenge(ctx, m.subscriptionID)
	if err != nil {
		return m, s.undecided(ctx, "member", m.ID, err)
	}
	if challenge != nil {
		m.Challenge = challenge.ClientSecret.Reveal()
	}
	return m, nil
}

// join creates a member who pays every month by card. Like an order, the request may
// be repeated with the same id, even with another card token.
func (s *shop) join(ctx context.Context, wanted member, token gateway.CardToken) (member, error) {
	_, err := s.db.ExecContext(ctx, `INSERT INTO members (id, name, email) VALUES ($1, $2, $3) ON CONFLICT (id) DO NOTHING`,
		wanted.ID, wanted.name, wanted.email)
	if err != nil {
		return member{}, err
	}
	m, err := s.member(ctx, wanted.ID)
	switch {
	case err != nil:
		return member{}, err
	case m.email != wanted.email:
		return member{}, conflict("another member has this id")
	case m.subscriptionID != "":
		return m, nil
	}
	sub, err := s.subscribe(ctx, &m, token)
	switch outcomeOf(err) {
	case applied:
	case rejected:
		return member{}, invalid("the subscription was not accepted: " + err.Error())
	default:
		return m, s.undecided(ctx, "member", m.ID, err) // the page sends it again, with the same key
	}
	err = changesOne(ctx, s.db, `UPDATE members SET subscription_id = $2, state = CASE state WHEN 'new' THEN $3 ELSE state END
		WHERE id = $1 AND COALESCE(subscription_id, $2) = $2`, m.ID, sub.ID, string(sub.Status))
	if err != nil {
		return member{}, err
	}
	return s.member(ctx, m.ID)
}

func (s *shop) subscribe(ctx context.Context, m *member, token gateway.CardToken) (*gateway.Subscription, error) {
	if err := s.customer(ctx, m); err != nil {
		return nil, err
	}
	sub, err := s.gateway.Subscriptions.Create(ctx, gateway.SubscriptionParams{
		CustomerID:     m.customerID,
		Amount:         membershipPrice,
		Currency:       gateway.BRL,
		Interval:       gateway.IntervalMonth,
		Token:          token,
		IdempotencyKey: memberPrefix + m.ID,
		Metadata:       map[string]any{"member": m.ID}, // every webhook of the subscription echoes it
	})
	switch outcomeOf(err) {
	case existing, rejected: // an earlier request may have created it, with another token
		if found, err := s.findSubscription(ctx, *m); !errors.Is(err, errNoRow) {
			return found, err
		}
	case applied, unknown:
	}
	return sub, err
}

// customer creates the buyer's profile, or finds the one of an earlier attempt.
func (s *shop) customer(ctx context.Context, m *member) error {
	if m.customerID != "" {
		return nil
	}
	ref := memberPrefix + m.ID
	customer, err := s.gateway.Customers.Create(ctx, gateway.CustomerParams{Name: m.name, Email: m.email, ExternalRef: ref})
	if errors.Is(err, gateway.ErrDuplicate) {
		var page *gateway.Page[gateway.Customer]
		page, err = s.gateway.Customers.List(ctx, gateway.CustomerListParams{ExternalRef: ref})
		if err == nil && len(page.Items) != 1 {
			err = fmt.Errorf("%d customers have the reference %s", len(page.Items), ref)
		}
		if err == nil {
			customer = &page.Items[0]
		}
	}
	if err != nil {
		return err
	}
	m.customerID = customer.ID
	return changesOne(ctx, s.db, `UPDATE members SET customer_id = $2 WHERE id = $1`, m.ID, customer.ID)
}

// findSubscription finds a member's subscription; the error is errNoRow if there is
// none. No list includes the idempotency key, but the metadata names the member.
func (s *shop) findSubscription(ctx context.Context, m member) (*gateway.Subscription, error) {
	for sub, err := range s.gateway.Subscriptions.All(ctx, gateway.SubscriptionListParams{CustomerEmail: m.email}) {
		if err != nil {
			return nil, err
		}
		if memberIn(sub.Metadata) == m.ID {
			return sub, nil
		}
	}
	return nil, errNoRow
}

// memberIn returns the member whom a subscription's metadata names, "" if it
// belongs to another system.
func memberIn(metadata gateway.Metadata) string {
	var names struct {
		Member string `json:"member"`
	}
	if metadata.IsZero() || metadata.Decode(&names) != nil {
		return ""
	}
	return names.Member
}

// renewal is the state of a subscription as an event reports it.
type renewal struct {
	member, subscription string
	state                gateway.SubscriptionStatus
	late                 bool      // a newer state is known
	paidUntil            time.Time // zero if the event reports no payment
	charge               string    // the transaction that paid, "" if it is not known
	amount               int64
}

// renew applies an event of a subscription to its member.
func (s *shop) renew(ctx context.Context, tx *sql.Tx, r renewal) error {
	var until sql.NullTime
	if !r.paidUntil.IsZero() {
		until = sql.NullTime{Time: r.paidUntil, Valid: true}
	}
	err := changesOne(ctx, tx, `UPDATE members SET subscription_id = $2, paid_until = GREATEST(paid_until, $3),
		state = CASE WHEN $4 THEN state ELSE $5 END
		WHERE id = $1 AND COALESCE(subscription_id, $2) = $2`, r.member, r.subscription, until, r.late, string(r.state))
	if err != nil || r.charge == "" {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO charges (transaction_id, member_id, amount) VALUES ($1, $2, $3)
		ON CONFLICT (transaction_id) DO NOTHING`, r.charge, r.member, r.amount)
	return err
}
