package bench_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/webhook"
)

// floor is a shop that is written by hand. It stores what it is about to ask for before it
// sends it, changes a state only from the one before, verifies webhooks, handles each once, and
// changes its order in the same transaction.
//
// It lacks the rest: a charge or refund whose response is lost, or whose process dies, stays
// "new" until a person looks. A lost webhook is never noticed, and neither is a dispute, a refund
// by someone else or another amount. It has no second payment, no attempt after a failed one, no
// books and no accounts, and a part that is refunded is not in it.
type floor struct {
	t  *till
	db handPool
}

const handTables = `
	CREATE TABLE charges (ref TEXT PRIMARY KEY, amount BIGINT NOT NULL, state TEXT NOT NULL, transaction_id TEXT UNIQUE,
		created_at TIMESTAMPTZ NOT NULL DEFAULT now());
	CREATE TABLE refunds (ref TEXT PRIMARY KEY REFERENCES charges (ref), amount BIGINT NOT NULL, state TEXT NOT NULL,
		created_at TIMESTAMPTZ NOT NULL DEFAULT now());
	CREATE TABLE events (id TEXT PRIMARY KEY, received_at TIMESTAMPTZ NOT NULL DEFAULT now())`

const (
	storeCharge = `INSERT INTO charges (ref, amount, state) VALUES ($1, $2, 'new')`
	// A webhook may come before the response.
	setPending  = `UPDATE charges SET transaction_id = $2, state = CASE state WHEN 'new' THEN 'pending' ELSE state END WHERE ref = $1`
	storeEvent  = `INSERT INTO events (id) VALUES ($1) ON CONFLICT DO NOTHING`
	setPaid     = `UPDATE charges SET state = 'paid' WHERE ref = $1 AND amount = $2 AND state IN ('new', 'pending')`
	storeRefund = `INSERT INTO refunds (ref, amount, state) SELECT ref, amount, 'new' FROM charges
		WHERE ref = $1 AND transaction_id = $2 AND state = 'paid'`
	endRefund   = `UPDATE refunds SET state = 'done' WHERE ref = $1 AND state = 'new'`
	setRefunded = `UPDATE charges SET state = 'refunded' WHERE ref = $1 AND state = 'paid'`
)

func openFloor(t *till, db handPool) seller {
	t.Helper()
	t.exec(handTables)
	return &floor{t, db}
}

func (f *floor) start() (stop func()) { return func() {} }

func (f *floor) charge(ctx context.Context, order string) (string, error) {
	if _, err := f.db.exec(ctx, storeCharge, order, price); err != nil {
		return "", err
	}
	created, err := f.t.create(ctx, order)
	if err != nil {
		return "", err
	}
	return created.ID, one(f.db.exec(ctx, setPending, order, created.ID))
}

// verified returns the event of a delivery, or nil after a response.
func verified(w http.ResponseWriter, r *http.Request, secret gateway.Secret) *webhook.TransactionEvent {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err == nil {
		err = webhook.Verify(r.Header, body, secret)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return nil
	}
	var transaction *webhook.TransactionEvent
	e, err := webhook.Parse(body)
	if err == nil {
		transaction, err = e.Transaction()
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return nil
	}
	return transaction
}

func (f *floor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e := verified(w, r, f.t.gw.Secret())
	if e == nil || e.Kind != webhook.TransactionPaid {
		return
	}
	ctx := r.Context()
	err := f.db.in(ctx, func(tx statementFunc) error {
		if n, err := tx(ctx, storeEvent, e.ID); err != nil || n == 0 { // handled before
			return err
		}
		if err := one(tx(ctx, setPaid, e.CorrelationID, e.Data.Charged())); err != nil {
			return err
		}
		return change(ctx, tx, e.CorrelationID, "paid")
	})
	if err != nil {
		http.Error(w, "try again", http.StatusServiceUnavailable)
		return
	}
	f.t.tell(e.CorrelationID, "paid")
}

func (f *floor) refund(ctx context.Context, order, transactionID string) error {
	if err := one(f.db.exec(ctx, storeRefund, order, transactionID)); err != nil {
		return err
	}
	if err := f.t.giveBack(ctx, transactionID); err != nil {
		return err
	}
	if err := f.db.in(ctx, func(tx statementFunc) error { return refunded(ctx, tx, order) }); err != nil {
		return err
	}
	f.t.tell(order, "refunded")
	return nil
}

// giveBack refunds a transaction in full.
func (t *till) giveBack(ctx context.Context, transactionID string) error {
	_, err := t.client.Transactions.Refund(ctx, transactionID, gateway.RefundParams{Full: true})
	return err
}

// refunded stores that an order's refund was made.
func refunded(ctx context.Context, tx statementFunc, order string) error {
	if err := one(tx(ctx, endRefund, order)); err != nil {
		return err
	}
	if err := one(tx(ctx, setRefunded, order)); err != nil {
		return err
	}
	return change(ctx, tx, order, "refunded")
}

