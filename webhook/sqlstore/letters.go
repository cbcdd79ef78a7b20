package sqlstore

import (
	"context"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/gateway-go/gateway/webhook"
)

// DeadLetters implements [webhook.Store].
func (s *Store) DeadLetters(ctx context.Context, q webhook.DeadLetterQuery) (dead []webhook.DeadLetter, err error) {
	if s.err != nil {
		return nil, s.err
	}
	if q, err = q.Check(); err != nil {
		return nil, err
	}
	after, seq, err := q.Position()
	if err != nil {
		return nil, err
	}
	since := int64(math.MinInt64)
	if !q.Since.IsZero() {
		since = q.Since.Add(time.Millisecond - time.Nanosecond).UnixMilli() // rounded up
	}
	kind := string(q.Kind)
	rows, err := s.db.QueryContext(ctx, s.q.deadLetters, after, after, seq, kind, kind, q.Resource, q.Resource, since, q.Limit)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // rows.Err reports the errors that matter
	for rows.Next() {
		var d webhook.DeadLetter
		var kind string
		var since, seq int64
		if err := rows.Scan(&d.Key, &d.EventID, &kind, &d.Resource, &d.Attempts, &d.Reason, &since, &d.Body, &seq); err != nil {
			return nil, err
		}
		d.Kind, d.Since, d.Cursor = webhook.Kind(kind), time.UnixMilli(since).UTC(), webhook.CursorAt(since, seq)
		dead = append(dead, d)
	}
	return dead, rows.Err()
}

// Requeue implements [webhook.Store].
func (s *Store) Requeue(ctx context.Context, keys ...string) (int, error) {
	return s.letters(ctx, s.q.requeue, keys)
}

// Discard implements [webhook.Store].
func (s *Store) Discard(ctx context.Context, keys ...string) (int, error) {
	return s.letters(ctx, s.q.discard, keys)
}

// letters runs query for each key and counts the dead letters it changed.
func (s *Store) letters(ctx context.Context, query string, keys []string) (int, error) {
	n := 0
	for _, key := range keys {
		switch err := s.update(ctx, query, key); {
		case err == nil:
			n++
		case !errors.Is(err, webhook.ErrClaimLost): // ErrClaimLost means that the key is not a dead letter
			return n, err
		}
	}
	return n, nil
}

// SetAside implements [webhook.Store].
func (s *Store) SetAside(ctx context.Context, c *webhook.Claim, family webhook.Family) error {
	return s.update(ctx, s.q.setAside, string(family)+"\n"+string(c.Kind), c.Key, c.Token)
}

func fromAside(text string) (webhook.Family, webhook.Kind) {
	family, kind, _ := strings.Cut(text, "\n")
	return webhook.Family(family), webhook.Kind(kind)
}

// NextUnhandled implements [webhook.Store].
func (s *Store) NextUnhandled(
	ctx context.Context, handles func(webhook.Family, webhook.Kind) bool, limit int, lease time.Duration,
) (claims []*webhook.Claim, err error) {
	if s.err != nil {
		return nil, s.err
	}
	if err := s.expireNowAndThen(ctx); err != nil {
		return nil, err
	}
	waiting, err := s.asides(ctx)
	if err != nil {
		return nil, err
	}
	for _, text := range waiting {
		left := limit - len(claims)
		if left == 0 {
			break
		}
		if !handles(fromAside(text)) {
			continue
		}
		some, err := s.claims(ctx, s.q.nextAside, func(token string) []any {
			return []any{text, firstWindow(left), token, lease.Milliseconds(), left}
		})
		if err != nil {
			return claims, err
		}
		claims = append(claims, some...)
	}
	return claims, nil
}

func (s *Store) asides(ctx context.Context) (list []string, err error) {
	rows, err := s.db.QueryContext(ctx, s.q.asides)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // rows.Err reports the errors that matter
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		list = append(list, text)
	}
	return list, rows.Err()
}

// Unhandled implements [webhook.Store].
func (s *Store) Unhandled(ctx context.Context) (list []webhook.UnhandledKind, err error) {
	if s.err != nil {
		return nil, s.err
	}
	rows, err := s.db.QueryContext(ctx, s.q.unhandled)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // rows.Err reports the errors that matter
	for rows.Next() {
		var n webhook.UnhandledKind
		var text string
		var since int64
		if err := rows.Scan(&text, &n.Events, &since); err != nil {
			return nil, err
		}
		n.Family, n.Kind = fromAside(text)
		n.Since = time.UnixMilli(since).UTC()
		list = append(list, n)
	}
	return list, rows.Err()
}

// Unfinished returns up to limit events that are waiting, claimed or
// unhandled, in key order, starting after the given key. The records have only
// a Key, EventID, Kind and Resource.
func (s *Store) Unfinished(ctx context.Context, after string, limit int) (list []webhook.Record, err error) {
	if s.err != nil {
		return nil, s.err
	}
	rows, err := s.db.QueryContext(ctx, s.q.unfinished, after, limit)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // rows.Err reports the errors that matter
	for rows.Next() {
		var rec webhook.Record
		var kind string
		if err := rows.Scan(&rec.Key, &rec.EventID, &kind, &rec.Resource); err != nil {
			return nil, err
		}
		rec.Kind = webhook.Kind(kind)
		list = append(list, rec)
	}
	return list, rows.Err()
}
