package sqlstore

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/dbms"
	"github.com/gateway-go/gateway/internal/sqldb"
	"github.com/gateway-go/gateway/webhook"
)

// batches executes concurrent calls together, because a commit costs more than
// the rest of a statement (group commit). No call waits for others to come: it
// waits only while flights statements are running, and the next one executes
// all calls that have come in the meantime.
//
// A statement for several calls reports only which of them succeeded. Each of
// the others is executed by itself: only that tells a duplicate from a lost
// claim and from a failure of the database.
type batches[T, R any] struct {
	flights int
	yields  bool          // a call lets goroutines that are ready come first, and executes theirs too
	timeout time.Duration // of a statement for several calls
	single  func(ctx context.Context, arg T) (R, error)
	several func(ctx context.Context, args []T) ([]result[R], error)
	alone   chan struct{} // has an element for each call that is executed by itself after all

	mu      sync.Mutex
	running int
	waiting []*call[T, R]
}

// result is the result of a call that succeeded together with others.
type result[R any] struct {
	value R
	ok    bool
}

type call[T, R any] struct {
	arg    T
	lead   chan []*call[T, R] // receives the calls that this one executes; it is one of them
	done   chan struct{}      // closed when another one has executed it
	result result[R]
}

const (
	// maxBatch limits the calls that are executed together. More gain little,
	// and would all be repeated after a failure.
	maxBatch = 256

	// maxAlone limits the calls that are executed by themselves after their
	// batch failed: otherwise each would open a connection to a database that
	// has a problem.
	maxAlone = 8

	// A row that another session has locked must not delay the events of all
	// other resources for longer than batchTimeout.
	batchTimeout = 2 * time.Second

	// largeBody is the size from which an event is stored by itself.
	largeBody = 16 << 10
)

// do executes a call, by itself or together with others.
func (b *batches[T, R]) do(ctx context.Context, arg T) (R, error) {
	c := b.enqueue(arg)
	if c == nil && !b.yields {
		return b.now(ctx, arg)
	}
	if c == nil {
		runtime.Gosched()
		group := b.first(arg)
		if c = group[0]; len(group) == 1 {
			return b.now(ctx, arg)
		}
		c.lead <- group
	}
	select {
	case group := <-c.lead:
		if len(group) == 1 {
			return b.now(ctx, arg)
		}
		b.execute(group)
	case <-c.done:
	case <-ctx.Done():
		if b.remove(c) {
			var none R
			return none, ctx.Err()
		}
		select { // it is being executed
		case group := <-c.lead:
			b.execute(group)
		case <-c.done:
		}
	}
	if c.result.ok {
		return c.result.value, nil
	}
	return b.byItself(ctx, arg)
}

// now executes a call by itself, while others wait: but not for long, since another
// session may have locked its row.
func (b *batches[T, R]) now(ctx context.Context, arg T) (R, error) {
	next := sync.OnceFunc(b.next)
	defer next()
	defer time.AfterFunc(b.timeout, next).Stop()
	return b.single(ctx, arg)
}

// enqueue returns nil if the call can be executed at once.
func (b *batches[T, R]) enqueue(arg T) *call[T, R] {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running < b.flights {
		b.running++
		return nil
	}
	c := newCall[T, R](arg)
	b.waiting = append(b.waiting, c)
	return c
}

func newCall[T, R any](arg T) *call[T, R] {
	return &call[T, R]{arg: arg, lead: make(chan []*call[T, R], 1), done: make(chan struct{})}
}

// first returns a call that can be executed at once, with those that have come since.
func (b *batches[T, R]) first(arg T) []*call[T, R] {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(b.waiting), maxBatch-1)
	group := append([]*call[T, R]{newCall[T, R](arg)}, b.waiting[:n]...)
	b.waiting = slices.Delete(b.waiting, 0, n)
	return group
}

// remove reports whether the call was still waiting.
func (b *batches[T, R]) remove(c *call[T, R]) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.waiting, c)
	if i < 0 {
		return false
	}
	b.waiting = slices.Delete(b.waiting, i, i+1)
	return true
}

// next lets the first call that waits execute all that wait.
func (b *batches[T, R]) next() {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(b.waiting), maxBatch)
	if n == 0 {
		b.running--
		return
	}
	group := slices.Clone(b.waiting[:n])
	b.waiting = slices.Delete(b.waiting, 0, n)
	group[0].lead <- group
}