// riverShop is a floor with a River job for what must not be forgotten: a charge and a refund
// each have one that sends them again two minutes later, which is deleted with the response, and
// the webhook is a job, unique by its event, whose worker changes the order.
//
// Its charges and refunds whose response is lost end, then. The rest that [floor] lacks it lacks
// too, and the events of an order have no sequence.
type riverShop struct {
	t      *till
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx]
}

// late is when a job sends what its caller did not.
const late = 2 * time.Minute

type chargeJob struct {
	Order string `json:"order"`
}

func (chargeJob) Kind() string { return "charge" }

type refundJob struct {
	Order         string `json:"order"`
	TransactionID string `json:"transaction_id"`
}

func (refundJob) Kind() string { return "refund" }

type paidJob struct {
	EventID string `json:"event_id" river:"unique"`
	Order   string `json:"order"`
	Amount  int64  `json:"amount"`
}

func (paidJob) Kind() string { return "paid" }

func openRiverShop(t *till) seller {
	t.Helper()
	s := &riverShop{t: t, pool: t.pgxPool()}
	t.exec(handTables)
	quiet, driver := slog.New(slog.DiscardHandler), riverpgxv5.New(s.pool)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: quiet})
	require.NoError(t, err)
	_, err = migrator.Migrate(t.Context(), rivermigrate.DirectionUp, nil)
	require.NoError(t, err)
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[chargeJob]) error {
		created, err := t.create(ctx, job.Args.Order)
		if err != nil {
			return err
		}
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			if err := one(pgxExec(tx)(ctx, setPending, job.Args.Order, created.ID)); err != nil {
				return err
			}
			_, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job)
			return err
		})
	}))
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[refundJob]) error {
		now, err := t.client.Transactions.Get(ctx, job.Args.TransactionID)
		if err == nil && now.RefundedAmount == 0 { // a full refund is not made twice
			err = t.giveBack(ctx, job.Args.TransactionID)
		}
		if err != nil {
			return err
		}
		return s.tells(ctx, job.Args.Order, "refunded", func(tx pgx.Tx) error {
			if err := refunded(ctx, pgxExec(tx), job.Args.Order); err != nil {
				return err
			}
			_, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job)
			return err
		})
	}))
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[paidJob]) error {
		return s.tells(ctx, job.Args.Order, "paid", func(tx pgx.Tx) error {
			if err := one(pgxExec(tx)(ctx, setPaid, job.Args.Order, job.Args.Amount)); err != nil {
				return err
			}
			if err := change(ctx, pgxExec(tx), job.Args.Order, "paid"); err != nil {
				return err
			}
			_, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job)
			return err
		})
	}))
	s.client, err = river.NewClient(driver, &river.Config{
		Logger: quiet, Workers: workers, Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 100}},
	})
	require.NoError(t, err)
	return s
}

// tells tells an order's state after a transaction.
func (s *riverShop) tells(ctx context.Context, order, state string, run func(tx pgx.Tx) error) error {
	if err := pgx.BeginFunc(ctx, s.pool, run); err != nil {
		return err
	}
	s.t.tell(order, state)
	return nil
}

func (s *riverShop) start() (stop func()) {
	ctx := context.WithoutCancel(s.t.Context())
	require.NoError(s.t, s.client.Start(ctx))
	return func() { require.NoError(s.t, s.client.Stop(ctx)) }
}

// store stores a row and the job that sends it if its caller does not.
func (s *riverShop) store(ctx context.Context, job river.JobArgs, statement string, args ...any) (id int64, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if err := one(pgxExec(tx)(ctx, statement, args...)); err != nil {
			return err
		}
		inserted, err := s.client.InsertTx(ctx, tx, job, &river.InsertOpts{ScheduledAt: time.Now().Add(late)})
		if err == nil {
			id = inserted.Job.ID
		}
		return err
	})
	return id, err
}

func (s *riverShop) charge(ctx context.Context, order string) (string, error) {
	job, err := s.store(ctx, chargeJob{order}, storeCharge, order, price)
	if err != nil {
		return "", err
	}
	created, err := s.t.create(ctx, order)
	if err != nil {
		return "", err
	}
	return created.ID, pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if err := one(pgxExec(tx)(ctx, setPending, order, created.ID)); err != nil {
			return err
		}
		_, err := s.client.JobDeleteTx(ctx, tx, job)
		return err
	})
}

func (s *riverShop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e := verified(w, r, s.t.gw.Secret())
	if e == nil || e.Kind != webhook.TransactionPaid {
		return
	}
	_, err := s.client.Insert(r.Context(), paidJob{e.ID, e.CorrelationID, e.Data.Charged()},
		&river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true}})
	if err != nil {
		http.Error(w, "try again", http.StatusServiceUnavailable)
	}
}

func (s *riverShop) refund(ctx context.Context, order, transactionID string) error {
	job, err := s.store(ctx, refundJob{order, transactionID}, storeRefund, order, transactionID)
	if err != nil {
		return err
	}
	if err := s.t.giveBack(ctx, transactionID); err != nil {
		return err
	}
	return s.tells(ctx, order, "refunded", func(tx pgx.Tx) error {
		if _, err := s.client.JobDeleteTx(ctx, tx, job); err != nil {
			return err
		}
		return refunded(ctx, pgxExec(tx), order)
	})
}
