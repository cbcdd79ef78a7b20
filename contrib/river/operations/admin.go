package operations

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
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
func (o *Outbox) List(ctx context.Context, q Query) ([]*Entry, error) {
	states := make([]string, len(q.States))
	for i, s := range q.States {
		states[i] = string(s)
	}
	limit := q.Limit
	if limit <= 0 {
		limit = 100
	}
	if err := o.store.open(ctx, o.config.Pool); err != nil {
		return nil, err
	}
	rows, err := o.config.Pool.Query(ctx, `SELECT `+columns+` FROM `+o.store.table+` o
		WHERE (cardinality($1::text[]) = 0 OR state = ANY ($1)) AND ($2 = '' OR kind = $2) AND ($3 = '' OR key = $3)
			AND ($4 = '' OR resource = $4) AND id > $5 AND account = $7 ORDER BY id LIMIT $6`,
		states, q.Kind, q.Key, q.Resource, q.After, limit, o.store.account.Name)
	if err != nil {
		return nil, wrap(err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (*Entry, error) {
		r, err := scan(row)
		if err != nil {
			return nil, err
		}
		return &r.Entry, nil
	})
	return list, wrap(err)
}

// Counts returns how many operations of the account are in each state except
// [Done]. Alert on [Ambiguous] and [Dead].
func (o *Outbox) Counts(ctx context.Context) (map[State]int64, error) {
	if err := o.store.open(ctx, o.config.Pool); err != nil {
		return nil, err
	}
	rows, err := o.config.Pool.Query(ctx, `SELECT state, count(*) FROM `+o.store.table+` WHERE state <> 'done' AND account = $1 GROUP BY state`,
		o.store.account.Name)
	if err != nil {
		return nil, wrap(err)
	}
	counts := make(map[State]int64)
	var state State
	var n int64
	_, err = pgx.ForEachRow(rows, []any{&state, &n}, func() error {
		counts[state] = n
		return nil
	})
	return counts, wrap(err)
}

// CancelTx cancels an operation in your transaction. Its handler does not run.
// It returns [ErrState] if the operation was or may have been sent, if a
// worker is about to send it, or if it is finished.
func (o *Outbox) CancelTx(ctx context.Context, tx pgx.Tx, id int64) error {
	if err := o.store.open(ctx, tx); err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, `UPDATE `+o.store.table+` SET state = 'canceled', updated_at = now(), lease_until = NULL
		WHERE id = $1 AND account = $2 AND state = 'waiting'`, id, o.store.account.Name)
	if err != nil {
		return wrap(err)
	}
	if tag.RowsAffected() == 0 {
		return o.wrongState(ctx, tx, id)
	}
	return nil
}

func (o *Outbox) wrongState(ctx context.Context, tx pgx.Tx, id int64) error {
	var state State
	err := tx.QueryRow(ctx, `SELECT state FROM `+o.store.table+` WHERE id = $1 AND account = $2`, id, o.store.account.Name).Scan(&state)
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("%w: %d", ErrNotFound, id)
	}
	if err != nil {
		return wrap(err)
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
func (o *Outbox) Resolve(ctx context.Context, id int64, d Resolution) error {
	if d.By == "" {
		return errors.New("operations: Resolution.By must say who decided, and why")
	}
	return wrap(o.store.durable(ctx, func(tx pgx.Tx) error {
		r, err := o.lock(ctx, tx, id, Ambiguous)
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
			return err
		}
		return o.reopen(ctx, tx, r, state)
	}))
}

func (o *Outbox) resolveApplied(ctx context.Context, r *record, d Resolution) error {
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
	a := &attempt{Outbox: o, record: r}
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
	if _, ok := op.(Refund); ok {
		r.p.Refunded = r.p.Before.RefundedAmount + r.p.Before.Refund
	}
	r.p.Outcome = &outcome{Value: encoded}
	return nil
}

// Retry runs the handler of a [Dead] operation again, without calling the
// gateway.
func (o *Outbox) Retry(ctx context.Context, id int64) error {
	return wrap(o.store.durable(ctx, func(tx pgx.Tx) error {
		r, err := o.lock(ctx, tx, id, Dead)
		if err != nil {
			return err
		}
		r.p.HandlerRuns = 0
		return o.reopen(ctx, tx, r, Decided)
	}))
}

func (o *Outbox) lock(ctx context.Context, tx pgx.Tx, id int64, state State) (*record, error) {
	if err := o.store.open(ctx, tx); err != nil {
		return nil, err
	}
	r, err := scan(tx.QueryRow(ctx, `SELECT `+columns+` FROM `+o.store.table+` o WHERE id = $1 AND account = $2 AND state = $3 FOR UPDATE`,
		id, o.store.account.Name, string(state)))
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, o.wrongState(ctx, tx, id)
	}
	return r, err
}

// reopen lets workers continue with an operation.
func (o *Outbox) reopen(ctx context.Context, tx pgx.Tx, r *record, state State) error {
	progress, err := r.encoded()
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `UPDATE `+o.store.table+` SET state = $2, progress = $3::json, refunded = $4, claims = claims + 1,
		due_at = now(), lease_until = NULL, updated_at = now() WHERE id = $1`, r.ID, string(state), progress, r.refunded()); err != nil {
		return err
	}
	return o.wake(ctx, tx, r.ID, r.Kind)
}

// Purge deletes the account's operations that were done or canceled before a time
// and returns how many. Their keys are forgotten: an operation inserted again with
// such a key is sent again. The gateway still applies a create only once per
// reference, but would apply a refund twice. Keep operations for as long as
// your code may insert them again.
func (o *Outbox) Purge(ctx context.Context, before time.Time) (int64, error) {
	if err := o.store.open(ctx, o.config.Pool); err != nil {
		return 0, err
	}
	tag, err := o.config.Pool.Exec(ctx, `DELETE FROM `+o.store.table+` WHERE account = $1 AND state IN ('done', 'canceled') AND updated_at < $2`,
		o.store.account.Name, before)
	return tag.RowsAffected(), wrap(err)
}
