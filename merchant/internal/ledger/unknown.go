package ledger

import (
	"context"
	"strings"
	"time"

	"github.com/gateway-go/gateway/database"
)

// Unknown is what events were about that matches no record.
type Unknown struct {
	Account    string
	Family, ID string // of the resource at the gateway; the ID is in lower case
	Ref        string // "" if no event has said
	Kind       string // of the last event
	Event      string // the last one
	Events     int

	First, Last time.Time // the database's
}

// unknownAtMost is how many resources of an account are kept: those whose events came last.
const unknownAtMost = 10_000

// UnknownWhere selects resources of some accounts that match no record: those with an event in a
// time and, if they have no reference, whose first event was at least the grace ago.
type UnknownWhere struct {
	Accounts    []string
	Keep, Grace time.Duration
}

// unmatched are the resources, as u, that still match no record: one may have
// been stored, or its resource been read, after the event came. Without a reference a resource may
// also be a subscription of ours or its charge, which is stored soon: it counts after the grace.
func (w *UnknownWhere) unmatched() (from string, args []any) {
	in, args := list(w.Accounts)
	from = ` FROM {s}gateway_unknown AS u WHERE u.account IN ` + in + ` AND u.last_at >= {now} - ?
		AND (u.ref <> '' OR u.first_at <= {now} - ?) AND NOT (` + matched() + `)`
	return from, append(args, w.Keep.Milliseconds(), w.Grace.Milliseconds())
}

// matched is the condition that a record has the resource u.
func matched() string {
	var records []string
	for _, k := range Kinds {
		t := tables[k]
		records = append(records, `u.family = '`+families[k]+`' AND EXISTS (
			SELECT 1 FROM `+t.name+` AS r WHERE r.account = u.account AND r.`+t.resource+` = u.id)`)
	}
	return strings.Join(records, ` OR `)
}

// families are the names of the records' resources in events.
var families = map[Kind]string{Charges: "transaction", Payouts: "transfer", Subscriptions: "subscription"}

// AddUnknown notes an event that matches no record, and returns how long ago the first one of its
// resource was noted. An event that is handled again counts once.
func (l Ledger) AddUnknown(ctx context.Context, u *Unknown) (age time.Duration, err error) {
	var ms int64
	_, err = l.s.Row(ctx, `INSERT INTO {s}gateway_unknown (account, family, id, ref, kind, event, events, first_at, last_at)
		VALUES (?, ?, ?, ?, ?, ?, 1, {now}, {now}) ON CONFLICT (account, family, id) DO UPDATE SET
			ref = CASE WHEN excluded.ref = '' THEN gateway_unknown.ref ELSE excluded.ref END, kind = excluded.kind, event = excluded.event,
			events = gateway_unknown.events + CASE WHEN gateway_unknown.event = excluded.event THEN 0 ELSE 1 END, last_at = excluded.last_at
		RETURNING last_at - first_at`,
		[]any{u.Account, Clean(u.Family), strings.ToLower(Clean(u.ID)), Clean(u.Ref), Clean(u.Kind), Clean(u.Event)}, &ms)
	return time.Duration(ms) * time.Millisecond, err
}

// TrimUnknown deletes resources of an account that are too old, or too many, or that match a record by
// now: those would take the place of others.
func (l Ledger) TrimUnknown(ctx context.Context, account string, keep time.Duration) error {
	if _, err := l.s.Exec(ctx, `DELETE FROM {s}gateway_unknown AS u WHERE u.account = ? AND (`+matched()+`)`, account); err != nil {
		return err
	}
	_, err := l.s.Exec(ctx, `DELETE FROM {s}gateway_unknown WHERE account = ? AND last_at <= (SELECT MAX(last_at) FROM (
			SELECT {now} - ? AS last_at
			UNION ALL SELECT * FROM (SELECT last_at FROM {s}gateway_unknown WHERE account = ? ORDER BY account, last_at DESC LIMIT 1 OFFSET ?) AS many
		) AS bounds)`, account, keep.Milliseconds(), account, unknownAtMost)
	return err
}

// Unknown returns resources that match no record, those whose events came last first: at most limit, and those after one, if it is not nil.
func (l Ledger) Unknown(ctx context.Context, w UnknownWhere, after *Unknown, limit int) ([]Unknown, error) {
	from, args := w.unmatched()
	if after != nil {
		from += ` AND (u.last_at < ? OR u.last_at = ? AND (u.family > ? OR u.family = ? AND u.id > ?))`
		args = append(args, after.Last.UnixMilli(), after.Last.UnixMilli(), after.Family, after.Family, after.ID)
	}
	return all(ctx, l, `SELECT u.account, u.family, u.id, u.ref, u.kind, u.event, u.events, u.first_at, u.last_at`+from+`
		ORDER BY u.last_at DESC, u.family, u.id LIMIT ?`, append(args, limit), func(row database.Scanner, u *Unknown) error {
		var first, last int64
		err := row.Scan(&u.Account, &u.Family, &u.ID, &u.Ref, &u.Kind, &u.Event, &u.Events, &first, &last)
		u.First, u.Last = time.UnixMilli(first), time.UnixMilli(last)
		return err
	})
}

// CountUnknown counts the resources that match no record, by account.
func (l Ledger) CountUnknown(ctx context.Context, w UnknownWhere) (map[string]int, error) {
	from, args := w.unmatched()
	counts := make(map[string]int)
	_, err := all(ctx, l, `SELECT u.account, COUNT(*)`+from+` GROUP BY u.account`, args, func(row database.Scanner, _ *struct{}) error {
		var account string
		var n int
		err := row.Scan(&account, &n)
		counts[account] = n
		return err
	})
	return counts, err
}

// Subscribes reports whether an account has a subscription.
func (l Ledger) Subscribes(ctx context.Context, account string) (bool, error) {
	var one int
	return l.s.Row(ctx, `SELECT 1 FROM `+tables[Subscriptions].name+` WHERE account = ? LIMIT 1`, []any{account}, &one)
}
