package operations

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/sqldb"
)

// Query selects operations of the outbox's account; zero values select all.
type Query struct {
	States   []State
	Kind     string
	Key      string
	Resource string // "transactions/ID"
	After    int64  // the ID of the last entry of the previous page
	Limit    int    // default 100
}

// List returns operations in the order in which they were inserted.
func (r *reader) List(ctx context.Context, q Query) ([]*Entry, error) {
	c, err := r.store.conn(ctx)
	if err != nil {
		return nil, err
	}
	where, args := `account = ? AND id > ?`, []any{r.store.account.Name, q.After}
	for _, is := range []struct{ column, value string }{{"kind", q.Kind}, {"key", q.Key}, {"resource", q.Resource}} {
		if is.value != "" {
			where, args = where+` AND `+is.column+` = ?`, append(args, is.value)
		}
	}
	if len(q.States) > 0 {
		where += ` AND state IN (?` + strings.Repeat(`, ?`, len(q.States)-1) + `)`
		for _, state := range q.States {
			args = append(args, string(state))
		}
	}
	limit := q.Limit
	if limit <= 0 {
		limit = 100
	}
	list, err := sqldb.All(ctx, c, `SELECT `+columns+` FROM `+table+` WHERE `+where+` ORDER BY id LIMIT ?`, append(args, limit),
		func(row database.Scanner) (*Entry, error) {
			r, err := scan(row)
			if err != nil {
				return nil, err
			}
			return &r.Entry, nil
		})
	return list, wrap(err)
}

// FindTx returns the operation with a kind ("transactions.refund") and a key, as your
// transaction sees it. The error is [ErrNotFound] if there is none.
//
// An operation is [Sent] before its request leaves: a transaction that begins after
// a resource was read knows of every request whose effect the resource can show.
func (o *Outbox[TX]) FindTx(ctx context.Context, tx TX, kind, key string) (*Entry, error) {
	c, err := o.store.in(ctx, sqldb.Wrap(o.driver, tx))
	if err != nil {
		return nil, err
	}
	r, err := o.store.byKey(ctx, c, kind, key)
	if err != nil {
		return nil, err
	}
	return &r.Entry, nil
}

// byKey returns the account's operation with a kind and a key, or [ErrNotFound].
func (s *store) byKey(ctx context.Context, c sqldb.Session, kind, key string) (*record, error) {
	r, err := one(ctx, c, `SELECT `+columns+` FROM `+table+` WHERE account = ? AND kind = ? AND key = ?`, []any{s.account.Name, kind, key})
	switch {
	case err != nil:
		return nil, wrap(err)
	case r == nil:
		return nil, fmt.Errorf("%w: %s %s", ErrNotFound, kind, key)
	}
	return r, nil
}

// FindAllTx returns the operations with a kind and some keys, as [Outbox.FindTx] does each, by
// their keys. Those that do not exist are missing.
func (o *Outbox[TX]) FindAllTx(ctx context.Context, tx TX, kind string, keys []string) (map[string]*Entry, error) {
	found := make(map[string]*Entry, len(keys))
	if len(keys) == 0 {
		return found, nil
	}
	c, err := o.store.in(ctx, sqldb.Wrap(o.driver, tx))
	if err != nil {
		return nil, err
	}
	args := []any{o.store.account.Name, kind}
	for _, key := range keys {
		args = append(args, key)
	}
	list, err := sqldb.All(ctx, c, `SELECT `+columns+` FROM `+table+` WHERE account = ? AND kind = ? AND key IN (?`+
		strings.Repeat(`, ?`, len(keys)-1)+`)`, args, func(row database.Scanner) (*record, error) { return scan(row) })
	if err != nil {
		return nil, wrap(err)
	}
	for _, r := range list {
		found[r.Key] = &r.Entry
	}
	return found, nil
}

