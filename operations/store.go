package operations

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/dbms"
	"github.com/gateway-go/gateway/internal/sqldb"
)

// store is an account's part of the table of operations. All times are Unix
// milliseconds of the database's clock, so the processes' clocks need not agree.
type store struct {
	db        *sqldb.DB
	account   gateway.Account
	foreign   bool                   // it is not the outbox of package merchant
	digestKey atomic.Pointer[string] // of the account; nil until it was found in the table of accounts
}

const (
	table = `{s}gateway_operations`

	// open selects the operations that workers must work on.
	open = `state IN (` + openStates + `)`

	openStates = `'waiting', 'working', 'sent', 'decided'`

	// columns are those that [scan] reads. The last one is the time at which the row was
	// read, after waiting for its lock.
	columns = `id, account, kind, key, COALESCE(resource, ''), state, CAST(params AS TEXT), CAST(progress AS TEXT), claims,
		created_at, updated_at, due_at, {clock}`

	// oneByID finds an operation of the account.
	oneByID = ` WHERE id = ? AND account || '' = ?`

	// rivals selects the operations on the same resource that must be decided before
	// a waiting one is sent: the one in flight, and those inserted earlier. An
	// operation in flight has no rivals; otherwise two operations would wait for
	// each other if the later one was committed and sent first.
	rivals = `FROM ` + table + ` AS e WHERE o.state = 'waiting' AND e.account || '' = o.account AND e.resource = o.resource AND e.id <> o.id
		AND e.state || '' <> 'done' AND (e.state || '' IN ('working', 'sent', 'ambiguous') OR e.state || '' = 'waiting' AND e.id < o.id)`

	// first is true if an operation has no rivals. The subquery is scalar so that it is one
	// index lookup for each operation that has a resource.
	first = `(o.resource IS NULL OR (SELECT 1 ` + rivals + ` LIMIT 1) IS NULL)`
)

// Statistics are unreliable for a queue, which is empty one minute and full the next. The
// planner, which takes it for empty, would read all that is due, once or for each operation,
// instead of looking one up. So the statements of the queue leave it one plan: a part such as
// state || '' fits no index, or only the one whose condition has it, which is
// gateway_operations_rivals.

// record is an operation as it is stored.
type record struct {
	Entry

	params []byte
	p      progress
	claims int64     // how often it was claimed: a worker that has lost it can't write
	now    time.Time // the database's clock when the record was read
	read   time.Time // this process's clock at the same time
}

// clock returns the database's time.
func (r *record) clock() time.Time { return r.now.Add(time.Since(r.read)) }

func scan(row database.Scanner, more ...any) (*record, error) {
	r := &record{read: time.Now()}
	var stored []byte
	var state string
	var created, updated, due, now int64
	err := row.Scan(append([]any{
		&r.ID, &r.Account, &r.Kind, &r.Key, &r.Resource, &state, &r.params, &stored, &r.claims, &created, &updated, &due, &now,
	}, more...)...)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(stored, &r.p, lenient()); err != nil {
		return nil, fmt.Errorf("operations: the stored progress can't be decoded: %w", err)
	}
	r.State = State(state)
	r.CreatedAt, r.UpdatedAt, r.DueAt, r.now = time.UnixMilli(created), time.UnixMilli(updated), time.UnixMilli(due), time.UnixMilli(now)
	if r.State == Sent && !r.p.inDoubt() {
		r.p.sentOnce(r.CreatedAt)
	}
	r.show(&r.p)
	return r, nil
}

// show takes over what an [Entry] shows of the progress.
func (e *Entry) show(p *progress) {
	e.Sends, e.LastError, e.Ambiguity, e.History = p.Sends, p.LastError, p.Ambiguity, p.History
}

// one reads the operation that a query returns, or nil if there is none.
func one(ctx context.Context, c sqldb.Session, query string, args []any, more ...any) (*record, error) {
	var r *record
	found, err := c.First(ctx, query, args, func(row database.Scanner) (err error) {
		r, err = scan(row, more...)
		return err
	})
	if err != nil || !found { // r may be what a query returned before it was repeated
		return nil, err
	}
	return r, nil
}

