package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/gateway-go/gateway/internal/dbms"
	"github.com/gateway-go/gateway/webhook"
)

// Put implements [webhook.Store].
func (s *Store) Put(ctx context.Context, rec webhook.Record) (webhook.Entry, error) {
	if err := s.ready(ctx); err != nil {
		return webhook.Entry{}, err
	}
	if s.joinable(&rec) {
		return s.puts.do(ctx, rec)
	}
	defer s.place(ctx)()
	return s.putOne(ctx, rec)
}

// Tx is a transaction: a [sql.Tx], or a [sql.Conn] with an open transaction.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// PutTx is [Store.Put] in your transaction, for data that must be committed
// together with the event. If it returns an error, roll back. On PostgreSQL it
// returns an error for a record with a Fact unless the isolation level of tx is
// read committed.
func (s *Store) PutTx(ctx context.Context, tx Tx, rec webhook.Record) (webhook.Entry, error) {
	switch err := s.ready(ctx); {
	case err != nil:
		return webhook.Entry{}, err
	case rec.Fact == "":
		return s.putAs(ctx, tx, rec, webhook.StateWaiting, "")
	default:
		return s.putFactTx(ctx, tx, rec)
	}
}

// PutDeadTx is [Store.PutDead] in your transaction.
func (s *Store) PutDeadTx(ctx context.Context, tx Tx, rec webhook.Record, reason string) (webhook.Entry, error) {
	if err := s.ready(ctx); err != nil {
		return webhook.Entry{}, err
	}
	return s.putAs(ctx, tx, rec, webhook.StateDead, text(reason))
}

// CompleteTx is [Store.Complete] in your transaction. Call it first: it locks
// the event, so no other process takes it over. After the commit, set the
// claim's Completed.
func (s *Store) CompleteTx(ctx context.Context, tx Tx, c *webhook.Claim) error {
	if s.err != nil {
		return s.err
	}
	return affectsOne(tx.ExecContext(ctx, s.shared.q.complete, c.Key, c.Token))
}

// putPlain stores an event that only its key identifies. It needs one
// statement.
func (s *Store) putPlain(ctx context.Context, rec webhook.Record) (webhook.Entry, error) {
	return s.putAs(ctx, s.db, rec, webhook.StateWaiting, "")
}

func (s *Store) putAs(ctx context.Context, db Tx, rec webhook.Record, state webhook.State, reason string) (webhook.Entry, error) {
	added, err := s.insert(ctx, db, rec, state, reason)
	if err != nil || added {
		return webhook.Entry{Key: rec.Key, State: state, Added: added}, err
	}
	return s.entry(ctx, db, rec.Key, rec.Digest)
}

// PutDead implements [webhook.Store].
func (s *Store) PutDead(ctx context.Context, rec webhook.Record, reason string) (entry webhook.Entry, err error) {
	if err := s.ready(ctx); err != nil {
		return entry, err
	}
	defer s.place(ctx)()
	err = s.try(ctx, func() error {
		entry, err = s.putAs(ctx, s.db, rec, webhook.StateDead, text(reason))
		return err
	})
	return entry, err
}

func (s *Store) insert(
	ctx context.Context, db Tx, rec webhook.Record, state webhook.State, reason string,
) (added bool, err error) {
	if rec.Key == "" { // that of the accounts' rows
		return false, errors.New("sqlstore: Record.Key is empty: it must identify the event")
	}
	res, err := db.ExecContext(ctx, s.q.insert, rec.Key, rec.EventID, string(rec.Kind), rec.Resource, rec.Fact,
		number(rec.Signed), string(rec.Source), number(rec.Late), rec.Position, rec.Digest, text(rec.KeyID), text(rec.Trace),
		rec.Body, rec.Confirmed, int64(state), reason)
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n == 1, err
}

// entry returns the entry of the event with that key.
func (s *Store) entry(ctx context.Context, db Tx, key, digest string) (webhook.Entry, error) {
	var e webhook.Entry
	var known string
	var wait int64
	err := db.QueryRowContext(ctx, s.q.entry, key).Scan(&e.Key, &e.State, &known, &wait)
	e.Wait = time.Duration(wait) * time.Millisecond
	e.Conflict = digest != "" && known != "" && digest != known
	return e, err
}

