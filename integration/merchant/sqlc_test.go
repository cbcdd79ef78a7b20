package merchant_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	pgxdriver "github.com/gateway-go/gateway/contrib/pgx"
	"github.com/gateway-go/gateway/merchant"
)

// DBTX and Queries have the form of what sqlc generates with sql_package: "pgx/v5" from
//
//	-- name: CreateOrder :exec
//	INSERT INTO orders (id, state, ships) VALUES ($1, 'new', 0);
//
//	-- name: Ship :execrows
//	UPDATE orders SET state = 'paid', ships = ships + 1 WHERE id = $1;
type DBTX interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

type Queries struct{ db DBTX }

func New(db DBTX) *Queries { return &Queries{db} }

func (q *Queries) WithTx(tx pgx.Tx) *Queries { return &Queries{tx} }

func (q *Queries) CreateOrder(ctx context.Context, id string) error {
	_, err := q.db.Exec(ctx, `INSERT INTO orders (id, state, ships) VALUES ($1, 'new', 0)`, id)
	return err
}

func (q *Queries) SetState(ctx context.Context, id, state string) (int64, error) {
	tag, err := q.db.Exec(ctx, `UPDATE orders SET state = $2 WHERE id = $1`, id, state)
	return tag.RowsAffected(), err
}

// store is a shop whose queries sqlc generated for pgx.
type store struct {
	*merchant.Merchant[pgx.Tx]

	pool    *pgxpool.Pool
	queries *Queries
}

func openStore(ctx context.Context, pool *pgxpool.Pool, cfg merchant.Config) (*store, error) {
	s := &store{pool: pool, queries: New(pool)}
	var err error
	s.Merchant, err = merchant.Open(ctx, pgxdriver.New(pool), cfg, merchant.Callbacks[pgx.Tx]{Goods: s.goods})
	return s, err
}

func (s *store) goods(ctx context.Context, tx pgx.Tx, g *merchant.Goods) error {
	n, err := s.queries.WithTx(tx).SetState(ctx, g.Order, string(g.State))
	if err == nil && n != 1 {
		err = fmt.Errorf("there is no order %s", g.Order)
	}
	return err
}

// buy stores an order and its charge in one transaction, and sends the charge.
func (s *store) buy(ctx context.Context, p merchant.ChargeParams) (*merchant.Charge, error) {
	var c *merchant.Charge
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) (err error) {
		if c, err = s.ChargeTx(ctx, tx, p); err != nil {
			return err
		}
		return s.queries.WithTx(tx).CreateOrder(ctx, p.Order)
	})
	if err != nil {
		return nil, err
	}
	return s.Send(ctx, c.ID)
}

// The guide's shop on a pgxpool with what sqlc generates sells, and an order that can't be
// charged is not stored.
func TestAShopOnPgxWithSqlc(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pgxpools)
	s, err := openStore(t.Context(), w.pools[w.db], w.cfg)
	require.NoError(t, err)
	w.gw.Webhooks.Send(s.Webhook("shop"))
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	defer func() {
		cancel()
		assert.NoError(t, <-ended)
	}()
	c, err := s.buy(t.Context(), pix("Q1", 1990))
	require.NoError(t, err)
	require.Equal(t, merchant.Pending, c.State)
	require.NoError(t, w.gw.Transactions.Pay(c.TransactionID))
	w.eventually("it is to be sent", func() bool {
		var state string
		require.NoError(t, w.db.QueryRowContext(t.Context(), `SELECT state FROM orders WHERE id = 'Q1'`).Scan(&state))
		return state == "paid"
	})

	free := pix("Q2", 0)
	_, err = s.buy(t.Context(), free)
	require.Error(t, err)
	var n int
	require.NoError(t, w.db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM orders WHERE id = 'Q2'`).Scan(&n))
	assert.Zero(t, n)
}