// Counts returns how many operations of the account are in each state except
// [Done]. Alert on [Ambiguous] and [Dead].
func (r *reader) Counts(ctx context.Context) (map[State]int64, error) {
	if _, err := r.store.conn(ctx); err != nil {
		return nil, err
	}
	type count struct {
		state string
		n     int64
	}
	var list []count
	if err := r.store.db.ByIndex(ctx, func(c sqldb.Session) (err error) {
		list, err = sqldb.All(ctx, c, `SELECT state, COUNT(*) FROM `+table+` WHERE state <> 'done' AND account = ? GROUP BY state`,
			[]any{r.store.account.Name}, func(row database.Scanner) (c count, err error) {
				err = row.Scan(&c.state, &c.n)
				return c, err
			})
		return err
	}); err != nil {
		return nil, wrap(err)
	}
	counts := make(map[State]int64)
	for _, c := range list {
		counts[State(c.state)] = c.n
	}
	return counts, nil
}

// CancelTx cancels an operation in your transaction. Its handler does not run, and its
// params are erased.
// It returns [ErrState] if the operation was or may have been sent, if a
// worker is about to send it, or if it is finished.
func (o *Outbox[TX]) CancelTx(ctx context.Context, tx TX, id int64) error {
	c, err := o.store.in(ctx, sqldb.Wrap(o.driver, tx))
	if err != nil {
		return err
	}
	if err := o.store.own(ctx, c); err != nil {
		return err
	}
	// It does not wait for a worker that has the row: the worker's handler may wait for a
	// lock of the caller's transaction.
	r, err := one(ctx, c, `SELECT `+columns+` FROM `+table+oneByID+` AND state || '' = 'waiting' {skip}`, []any{id, o.store.account.Name})
	switch {
	case err != nil:
		return wrap(err)
	case r == nil:
		return o.wrongState(ctx, c, id)
	}
	digest, progress, _, err := o.store.remains(r)
	if err != nil {
		return err
	}
	_, err = c.Exec(ctx, `UPDATE `+table+` SET state = 'canceled', `+erasing+`, updated_at = {now}, lease_until = NULL WHERE id = ?`, digest, progress, id)
	return wrap(err)
}

func (o *core) wrongState(ctx context.Context, c sqldb.Session, id int64) error {
	var state string
	found, err := c.First(ctx, `SELECT state FROM `+table+oneByID, []any{id, o.store.account.Name}, sqldb.Into(&state))
	switch {
	case err != nil:
		return wrap(err)
	case !found:
		return fmt.Errorf("%w: %d", ErrNotFound, id)
	}
	if State(state) == Waiting {
		return fmt.Errorf("%w: a worker is about to send operation %d", ErrState, id)
	}
	return fmt.Errorf("%w: operation %d is %s", ErrState, id, state)
}

// Decision is what a person decides about an [Ambiguous] operation.
type Decision string

// The decisions.
const (
	// Applied: the gateway applied the operation. The handler gets the result.
	Applied Decision = "applied"
	// SendAgain: the gateway did not apply it; send it again.
	SendAgain Decision = "send_again"
	// Abandoned: do not send it again. The handler gets [ErrAbandoned].
	Abandoned Decision = "abandoned"
)

// Resolution resolves an [Ambiguous] operation.
type Resolution struct {
	Decision   Decision
	ResourceID string // the id of the created resource, if Decision is Applied
	By         string // who decided and why, for the history; required

	// Override accepts a resource that differs from the operation, if Decision
	// is Applied. It says why, and is recorded in the history.
	Override string
}

// Resolve carries out a person's decision about an [Ambiguous] operation. Look
// at the resource and the gateway's dashboard first: if the operation was
// applied after all, SendAgain moves the money a second time.
//
// Applied reads the resource and returns [ErrMismatch] if it differs from the
// operation, unless Resolution.Override says why that is right.
//
// The error is [ErrState] if the operation is not ambiguous, and [ErrNotFound] if there is
// none. If the response of the database was lost, the decision may have been carried out:
// call Resolve again, and [ErrState] means that it was; the history says so.
func (o *Outbox[TX]) Resolve(ctx context.Context, id int64, d Resolution) error {
	if d.By == "" {
		return errors.New("operations: Resolution.By must say who decided, and why")
	}
	r, err := o.find(ctx, id, Ambiguous)
	if err != nil {
		return err
	}
	r.p.note(r.clock(), "resolved as "+string(d.Decision)+": "+d.By)
	state := Decided
	switch d.Decision {
	case Applied:
		err = o.resolveApplied(ctx, r, d)
	case SendAgain:
		r.p.Doubts++
		r.p.sendAgain()
		state = Waiting
	case Abandoned:
		r.p.Outcome = &outcome{Rejection: &RejectedError{Kind: "abandoned", Text: ErrAbandoned.Error() + ": " + d.By}}
	default:
		err = fmt.Errorf("Resolution.Decision is %q: it must be Applied, SendAgain or Abandoned", d.Decision)
	}
	if err != nil {
		return wrap(err)
	}
	return o.reopen(ctx, r, state)
}

