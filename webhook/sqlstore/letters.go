package sqlstore

import (
	"context"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/sqldb"
	"github.com/gateway-go/gateway/webhook"
)

// DeadLetters implements [webhook.Store].
func (s *core) DeadLetters(ctx context.Context, q webhook.DeadLetterQuery) (dead []webhook.DeadLetter, err error) {
	is, err := s.reads(ctx)
	if err != nil {
		return nil, err
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
	args := []any{after, after, seq, kind, kind, q.Resource, q.Resource, since, q.Limit}
	return sqldb.All(ctx, s.conn(), is.deadLetters, args, scanDeadLetter)
}

func scanDeadLetter(row database.Scanner) (d webhook.DeadLetter, err error) {
	var kind string
	var since, seq int64
	err = row.Scan(&d.Key, &d.EventID, &kind, &d.Resource, &d.Attempts, &d.Reason, &since, &d.Body, &seq)
	d.Kind, d.Since, d.Cursor = webhook.Kind(kind), time.UnixMilli(since).UTC(), webhook.CursorAt(since, seq)
	return d, err
}

// Requeue implements [webhook.Store].
func (s *core) Requeue(ctx context.Context, keys ...string) (int, error) {
	return s.letters(ctx, keys, func(q *queries) string { return q.requeue })
}

func (s *core) requeueTx(ctx context.Context, tx sqldb.Tx, key string) (bool, error) {
	if err := s.ready(ctx); err != nil {
		return false, err
	}
	n, err := s.in(tx).Exec(ctx, s.q.requeue, key)
	return n == 1, err
}

// Discard implements [webhook.Store].
func (s *core) Discard(ctx context.Context, keys ...string) (int, error) {
	return s.letters(ctx, keys, func(q *queries) string { return q.discard })
}

// letters runs a query for each key and counts the dead letters it changed.
func (s *core) letters(ctx context.Context, keys []string, query func(*queries) string) (int, error) {
	if err := s.ready(ctx); err != nil {
		return 0, err
	}
	n := 0
	for _, key := range keys {
		switch err := s.update(ctx, query(&s.q), key); {
		case err == nil:
			n++
		case !errors.Is(err, webhook.ErrClaimLost): // ErrClaimLost means that the key is not a dead letter
			return n, err
		}
	}
	return n, nil
}

// fromAside reads a value of the column aside; see Settle.
func fromAside(text string) (webhook.Family, webhook.Kind) {
	family, kind, _ := strings.Cut(text, "\n")
	return webhook.Family(family), webhook.Kind(kind)
}

// asides returns the values of the column aside.
func (s *core) asides(ctx context.Context) ([]string, error) {
	return sqldb.All(ctx, s.conn(), s.q.asides, nil, func(row database.Scanner) (text string, err error) {
		err = row.Scan(&text)
		return text, err
	})
}

// NextUnhandled implements [webhook.Store].
func (s *core) NextUnhandled(
	ctx context.Context, handles func(webhook.Family, webhook.Kind) bool, limit int, lease time.Duration,
) (claims []*webhook.Claim, err error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
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

// Unhandled implements [webhook.Store].
func (s *core) Unhandled(ctx context.Context) (list []webhook.UnhandledKind, err error) {
	is, err := s.reads(ctx)
	if err != nil {
		return nil, err
	}
	return sqldb.All(ctx, s.conn(), is.unhandled, nil, func(row database.Scanner) (n webhook.UnhandledKind, err error) {
		var text string
		var since int64
		err = row.Scan(&text, &n.Events, &since)
		n.Family, n.Kind = fromAside(text)
		n.Since = time.UnixMilli(since).UTC()
		return n, err
	})
}

// Unfinished returns up to limit events that are waiting, claimed or
// unhandled, in key order, starting after the given key. The records have only
// a Key, EventID, Kind and Resource.
func (s *core) Unfinished(ctx context.Context, after string, limit int) (list []webhook.Record, err error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	scan := func(row database.Scanner) (rec webhook.Record, err error) {
		var kind string
		err = row.Scan(&rec.Key, &rec.EventID, &kind, &rec.Resource)
		rec.Kind = webhook.Kind(kind)
		return rec, err
	}
	return sqldb.All(ctx, s.conn(), s.q.unfinished, []any{after, limit}, scan)
}