// insert stores an operation, unless there is one with its key. With a lease, it is stored as
// it is while it is sent for the first time, by its caller: progress.sentOnce says what is not
// stored of that.
func (s *store) insert(ctx context.Context, c sqldb.Session, i identity, params []byte, lease time.Duration) (*record, error) {
	state, claims, until, returned := Waiting, int64(0), (*int64)(nil), columns
	var more []any
	if lease > 0 {
		n := ms(lease)
		state, claims, until = Sent, firstClaim(), &n
		if s.db.Dialect() == database.DialectPostgres { // the request may not leave before the commit is flushed
			returned, more = returned+`, (SELECT `+sqldb.RaiseCommit+`)`, []any{new(string)}
		}
	}
	r, err := one(ctx, c, `INSERT INTO `+table+` (account, kind, key, resource, params, state, progress, claims, lease_until, due_at, created_at, updated_at)
		SELECT name, ?, ?, NULLIF(?, ''), {jsonb}, '`+string(state)+`', '{}', CAST(? AS {int}), {now} + CAST(? AS {int}), {now}, {now}, {now}
		FROM {s}gateway_accounts WHERE name = ?`+s.unowned()+` ON CONFLICT (account, kind, key) DO NOTHING RETURNING `+returned,
		[]any{i.kind, i.key, i.resource, string(params), claims, until, s.account.Name}, more...)
	if err != nil {
		return nil, fmt.Errorf("operations: %w", err)
	}
	if r != nil {
		return r, nil
	}
	if err := s.own(ctx, c); err != nil {
		return nil, err
	}
	var same bool
	digest, err := s.digest(params)
	if err != nil {
		return nil, err
	}
	r, err = one(ctx, c, `SELECT `+columns+`, CASE WHEN digest IS NULL THEN params = {jsonb} ELSE digest = ? END FROM `+table+`
		WHERE account = ? AND kind = ? AND key = ?`, []any{string(params), digest, s.account.Name, i.kind, i.key}, &same)
	switch {
	case err != nil:
		return nil, fmt.Errorf("operations: %w", err)
	case r == nil: // inserted by a transaction that this one, at a stricter level, does not see
		return nil, fmt.Errorf("operations: %s %s was inserted at the same time: roll back and repeat the transaction", i.kind, i.key)
	case !same:
		return nil, fmt.Errorf("%w: %s %s", ErrKeyReused, i.kind, i.key)
	}
	r.Existing = true
	return r, nil
}

// fewClaims is more than an operation is ever claimed.
const fewClaims = 1 << 20

// firstClaim is the number of the claim of an insertion. It is random, so that another
// transaction's operation is not taken for it: SQLite gives the number of one that was rolled
// back again.
func firstClaim() int64 { return fewClaims + rand.Int64N(1<<40) } //nolint:gosec // it is no secret

// follows reports whether a record is the same insertion as an earlier one, claimed since or not.
func (r *record) follows(inserted *record) bool {
	n := r.claims - inserted.claims
	return r.ID == inserted.ID && r.CreatedAt.Equal(inserted.CreatedAt) && n >= 0 && n < fewClaims
}

// unclaim undoes the claim of an operation that was inserted with a lease.
func (s *store) unclaim(ctx context.Context, r *record) error {
	return wrap(s.alone(ctx, func(c sqldb.Session) error {
		_, err := c.Exec(ctx, `UPDATE `+table+` SET state = 'waiting', lease_until = NULL, updated_at = {now}
			WHERE id = ? AND claims = ? AND state = 'sent'`, r.ID, r.claims)
		return err
	}))
}

// wrap names the package, once.
func wrap(err error) error {
	if err == nil || strings.HasPrefix(err.Error(), "operations: ") {
		return err
	}
	return fmt.Errorf("operations: %w", err)
}

// claim gives this worker exclusive ownership of an operation for the duration
// of the lease. It returns nil if it is not due, another worker has it, an earlier
// operation on the resource is undecided, or it belongs to another account.
func (s *store) claim(ctx context.Context, id int64, lease time.Duration) (r *record, err error) {
	work := func(c sqldb.Session) error {
		r, err = one(ctx, c, `UPDATE `+table+` AS o SET claims = claims + 1, lease_until = {now} + ?, updated_at = {now},
			state = CASE state WHEN 'waiting' THEN 'working' ELSE state END
		`+oneByID+` AND state || '' IN (`+openStates+`) AND due_at + 0 <= {now}
			AND (lease_until IS NULL OR lease_until < {now}) AND `+first+s.mayWork()+` RETURNING `+columns, []any{ms(lease), id, s.account.Name})
		return err
	}
	err = s.alone(ctx, work)
	if dbms.IsTaken(err) { // two operations on one resource claimed at once
		return nil, nil
	}
	if err == nil && r == nil {
		err = s.own(ctx, s.db.Conn())
	}
	return r, wrap(err)
}

