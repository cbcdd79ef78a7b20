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

	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/dbms"
	"github.com/gateway-go/gateway/internal/sqldb"
	"github.com/gateway-go/gateway/webhook"
)

// Put implements [webhook.Store].
func (s *core) Put(ctx context.Context, rec webhook.Record) (webhook.Entry, error) {
	if err := s.ready(ctx); err != nil {
		return webhook.Entry{}, err
	}
	if s.joinable(&rec) {
		return s.puts.do(ctx, rec)
	}
	defer s.place(ctx)()
	return s.putOne(ctx, rec)
}

func (s *core) putTx(ctx context.Context, tx sqldb.Tx, rec webhook.Record) (webhook.Entry, error) {
	switch err := s.ready(ctx); {
	case err != nil:
		return webhook.Entry{}, err
	case rec.Fact == "":
		return s.putAs(ctx, s.in(tx), rec, webhook.StateWaiting, "")
	default:
		return s.putFactTx(ctx, s.in(tx), rec)
	}
}

func (s *core) putDeadTx(ctx context.Context, tx sqldb.Tx, rec webhook.Record, reason string) (webhook.Entry, error) {
	if err := s.ready(ctx); err != nil {
		return webhook.Entry{}, err
	}
	return s.putAs(ctx, s.in(tx), rec, webhook.StateDead, text(reason))
}

func (s *core) completeTx(ctx context.Context, tx sqldb.Tx, c *webhook.Claim) error {
	if err := s.find(ctx); err != nil {
		return err
	}
	return affectsOne(s.in(tx).Exec(ctx, s.common.Load().complete, c.Key, c.Token))
}

func (s *core) putAs(
	ctx context.Context, db sqldb.Session, rec webhook.Record, state webhook.State, reason string,
) (webhook.Entry, error) {
	added, err := s.insert(ctx, db, rec, state, reason)
	if err != nil || added {
		return webhook.Entry{Key: rec.Key, State: state, Added: added}, err
	}
	return s.entry(ctx, db, rec.Key, rec.Digest)
}

// PutDead implements [webhook.Store].
func (s *core) PutDead(ctx context.Context, rec webhook.Record, reason string) (webhook.Entry, error) {
	if err := s.ready(ctx); err != nil {
		return webhook.Entry{}, err
	}
	defer s.place(ctx)()
	return s.putAs(ctx, s.conn(), rec, webhook.StateDead, text(reason))
}

func (s *core) insert(
	ctx context.Context, db sqldb.Session, rec webhook.Record, state webhook.State, reason string,
) (added bool, err error) {
	if rec.Key == "" { // that of the accounts' rows
		return false, errors.New("sqlstore: Record.Key is empty: it must identify the event")
	}
	n, err := db.Exec(ctx, s.q.insert, rec.Key, rec.EventID, string(rec.Kind), rec.Resource, rec.Fact,
		number(rec.Signed), string(rec.Source), number(rec.Late), rec.Position, rec.Digest, text(rec.KeyID), text(rec.Trace),
		rec.Body, rec.Confirmed, int64(state), reason)
	return n == 1, err
}

// entry returns the entry of the event with that key.
func (s *core) entry(ctx context.Context, db sqldb.Session, key, digest string) (webhook.Entry, error) {
	var e webhook.Entry
	var known string
	var wait int64
	found, err := db.First(ctx, s.q.entry, []any{key}, sqldb.Into(&e.Key, &e.State, &known, &wait))
	if err == nil && !found {
		err = sql.ErrNoRows // it was purged
	}
	e.Wait = time.Duration(wait) * time.Millisecond
	e.Conflict = digest != "" && known != "" && digest != known
	return e, err
}

// stored is entry in a transaction of its own.
func (s *core) stored(ctx context.Context, key string) (webhook.Entry, error) {
	return s.entry(ctx, s.conn(), key, "")
}

func (s *core) putFact(ctx context.Context, rec webhook.Record) (entry webhook.Entry, err error) {
	err = s.db.Transaction(ctx, func(tx sqldb.Tx) error {
		entry, err = s.putFactTx(ctx, s.in(tx), rec)
		return err
	})
	if err != nil {
		return webhook.Entry{}, err
	}
	return entry, nil
}