// execute executes the calls of a group, which begins with the caller's own.
func (b *batches[T, R]) execute(group []*call[T, R]) {
	defer b.next()
	defer func() {
		_ = recover() // of the driver; the calls that are repeated by themselves report it
		for _, c := range group[1:] {
			close(c.done)
		}
	}()
	// The context of one call must not end the others.
	ctx, cancel := context.WithTimeout(context.Background(), b.timeout)
	defer cancel()
	args := make([]T, len(group))
	for i, c := range group {
		args[i] = c.arg
	}
	results, err := b.several(ctx, args)
	if err != nil {
		return // each call reports its own error
	}
	for i, c := range group {
		c.result = results[i]
	}
}

func (b *batches[T, R]) byItself(ctx context.Context, arg T) (R, error) {
	select {
	case b.alone <- struct{}{}:
		defer func() { <-b.alone }()
		return b.single(ctx, arg)
	case <-ctx.Done():
		var none R
		return none, ctx.Err()
	}
}

// newBatches returns batches for a dialect. SQLite has one writer at a time, which
// may hold its lock for long.
func newBatches[T, R any](
	d database.Dialect, alone chan struct{},
	single func(context.Context, T) (R, error), several func(context.Context, []T) ([]result[R], error),
) *batches[T, R] {
	b := &batches[T, R]{flights: 2, timeout: batchTimeout, single: single, several: several, alone: alone}
	if d == database.DialectSQLite {
		b.flights, b.timeout = 1, dbms.BusyTimeout
	}
	return b
}

// newPuts returns the batches in which the account's events are stored.
func (s *core) newPuts() *batches[webhook.Record, webhook.Entry] {
	several := s.putAll
	if s.sqlite() {
		several = inTx(s.shared, s.putInTx)
	}
	return newBatches(s.db.Dialect(), s.alone, s.putOne, several)
}

// newSettled returns the batches of a statement that ends claims and has no other
// arguments. several is that statement for arrays of keys and tokens.
func (s *shared) newSettled(of func(*queries) (single, several string)) *batches[*webhook.Claim, struct{}] {
	one := func(ctx context.Context, c *webhook.Claim) (struct{}, error) {
		single, _ := of(s.common.Load())
		return struct{}{}, s.settle(ctx, single, c)
	}
	all := func(ctx context.Context, claims []*webhook.Claim) ([]result[struct{}], error) {
		_, several := of(s.common.Load())
		return s.settleAll(ctx, several, claims)
	}
	if s.sqlite() {
		all = inTx(s, func(ctx context.Context, tx sqldb.Session, c *webhook.Claim) (result[struct{}], error) {
			single, _ := of(s.common.Load())
			err := affectsOne(tx.Exec(ctx, single, c.Key, c.Token))
			if errors.Is(err, webhook.ErrClaimLost) {
				return result[struct{}]{}, nil
			}
			return result[struct{}]{ok: err == nil}, err
		})
	}
	b := newBatches(s.db.Dialect(), s.alone, one, all)
	b.flights, b.yields = 1, true // no caller waits for an event's end, and a locked row is skipped
	return b
}

// inTx executes calls one after another in a transaction.
func inTx[T, R any](
	s *shared, one func(context.Context, sqldb.Session, T) (result[R], error),
) func(context.Context, []T) ([]result[R], error) {
	return func(ctx context.Context, args []T) ([]result[R], error) {
		results := make([]result[R], len(args))
		err := s.db.Transaction(ctx, func(tx sqldb.Tx) (err error) {
			for i, arg := range args {
				if results[i], err = one(ctx, s.in(tx), arg); err != nil {
					return err
				}
			}
			return nil
		})
		return results, err
	}
}

// joinable reports whether an event can be stored together with others. On
// PostgreSQL an event with a Fact needs a lock of its own, and one string that it
// rejects would fail the statement for all.
func (s *core) joinable(rec *webhook.Record) bool {
	if rec.Key == "" || len(rec.Body)+len(rec.Confirmed) > largeBody {
		return false
	}
	if s.sqlite() {
		return true
	}
	if rec.Fact != "" {
		return false
	}
	for _, t := range []string{rec.Key, rec.EventID, string(rec.Kind), rec.Resource, string(rec.Source), rec.Digest} {
		if strings.IndexByte(t, 0) >= 0 || !utf8.ValidString(t) {
			return false
		}
	}
	return true
}