// until returns how long to wait before claiming an operation again, or never
// if there is nothing left to do.
func (s *store) until(ctx context.Context, id int64) (time.Duration, error) {
	var wait int64
	var behind *int64
	found, err := s.db.Conn().First(ctx, `SELECT CASE WHEN COALESCE(lease_until, 0) > due_at THEN lease_until ELSE due_at END - {now},
		(SELECT CASE WHEN e.state = 'ambiguous' THEN ? WHEN e.lease_until > {now} THEN 0 ELSE e.due_at - {now} END
			`+rivals+` ORDER BY CASE e.state WHEN 'waiting' THEN 1 ELSE 0 END, e.id LIMIT 1)
		FROM `+table+` AS o`+oneByID+` AND state || '' IN (`+openStates+`)`, []any{ms(time.Hour), id, s.account.Name}, sqldb.Into(&wait, &behind))
	switch {
	case err != nil:
		return 0, wrap(err)
	case !found:
		return never, nil
	case behind != nil && wait < *behind:
		wait = min(*behind, ms(longestTurn))
	}
	return max(fromMS(wait), shortestWait), nil
}

const (
	never        = time.Duration(-1)
	shortestWait = 200 * time.Millisecond
	longestTurn  = 30 * time.Second // until the next check whether the earlier operation is decided
)

// errLost reports that another worker took over the operation after the lease
// expired.
var errLost = errors.New("operations: another worker took over the operation")

// save stores the worker's progress and when the operation is due. A lease of 0
// releases it.
func (s *store) save(ctx context.Context, r *record, state State, due, lease time.Duration) error {
	progress, err := r.p.encoded()
	if err != nil {
		return err
	}
	var until *int64
	if lease > 0 {
		n := ms(lease)
		until = &n
	}
	err = s.alone(ctx, func(c sqldb.Session) error {
		return s.changeDurably(ctx, c, `UPDATE `+table+` SET state = ?, progress = {json}, refunded = ?, updated_at = {now}, due_at = {now} + ?,
			lease_until = {now} + ? WHERE id = ? AND claims = ? AND state || '' <> 'done'`,
			string(state), progress, r.refunded(), ms(due), until, r.ID, r.claims)
	})
	if err != nil {
		return wrap(err)
	}
	r.State = state
	return nil
}

// alone runs one statement that changes the table, in a transaction of its own.
func (s *store) alone(ctx context.Context, statement func(sqldb.Session) error) error {
	if s.db.Dialect() == database.DialectSQLite { // whose writers queue in transactions
		return s.db.Transaction(ctx, func(tx sqldb.Tx) error { return statement(s.db.In(tx)) })
	}
	return statement(s.db.Conn())
}

// changeDurably changes the operation that a worker has claimed, and makes that durable
// in the same statement.
func (s *store) changeDurably(ctx context.Context, c sqldb.Session, update string, args ...any) error {
	var n int64
	var err error
	if s.db.Dialect() == database.DialectPostgres {
		var setting string
		var found bool
		if found, err = c.Row(ctx, update+` RETURNING (SELECT `+sqldb.RaiseCommit+`)`, args, &setting); found {
			n = 1
		}
	} else {
		n, err = c.Exec(ctx, update, args...)
	}
	if err == nil && n == 0 {
		err = errLost
	}
	return err
}

func (p *progress) encoded() (string, error) {
	b, err := json.Marshal(p, lenient())
	if err != nil {
		return "", fmt.Errorf("operations: the progress can't be encoded: %w", err)
	}
	return strings.ToValidUTF8(string(b), "\uFFFD"), nil // PostgreSQL accepts only valid UTF-8
}

func (r *record) refunded() *int64 {
	if r.p.Refunded == 0 {
		return nil
	}
	return &r.p.Refunded
}

// done marks an operation as done, and erases it, in the transaction of its handler,
// which has the session's default isolation: the handler's own statements may depend
// on it.
func (s *store) done(ctx context.Context, r *record, handle func(sqldb.Tx) error) error {
	digest, progress, kept, err := s.remains(r)
	if err != nil {
		return err
	}
	var failed error
	err = s.db.UserTx(ctx, func(tx sqldb.Tx) error {
		return s.changeDurably(ctx, s.db.In(tx), `UPDATE `+table+` SET state = 'done', `+erasing+`, refunded = ?, updated_at = {now}, lease_until = NULL
			WHERE id = ? AND claims = ? AND state || '' IN ('working', 'sent', 'decided')`, digest, progress, r.refunded(), r.ID, r.claims)
	}, func(tx sqldb.Tx) error {
		failed = handle(tx)
		return failed
	})
	if failed != nil {
		return failed
	}
	if err == nil {
		r.State, r.UpdatedAt = Done, r.clock()
		r.show(kept)
	}
	return wrap(err)
}

// leastRefunded returns the highest refunded_amount of a resource after operations of this
// outbox.
func (s *store) leastRefunded(ctx context.Context, resource string) (amount int64, err error) {
	_, err = s.db.Conn().Row(ctx, `SELECT COALESCE(MAX(refunded), 0) FROM `+table+` WHERE account || '' = ? AND resource = ?`,
		[]any{s.account.Name, resource}, &amount)
	return amount, wrap(err)
}