// putFactTx also looks for the same event under another key. Concurrent calls
// for one resource are serialized.
func (s *core) putFactTx(ctx context.Context, tx sqldb.Session, rec webhook.Record) (entry webhook.Entry, err error) {
	if s.q.lock != "" {
		var void, isolation string
		lock := s.table() + " " + rec.Resource
		if _, err := tx.First(ctx, s.q.lock, []any{lock}, sqldb.Into(&void, &isolation)); err != nil {
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
		return s.putSigned(ctx, tx, rec)
	}
	var twin string
	known, err := tx.First(ctx, s.q.twinOfConfirmed, []any{rec.Key, rec.Fact, rec.EventID}, sqldb.Into(&twin))
	switch {
	case err != nil:
		return entry, err
	case known:
		return s.putAway(ctx, tx, rec.Key, twin)
	}
	return webhook.Entry{Key: rec.Key, State: webhook.StateWaiting, Added: true}, nil
}

// putAway removes a confirmed event that was just inserted but is already
// stored as twin.
func (s *core) putAway(ctx context.Context, tx sqldb.Session, key, twin string) (webhook.Entry, error) {
	if _, err := tx.Exec(ctx, s.q.putAway, key); err != nil {
		return webhook.Entry{}, err
	}
	return s.entry(ctx, tx, twin, "")
}

// putSigned matches a signed event that was just inserted with its confirmed
// twin, which is handled in its place.
func (s *core) putSigned(ctx context.Context, tx sqldb.Session, rec webhook.Record) (webhook.Entry, error) {
	var twin, wait int64
	var found webhook.Entry
	args := []any{rec.Key, rec.Fact, rec.EventID, string(rec.Kind), rec.Resource, rec.Fact}
	known, err := tx.First(ctx, s.q.twinOfSigned, args, sqldb.Into(&twin, &found.Key, &found.State, &wait))
	if err != nil || !known {
		return webhook.Entry{Key: rec.Key, State: webhook.StateWaiting, Added: true}, err
	}
	found.Wait = time.Duration(wait) * time.Millisecond
	if _, err := tx.Exec(ctx, s.q.match, rec.Key, twin); err != nil {
		return webhook.Entry{}, err
	}
	_, err = tx.Exec(ctx, s.q.standIn, twin, rec.Key)
	return found, err
}

// Claim implements [webhook.Store].
func (s *core) Claim(ctx context.Context, key string, lease time.Duration) (*webhook.Claim, webhook.Entry, error) {
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

func (s *core) claimOne(ctx context.Context, key string, lease time.Duration) (*webhook.Claim, error) {
	return s.claimBy(ctx, s.q.claim, key, lease)
}

func (s *core) claimBy(ctx context.Context, query, key string, lease time.Duration) (*webhook.Claim, error) {
	claims, err := s.claims(ctx, query, func(token string) []any { return []any{token, lease.Milliseconds(), key} })
	if err != nil || len(claims) == 0 {
		return nil, err
	}
	return claims[0], nil
}

// ClaimInOrder is [Store.Claim] for a queue that hands out events in any
// order: if an earlier event of the resource is waiting and due, it is claimed
// instead.
func (s *core) ClaimInOrder(ctx context.Context, key string, lease time.Duration) (*webhook.Claim, webhook.Entry, error) {
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
func (s *core) takeBack(ctx context.Context, key string) error {
	if _, err := s.checkClock(ctx); err != nil {
		return err
	}
	_, err := s.conn().Exec(ctx, s.q.takeBack, key)
	return err
}

// expireEvery is how often Next checks for expired leases.
const expireEvery = time.Second

// Next implements [webhook.Store].
func (s *core) Next(ctx context.Context, limit int, lease time.Duration) ([]*webhook.Claim, error) {
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
			if s.sqlite() {
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
func (s *core) expireNowAndThen(ctx context.Context) error {
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
func (s *core) waiting(ctx context.Context, low int64, window int) (more bool, err error) {
	return s.conn().First(ctx, s.q.beyond, []any{low, window}, sqldb.Into(new(int64)))
}

// claims runs a statement that claims rows. It returns no claims if another
// process claimed an event of the same resource concurrently.
func (s *core) claims(ctx context.Context, query string, args func(token string) []any) (claims []*webhook.Claim, err error) {
	token, err := uuid.NewRandom()
	if err != nil {
		return nil, err
	}
	var found []claimRow
	err = s.byIndex(ctx, func(tx sqldb.Session) error {
		found, err = sqldb.All(ctx, tx, query, args(token.String()), scanClaim)
		return err
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

func scanClaim(row database.Scanner) (claimRow, error) {
	c := &webhook.Claim{}
	r := claimRow{claim: c}
	var kind, source string
	var signed, late, age int64
	err := row.Scan(&r.seq, &r.due, &c.Key, &c.EventID, &kind, &c.Resource, &c.Fact, &signed, &source,
		&late, &c.Position, &c.Digest, &c.KeyID, &c.Trace, &c.Body, &c.Confirmed, &c.Attempt, &age, &c.Expired, &c.Latest)
	c.Age = time.Duration(age) * time.Millisecond
	c.Kind, c.Source, c.Signed, c.Late = webhook.Kind(kind), webhook.Source(source), signed == 1, late == 1
	return r, err
}

// Extend implements [webhook.Store].
func (s *core) Extend(ctx context.Context, c *webhook.Claim, lease time.Duration) error {
	if err := s.find(ctx); err != nil {
		return err
	}
	err := s.update(ctx, s.common.Load().extend, lease.Milliseconds(), c.Key, c.Token)
	if !errors.Is(err, webhook.ErrClaimLost) {
		return err
	}
	var n int
	if _, err := s.conn().First(ctx, s.common.Load().holds, []any{c.Key, c.Token}, sqldb.Into(&n)); err != nil {
		return err
	}
	if n == 0 {
		return webhook.ErrClaimLost
	}
	return nil
}

// Settle implements [webhook.Store].
func (s *core) Settle(ctx context.Context, c *webhook.Claim, d webhook.Disposition) error {
	if err := s.find(ctx); err != nil {
		return err
	}
	q := s.common.Load()
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
func (s *core) end(ctx context.Context, by *batches[*webhook.Claim, struct{}], c *webhook.Claim) error {
	_, err := by.do(ctx, c)
	return err
}

// settle ends a claim. It returns ErrClaimLost if the claim is no longer valid.
func (s *shared) settle(ctx context.Context, query string, c *webhook.Claim, args ...any) error {
	return s.update(ctx, query, append(args, c.Key, c.Token)...)
}

// update changes one row. It returns ErrClaimLost if the row is no longer in the
// state that the query requires.
func (s *shared) update(ctx context.Context, query string, args ...any) error {
	return affectsOne(s.conn().Exec(ctx, query, args...))
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