// stored is entry in a transaction of its own.
func (s *Store) stored(ctx context.Context, key string) (entry webhook.Entry, err error) {
	err = s.try(ctx, func() error {
		entry, err = s.entry(ctx, s.db, key, "")
		return err
	})
	return entry, err
}

func (s *Store) putFact(ctx context.Context, rec webhook.Record) (entry webhook.Entry, err error) {
	tx, err := s.db.BeginTx(ctx, s.readCommitted())
	if err != nil {
		return entry, err
	}
	defer func() { _ = tx.Rollback() }() // no-op after a commit
	if entry, err = s.putFactTx(ctx, tx, rec); err != nil {
		return webhook.Entry{}, err
	}
	return entry, tx.Commit()
}

// putFactTx also looks for the same event under another key. Concurrent calls
// for one resource are serialized.
func (s *Store) putFactTx(ctx context.Context, tx Tx, rec webhook.Record) (entry webhook.Entry, err error) {
	if s.q.lock != "" {
		var void, isolation string
		if err := tx.QueryRowContext(ctx, s.q.lock, rec.Resource).Scan(&void, &isolation); err != nil {
			return entry, err
		}
		if isolation != "read committed" && isolation != "read uncommitted" {
			return entry, fmt.Errorf("sqlstore: PutTx of an event with a Fact needs a transaction at the isolation level read committed, not %s, "+
				"which hides the same event if another transaction stored it meanwhile: begin it with &sql.TxOptions{Isolation: sql.LevelReadCommitted}",
				isolation)
		}
	}
	added, err := s.insert(ctx, tx, rec, webhook.StateWaiting, "")
	switch {
	case err != nil:
		return entry, err
	case !added:
		return s.entry(ctx, tx, rec.Key, rec.Digest)
	case rec.Signed:
		entry, err = s.putSigned(ctx, tx, rec)
	default:
		var twin string
		err = tx.QueryRowContext(ctx, s.q.twinOfConfirmed, rec.Key, rec.Fact, rec.EventID).Scan(&twin)
		if err == nil {
			return s.putAway(ctx, tx, rec.Key, twin)
		}
		entry = webhook.Entry{Key: rec.Key, State: webhook.StateWaiting, Added: true}
	}
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return entry, err
}

// putAway removes a confirmed event that was just inserted but is already
// stored as twin.
func (s *Store) putAway(ctx context.Context, tx Tx, key, twin string) (webhook.Entry, error) {
	if _, err := tx.ExecContext(ctx, s.q.putAway, key); err != nil {
		return webhook.Entry{}, err
	}
	return s.entry(ctx, tx, twin, "")
}

// putSigned matches a signed event that was just inserted with its confirmed
// twin, which is handled in its place.
func (s *Store) putSigned(ctx context.Context, tx Tx, rec webhook.Record) (webhook.Entry, error) {
	entry := webhook.Entry{Key: rec.Key, State: webhook.StateWaiting, Added: true}
	var twin, wait int64
	var found webhook.Entry
	err := tx.QueryRowContext(ctx, s.q.twinOfSigned, rec.Key, rec.Fact, rec.EventID, string(rec.Kind), rec.Resource, rec.Fact).
		Scan(&twin, &found.Key, &found.State, &wait)
	if err != nil {
		return entry, err
	}
	found.Wait = time.Duration(wait) * time.Millisecond
	if _, err := tx.ExecContext(ctx, s.q.match, rec.Key, twin); err != nil {
		return entry, err
	}
	_, err = tx.ExecContext(ctx, s.q.standIn, twin, rec.Key)
	return found, err
}

// Claim implements [webhook.Store].
func (s *Store) Claim(ctx context.Context, key string, lease time.Duration) (*webhook.Claim, webhook.Entry, error) {
	claimed := webhook.Entry{Key: key, State: webhook.StateClaimed}
	if err := s.ready(ctx); err != nil {
		return nil, webhook.Entry{}, err
	}
	claim, err := s.claimOne(ctx, key, lease)
	if err != nil || claim != nil {
		return claim, claimed, err
	}
	// A process may have died while it held this event, or another one of the
	// resource.
	if err := s.takeBack(ctx, key); err != nil {
		return nil, webhook.Entry{}, err
	}
	claim, err = s.claimOne(ctx, key, lease)
	if err != nil || claim != nil {
		return claim, claimed, err
	}
	entry, err := s.stored(ctx, key)
	return nil, entry, err
}

