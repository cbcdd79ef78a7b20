package ledger

import (
	"context"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/gateway-go/gateway/database"
)

// Lane says how soon a comparison matters. Each has slots of its own, so that none delays
// those of the lanes before it.
type Lane int

// The lanes.
const (
	Fresh   Lane = iota // of what was made a short time ago, or moves money now
	Open                // of anything else that waits
	Routine             // of what is paid
)

// Lanes is their number.
const Lanes = int(Routine) + 1

// Plan is when a record is compared again.
type Plan struct {
	Never bool
	Wait  time.Duration
	Lane  Lane
}

// Schedule returns the statement that plans the next comparison of a record.
func (r *Row) Schedule(p Plan) Write {
	if p.Never {
		return Write{
			SQL: `DELETE FROM {s}gateway_checks WHERE id = ? AND kind = ? AND account = ?`, Args: []any{r.ID, string(r.Kind), r.Account}, Any: true,
		}
	}
	return Write{
		SQL: `INSERT INTO {s}gateway_checks (kind, id, account, lane, check_at) VALUES (?, ?, ?, ?, {now} + ?)
			ON CONFLICT (id, kind, account) DO UPDATE SET lane = excluded.lane, check_at = excluded.check_at, lease_until = NULL`,
		Args: []any{string(r.Kind), r.ID, r.Account, int(p.Lane), p.Wait.Milliseconds()},
	}
}

// Want is how many comparisons of a lane an account may begin.
type Want struct {
	Account string `json:"account"`
	Lane    Lane   `json:"lane"`
	N       int    `json:"n"`
}

// Claim is a comparison that this process does until its lease ends.
type Claim struct {
	Kind    Kind
	ID      string
	Account string
	Lane    Lane
	Lease   int64
	Due     time.Time // of [Ledger.ClaimCharges]
}

// claimable selects comparisons that are due and that no process does.
const claimable = `q.check_at <= {now} AND (q.lease_until IS NULL OR q.lease_until < {now})`

// Claim begins comparisons that are due, the first lanes first. Rows that another transaction
// has locked are left out.
func (l Ledger) Claim(ctx context.Context, wants []Want, lease time.Duration) ([]Claim, error) {
	if l.s.Dialect() == database.DialectSQLite {
		return l.claimEach(ctx, wants, lease)
	}
	text, err := json.Marshal(wants)
	if err != nil {
		return nil, err
	}
	// The array keeps the planner, which knows nothing of a queue's size, from joining.
	return all(ctx, l, `UPDATE {s}gateway_checks SET lease_until = {now} + ? WHERE ctid = ANY (ARRAY(
			SELECT d.ctid FROM json_to_recordset({json}) AS a(account text, lane bigint, n bigint)
			CROSS JOIN LATERAL (SELECT q.ctid FROM {s}gateway_checks AS q WHERE q.account = a.account AND q.lane = a.lane AND `+claimable+`
				ORDER BY q.account, q.lane, q.check_at LIMIT a.n {skip}) AS d))
		RETURNING kind, id, account, lane, lease_until`, []any{lease.Milliseconds(), string(text)}, scanClaim)
}

// claimEach is Claim on SQLite, which has no LATERAL. It writes only if something is due.
func (l Ledger) claimEach(ctx context.Context, wants []Want, lease time.Duration) (claims []Claim, err error) {
	type of struct {
		account string
		lane    Lane
	}
	queues, err := all(ctx, l, `SELECT DISTINCT account, lane FROM {s}gateway_checks AS q WHERE `+claimable, nil,
		func(row database.Scanner, o *of) error { return row.Scan(&o.account, &o.lane) })
	if err != nil {
		return nil, err
	}
	isDue := make(map[of]bool)
	for _, o := range queues {
		isDue[o] = true
	}
	for _, w := range wants {
		if !isDue[of{w.Account, w.Lane}] {
			continue
		}
		more, err := all(ctx, l, `UPDATE {s}gateway_checks SET lease_until = {now} + ? WHERE rowid IN (
				SELECT q.rowid FROM {s}gateway_checks AS q WHERE q.account = ? AND q.lane = ? AND `+claimable+` ORDER BY q.check_at LIMIT ?)
			RETURNING kind, id, account, lane, lease_until`, []any{lease.Milliseconds(), w.Account, int(w.Lane), w.N}, scanClaim)
		if err != nil {
			return claims, err
		}
		claims = append(claims, more...)
	}
	return claims, nil
}

func scanClaim(row database.Scanner, c *Claim) error {
	return row.Scan(&c.Kind, &c.ID, &c.Account, &c.Lane, &c.Lease)
}

// claimedBy selects comparisons, together with their IDs, while they are claimed. Only the IDs
// can be looked up in an index: that of the accounts would have to be read as a whole.
const claimedBy = `kind = ? AND account || '' = ? AND lease_until = ?`

// Release ends comparisons that changed nothing: they are done again in a time. One that was
// planned anew meanwhile keeps its plan. All are of one kind and account, and have the same
// lease.
func (l Ledger) Release(ctx context.Context, claims []Claim, again Plan) error {
	in, args := ids(claims)
	key := append([]any{string(claims[0].Kind), claims[0].Account, claims[0].Lease}, args...)
	if again.Never {
		_, err := l.s.Exec(ctx, `DELETE FROM {s}gateway_checks WHERE `+claimedBy+` AND id IN `+in, key...)
		return err
	}
	_, err := l.s.Exec(ctx, `UPDATE {s}gateway_checks SET check_at = {now} + ?, lane = ?, lease_until = NULL
		WHERE `+claimedBy+` AND id IN `+in, append([]any{again.Wait.Milliseconds(), int(again.Lane)}, key...)...)
	return err
}

func ids(claims []Claim) (parameters string, args []any) {
	of := make([]string, len(claims))
	for i := range claims {
		of[i] = claims[i].ID
	}
	return list(of)
}

// Compared returns the IDs of the next records of an account that are compared now and then,
// after an ID.
func (l Ledger) Compared(ctx context.Context, k Kind, account, after string, limit int) ([]string, error) {
	return all(ctx, l, `SELECT id FROM {s}gateway_checks WHERE kind = ? AND account = ? AND id > ? ORDER BY id LIMIT ?`,
		[]any{string(k), account, after, limit}, func(row database.Scanner, id *string) error { return row.Scan(id) })
}

// DueNow counts the comparisons of accounts that are due, and for how long the oldest one has
// been.
func (l Ledger) DueNow(ctx context.Context, accounts []string) (n int, oldest time.Duration, err error) {
	in, args := list(accounts)
	var ms int64
	_, err = l.s.Row(ctx, `SELECT COUNT(*), COALESCE({now} - MIN(check_at), 0) FROM {s}gateway_checks WHERE account IN `+in+` AND check_at <= {now}
		AND lane IN (0, 1, 2)`, args, &n, &ms)
	return n, inTime(ms), err
}