func (o *core) resolveApplied(ctx context.Context, r *record, d Resolution) error {
	op, err := newOperation(r.Kind, r.params)
	if err != nil {
		return err
	}
	switch _, id, _ := strings.Cut(r.Resource, "/"); {
	case r.Resource == "" && d.ResourceID == "":
		return errors.New("Resolution.ResourceID must be the id of the created resource")
	case r.Resource != "" && d.ResourceID != "" && !strings.EqualFold(d.ResourceID, id):
		return fmt.Errorf("%w: the operation is about %s", ErrMismatch, r.Resource)
	}
	a := &attempt{core: o, record: r}
	s, err := a.session(ctx)
	if err != nil {
		return err
	}
	value, err := op.decided(ctx, s, &r.p.Before, d.ResourceID)
	if err != nil {
		return err
	}
	if why := op.differs(value); why != "" {
		if d.Override == "" {
			return fmt.Errorf("%w: %s: if it is right all the same, say why in Resolution.Override", ErrMismatch, why)
		}
		r.p.note(r.clock(), "a difference was accepted: "+why+": "+d.Override)
	}
	encoded, err := encodeResult(value)
	if err != nil {
		return err
	}
	if refund, ok := value.(*gateway.Refund); ok {
		r.p.Refunded = r.p.Before.RefundedAmount + refund.AmountRefunded
	}
	r.p.Outcome = &outcome{Value: encoded}
	return nil
}

// Retry runs the handler of a [Dead] operation again, without calling the
// gateway. The error is [ErrState] if the operation is not dead, and [ErrNotFound] if there
// is none. After any other error call it again.
func (o *Outbox[TX]) Retry(ctx context.Context, id int64) error {
	r, err := o.find(ctx, id, Dead)
	if err != nil {
		return err
	}
	r.p.HandlerRuns = 0
	return o.reopen(ctx, r, Decided)
}

// find reads an operation in a state.
func (o *core) find(ctx context.Context, id int64, state State) (*record, error) {
	c, err := o.store.conn(ctx)
	if err == nil {
		err = o.store.own(ctx, c)
	}
	if err != nil {
		return nil, err
	}
	r, err := one(ctx, c, `SELECT `+columns+` FROM `+table+oneByID+` AND state || '' = ?`, []any{id, o.store.account.Name, string(state)})
	switch {
	case err != nil:
		return nil, wrap(err)
	case r == nil:
		return nil, o.wrongState(ctx, c, id)
	}
	return r, nil
}

// reopen lets workers continue with an operation that find has read, unless
// it was changed since.
func (o *core) reopen(ctx context.Context, r *record, state State) error {
	progress, err := r.p.encoded()
	if err != nil {
		return err
	}
	return wrap(o.store.db.Durable(ctx, func(tx sqldb.Tx) error {
		c := o.store.db.In(tx)
		n, err := c.Exec(ctx, `UPDATE `+table+` SET state = ?, progress = {json}, refunded = ?, claims = claims + 1,
			due_at = {now}, lease_until = NULL, updated_at = {now} WHERE id = ? AND state || '' = ? AND claims = ?`,
			string(state), progress, r.refunded(), r.ID, string(r.State), r.claims)
		switch {
		case err != nil:
			return err
		case n == 0:
			return o.wrongState(ctx, c, r.ID)
		}
		return o.wake(ctx, tx, r.ID, r.Kind)
	}))
}
