package operations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/dbms"
)

// store is an account's part of the table of operations. All times are Unix
// milliseconds of the database's clock, so the processes' clocks need not agree.
type store[TX any] struct {
	driver   Driver[TX]
	logger   *slog.Logger
	schema   string
	table    string
	accounts string // the table of accounts
	words    *strings.Replacer
	build    func() (*debug.BuildInfo, bool)

	account   gateway.Account
	digestKey atomic.Pointer[string] // of the account; nil until it was found in the table of accounts
	checking  sync.Mutex
	checked   bool // the database's settings, by Driver.Check
}

func newStore[TX any](driver Driver[TX], schema string, account gateway.Account, logger *slog.Logger) *store[TX] {
	s := &store[TX]{driver: driver, logger: logger, schema: schema, account: account, build: debug.ReadBuildInfo}
	s.table, s.accounts = s.qualified("gateway_operations"), s.qualified("gateway_operations_accounts")
	words := []string{
		"{t}", s.table, "{accounts}", s.accounts, "{open}", "state IN ('waiting', 'working', 'sent', 'decided')",
		"{rivals}", s.rivals(), "{columns}",
	}
	if driver.Dialect() == DialectSQLite {
		words = append(words, columns(dbms.SQLiteNow), "{now}", dbms.SQLiteNow, "{jsonb}", "?", "{json}", "?", "{erase}", erasing("?"), "{skip}", "",
			"{id}", "INTEGER PRIMARY KEY AUTOINCREMENT", "{bigint}", "INTEGER", "{params}", "TEXT", "{progress}", "TEXT")
	} else {
		// The time at which a row was read, after waiting for its lock.
		read := strings.ReplaceAll(dbms.PostgresNow, "statement_timestamp", "clock_timestamp")
		words = append(words, columns(read), "{now}", dbms.PostgresNow, "{jsonb}", "CAST(? AS jsonb)", "{json}", "CAST(? AS json)",
			"{erase}", erasing("CAST(? AS json)"), "{skip}", "FOR UPDATE SKIP LOCKED",
			"{id}", "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY", "{bigint}", "bigint", "{params}", "jsonb", "{progress}", "json")
	}
	s.words = strings.NewReplacer(words...)
	return s
}

// qualified returns the quoted name of a table or index.
func (s *store[TX]) qualified(name string) string {
	if s.schema == "" {
		return `"` + name + `"`
	}
	return `"` + s.schema + `"."` + name + `"`
}

// sql returns a statement in the database's dialect.
func (s *store[TX]) sql(text string) string {
	text = s.words.Replace(text)
	if s.driver.Dialect() == DialectSQLite {
		return text
	}
	return dbms.Numbered(text)
}

func (s *store[TX]) exec(ctx context.Context, c Conn, statement string, args ...any) (int64, error) {
	return c.Exec(ctx, s.sql(statement), args...)
}

// first reads the first row of a query's result. found is false if there is none.
func (s *store[TX]) first(ctx context.Context, c Conn, query string, args []any, scan func(Scanner) error) (found bool, err error) {
	err = c.Query(ctx, s.sql(query), args, func(row Scanner) error {
		if found {
			return nil
		}
		found = true
		return scan(row)
	})
	return found, err
}

// read is first in a transaction of its own. If the session's default isolation is
// serializable, even a single SELECT may conflict with other sessions.
func (s *store[TX]) read(ctx context.Context, query string, args []any, scan func(Scanner) error) (found bool, err error) {
	err = s.try(ctx, func() error {
		found, err = s.first(ctx, s.driver.Conn(), query, args, scan)
		return err
	})
	return found, err
}

// readAll reads all rows of a query's result, in a transaction of its own.
func readAll[T, TX any](ctx context.Context, s *store[TX], query string, args []any, scan func(Scanner) (T, error)) (list []T, err error) {
	err = s.try(ctx, func() error {
		list = nil
		return s.driver.Conn().Query(ctx, s.sql(query), args, func(row Scanner) error {
			one, err := scan(row)
			list = append(list, one)
			return err
		})
	})
	return list, wrap(err)
}

// into returns a scan for [store.first].
func into(columns ...any) func(Scanner) error {
	return func(row Scanner) error { return row.Scan(columns...) }
}

// durable runs a transaction whose commit survives a crash of the database: a
// request must not be sent before it is certain to be stored. run may be repeated.
func (s *store[TX]) durable(ctx context.Context, run func(TX) error) error {
	return s.transaction(ctx, func(tx TX) error {
		if err := s.raise(ctx, tx); err != nil {
			return err
		}
		return run(tx)
	})
}