// putOne stores an event by itself. Only one with a Fact needs several statements.
func (s *core) putOne(ctx context.Context, rec webhook.Record) (webhook.Entry, error) {
	if rec.Fact != "" {
		return s.putFact(ctx, rec)
	}
	return s.putAs(ctx, s.conn(), rec, webhook.StateWaiting, "")
}

func (s *core) putInTx(ctx context.Context, tx sqldb.Session, rec webhook.Record) (r result[webhook.Entry], err error) {
	if rec.Fact != "" {
		r.value, err = s.putFactTx(ctx, tx, rec)
	} else {
		r.value, err = s.putAs(ctx, tx, rec, webhook.StateWaiting, "")
	}
	r.ok = err == nil
	return r, err
}

// putAll inserts the events that the table does not have yet, in the order of
// their keys: two statements that wait for each other's rows would deadlock.
func (s *core) putAll(ctx context.Context, recs []webhook.Record) ([]result[webhook.Entry], error) {
	order := make([]int, len(recs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(recs[a].Key, recs[b].Key) })
	order = slices.CompactFunc(order, func(a, b int) bool { return recs[a].Key == recs[b].Key })
	var keys, ids, kinds, resources, signed, sources, late, positions, digests, keyIDs, traces, bodies, confirmed array
	for _, i := range order {
		r := &recs[i]
		keys.text(r.Key)
		ids.text(r.EventID)
		kinds.text(string(r.Kind))
		resources.text(r.Resource)
		signed.number(number(r.Signed))
		sources.text(string(r.Source))
		late.number(number(r.Late))
		positions.number(r.Position)
		digests.text(r.Digest)
		keyIDs.text(text(r.KeyID))
		traces.text(text(r.Trace))
		bodies.bytes(r.Body)
		confirmed.bytes(r.Confirmed)
	}
	added, err := s.changed(ctx, s.q.insertAll, keys.String(), ids.String(), kinds.String(), resources.String(), signed.String(), sources.String(),
		late.String(), positions.String(), digests.String(), keyIDs.String(), traces.String(), bodies.String(), confirmed.String())
	if err != nil {
		return nil, err
	}
	results := make([]result[webhook.Entry], len(recs))
	for _, i := range order {
		if added[recs[i].Key] {
			results[i] = result[webhook.Entry]{webhook.Entry{Key: recs[i].Key, State: webhook.StateWaiting, Added: true}, true}
		}
	}
	return results, nil
}

// settleAll ends the claims that are still valid and whose rows are not locked.
func (s *shared) settleAll(ctx context.Context, query string, claims []*webhook.Claim) ([]result[struct{}], error) {
	var keys, tokens array
	// One of each key; others, such as those of another account, are executed by themselves.
	of := make(map[string]*webhook.Claim, len(claims))
	for _, c := range claims {
		if of[c.Key] == nil {
			of[c.Key] = c
			keys.text(c.Key)
			tokens.text(c.Token)
		}
	}
	ended, err := s.changed(ctx, query, keys.String(), tokens.String())
	if err != nil {
		return nil, err
	}
	results := make([]result[struct{}], len(claims))
	for i, c := range claims {
		results[i].ok = ended[c.Key] && of[c.Key] == c
	}
	return results, nil
}

// changed runs a statement that returns the keys of the rows that it has changed.
func (s *shared) changed(ctx context.Context, query string, args ...any) (map[string]bool, error) {
	rows, err := sqldb.All(ctx, s.conn(), query, args, func(row database.Scanner) (key string, err error) {
		return key, row.Scan(&key, new(string))
	})
	if err != nil {
		return nil, err
	}
	keys := make(map[string]bool, len(rows))
	for _, key := range rows {
		keys[key] = true
	}
	return keys, nil
}

// array is the text of a PostgreSQL array, which every driver can send.
type array []byte

var arrayEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

func (a *array) element(e string) {
	separator := byte(',')
	if len(*a) == 0 {
		separator = '{'
	}
	*a = append(append(*a, separator), e...)
}

func (a *array) text(t string)  { a.element(`"` + arrayEscapes.Replace(t) + `"`) }
func (a *array) number(n int64) { a.element(strconv.FormatInt(n, 10)) }
func (a *array) String() string { return string(*a) + "}" }

func (a *array) bytes(raw []byte) {
	if raw == nil {
		a.element("NULL")
		return
	}
	a.element(`"` + hex.EncodeToString(raw) + `"`)
}