func (s *Store) claimOne(ctx context.Context, key string, lease time.Duration) (*webhook.Claim, error) {
	return s.claimBy(ctx, s.q.claim, key, lease)
}

func (s *Store) claimBy(ctx context.Context, query, key string, lease time.Duration) (*webhook.Claim, error) {
	claims, err := s.claims(ctx, query, func(token string) []any { return []any{token, lease.Milliseconds(), key} })
	if err != nil || len(claims) == 0 {
		return nil, err
	}
	return claims[0], nil
}

// ClaimInOrder is [Store.Claim] for a queue that hands out events in any
// order: if an earlier event of the resource is waiting and due, it is claimed
// instead.
func (s *Store) ClaimInOrder(ctx context.Context, key string, lease time.Duration) (*webhook.Claim, webhook.Entry, error) {
	if err := s.ready(ctx); err != nil {
		return nil, webhook.Entry{}, err
	}
	for _, query := range []string{s.q.claimFirst, s.q.claimAside, s.q.claimFirst} {
		claim, err := s.claimBy(ctx, query, key, lease)
		if err != nil {
			return nil, webhook.Entry{}, err
		}
		if claim != nil {
			return claim, webhook.Entry{Key: claim.Key, State: webhook.StateClaimed}, nil
		}
		entry, err := s.stored(ctx, key)
		if err != nil || entry.Wait > 0 || entry.State == webhook.StateDone || entry.State == webhook.StateDead {
			return nil, entry, err
		}
		if err := s.takeBack(ctx, key); err != nil { // its process may have died
			return nil, webhook.Entry{}, err
		}
	}
	entry, err := s.stored(ctx, key)
	return nil, entry, err
}

// takeBack returns the claimed event of the resource to its queue if the lease
// has expired.
func (s *Store) takeBack(ctx context.Context, key string) error {
	if _, err := s.checkClock(ctx); err != nil {
		return err
	}
	return s.try(ctx, func() error {
		_, err := s.db.ExecContext(ctx, s.q.takeBack, key)
		return err
	})
}

// expireEvery is how often Next checks for expired leases.
const expireEvery = time.Second

// Next implements [webhook.Store].
func (s *Store) Next(ctx context.Context, limit int, lease time.Duration) ([]*webhook.Claim, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	if err := s.expireNowAndThen(ctx); err != nil {
		return nil, err
	}
	if err := s.lookBehind(ctx); err != nil {
		return nil, err
	}
	// The first window is usually wide enough to reach past the events of busy
	// resources. If it is not, wider ones are tried.
	low, names := s.frontier.front()
	for window := firstWindow(limit); ; window *= 16 {
		claims, err := s.claims(ctx, s.q.next, func(token string) []any {
			queue := []any{low, window, names}
			if s.dialect == SQLite {
				queue = queue[:2]
			}
			return append(queue, token, lease.Milliseconds(), limit)
		})
		if err != nil || len(claims) > 0 || window > widestWindow {
			return claims, err
		}
		if more, err := s.waiting(ctx, low, window); err != nil || !more {
			return nil, err
		}
	}
}

func firstWindow(limit int) int { return limit + min(2*limit, 64) + 32 }

// expireNowAndThen returns claims with an expired lease to their queue, at
// most once per expireEvery.
func (s *Store) expireNowAndThen(ctx context.Context) error {
	if !s.expiries.due(expireEvery) {
		return nil
	}
	now, err := s.checkClock(ctx)
	if err != nil {
		return err
	}
	from := s.frontier.ended()
	if err := s.expire(ctx, from); err != nil {
		return err
	}
	s.frontier.expired(from, now)
	return nil
}

// widestWindow limits the rows that one statement of Next reads.
const widestWindow = 1 << 20