// raise makes PostgreSQL flush the transaction's commit, even if synchronous_commit is
// off for the database or the role. A stronger setting stays. [Driver.Check] has
// checked what SQLite does.
func (s *store[TX]) raise(ctx context.Context, tx TX) error {
	if s.driver.Dialect() == DialectSQLite {
		return nil
	}
	_, err := s.exec(ctx, s.driver.In(tx), `SELECT set_config('synchronous_commit', 'on', true)
		WHERE current_setting('synchronous_commit') NOT IN ('on', 'remote_apply')`)
	return err
}

// transaction runs a transaction, and repeats it if it conflicts with another
// session. The statements expect read committed: each sees what was committed
// before it.
func (s *store[TX]) transaction(ctx context.Context, run func(TX) error) error {
	return s.try(ctx, func() error {
		tx, err := s.begin(ctx, sql.LevelReadCommitted, run)
		if err != nil {
			return err
		}
		return s.driver.Commit(ctx, tx)
	})
}

// begin begins a transaction with what run does.
func (s *store[TX]) begin(ctx context.Context, level sql.IsolationLevel, run func(TX) error) (tx TX, err error) {
	tx, err = s.driver.Begin(ctx, level)
	if err != nil {
		return tx, err
	}
	begun := false
	defer func() {
		if !begun { // run failed or panicked
			_ = s.driver.Rollback(ctx, tx) // err is more useful
		}
	}()
	err = run(tx)
	begun = err == nil
	return tx, err
}

// try runs work, and repeats it while it conflicts with other sessions.
func (s *store[TX]) try(ctx context.Context, work func() error) error {
	if pool, ok := s.driver.(interface {
		keep(ctx context.Context, logger *slog.Logger)
	}); ok {
		pool.keep(ctx, s.logger)
	}
	return dbms.Pooled(dbms.Repeat(ctx, work))
}

func columns(clock string) string {
	return `id, account, kind, key, COALESCE(resource, ''), state, CAST(params AS TEXT), CAST(progress AS TEXT), claims,
		created_at, updated_at, due_at, ` + clock
}

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

func scan(row Scanner, more ...any) (*record, error) {
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
	r.Sends, r.LastError, r.Ambiguity, r.History = r.p.Sends, r.p.LastError, r.p.Ambiguity, r.p.History
	return r, nil
}

// record reads the operation that a query returns, or nil if there is none.
func (s *store[TX]) record(ctx context.Context, c Conn, query string, args []any, more ...any) (r *record, err error) {
	_, err = s.first(ctx, c, query, args, func(row Scanner) error {
		r, err = scan(row, more...)
		return err
	})
	return r, err
}

func (s *store[TX]) insert(ctx context.Context, tx TX, i identity, params []byte) (*Entry, error) {
	c := s.driver.In(tx)
	r, err := s.record(ctx, c, `INSERT INTO {t} (account, kind, key, resource, params, state, progress, claims, due_at, created_at, updated_at)
		VALUES (?, ?, ?, NULLIF(?, ''), {jsonb}, 'waiting', '{}', 0, {now}, {now}, {now}) ON CONFLICT (account, kind, key) DO NOTHING RETURNING {columns}`,
		[]any{s.account.Name, i.kind, i.key, i.resource, string(params)})
	if err != nil {
		return nil, fmt.Errorf("operations: %w", err)
	}
	if r != nil {
		return &r.Entry, nil
	}
	var same bool
	digest, err := s.digest(params)
	if err != nil {
		return nil, err
	}
	r, err = s.record(ctx, c, `SELECT {columns}, CASE WHEN digest IS NULL THEN params = {jsonb} ELSE digest = ? END FROM {t} WHERE account = ? AND kind = ? AND key = ?`,
		[]any{string(params), digest, s.account.Name, i.kind, i.key}, &same)
	switch {
	case err != nil:
		return nil, fmt.Errorf("operations: %w", err)
	case r == nil: // inserted by a transaction that this one, at a stricter level, does not see
		return nil, fmt.Errorf("operations: %s %s was inserted at the same time: roll back and repeat the transaction", i.kind, i.key)
	case !same:
		return nil, fmt.Errorf("%w: %s %s", ErrKeyReused, i.kind, i.key)
	}
	r.Existing = true
	return &r.Entry, nil
}

// wrap names the package, once.
func wrap(err error) error {
	if err == nil || strings.HasPrefix(err.Error(), "operations: ") {
		return err
	}
	return fmt.Errorf("operations: %w", err)
}

// rivals selects the operations on the same resource that must be decided before
// a waiting one is sent: the one in flight, and those inserted earlier. An
// operation in flight has no rivals; otherwise two operations would wait for
// each other if the later one was committed and sent first.
func (s *store[TX]) rivals() string {
	return `FROM ` + s.table + ` AS e WHERE o.state = 'waiting' AND e.account = o.account AND e.resource = o.resource AND e.id <> o.id
		AND (e.state IN ('working', 'sent', 'ambiguous') OR e.state = 'waiting' AND e.id < o.id)`
}

// claim gives this worker exclusive ownership of an operation for the duration
// of the lease. It returns nil if it is not due, another worker has it, an earlier
// operation on the resource is undecided, or it belongs to another account.
func (s *store[TX]) claim(ctx context.Context, id int64, lease time.Duration) (r *record, err error) {
	err = s.transaction(ctx, func(tx TX) error {
		r, err = s.record(ctx, s.driver.In(tx), `UPDATE {t} AS o SET claims = claims + 1, lease_until = {now} + ?, updated_at = {now},
			state = CASE state WHEN 'waiting' THEN 'working' ELSE state END
		WHERE id = ? AND account = ? AND {open} AND due_at <= {now}
			AND (lease_until IS NULL OR lease_until < {now}) AND NOT EXISTS (SELECT 1 {rivals}) RETURNING {columns}`,
			[]any{ms(lease), id, s.account.Name})
		return err
	})
	if dbms.IsTaken(err) { // two operations on one resource claimed at once
		return nil, nil
	}
	return r, wrap(err)
}

// until returns how long to wait before claiming an operation again, or never
// if there is nothing left to do.
func (s *store[TX]) until(ctx context.Context, id int64) (time.Duration, error) {
	var wait int64
	var behind *int64
	found, err := s.read(ctx, `SELECT CASE WHEN COALESCE(lease_until, 0) > due_at THEN lease_until ELSE due_at END - {now},
		(SELECT CASE WHEN e.state = 'ambiguous' THEN ? WHEN e.lease_until > {now} THEN 0 ELSE e.due_at - {now} END
			{rivals} ORDER BY CASE e.state WHEN 'waiting' THEN 1 ELSE 0 END, e.id LIMIT 1)
		FROM {t} AS o WHERE id = ? AND account = ? AND {open}`, []any{ms(time.Hour), id, s.account.Name}, into(&wait, &behind))
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
func (s *store[TX]) save(ctx context.Context, r *record, state State, due, lease time.Duration) error {
	progress, err := r.p.encoded()
	if err != nil {
		return err
	}
	var until *int64
	if lease > 0 {
		n := ms(lease)
		until = &n
	}
	err = s.durable(ctx, func(tx TX) error {
		n, err := s.exec(ctx, s.driver.In(tx), `UPDATE {t} SET state = ?, progress = {json}, refunded = ?, updated_at = {now}, due_at = {now} + ?,
			lease_until = {now} + ? WHERE id = ? AND claims = ? AND state <> 'done'`,
			string(state), progress, r.refunded(), ms(due), until, r.ID, r.claims)
		if err == nil && n == 0 {
			err = errLost
		}
		return err
	})
	if err != nil {
		return wrap(err)
	}
	r.State = state
	return nil
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
func (s *store[TX]) done(ctx context.Context, r *record, handle func(TX) error) error {
	digest, progress, err := s.remains(r)
	if err != nil {
		return err
	}
	var tx TX
	err = s.try(ctx, func() error {
		tx, err = s.begin(ctx, sql.LevelDefault, func(tx TX) error {
			if err := s.raise(ctx, tx); err != nil {
				return err
			}
			n, err := s.exec(ctx, s.driver.In(tx), `UPDATE {t} SET state = 'done', {erase}, refunded = ?, updated_at = {now}, lease_until = NULL
				WHERE id = ? AND claims = ? AND state IN ('working', 'sent', 'decided')`, digest, progress, r.refunded(), r.ID, r.claims)
			if err == nil && n == 0 {
				err = errLost
			}
			return err
		})
		return err
	})
	if err != nil {
		return wrap(err)
	}
	defer s.driver.Rollback(ctx, tx) //nolint:errcheck // after a commit it does nothing
	if err := handle(tx); err != nil {
		return err
	}
	return wrap(s.driver.Commit(ctx, tx))
}

// leastRefunded returns the highest refunded_amount of a resource after
// operations of this outbox.
func (s *store[TX]) leastRefunded(ctx context.Context, resource string) (amount int64, err error) {
	_, err = s.read(ctx, `SELECT COALESCE(MAX(refunded), 0) FROM {t} WHERE account = ? AND resource = ?`,
		[]any{s.account.Name, resource}, into(&amount))
	return amount, wrap(err)
}