// waiting reports whether there are due events beyond a window.
func (s *Store) waiting(ctx context.Context, low int64, window int) (more bool, err error) {
	var seq int64
	err = s.row(ctx, s.q.beyond, []any{low, window}, &seq)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// claims runs a statement that claims rows. It returns no claims if another
// process claimed an event of the same resource concurrently.
func (s *Store) claims(ctx context.Context, query string, args func(token string) []any) (claims []*webhook.Claim, err error) {
	token, err := uuid.NewRandom()
	if err != nil {
		return nil, err
	}
	var found []claimRow
	err = s.try(ctx, func() error {
		return s.interpreted(ctx, func(tx session) error {
			found, err = collect(ctx, tx, scanClaim, query, args(token.String())...)
			return err
		})
	})
	switch {
	case dbms.IsTaken(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	slices.SortFunc(found, func(a, b claimRow) int { return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.seq, b.seq)) })
	for _, r := range found {
		r.claim.Token = token.String()
		claims = append(claims, r.claim)
	}
	return claims, nil
}

type claimRow struct {
	seq, due int64
	claim    *webhook.Claim
}

func scanClaim(rows *sql.Rows) (claimRow, error) {
	c := &webhook.Claim{}
	r := claimRow{claim: c}
	var kind, source string
	var signed, late, age int64
	err := rows.Scan(&r.seq, &r.due, &c.Key, &c.EventID, &kind, &c.Resource, &c.Fact, &signed, &source,
		&late, &c.Position, &c.Digest, &c.KeyID, &c.Trace, &c.Body, &c.Confirmed, &c.Attempt, &age, &c.Expired, &c.Latest)
	c.Age = time.Duration(age) * time.Millisecond
	c.Kind, c.Source, c.Signed, c.Late = webhook.Kind(kind), webhook.Source(source), signed == 1, late == 1
	return r, err
}

// Extend implements [webhook.Store].
func (s *Store) Extend(ctx context.Context, c *webhook.Claim, lease time.Duration) error {
	if s.err != nil {
		return s.err
	}
	err := s.update(ctx, s.shared.q.extend, lease.Milliseconds(), c.Key, c.Token)
	if !errors.Is(err, webhook.ErrClaimLost) {
		return err
	}
	var n int
	if err := s.row(ctx, s.shared.q.holds, []any{c.Key, c.Token}, &n); err != nil {
		return err
	}
	if n == 0 {
		return webhook.ErrClaimLost
	}
	return nil
}

// Settle implements [webhook.Store].
func (s *Store) Settle(ctx context.Context, c *webhook.Claim, d webhook.Disposition) error {
	q := &s.shared.q
	switch {
	case d.State == webhook.StateDone:
		return s.end(ctx, s.shared.completed, c)
	case d.State == webhook.StateDead:
		return s.settle(ctx, q.bury, c, text(d.Reason))
	case d.State == webhook.StateUnhandled:
		return s.settle(ctx, q.setAside, c, string(d.Family)+"\n"+string(c.Kind))
	case d.State == webhook.StateWaiting && d.Released:
		return s.end(ctx, s.shared.released, c)
	case d.State == webhook.StateWaiting:
		return s.settle(ctx, q.retry, c, d.Delay.Milliseconds(), text(d.Reason))
	default:
		return fmt.Errorf("sqlstore: a claim can't end in state %d", d.State)
	}
}

// end ends a claim together with others.
func (s *Store) end(ctx context.Context, by *batches[*webhook.Claim, struct{}], c *webhook.Claim) error {
	if s.err != nil {
		return s.err
	}
	_, err := by.do(ctx, c)
	return err
}

// settle ends a claim. It returns ErrClaimLost if the claim is no longer valid.
func (s *Store) settle(ctx context.Context, query string, c *webhook.Claim, args ...any) error {
	return s.update(ctx, query, append(args, c.Key, c.Token)...)
}

// update changes one row. It returns ErrClaimLost if the row is no longer in the
// state that the query requires.
func (s *Store) update(ctx context.Context, query string, args ...any) error {
	if s.err != nil {
		return s.err
	}
	return s.try(ctx, func() error { return affectsOne(s.db.ExecContext(ctx, query, args...)) })
}

func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// text replaces the bytes that a text column rejects.
func text(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "�"), "\x00", "�")
}
